"""The cube: two rounds of peeling, three factors at once, and the default method."""

import warnings

import numpy as np

from manifactor._support.threads import one_blas_thread
from manifactor.scores import column_r2
from manifactor.studies.paper.cases import CASES
from manifactor.studies.paper.lab import Found, Lab, found_by, published
from manifactor.studies.paper.panels import PURE
from manifactor.studies.paper.section import Picture, Section, Settings, Table
from manifactor.views import plots

SIDES = ("2.77", "1.5", "7")
MOST_ROWS = 18  # functions shown of each result
HEADER = ("way", "factors", "functions of each", "of them pure", "verdict")


def fig7(settings: Settings, lab: Lab) -> Section:
    """The cube of the paper's code."""
    both = lab.compare(["cube"], settings)["cube"]
    results = {
        **_peeled(settings),
        "three at once (Max-k-Cut)": both["published"],
        "default": both["default"],
    }
    shares = {name: side_shares(found) for name, found in results.items()}
    rows = [
        [
            name,
            str(len(shares[name])),
            _sizes(found),
            f"{pure_share(shares[name]):.0%}",
            found.evidence.verdict,
        ]
        for name, found in results.items()
    ]
    table = Table(
        "What each way finds; a function is pure if one side explains at least .9 of "
        "it.",
        HEADER,
        rows,
    )
    numbers = {
        name: {"function_r2": shares[name], **found.numbers}
        for name, found in results.items()
    }
    picture = Picture("fig7", _draw(shares), _caption(settings))
    return Section(
        "Cube: three factors (from the paper's code)",
        [WHY],
        [picture],
        [table],
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


def _peeled(settings: Settings) -> dict[str, Found]:
    """Two rounds of two factors; no second round where the first found one factor only."""
    case = CASES["cube"]
    with (
        one_blas_thread(),
        warnings.catch_warnings(action="ignore"),
    ):  # that no product is left is an answer, too
        data = case.draw(settings.n, settings.seed)
        first = found_by(published(case, data, settings.seed, n_factors=2), data)
        if len(first.factors) < 2:
            return {"peeling, round 1": first}
        taken = np.flatnonzero(first.factors[0].coefficients.any(axis=1)).tolist()
        second = found_by(
            published(case, data, settings.seed, n_factors=2, exclude=taken), data
        )
    return {"peeling, round 1": first, "peeling, round 2": second}


def side_shares(found: Found) -> list[np.ndarray]:
    """R^2 of every function of each factor on each true side, (n_functions, 3) for each factor."""
    return [
        np.column_stack(
            [column_r2(true, factor.functions) for true in found.fitted_truth]
        )
        for factor in found.factors
    ]


def pure_share(shares: list[np.ndarray]) -> float:
    """Share of the functions that one side alone explains."""
    return float((np.vstack(shares).max(axis=1) >= PURE).mean())


def _sizes(found: Found) -> str:
    return " + ".join(str(len(factor.eigenvalues)) for factor in found.factors)


def _caption(settings: Settings) -> str:
    return (
        f"Cube with sides 1 + sqrt(pi), 1.5 and 7, {settings.n:,} samples, "
        f"{CASES['cube'].published_settings}. Rows: functions of each factor found, "
        f"the lowest first, lines between factors (of more than {MOST_ROWS} the first "
        "of each factor). Columns: the true sides. Each cell is the R^2 with which "
        "that side alone explains the function: one dark cell in each row, the same "
        "within a factor, is right."
    )


def _draw(shares: dict[str, list[np.ndarray]]):
    figure = plots.new_figure(7.2, 4.2)
    for ax, (name, blocks) in zip(
        figure.subplots(1, len(shares)), shares.items(), strict=True
    ):
        many = sum(map(len, blocks)) > MOST_ROWS
        shown = [
            block[: MOST_ROWS // len(blocks)] if many else block for block in blocks
        ]
        plots.matrix(
            ax, np.vstack(shown), groups=[len(block) for block in shown], numbers=True
        )
        ax.set_xticks(range(3), SIDES)
        ax.set(title=name, xlabel="true side")
    return figure
