"""A metric of the samples' own: lengths in units of local moves, and neighbours by these lengths.

Latents that diffuse independently of each other move a sample x by J(x) du, so that the covariance
of moves is C(x) = J S J' with S diagonal. Lengths dx' C^-1 dx are those of the latents, whatever
the map from them to the samples (Singer and Coifman, 2008).
"""

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from scipy.spatial import KDTree
from sklearn.base import clone
from sklearn.utils import gen_batches

from manifactor._support.errors import Warned
from manifactor._support.parameters import Choice
from manifactor._support.threads import map_panels
from manifactor.operators.engines.gpu import sparse_rows
from manifactor.operators.engines.searches import NeighborSearch
from manifactor.samples.preparation import Preparation

# Of the smallest variance of moves: what is added to the covariance in all directions. Without it,
# any displacement off the directions of moves would be infinitely long.
FLOOR = 0.1
# Share of a squared displacement along the directions of moves that a curved manifold may add to it
# across them: as much as where tangents turn by 60 degrees from one end to the other.
CURVED = 0.33
# Nearest samples by plain distance among which the neighbours by the metric are looked for. A map
# that stretches one direction 8 times as much as the other still has its 64 neighbours among them.
CANDIDATES = 512
# Share of the samples at either end of an interval that may be stray.
STRAY = 0.002
# Pairs of samples whose lengths are computed at once.
PAIRS_AT_ONCE = 2**14


@dataclass(frozen=True)
class Flat:
    """Places of samples whose distances are those of a flat manifold."""

    # (n, c): along one interval after the other, then in the planes of circles, about their middle
    places: np.ndarray
    frames: np.ndarray  # (n, c, p): how places change along the samples
    n_lines: int  # intervals

    def chosen(self, rows: np.ndarray) -> "Flat":
        """Return some of them."""
        return Flat(self.places[rows], self.frames[rows], self.n_lines)

    @property
    def angles(self) -> np.ndarray:
        """Angles that run through a factor once, or through half of a turn on an interval."""
        lines, rings = np.split(self.places, [self.n_lines], axis=1)
        low, high = np.quantile(lines, [STRAY, 1 - STRAY], axis=0)
        along = np.pi * np.clip((lines - low) / (high - low), 0, 1)
        return np.column_stack([along, np.arctan2(rings[:, 1::2], rings[:, ::2])])

    def steps(self, own: np.ndarray, moves: np.ndarray) -> np.ndarray:
        """Return by how much places change with small moves (m, p) from some samples, (m, c)."""
        return np.einsum("mcp,mp->mc", self.frames[own], moves)


@dataclass(frozen=True)
class LocalMetric:
    """Local covariances of moves at every sample, of low rank."""

    axes: np.ndarray  # (n, p, q): orthonormal columns, the directions that moves have
    scales: np.ndarray  # (n, q): standard deviations of moves along them
    floor: float = 0.0  # variance that measurement noise adds to displacements
    flat: Flat | None = None  # what distances are taken in, if it is known

    @classmethod
    def of_roots(cls, roots: np.ndarray, floor: float = 0.0) -> "LocalMetric":
        """Return the metric of covariances R R', given their roots R, (n, p, q)."""
        axes, scales, _ = np.linalg.svd(roots, full_matrices=False)
        # A direction without any move has no length; it is as short as rounding allows.
        least = 1e-4 * np.median(scales[:, 0])
        return cls(axes, np.maximum(scales, least), floor)

    def chosen(self, rows: np.ndarray) -> "LocalMetric":
        """Return the metric at some of the samples."""
        flat = None if self.flat is None else self.flat.chosen(rows)
        return LocalMetric(self.axes[rows], self.scales[rows], self.floor, flat)

    def mapped(self, components: np.ndarray) -> "LocalMetric":
        """Return the metric of samples after a linear map x -> x @ components, (p, c)."""
        roots = np.einsum("pc,npq,nq->ncq", components, self.axes, self.scales, optimize=True)
        return LocalMetric.of_roots(roots, self.floor)

    def whitened(self, moves: np.ndarray) -> np.ndarray:
        """Return displacements from every sample, (n, k, p), times the inverse root of C.

        The symmetric root: its frame turns no faster than the manifold does, so that gradients of
        neighbouring samples can be averaged. Axes of C change their sign and order.
        """
        inside = (moves @ self.axes) / self.scales[:, None]
        return inside @ self.axes.transpose(0, 2, 1)

    def along(self, i: np.ndarray, moves: np.ndarray) -> np.ndarray:
        """Return moves (r, p) from samples i without noise across the manifold, if there is any."""
        if not self.floor:
            return moves
        axes = self.axes[i]
        return (axes @ (axes.transpose(0, 2, 1) @ moves[:, :, None]))[:, :, 0]

    def squared_lengths(self, i: np.ndarray, j: np.ndarray, moves: np.ndarray) -> np.ndarray:
        """Return the squared lengths of moves (r, p) from sample i to j, by the mean of both C.

        With lengths of J of 1 + a and 1 - a at both ends, the mean of C is off by -a^2 of a square,
        that of the inverses by 3 a^2. A chord lies in the mean of the tangents of its ends; one
        that the directions of one end do not have leads to another sheet.
        """
        roots = [self.axes[end] * self.scales[end][:, None] for end in (i, j)]
        both = np.concatenate(roots, axis=2) / np.sqrt(2)
        least = np.minimum(self.scales[i].min(axis=1), self.scales[j].min(axis=1))
        floor = FLOOR * least**2 + self.floor
        # Woodbury: the inverse of a matrix of low rank plus the floor.
        inner = both.transpose(0, 2, 1) @ both
        inner += floor[:, None, None] * np.eye(inner.shape[1])
        along = (moves[:, None] @ both)[:, 0]
        solved = np.linalg.solve(inner, along[:, :, None])[:, :, 0]
        square = np.einsum("rp,rp->r", moves, moves)
        left = square - np.einsum("rd,rd->r", along, solved)
        # Where sheets cross, a chord between them lies in the mean of both tangents, but not in
        # each of them.
        tangent = [np.einsum("rp,rpq->rq", moves, self.axes[end]) ** 2 for end in (i, j)]
        inside = np.minimum(*(each.sum(axis=1) for each in tangent))
        left = left + np.maximum(square - (1 + CURVED) * inside, 0)
        # Rounding must not make copies of samples that differ.
        return np.maximum(left, 1e-14 * square) / floor

    def squares_at(self, i: np.ndarray, moves: np.ndarray) -> np.ndarray:
        """Return the squared lengths of moves (r, k, p) by C at samples i alone, roughly."""
        along = (moves @ self.axes[i]) ** 2
        tangent = along.sum(axis=2)
        across = np.einsum("rkp,rkp->rk", moves, moves) - (1 + CURVED) * tangent
        least = FLOOR * self.scales[i].min(axis=1) ** 2 + self.floor
        inside = (along / self.scales[i][:, None] ** 2).sum(axis=2)
        return inside + np.maximum(across, 0) / least[:, None]


@dataclass(frozen=True)
class Measured:
    """What moves tell of the samples."""

    samples: np.ndarray  # (n, p): prepared, without noise across the manifold
    metric: LocalMetric | None = None
    choices: dict[str, Choice] = field(default_factory=dict)
    path: Any = None  # moves of the prepared samples, by which factors are tested
    warned: tuple[Warned, ...] = ()

    @property
    def time(self) -> float:
        """Time of a step, burst or lag, in the caller's units; nan where no moves are known."""
        if self.path is None:
            return float("nan") if self.metric is None else 1.0
        return self.path.time


class MeasuresMoves(Protocol):
    """Moves of samples, as `models.moves.paths` has them."""

    def measured(self, samples: np.ndarray, preparation: Preparation | None) -> Measured:
        """Return prepared samples with what the moves tell of them."""
        ...


class MetricSearch(NeighborSearch):
    """Neighbours by the metric at the nearest sample, among the nearest by plain distance."""

    def __init__(self, n_neighbors: int, metric: Any, candidates: NeighborSearch) -> None:
        """Store the metric at the samples of the fit, and a search for candidates."""
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.candidates = candidates

    @property
    def recall_(self) -> float:  # type: ignore[override]
        """Share of the candidates that were found."""
        return self.candidates.recall_

    def among(self, rows: np.ndarray) -> "MetricSearch":
        """Return a search among some of the samples, not fitted."""
        return MetricSearch(self.n_neighbors, self.metric.chosen(rows), clone(self.candidates))

    def fit(self, X, y=None) -> "MetricSearch":
        """Index the samples, (n_samples, n_features)."""
        self.samples_ = X
        flat = self.metric.flat
        self.tree_ = None if flat is None else KDTree(flat.places)
        self.candidates.n_neighbors = min(1 if flat else CANDIDATES, len(X) - 1)
        self.candidates.fit(X)
        return self

    def transform(self, X) -> sp.csr_array:
        """Return distances to `n_neighbors` + 1 samples, (n_queries, n_samples)."""
        # In blocks: there are many candidates.
        found = map_panels(lambda rows: self._around(X[rows]), len(X), smallest=256, largest=1024)
        distances, indices = map(np.concatenate, zip(*found, strict=True))
        return sparse_rows(distances, indices, len(self.samples_))

    def _around(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return distances and indices of the neighbours of samples, (n, k), in any order."""
        found = self.candidates.transform(X)
        near = found.indices.reshape(len(X), -1)
        plain = found.data.reshape(near.shape)
        own = np.take_along_axis(near, plain.argmin(axis=1)[:, None], 1)[:, 0]
        if self.tree_ is not None:
            flat, count = self.metric.flat, min(self.n_neighbors + 1, len(self.samples_))
            places = flat.places[own] + flat.steps(own, X - self.samples_[own])
            return self.tree_.query(places, count)
        X = self.samples_[own] + self.metric.along(own, X - self.samples_[own])
        count = min(self.n_neighbors + 1, near.shape[1])
        if 2 * count < near.shape[1]:
            rough = self.metric.squares_at(own, self.samples_[near] - X[:, None])
            (near,) = _smallest(2 * count, rough, near)
        squares = self._exact(X, own, near)
        near, squares = _smallest(count, squares, near, squares)
        return np.sqrt(squares), near

    def _exact(self, X: np.ndarray, own: np.ndarray, near: np.ndarray) -> np.ndarray:
        """Return squared lengths to samples near each, (n, k), some pairs at a time."""
        squares = np.empty(near.shape)
        for rows in gen_batches(len(X), max(1, PAIRS_AT_ONCE // near.shape[1])):
            some = near[rows]
            moves = (self.samples_[some] - X[rows, None]).reshape(some.size, -1)
            ends = np.repeat(own[rows], some.shape[1]), some.ravel()
            squares[rows] = self.metric.squared_lengths(*ends, moves).reshape(some.shape)
        return squares


def _smallest(count: int, keys: np.ndarray, *arrays: np.ndarray) -> list[np.ndarray]:
    """Return the entries of arrays, (n, k), with the smallest keys in each row, (n, count)."""
    kept = np.argpartition(keys, count - 1, axis=1)[:, :count]
    return [np.take_along_axis(each, kept, 1) for each in arrays]
