"""Neighbour graph to affinity: a Gaussian kernel, corrected for the density."""

from dataclasses import dataclass, field, replace

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import pairwise_distances

from manifactor._support.errors import NothingFoundError
from manifactor.spectral.bandwidth import (
    Bandwidth,
    BandwidthSettings,
    choose_bandwidth,
    local_scale,
    rescale,
    rows_of,
)
from manifactor.spectral.neighbors import NeighborGraph
from manifactor.spectral.resident import ResidentMatrix


@dataclass(frozen=True)
class KernelSettings:
    """Settings of the kernel."""

    bandwidth: BandwidthSettings = field(default_factory=BandwidthSettings)

    # Least weight of a link between neighbours: rounding cuts no sample off.
    least_weight: float = 1e-8

    # A new sample whose weight with a known one is closer to 1 than this coincides with it.
    coincident: float = 1e-9


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
        """Return the symmetric matrix D^-1/2 W D^-1/2.

        It has the walk's eigenvalues.
        """
        scale = self.pull / np.sqrt(self.degree)
        if isinstance(self.kernel, ResidentMatrix):
            return self.kernel.scaled(scale)
        if isinstance(self.kernel, np.ndarray):
            return scale[:, None] * self.kernel * scale
        kernel = sp.csr_array(self.kernel)
        data = np.repeat(scale, np.diff(kernel.indptr))
        data *= kernel.data
        data *= scale[kernel.indices]
        # The pattern is shared: indices take half as much memory as the numbers.
        pattern = kernel.indices, kernel.indptr
        return sp.csr_array((data, *pattern), shape=kernel.shape)

    def restricted(self, part: np.ndarray) -> "Affinity":
        """Return the same kernel between some of the samples only."""
        kernel = self.kernel
        if isinstance(kernel, ResidentMatrix):
            kernel = kernel.tocsr()
        kernel = kernel[part][:, part]
        pull = self.pull[part]
        scale = None if self.local_scale is None else self.local_scale[part]
        degree = pull * (kernel @ pull)
        return replace(self, kernel=kernel, pull=pull, degree=degree, local_scale=scale)

    def rows(self, which: np.ndarray) -> sp.csr_array:
        """Return the kernel between some samples and all, (n_which, n_distinct)."""
        return sp.csr_array(rows_of(self.kernel, which))

    def settled(self) -> "Affinity":
        """Return the same with its kernel on the host."""
        if isinstance(self.kernel, ResidentMatrix):
            return replace(self, kernel=self.kernel.tocsr())
        return self


def affinity(
    graph: NeighborGraph,
    *,
    bandwidth: float | str = "auto",
    density_correction: float = 1.0,
    settings: KernelSettings = KernelSettings(),
) -> Affinity:
    """Return the Gaussian kernel on a neighbour graph and the random walk on it."""
    local = bandwidth == "local"
    distances, scale = graph.distances, None
    # Own scales and bridges are rare, and done on the host.
    on_host = local or len(graph.bridges) > 0
    if on_host and isinstance(distances, ResidentMatrix):
        distances = distances.tocsr()
    if local:
        scale = _own_scales(distances, settings)
        distances = rescale(distances, scale, scale)
    chosen = choose_bandwidth(
        distances,
        bandwidth=bandwidth,
        # On a device samples are in another order, and must give the same bandwidth.
        order=graph.order,
        settings=settings.bandwidth,
    )
    copies = graph.multiplicity
    kernel = _gaussian(distances, chosen.value, settings.least_weight)
    # Moves are measured before bridges join in: those are no distances of the data.
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
    settings: KernelSettings = KernelSettings(),
) -> Affinity:
    """Return the full kernel between all pairs, as in the paper.

    Memory grows with the square of the samples. Arguments are those of `affinity`; the graph's
    distances serve to choose the bandwidth.
    """
    chosen = choose_bandwidth(graph.distances, bandwidth=bandwidth, settings=settings.bandwidth)
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
    step = chosen.value / 4 * moving
    return Affinity(kernel, pull, degree, chosen, step, None)


def kernel_rows(
    distances: sp.csr_array, affinity: Affinity, *, settings: KernelSettings = KernelSettings()
) -> sp.csr_array:
    """Return the kernel between new samples and the distinct ones, (n_new, n_distinct).

    A new sample that coincides with a known one takes the known one's row: the graph also holds the
    edges by which others chose it, which its own neighbours do not show.

    Shapes: distances (n_new, n_distinct).
    """
    if affinity.local_scale is not None:
        own = _own_scales(distances, settings)
        distances = rescale(distances, own, affinity.local_scale)
    rows = distances.copy()
    eps = affinity.bandwidth.value
    rows.data = np.exp(-(distances.data**2) / eps)
    known = rows.copy()
    same = known.data > 1 - settings.coincident
    known.data = same.astype(float)
    known.eliminate_zeros()
    if not known.nnz:
        return rows
    n_same = np.asarray(known.sum(axis=1)).ravel()
    new = n_same == 0
    old = np.flatnonzero(~new)
    # The first of the samples that it coincides with.
    first = known.indices[known.indptr[old]]
    ones = np.ones(len(first))
    pick = sp.csr_array((ones, (old, first)), shape=known.shape)
    only_new = sp.diags_array(new.astype(float))
    return sp.csr_array(only_new @ rows + pick @ affinity.kernel)


def _own_scales(distances: sp.csr_array, settings: KernelSettings) -> np.ndarray:
    return local_scale(distances, neighbor=settings.bandwidth.scale_neighbor)


def _gaussian(distances, eps: float, least: float):
    """Return exp(-d^2/eps) of all entries, at least `least`."""
    if isinstance(distances, ResidentMatrix):
        return distances.gaussian(eps, least)
    data = np.exp(-(distances.data**2) / eps)
    np.maximum(data, least, out=data)
    # The pattern is shared: indices take as much memory as the weights.
    pattern = distances.indices, distances.indptr
    return sp.csr_array((data, *pattern), shape=distances.shape)


def _walk(
    kernel, copies: np.ndarray, alpha: float, *, diagonal: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Return `pull` and `degree` of a kernel.

    `diagonal` is added to a kernel that is stored without one.
    """
    density = kernel @ copies + diagonal * copies
    pull = copies / density**alpha
    return pull, pull * (kernel @ pull + diagonal * pull)


def _step_of_cut_kernel(distances, kernel, pull, degree, bandwidth: Bandwidth) -> float:
    """Return the diffusion time of one step of a walk cut at the neighbours.

    A step moves by a mean square of 2 d t. For the uncut kernel that is d eps/2, hence t = eps/4;
    the cut removes the longest moves, so the moves are measured.
    """
    if isinstance(kernel, ResidentMatrix):
        moves = kernel.times_squares(distances)
    else:
        weighted = kernel.data * distances.tocsr().data ** 2
        pattern = kernel.indices, kernel.indptr
        moves = sp.csr_array((weighted, *pattern), shape=kernel.shape)
    mean_square = pull @ (moves @ pull) / degree.sum()
    dimension = max(1, round(bandwidth.dimension))
    return float(mean_square / (2 * dimension))


def _with_diagonal_and_bridges(
    kernel, bridges: np.ndarray, distances, eps: float
) -> sp.csr_array | ResidentMatrix:
    """Return the kernel with ones on the diagonal, and with bridges.

    A bridge weighs as much as an ordinary farthest neighbour.
    """
    n = kernel.shape[0]
    if isinstance(kernel, ResidentMatrix):
        return kernel.with_unit_diagonal()
    kernel = kernel + sp.eye_array(n, format="csr")
    if not len(bridges):
        return sp.csr_array(kernel)
    farthest = np.median(distances.max(axis=1).toarray())
    weight = np.exp(-(farthest**2) / eps)
    there_and_back = np.concatenate([bridges, bridges[:, ::-1]])
    weights = np.full(len(there_and_back), weight)
    entries = (weights, tuple(there_and_back.T))
    joined = sp.csr_array(entries, shape=(n, n))
    return sp.csr_array(kernel + joined)
