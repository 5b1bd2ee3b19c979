"""The two criteria: eigenvalue error against similarity, for all pairs."""

import numpy as np

from manifactor.scores import column_r2
from manifactor.studies.paper.cases import CASES, Case
from manifactor.studies.paper.lab import Found, Job, Lab
from manifactor.studies.paper.pairs import pair_scores
from manifactor.studies.paper.panels import PURE
from manifactor.studies.paper.section import Picture, Section, Settings, Table
from manifactor.views import plots

CASE = "rectangle_z"
PANELS = 6
ALONE, TOGETHER = (
    0.5,
    0.8,
)  # most R^2 on one side, least on both together, of a function that is a product
HEADER = (
    "function",
    "best pair",
    "similarity",
    "error",
    "second best",
    "one of each side",
)


def fig4(settings: Settings, lab: Lab) -> Section:
    """The paper's Figure 3."""
    found = lab.find([Job(CASE, "published", settings.n, settings.seed)])[0]
    case = CASES[CASE]
    panels = [best_pair(found, case, k) for k in product_functions(found, PANELS)]
    rows = [_row(panel) for panel in panels]
    return Section(
        "The two criteria (the paper's Figure 3)",
        [_in_words(panels, case)],
        [Picture("fig4", _draw(found, case, panels), _caption(case, settings))],
        [
            Table(
                "The best pairs within delta. The error is in units of lambda/4.",
                HEADER,
                rows,
            )
        ],
        {"panels": panels},
    )


def product_functions(found: Found, count: int) -> list[int]:
    """Functions of both sides together and of neither alone, evenly spread from the lowest to the highest."""
    functions = found.spectrum.functions[:, 1:]
    alone = np.max([column_r2(true, functions) for true in found.truth], axis=0)
    together = column_r2(np.hstack(found.truth), functions)
    products = 1 + np.flatnonzero((alone < ALONE) & (together > TOGETHER))
    products = products[products > 2]  # below, there is no pair
    return (
        np.unique(
            products[np.linspace(0, len(products) - 1, count).astype(int)]
        ).tolist()
        if len(products)
        else []
    )


def best_pair(found: Found, case: Case, k: int) -> dict:
    """The pair of lower functions within delta whose product is most similar to function k, and the runner-up."""
    similarity, error, pairs = pair_scores(found.spectrum, k)
    order = np.argsort(np.where(error < case.delta, -similarity, 1.0), kind="stable")
    order = order[: (error < case.delta).sum()]
    best = order[0] if len(order) else None
    return {
        "k": k,
        "pair": None if best is None else pairs[best],
        "similarity": 0.0 if best is None else similarity[best],
        "error": 0.0 if best is None else error[best],
        "second": similarity[order[1]] if len(order) > 1 else 0.0,
        "across_factors": best is not None and across_factors(found, pairs[best]),
    }


def across_factors(found: Found, pair: np.ndarray) -> bool:
    """Whether the one function depends on one true factor alone and the other on another."""
    r2 = np.array(
        [column_r2(true, found.spectrum.functions[:, pair]) for true in found.truth]
    )
    return bool(
        (r2.max(axis=0) >= PURE).all() and r2[:, 0].argmax() != r2[:, 1].argmax()
    )


def _in_words(panels: list[dict], case: Case) -> str:
    passed = sum(panel["similarity"] > case.gamma for panel in panels)
    right = sum(panel["across_factors"] for panel in panels)
    return (
        f"Of {len(panels)} true products, {passed} have a pair within delta whose "
        f"similarity exceeds gamma, and for {right} the best pair is one function of "
        "each side. As in the paper the best pair stands far out for low functions, "
        "and less so for high ones: there several functions, products with the "
        "noise's own function among them, have nearly the same eigenvalue, and a "
        "product is spread over them. The paper says that the best is an outlier in "
        "most cases; whether it is the right one it does not say."
    )


def _caption(case: Case, settings: Settings) -> str:
    return (
        f"Products of functions of both sides of the noisy rectangle ({settings.n:,} "
        f"samples, {case.published_settings}), known to be such from the truth, evenly "
        "spread over the spectrum: for all pairs of lower functions, similarity of "
        "their product, and how far their eigenvalues miss the sum. Dashed: gamma and "
        "delta. Triangle: the best pair within delta."
    )


def _row(panel: dict) -> list[str]:
    numbers = [f"{panel[key]:.3f}" for key in ("similarity", "error", "second")]
    pair = "none" if panel["pair"] is None else ", ".join(map(str, panel["pair"]))
    return [str(panel["k"]), pair, *numbers, "yes" if panel["across_factors"] else "no"]


def _draw(found: Found, case: Case, panels: list[dict]):
    figure = plots.new_figure(7.2, 3.6)
    axes = figure.subplots(2, 3).ravel()
    for ax, panel in zip(axes, panels, strict=False):
        similarity, error, _ = pair_scores(found.spectrum, panel["k"])
        ax.scatter(
            similarity, error, s=2, color=plots.GREY, linewidths=0, rasterized=True
        )
        if panel["pair"] is not None:
            best = panel["similarity"], panel["error"]
            ax.plot(
                *best,
                "^",
                color=plots.CATEGORIES[1],
                markersize=6,
                clip_on=False,
                zorder=3,
            )
        ax.axvline(case.gamma, color=plots.CATEGORIES[0], linestyle="--", linewidth=0.8)
        ax.axhline(case.delta, color=plots.CATEGORIES[0], linestyle="--", linewidth=0.8)
        ax.set_title(
            f"function {panel['k']}: best is {_row(panel)[1].replace(', ', ' x ')}"
        )
        ax.set(xlim=(0, 1), ylim=(0, 4 * case.delta))
    for ax in axes[len(panels) :]:
        plots.nothing(ax, "no more products")
    figure.supxlabel("similarity", fontsize=8)
    figure.supylabel("error of the eigenvalue sum, in units of lambda/4", fontsize=8)
    return figure
