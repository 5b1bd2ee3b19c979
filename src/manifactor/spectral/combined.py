"""Few combinations of a spectrum's functions at many new samples."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.spatial import KDTree

from manifactor._support.threads import map_panels
from manifactor.spectral.diffusion import Diffusion
from manifactor.spectral.search.exact import TreeSearch
from manifactor.spectral.search.nearest import NearestSamples, nearest_samples

# New samples at a time: what is computed of them stays in the cache. It steers no result.
ROWS_AT_ONCE = 1024


@dataclass(frozen=True)
class Values:
    """Combinations of functions at new samples."""

    combined: np.ndarray  # (n_new, n_combinations)
    nearest: np.ndarray  # (n_new,): the distinct training sample nearest to each
    distance: np.ndarray  # (n_new,): to the nearest
    company: np.ndarray  # (n_new,): kernel weight of all neighbours


@dataclass(frozen=True)
class CombinedFunctions:
    """Combinations of the functions of a diffusion, at any samples.

    They are those of `Diffusion.extended` up to rounding. Only the combinations are computed, and
    the nearest sample is found with the neighbours. The values at a sample do not depend on the
    samples that are asked for together with it.
    """

    # (n_distinct,): the distinct training samples in an order in which near ones are near in
    # memory; all that follows is in this order
    order: np.ndarray
    search: NearestSamples
    # (n_distinct, 1 + n_combinations): the pull of the walk, then its products with the
    # combinations, each function divided by its eigenvalue of the walk
    weighted: np.ndarray
    known: np.ndarray  # (n_distinct, n_combinations): the combinations at the training samples
    bandwidth: float
    reach: float  # distance beyond which new samples are put on the nearest training sample
    coincident: float  # squared distance below which they are

    def __call__(self, X: np.ndarray) -> Values:
        """Return the combinations at prepared samples, (n_new, n_features)."""
        panels = map_panels(
            lambda rows: self._at(X[rows]), len(X), smallest=ROWS_AT_ONCE, largest=ROWS_AT_ONCE
        )
        return Values(
            np.concatenate([panel.combined for panel in panels]),
            np.concatenate([panel.nearest for panel in panels]),
            np.concatenate([panel.distance for panel in panels]),
            np.concatenate([panel.company for panel in panels]),
        )

    def _at(self, X: np.ndarray) -> Values:
        around = self.search.around(X)
        nearest, squared = around.nearest()
        weights = np.exp(around.squared / -self.bandwidth) * around.inside
        # Row by row, one neighbour after the other: a product of dense matrices would depend on the
        # number of rows in the last bit.
        starts = np.arange(0, weights.size + 1, weights.shape[1])
        entries = (weights.ravel(), around.indices.ravel(), starts)
        sums = sp.csr_array(entries, shape=(len(X), len(self.known))) @ self.weighted
        distance = np.sqrt(squared)
        own = (squared < self.coincident) | (distance > self.reach)
        total = np.where(own, 1.0, sums[:, 0])
        combined = sums[:, 1:] / total[:, None]
        combined[own] = self.known[nearest[own]]
        return Values(combined, self.order[nearest], distance, weights.sum(axis=1))


def is_combinable(diffusion: Diffusion) -> bool:
    """Return whether `combined_functions` can be made of a diffusion.

    Its neighbours must be the nearest samples, found by a tree, with one bandwidth for all. Samples
    that the fit left out as outliers are not looked at.
    """
    graph, affinity = diffusion.graph, diffusion.affinity
    return (
        isinstance(graph.search, TreeSearch)
        and sp.issparse(affinity.kernel)
        and affinity.local_scale is None
        and not graph.undrawn.any()
    )


def combined_functions(
    diffusion: Diffusion, coefficients: np.ndarray, *, reach: float, n_new: int
) -> CombinedFunctions:
    """Return combinations of the functions of a diffusion, to be read at new samples.

    Shapes: coefficients (n_functions, n_combinations).
    """
    spectrum, affinity, graph = diffusion.distinct, diffusion.affinity, diffusion.graph
    growth = np.exp(spectrum.step * spectrum.eigenvalues)
    extended = spectrum.functions @ (growth[:, None] * coefficients)
    ones = np.ones((len(extended), 1))
    weighted = affinity.pull[:, None] * np.hstack([ones, extended])
    sums = affinity.kernel @ weighted
    bandwidth = affinity.bandwidth.value
    settings = diffusion.settings
    samples = diffusion.samples[graph.distinct]
    # Leaf by leaf of a tree: the neighbours of a sample then take few pages of memory, which saves
    # a third of the time.
    order = KDTree(samples).indices
    search = nearest_samples(
        samples[order],
        graph.search.n_neighbors + 1,
        dimension=diffusion.dimension,
        n_new=n_new,
        reach=reach,
    )
    return CombinedFunctions(
        order=order,
        search=search,
        weighted=weighted[order],
        known=(sums[:, 1:] / sums[:, :1])[order],
        bandwidth=bandwidth,
        reach=reach,
        # The weight of a sample so near is 1 but for this.
        coincident=-bandwidth * np.log1p(-settings.kernel.coincident),
    )
