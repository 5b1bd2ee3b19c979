"""Separability matrix to groups: Max-Cut and Max-k-Cut by low-rank semidefinite relaxation."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

N_ROUNDINGS = 300
N_SEARCHED = 8  # different best roundings that local search improves
SEARCH_TURNS = 10  # moves of the local search, times the number of vertices
MAX_SWEEPS = 300
MULTIPLIER_ROUNDS = 60


@dataclass(frozen=True)
class Cut:
    """Groups of vertices and how good they are.

    Attributes
    ----------
    labels : ndarray of shape (n_vertices,)
        The group of each vertex; groups are numbered by their first vertex.
    objective : float
        Weight of the edges between groups.
    bound : float
        No grouping has more: the dual value of the relaxation.
    """

    labels: np.ndarray
    objective: float
    bound: float

    @property
    def gap(self) -> float:
        """Share of the bound that the grouping misses, 0 when it is certainly the best."""
        return max(0.0, 1 - self.objective / self.bound) if self.bound > 0 else 0.0


def max_cut(weights: np.ndarray, n_groups: int = 2, *, rng: np.random.Generator) -> Cut:
    """Divide vertices into groups so that the weight of the edges between groups is as large as possible.

    The relaxation of Goemans and Williamson (1995), for more than two groups that of Frieze and Jerrum (1997), is
    solved by the coordinate method on low-rank factors (Wang, Chang and Kolter, 2017). Of many random
    roundings the best are improved by a tabu search over single moves.

    Parameters
    ----------
    weights : ndarray of shape (n_vertices, n_vertices)
        Symmetric, not negative, zero diagonal.
    n_groups : int
        At least 2.

    Examples
    --------
    >>> square = np.array([[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]])
    >>> max_cut(square, rng=np.random.default_rng(0)).labels
    array([0, 1, 0, 1])
    """
    weights = np.asarray(weights, dtype=float)
    n = len(weights)
    if not weights.any():
        return Cut(np.zeros(n, dtype=int), 0.0, 0.0)
    vectors, bound = _relax(weights, n_groups, rng)
    directions = rng.standard_normal((vectors.shape[1], N_ROUNDINGS * n_groups))
    labels = (vectors @ directions).reshape(n, N_ROUNDINGS, n_groups).argmax(axis=2)
    labels = np.unique([_renumbered(column) for column in labels.T], axis=0)
    best = np.argsort([-cut_weight(weights, row) for row in labels], kind="stable")[
        :N_SEARCHED
    ]
    searched = [_tabu_search(weights, labels[i], n_groups) for i in best]
    values = [cut_weight(weights, row) for row in searched]
    winner = searched[int(np.argmax(values))]
    return Cut(_renumbered(winner), float(max(values)), max(bound, float(max(values))))


def cut_weight(weights: np.ndarray, labels: np.ndarray) -> float:
    """Weight of the edges whose ends lie in different groups."""
    return float(weights[labels[:, None] != labels].sum() / 2)


def _relax(weights: np.ndarray, n_groups: int, rng) -> tuple[np.ndarray, float]:
    """Unit vectors that minimise the sum of weights times inner products, none below -1/(n_groups - 1); dual bound.

    For two groups the limit always holds. For more, multipliers enforce it: they climb the dual in shrinking steps, and
    the best bound on the way is kept.
    """
    n = len(weights)
    rank = min(n, int(np.ceil(np.sqrt(2 * n))) + n_groups)
    vectors = rng.standard_normal((n, rank))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    multipliers = np.zeros_like(weights)
    if n_groups == 2:
        vectors = _descend(weights, vectors, MAX_SWEEPS)
        return vectors, _dual_bound(weights, vectors, multipliers, n_groups)
    limit, step, bound = -1 / (n_groups - 1), weights[weights > 0].mean(), np.inf
    for k in range(MULTIPLIER_ROUNDS):
        vectors = _descend(weights - multipliers, vectors, 20)
        bound = min(bound, _dual_bound(weights, vectors, multipliers, n_groups))
        multipliers = np.maximum(
            0, multipliers + step / np.sqrt(1 + k) * (limit - vectors @ vectors.T)
        )
        np.fill_diagonal(multipliers, 0)
    return vectors, bound


def _descend(weights: np.ndarray, vectors: np.ndarray, sweeps: int) -> np.ndarray:
    """Set one vector after the other against the weighted sum of its neighbours, until nothing moves."""
    vectors = vectors.copy()
    for _ in range(sweeps):
        moved = 0.0
        for i in range(len(vectors)):
            pull = weights[i] @ vectors
            length = np.sqrt(pull @ pull)
            if length > 0:
                target = pull / -length
                moved = max(moved, float(np.abs(target - vectors[i]).max()))
                vectors[i] = target
        if moved < 1e-7:
            break
    return vectors


def _dual_bound(
    weights: np.ndarray, vectors: np.ndarray, multipliers: np.ndarray, n_groups: int
) -> float:
    """A value that no grouping exceeds, from any vectors and any multipliers that are not negative.

    With A = weights - multipliers, <A, X> >= sum y for all feasible X once A - diag(y) is positive semidefinite; y is
    read off the vectors and lowered until that holds.
    """
    shifted = weights - multipliers
    y = -np.linalg.norm(shifted @ vectors, axis=1)
    lowest = eigh(shifted - np.diag(y), eigvals_only=True, subset_by_index=(0, 0))[0]
    inner = (
        y.sum() + len(y) * min(0.0, lowest) - multipliers.sum() / (n_groups - 1)
    ) / 2
    return float((n_groups - 1) / n_groups * (weights.sum() / 2 - inner))


def _tabu_search(weights: np.ndarray, labels: np.ndarray, n_groups: int) -> np.ndarray:
    """The best grouping on a walk of single moves, each the best one of a vertex that has not moved lately."""
    labels, n = labels.copy(), len(labels)
    inside = (
        weights @ np.eye(n_groups)[labels]
    )  # weight of each vertex towards each group
    vertices, free_at = np.arange(n), np.zeros(n, dtype=int)
    value = best = cut_weight(weights, labels)
    winner = labels.copy()
    for turn in range(SEARCH_TURNS * n):
        gain = inside[vertices, labels][:, None] - inside
        gain[vertices, labels] = -np.inf
        gain[free_at > turn] = -np.inf
        vertex, group = np.unravel_index(gain.argmax(), gain.shape)
        value += gain[vertex, group]
        inside[:, labels[vertex]] -= weights[:, vertex]
        inside[:, group] += weights[:, vertex]
        labels[vertex], free_at[vertex] = group, turn + 1 + min(n // 3, 10)
        if value > best + 1e-12 * (1 + best):
            best, winner = value, labels.copy()
    return winner


def _renumbered(labels: np.ndarray) -> np.ndarray:
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]
