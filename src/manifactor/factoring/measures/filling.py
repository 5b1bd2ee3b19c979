"""Whether the samples fill the product of the factors' ranges."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import ceil

import numpy as np

from manifactor.factoring.measures.measurement import Measurement
from manifactor.factoring.measures.placed_samples import PlacedSamples
from manifactor.factoring.prediction import thinned


@dataclass(frozen=True)
class FillingSettings:
    """Settings of `filling`."""

    # Samples that are counted. Of 4,000, neighbourhoods of `least_share` on two factors hold the
    # `expected` number, so that more samples would tell nothing new.
    samples: int = 4000
    # Combinations of places around which samples are counted.
    asked: int = 1000
    # Fewest samples that a neighbourhood would have if the factors were independent: by chance it
    # has a tenth of them or fewer in 1 of 10^7.
    expected: float = 24.0
    # Smallest share of the samples that are near on one factor. Places are in error by up to .08 of
    # a factor's length near its ends, where functions are flat.
    least_share: float = 0.08
    # Share of the expected samples below which a neighbourhood is empty: dependent samples of
    # density 1 + .6 u v have .4 of them where they are fewest.
    empty: float = 0.1


def filling(placed: PlacedSamples, *, settings: FillingSettings = FillingSettings()) -> Measurement:
    """Return the share of the product of the factors' ranges without any samples.

    Places on one factor are combined with those of other samples on another. Around each
    combination, samples are counted that are near on each factor, and compared with the number that
    independent factors would have there. A density that is a product, or moderately dependent,
    leaves no combination empty; a corner cut off or a hole does. The share is the largest over
    pairs of factors, and over all of them together.

    >>> from manifactor.factoring.measures.placed_samples import place_samples
    >>> square = np.random.default_rng(0).uniform(size=(4000, 2))
    >>> filling(place_samples(np.hsplit(square, 2), [1, 1], square)).value
    0.0
    >>> triangle = square[square.sum(axis=1) < 1]
    >>> filling(place_samples(np.hsplit(triangle, 2), [1, 1], triangle)).value > 0.05
    True
    """
    thin = thinned(placed.n_samples, settings.samples)
    places = [place[thin] for place in placed.places]
    n_asked = min(settings.asked, len(places[0]))
    # Always the same combinations, whatever the caller's random state.
    rng = np.random.default_rng(0)
    asked = [place[rng.permutation(len(place))[:n_asked]] for place in places]
    shares = []
    for size in {2, len(places)}:
        count = _count_near(len(places[0]), size, settings)
        near = [_near(p, at, count) for p, at in zip(places, asked, strict=True)]
        groups = combinations(near, size)
        shares += [_empty_share(group, settings) for group in groups]
    share = max(shares)
    return Measurement(share, float(np.sqrt(share * (1 - share) / n_asked)))


def _count_near(n: int, size: int, settings: FillingSettings) -> int:
    """Samples near on each of some factors, so that enough are near on all of them."""
    share = (settings.expected / n) ** (1 / size)
    return min(n, ceil(max(share, settings.least_share) * n))


def _empty_share(near: Sequence[np.ndarray], settings: FillingSettings) -> float:
    """Share of combinations around which no samples lie.

    `near` tells the samples, (m, n), that are near on each factor.
    """
    common = np.logical_and.reduce(near)
    n = common.shape[1]
    expected = n * np.prod([one.mean(axis=1) for one in near], axis=0)
    return float((common.sum(axis=1) <= settings.empty * expected).mean())


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
