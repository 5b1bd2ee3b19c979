"""The report of a run: one self-contained page of HTML.

It has the verdict, the factors, the evidence, diagnostics, choices, and the command that makes the
run again. Every function but `write_report` returns HTML.
"""

import shlex
from dataclasses import dataclass, field
from html import escape
from itertools import combinations
from pathlib import Path

from manifactor._support.files import write_bytes
from manifactor.cryoem.all_views.shown import Shown
from manifactor.cryoem.all_views.volumes import open_motions
from manifactor.estimators import ManifoldFactorizer
from manifactor.runs.folder import read_run
from manifactor.runs.run import Run, open_run
from manifactor.views import figures, tables, words
from manifactor.views import figures as motion_figures
from manifactor.views.figures import FigureSettings, MotionFigureSettings
from manifactor.views.markup import contents, page, paragraph, section, stylesheet

REPORT_NAME = "report.html"
# The run folder that the page's command writes.
NEW_RUN = "again"
SECTIONS = {
    "factors": "Factors",
    "evidence": "Evidence",
    "diagnostics": "Diagnostics",
    "choices": "Choices",
    "reproduce": "Reproduce",
}


@dataclass(frozen=True)
class ReportSettings:
    """Settings of the report."""

    # Eigenvalues of a factor that are listed; the spectrum's drawing has them all.
    listed_eigenvalues: int = 6

    figures: FigureSettings = field(default_factory=FigureSettings)
    motions: MotionFigureSettings = field(default_factory=MotionFigureSettings)


def write_report(
    folder: Path,
    fit: ManifoldFactorizer | None = None,
    *,
    out: Path | None = None,
    shown: Shown | None = None,
    settings: ReportSettings = ReportSettings(),
) -> Path:
    """Write the page of a run, whole or not at all; return its path."""
    run = open_run(folder, some=True)
    if fit is None:
        fit = read_run(folder)[1]
    # The whole page first: an error leaves the old report in place.
    page = report_page(run, fit, shown=shown, settings=settings)
    # A name of a file may have bytes that are no text.
    content = page.encode(errors="backslashreplace")
    path = out or folder / REPORT_NAME
    write_bytes(path, content)
    return path


def write_movies(
    folder: Path,
    *,
    page: Path | None = None,
    shown: Shown | None = None,
    settings: ReportSettings = ReportSettings(),
) -> list[Path]:
    """Write a movie along every interval and circle of a run beside its report."""
    run = open_run(folder, some=True)
    shown = shown or Shown(open_motions(run, read_run(folder)[1]))
    page = page or folder / REPORT_NAME
    written = []
    for number, place in enumerate(run.places, start=1):
        if place.topology == "other":
            continue
        for kind, content in _movies(run, shown, number, settings).items():
            path = page.with_name(f"{page.stem}-factor{number}{kind}")
            write_bytes(path, content)
            written.append(path)
    return written


def _movies(run: Run, shown: Shown, number: int, settings: ReportSettings) -> dict[str, bytes]:
    """Return movies along a factor, counted from 1, by the ending of their files."""
    if shown.motions is not None:
        return motion_figures.movies(
            shown.motions, number - 1, view=shown.view(number - 1), settings=settings.motions
        )
    return figures.averages_along(run, number, settings=settings.figures).movies


def report_page(
    run: Run,
    fit: ManifoldFactorizer,
    *,
    shown: Shown | None = None,
    settings: ReportSettings = ReportSettings(),
) -> str:
    """Return the whole page."""
    record = run.record
    shown = shown or Shown(open_motions(run, fit))
    bodies = {
        "factors": factors_section(run, fit, settings, shown=shown),
        "evidence": _spectrum_and_angles(fit, settings)
        + paragraph(words.tests_sentence(record, fit))
        + evidence_section(record, fit),
        "diagnostics": diagnostics_section(
            record, fit, picture=figures.bandwidth(fit, settings=settings.figures)
        ),
        "choices": tables.choices_table(record, fit).as_html(),
        "reproduce": reproduce_section(record, fit),
    }
    sections = ""
    for name, body in bodies.items():
        sections += section(name, SECTIONS[name], body)
    title = f"{words.input_name(record)}: {words.verdict_sentence(record, fit)}"
    top = verdict_section(run, fit, shown) + contents(SECTIONS)
    return page(title, top + sections, style=stylesheet("report.css"))


def verdict_section(run: Run, fit: ManifoldFactorizer, shown: Shown) -> str:
    """Return what was found in one sentence, warnings, the reasons, the samples."""
    record = run.record
    warnings = words.warnings(record)
    alerts = [*warnings, *run.warnings]
    # Warnings stand above already.
    unwarned = [] if warnings else words.confounder_sentences(record)
    remarks = [
        *words.preparation_sentences(record),
        *words.all_views_sentences(record),
        *words.volume_sentences(shown),
        *unwarned,
    ]
    return "".join(
        [
            f"<h1>Factors of {escape(words.input_name(record))}</h1>\n",
            paragraph(words.verdict_sentence(record, fit), kind="verdict"),
            *(paragraph(text, kind="warning") for text in alerts),
            paragraph(words.evidence(record, fit)),
            paragraph(words.samples_sentence(record, fit)),
            *(paragraph(text) for text in remarks),
        ]
    )


def factors_section(
    run: Run, fit: ManifoldFactorizer, settings: ReportSettings, *, shown: Shown = Shown()
) -> str:
    """Return every factor with its pictures, then the pairs of factors."""
    body = ""
    for f in range(len(fit.factors_)):
        body += _factor(run, fit, f, settings, shown)
    if shown.motions is not None:
        inside = motion_figures.particle_map(shown.motions, settings=settings.motions)
        body += section("views", "Views", inside, level=3)
    numbered = enumerate(fit.factors_)
    # Only these have a coordinate to draw against another.
    lines = [f for f, factor in numbered if factor.coordinate is not None]
    if len(lines) < 2:
        return body
    pairs = [
        figures.joint(fit, one, other, settings=settings.figures)
        for one, other in combinations(lines, 2)
    ]
    note = paragraph(
        "Samples by their places (coordinates) on two factors. Where these are "
        "independent, all rows look alike, and all columns.",
        kind="broad",
    )
    inside = panels(*pairs, note)
    return body + section("independence", "Independence", inside, level=3)


def _factor(
    run: Run, fit: ManifoldFactorizer, f: int, settings: ReportSettings, shown: Shown
) -> str:
    factor, motions = fit.factors_[f], shown.motions
    line = factor.coordinate is not None
    if motions is None or motions.expected:
        pictures = [figures.embedding(fit, f, settings=settings.figures)]
    else:
        # Of all particles, not only of those fitted.
        pictures = [motion_figures.deviations(run, f, settings=settings.motions)]
    if line:
        pictures.append(figures.histogram(fit, f, settings=settings.figures))
    if motions is not None:
        seen = motion_figures.deviation_map(motions, f, settings=settings.motions)
        pictures.append(seen)
    elif not line and figures.is_doubtful(fit, f):
        pictures.append(figures.confidence(fit, f, settings=settings.figures))
    body = paragraph(_eigenvalues(factor, settings)) + panels(*pictures)
    if line:
        body += _strips(run, f, settings, shown)
    return section(f"factor-{f + 1}", f"Factor {f + 1}: {factor.shape}", body, level=3)


def _strips(run: Run, f: int, settings: ReportSettings, shown: Shown) -> str:
    """Return images along a factor: of the molecule, of particles, of given volumes."""
    body, motions = "", shown.motions
    if motions is not None:
        body += motion_figures.images_along(
            motions,
            f,
            view=shown.view(f),
            wanted=shown.wanted.view is not None,
            settings=settings.motions,
        )
    # Images of particles themselves stand beside what was computed from all of them.
    if shown.cones or motions is None:
        cone = shown.cones[f] if shown.cones else None
        body += figures.averages(run, f + 1, cone=cone, settings=settings.figures)
    if shown.volumes is not None and shown.volumes.factor == f:
        body += motion_figures.volumes_along(
            shown.volumes, shown.view(f), settings=settings.motions
        )
    return body


def _eigenvalues(factor, settings: ReportSettings) -> str:
    listed = factor.eigenvalues[: settings.listed_eigenvalues]
    values = ", ".join(f"{value:.3g}" for value in listed)
    # How many there are tells how much of the factor was seen.
    left = len(factor.eigenvalues) - len(listed)
    more = f" and {left} more" if left else ""
    return f"Dimension {factor.dimension}; eigenvalues {values}{more}."


def _spectrum_and_angles(fit: ManifoldFactorizer, settings: ReportSettings) -> str:
    return panels(
        figures.spectrum(fit, settings=settings.figures),
        figures.angles(fit, settings=settings.figures),
    )


def evidence_section(record: dict, fit: ManifoldFactorizer) -> str:
    """Return the tests behind the verdict, and the leakage between factors."""
    tests = tables.tests_table(record, fit).as_html()
    return tests + tables.leakage_table(fit).as_html()


def diagnostics_section(record: dict, fit: ManifoldFactorizer, *, picture: str = "") -> str:
    """Return how well the computation went, and what else may explain the factors."""
    computation = tables.computation_table(fit).as_html()
    # The explorer has the tables only.
    if picture:
        computation = panels(picture, f'<div class="broad">{computation}</div>')
    components = tables.components_table(record).as_html()
    confounders = tables.confounders_table(record).as_html()
    return f'{computation}<div class="tables">{components}{confounders}</div>\n'


def reproduce_section(record: dict, fit: ManifoldFactorizer) -> str:
    """Return the command of the run, and what its result depends on."""
    command = record.get("reproduce")
    body = paragraph("The run has no record of its command; run.json has its arguments.")
    if command:
        # Into another folder: a run is never overwritten by itself.
        typed = f"{command} --out {shlex.quote(NEW_RUN)}"
        body = f"<pre><code>{escape(typed)}</code></pre>\n"
    conditions = tables.conditions_table(record).as_html()
    seconds = tables.seconds_table(fit).as_html()
    return f'{body}<div class="tables">{conditions}{seconds}</div>\n'


def panels(*parts: str) -> str:
    """Return pictures side by side, as many as the page is wide."""
    return f'<div class="panels">{"".join(parts)}</div>\n'
