"""The report of a run: one self-contained page of HTML, made from `templates/report.html`.

It has the verdict, the factors, the evidence, diagnostics, choices, and the command that makes the
run again.
"""

from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

from manifactor._support.errors import extra
from manifactor._support.files import write_bytes
from manifactor.cryoem.all_views.shown import Shown
from manifactor.cryoem.all_views.volumes import open_motions
from manifactor.estimators import ManifoldFactorizer
from manifactor.runs.folder import read_run
from manifactor.runs.run import Run, open_run
from manifactor.views import figures, tables, words

REPORT_NAME = "report.html"


@cache
def templates() -> Any:
    """Return Jinja's environment of the package's templates, which escapes what it is given."""
    jinja2 = extra("jinja2")
    return jinja2.Environment(
        loader=jinja2.PackageLoader("manifactor.views"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def write_report(
    folder: Path,
    fit: ManifoldFactorizer | None = None,
    *,
    out: Path | None = None,
    shown: Shown | None = None,
) -> Path:
    """Write the page of a run, whole or not at all; return its path."""
    run = open_run(folder, some=True)
    # The whole page first: an error leaves the old report in place.
    page = report_page(run, fit or read_run(folder)[1], shown=shown)
    path = out or folder / REPORT_NAME
    # A name of a file may have bytes that are not text.
    write_bytes(path, page.encode(errors="backslashreplace"))
    return path


def write_movies(
    folder: Path, *, page: Path | None = None, shown: Shown | None = None
) -> list[Path]:
    """Write a movie along every interval and circle of a run beside its report."""
    run = open_run(folder, some=True)
    shown = shown or Shown(open_motions(run, read_run(folder)[1]))
    page = page or folder / REPORT_NAME
    written = []
    for f, place in enumerate(run.places):
        if place.topology == "other":
            continue
        if shown.motions is not None:
            movies = figures.movies(shown.motions, f, view=shown.view(f))
        else:
            movies = figures.averages_along(run, f + 1).movies
        for kind, content in movies.items():
            path = page.with_name(f"{page.stem}-factor{f + 1}{kind}")
            write_bytes(path, content)
            written.append(path)
    return written


def report_page(run: Run, fit: ManifoldFactorizer, *, shown: Shown | None = None) -> str:
    """Return the whole page."""
    record = run.record
    shown = shown or Shown(open_motions(run, fit))
    warnings = words.warnings(record)
    # Only these have a coordinate to draw against another.
    lines = [f for f, factor in enumerate(fit.factors_) if factor.coordinate is not None]
    page = templates().get_template("report.html")
    return page.render(
        name=words.input_name(record),
        verdict=words.verdict_sentence(record, fit),
        warnings=[*warnings, *run.warnings],
        introduction=[
            words.evidence(record, fit),
            words.samples_sentence(record, fit),
            *words.preparation_sentences(record),
            *words.all_views_sentences(record),
            *words.volume_sentences(shown),
            # Warnings stand above already.
            *([] if warnings else words.confounder_sentences(record)),
        ],
        factors=[_factor(run, fit, f, shown) for f in range(len(fit.factors_))],
        views=None if shown.motions is None else figures.particle_map(shown.motions),
        pairs=[figures.joint(fit, *pair) for pair in combinations(lines, 2)],
        spectrum=figures.spectrum(fit),
        angles=figures.angles(fit),
        bandwidth=figures.bandwidth(fit),
        tests=words.tests_sentence(record, fit),
        tables=tables.run_tables(record, fit),
        command=record.get("reproduce"),
    )


def _factor(run: Run, fit: ManifoldFactorizer, f: int, shown: Shown) -> dict[str, Any]:
    """Return what the page shows of a factor."""
    factor, motions = fit.factors_[f], shown.motions
    line = factor.coordinate is not None
    if motions is None or motions.expected:
        pictures = [figures.embedding(fit, f)]
    else:
        # Of all particles, not only of those fitted.
        pictures = [figures.deviations(run, f)]
    if line:
        pictures.append(figures.histogram(fit, f))
    if motions is not None:
        pictures.append(figures.deviation_map(motions, f))
    elif not line and figures.is_doubtful(fit, f):
        pictures.append(figures.confidence(fit, f))
    # How many eigenvalues there are tells how much of the factor was seen.
    listed = [f"{value:.3g}" for value in factor.eigenvalues[:6]]
    left = len(factor.eigenvalues) - len(listed)
    more = f" and {left} more" if left else ""
    return {
        "shape": factor.shape,
        "eigenvalues": f"Dimension {factor.dimension}; eigenvalues {', '.join(listed)}{more}.",
        "pictures": pictures,
        "strips": _strips(run, f, shown) if line else [],
    }


def _strips(run: Run, f: int, shown: Shown) -> list[figures.PageFigure | str | None]:
    """Return images along a factor: of the molecule, of particles, of given volumes."""
    strips: list[figures.PageFigure | str | None] = []
    view = shown.view(f)
    if shown.motions is not None:
        wanted = shown.wanted.view is not None
        strips.append(figures.images_along(shown.motions, f, view=view, wanted=wanted))
    # Images of particles themselves stand beside what was computed from all of them.
    if shown.cones or shown.motions is None:
        strips.append(figures.averages(run, f + 1, cone=shown.cones[f] if shown.cones else None))
    if shown.volumes is not None and shown.volumes.factor == f:
        strips.append(figures.volumes_along(shown.volumes, view))
    return strips
