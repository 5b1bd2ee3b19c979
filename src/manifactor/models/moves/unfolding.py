"""Flat coordinates of samples with a metric: where all factors are curves, one map has them all.

With frames A that turn from one sample to the next as coordinates do, neighbours i and j differ by
(A_i + A_j) (x_j - x_i) / 2. Places start from distances along the neighbour graph; then frames and
places are found in turn, as rigid as possible (Sorkine and Alexa, 2007).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, dijkstra, laplacian
from scipy.sparse.linalg import cg

from manifactor._support.errors import NothingFoundError
from manifactor._support.parameters import Choice
from manifactor.operators.engines.gpu import with_data
from manifactor.operators.metric import Flat, LocalMetric
from manifactor.operators.neighbors import NeighborGraph, row_of
from manifactor.operators.operator import Operator
from manifactor.operators.pipeline import search_neighbors, walk_on

# Samples that flat places are sought of: 10,000 take 15 s.
MOST_UNFOLDED = 20_000

# Error of a step, relative to its length, at which it counts for a quarter: those between sheets
# are off by their own length and more, others by .1.
STEP_ERROR = 0.3


def unfold(
    samples: np.ndarray,
    metric: LocalMetric,
    graph: NeighborGraph,
    dimension: int,
    angles: Sequence[np.ndarray],
) -> LocalMetric | None:
    """Return the metric of flat places of samples, (n, p); None if circles are not orthogonal.

    `angles` are those of the circles, (n,) each; all other factors are intervals.
    """
    rows, inverse = graph.distinct, graph.inverse
    pairs = _pairs(samples[rows], metric.chosen(rows), graph, [each[rows] for each in angles])
    # Pairs with few common neighbours may lie on sheets that touch.
    known = (pairs.common > 0.25) & ~pairs.crossing
    for n_turns in (10, 10, 25):
        start = _by_distances(pairs, known, dimension)
        places, frames, ways, error = _rigid(pairs, start, known, n_turns)
        known = (error < STEP_ERROR**2) & ~pairs.crossing
    rolled = _roll_up(places, frames, ways)
    if rolled is None:
        return None
    places, frames = (each[inverse] for each in rolled)
    inside = frames / metric.scales[:, None]
    frames = inside @ metric.axes.transpose(0, 2, 1)
    return replace(metric, flat=Flat(places, frames, dimension - len(angles)))


@dataclass(frozen=True)
class _Pairs:
    """Pairs of samples near each other, each in both orders."""

    i: np.ndarray  # (e,)
    j: np.ndarray  # (e,)
    length: np.ndarray  # (e,)
    moves: tuple[np.ndarray, np.ndarray]  # (e, q): from i to j, in the frames of both
    common: np.ndarray  # (e,): share of common neighbours
    jumps: np.ndarray  # (e, c): by how many turns angles jump between the two

    @property
    def crossing(self) -> np.ndarray:
        """Whether the angle of a circle jumps."""
        return np.any(self.jumps != 0, axis=1)

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return int(self.i[-1]) + 1

    def table(self, values: np.ndarray) -> sp.csr_array:
        """Return a value of each pair as a matrix of samples."""
        return sp.csr_array((values, (self.i, self.j)), shape=(self.n_samples,) * 2)

    def sums(self, weights: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return the weighted sums of values, (e, ...), of the pairs that start at each sample."""
        starting = sp.csr_array((weights, (self.i, np.arange(len(self.i)))))
        return (starting @ values.reshape(len(values), -1)).reshape(-1, *values.shape[1:])


def _pairs(
    samples: np.ndarray, metric: LocalMetric, graph: NeighborGraph, angles: Sequence[np.ndarray]
) -> _Pairs:
    """Return each of some samples with the 24 nearest of them."""
    distances = sp.csr_array(graph.distances)
    row = row_of(distances)
    order = np.lexsort((distances.data, row))
    some = order[np.arange(distances.nnz) - distances.indptr[row] < 24]
    entries = (distances.data[some], (row[some], distances.indices[some]))
    near = sp.csr_array(entries, shape=distances.shape)
    near = sp.csr_array(near.maximum(near.T))
    i, j = row_of(near), near.indices
    linked = sp.csr_array(with_data(near, np.ones(near.nnz)) + sp.eye_array(len(samples)))
    count = linked.sum(axis=1)
    common = np.asarray((linked @ linked)[i, j]).ravel() / np.minimum(count[i], count[j])
    steps = samples[j] - samples[i]
    moves = [np.einsum("ep,epq->eq", steps, metric.axes[k]) / metric.scales[k] for k in (i, j)]
    turns = [np.round((each[i] - each[j]) / (2 * np.pi)) for each in angles]
    jumps = np.column_stack([np.zeros((len(i), 0)), *turns])
    return _Pairs(i, j, near.data, (moves[0], moves[1]), common, jumps)


def _by_distances(pairs: _Pairs, known: np.ndarray, dimension: int) -> np.ndarray:
    """Return places by distances along pairs from some samples, (n, d): those of an Isomap."""
    graph = pairs.table(np.where(known, pairs.length, 0.0))
    graph.eliminate_zeros()
    label = connected_components(graph, directed=False)[1]
    lost = label != np.bincount(label).argmax()
    # The way to samples that no right pair leads to is long.
    doubtful = (lost[pairs.i] | lost[pairs.j]) & ~pairs.crossing
    graph = graph.maximum(pairs.table(np.where(doubtful, 3 * pairs.length, 0.0)))
    farthest, marks, squares = np.where(lost, -1.0, np.inf), [], []
    for _ in range(60):
        marks.append(int(farthest.argmax()))
        far = dijkstra(graph, directed=False, indices=marks[-1])
        far = np.minimum(far, far[np.isfinite(far)].max())
        farthest = np.minimum(farthest, far)
        squares.append(far**2)
    table = np.array(squares)
    mean = table[:, marks].mean(axis=1)
    inner = -0.5 * (table[:, marks] - mean - mean[:, None] + mean.mean())
    values, axes = (each[..., : -dimension - 1 : -1] for each in np.linalg.eigh(inner))
    return -0.5 * (table - mean[:, None]).T @ axes / np.sqrt(np.maximum(values, 1e-9 * values[0]))


def _rigid(
    pairs: _Pairs, places: np.ndarray, known: np.ndarray, n_turns: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return places, frames (n, d, q), ways round circles (c, d), and errors of the pairs."""
    weights, last = known.astype(float), np.inf
    n, c = len(places), pairs.jumps.shape[1]
    ways, lead = np.zeros((c, places.shape[1])), np.zeros((n, c))
    for turn in range(n_turns):
        apart = places[pairs.j] - places[pairs.i] + pairs.jumps @ ways
        joint = pairs.sums(weights, apart[:, :, None] * pairs.moves[0][:, None])
        left, _, right = np.linalg.svd(joint, full_matrices=False)
        frames = left @ right
        both = zip((pairs.i, pairs.j), pairs.moves, strict=True)
        steps = sum(np.einsum("edq,eq->ed", frames[k], moves) for k, moves in both) / 2
        if not turn and c:
            ways = np.linalg.lstsq(pairs.jumps, steps - apart, rcond=None)[0]
            apart += pairs.jumps @ ways
        error = ((apart - steps) ** 2).sum(axis=1) / pairs.length**2
        weights = 1 / (1 + error / STEP_ERROR**2) ** 2
        matrix = laplacian(pairs.table(weights)) + 1e-9 * sp.eye_array(n)
        places, free = _potential(pairs, matrix, weights, steps, places)
        if c:
            # A turn round a circle comes back elsewhere.
            lead, own = _potential(pairs, matrix, weights, pairs.jumps, lead)
            root = np.sqrt(weights)[:, None]
            ways = np.linalg.lstsq(root * own, root * free, rcond=None)[0]
            places = places - lead @ ways
        size = float((weights * error).sum() / weights.sum())
        if abs(last - size) < 1e-3 * size:
            break
        last = size
    return places, frames, ways, error


def _potential(
    pairs: _Pairs, matrix: sp.csr_array, weights: np.ndarray, steps: np.ndarray, start: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the places whose differences are nearest to steps, (e, d), and what these leave."""
    target = -pairs.sums(weights, steps)
    target -= target.mean(axis=0)
    scale = sp.diags_array(1 / matrix.diagonal())
    columns = [
        cg(matrix, b, x0=x, rtol=1e-4, maxiter=500, M=scale)[0]
        for b, x in zip(target.T, start.T, strict=True)
    ]
    places = np.column_stack(columns)
    places -= places.mean(axis=0)
    return places, steps - (places[pairs.j] - places[pairs.i])


def _roll_up(
    places: np.ndarray, frames: np.ndarray, ways: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return places and frames with circles closed, in a plane for each, all lengths kept."""
    lengths = np.linalg.norm(ways, axis=1)
    units = ways / lengths[:, None]
    # A circle of radius 0 has no direction: its cosines are nan. Oblique ways are no factors.
    if not np.abs(units @ units.T - np.eye(len(ways))).max(initial=0) <= 0.2:
        return None
    others = np.linalg.svd(ways)[2][len(ways) :]
    others = _axes(places @ others.T).T @ others
    parts, slopes = [places @ others.T], [others @ frames]
    for turn, length in zip(np.linalg.pinv(ways).T, lengths, strict=True):
        angle, along = 2 * np.pi * places @ turn, length * turn @ frames
        ring = np.column_stack([np.cos(angle), np.sin(angle)])
        tangent = np.column_stack([-np.sin(angle), np.cos(angle)])
        parts.append(length / (2 * np.pi) * ring)
        slopes.append(tangent[:, :, None] * along[:, None])
    return np.hstack(parts), np.concatenate(slopes, axis=1)


def _axes(places: np.ndarray) -> np.ndarray:
    """Return the axes of the smallest box around most of the places, (d, d), one a column."""
    d, rng = places.shape[1], np.random.default_rng(0)
    turns = np.arange(90) * np.pi / 180
    turned = np.stack([[np.cos(turns), np.sin(turns)], [-np.sin(turns), np.cos(turns)]])
    best, least = np.eye(d), np.inf
    # From some random axes, two axes are turned at a time.
    for _ in range(6 if d > 1 else 0):
        axes, last = np.linalg.qr(rng.normal(size=(d, d)))[0], np.inf
        for _ in range(20):
            for two in map(list, combinations(range(d), 2)):
                tried = np.einsum("na,bat->nbt", places @ axes[:, two], turned)
                extents = _extent(tried).prod(axis=0)
                axes[:, two] = axes[:, two] @ turned[:, :, extents.argmin()].T
            size = float(_extent(places @ axes).prod())
            if size > (1 - 1e-4) * last:
                break
            last = size
        if size < least:
            best, least = axes, size
    return best


def _extent(values: np.ndarray) -> np.ndarray:
    """Return the width of a box that leaves out 2 % of the samples at either end."""
    low, high = np.quantile(values, [0.02, 0.98], axis=0)
    return high - low


# The operator by distances in flat places.


def in_flat_places(
    diffusion: Operator, angles: Sequence[np.ndarray], *, rng: np.random.Generator
) -> Operator:
    """Return the diffusion by distances in flat places.

    `angles` are those of the circles among the factors, (n_samples,) each.
    """
    samples, settings, metric = diffusion.samples, diffusion.settings, diffusion.metric
    count = max(round(diffusion.dimension), len(angles))
    if metric is not None and count > 1 and len(diffusion.graph.distinct) <= MOST_UNFOLDED:
        metric = unfold(samples, metric, diffusion.graph, count, angles)
    if metric is None or metric.flat is None:
        raise NothingFoundError("samples must have flat places, and have none.")
    graph = search_neighbors(samples, metric, settings=settings)
    walk = walk_on(samples, graph, settings, metric=metric, rng=rng)
    why = f"differences of places in {count} dimensions are moves in frames that turn with them"
    return replace(
        diffusion,
        graph=walk.graph,
        affinity=walk.affinity,
        distinct=walk.spectrum,
        parts=walk.parts,
        choices={**diffusion.choices, "distances": Choice("flat", why)},
        metric=metric,
        warned=walk.warned,
    )
