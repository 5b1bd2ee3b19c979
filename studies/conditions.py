"""What befalls the samples of random problems: noise, holes, copies, more columns, missing cells.

>>> drawn = Drawn(np.eye(99), [(np.eye(99),)], "")
>>> meet(Conditions(60, copies="five each"), drawn, RandomState(0))[0].shape
(60, 99)
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.random import RandomState

from manifactor.datasets.products import Truth
from manifactor.datasets.sampling import rotated_into
from studies.parts import Drawn

NOISES = ("isotropic", "growing", "shared", "heavy-tailed")
COPIES = ("none", "some", "five each")
VOIDS = ("none", "corner", "hole")
# What holes and corners may take of the samples that are drawn.
SPARE = 1.5


@dataclass(frozen=True)
class Conditions:
    """What befalls the samples of a problem, and how many there are."""

    n: int
    noise: float = 0.0  # deviation in a column, of that of the smallest factor's part
    kind: str = "isotropic"  # of noise
    freedom: float = 3.0  # degrees of freedom of heavy tails
    columns: int = 0  # that samples are rotated into, where these are more than their own
    copies: str = "none"  # of rows
    void: str = "none"  # where there are no samples
    dependence: float = 0.0  # of places on factors
    missing: float = 0.0  # share of cells that were imputed
    outliers: float = 0.0  # share of rows that lie anywhere


def draw_conditions(rng: RandomState) -> Conditions:
    """Draw conditions: each by itself, most often what makes a problem no harder."""
    # A record takes about 3 s for each thousand samples: few problems are large.
    ends = (200, 3500) if rng.uniform() < 0.98 else (3500, 20_000)
    noise = rng.choice([0.0, 0.5 * rng.uniform() ** 1.3], p=(1 / 3, 2 / 3))
    highest = 30 if rng.uniform() < 0.85 else 500
    return Conditions(
        n=round(np.exp(rng.uniform(*np.log(ends)))),
        noise=float(noise),
        kind=str(rng.choice(NOISES, p=(0.5, 0.2, 0.12, 0.18))),
        freedom=float(rng.uniform(2, 6)),
        columns=int(rng.choice([0, round(np.exp(rng.uniform(*np.log((2, highest)))))])),
        copies=str(rng.choice(COPIES, p=(0.86, 0.08, 0.06))),
        void=str(rng.choice(VOIDS, p=(0.88, 0.06, 0.06))),
        dependence=float(rng.choice([0.0, 0.8 * rng.uniform() ** 2], p=(0.75, 0.25))),
        missing=float(rng.choice([0.0, rng.uniform(0, 0.1)], p=(0.92, 0.08))),
        outliers=float(rng.choice([0.0, rng.uniform(0, 0.01)], p=(0.92, 0.08))),
    )


def meet(
    conditions: Conditions, drawn: Drawn, rng: RandomState
) -> tuple[np.ndarray, list[Truth], Conditions]:
    """Return samples under conditions, their truths, and the conditions that came about."""
    inside = _outside_voids(drawn.X, conditions.void, rng)
    n = min(conditions.n, len(inside))
    count = {"none": n, "some": -(-9 * n // 10), "five each": -(-n // 5)}[conditions.copies]
    rows = rng.permutation(inside)[:count]
    X = drawn.X[rows]
    if X.shape[1] < conditions.columns:
        X = rotated_into(X, conditions.columns, rng)
    noise = 0.0 if drawn.is_noisy else conditions.noise
    X = X + noise * drawn.smallest * _noise(X.shape, conditions, rng)
    X = _with_outliers(_imputed(X, conditions.missing, rng), conditions.outliers, rng)
    # Copies have the same noise.
    drawn_again = np.r_[np.arange(count), rng.randint(count, size=n - count)]
    if conditions.copies == "five each":
        drawn_again = np.arange(n) % count
    drawn_again = rng.permutation(drawn_again)
    truths = [tuple(_columns(t)[rows][drawn_again] for t in truth) for truth in drawn.truths]
    # Where the samples were the truth, they still are: with their noise nothing else is known.
    if drawn.is_noisy:
        conditions = replace(conditions, kind="its own")
    met = replace(conditions, n=n, columns=X.shape[1], noise=noise)
    return X[drawn_again], truths, met


def _columns(values: np.ndarray) -> np.ndarray:
    return np.asarray(values).reshape(len(values), -1)


def _outside_voids(X: np.ndarray, void: str, rng: RandomState) -> np.ndarray:
    """Return the samples outside of a corner or a hole, which take a twentieth to a fifth."""
    if void == "none":
        return np.arange(len(X))
    share, at = rng.uniform(0.05, 0.2), X[rng.randint(len(X))]
    if void == "hole":
        far = np.linalg.norm(X - at, axis=1)
    else:
        far = (X - X.mean(axis=0)) @ rng.normal(size=X.shape[1])
    return np.flatnonzero(far >= np.quantile(far, share))


def _noise(shape: tuple[int, int], conditions: Conditions, rng: RandomState) -> np.ndarray:
    """Draw noise with a deviation of 1 in every column, as a mean over columns.

    That of more than ten columns is as large, all together, as that of ten.
    """
    n, p = shape
    noise = rng.normal(size=shape)
    if conditions.kind == "heavy-tailed":
        # As wide as a Gaussian in the middle: there may be no variance.
        tails = rng.standard_t(conditions.freedom, size=shape)
        noise = tails * 0.6745 / np.median(np.abs(tails))
    if conditions.kind == "growing":
        sizes = np.linspace(0.2, 1.8, p)
        noise *= sizes / np.sqrt((sizes**2).mean())
    if conditions.kind == "shared":
        directions = rng.normal(size=(rng.randint(1, 4), p))
        noise = rng.normal(size=(n, len(directions))) @ directions
        noise *= np.sqrt(p) / np.linalg.norm(directions)
    return noise * min(1.0, np.sqrt(10 / p))


def _imputed(X: np.ndarray, share: float, rng: RandomState) -> np.ndarray:
    """Return samples with cells that are missing at random, imputed by means or main axes."""
    if not share:
        return X
    gone = rng.uniform(size=X.shape) < share
    means = np.where(gone, X.mean(axis=0), X)
    if rng.uniform() < 0.5 or X.shape[1] < 4:
        return means
    rank = min(5, X.shape[1] // 2)
    left, strength, axes = np.linalg.svd(means - means.mean(axis=0), full_matrices=False)
    fitted = means.mean(axis=0) + (left[:, :rank] * strength[:rank]) @ axes[:rank]
    return np.where(gone, fitted, X)


def _with_outliers(X: np.ndarray, share: float, rng: RandomState) -> np.ndarray:
    """Return samples of which a share lies anywhere in a box around all."""
    far = np.flatnonzero(rng.uniform(size=len(X)) < share)
    low, high = X.min(axis=0), X.max(axis=0)
    X = X.copy()
    X[far] = (low + high) / 2 + (high - low) * rng.uniform(-1, 1, size=X[far].shape)
    return X
