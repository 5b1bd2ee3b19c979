"""The two criteria: eigenvalue error against similarity, for all pairs."""

from dataclasses import asdict, dataclass

import numpy as np

from manifactor.scores import column_r2
from manifactor.views import plots
from studies.paper.cases import CASES, Case
from studies.paper.finding import Found, Job
from studies.paper.lab import Lab
from studies.paper.pairs import pair_scores
from studies.paper.panels import PanelSettings
from studies.paper.section import Picture, Section, Settings, Table

HEADER = ("function", "best pair", "similarity", "error", "second best", "one of each side")


@dataclass(frozen=True)
class Fig4Settings:
    """Settings of `fig4`."""

    case: str = "rectangle_z"
    # Two rows of three, as in the paper.
    n_panels: int = 6
    # A true product depends on both sides together and on neither alone. Functions that are blurred
    # by noise lie between the two bounds, and are not shown.
    most_alone_r2: float = 0.5
    least_together_r2: float = 0.8
    pure_r2: float = PanelSettings.pure_r2


@dataclass(frozen=True)
class BestPair:
    """The pair of lower functions that Algorithm 1 would take for function k."""

    k: int
    # (2,): the pair within delta whose product is most similar; None without one
    pair: np.ndarray | None = None
    similarity: float = 0.0  # of the pair; 0 without one
    error: float = 0.0  # of the pair; 0 without one
    second: float = 0.0  # similarity of the runner-up; 0 without one
    # Whether each function of the pair depends on a true factor of its own
    across_factors: bool = False


def fig4(settings: Settings, lab: Lab, *, recipe: Fig4Settings = Fig4Settings()) -> Section:
    """Return the paper's Figure 3."""
    job = Job(recipe.case, "published", settings.n, settings.seed)
    found = lab.find([job])[0]
    case = CASES[recipe.case]
    panels = [
        best_pair(found, case, k, recipe=recipe) for k in product_functions(found, recipe=recipe)
    ]
    caption = "The best pairs within delta. The error is in units of lambda/4."
    return Section(
        "The two criteria (the paper's Figure 3)",
        [_in_words(panels, case)],
        [Picture("fig4", _draw(found, case, panels), _caption(case, settings))],
        [Table(caption, HEADER, [_row(panel) for panel in panels])],
        {"panels": [asdict(panel) for panel in panels]},
    )


def product_functions(found: Found, *, recipe: Fig4Settings = Fig4Settings()) -> list[int]:
    """Return products of functions of both sides, evenly spread over the spectrum."""
    # Function 0 is constant, and depends on nothing.
    functions = found.spectrum.functions[:, 1:]
    # The better of both sides: a function of one side has a large R^2 there.
    alone = np.max([column_r2(true, functions) for true in found.truth], axis=0)
    together = column_r2(np.hstack(found.truth), functions)
    on_neither = alone < recipe.most_alone_r2
    on_both = together > recipe.least_together_r2
    products = 1 + np.flatnonzero(on_neither & on_both)
    # Functions 1 and 2 have no pair below them.
    products = products[products > 2]
    if not len(products):
        return []
    spread = np.linspace(0, len(products) - 1, recipe.n_panels).astype(int)
    # Fewer products than panels would be drawn twice.
    return np.unique(products[spread]).tolist()


def best_pair(
    found: Found, case: Case, k: int, *, recipe: Fig4Settings = Fig4Settings()
) -> BestPair:
    """Return the pair within delta whose product is most similar to function k."""
    scores = pair_scores(found.spectrum, k)
    inside = np.flatnonzero(scores.error < case.delta)
    if not len(inside):
        return BestPair(k)
    # Stable: of equal similarities the lowest pair counts, on every machine.
    order = inside[np.argsort(-scores.similarity[inside], kind="stable")]
    best = order[0]
    return BestPair(
        k,
        scores.pairs[best],
        scores.similarity[best],
        scores.error[best],
        scores.similarity[order[1]] if len(order) > 1 else 0.0,
        across_factors(found, scores.pairs[best], pure_r2=recipe.pure_r2),
    )


def across_factors(
    found: Found, pair: np.ndarray, *, pure_r2: float = PanelSettings.pure_r2
) -> bool:
    """Return whether each function depends on a true factor of its own."""
    functions = found.spectrum.functions[:, pair]
    r2 = np.array([column_r2(true, functions) for true in found.truth])
    both_pure = (r2.max(axis=0) >= pure_r2).all()
    one, other = r2.argmax(axis=0)
    return bool(both_pure and one != other)


def _in_words(panels: list[BestPair], case: Case) -> str:
    passed = sum(panel.similarity > case.gamma for panel in panels)
    right = sum(panel.across_factors for panel in panels)
    return (
        f"Of {len(panels)} true products, {passed} have a pair within delta whose "
        f"similarity exceeds gamma, and for {right} the best pair is one function of "
        "each side. As in the paper the best pair stands far out for low functions, "
        "and less so for high ones: there several functions, products with the noise's "
        "own function among them, have nearly the same eigenvalue, and a product is "
        "spread over them. The paper says that the best is an outlier in most cases; "
        "whether it is the right one it does not say."
    )


def _caption(case: Case, settings: Settings) -> str:
    return (
        f"Products of functions of both sides of the noisy rectangle ({settings.n:,} "
        f"samples, {case.published_settings}), known to be such from the truth, evenly "
        "spread over the spectrum: for all pairs of lower functions, similarity of "
        "their product, and how far their eigenvalues miss the sum. Dashed: gamma and "
        "delta. Triangle: the best pair within delta."
    )


def _row(panel: BestPair) -> list[str]:
    return [
        str(panel.k),
        _pair_words(panel, ", "),
        f"{panel.similarity:.3f}",
        f"{panel.error:.3f}",
        f"{panel.second:.3f}",
        "yes" if panel.across_factors else "no",
    ]


def _pair_words(panel: BestPair, between: str) -> str:
    return "none" if panel.pair is None else between.join(map(str, panel.pair))


def _draw(found: Found, case: Case, panels: list[BestPair]):
    figure = plots.new_figure(7.2, 3.6)
    axes = figure.subplots(2, 3).ravel()
    for ax, panel in zip(axes, panels, strict=False):
        _draw_panel(ax, found, case, panel)
    for ax in axes[len(panels) :]:
        plots.nothing(ax, "no more products")
    # Once for all panels: the axes are the same.
    figure.supxlabel("similarity", fontsize=8)
    figure.supylabel("error of the eigenvalue sum, in units of lambda/4", fontsize=8)
    return figure


def _draw_panel(ax, found: Found, case: Case, panel: BestPair) -> None:
    scores = pair_scores(found.spectrum, panel.k)
    # Rasterised: there are thousands of pairs.
    cloud = {"s": 2, "color": plots.GREY, "linewidths": 0, "rasterized": True}
    ax.scatter(scores.similarity, scores.error, **cloud)
    if panel.pair is not None:
        # Not clipped, as a similarity near 1 lies on the edge.
        triangle = {"color": plots.CATEGORIES[1], "markersize": 6, "clip_on": False}
        ax.plot(panel.similarity, panel.error, "^", zorder=3, **triangle)
    dashed = {"color": plots.CATEGORIES[0], "linestyle": "--", "linewidth": 0.8}
    ax.axvline(case.gamma, **dashed)
    ax.axhline(case.delta, **dashed)
    ax.set_title(f"function {panel.k}: best is {_pair_words(panel, ' x ')}")
    # Far above delta there are only pairs that nobody would take.
    ax.set(xlim=(0, 1), ylim=(0, 4 * case.delta))
