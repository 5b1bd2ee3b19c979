"""Table 1: seconds of each part, beside the paper's and a textbook pipeline's."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from manifactor import datasets
from manifactor._support.parameters import given
from manifactor.estimators import DiffusionMap
from manifactor.models.triplets import Triplets, find_triplets, max_cut
from manifactor.operators.laplacian import Spectrum
from studies.paper import textbook
from studies.paper.cases import PAPER_UNIT
from studies.paper.lab import Lab
from studies.paper.section import Section, Settings, Table

# The columns of the paper's table.
PARTS = ("diffusion map", "Algorithm 1", "cut")
# Seconds of each part in the paper, by the number of functions.
PAPER_SECONDS = {
    50: (5.55, 1.24, 0.03),
    100: (5.98, 7.54, 0.026),
    200: (8.30, 43.19, 0.03),
    400: (12.49, 251.68, 0.044),
}


@dataclass(frozen=True)
class Table1Settings:
    """Settings of `table1`: the paper's workload."""

    # In the paper's unit, a quarter of the eigenvalue.
    delta: float = 2.0
    gamma: float = 0.75
    # Standard deviation in z; the paper's N(0, 0.1) may also mean a variance.
    noise: float = 0.1
    # eps of the textbook's kernel, from the published configurations.
    bandwidth: float = 0.5
    n_functions: tuple[int, ...] = tuple(PAPER_SECONDS)
    # Seconds are means over this number of seeds; the textbook runs once, as its loop takes minutes
    # at 400 functions.
    n_trials: int = 5
    quick_n_functions: tuple[int, ...] = (20,)


@dataclass(frozen=True)
class Timing:
    """Seconds and triplets of both pipelines with one number of functions."""

    ours: np.ndarray  # (3,): seconds of each part; theirs is the textbook pipeline
    theirs: np.ndarray  # (3,): seconds of each part; theirs is the textbook pipeline
    ours_on_theirs: float  # seconds of our Algorithm 1 on the textbook's functions
    n_ours: int  # numbers of triplets found
    n_theirs: int  # numbers of triplets found
    n_ours_on_theirs: int  # numbers of triplets found

    @property
    def ratio(self) -> float:
        """Seconds of the textbook pipeline over ours."""
        return self.theirs.sum() / self.ours.sum()

    @property
    def algorithm_ratio(self) -> float:
        """Seconds of the textbook's Algorithm 1 over ours on the same functions."""
        return self.theirs[1] / self.ours_on_theirs


def table1(settings: Settings, lab: Lab, *, recipe: Table1Settings = Table1Settings()) -> Section:
    """Return the paper's Table 1."""
    X, _ = datasets.sample(
        "rectangle_z", settings.n, noise=recipe.noise, random_state=settings.seed
    )
    # The paper's smallest number of functions takes the loop seconds already.
    sizes = recipe.quick_n_functions if settings.quick else recipe.n_functions
    n_trials = 1 if settings.quick else recipe.n_trials
    timings = {
        n_functions: _timing(X, n_functions, n_trials, settings.seed, recipe)
        for n_functions in sizes
    }
    rows = [_row(n_functions, timing) for n_functions, timing in timings.items()]
    return Section(
        "Running times (the paper's Table 1)",
        [_what(settings, n_trials, recipe), _ratios(max(sizes), timings[max(sizes)])],
        tables=[Table("Seconds, and ratios of them.", _header(), rows)],
        numbers={"triplets": _counts(timings)},
        seconds=_seconds(timings),
    )


def _counts(timings: dict[int, Timing]) -> dict[str, dict[int, int]]:
    return {
        "textbook": {n: timing.n_theirs for n, timing in timings.items()},
        "ours on the textbook's functions": {
            n: timing.n_ours_on_theirs for n, timing in timings.items()
        },
        "ours": {n: timing.n_ours for n, timing in timings.items()},
    }


def _seconds(timings: dict[int, Timing]) -> dict[str, dict]:
    return {
        "paper": dict(PAPER_SECONDS),
        "textbook": {n: timing.theirs for n, timing in timings.items()},
        "ours": {n: timing.ours for n, timing in timings.items()},
        "our Algorithm 1 on theirs": {n: timing.ours_on_theirs for n, timing in timings.items()},
    }


def _what(settings: Settings, n_trials: int, recipe: Table1Settings) -> str:
    return (
        f"{settings.n:,} samples of the rectangle with noise of standard deviation "
        f"{recipe.noise} in z (the paper's N(0, 0.1) may also mean a variance), delta "
        f"= {recipe.delta} in units of lambda/4, gamma = {recipe.gamma}. The paper's "
        "machine was a 2.9 GHz laptop of 2017 with four cores. The textbook pipeline, "
        "run once for each N, is the paper's text in numpy: all pairs of samples, "
        f"exp(-d^2/{recipe.bandwidth}), randomised SVD with 5 iterations, a loop over "
        f"k, i, j. Ours is the mean of {n_trials} trials: 64 neighbours, a block "
        "eigensolver that is a hundred times as accurate as the samples allow, matrix "
        "products. The cut is ours in both, since the paper's needs a general solver "
        "for semidefinite programs."
    )


def _ratios(n_functions: int, timing: Timing) -> str:
    return (
        f"At N = {n_functions} the whole is {timing.ratio:.0f} times faster than the "
        "textbook pipeline, and Algorithm 1 on the very same functions "
        f"{timing.algorithm_ratio:.0f} times. Seconds depend on the machine and on "
        "what else it does; ratios less so."
    )


def _header() -> list[str]:
    columns = [f"{part}, {who}" for who in ("paper", "textbook", "ours") for part in PARTS]
    # On the same functions: the number of candidates depends on the eigenvalues.
    same = "Algorithm 1: textbook / ours, same functions"
    return ["N", *columns, "textbook / ours", same]


def _row(n_functions: int, timing: Timing) -> list[str]:
    return [
        str(n_functions),
        *_cells(PAPER_SECONDS.get(n_functions)),
        *_cells(timing.theirs),
        *_cells(timing.ours),
        f"{timing.ratio:.0f}",
        f"{timing.algorithm_ratio:.0f}",
    ]


def _cells(values: Iterable[float] | None) -> list[str]:
    if values is None:
        return ["-"] * len(PARTS)
    return [f"{value:.3g}" for value in values]


def _timing(
    X: np.ndarray, n_functions: int, n_trials: int, seed: int, recipe: Table1Settings
) -> Timing:
    """Run both pipelines."""
    trials = range(n_trials)
    # The first trial has the seed of the textbook pipeline.
    runs = [_run_ours(X, n_functions, seed + trial, recipe) for trial in trials]
    theirs, quarter, functions, loop = _run_textbook(X, n_functions, seed, recipe)
    spectrum = Spectrum(
        PAPER_UNIT * quarter,
        functions,
        np.full(len(X), 1 / len(X)),
        # The randomised SVD does not report residuals.
        np.zeros(n_functions),
        recipe.bandwidth / 4,
        given("textbook"),
    )
    same, ours_on_theirs = timed(lambda: _triplets(spectrum, recipe))
    return Timing(
        ours=np.mean([seconds for seconds, _ in runs], axis=0),
        theirs=theirs,
        ours_on_theirs=ours_on_theirs,
        n_ours=runs[0][1],
        n_theirs=len(loop),
        n_ours_on_theirs=len(same),
    )


def _run_ours(
    X: np.ndarray, n_functions: int, seed: int, recipe: Table1Settings
) -> tuple[np.ndarray, int]:
    """Return the seconds of each part, and the number of triplets."""
    # Without density correction, as in the paper.
    embedding = DiffusionMap(n_functions, density_correction=0, random_state=seed)
    spectrum, first = timed(lambda: embedding.fit(X).spectrum_)
    found, second = timed(lambda: _triplets(spectrum, recipe))
    _, third = timed(lambda: _cut(found, seed))
    return np.array([first, second, third]), len(found)


def _run_textbook(
    X: np.ndarray, n_functions: int, seed: int, recipe: Table1Settings
) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict[int, list[int]]]:
    """Return the seconds of each part, the eigenpairs, and the products found."""
    (quarter, functions), first = timed(
        lambda: textbook.diffusion_map(X, recipe.bandwidth, n_functions, seed=seed)
    )
    # The loop reads whole columns; stored as rows they would not stay in the cache.
    columns = np.asfortranarray(functions)
    loop, second = timed(lambda: textbook.algorithm_1(quarter, columns, recipe.delta, recipe.gamma))
    triplets = _as_triplets(loop, columns)
    _, third = timed(lambda: _cut(triplets, seed))
    return np.array([first, second, third]), quarter, functions, loop


def _triplets(spectrum: Spectrum, recipe: Table1Settings) -> Triplets:
    tolerance = PAPER_UNIT * recipe.delta
    return find_triplets(spectrum, tolerance=tolerance, threshold=recipe.gamma)


def _cut(triplets: Triplets, seed: int):
    return max_cut(triplets.separability()[1], rng=np.random.default_rng(seed))


def _as_triplets(products: dict[int, list[int]], functions: np.ndarray) -> Triplets:
    # Without a product the array would have one axis only.
    parts = np.array(list(products.values()), dtype=int).reshape(-1, 2)
    cosines = [
        textbook.cosine(functions[:, k], functions[:, i] * functions[:, j])
        for k, (i, j) in products.items()
    ]
    return Triplets(np.array(list(products), dtype=int), parts, np.array(cosines))


def timed(function: Callable) -> tuple:
    """Return the result of a function, and its seconds."""
    start = time.perf_counter()
    return function(), time.perf_counter() - start
