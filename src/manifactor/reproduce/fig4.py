"""The two criteria: eigenvalue error against similarity, for all pairs."""

import numpy as np

from manifactor import plots
from manifactor.reproduce.cases import CASES, PAPER_UNIT, Case
from manifactor.reproduce.lab import Found, Job, Lab
from manifactor.reproduce.section import Picture, Section, Settings, Table
from manifactor.scores import column_r2
from manifactor.spectral.spectrum import Spectrum

CASE = "rectangle_z"
PANELS = 6
HEADER = ("function", "best pair", "similarity", "error", "second best", "of different sides")


def fig4(settings: Settings, lab: Lab) -> Section:
    """The paper's Figure 3."""
    found = lab.find([Job(CASE, "published", settings.n, settings.seed)])[0]
    case = CASES[CASE]
    panels = [best_pair(found, case, k) for k in product_functions(found, PANELS)]
    good = sum(panel["across_factors"] for panel in panels)
    caption = (
        f"Six product functions of the noisy rectangle ({settings.n:,} samples, {case.published_settings}), evenly "
        "spread over the spectrum: for all pairs of lower functions, similarity of their product, and how far "
        "their eigenvalues miss the sum. Dashed: gamma and delta. Triangle: the best pair within delta."
    )
    return Section(
        "The two criteria (the paper's Figure 3)",
        [
            "As in the paper the best pair stands far out for low functions, and less so for high ones, where "
            f"several functions have nearly the same eigenvalue and a product is spread over them. In {good} of "
            f"{len(panels)} panels it is a pair of functions of different sides; in the others one of the two is a "
            "product itself.",
        ],
        [Picture("fig4", _draw(found, case, panels), caption)],
        [Table("The best pairs. The error is in units of lambda/4.", HEADER, [_row(panel) for panel in panels])],
        {"panels": panels},
    )


def best_pair(found: Found, case: Case, k: int) -> dict:
    """The pair of lower functions within delta whose product is most similar to function k, and the runner-up."""
    similarity, error, pairs = pair_scores(found.spectrum, k)
    allowed = np.where(error < case.delta, similarity, -1.0)
    best, second = np.argsort(-allowed, kind="stable")[:2]
    return {
        "k": k,
        "pair": pairs[best],
        "similarity": similarity[best],
        "error": error[best],
        "second": max(0.0, allowed[second]),
        "across_factors": across_factors(found, pairs[best]),
    }


def _row(panel: dict) -> list[str]:
    numbers = [f"{panel[key]:.3f}" for key in ("similarity", "error", "second")]
    pair = ", ".join(map(str, panel["pair"]))
    return [str(panel["k"]), pair, *numbers, "yes" if panel["across_factors"] else "no"]


def product_functions(found: Found, count: int) -> list[int]:
    """Functions that no factor holds, evenly spread from the lowest to the highest."""
    pure = np.unique([k for factor in found.factors for k in np.flatnonzero(factor.coefficients.any(axis=1))])
    others = np.setdiff1d(np.arange(3, len(found.spectrum.eigenvalues)), pure)
    return others[np.linspace(0, len(others) - 1, count + 1).astype(int)[:-1]].tolist()


def pair_scores(spectrum: Spectrum, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of all pairs i < j < k: similarity of their product with function k, eigenvalue error (lambda/4), the pairs."""
    lower = spectrum.functions[:, 1:k]
    weights = spectrum.weights[:, None]
    inner = (lower * (weights * spectrum.functions[:, [k]])).T @ lower
    norms = np.sqrt((lower**2 * weights).T @ lower**2)
    i, j = np.triu_indices(k - 1, 1)
    error = np.abs(spectrum.eigenvalues[1 + i] + spectrum.eigenvalues[1 + j] - spectrum.eigenvalues[k]) / PAPER_UNIT
    return np.abs(inner[i, j]) / norms[i, j], error, np.column_stack([1 + i, 1 + j])


def across_factors(found: Found, pair: np.ndarray) -> bool:
    """Whether two functions are explained best by different true factors."""
    functions = found.spectrum.functions[:, pair]
    return len({int(np.argmax(column)) for column in np.array([column_r2(t, functions) for t in found.truth]).T}) == 2


def _draw(found: Found, case: Case, panels: list[dict]):
    figure = plots.new_figure(7.2, 3.6)
    for ax, panel in zip(figure.subplots(2, 3).flat, panels, strict=True):
        similarity, error, _ = pair_scores(found.spectrum, panel["k"])
        ax.scatter(similarity, error, s=2, color=plots.GREY, linewidths=0, rasterized=True)
        best = panel["similarity"], panel["error"]
        ax.plot(*best, "^", color=plots.CATEGORIES[1], markersize=6, clip_on=False, zorder=3)
        ax.axvline(case.gamma, color=plots.CATEGORIES[0], linestyle="--", linewidth=0.8)
        ax.axhline(case.delta, color=plots.CATEGORIES[0], linestyle="--", linewidth=0.8)
        ax.set_title("function {}: best is {} x {}".format(panel["k"], *panel["pair"]))
        ax.set(xlim=(0, 1), ylim=(0, max(4 * case.delta, 1.2 * panel["error"])))
    figure.supxlabel("similarity", fontsize=8)
    figure.supylabel("error of the eigenvalue sum, in units of lambda/4", fontsize=8)
    return figure
