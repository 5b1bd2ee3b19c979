"""A run in words."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill

from manifactor.estimators import ManifoldFactorizer
from manifactor.factoring.factor import Factor

WIDTH = 100  # characters of a line of prose
NUMBERS = ("no", "one", "two", "three", "four", "five", "six")


def report_text(record: dict, fit: ManifoldFactorizer) -> str:
    """All that is known of a run: verdict, factors, diagnostics, what was chosen, seconds, versions."""
    lines = [
        f"{record.get('command', 'run')} of {record.get('input', 'unknown input')}",
        "",
        summary(fit),
        *about_particles(record),
        *_components(record),
        *_leakage(fit),
        *_confounders(record),
        "",
        "Chosen:",
        f"  samples      {len(fit.spectrum_.weights)}, intrinsic dimension {fit.dimension_}",
        f"  preparation  {fit.preparation_.reason if fit.preparation_ else 'none needed'}",
        f"  outliers     {int(fit.outliers_.sum())}",
        f"  neighbours   {fit.n_neighbors_} ({fit.neighbors_}, {fit.recall_:.1%} of the true ones)",
        f"  bandwidth    {fit.bandwidth_:.4g}",
        f"  functions    {fit.n_functions_} ({fit.solver_}, residuals up to {fit.spectrum_.residuals.max():.1e})",
        f"  seed         {record.get('seed')}",
        "Seconds:",
        *(f"  {stage:<12} {seconds:.2f}" for stage, seconds in fit.timings_.items()),
        "Versions:",
        *(
            f"  {name:<12} {version}"
            for name, version in record.get("versions", {}).items()
        ),
    ]
    return "\n".join(lines) + "\n"


def summary(fit: ManifoldFactorizer) -> str:
    """Verdict and factors in words."""
    lines = [fill(f"Verdict: {fit.verdict_}. {evidence(fit)}", WIDTH)]
    lines += [
        f"Factor {i}: {factor}." for i, factor in enumerate(fit.factors_, start=1)
    ]
    return "\n".join(lines)


def evidence(fit: ManifoldFactorizer) -> str:
    """Why the verdict is what it is, for those who type commands."""
    return str(fit.evidence_).replace("method='deflation'", "--method deflation")


def input_name(record: dict) -> str:
    """What was fitted: the input's name, and the view where one was picked."""
    name = Path(record.get("input", "unknown input")).name
    view = record.get("view")
    return f"{name}, seen from {view[0]:g}, {view[1]:g}" if view else name


def verdict_sentence(fit: ManifoldFactorizer) -> str:
    """The verdict as one sentence, with the factors' shapes."""
    count = len(fit.factors_)
    shapes = shapes_in_words(fit.factors_)
    if fit.verdict_ == "product":
        return f"A product of {_number(count)} independent factors: {shapes}."
    if fit.verdict_ == "partial":
        few = (
            "One factor was"
            if count == 1
            else f"{_number(count).capitalize()} factors were"
        )
        return f"{few} found, {shapes}, but not every test of a product was passed."
    return f"No product was found; the data are taken as one factor, {shapes}."


def shapes_in_words(factors: Sequence[Factor]) -> str:
    """The factors' shapes, the same ones counted: a circle and two intervals."""
    counts = Counter(factor.shape for factor in factors)
    shapes = [
        shape if k == 1 else f"{_number(k)} {shape.partition(' ')[2]}s"
        for shape, k in counts.items()
    ]
    return (
        shapes[0] if len(shapes) == 1 else f"{', '.join(shapes[:-1])} and {shapes[-1]}"
    )


def _number(count: int) -> str:
    return NUMBERS[count] if count < len(NUMBERS) else str(count)


def about_particles(record: dict) -> list[str]:
    """What run.json says of images and particles, in words."""
    lines = []
    if "components" in record:
        lines.append(f"Samples: {record['components']['text']}.")
    if record.get("n_samples", 0) > record.get("n_fitted", float("inf")):
        lines.append(
            f"{record['n_fitted']} of {record['n_samples']} samples were fitted, the others placed."
        )
    meanings = [
        confounder["meaning"]
        for confounder in record.get("confounders", [])
        if confounder["meaning"]
    ]
    lines += [f"Warning: {meaning}." for meaning in meanings]
    if record.get("confounders") and not meanings:
        names = ", ".join(
            dict.fromkeys(confounder["name"] for confounder in record["confounders"])
        )
        lines.append(
            f"None of what is known of the particles ({names}) explains a factor."
        )
    return lines


def _components(record: dict) -> list[str]:
    components = record.get("components", {})
    if "signal_to_noise" not in components:
        return []
    pairs = zip(
        components["signal_to_noise"], components.get("weights", []), strict=True
    )
    rows = [
        f"  {i:<12} {ratio:<10.3g} {weight:.2f}"
        for i, (ratio, weight) in enumerate(pairs, start=1)
    ]
    return ["", "Principal components (signal to noise, weight):", *rows]


def _leakage(fit: ManifoldFactorizer) -> list[str]:
    leakage = fit.evidence_.leakage
    if len(leakage) < 2:
        return []
    cells = [
        " ".join("   -" if value != value else f"{value:.2f}" for value in row)
        for row in leakage
    ]
    rows = [f"  factor {i:<5} {row}" for i, row in enumerate(cells, start=1)]
    return [
        "",
        "What a place on one factor (row) tells of another (column), R^2:",
        *rows,
    ]


def _confounders(record: dict) -> list[str]:
    found = record.get("confounders", [])
    if not found:
        return []
    rows = [
        f"  {name:<15} "
        + "  ".join(f"{c['r2']:.2f} ({c['p']:.2f})" for c in found if c["name"] == name)
        for name in dict.fromkeys(c["name"] for c in found)
    ]
    numbers = dict.fromkeys(c["factor"] for c in found)
    header = " " * 18 + "  ".join(
        f"factor {i}   " if i else "the rest" for i in numbers
    )
    return [
        "",
        "What is known of the particles, and how much of each factor it explains (R^2, p-value):",
        header,
        *rows,
    ]
