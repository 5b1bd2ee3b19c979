"""A run as one page of HTML that needs nothing else: verdict, factors, evidence, diagnostics, choices, the command.

Every function but `write_report` gives a fragment of HTML.
"""

import shlex
from collections.abc import Sequence
from html import escape
from itertools import combinations
from pathlib import Path

import numpy as np

from manifactor._support.files import write_whole
from manifactor.estimators import ManifoldFactorizer
from manifactor.factoring.criteria import EvidenceSettings
from manifactor.runs.folder import read_run
from manifactor.runs.run import Run, open_run
from manifactor.views import figures
from manifactor.views.choices import choices
from manifactor.views.markup import contents, page, paragraph, section, table
from manifactor.views.words import (
    about_particles,
    evidence,
    input_name,
    verdict_sentence,
)

NAME = "report.html"
AGAIN = "again"  # the run folder that the page's command writes
SECTIONS = {
    "factors": "Factors",
    "evidence": "Evidence",
    "diagnostics": "Diagnostics",
    "choices": "What was chosen, and why",
    "reproduce": "Reproduce",
}
SHOWN = 6  # eigenvalues of a factor
STYLE = """
h1 { font-size: 1.15rem; font-weight: 600; color: var(--soft); }
.verdict { font-size: 2rem; line-height: 1.2; font-weight: 650; margin: .5rem 0 1.2rem; text-wrap: balance; }
.warning { background: var(--warn); border-left: .4rem solid var(--warn-line); padding: .6rem 1rem; font-weight: 600; }
.note { color: var(--soft); }
nav ol { padding-left: 1.2rem; columns: 2; }
.panels { display: grid; grid-template-columns: repeat(auto-fill, minmax(17rem, 1fr)); gap: 0 1.5rem; }
.panels > * { min-width: 0; }  /* else what scrolls inside would widen the page */
.panels figure { margin: 1rem 0; }
.broad { grid-column: span 2; }
.tables { display: flex; flex-wrap: wrap; gap: 0 3rem; align-items: start; }
.tables > * { max-width: 100%; }
svg { display: block; width: 100%; height: auto; margin-bottom: .4rem; }
.cloud image { filter: var(--cloud); }
.turned image { filter: var(--turned); }
figure .wide { margin: 0 0 .4rem; }
.broad svg { min-width: 28rem; }
.strip img { display: block; min-width: 46rem; background: #fff; border-radius: 4px; }
#choices td { white-space: normal; }
pre { background: var(--panel); padding: .8rem 1rem; white-space: pre-wrap; overflow-wrap: anywhere; }
@media (max-width: 40rem) { nav ol { columns: 1; } .verdict { font-size: 1.5rem; } .broad { grid-column: auto; }
  .panels { grid-template-columns: 1fr; } }
@media print { .panels { grid-template-columns: repeat(3, 1fr); } .strip img, .broad svg { min-width: 0; }
  nav { display: none; } h2 { margin-top: 1.5rem; } }
"""


def write_report(folder: Path, fit: ManifoldFactorizer | None = None) -> Path:
    """Write report.html into a run folder, whole or not at all; `fit` is the run's own, if it was read already."""
    text = report_page(open_run(folder), read_run(folder)[1] if fit is None else fit)
    write_whole(folder / NAME, lambda file: file.write(text.encode()))
    return folder / NAME


def report_page(run: Run, fit: ManifoldFactorizer) -> str:
    """The whole page."""
    record = run.record
    parts = {
        "factors": factors_section(run, fit),
        "evidence": evidence_section(fit, pictures=True),
        "diagnostics": diagnostics_section(record, fit, pictures=True),
        "choices": choices_table(record, fit),
        "reproduce": reproduce_section(record, fit),
    }
    body = verdict_section(record, fit, run.warnings) + contents(SECTIONS)
    body += "".join(
        section(name, title, parts[name]) for name, title in SECTIONS.items()
    )
    return page(f"{input_name(record)}: {verdict_sentence(fit)}", body, style=STYLE)


def verdict_section(
    record: dict, fit: ManifoldFactorizer, warnings: Sequence[str] = ()
) -> str:
    """What was found, first in one sentence, then why; what may be wrong; how many samples."""
    about = about_particles(record)
    warnings = [*(text for text in about if text.startswith("Warning: ")), *warnings]
    return (
        f"<h1>Factors of {escape(input_name(record))}</h1>\n"
        + paragraph(verdict_sentence(fit), kind="verdict")
        + "".join(paragraph(text, kind="warning") for text in warnings)
        + paragraph(evidence(fit))
        + paragraph(samples_sentence(record, fit))
        + "".join(
            paragraph(text)
            for text in about
            if text not in warnings and "were fitted" not in text
        )
    )


def samples_sentence(record: dict, fit: ManifoldFactorizer) -> str:
    """How many samples there are, and how many were fitted."""
    fitted = len(fit.spectrum_.weights)
    total = record.get("n_samples", fitted)
    return (
        f"{total:,} samples, all of them fitted."
        if fitted == total
        else f"{total:,} samples: {fitted:,} were fitted, the others placed beside them."
    )


def factors_section(run: Run, fit: ManifoldFactorizer) -> str:
    """Every factor with its pictures, then pairs of them."""
    body = "".join(_factor(run, fit, f) for f in range(len(fit.factors_)))
    lines = [
        f for f, factor in enumerate(fit.factors_) if factor.coordinate is not None
    ]
    if len(lines) < 2:
        return body
    pairs = "".join(
        figures.joint(fit, one, other) for one, other in combinations(lines, 2)
    )
    text = "Samples by their places on two factors; where the places are independent, rows and columns look alike."
    independence = f'<div class="panels">{pairs}{paragraph(text, kind="broad")}</div>'
    return body + section(
        "independence", "How independent they are", independence, level=3
    )


def _factor(run: Run, fit: ManifoldFactorizer, f: int) -> str:
    factor = fit.factors_[f]
    values = ", ".join(f"{value:.3g}" for value in factor.eigenvalues[:SHOWN])
    more = (
        f" and {len(factor.eigenvalues) - SHOWN} more"
        if len(factor.eigenvalues) > SHOWN
        else ""
    )
    text = f"Dimension {factor.dimension}; eigenvalues {values}{more}."
    pictures = [figures.embedding(fit, f)]
    if factor.coordinate is not None:
        pictures.append(figures.histogram(fit, f))
    if (
        len(fit.factors_) > 1 and (factor.confidence < 1).any()
    ):  # else there is nothing to doubt
        pictures.append(figures.confidence(fit, f))
    body = f'{paragraph(text)}<div class="panels">{"".join(pictures)}</div>\n'
    if factor.coordinate is not None:
        body += figures.averages(run, f + 1)
    return section(f"factor-{f + 1}", f"Factor {f + 1}: {factor.shape}", body, level=3)


def evidence_section(fit: ManifoldFactorizer, *, pictures: bool = False) -> str:
    """The numbers behind the verdict."""
    body = (
        f'<div class="panels">{figures.spectrum(fit)}{figures.angles(fit)}</div>\n'
        if pictures
        else ""
    )
    return body + tests_table(fit) + leakage_table(fit)


def tests_table(fit: ManifoldFactorizer) -> str:
    """What was measured, what a product needs, and what it means."""
    found, limits = fit.evidence_, EvidenceSettings()
    peeled = (
        fit.method == "gradients"
    )  # the other methods have bounds of their own, and say so in the reason
    leaking = np.nanmax(found.leakage) if len(found.leakage) > 1 else np.nan
    rows = (
        (
            "completeness",
            found.completeness,
            f"{limits.completeness:.2f} or more",
            "low functions that are pure or products",
        ),
        (
            "products",
            found.product,
            f"{limits.product:.2f} or more",
            "products of pure functions at the sum of eigenvalues",
        ),
        (
            "agreement",
            found.agreement,
            f"{limits.agreement:.2f} or more",
            "the same factors in half of the samples",
        ),
        (
            "leakage",
            leaking,
            f"{limits.leakage:.2f} or less",
            "what a place on one factor tells of another",
        ),
        (
            "signal",
            found.reliability,
            f"{limits.reliability:.2f} or more",
            "variance of the places that is no noise",
        ),
        (
            "dependence",
            found.dependence,
            "",
            "p-value of independent places; small where they are not",
        ),
        (
            "null",
            found.null,
            "",
            "noise, from half samples, of the number that the count of factors is read from",
        ),
    )
    shown = [
        (name, f"{v:.3f}", need if peeled else "", text)
        for name, v, need, text in rows
        if np.isfinite(v)
    ]
    return table(
        "Tests of a product",
        ("test", "value", "a product needs", "what it is"),
        shown,
        named=True,
    )


def leakage_table(fit: ManifoldFactorizer) -> str:
    """How much a place on each factor tells of every other; "" for one factor."""
    leakage = fit.evidence_.leakage
    if len(leakage) < 2:
        return ""
    names = [f"factor {i}" for i in range(1, len(leakage) + 1)]
    rows = [
        (name, *("" if np.isnan(v) else f"{v:.2f}" for v in row))
        for name, row in zip(names, leakage, strict=True)
    ]
    return table(
        "Leakage: R² with which a place on one factor (row) tells that on another",
        ("", *names),
        rows,
        named=True,
    )


def diagnostics_section(
    record: dict, fit: ManifoldFactorizer, *, pictures: bool = False
) -> str:
    """How well the computation went, and what else could explain the factors."""
    residuals = fit.spectrum_.residuals
    sizes = np.bincount(fit.components_)
    rows = [
        (
            "residuals of the functions",
            f"{np.median(residuals):.1e}, at most {residuals.max():.1e}",
        ),
        (
            "neighbours found",
            "as given"
            if np.isnan(fit.recall_)
            else f"{fit.recall_:.2%} of the true ones",
        ),
        ("outliers", f"{int(fit.outliers_.sum()):,} of {len(fit.outliers_):,}"),
        (
            "pieces of the neighbour graph",
            f"{len(sizes)}, the largest of {sizes.max():,} samples",
        ),
    ]
    computed = table("The computation", ("what", "value"), rows, named=True)
    if pictures:
        computed = f'<div class="panels">{figures.bandwidth(fit)}<div class="broad">{computed}</div></div>\n'
    return f'{computed}<div class="tables">{components_table(record)}{confounders_table(record)}</div>\n'


def components_table(record: dict) -> str:
    """Signal to noise of the principal components of images or volumes; "" where there are none."""
    components = record.get("components", {})
    pairs = zip(
        components.get("signal_to_noise", []),
        components.get("weights", []),
        strict=False,
    )
    rows = [
        (str(i), f"{ratio:.3g}", f"{weight:.2f}")
        for i, (ratio, weight) in enumerate(pairs, start=1)
    ]
    header = ("component", "signal to noise", "weight")
    return (
        table("Principal components of the images or volumes", header, rows, named=True)
        if rows
        else ""
    )


def confounders_table(record: dict) -> str:
    """How much of each factor is explained by what is known of the particles; "" where nothing is."""
    found = record.get("confounders", [])
    numbers = list(dict.fromkeys(c["factor"] for c in found))
    cells = {(c["name"], c["factor"]): f"{c['r2']:.2f} (p {c['p']:.2f})" for c in found}
    rows = [
        (name, *(cells.get((name, number), "") for number in numbers))
        for name in dict.fromkeys(c["name"] for c in found)
    ]
    header = (
        "known of the particles",
        *(f"factor {i}" if i else "the rest" for i in numbers),
    )
    return (
        table(
            "Confounders: R² with which they explain a factor", header, rows, named=True
        )
        if rows
        else ""
    )


def choices_table(record: dict, fit: ManifoldFactorizer) -> str:
    """What the run chose by itself."""
    return table(
        "All of these can be set",
        ("choice", "value", "why"),
        choices(record, fit),
        named=True,
    )


def reproduce_section(record: dict, fit: ManifoldFactorizer) -> str:
    """The command, and what its result depends on."""
    command = record.get("reproduce")
    body = (
        f"<pre><code>{escape(f'{command} --out {shlex.quote(AGAIN)}')}</code></pre>\n"
        if command
        else paragraph(
            "The run was written before commands were kept; run.json has its arguments."
        )
    )
    rows: list[Sequence[str]] = [("input", str(record.get("input", "unknown")))]
    rows += (
        [("input last changed", record["input_changed"])]
        if "input_changed" in record
        else []
    )
    rows += [("particles", record["particles"])] if "particles" in record else []
    rows += [("seed", str(record.get("seed", "unknown")))]
    rows += [(name, str(version)) for name, version in record["versions"].items()]
    depends = table("What the result depends on", ("what", "value"), rows, named=True)
    seconds = [(stage, f"{value:.2f}") for stage, value in fit.timings_.items()]
    spent = table(
        "Seconds of the fit, by stage", ("stage", "seconds"), seconds, named=True
    )
    return f'{body}<div class="tables">{depends}{spent}</div>\n'
