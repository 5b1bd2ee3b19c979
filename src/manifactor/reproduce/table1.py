"""Table 1: seconds of each part, beside the paper's and beside a textbook pipeline on the same machine."""

import time
from collections.abc import Callable

import numpy as np

from manifactor import datasets
from manifactor.estimators import DiffusionMap
from manifactor.factoring.maxcut import max_cut
from manifactor.factoring.triplets import find_triplets
from manifactor.reproduce import textbook
from manifactor.reproduce.cases import PAPER_UNIT
from manifactor.reproduce.lab import Lab
from manifactor.reproduce.section import Section, Settings, Table

DELTA, GAMMA, NOISE, BANDWIDTH = 2.0, 0.75, 0.1, 0.5
PAPER = {50: (5.55, 1.24, 0.03), 100: (5.98, 7.54, 0.026), 200: (8.30, 43.19, 0.03), 400: (12.49, 251.68, 0.044)}
PARTS = ("diffusion map", "Algorithm 1", "cut")
QUICK = {20: PAPER[50]}
TRIALS = 5


def table1(settings: Settings, lab: Lab) -> Section:
    """The paper's Table 1."""
    sizes = QUICK if settings.quick else PAPER
    X, _ = datasets.sample("rectangle_z", settings.n, noise=NOISE, random_state=settings.seed)
    ours, triplets = {}, {}
    for n_functions in sizes:
        trials = [_ours(X, n_functions, settings.seed + i) for i in range(1 if settings.quick else TRIALS)]
        ours[n_functions] = np.mean([seconds for seconds, _ in trials], axis=0)
        triplets[n_functions] = trials[0][1]
    theirs = {n_functions: _textbook(X, n_functions, settings.seed) for n_functions in sizes}
    ratio = {n_functions: theirs[n_functions].sum() / ours[n_functions].sum() for n_functions in sizes}
    rows = [
        [f"{n}", *_seconds(PAPER.get(n)), *_seconds(theirs[n]), *_seconds(ours[n]), f"{ratio[n]:.0f}"] for n in sizes
    ]
    columns = [f"{part}, {who}" for who in ("paper", "textbook", "ours") for part in PARTS]
    largest = max(sizes)
    return Section(
        "Running times (the paper's Table 1)",
        [
            f"{settings.n:,} samples of the rectangle with noise of {NOISE:g} in z, delta = {DELTA:g} in units of "
            f"lambda/4, gamma = {GAMMA:g}. The paper's machine was a 2.9 GHz laptop of 2017 with four cores. The "
            "textbook pipeline, run once for each N, is the paper's text in numpy: all pairs of samples, "
            f"exp(-d^2/{BANDWIDTH:g}), randomised SVD with 5 iterations, a loop over k, i, j. Ours is the mean of "
            f"{1 if settings.quick else TRIALS} trials: 64 neighbours, a block eigensolver to residuals of 1e-7, "
            "matrix products. Both cuts are ours, since the paper's needs a general solver for semidefinite "
            "programs; theirs takes as long in the paper.",
            f"At N = {largest} the whole is {ratio[largest]:.0f} times faster than the textbook pipeline, "
            f"Algorithm 1 alone {theirs[largest][1] / ours[largest][1]:.0f} times. Seconds depend on the machine "
            "and on what else it does; ratios less so.",
        ],
        tables=[Table("Seconds.", ["N", *columns, "textbook / ours"], rows)],
        numbers={"triplets": triplets},
        seconds={"paper": dict(PAPER), "textbook": theirs, "ours": ours, "ratio": ratio},
    )


def _seconds(values) -> list[str]:
    return ["-"] * len(PARTS) if values is None else [f"{value:.3g}" for value in values]


def _ours(X: np.ndarray, n_functions: int, seed: int) -> tuple[np.ndarray, int]:
    """Seconds of each part, and how many triplets there are."""
    spectrum, first = timed(lambda: DiffusionMap(n_functions, density_correction=0, random_state=seed).fit(X).spectrum_)
    found, second = timed(lambda: find_triplets(spectrum, tolerance=PAPER_UNIT * DELTA, threshold=GAMMA))
    _, third = timed(lambda: max_cut(found.separability()[1], rng=np.random.default_rng(seed)))
    return np.array([first, second, third]), len(found)


def _textbook(X: np.ndarray, n_functions: int, seed: int) -> np.ndarray:
    (eigenvalues, functions), first = timed(lambda: textbook.diffusion_map(X, BANDWIDTH, n_functions, seed=seed))
    columns = np.asfortranarray(functions)
    products, second = timed(lambda: textbook.algorithm_1(eigenvalues, columns, DELTA, GAMMA))
    _, third = timed(lambda: max_cut(_separability(products, columns), rng=np.random.default_rng(seed)))
    return np.array([first, second, third])


def _separability(products: dict[int, list[int]], functions: np.ndarray) -> np.ndarray:
    """The similarity of the product in which two functions occur together, for those that occur."""
    matrix = np.zeros((functions.shape[1],) * 2)
    for k, (i, j) in products.items():
        matrix[i, j] = matrix[j, i] = textbook.cosine(functions[:, k], functions[:, i] * functions[:, j])
    used = matrix.any(axis=1)
    return matrix[np.ix_(used, used)]


def timed(function: Callable) -> tuple:
    """What a function returns, and its seconds."""
    start = time.perf_counter()
    return function(), time.perf_counter() - start
