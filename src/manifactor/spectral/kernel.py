"""Neighbour graph to affinity: bandwidth, intrinsic dimension, density correction."""

import warnings
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.special import gammainc, gammaln
from sklearn.metrics import pairwise_distances

from manifactor.spectral.components import DisconnectedGraphWarning
from manifactor.spectral.copies import row_of
from manifactor.spectral.neighbors import NeighborGraph
from manifactor.spectral.resident import ResidentMatrix

BINS = 64  # for each factor of 2 in the squared distances that draw the bandwidth curve
CURVE_ROWS = 2000  # samples whose distances draw the bandwidth curve, evenly spread; the cost no longer grows with n
LOCAL_NEIGHBOR = 8  # a sample's own scale is its distance to this neighbour
WEAKEST = (
    1e-8  # least weight of a link between neighbours: no sample is cut off by rounding
)
LEAST_COMPANY = 1.5  # kernel weight of all neighbours, at most 1 each, below which a sample is an outlier
MOST_OUTLIERS = (
    0.05  # share of the samples; more are no outliers but a part of the data
)
OUTLIER_ROUNDS = 3  # leaving some out may leave others alone
REACHED = 0.95  # share of the samples whose own scale lies within the bandwidth


@dataclass(frozen=True)
class Bandwidth:
    """The bandwidth of exp(-d^2/eps), the dimension read off beside it, and the curve both come from.

    S(eps) is the sum of the kernel over all pairs; for samples of a d-dimensional manifold its slope on log-log axes
    tends to d/2, so the steepest point is where the kernel sees the manifold best (Coifman et al., 2008). Uneven
    sampling puts that point at the scale of the densest part, so the bandwidth also has to reach the neighbours of
    all but a few samples: too small a bandwidth is the one fatal choice.

    Attributes
    ----------
    value : float
        The bandwidth eps, in squared units of the data.
    dimension : float
        Intrinsic dimension, corrected for the cut at a finite number of neighbours.
    candidates, slopes : ndarray of shape (n_candidates,)
        The curve: slope of log S over log eps.
    """

    value: float
    dimension: float
    candidates: np.ndarray
    slopes: np.ndarray


@dataclass(frozen=True)
class Affinity:
    """A Gaussian kernel on the distinct samples and what turns it into a random walk.

    The walk steps from x to sample j with probability proportional to kernel(x, j) * pull[j].

    Attributes
    ----------
    kernel : csr_array, ResidentMatrix or ndarray of shape (n_distinct, n_distinct)
        Symmetric, ones on the diagonal.
    pull : ndarray of shape (n_distinct,)
        Copies of each sample over its kernel density to the power alpha.
    degree : ndarray of shape (n_distinct,)
        Stationary weights of the walk, not normalised.
    bandwidth : Bandwidth
    step : float
        Diffusion time of one step: the walk's eigenvalues are exp(-step * eigenvalue of the Laplacian).
    local_scale : ndarray of shape (n_distinct,) or None
        Each sample's own scale, when bandwidths are local.
    """

    kernel: sp.csr_array | ResidentMatrix | np.ndarray
    pull: np.ndarray
    degree: np.ndarray
    bandwidth: Bandwidth
    step: float
    local_scale: np.ndarray | None

    def normalized(self) -> sp.csr_array | ResidentMatrix | np.ndarray:
        """The symmetric matrix D^-1/2 W D^-1/2 that has the walk's eigenvalues."""
        scale = self.pull / np.sqrt(self.degree)
        if isinstance(self.kernel, ResidentMatrix):
            return self.kernel.scaled(scale)
        if isinstance(self.kernel, np.ndarray):
            return scale[:, None] * self.kernel * scale
        return sp.csr_array(sp.diags_array(scale) @ self.kernel @ sp.diags_array(scale))

    def restricted(self, part: np.ndarray) -> "Affinity":
        """The same kernel between some of the samples only."""
        whole = (
            self.kernel.tocsr()
            if isinstance(self.kernel, ResidentMatrix)
            else self.kernel
        )
        kernel = whole[part][:, part]
        pull = self.pull[part]
        scale = None if self.local_scale is None else self.local_scale[part]
        return replace(
            self,
            kernel=kernel,
            pull=pull,
            degree=pull * (kernel @ pull),
            local_scale=scale,
        )

    def isolated(self) -> np.ndarray:
        """Samples that the walk hardly leaves: all their neighbours weigh less than `LEAST_COMPANY`, (n_distinct,)."""
        return self.kernel @ np.ones(len(self.degree)) < 1 + LEAST_COMPANY

    def rows(self, which: np.ndarray) -> sp.csr_array:
        """The kernel between some samples and all, (n_which, n_distinct)."""
        return sp.csr_array(rows_of(self.kernel, which))

    def settled(self) -> "Affinity":
        """The same with its kernel on this machine's side."""
        return (
            replace(self, kernel=self.kernel.tocsr())
            if isinstance(self.kernel, ResidentMatrix)
            else self
        )


def choose_bandwidth(
    distances: sp.csr_array | ResidentMatrix,
    *,
    value: float | None = None,
    order: np.ndarray | None = None,
) -> Bandwidth:
    """Bandwidth at the steepest point of log S(eps), or wider where that would leave samples alone.

    Parameters
    ----------
    distances : csr_array
        Distances of each sample, a row, to its neighbours.
    value : float or None
        Keep this bandwidth and only read off the dimension.
    order : ndarray of int or None
        The samples' order from which even ones are taken.
    """
    n = min(distances.shape[0], CURVE_ROWS)
    rows = np.linspace(0, distances.shape[0] - 1, n).astype(int)
    distances = rows_of(distances, rows if order is None else order[rows])
    squared = distances.data**2
    candidates = np.median(squared) * 2.0 ** np.arange(-10, 4.01, 0.125)
    slopes = kernel_slopes(squared, candidates, n)
    best = int(np.argmax(slopes))
    dimension = dimension_from_slope(slopes[best], len(squared) / n)
    if value is None:
        value = max(candidates[best], np.quantile(local_scale(distances), REACHED) ** 2)
    return Bandwidth(float(value), dimension, candidates, slopes)


def kernel_slopes(
    squared: np.ndarray, candidates: np.ndarray, n_samples: int
) -> np.ndarray:
    """Slopes of log S: the mean of d^2/eps under the kernel, every sample being its own neighbour at 0.

    Squared distances are counted in narrow bins of their logarithm, whose means stand for them.
    """
    octave = np.floor(
        -np.log2(np.maximum(squared / squared.max(), 1e-300)) * BINS
    ).astype(int)
    count = np.bincount(octave)
    mean = np.bincount(octave, weights=squared)[count > 0] / count[count > 0]
    u = mean / candidates[:, None]
    w = count[count > 0] * np.exp(-u)
    return (u * w).sum(axis=1) / (n_samples + w.sum(axis=1))


def dimension_from_slope(slope: float, n_neighbors: float) -> float:
    """Dimension whose steepest slope, with the kernel cut at `n_neighbors` neighbours, is the one measured.

    Without a cut the answer would be twice the slope. With k neighbours inside a ball, u = r^2/eps at its edge, the two
    sums over neighbours are incomplete gamma functions of u.
    """
    dimensions, weight, moment = _sums_over_balls()
    steepest = (moment * n_neighbors / (1 + weight * n_neighbors)).max(axis=1)
    return float(np.interp(slope, steepest, dimensions))


@cache
def _sums_over_balls() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Dimensions, and for each the means of exp(-u) and u exp(-u) over balls whose edge is at several u."""
    dimensions = np.geomspace(0.25, 64, 120)
    a, edge = dimensions[:, None] / 2, np.geomspace(0.2, 60, 60)
    scale = np.log(a) - a * np.log(edge)
    weight = np.exp(scale + gammaln(a)) * gammainc(a, edge)
    return dimensions, weight, np.exp(scale + gammaln(a + 1)) * gammainc(a + 1, edge)


def affinity(
    graph: NeighborGraph,
    *,
    bandwidth: float | str = "auto",
    density_correction: float = 1.0,
) -> Affinity:
    """Gaussian kernel on a neighbour graph and the random walk on it.

    Parameters
    ----------
    graph : NeighborGraph
    bandwidth : "auto", "local" or float
        eps of exp(-d^2/eps); "local" measures distances in units of the samples' own scales (self-tuning). The walk
        is then faster where samples are sparse, and where their density varies much all eigenvalues are off by one
        common factor.
    density_correction : float in [0, 1]
        alpha: 1 gives the Laplacian whatever the sampling density, 0 the walk that the density drives.
    """
    distances = graph.distances
    scale = None
    if isinstance(distances, ResidentMatrix) and (
        bandwidth == "local" or len(graph.bridges)
    ):
        distances = distances.tocsr()
    if bandwidth == "local":
        scale = local_scale(distances)
        distances = rescale(distances, scale, scale)
    order = np.argsort(
        graph.distinct
    )  # on a device samples are in another order, and are to give the same bandwidth
    chosen = choose_bandwidth(
        distances, value=None if isinstance(bandwidth, str) else bandwidth, order=order
    )
    kernel = _gaussian(distances, chosen.value)
    pull, degree = _walk(kernel, graph.multiplicity, density_correction, diagonal=1.0)
    step = _step_of_cut_kernel(graph.distances, kernel, pull, degree, chosen)
    kernel = _with_diagonal_and_bridges(kernel, graph.bridges, distances, chosen.value)
    pull, degree = _walk(kernel, graph.multiplicity, density_correction)
    return Affinity(kernel, pull, degree, chosen, step, scale)


def without_outliers(
    X: np.ndarray, graph: NeighborGraph, walk: Affinity, **settings
) -> tuple[NeighborGraph, Affinity]:
    """Graph and walk without samples that the walk hardly leaves; functions would be peaks on them.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The given samples.
    graph, walk
        Of all samples.
    settings
        Those that the walk was made with.
    """
    for _ in range(OUTLIER_ROUNDS):
        isolated = walk.isolated()
        if not isolated.any() or isolated.mean() > MOST_OUTLIERS:
            break
        graph = graph.without(isolated, X)
        walk = affinity(graph, **settings)
    return graph, walk


def warn_of_weak_links(affinity: Affinity) -> None:
    """Say so when samples hang together by links that weigh nothing."""
    if (
        isinstance(affinity.kernel, np.ndarray)
        or _entries(affinity.kernel).min() > WEAKEST
    ):
        return
    kernel = sp.csr_array(affinity.settled().kernel)
    count, label = connected_components(kernel > WEAKEST, directed=False)
    if count > 1:
        largest = np.bincount(label).max()
        warnings.warn(
            f"at this bandwidth the samples fall into {count} components, the largest of {largest} samples, which only "
            "links of next to no weight join: outliers, or a bandwidth that is too small. The lowest functions tell "
            "them apart; leave the outliers out or raise `bandwidth`.",
            DisconnectedGraphWarning,
            stacklevel=4,
        )


def dense_affinity(
    X: np.ndarray,
    graph: NeighborGraph,
    *,
    bandwidth: float | str = "auto",
    density_correction: float = 1.0,
) -> Affinity:
    """The full kernel between all pairs, as in the paper; memory grows with the square of the samples."""
    chosen = choose_bandwidth(
        graph.distances, value=None if isinstance(bandwidth, str) else bandwidth
    )
    kernel = pairwise_distances(
        X[graph.distinct], metric="sqeuclidean", ensure_all_finite=False
    )
    np.exp(np.divide(kernel, -chosen.value, out=kernel), out=kernel)
    pull, degree = _walk(kernel, graph.multiplicity, density_correction)
    moving = (
        1 - pull @ pull / degree.sum()
    )  # a walk stays where it is with the weight of its own sample
    return Affinity(kernel, pull, degree, chosen, chosen.value / 4 * moving, None)


def kernel_rows(distances: sp.csr_array, affinity: Affinity) -> sp.csr_array:
    """Kernel between new samples and the distinct samples, from the distances of each to its neighbours.

    A new sample that coincides with a known one takes the known one's row: the graph also holds the edges by which
    others chose it, which its own neighbours do not show.
    """
    if affinity.local_scale is not None:
        distances = rescale(distances, local_scale(distances), affinity.local_scale)
    rows = distances.copy()
    rows.data = np.exp(-(distances.data**2) / affinity.bandwidth.value)
    known = rows.copy()
    known.data = (known.data > 1 - 1e-9).astype(float)
    known.eliminate_zeros()
    if not known.nnz:
        return rows
    new = np.asarray(known.sum(axis=1)).ravel() == 0
    first = known.indices[known.indptr[:-1][~new]]
    pick = sp.csr_array(
        (np.ones(len(first)), (np.flatnonzero(~new), first)), shape=known.shape
    )
    return sp.csr_array(
        sp.diags_array(new.astype(float)) @ rows + pick @ affinity.kernel
    )


def local_scale(distances: sp.csr_array) -> np.ndarray:
    """Distance of each row's sample to its `LOCAL_NEIGHBOR`-th neighbour, (n_rows,)."""
    count = np.diff(distances.indptr)
    if not count.all():
        raise ValueError(
            f"each sample needs a neighbour for its own scale; {(count == 0).sum()} have none."
        )
    key = row_of(distances) + 0.5 * distances.data / max(
        distances.data.max(), 1e-300
    )  # sorts rows, and within them
    ordered = distances.data[np.argsort(key)]
    return ordered[distances.indptr[:-1] + np.minimum(LOCAL_NEIGHBOR, count) - 1]


def rescale(
    distances: sp.csr_array, row_scale: np.ndarray, column_scale: np.ndarray
) -> sp.csr_array:
    """Distances over the geometric mean of both ends' scales, in units of the columns' median scale."""
    row = row_of(distances)
    out = distances.copy()
    out.data = (
        distances.data
        * np.median(column_scale)
        / np.sqrt(row_scale[row] * column_scale[distances.indices])
    )
    return out


def rows_of(matrix, which: np.ndarray):
    """Some rows of a matrix, on this machine's side."""
    return matrix.take(which) if isinstance(matrix, ResidentMatrix) else matrix[which]


def _entries(matrix):
    return matrix.entries if isinstance(matrix, ResidentMatrix) else matrix.data


def _gaussian(distances, eps: float):
    """exp(-d^2/eps) of all entries, which rounding makes 0 for none."""
    if isinstance(distances, ResidentMatrix):
        return distances.gaussian(eps, WEAKEST)
    data = np.maximum(np.exp(-(distances.data**2) / eps), WEAKEST)
    return sp.csr_array(
        (data, distances.indices, distances.indptr), shape=distances.shape
    )


def _walk(
    kernel, copies: np.ndarray, alpha: float, *, diagonal: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """`pull` and `degree` of a kernel; `diagonal` is added to a kernel that is stored without one."""
    density = kernel @ copies + diagonal * copies
    pull = copies / density**alpha
    return pull, pull * (kernel @ pull + diagonal * pull)


def _step_of_cut_kernel(distances, kernel, pull, degree, bandwidth: Bandwidth) -> float:
    """Diffusion time of one step of a walk whose kernel is cut at the neighbours.

    A step moves by a mean square of 2 d t. For the uncut kernel that is d eps/2, hence t = eps/4; the cut removes the
    longest moves, so the moves are measured.
    """
    if isinstance(kernel, ResidentMatrix):
        moves = kernel.times_squares(distances)
    else:
        distances = distances.tocsr()
        moves = sp.csr_array(
            (kernel.data * distances.data**2, kernel.indices, kernel.indptr),
            shape=kernel.shape,
        )
    mean_square = pull @ (moves @ pull) / degree.sum()
    return float(mean_square / (2 * max(1, round(bandwidth.dimension))))


def _with_diagonal_and_bridges(
    kernel, bridges: np.ndarray, distances, eps: float
) -> sp.csr_array | ResidentMatrix:
    """The kernel with ones on the diagonal; a bridge weighs as much as an ordinary farthest neighbour."""
    n = kernel.shape[0]
    if isinstance(kernel, ResidentMatrix):
        return kernel.with_unit_diagonal()
    kernel = kernel + sp.eye_array(n, format="csr")
    if not len(bridges):
        return sp.csr_array(kernel)
    farthest = np.median(distances.max(axis=1).toarray())
    weight = np.full(2 * len(bridges), np.exp(-(farthest**2) / eps))
    ends = np.concatenate([bridges, bridges[:, ::-1]]).T
    return sp.csr_array(kernel + sp.csr_array((weight, tuple(ends)), shape=(n, n)))
