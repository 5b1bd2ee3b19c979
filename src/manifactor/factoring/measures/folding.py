"""Whether samples of equal place lie near each other in the data."""

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.spatial import KDTree

from manifactor._support.arithmetic import ceil_div
from manifactor._support.regression import without_itself
from manifactor._support.threads import map_threads, over_cores
from manifactor.factoring.measures.measurement import Measurement
from manifactor.factoring.measures.placed_samples import PlacedSamples
from manifactor.factoring.prediction import thinned


@dataclass(frozen=True)
class FoldSettings:
    """Settings of `folds`."""

    # Samples whose neighbours are compared: a share of 1 % is then known to .3 %.
    asked: int = 1000
    # Samples of nearly the same place that each is compared with.
    n_neighbors: int = 20
    # A sample of the same place lies elsewhere beyond this distance, in units of the spread of the
    # samples along the factor: folds of a circle are 2 apart at most.
    elsewhere: float = 0.5
    # A sample is folded if more than this share of its neighbours lie elsewhere. The share is a
    # half where two branches are equally dense; by chance, it is rarely below a third there.
    folded: float = 1 / 3
    # A neighbour by place is near, whatever the factor's spread, up to this multiple of the
    # distance to the neighbour of the same rank in the data: images that share no pixels are all
    # equally far apart.
    largest_distance_ratio: float = 1.5
    # Noise is read from this quantile of the squared distances to the neighbours of a sample: with
    # two branches, half of the neighbours lie on its own.
    noise_quantile: float = 0.2
    # Distances in memory at a time; it steers no result.
    distances_at_once: int = 2**21


def folds(placed: PlacedSamples, *, settings: FoldSettings = FoldSettings()) -> Measurement:
    """Return the share of samples whose neighbours by place lie elsewhere in the data.

    It is the largest over the factors. For each factor, the directions of all others are taken off
    the distances first, since errors of their places move samples along them. Then the noise is
    taken off, which all distances have in common.

    >>> from manifactor.factoring.measures.placed_samples import place_samples
    >>> turn, height = np.random.default_rng(0).uniform(size=(2, 1000))
    >>> ring = np.column_stack([np.cos(2 * np.pi * turn), np.sin(2 * np.pi * turn)])
    >>> samples = np.column_stack([ring, height])
    >>> folds(place_samples([ring, height[:, None]], [1, 1], samples)).value
    0.0
    >>> folded = place_samples([ring[:, :1], height[:, None]], [1, 1], samples)
    >>> folds(folded).value > 0.5
    True
    """
    compared, fits = map_threads(
        lambda work: work(), [partial(_compare, placed, settings), lambda: placed.local_fits]
    )
    # The fit that each sample takes its directions from.
    joint = placed.joint
    fit_of = KDTree(joint[placed.nodes]).query(joint[compared.asked])[1]

    def folded(factor: int) -> float:
        others = np.delete(fits.slopes, fits.directions[factor], axis=1)
        planes = np.linalg.qr(others.transpose(0, 2, 1))[0][fit_of]
        return _folded_share(placed, factor, compared, planes, settings)

    share = max(map_threads(folded, range(len(fits.directions))))
    error = np.sqrt(share * (1 - share) / len(compared.asked))
    return Measurement(share, float(error))


@dataclass(frozen=True)
class Compared:
    """Some samples, and their neighbours by place."""

    asked: np.ndarray  # (m,): the samples
    near: np.ndarray  # (m, k): their nearest neighbours by their places on all factors
    far: np.ndarray  # (m, k): whether a neighbour by place lies far away in the data


def _compare(placed: PlacedSamples, settings: FoldSettings) -> Compared:
    """Samples drawn at random, and their neighbours by place."""
    n, samples = placed.n_samples, placed.samples
    asked = thinned(n, settings.asked)
    joint = placed.joint
    near = KDTree(joint).query(joint[asked], min(settings.n_neighbors + 1, n))[1]
    near = without_itself(near, asked)
    reach = _reach(samples, asked, near.shape[1], settings)
    distances = ((samples[near] - samples[asked][:, None]) ** 2).sum(axis=2)
    largest = settings.largest_distance_ratio**2 * reach
    return Compared(asked, near, distances > largest[:, None])


def _folded_share(
    placed: PlacedSamples,
    factor: int,
    compared: Compared,
    planes: np.ndarray,
    settings: FoldSettings,
) -> float:
    """Share of the samples asked that are folded along one factor.

    `planes`, (m, p, d), are the directions of the other factors.
    """
    samples, place = placed.samples, placed.places[factor]
    asked, near = compared.asked, compared.near
    moves = _across(samples[near] - samples[asked][:, None], planes)
    stride = place[near] - place[asked][:, None]
    # Twice, since places have errors of their own.
    excess = (moves**2).sum(axis=2) - 2 * (stride**2).sum(axis=2)
    usual = np.quantile(excess, settings.noise_quantile, axis=1)
    noise = max(0.0, float(np.median(usual)))
    # A difference of two samples has twice the noise of one.
    extent = max(0.0, _extent(placed, factor, asked, planes, settings) - noise / 2)
    far = compared.far
    elsewhere = far & (excess > 2 * noise + settings.elsewhere**2 * extent)
    return float((elsewhere.mean(axis=1) > settings.folded).mean())


def _reach(
    samples: np.ndarray, asked: np.ndarray, count: int, settings: FoldSettings
) -> np.ndarray:
    """Squared distance of some samples to a nearest neighbour in the data, (m,)."""
    centred = samples - samples.mean(axis=0)
    squares = (centred**2).sum(axis=1)
    # In one product: squares less twice the inner products.
    left = np.column_stack([-2 * centred, np.ones(len(centred))])
    right = np.column_stack([centred, squares])
    n_blocks = ceil_div(len(asked) * len(samples), settings.distances_at_once)

    def reached(rows: np.ndarray) -> np.ndarray:
        distances = left[rows] @ right.T
        # The nearest is the sample itself.
        distances.partition(count, axis=1)
        return distances[:, count] + squares[rows]

    blocks = np.array_split(asked, n_blocks)
    return np.concatenate(list(over_cores(reached, blocks)))


def _extent(
    placed: PlacedSamples,
    factor: int,
    asked: np.ndarray,
    planes: np.ndarray,
    settings: FoldSettings,
) -> float:
    """Mean square spread of the samples along a factor: what the others leave."""
    others = placed.without(factor)
    count = min(settings.n_neighbors + 1, placed.n_samples)
    near = KDTree(others).query(others[asked], count)[1]
    near = without_itself(near, asked)
    rest = placed.samples[asked] - placed.samples[near].mean(axis=1)
    rest = _across(rest[:, None], planes)
    # The mean of k neighbours has a k-th of their variance itself.
    return float((rest**2).sum(axis=2).mean()) / (1 + 1 / near.shape[1])


def _across(moves: np.ndarray, planes: np.ndarray) -> np.ndarray:
    """Moves, (m, k, p), without their parts in the planes, (m, p, d)."""
    return moves - (moves @ planes) @ planes.transpose(0, 2, 1)
