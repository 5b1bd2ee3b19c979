"""The cube: two rounds of peeling, three factors at once, and the default method."""

import warnings

import numpy as np

from manifactor import plots
from manifactor.reproduce.cases import CASES, Data
from manifactor.reproduce.lab import Found, Job, Lab, found_by, published
from manifactor.reproduce.section import Picture, Section, Settings, Table
from manifactor.scores import column_r2
from manifactor.threads import one_blas_thread

SIDES = ("2.77", "1.5", "7")
MOST_ROWS = 16  # functions shown of each result


def fig7(settings: Settings, lab: Lab) -> Section:
    """The cube of the paper's code."""
    case = CASES["cube"]
    at_once, ours = lab.find([Job("cube", method, settings.n, settings.seed) for method in ("published", "default")])
    with one_blas_thread(), warnings.catch_warnings(action="ignore"):  # no product left is an answer, too
        data = case.draw(settings.n, settings.seed)
        first = found_by(published(case, data, settings.seed, n_factors=2), data)
        rounds = [first, _second_round(first, data, settings.seed)]
    results = {"peeling, round 1": rounds[0], "peeling, round 2": rounds[1]}
    results |= {"three at once (Max-k-Cut)": at_once, "default": ours}
    figure, shares = _draw(results)
    rows = [
        [name, f"{len(found.factors)}", _sizes(found), f"{_pure(shares[name]):.0%}", found.evidence.verdict]
        for name, found in results.items()
    ]
    caption = (
        f"Cube with sides 1 + sqrt(pi), 1.5 and 7, {settings.n:,} samples, {case.published_settings}. Rows: "
        "functions of each factor found, lines between factors; columns: the true sides. Each cell is the R^2 "
        "with which that side alone explains the function: one dark cell in each row, the same within a factor, "
        "is right."
    )
    return Section(
        "Cube: three factors (from the paper's code)",
        [
            "Two factors at a time, as published: the first round puts the longest side into one group and the two "
            "others into the second; the second round, with the first group left out, divides these. Functions that "
            "no side explains are products that got in: they are no single product of two lower functions to within "
            "gamma, so nothing marks them as products, and they serve as parts. Three groups at once have the same "
            "impurities. The default finds the three sides and nothing else.",
        ],
        [Picture("fig7", figure, caption)],
        [
            Table(
                "What each way finds; a function is pure if one side explains at least .9 of it.",
                ["way", "factors", "functions", "pure", "verdict"],
                rows,
            )
        ],
        {name: {"function_r2": shares[name], **found.numbers} for name, found in results.items()},
    )


def _second_round(first: Found, data: Data, seed: int) -> Found:
    """What is found when the first factor of the first round is left out: the other two are to be divided."""
    if len(first.factors) < 2:
        return first
    excluded = np.flatnonzero(first.factors[0].coefficients.any(axis=1)).tolist()
    return found_by(published(CASES["cube"], data, seed, n_factors=2, exclude=excluded), data)


def _sizes(found: Found) -> str:
    return " + ".join(f"{len(factor.eigenvalues)}" for factor in found.factors)


def _pure(shares: list[np.ndarray]) -> float:
    return float((np.vstack(shares).max(axis=1) >= 0.9).mean())


def _draw(results: dict[str, Found]):
    figure = plots.new_figure(7.2, 4)
    shares = {}
    for ax, (name, found) in zip(figure.subplots(1, len(results)), results.items(), strict=True):
        blocks = [
            np.column_stack([column_r2(true, factor.functions) for true in found.fitted_truth])
            for factor in found.factors
        ]
        shown = [block[: MOST_ROWS // len(blocks)] for block in blocks]
        plots.matrix(ax, np.vstack(shown), groups=[len(block) for block in shown], numbers=True)
        ax.set_xticks(range(3), SIDES)
        ax.set_xlabel("true side")
        ax.set_title(name)
        shares[name] = blocks
    return figure, shares
