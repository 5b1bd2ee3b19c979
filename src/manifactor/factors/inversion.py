"""Samples at places on the factors: local regression of samples on their places."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.spatial import KDTree
from sklearn.utils import gen_batches

from manifactor._support.parameters import Choice
from manifactor._support.values import quotient
from manifactor.factors.shapes import angle_of, on_circle, unit_vectors
from manifactor.statistics import local_weights, neighbour_sums, squares_left


@dataclass(frozen=True)
class PlaceSpace:
    """Places of samples on all factors, side by side, with distances between them.

    Distances on each factor are in units of the root mean square distance of its places from their
    mean, so that neighbourhoods are as wide on a short factor as on a long one. On a circle they
    are angles.
    """

    topologies: tuple[str, ...]  # of each factor: "interval", "circle" or "other"
    widths: tuple[int, ...]  # columns of each factor
    places: np.ndarray  # (n, sum of widths)

    @cached_property
    def units(self) -> list[float]:
        """Unit of length on each factor."""
        parts = self.columns(self.places)
        # A factor without extent has no unit of its own.
        return [float(np.sqrt(part.var(axis=0).sum())) or 1.0 for part in parts]

    @cached_property
    def tree(self) -> KDTree:
        """Search for neighbours among the places."""
        return KDTree(self._scaled(self.places))

    @property
    def n_slopes(self) -> int:
        """Directions in which a place can move: one on a circle."""
        pairs = zip(self.topologies, self.widths, strict=True)
        return sum(1 if topology == "circle" else width for topology, width in pairs)

    def nearest(self, at: np.ndarray, count: int) -> np.ndarray:
        """Return indices of the nearest places, the nearest first, (m, count)."""
        ranks = np.arange(1, count + 1)
        return self.tree.query(self._scaled(at), ranks)[1]

    def offsets(self, at: np.ndarray, near: np.ndarray) -> np.ndarray:
        """Return how neighbours lie from places, (m, n_slopes, k)."""
        around, centres = self.columns(self.places[near]), self.columns(at)
        parts = map(_offsets, self.topologies, around, centres, self.units)
        return np.concatenate(list(parts), axis=2).transpose(0, 2, 1)

    def inside(self, at: np.ndarray) -> np.ndarray:
        """Return places with intervals cut at their ends and circles of radius 1."""
        return np.hstack(list(map(_inside, self.topologies, self.columns(at))))

    def columns(self, table: np.ndarray) -> list[np.ndarray]:
        """Return the columns of each factor."""
        return np.split(table, np.cumsum(self.widths)[:-1], axis=-1)

    def typical(self) -> np.ndarray:
        """Return a typical place on each factor, (1, sum of widths)."""
        return np.hstack(list(map(_middle, self.topologies, self.columns(self.places))))[None]

    def _scaled(self, places: np.ndarray) -> np.ndarray:
        return places / np.repeat(self.units, self.widths)


def _middle(topology: str, places: np.ndarray) -> np.ndarray:
    """Return an interval's median, a circle's mean direction, a surface's place near its mean."""
    if topology == "interval":
        return np.median(places, axis=0)
    mean = places.mean(axis=0)
    if topology == "circle":
        return unit_vectors(mean[None])[0]
    return places[((places - mean) ** 2).sum(axis=1).argmin()]


def even_steps(topology: str, n_frames: int) -> np.ndarray:
    """Return places at even steps along an interval or a circle, (n_frames, width)."""
    if topology == "interval":
        return np.linspace(0, 1, n_frames)[:, None]
    return on_circle(2 * np.pi * np.arange(n_frames) / n_frames)


def _offsets(topology: str, there: np.ndarray, here: np.ndarray, unit: float) -> np.ndarray:
    """Return how neighbours, (m, k, c), lie from places, (m, c); by angles on a circle."""
    if topology != "circle":
        return (there - here[:, None]) / unit
    turns = (there @ [1, 1j]) * (here @ [1, -1j])[:, None]
    return np.angle(turns)[:, :, None] / unit


def _inside(topology: str, places: np.ndarray) -> np.ndarray:
    """Return places of one factor, moved to the nearest ones that there are."""
    if topology == "circle":
        return on_circle(angle_of(places))
    return np.clip(places, 0, 1) if topology == "interval" else places


def choose_window(space: PlaceSpace, values: np.ndarray) -> Choice:
    """Choose the number of samples in a window, by predicting samples left out.

    Shapes: values (n, q).
    """
    n, places = len(values), space.places
    # Few samples for each coefficient of the linear function where samples bend strongly, many
    # where noise is to be averaged. Near its minimum the error hardly depends on their number, so
    # that a ratio of 2 will do. Fewer than 4 follow single samples.
    counts = [factor * (space.n_slopes + 1) for factor in (4, 8, 16, 32, 64, 128)]
    # A fit to more than half of the samples would not be local; the smallest is taken in any case.
    most = max(counts[0], n // 2)
    left, total = squares_left(
        values,
        [min(count, n - 1) for count in counts if count <= most],
        lambda some, count: space.nearest(places[some], count),
        lambda some, near: _weights(space, places[some], near),
    )
    tried = ", ".join(f"{count}: {quotient(each, total):.2g}" for count, each in left.items())
    return Choice(
        min(left, key=left.__getitem__),
        "of samples left out, it predicts most (share of the variance not predicted, "
        f"by the number of neighbours: {tried})",
    )


def values_at(
    space: PlaceSpace, values: np.ndarray, at: np.ndarray, n_neighbors: int
) -> np.ndarray:
    """Return values at places, by local linear regression, (m, q).

    A linear function of the place is fitted to the values of the nearest samples, with tricube
    weights that fall to 0 at the farthest of them (Cleveland, 1979).

    Shapes: values (n, q), at (m, sum of widths).
    """
    at = space.inside(at)
    out = np.empty((len(at), values.shape[1]))
    for rows in gen_batches(len(at), 2000):
        near = space.nearest(at[rows], min(n_neighbors, len(values)))
        weights = _weights(space, at[rows], near)
        out[rows] = neighbour_sums(weights, near, values)[:, 0]
    return out


def _weights(space: PlaceSpace, at: np.ndarray, near: np.ndarray) -> np.ndarray:
    """Return the weights with which neighbours' values add up to a fit, (m, 1, k)."""
    offsets = space.offsets(at, near)
    distances = np.linalg.norm(offsets, axis=1)
    # Tricube weights; all samples are copies where the farthest is at the place itself.
    kernel = (1 - quotient(distances, distances.max(axis=1, keepdims=True)) ** 3) ** 3
    # Where all are equally far, none is nearer than another.
    kernel[kernel.sum(axis=1) == 0] = 1.0
    kernel = kernel[:, None]
    kernel = kernel / kernel.sum(axis=2, keepdims=True)
    return local_weights(offsets, 0.0, kernel, ridge=1e-3, reach=4.0)[0]
