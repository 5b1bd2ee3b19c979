"""The cube: two rounds of two factors, three factors at once, the default method."""

import warnings
from dataclasses import dataclass

import numpy as np

from manifactor._support.threads import one_blas_thread
from manifactor.scores import column_r2
from manifactor.views import plots
from studies.paper.cases import CASES
from studies.paper.finding import Found, found_by, published
from studies.paper.lab import Lab
from studies.paper.panels import PanelSettings
from studies.paper.section import Picture, Section, Settings, Table

# Labels of the columns; the first is 1 + sqrt(pi).
CUBE_SIDES = ("2.77", "1.5", "7")


@dataclass(frozen=True)
class Fig7Settings:
    """Settings of `fig7`."""

    # More rows than this of a matrix with numbers in its cells cannot be read.
    most_rows: int = 18
    pure_r2: float = PanelSettings.pure_r2


def fig7(settings: Settings, lab: Lab, *, recipe: Fig7Settings = Fig7Settings()) -> Section:
    """Return the cube of the paper's code."""
    both = lab.compare(["cube"], settings)["cube"]
    results = {
        **_in_two_rounds(settings),
        "three at once (Max-k-Cut)": both["published"],
        "default": both["default"],
    }
    shares = {name: side_shares(found) for name, found in results.items()}
    numbers = {
        name: {"function_r2": shares[name], **found.numbers} for name, found in results.items()
    }
    figure = _draw(shares, recipe)
    return Section(
        "Cube: three factors (from the paper's code)",
        [WHY],
        [Picture("fig7", figure, _caption(settings, recipe))],
        [_table(results, shares, recipe)],
        numbers,
    )


WHY = (
    "Two factors at a time, as published: the first round has to put the functions of "
    "three sides into two groups; the second, with the first group left out, divides "
    "what is left, if anything is. Functions that no side explains are products that "
    "got in: they are no single product of two lower functions to within gamma, so "
    "nothing marks them as products, and they serve as parts. Three groups at once "
    "ask for products of up to three functions and have the same impurities. The "
    "default keeps functions only that are pure."
)


def _in_two_rounds(settings: Settings) -> dict[str, Found]:
    """Find two factors, then two more among the functions that the first has not.

    There is no second round where the first found one factor only.
    """
    case = CASES["cube"]
    # The warning that no product is left is an answer here.
    with one_blas_thread(), warnings.catch_warnings(action="ignore"):
        data = case.draw(settings.n, settings.seed)
        fit = published(case, data, settings.seed, n_factors=2)
        first = found_by(fit, data)
        if len(first.factors) < 2:
            return {"peeling, round 1": first}
        # All functions that the first factor is made of.
        taken = np.flatnonzero(fit.factorization_.coefficients[0].any(axis=1)).tolist()
        fit = published(case, data, settings.seed, n_factors=2, exclude=taken)
        second = found_by(fit, data)
    return {"peeling, round 1": first, "peeling, round 2": second}


def side_shares(found: Found) -> list[np.ndarray]:
    """Return R^2 of each factor's functions on the true sides, (n_functions, 3)."""
    return [_on_each_side(found, factor.functions) for factor in found.factors]


def _on_each_side(found: Found, functions: np.ndarray) -> np.ndarray:
    return np.column_stack([column_r2(true, functions) for true in found.fitted_truth])


def pure_share(shares: list[np.ndarray], *, pure_r2: float = PanelSettings.pure_r2) -> float:
    """Return the share of the functions that one side alone explains."""
    return float((np.vstack(shares).max(axis=1) >= pure_r2).mean())


def _table(
    results: dict[str, Found], shares: dict[str, list[np.ndarray]], recipe: Fig7Settings
) -> Table:
    caption = "What each way finds; a function is pure if one side explains at least .9 of it."
    header = ["way", "factors", "functions of each", "of them pure", "verdict"]
    rows = []
    for name, found in results.items():
        sizes = [str(len(factor.eigenvalues)) for factor in found.factors]
        pure = pure_share(shares[name], pure_r2=recipe.pure_r2)
        number = str(len(found.factors))
        verdict = found.evidence.verdict
        rows.append([name, number, " + ".join(sizes), f"{pure:.0%}", verdict])
    return Table(caption, header, rows)


def _caption(settings: Settings, recipe: Fig7Settings) -> str:
    return (
        f"Cube with sides 1 + sqrt(pi), 1.5 and 7, {settings.n:,} samples, "
        f"{CASES['cube'].published_settings}. Rows: functions of each factor found, "
        "the lowest first, lines between factors (of more than "
        f"{recipe.most_rows} the first of each factor). Columns: the true sides. Each "
        "cell is the R^2 with which that side alone explains the function: one dark "
        "cell in each row, the same within a factor, is right."
    )


def _draw(shares: dict[str, list[np.ndarray]], recipe: Fig7Settings):
    figure = plots.new_figure(7.2, 4.2)
    axes = figure.subplots(1, len(shares))
    for ax, (name, blocks) in zip(axes, shares.items(), strict=True):
        shown = blocks
        if sum(map(len, blocks)) > recipe.most_rows:
            # The same number of rows for every factor, so that none disappears.
            shown = [block[: recipe.most_rows // len(blocks)] for block in blocks]
        sizes = [len(block) for block in shown]
        plots.matrix(ax, np.vstack(shown), groups=sizes, numbers=True)
        ax.set_xticks(range(len(CUBE_SIDES)), CUBE_SIDES)
        ax.set(title=name, xlabel="true side")
    return figure
