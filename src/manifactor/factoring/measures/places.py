"""Coordinates on the factors, called places: do they fill their ranges, fold, have poles, move?"""

from collections.abc import Sequence
from itertools import combinations
from math import ceil

import numpy as np
from scipy.spatial import KDTree
from sklearn.neighbors import NearestNeighbors

from manifactor._support.threads import map_threads
from manifactor.factoring.measures import Measurement
from manifactor.factoring.measures.metric import PlacedSamples
from manifactor.factoring.prediction import nearest_others, thinned
from manifactor.spectral.preparation import Preparation


def filling(placed: PlacedSamples) -> Measurement:
    """Return the share of the product of the factors' ranges without any samples.

    Places on one factor are combined with those of other samples on another. Around each
    combination, samples are counted that are near on each factor, and compared with the number that
    independent factors would have there. A density that is a product, or moderately dependent,
    leaves no combination empty; a corner cut off or a hole does. The share is the largest over
    pairs of factors, and over all of them together.

    >>> from manifactor.factoring.measures.metric import place_samples
    >>> square = np.random.default_rng(0).uniform(size=(4000, 2))
    >>> filling(place_samples(np.hsplit(square, 2), [1, 1], square)).value
    0.0
    >>> triangle = square[square.sum(axis=1) < 1]
    >>> filling(place_samples(np.hsplit(triangle, 2), [1, 1], triangle)).value > 0.05
    True
    """
    # Of 4,000 samples, the smallest neighbourhoods on two factors hold as many as are expected in
    # `_count_near`, so that more samples would tell nothing new.
    thin = thinned(placed.n_samples, 4000)
    places = [place[thin] for place in placed.places]
    n_asked = min(1000, len(places[0]))
    # Always the same combinations, whatever the caller's random state.
    rng = np.random.default_rng(0)
    asked = [place[rng.permutation(len(place))[:n_asked]] for place in places]
    shares = []
    for size in {2, len(places)}:
        count = _count_near(len(places[0]), size)
        near = [_near(p, at, count) for p, at in zip(places, asked, strict=True)]
        groups = combinations(near, size)
        shares += [_empty_share(group) for group in groups]
    share = max(shares)
    return Measurement(share, float(np.sqrt(share * (1 - share) / n_asked)))


def _count_near(n: int, size: int) -> int:
    """Samples near on each of some factors, so that enough are near on all of them."""
    # Of 24 samples that independent factors would have there, a tenth or fewer are there by chance
    # in 1 of 10^7.
    share = (24.0 / n) ** (1 / size)
    # Places are in error by up to .08 of a factor's length near its ends, where functions are flat.
    return min(n, ceil(max(share, 0.08) * n))


def _empty_share(near: Sequence[np.ndarray]) -> float:
    """Share of combinations around which no samples lie.

    `near` tells the samples, (m, n), that are near on each factor.
    """
    common = np.logical_and.reduce(near)
    n = common.shape[1]
    expected = n * np.prod([one.mean(axis=1) for one in near], axis=0)
    # Dependent samples of density 1 + .6 u v have .4 of the expected number where they are fewest.
    return float((common.sum(axis=1) <= 0.1 * expected).mean())


def _near(place: np.ndarray, asked: np.ndarray, count: int) -> np.ndarray:
    """Whether samples are among the nearest of each place that is asked for, (m, n).

    More than `count` of them where several are as near: an interval's coordinate ends at 0 and 1.
    """
    # Squared distances in one product, less what all samples have in common.
    left = np.column_stack([-2 * asked, np.ones(len(asked))])
    right = np.column_stack([place, (place**2).sum(axis=1)])
    # Single precision tells places apart far better than their errors allow.
    squares = left.astype(np.float32) @ right.astype(np.float32).T
    radius = np.partition(squares, count - 1, axis=1)[:, count - 1]
    return squares <= radius[:, None]


# Samples of nearly the same place that each is compared with.
N_COMPARED = 20


def folds(placed: PlacedSamples) -> Measurement:
    """Return the share of samples whose neighbours by place lie elsewhere in the data.

    It is the largest over the factors. For each factor, the directions of all others are taken off
    the distances first, since errors of their places move samples along them. Then the noise is
    taken off, which all distances have in common.

    >>> from manifactor.factoring.measures.metric import place_samples
    >>> turn, height = np.random.default_rng(0).uniform(size=(2, 1000))
    >>> ring = np.column_stack([np.cos(2 * np.pi * turn), np.sin(2 * np.pi * turn)])
    >>> samples = np.column_stack([ring, height])
    >>> folds(place_samples([ring, height[:, None]], [1, 1], samples)).value
    0.0
    >>> folded = place_samples([ring[:, :1], height[:, None]], [1, 1], samples)
    >>> folds(folded).value > 0.5
    True
    """
    # A share of 1 % is known to .3 %.
    asked = thinned(placed.n_samples, 1000)
    joint, fits = placed.joint, placed.local_fits
    near = nearest_others(joint, asked, N_COMPARED)
    far = _far_in_data(placed.samples, asked, near)
    # The fit that each sample takes its directions from.
    fit_of = KDTree(joint[placed.nodes]).query(joint[asked])[1]

    def folded(factor: int) -> float:
        others = np.delete(fits.slopes, fits.directions[factor], axis=1)
        planes = np.linalg.qr(others.transpose(0, 2, 1))[0][fit_of]
        elsewhere = far & _lie_elsewhere(placed, factor, asked, near, planes)
        # The share is a half where two branches are equally dense, and rarely below a third by
        # chance.
        return float((elsewhere.mean(axis=1) > 1 / 3).mean())

    share = max(map_threads(folded, range(len(fits.directions))))
    return Measurement(share, float(np.sqrt(share * (1 - share) / len(asked))))


def _far_in_data(samples: np.ndarray, asked: np.ndarray, near: np.ndarray) -> np.ndarray:
    """Whether neighbours by place, (m, k), of some samples lie far away in the data.

    One is near, whatever the factor's spread, up to 1.5 times the distance to the neighbour of the
    same rank in the data: images that share no pixels are all equally far apart.
    """
    centred = samples - samples.mean(axis=0)
    # The nearest is the sample itself.
    search = NearestNeighbors(n_neighbors=near.shape[1] + 1, algorithm="brute").fit(centred)
    reach = search.kneighbors(centred[asked])[0][:, -1:]
    return np.linalg.norm(samples[near] - samples[asked][:, None], axis=2) > 1.5 * reach


def _lie_elsewhere(
    placed: PlacedSamples, factor: int, asked: np.ndarray, near: np.ndarray, planes: np.ndarray
) -> np.ndarray:
    """Whether neighbours by place lie farther off along one factor than their places say, (m, k).

    `planes`, (m, p, d), are the directions of the other factors.
    """
    samples, place = placed.samples, placed.places[factor]
    moves = _across(samples[near] - samples[asked][:, None], planes)
    stride = place[near] - place[asked][:, None]
    # Twice, since places have errors of their own.
    excess = (moves**2).sum(axis=2) - 2 * (stride**2).sum(axis=2)
    # Low, since with two branches half of the neighbours lie on the sample's own.
    usual = np.quantile(excess, 0.2, axis=1)
    noise = max(0.0, float(np.median(usual)))
    # A difference of two samples has twice the noise of one.
    extent = max(0.0, _extent(placed, factor, asked, planes) - noise / 2)
    # Beyond half the spread along the factor: folds of a circle are 2 apart at most.
    return excess > 2 * noise + 0.5**2 * extent


def _extent(placed: PlacedSamples, factor: int, asked: np.ndarray, planes: np.ndarray) -> float:
    """Mean square spread of the samples along a factor: what the others leave."""
    others = placed.places[:factor] + placed.places[factor + 1 :]
    near = nearest_others(np.hstack(others), asked, N_COMPARED)
    rest = placed.samples[asked] - placed.samples[near].mean(axis=1)
    rest = _across(rest[:, None], planes)
    # The mean of k neighbours has a k-th of their variance itself.
    return float((rest**2).sum(axis=2).mean()) / (1 + 1 / near.shape[1])


def _across(moves: np.ndarray, planes: np.ndarray) -> np.ndarray:
    """Moves, (m, k, p), without their parts in the planes, (m, p, d)."""
    return moves - (moves @ planes) @ planes.transpose(0, 2, 1)


def poles(places: Sequence[np.ndarray], samples: np.ndarray) -> Measurement:
    """Return how many samples have neighbours all over a factor, per neighbour.

    The largest number over the factors. Around the pole of a sphere meridians have all directions,
    and the angle tells no place. About as many samples as a neighbourhood holds have the pole in
    theirs.

    >>> turn, height = np.random.default_rng(0).uniform(size=(2, 1000))
    >>> ring = np.column_stack([np.cos(2 * np.pi * turn), np.sin(2 * np.pi * turn)])
    >>> places = [ring, height[:, None]]
    >>> poles(places, np.column_stack([ring, height])).value
    0.0
    >>> poles(places, np.column_stack([height[:, None] * ring, height])).value > 0.5
    True

    Shapes: places (n, c), samples (n, p).
    """
    # Few, so that a circle differs from a point however short it is.
    k = min(10, len(samples) - 1)
    near = KDTree(samples).query(samples, k + 1)[1]
    counts = []
    for place in places:
        around = place[near].var(axis=1, ddof=1).sum(axis=1)
        counts.append(int((around > 0.5 * place.var(axis=0).sum()).sum()))
    return Measurement(max(counts) / k)


# How far noise of known size moves the places of samples on the factors.


def prepared_noise(
    noise: np.ndarray, n_samples: int, *, preparation: Preparation | None, rng: np.random.Generator
) -> np.ndarray:
    """Return noise of so many samples as it is after their preparation.

    In principal components C, noise with standard deviations s in the columns has the covariance C'
    diag(s^2) C = R' R, where R is the triangular factor of diag(s) C. Only as many numbers are
    drawn as there are components, not as there are columns.

    Shapes: noise (n_features,) -> (n_samples, n_prepared).
    """
    if preparation is None:
        return noise * rng.normal(size=(n_samples, len(noise)))
    root = np.linalg.qr(noise[:, None] * preparation.components, mode="r")
    return rng.normal(size=(n_samples, len(root))) @ root


def signal_share(before: np.ndarray, after: np.ndarray) -> float:
    """Return the share of the variance of places that noise leaves, which moves them.

    One less the mean squared displacement over the variance.
    """
    # Embeddings have near values at near places, those of a circle across 0, too.
    spread = ((before - before.mean(axis=0)) ** 2).sum()
    return float(1 - ((after - before) ** 2).sum() / spread)
