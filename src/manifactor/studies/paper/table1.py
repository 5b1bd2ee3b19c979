"""Table 1: seconds of each part, beside the paper's and beside a textbook pipeline on the same machine."""

import time
from collections.abc import Callable, Sequence

import numpy as np

from manifactor import datasets
from manifactor.estimators import DiffusionMap
from manifactor.factoring.maxcut import max_cut
from manifactor.factoring.triplets import Triplets, find_triplets
from manifactor.spectral.spectrum import Spectrum
from manifactor.studies.paper import textbook
from manifactor.studies.paper.cases import PAPER_UNIT
from manifactor.studies.paper.lab import Lab
from manifactor.studies.paper.section import Section, Settings, Table

DELTA, GAMMA, NOISE, BANDWIDTH = 2.0, 0.75, 0.1, 0.5
PAPER = {
    50: (5.55, 1.24, 0.03),
    100: (5.98, 7.54, 0.026),
    200: (8.30, 43.19, 0.03),
    400: (12.49, 251.68, 0.044),
}
PARTS = ("diffusion map", "Algorithm 1", "cut")
QUICK = (20,)
TRIALS = 5


def table1(settings: Settings, lab: Lab) -> Section:
    """The paper's Table 1."""
    sizes, trials = (QUICK, 1) if settings.quick else (tuple(PAPER), TRIALS)
    X, _ = datasets.sample(
        "rectangle_z", settings.n, noise=NOISE, random_state=settings.seed
    )
    seconds: dict[str, dict] = {
        "paper": dict(PAPER),
        "textbook": {},
        "ours": {},
        "our Algorithm 1 on theirs": {},
    }
    counts: dict[str, dict] = {
        "textbook": {},
        "ours on the textbook's functions": {},
        "ours": {},
    }
    for n_functions in sizes:
        runs = [_ours(X, n_functions, settings.seed + trial) for trial in range(trials)]
        seconds["ours"][n_functions] = np.mean([took for took, _ in runs], axis=0)
        counts["ours"][n_functions] = runs[0][1]
        took, same, found = _textbook(X, n_functions, settings.seed)
        (
            seconds["textbook"][n_functions],
            seconds["our Algorithm 1 on theirs"][n_functions],
        ) = took, same
        (
            counts["textbook"][n_functions],
            counts["ours on the textbook's functions"][n_functions],
        ) = found
    columns = [
        f"{part}, {who}" for who in ("paper", "textbook", "ours") for part in PARTS
    ]
    header = [
        "N",
        *columns,
        "textbook / ours",
        "Algorithm 1: textbook / ours, same functions",
    ]
    return Section(
        "Running times (the paper's Table 1)",
        [_what(settings, trials), _ratios(seconds, max(sizes))],
        tables=[
            Table(
                "Seconds, and ratios of them.",
                header,
                [_row(n, seconds) for n in sizes],
            )
        ],
        numbers={"triplets": counts},
        seconds=seconds,
    )


def _what(settings: Settings, trials: int) -> str:
    return (
        f"{settings.n:,} samples of the rectangle with noise of standard deviation "
        f"{NOISE} in z (the paper's N(0, 0.1) may also mean a variance), delta = "
        f"{DELTA} in units of lambda/4, gamma = {GAMMA}. The paper's machine was a 2.9 "
        "GHz laptop of 2017 with four cores. The textbook pipeline, run once for each "
        "N, is the paper's text in numpy: all pairs of samples, "
        f"exp(-d^2/{BANDWIDTH}), randomised SVD with 5 iterations, a loop over k, i, "
        f"j. Ours is the mean of {trials} trials: 64 neighbours, a block eigensolver "
        "that is a hundred times as accurate as the samples allow, matrix products. "
        "The cut is ours in both, since the paper's needs a general solver for "
        "semidefinite programs."
    )


def _ratios(seconds: dict[str, dict], largest: int) -> str:
    theirs, ours = seconds["textbook"][largest], seconds["ours"][largest]
    same = theirs[1] / seconds["our Algorithm 1 on theirs"][largest]
    return (
        f"At N = {largest} the whole is {theirs.sum() / ours.sum():.0f} times faster "
        "than the textbook pipeline, and Algorithm 1 on the very same functions "
        f"{same:.0f} times. Seconds depend on the machine and on what else it does; "
        "ratios less so."
    )


def _row(n_functions: int, seconds: dict[str, dict]) -> list[str]:
    theirs, ours = seconds["textbook"][n_functions], seconds["ours"][n_functions]
    cells = [*_cells(PAPER.get(n_functions)), *_cells(theirs), *_cells(ours)]
    same = theirs[1] / seconds["our Algorithm 1 on theirs"][n_functions]
    return [str(n_functions), *cells, f"{theirs.sum() / ours.sum():.0f}", f"{same:.0f}"]


def _cells(values: Sequence[float] | None) -> list[str]:
    return (
        ["-"] * len(PARTS) if values is None else [f"{value:.3g}" for value in values]
    )


def _ours(X: np.ndarray, n_functions: int, seed: int) -> tuple[np.ndarray, int]:
    """Seconds of each part, and how many triplets there are."""
    spectrum, first = timed(
        lambda: (
            DiffusionMap(n_functions, density_correction=0, random_state=seed)
            .fit(X)
            .spectrum_
        )
    )
    found, second = timed(
        lambda: find_triplets(spectrum, tolerance=PAPER_UNIT * DELTA, threshold=GAMMA)
    )
    _, third = timed(
        lambda: max_cut(found.separability()[1], rng=np.random.default_rng(seed))
    )
    return np.array([first, second, third]), len(found)


def _textbook(
    X: np.ndarray, n_functions: int, seed: int
) -> tuple[np.ndarray, float, tuple[int, int]]:
    """Seconds of each part; of our Algorithm 1 on the same functions; how many triplets both found."""
    (quarter, functions), first = timed(
        lambda: textbook.diffusion_map(X, BANDWIDTH, n_functions, seed=seed)
    )
    columns = np.asfortranarray(functions)
    loop, second = timed(lambda: textbook.algorithm_1(quarter, columns, DELTA, GAMMA))
    triplets = _as_triplets(loop, columns)
    _, third = timed(
        lambda: max_cut(triplets.separability()[1], rng=np.random.default_rng(seed))
    )
    weights = np.full(len(X), 1 / len(X))
    spectrum = Spectrum(
        PAPER_UNIT * quarter,
        functions,
        weights,
        np.zeros(n_functions),
        BANDWIDTH / 4,
        "textbook",
    )
    ours, same = timed(
        lambda: find_triplets(spectrum, tolerance=PAPER_UNIT * DELTA, threshold=GAMMA)
    )
    return np.array([first, second, third]), same, (len(loop), len(ours))


def _as_triplets(products: dict[int, list[int]], functions: np.ndarray) -> Triplets:
    parts = np.array(list(products.values()), dtype=int).reshape(-1, 2)
    cosines = [
        textbook.cosine(functions[:, k], functions[:, i] * functions[:, j])
        for k, (i, j) in products.items()
    ]
    return Triplets(np.array(list(products), dtype=int), parts, np.array(cosines))


def timed(function: Callable) -> tuple:
    """What a function returns, and its seconds."""
    start = time.perf_counter()
    return function(), time.perf_counter() - start
