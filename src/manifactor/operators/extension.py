"""Few combinations of an operator's functions at many new samples, as fast as can be."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.spatial import KDTree

from manifactor._support.threads import cores, map_panels
from manifactor.operators.engines.gpu import sparse_rows
from manifactor.operators.engines.searches import TreeSearch
from manifactor.operators.kernel import COINCIDENT
from manifactor.operators.operator import Operator

# Distances that differ by less, relative to their size, may be in any order.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Values:
    """Combinations of functions at new samples."""

    combined: np.ndarray  # (n_new, n_combinations)
    nearest: np.ndarray  # (n_new,): the distinct training sample nearest to each
    distance: np.ndarray  # (n_new,): to the nearest
    company: np.ndarray  # (n_new,): kernel weight of all neighbours


class CombinedFunctions:
    """Combinations of the functions of a diffusion, at any samples.

    They are those of `Operator.extended` up to rounding. The values at a sample do not depend on
    the samples that are asked for together with it.
    """

    def __init__(
        self, diffusion: Operator, coefficients: np.ndarray, *, reach: float, n_new: int
    ) -> None:
        """Compute combinations by coefficients, (n_functions, n_combinations).

        Samples farther than `reach` are put on the nearest training sample.
        """
        spectrum, affinity, graph = diffusion.distinct, diffusion.affinity, diffusion.graph
        if diffusion.basis is not None:
            spectrum = diffusion.basis.spectrum
            coefficients = diffusion.basis.coefficients @ coefficients
        growth = np.exp(spectrum.step * spectrum.eigenvalues)
        extended = spectrum.functions @ (growth[:, None] * coefficients)
        weighted = affinity.pull[:, None] * np.hstack([np.ones((len(extended), 1)), extended])
        sums = affinity.kernel @ weighted
        samples = diffusion.samples[graph.distinct]
        # Leaf by leaf of a tree: the neighbours of a sample then take few pages of memory, which
        # saves a third of the time. All that follows is in this order.
        self.order = order = KDTree(samples).indices
        self.search = NearestSamples(
            samples[order],
            graph.search.n_neighbors + 1,
            dimension=diffusion.dimension,
            n_new=n_new,
            reach=reach,
        )
        # (n_distinct, 1 + n_combinations): the pull of the walk, then its products with the
        # combinations, each function divided by its eigenvalue of the walk
        self.weighted = weighted[order]
        # (n_distinct, n_combinations): the combinations at the training samples
        self.known = (sums[:, 1:] / sums[:, :1])[order]
        self.bandwidth = affinity.bandwidth.value
        self.reach = reach
        # Squared distance below which a new sample is put on a training sample: its weight is 1 but
        # for this.
        self.coincident = -self.bandwidth * np.log1p(-COINCIDENT)

    def __call__(self, X: np.ndarray) -> Values:
        """Return the combinations at prepared samples, (n_new, n_features)."""
        # What is computed of 1,024 samples stays in the cache.
        panels = map_panels(lambda rows: self._at(X[rows]), len(X), smallest=1024, largest=1024)
        return Values(*(np.concatenate(column) for column in zip(*panels, strict=True)))

    def _at(self, X: np.ndarray) -> tuple[np.ndarray, ...]:
        indices, distances = self.search.around(X)
        weights = np.exp(distances / -self.bandwidth)
        rows, first = np.arange(len(X)), distances.argmin(axis=1)
        nearest, squared = indices[rows, first], distances[rows, first]
        # Row by row, one neighbour after the other: a product of dense matrices would depend on the
        # number of rows in the last bit.
        sums = sparse_rows(weights, indices, len(self.known)) @ self.weighted
        distance = np.sqrt(squared)
        own = (squared < self.coincident) | (distance > self.reach)
        total = np.where(own, 1.0, sums[:, 0])
        combined = sums[:, 1:] / total[:, None]
        combined[own] = self.known[nearest[own]]
        return combined, self.order[nearest], distance, weights.sum(axis=1)


def is_combinable(diffusion: Operator) -> bool:
    """Return whether `CombinedFunctions` can be made: of nearest samples, with one bandwidth."""
    graph, affinity = diffusion.graph, diffusion.affinity
    return (
        isinstance(graph.search, TreeSearch)
        and sp.issparse(affinity.kernel)
        and affinity.local_scale is None
        and not graph.undrawn.any()
    )


class NearestSamples:
    """A search for the `count` nearest samples, exact.

    The result for a new sample depends neither on the others, nor on whether there are lists.
    """

    def __init__(
        self,
        samples: np.ndarray,
        count: int,
        *,
        dimension: float,
        n_new: int,
        reach: float = np.inf,
    ) -> None:
        """Make lists of the samples near each sample, where `n_new` samples pay for them.

        In few dimensions a comparison with the list of the nearest sample takes a fifth of the time
        of a tree.
        """
        samples = np.asarray(samples, dtype=np.float64)
        self.samples = np.ascontiguousarray(samples.T)  # columns one after the other
        self.tree = KDTree(samples)
        self.count = count = min(count, len(samples))
        # Distance of the nearest sample beyond which the others do not matter: those of the nearest
        # sample itself will do. A tree takes long for them.
        self.reach = reach
        # A list reaches far enough for new samples whose nearest sample is so far off that 6
        # samples were to be expected within that distance; others, 1 in 100, are looked up in the
        # tree. Lists have 110 samples for 65 neighbours in 2 dimensions, and 420 in 4, beyond which
        # a tree is as fast.
        few = max(1.0, dimension)
        length = int(np.ceil(count * (1 + (6 / count) ** (1 / few)) ** few))
        # One takes twice as long as the neighbours of a new sample. Above 100,000 samples they
        # would take more than some 100 MB.
        pays = 4 * len(samples) <= n_new and len(samples) <= 100_000
        self.has_lists = pays and dimension <= 4 and length < len(samples)
        if self.has_lists:
            distance, found = self.tree.query(samples, length, workers=cores())
            self.lists = np.sort(found, axis=1)  # (n_samples, length): samples near each sample
            self.radius = distance[:, -1]  # (n_samples,): up to which the list of a sample has all

    def around(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return known samples around new ones, (n_new, width), and their squared distances.

        Samples ascend in every row. Those that are not among the nearest ones are infinitely far.
        """
        distance, nearest = self.tree.query(X)
        far = distance > self.reach
        if not self.has_lists:
            return self._in_tree(X, np.where(far[:, None], self.tree.data[nearest], X))
        indices = self.lists.take(nearest, axis=0)
        squared = self._squared(X, indices)
        # The distance of the last one that belongs to the nearest.
        last = np.partition(squared, self.count - 1, axis=1)[:, self.count - 1]
        slack = 1 + ROUNDING
        squared[squared > slack * last[:, None]] = np.inf
        complete = slack * (np.sqrt(last) + distance) < self.radius.take(nearest)
        # Where several are at the last one's distance, the tree says which.
        alone = np.isfinite(squared).sum(axis=1) == self.count
        doubtful = np.flatnonzero(~(far | (complete & alone)))
        if len(doubtful):
            found, exact = self._in_tree(X[doubtful], X[doubtful])
            squared[doubtful] = np.inf
            indices[doubtful, : self.count] = found
            squared[doubtful, : self.count] = exact
        return indices, squared

    def _in_tree(self, X: np.ndarray, near: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the samples nearest to those at `near` by the tree, and their distances from X."""
        indices = np.sort(self.tree.query(near, self.count)[1].reshape(len(X), self.count), axis=1)
        return indices, self._squared(X, indices)

    def _squared(self, X: np.ndarray, indices: np.ndarray) -> np.ndarray:
        """Return squared distances between new samples and known ones, (n_new, k)."""
        squared = np.zeros(indices.shape)
        other = np.empty(indices.shape)
        for column, known in zip(X.T, self.samples, strict=True):
            # All indices are right, and "clip" is the mode that does not look.
            known.take(indices, out=other, mode="clip")
            other -= column[:, None]
            other *= other
            squared += other
        return squared
