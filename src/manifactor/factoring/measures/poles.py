"""Whether a factor shrinks to a point somewhere, and has no places there."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial import KDTree

from manifactor.factoring.measures.measurement import Measurement
from manifactor.factoring.prediction import thinned


@dataclass(frozen=True)
class PoleSettings:
    """Settings of `poles`."""

    # Samples that are looked at.
    samples: int = 10_000
    # Neighbours of each: few, so that a circle is told from a point however short.
    n_neighbors: int = 10
    # Share of a factor's variance from which on neighbours lie all over it.
    all_over: float = 0.5


def poles(
    places: Sequence[np.ndarray], samples: np.ndarray, *, settings: PoleSettings = PoleSettings()
) -> Measurement:
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
    thin = thinned(len(samples), settings.samples)
    some = np.asarray(samples[thin], dtype=float)
    k = min(settings.n_neighbors, len(some) - 1)
    near = KDTree(some).query(some, k + 1)[1]
    counts = []
    for place in places:
        around = place[thin][near].var(axis=1, ddof=1).sum(axis=1)
        whole = place[thin].var(axis=0).sum()
        counts.append(int((around > settings.all_over * whole).sum()))
    return Measurement(max(counts) / k)
