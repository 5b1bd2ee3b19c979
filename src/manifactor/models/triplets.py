"""The paper's algorithm: triplets, separability, maximum cut to groups of functions.

Triplets say which functions are products of which (Algorithm 1).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.csgraph import connected_components

from manifactor._support.threads import map_threads, one_blas_thread
from manifactor.operators.laplacian import Spectrum

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


# Bytes of products that are formed at a time: they stay in the cache.
PRODUCT_BYTES = 4 * 2**20


@dataclass(frozen=True, repr=False)
class Triplets:
    """Functions recognised as products of lower functions, and how similar they are."""

    products: np.ndarray  # (n_triplets,): index of the product function in the spectrum
    # (n_triplets, max_parts): indices of the functions it is the product of, padded with -1
    parts: np.ndarray
    # (n_triplets,): absolute cosine between the product function and the product of its parts
    similarity: np.ndarray

    def __len__(self) -> int:
        return len(self.products)

    def __repr__(self) -> str:
        if not len(self):
            return "Triplets(no products)"
        noun = "product" if len(self) == 1 else "products"
        low, high = self.similarity.min(), self.similarity.max()
        return (
            f"Triplets({len(self)} {noun} of up to {self.parts.shape[1]} functions, "
            f"similarity {low:.3f} to {high:.3f})"
        )

    def separability(self, *, exclude: Sequence[int] = ()) -> tuple[np.ndarray, np.ndarray]:
        """Return the evidence that two functions belong to different factors.

        Returns functions (n_parts,), separability (n_parts, n_parts).
        """
        size = int(self.parts.max(initial=0)) + 1
        matrix = np.zeros((size, size))
        for two in combinations(self.parts.T, 2):
            pair = np.array(two)
            both = (pair >= 0).all(axis=0)
            np.maximum.at(matrix, tuple(pair[:, both]), self.similarity[both])
        matrix = np.maximum(matrix, matrix.T)
        present = self.parts[self.parts >= 0]
        functions = np.setdiff1d(present, np.asarray(exclude, dtype=int))
        occurring = matrix[np.ix_(functions, functions)].any(axis=1)
        functions = functions[occurring]
        return functions, matrix[np.ix_(functions, functions)]


def find_triplets(
    spectrum: Spectrum, *, tolerance: float | np.ndarray, threshold: float, max_parts: int = 2
) -> Triplets:
    """Find for every function the most similar product of lower ones, if any.

    A product has 2 to `max_parts` parts and passes both criteria. A function that is itself
    recognised as a product is never a part.

    Shapes: tolerance (n_functions,).
    """
    found = _candidates(spectrum, tolerance, threshold, max_parts)
    matched: dict[int, int] = {}
    # The lowest product first, and of each the best candidate.
    for candidate in np.lexsort((-found.similarity, found.products)):
        product = int(found.products[candidate])
        # Once matched, a function is a part no more.
        if not matched.keys() & {product, *found.parts[candidate].tolist()}:
            matched[product] = int(candidate)
    chosen = np.array(list(matched.values()), dtype=int)
    return Triplets(found.products[chosen], found.parts[chosen], found.similarity[chosen])


def _candidates(
    spectrum: Spectrum, tolerance: float | np.ndarray, threshold: float, max_parts: int
) -> Triplets:
    """Return all combinations that pass both criteria, any number of them for each product."""
    eigenvalues = spectrum.eigenvalues
    tolerance = np.broadcast_to(np.asarray(tolerance, dtype=float), eigenvalues.shape)
    # Similarities need four digits, so single precision will do.
    functions = np.ascontiguousarray(spectrum.functions.T, dtype=np.float32)
    # The plain inner products of these are the weighted ones.
    rooted = functions * np.sqrt(spectrum.weights).astype(np.float32)

    def similar(block: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        total = eigenvalues[block].sum(axis=1)
        # The products that any of these sums, which ascend, can reach.
        high_enough = eigenvalues > total[0] - tolerance
        reached = np.flatnonzero(high_enough & (eigenvalues < total[-1] + tolerance))
        band = slice(reached[0], reached[-1] + 1) if len(reached) else slice(0, 0)
        product = rooted[block[:, 0]]
        for column in block.T[1:]:
            product *= functions[column]
        norm = np.sqrt(np.einsum("px,px->p", product, product))
        # The absolute cosine of each product with each function: eigenfunctions have no sign.
        similarity = np.abs(product @ rooted[band].T) / norm[:, None]
        near = np.abs(total[:, None] - eigenvalues[band]) < tolerance[band]
        above = block[:, -1:] < np.arange(len(eigenvalues))[band]
        which, k = np.nonzero((similarity > threshold) & near & above)
        parts = np.full((len(which), max_parts), -1)
        parts[:, : block.shape[1]] = block[which]
        return k + band.start, parts, similarity[which, k]

    limit = (eigenvalues + tolerance).max()
    # A matrix product of fewer than 8 rows is slow.
    length = max(8, PRODUCT_BYTES // functions[0].nbytes)
    # One thread for each block: its matrix products are too small for threads of BLAS.
    with one_blas_thread():
        found = map_threads(similar, [*_blocks(eigenvalues, max_parts, limit, length)])
    none = (np.empty(0, dtype=int), np.empty((0, max_parts), dtype=int), np.empty(0))
    return Triplets(*map(np.concatenate, zip(none, *found, strict=True)))


def _combinations_below(eigenvalues: np.ndarray, size: int, limit: float) -> np.ndarray:
    """Return combinations of functions, (n, size), whose eigenvalues sum to less than `limit`."""
    found = np.arange(1, len(eigenvalues))[:, None]
    for _ in range(size - 1):
        room = limit - eigenvalues[found].sum(axis=1)
        last = found[:, -1]
        end = np.searchsorted(eigenvalues, room)
        count = np.maximum(0, end - last - 1)
        offset = np.cumsum(count) - count
        start = np.repeat(last + 1 - offset, count)
        following = start + np.arange(count.sum())
        found = np.column_stack([np.repeat(found, count, axis=0), following])
    return found


def _blocks(
    eigenvalues: np.ndarray, max_parts: int, limit: float, length: int
) -> Iterator[np.ndarray]:
    """Yield combinations in order of their eigenvalue sums, a few at a time."""
    for size in range(2, max_parts + 1):
        below = _combinations_below(eigenvalues, size, limit)
        total = eigenvalues[below].sum(axis=1)
        order = np.argsort(total, kind="stable")
        for first in range(0, len(order), length):
            yield below[order[first : first + length]]


@dataclass(frozen=True)
class Grouping:
    """Groups of functions, one for each factor."""

    triplets: Triplets
    # Indices of functions; empty where nothing can be separated
    groups: tuple[np.ndarray, ...] = ()
    cut: Cut | None = None
    # Unconnected pieces of the graph of functions that occur in a product together
    n_pieces: int = 0
    why_none: str = ""  # why nothing can be separated, "" if there are groups


def group_functions(
    spectrum: Spectrum,
    *,
    n_groups: int | None,
    tolerance: float | None,
    threshold: float | None,
    exclude: Sequence[int] = (),
    rng: np.random.Generator,
) -> Grouping:
    """Return groups of functions whose products are functions, too.

    Without a tolerance, a product's eigenvalue may miss the sum of its parts' by a tenth of its
    own; without a threshold, it is the paper's gamma.
    """
    allowed = 0.1 * spectrum.eigenvalues if tolerance is None else np.asarray(tolerance)
    similar = 0.7 if threshold is None else threshold
    triplets = find_triplets(
        spectrum, tolerance=allowed, threshold=similar, max_parts=n_groups or 2
    )
    functions, separability = triplets.separability(exclude=exclude)
    # Triplets whose functions are all excluded separate nothing.
    if not separability.any():
        why = _why_no_triplet(spectrum, triplets, allowed, similar)
        return Grouping(triplets, why_none=why)
    cut = _cut(separability, n_groups, rng)
    n_found = cut.labels.max() + 1
    return Grouping(
        triplets,
        groups=tuple(functions[cut.labels == label] for label in range(n_found)),
        cut=cut,
        n_pieces=int(connected_components(separability, directed=False)[0]),
    )


def _cut(separability: np.ndarray, n_groups: int | None, rng: np.random.Generator) -> Cut:
    """Maximum cut into as many groups as asked for, or as are needed, at most 5."""
    if n_groups is not None:
        return max_cut(separability, n_groups, rng=rng)
    # Each pair counts twice in the symmetric matrix.
    enough = 0.95 * separability.sum() / 2
    for count in range(2, 6):
        cut = max_cut(separability, count, rng=rng)
        if cut.objective >= enough:
            break
    return cut


def _why_no_triplet(
    spectrum: Spectrum, triplets: Triplets, tolerance: np.ndarray, threshold: float
) -> str:
    """Why nothing can be separated, and what the nearest triplet would have needed."""
    if len(triplets):
        return (
            f"all {len(triplets)} triplets have excluded functions; what `exclude` "
            "leaves is one factor"
        )
    best = _candidates(spectrum, tolerance, 0.0, 2).similarity.max(initial=0.0)
    count = len(spectrum.eigenvalues) - 1
    if best == 0:
        return (
            f"no two of the {count} functions have eigenvalues that add up to a "
            "third's within `eigenvalue_tolerance`; raise it or `n_functions`"
        )
    return (
        f"none of the {count} functions is the product of lower ones; the most similar "
        f"reaches {best:.2f} where `similarity_threshold` asks for {threshold:.2f}; "
        "lower it, raise `eigenvalue_tolerance` or add samples"
    )
