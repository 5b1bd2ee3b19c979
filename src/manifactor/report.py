"""A run in words."""

from pathlib import Path
from textwrap import fill

from manifactor.archive import read_run, write_whole
from manifactor.estimators import ManifoldFactorizer

WIDTH = 100  # characters of a line of prose


def write_report(folder: Path) -> str:
    """The text of a run, which is also kept in its folder."""
    record, fit = read_run(folder)
    text = report_text(record, fit)
    write_whole(folder / "report.txt", lambda file: file.write(text.encode()))
    return text


def report_text(record: dict, fit: ManifoldFactorizer) -> str:
    """All that is known of a run: verdict, factors, diagnostics, what was chosen, seconds, versions."""
    lines = [
        f"{record.get('command', 'run')} of {record.get('input', 'unknown input')}",
        "",
        summary(fit),
        *about_particles(record),
        *_components(record),
        *_leakage(record),
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
        *(f"  {name:<12} {version}" for name, version in record.get("versions", {}).items()),
    ]
    return "\n".join(lines) + "\n"


def summary(fit: ManifoldFactorizer) -> str:
    """Verdict and factors in words."""
    evidence = str(fit.evidence_).replace("method='deflation'", "--method deflation")
    lines = [fill(f"Verdict: {fit.verdict_}. {evidence}", WIDTH)]
    lines += [f"Factor {i}: {factor}." for i, factor in enumerate(fit.factors_, start=1)]
    return "\n".join(lines)


def about_particles(record: dict) -> list[str]:
    """What run.json says of images and particles, in words."""
    lines = []
    if "components" in record:
        lines.append(f"Samples: {record['components']['text']}.")
    if record.get("n_samples", 0) > record.get("n_fitted", 0):
        lines.append(f"{record['n_fitted']} of {record['n_samples']} samples were fitted, the others placed.")
    meanings = [confounder["meaning"] for confounder in record.get("confounders", []) if confounder["meaning"]]
    lines += [f"Warning: {meaning}." for meaning in meanings]
    if record.get("confounders") and not meanings:
        names = ", ".join(dict.fromkeys(confounder["name"] for confounder in record["confounders"]))
        lines.append(f"None of what is known of the particles ({names}) explains a factor.")
    return lines


def _components(record: dict) -> list[str]:
    components = record.get("components", {})
    if "signal_to_noise" not in components:
        return []
    pairs = zip(components["signal_to_noise"], components["weights"], strict=True)
    rows = [f"  {i:<12} {ratio:<10.3g} {weight:.2f}" for i, (ratio, weight) in enumerate(pairs, start=1)]
    return ["", "Principal components (signal to noise, weight):", *rows]


def _leakage(record: dict) -> list[str]:
    leakage = record.get("leakage", [])
    if len(leakage) < 2:
        return []
    cells = [" ".join("   -" if value is None else f"{value:.2f}" for value in row) for row in leakage]
    rows = [f"  factor {i:<5} {row}" for i, row in enumerate(cells, start=1)]
    return ["", "What a place on one factor (row) tells of another (column), R^2:", *rows]


def _confounders(record: dict) -> list[str]:
    found = record.get("confounders", [])
    if not found:
        return []
    rows = [
        f"  {name:<15} " + "  ".join(f"{c['r2']:.2f} ({c['p']:.2f})" for c in found if c["name"] == name)
        for name in dict.fromkeys(c["name"] for c in found)
    ]
    numbers = dict.fromkeys(c["factor"] for c in found)
    header = " " * 18 + "  ".join(f"factor {i}   " if i else "the rest" for i in numbers)
    return [
        "",
        "What is known of the particles, and how much of each factor it explains (R^2, p-value):",
        header,
        *rows,
    ]
