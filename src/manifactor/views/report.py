"""The report of a run: one self-contained page of HTML, made from `templates/report.html`."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from manifactor._support.errors import extra
from manifactor._support.files import hold, write_bytes
from manifactor.estimators import ManifoldFactorizer
from manifactor.factors.loadings import Loadings
from manifactor.runs.folder import factor_names, read_run
from manifactor.runs.places import torus_angles
from manifactor.runs.run import Run, open_run
from manifactor.views import figures, words
from manifactor.views.sections import open_additions

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
    shown: Sequence[Any] | None = None,
) -> Path:
    """Write the page of a run, whole or not at all; return its path."""
    # The whole page first: an error leaves the old report in place.
    page = report_page(open_run(folder, some=True), fit or read_run(folder)[1], shown=shown)
    path = out or folder / REPORT_NAME
    # A name of a file may have bytes that are not text.
    write_bytes(path, page.encode(errors="backslashreplace"))
    return path


def write_movies(
    folder: Path, *, page: Path | None = None, shown: Sequence[Any] | None = None
) -> list[Path]:
    """Write a movie along every interval and circle of a run beside its report."""
    run = open_run(folder, some=True)
    shown = open_additions(run, read_run(folder)[1]) if shown is None else shown
    page = page or folder / REPORT_NAME
    written = []
    for f, place in enumerate(run.places):
        lines = shown if place.topology != "other" else ()
        for kind, content in (movie for each in lines for movie in each.movies(f).items()):
            path = page.with_name(f"{page.stem}-factor{f + 1}{kind}")
            with hold(path):
                write_bytes(path, content)
            written.append(path)
    return written


def report_page(run: Run, fit: ManifoldFactorizer, *, shown: Sequence[Any] | None = None) -> str:
    """Return the whole page."""
    shown = open_additions(run, fit) if shown is None else shown
    sections = words.describe(run.record, fit)
    # Confounders that are warnings stand above already.
    about = ("samples", "preparation", "findings")
    known = [] if sections["warnings"].sentences else sections["properties"].sentences
    said = [text for each in shown for text in each.sentences()]
    loadings = _loadings(run, fit)
    parts = [
        *([] if loadings is None else [figures.loadings(fit, loadings)]),
        *(section for each in shown for section in each.sections()),
        figures.independence(fit),
        figures.separation(fit),
    ]
    return (
        templates()
        .get_template("report.html")
        .render(
            name=words.input_name(run.record),
            about=sections,
            warnings=[*sections["warnings"].sentences, *run.warnings],
            introduction=[*words.sentences(sections, *about), *said, *known],
            factors=[_factor(run, fit, f, shown, loadings) for f in range(len(fit.factors_))],
            parts=[part for part in parts if part.figures],
            evidence=[figures.spectrum(fit), *figures.angles(fit)],
            bandwidth=figures.bandwidth(fit),
            command=run.record.get("reproduce"),
        )
    )


def _factor(
    run: Run, fit: ManifoldFactorizer, f: int, shown: Sequence[Any], loadings: Loadings | None
) -> dict[str, Any]:
    """Return what the page shows of a factor."""
    factor, place = fit.factors_[f], run.places[f]
    line = factor.coordinate is not None
    instead = [figure for each in shown if (figure := each.samples(f)) is not None]
    pictures = instead or [figures.embedding(fit, f)]
    if line:
        pictures.append(figures.histogram(fit, f))
        if place.deviation is not None:
            pictures.append(figures.free_energy(place, f))
    if torus_angles(fit) is not None:
        pictures.append(figures.torus(fit))
    added = [figure for each in shown for figure in each.figures(f)]
    if not added and not line and figures.is_doubtful(fit, f):
        added = [figures.confidence(fit, f)]
    strips = [strip for each in shown if line for strip in each.strips(f)]
    lead = next((strip for strip in strips if strip.film), None)
    if lead is None and line and loadings is not None and not fit.image_shape_:
        lead = figures.curves(loadings, f)
    # How many eigenvalues there are tells how much of the factor was seen.
    listed = ", ".join(f"{value:.3g}" for value in factor.eigenvalues[:6])
    left = len(factor.eigenvalues[6:])
    more = f" and {left} more" if left else ""
    return {
        "name": factor_names(run.record)[f],
        "shape": factor.shape,
        "lead": lead,
        "eigenvalues": f"Dimension {factor.dimension}; eigenvalues {listed}{more}.",
        "probability": words.factor_probability(run.record, fit, f),
        "pictures": [*pictures, *added],
        "strips": strips,
    }


def _loadings(run: Run, fit: ManifoldFactorizer) -> Loadings | None:
    """Return what each factor moves; None for particles, distances and thousands of columns."""
    if fit.diffusion_.points is None or "components" in run.record or fit.n_features_in_ > 4096:
        return None
    try:
        names = run.column_names
    except (ValueError, OSError, KeyError):  # the file of a table without names is gone
        names = []
    return fit.loadings(column_names=names if len(names) == fit.n_features_in_ else None)
