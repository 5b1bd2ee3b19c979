"""Separability matrix to groups: Max-Cut and Max-k-Cut by semidefinite relaxation."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

# Random roundings of the relaxation's vectors; they cost next to nothing.
N_ROUNDINGS = 300
# Moves of the local search for each vertex.
TURNS_PER_VERTEX = 10
# For more than two groups: steps of the multipliers.
N_MULTIPLIER_STEPS = 60


@dataclass(frozen=True, repr=False)
class Cut:
    """Groups of vertices and how good they are."""

    # (n_vertices,): the group of each vertex; groups are numbered by their first vertex
    labels: np.ndarray
    objective: float  # weight of the edges between groups
    bound: float  # no grouping has more: the dual value of the relaxation

    def __repr__(self) -> str:
        sizes = np.bincount(self.labels).tolist()
        return f"Cut(sizes={sizes}, objective={self.objective:g}, bound={self.bound:g})"

    @property
    def gap(self) -> float:
        """Share of the bound that the grouping misses; 0 if it surely is the best."""
        if self.bound <= 0:
            return 0.0
        return max(0.0, 1 - self.objective / self.bound)


def max_cut(weights: np.ndarray, n_groups: int = 2, *, rng: np.random.Generator) -> Cut:
    """Divide vertices into groups with as much weight between groups as possible.

    The relaxation of Goemans and Williamson (1995), for more than two groups that of Frieze and
    Jerrum (1997), is solved by the coordinate method on low-rank factors (Wang, Chang and Kolter,
    2017). Of many random roundings the best are improved by a tabu search over single moves.

    Shapes: weights (n_vertices, n_vertices).
    """
    weights = np.asarray(weights, dtype=float)
    if not weights.any():
        return Cut(np.zeros(len(weights), dtype=int), 0.0, 0.0)
    vectors, bound = _relax(weights, n_groups, rng)
    rounded = _roundings(vectors, n_groups, rng)
    best_first = np.argsort([-cut_weight(weights, labels) for labels in rounded], kind="stable")
    searched = [_tabu_search(weights, rounded[i], n_groups) for i in best_first[:8]]
    winner = max(searched, key=lambda labels: cut_weight(weights, labels))
    objective = cut_weight(weights, winner)
    return Cut(_renumber(winner), objective, max(bound, objective))


def cut_weight(weights: np.ndarray, labels: np.ndarray) -> float:
    """Return the weight of the edges whose ends lie in different groups."""
    apart = labels[:, None] != labels
    return float(weights[apart].sum() / 2)


def _roundings(vectors: np.ndarray, n_groups: int, rng: np.random.Generator) -> np.ndarray:
    """Return different random groupings, (n_different, n_vertices)."""
    n, rank = vectors.shape
    directions = rng.standard_normal((rank, N_ROUNDINGS * n_groups))
    along = (vectors @ directions).reshape(n, N_ROUNDINGS, n_groups)
    return np.unique([_renumber(labels) for labels in along.argmax(axis=2).T], axis=0)


def _relax(
    weights: np.ndarray, n_groups: int, rng: np.random.Generator
) -> tuple[np.ndarray, float]:
    """Solve the relaxation and return its vectors, (n_vertices, rank)."""
    n = len(weights)
    # A solution of rank sqrt(2 n) exists (Barvinok 1995, Pataki 1998); a few more dimensions keep
    # the coordinate method out of local minima.
    rank = min(n, int(np.ceil(np.sqrt(2 * n))) + n_groups)
    vectors = rng.standard_normal((n, rank))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    if n_groups > 2:
        return _climb(weights, vectors, n_groups)
    # No inner product is below -1, so two groups need no multipliers.
    vectors = _descend(weights, vectors, sweeps=300)
    return vectors, _dual_bound(weights, vectors, np.zeros_like(weights), n_groups)


def _climb(weights: np.ndarray, vectors: np.ndarray, n_groups: int) -> tuple[np.ndarray, float]:
    """Enforce the lower limit of inner products by multipliers."""
    limit = -1 / (n_groups - 1)
    first_step = weights[weights > 0].mean()
    multipliers = np.zeros_like(weights)
    bound = np.inf
    for k in range(N_MULTIPLIER_STEPS):
        # The sweeps start from the vectors of the step before and need not converge.
        vectors = _descend(weights - multipliers, vectors, sweeps=20)
        bound = min(bound, _dual_bound(weights, vectors, multipliers, n_groups))
        step = first_step / np.sqrt(1 + k)
        below = limit - vectors @ vectors.T
        multipliers = np.maximum(0, multipliers + step * below)
        np.fill_diagonal(multipliers, 0)
    return vectors, bound


def _descend(weights: np.ndarray, vectors: np.ndarray, *, sweeps: int) -> np.ndarray:
    """Set each vector against the weighted sum of the others until nothing moves."""
    vectors = vectors.copy()
    for _ in range(sweeps):
        moved = 0.0
        for i in range(len(vectors)):
            pull = weights[i] @ vectors
            length = np.sqrt(pull @ pull)
            if length > 0:
                target = pull / -length
                change = np.abs(target - vectors[i]).max()
                moved = max(moved, float(change))
                vectors[i] = target
        if moved < 1e-7:
            break
    return vectors


def _dual_bound(
    weights: np.ndarray, vectors: np.ndarray, multipliers: np.ndarray, n_groups: int
) -> float:
    """Return a value that no grouping exceeds.

    It holds for any vectors and any multipliers that are not negative. With A = weights -
    multipliers, <A, X> >= sum y for all feasible X once A - diag(y) is positive semidefinite; y is
    read off the vectors and lowered until that holds.
    """
    shifted = weights - multipliers
    y = -np.linalg.norm(shifted @ vectors, axis=1)
    slack = shifted - np.diag(y)
    (lowest,) = eigh(slack, eigvals_only=True, subset_by_index=(0, 0))
    feasible = y.sum() + len(y) * min(0.0, lowest)
    inner = (feasible - multipliers.sum() / (n_groups - 1)) / 2
    apart = weights.sum() / 2 - inner
    return float((n_groups - 1) / n_groups * apart)


def _tabu_search(weights: np.ndarray, labels: np.ndarray, n_groups: int) -> np.ndarray:
    """Return the best grouping on a walk of the best single moves, which may make it worse."""
    labels = labels.copy()
    n = len(labels)
    # Turns in which a vertex that has moved stays where it is: a small graph must leave most of its
    # vertices free.
    tenure = min(n // 3, 10)
    vertices = np.arange(n)
    free_at = np.zeros(n, dtype=int)
    # Weight of each vertex towards each group.
    inside = weights @ np.eye(n_groups)[labels]
    value = best = cut_weight(weights, labels)
    winner = labels.copy()
    for turn in range(TURNS_PER_VERTEX * n):
        gain = inside[vertices, labels][:, None] - inside
        gain[vertices, labels] = -np.inf
        gain[free_at > turn] = -np.inf
        vertex, group = np.unravel_index(gain.argmax(), gain.shape)
        value += gain[vertex, group]
        inside[:, labels[vertex]] -= weights[:, vertex]
        inside[:, group] += weights[:, vertex]
        labels[vertex] = group
        free_at[vertex] = turn + 1 + tenure
        # Sums of many gains carry errors of rounding, and a walk in circles is not progress.
        if value > best + 1e-12 * (1 + best):
            best = value
            winner = labels.copy()
    return winner


def _renumber(labels: np.ndarray) -> np.ndarray:
    """Number the groups by their first vertex."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]
