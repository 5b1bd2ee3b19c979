"""Neighbour graph to affinity: a Gaussian kernel, corrected for the density of the samples."""

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import scipy.sparse as sp
from scipy.special import gammainc, gammaln
from sklearn.metrics import pairwise_distances

from manifactor._support.errors import NothingFoundError
from manifactor._support.parameters import Choice, given
from manifactor._support.values import quotient
from manifactor.operators.engines.gpu import ResidentMatrix, namespace, settled, with_data
from manifactor.operators.neighbors import NeighborGraph, row_of
from manifactor.statistics import even_rows

# A sample's own scale is its distance to this neighbour.
SCALE_NEIGHBOR = 8

# Share of the samples whose own scale lies within the bandwidth.
REACHED_SHARE = 0.95

# Least weight of a link between neighbours: rounding cuts no sample off.
LEAST_WEIGHT = 1e-8

# A new sample whose weight with a known one is closer to 1 than this coincides with it.
COINCIDENT = 1e-9


@dataclass(frozen=True)
class Bandwidth:
    """Bandwidth eps of exp(-d^2/eps), intrinsic dimension, and the curve of both.

    S(eps) is the sum of the kernel over all pairs. For samples of a d-dimensional manifold its
    slope on log-log axes tends to d/2, so the steepest point is where the kernel sees the manifold
    best (Coifman et al., 2008). Uneven sampling puts that point at the scale of the densest part,
    so the bandwidth also has to reach the neighbours of all but a few samples: too small a
    bandwidth is the one fatal choice.
    """

    choice: Choice  # the bandwidth eps, in squared units of the data, and the reason for it
    dimension: float  # intrinsic dimension, corrected for the cut at a finite number of neighbours
    candidates: np.ndarray  # (n_candidates,): values of eps at which the curve was computed
    slopes: np.ndarray  # (n_candidates,): slope of log S over log eps

    def __repr__(self) -> str:
        return f"Bandwidth({self.value:.4g}, dimension={self.dimension:.2f})"

    @property
    def value(self) -> float:
        """The bandwidth eps."""
        return self.choice.value


def choose_bandwidth(
    distances: sp.csr_array | ResidentMatrix,
    *,
    bandwidth: float | str = "auto",
    order: np.ndarray | None = None,
) -> Bandwidth:
    """Choose the bandwidth and estimate the dimension, from samples in this order."""
    # Evenly spread, so that the cost does not grow with the number of samples.
    rows = even_rows(distances.shape[0], 2000)
    if order is not None:
        rows = order[rows]
    distances, n = distances[rows], len(rows)
    squared = distances.data**2
    # Squares of smaller distances, and eigenvalues in units of them, lose digits.
    middle, least = float(np.median(distances.data)), 1e-152
    if middle < least:
        raise ValueError(
            f"neighbours must lie more than {least:.0e} apart, so that squares of distances are "
            f"not 0; got {middle:.1e} in the median. Multiply all columns by a common number, and "
            "remove samples far from all others."
        )
    # Powers of 2 times the median; the end is a hundredth beyond the last, for rounding.
    candidates = np.median(squared) * 2.0 ** np.arange(-10, 4.01, 0.125)
    slopes = kernel_slopes(squared, candidates, n)
    best = int(np.argmax(slopes))
    dimension = dimension_from_slope(slopes[best], len(squared) / n)
    choice = (
        _automatic(distances, candidates[best], bandwidth == "local")
        if isinstance(bandwidth, str)
        else given(float(bandwidth))
    )
    return Bandwidth(choice, dimension, candidates, slopes)


def _automatic(distances: sp.csr_array, steepest: float, local: bool) -> Choice:
    """Return the steepest point of the curve, or what reaches enough neighbours."""
    reach = np.quantile(local_scale(distances), REACHED_SHARE) ** 2
    why = "the steepest point of the curve, where the kernel sees the manifold best"
    if local:
        nth = f"{SCALE_NEIGHBOR}th"
        why = f"distances are scaled by those to the {nth} neighbours, as set by the caller"
    elif reach > steepest:
        why = (
            "wider than the steepest point of the curve, to reach the "
            f"{SCALE_NEIGHBOR}th neighbour of {REACHED_SHARE:.0%} of the samples"
        )
    return Choice(float(max(steepest, reach)), why)


def kernel_slopes(squared: np.ndarray, candidates: np.ndarray, n_samples: int) -> np.ndarray:
    """Return the slopes of log S over log eps, (n_candidates,).

    A slope is the mean of d^2/eps under the kernel, every sample being its own neighbour.
    """
    # Copies have no logarithm of their distance; any so small one has their weight.
    relative = np.maximum(squared / squared.max(), np.finfo(float).tiny)
    # 64 bins for each factor of 2; the mean of a bin stands for its squares.
    bins = np.floor(-np.log2(relative) * 64).astype(int)
    count = np.bincount(bins)
    total = np.bincount(bins, weights=squared)
    filled = count > 0
    count, total = count[filled], total[filled]
    u = total / count / candidates[:, None]
    weight = count * np.exp(-u)
    moment = (u * weight).sum(axis=1)
    return moment / (n_samples + weight.sum(axis=1))


def dimension_from_slope(slope: float, n_neighbors: float) -> float:
    """Return the dimension whose steepest slope is the one measured.

    It is twice the slope of a kernel that is not cut. Cut at `n_neighbors` inside a ball, the two
    sums over neighbours are incomplete gamma functions of u = r^2/eps at its edge.
    """
    dimensions, weight, moment = _sums_over_balls()
    slopes = moment * n_neighbors / (1 + weight * n_neighbors)
    return float(np.interp(slope, slopes.max(axis=1), dimensions))


@cache
def _sums_over_balls() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return dimensions, and the means of exp(-u) and u exp(-u) over balls of each."""
    dimensions = np.geomspace(0.25, 64, 120)
    edge = np.geomspace(0.2, 60, 60)
    a = dimensions[:, None] / 2
    # In logarithms: the gamma functions of 64 dimensions overflow beside small edges.
    scale = np.log(a) - a * np.log(edge)
    weight = np.exp(scale + gammaln(a)) * gammainc(a, edge)
    moment = np.exp(scale + gammaln(a + 1)) * gammainc(a + 1, edge)
    return dimensions, weight, moment


def local_scale(distances: sp.csr_array) -> np.ndarray:
    """Return the distance of each row's sample to its 8th neighbour, or the farthest of fewer."""
    count = np.diff(distances.indptr)
    if not count.all():
        raise ValueError(
            "each sample must have a neighbour to have a scale of its own; "
            f"{(count == 0).sum()} have none."
        )
    # One sort for all rows: the row, and the distance as a fraction below one half.
    key = row_of(distances) + 0.5 * quotient(distances.data, distances.data.max())
    ordered = distances.data[np.argsort(key)]
    return ordered[distances.indptr[:-1] + np.minimum(SCALE_NEIGHBOR, count) - 1]


def rescale(
    distances: sp.csr_array, row_scale: np.ndarray, column_scale: np.ndarray
) -> sp.csr_array:
    """Return distances over the geometric mean of both ends' scales, in units of the median."""
    mean = np.sqrt(row_scale[row_of(distances)] * column_scale[distances.indices])
    return with_data(distances, distances.data * np.median(column_scale) / mean)


@dataclass(frozen=True)
class Affinity:
    """A Gaussian kernel on the distinct samples and the random walk made of it.

    The walk steps from x to sample j with probability proportional to kernel(x, j) * pull[j].
    """

    # (n_distinct, n_distinct): symmetric, ones on the diagonal
    kernel: sp.csr_array | ResidentMatrix | np.ndarray
    # (n_distinct,): copies of each sample over its kernel density to the power alpha
    pull: np.ndarray
    degree: np.ndarray  # (n_distinct,): stationary weights of the walk, not normalised
    bandwidth: Bandwidth
    # Diffusion time of one step: the walk's eigenvalues are exp(-step * eigenvalue of the
    # Laplacian)
    step: float
    # (n_distinct,): each sample's own scale, when bandwidths are local
    local_scale: np.ndarray | None

    def normalized(self) -> sp.csr_array | ResidentMatrix | np.ndarray:
        """Return the symmetric matrix D^-1/2 W D^-1/2, with the eigenvalues of the walk."""
        scale = self.pull / np.sqrt(self.degree)
        if isinstance(self.kernel, ResidentMatrix):
            return self.kernel.scaled(scale)
        if isinstance(self.kernel, np.ndarray):
            return scale[:, None] * self.kernel * scale
        kernel = sp.csr_array(self.kernel)
        data = np.repeat(scale, np.diff(kernel.indptr))
        data *= kernel.data
        data *= scale[kernel.indices]
        return with_data(kernel, data)

    def restricted(self, part: np.ndarray) -> "Affinity":
        """Return the same kernel between some of the samples only."""
        kernel = settled(self.kernel)[part][:, part]
        pull = self.pull[part]
        scale = None if self.local_scale is None else self.local_scale[part]
        degree = pull * (kernel @ pull)
        return replace(self, kernel=kernel, pull=pull, degree=degree, local_scale=scale)


def affinity(
    graph: NeighborGraph, *, bandwidth: float | str = "auto", density_correction: float = 1.0
) -> Affinity:
    """Return the Gaussian kernel on a neighbour graph and the random walk on it."""
    local = bandwidth == "local"
    distances, scale = graph.distances, None
    # Own scales and bridges are rare, and done on the host.
    if local or len(graph.bridges) > 0:
        distances = settled(distances)
    if local:
        scale = local_scale(distances)
        distances = rescale(distances, scale, scale)
    chosen = choose_bandwidth(
        distances,
        bandwidth=bandwidth,
        # On a device samples are in another order, and must give the same bandwidth.
        order=graph.order,
    )
    copies = graph.multiplicity
    kernel = _gaussian(distances, chosen.value)
    # Moves are measured before bridges join in: those are not distances of the data.
    pull, degree = _walk(kernel, copies, density_correction, diagonal=1.0)
    step = _step_of_cut_kernel(graph.distances, kernel, pull, degree, chosen)
    kernel = _with_diagonal_and_bridges(kernel, graph.bridges, distances, chosen.value)
    pull, degree = _walk(kernel, copies, density_correction)
    return Affinity(kernel, pull, degree, chosen, step, scale)


def dense_affinity(
    X: np.ndarray,
    graph: NeighborGraph,
    *,
    bandwidth: float | str = "auto",
    density_correction: float = 1.0,
) -> Affinity:
    """Return the full kernel between all pairs, as in the paper; the graph gives the bandwidth."""
    chosen = choose_bandwidth(graph.distances, bandwidth=bandwidth)
    kernel = pairwise_distances(X[graph.distinct], metric="sqeuclidean", ensure_all_finite=False)
    # In place: there is one such matrix in memory, not three.
    np.divide(kernel, -chosen.value, out=kernel)
    np.exp(kernel, out=kernel)
    pull, degree = _walk(kernel, graph.multiplicity, density_correction)
    # A walk stays where it is with the weight of its own sample.
    moving = 1 - pull @ pull / degree.sum()
    if moving <= np.finfo(float).eps:
        raise NothingFoundError(
            f"the kernel must connect samples; got `bandwidth` {chosen.value:.3g}, at "
            "which each is connected with itself only. Raise `bandwidth`."
        )
    return Affinity(kernel, pull, degree, chosen, chosen.value / 4 * moving, None)


def kernel_rows(distances: sp.csr_array, affinity: Affinity) -> sp.csr_array:
    """Return the kernel between new samples and the distinct ones, (n_new, n_distinct).

    A new sample that coincides with a known one takes the known one's row: the graph also holds the
    edges by which others chose it.
    """
    if affinity.local_scale is not None:
        distances = rescale(distances, local_scale(distances), affinity.local_scale)
    rows = distances.copy()
    rows.data = np.exp(-(distances.data**2) / affinity.bandwidth.value)
    same = np.flatnonzero(rows.data > 1 - COINCIDENT)
    if not len(same):
        return rows
    # The first of the samples that each coincides with.
    old, at = np.unique(row_of(rows)[same], return_index=True)
    pick = sp.csr_array((np.ones(len(old)), (old, rows.indices[same[at]])), shape=rows.shape)
    is_new = np.ones(rows.shape[0])
    is_new[old] = 0
    return sp.csr_array(sp.diags_array(is_new) @ rows + pick @ affinity.kernel)


def _gaussian(distances, eps: float):
    """Return exp(-d^2/eps) of all entries, at least `LEAST_WEIGHT`."""
    exponent = distances.data**2
    exponent /= -eps
    # In place: a third array of entries might not fit on a device.
    array = namespace(exponent)
    array.exp(exponent, out=exponent)
    return with_data(distances, array.clip(exponent, LEAST_WEIGHT, None, out=exponent))


def _walk(
    kernel, copies: np.ndarray, alpha: float, *, diagonal: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Return `pull` and `degree` of a kernel, to which a `diagonal` that it lacks is added."""
    density = kernel @ copies + diagonal * copies
    pull = copies / density**alpha
    return pull, pull * (kernel @ pull + diagonal * pull)


def _step_of_cut_kernel(distances, kernel, pull, degree, bandwidth: Bandwidth) -> float:
    """Return the diffusion time t of one step of a walk that is cut at the neighbours.

    A step moves by a mean square of 2 d t, which is d eps/2 for the uncut kernel.
    """
    if not isinstance(kernel, ResidentMatrix):
        distances = settled(distances)
    moves = with_data(kernel, kernel.data * distances.data**2)
    mean_square = pull @ (moves @ pull) / degree.sum()
    return float(mean_square / (2 * max(1, round(bandwidth.dimension))))


def _with_diagonal_and_bridges(
    kernel, bridges: np.ndarray, distances, eps: float
) -> sp.csr_array | ResidentMatrix:
    """Return the kernel with ones on its diagonal and bridges as heavy as farthest neighbours."""
    if isinstance(kernel, ResidentMatrix):
        return replace(kernel, diagonal=kernel.lift(np.ones(kernel.shape[0])))
    kernel = sp.csr_array(kernel + sp.eye_array(kernel.shape[0], format="csr"))
    if not len(bridges):
        return kernel
    farthest = np.median(distances.max(axis=1).toarray())
    there_and_back = np.concatenate([bridges, bridges[:, ::-1]])
    weights = np.full(len(there_and_back), np.exp(-(farthest**2) / eps))
    joined = sp.csr_array((weights, tuple(there_and_back.T)), shape=kernel.shape)
    return sp.csr_array(kernel + joined)
