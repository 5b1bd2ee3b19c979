"""Neighbours searched for on a GPU."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from scipy.spatial import KDTree

from manifactor._support.errors import extra
from manifactor._support.threads import cores
from manifactor.spectral.gpu import ResidentMatrix
from manifactor.spectral.search.cell_neighbors import nearest
from manifactor.spectral.search.cells import CellSettings, cell_order
from manifactor.spectral.search.exact import NeighborSearch

if TYPE_CHECKING:
    from torch import Tensor


# The nearest samples of many new ones, found on the list of their nearest sample.


@dataclass(frozen=True)
class ListSettings:
    """Settings of `nearest_samples`."""

    # Lists grow with the intrinsic dimension: 110 samples for 65 neighbours in 2 dimensions, 420 in
    # 4, beyond which a tree is as fast.
    most_dimensions: float = 4.0

    # A list reaches far enough for new samples whose nearest sample is so far off that 6 samples
    # were to be expected within that distance; others, 1 in 100, are looked up in the tree.
    expected_nearer: float = 6.0

    # New samples for each known one from which on lists pay: one takes twice as long as the
    # neighbours of a new sample.
    new_per_known: float = 4.0

    # Known samples above which lists would take more than some 100 MB.
    most_known: int = 100_000

    # Distances that differ by less, relative to their size, may be in any order.
    rounding: float = 1e-12

    def length(self, count: int, dimension: float) -> int:
        """Return how long a list must be for `count` neighbours.

        >>> ListSettings().length(65, 2.0)
        111
        """
        farther = (self.expected_nearer / count) ** (1 / dimension)
        return int(np.ceil(count * (1 + farther) ** dimension))


@dataclass(frozen=True)
class Around:
    """Known samples around new ones."""

    # (n_new, width): known samples, ascending in every row; the nearest ones are among them
    indices: np.ndarray
    squared: np.ndarray  # (n_new, width): squared distances
    inside: np.ndarray  # (n_new, width): which of them are the nearest ones

    def nearest(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the nearest sample of each new one, and its squared distance."""
        rows = np.arange(len(self.indices))
        at = self.squared.argmin(axis=1)
        return self.indices[rows, at], self.squared[rows, at]


@dataclass(frozen=True)
class NearestSamples:
    """A search for the `count` nearest samples, exact.

    The result for a new sample depends on nothing else, to the last bit: not on the others that are
    asked for, nor on whether there are lists.
    """

    samples: np.ndarray  # (n_features, n_samples): columns one after the other
    tree: KDTree
    count: int
    # Distance of the nearest sample beyond which the others do not matter: those of the nearest
    # sample itself will do. A tree takes long for them.
    reach: float = np.inf
    lists: np.ndarray | None = None  # (n_samples, length): samples near each sample, ascending
    # (n_samples,): distance up to which the list of a sample has all
    radius: np.ndarray | None = None
    settings: ListSettings = ListSettings()

    def around(self, X: np.ndarray) -> Around:
        """Return the nearest samples of new ones, (n_new, n_features)."""
        distance, nearest = self.tree.query(X)
        far = distance > self.reach
        near = np.where(far[:, None], self.tree.data[nearest], X)
        if self.lists is None or self.radius is None:
            return self._in_tree(X, near)
        indices = self.lists.take(nearest, axis=0)
        squared = self._squared(X, indices)
        # The distance of the last one that belongs to the nearest.
        last = np.partition(squared, self.count - 1, axis=1)[:, self.count - 1]
        slack = 1 + self.settings.rounding
        inside = squared <= slack * last[:, None]
        complete = slack * (np.sqrt(last) + distance) < self.radius.take(nearest)
        # Where several are at the last one's distance, the tree says which.
        alone = np.count_nonzero(inside, axis=1) == self.count
        around = Around(indices, squared, inside)
        doubtful = np.flatnonzero(~(far | (complete & alone)))
        self._correct(around, X, doubtful)
        return around

    def _in_tree(self, X: np.ndarray, near: np.ndarray) -> Around:
        """Return the samples nearest to those at `near`, by the tree."""
        found = self.tree.query(near, self.count)[1].reshape(len(X), self.count)
        indices = np.sort(found, axis=1)
        inside = np.ones(indices.shape, dtype=bool)
        return Around(indices, self._squared(X, indices), inside)

    def _correct(self, around: Around, X: np.ndarray, rows: np.ndarray) -> None:
        """Replace what lists say of some rows by what the tree says."""
        if not len(rows):
            return
        found = self._in_tree(X[rows], X[rows])
        around.squared[rows], around.inside[rows] = np.inf, False
        around.indices[rows, : self.count] = found.indices
        around.squared[rows, : self.count] = found.squared
        around.inside[rows, : self.count] = True

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


def nearest_samples(
    samples: np.ndarray,
    count: int,
    *,
    dimension: float,
    n_new: int,
    reach: float = np.inf,
    settings: ListSettings = ListSettings(),
) -> NearestSamples:
    """Return a search for the `count` nearest of the samples.

    Lists of the samples near each sample are made where so many new samples pay for them: in few
    dimensions the neighbours of a new sample are near its nearest sample, and comparing it with a
    list takes a fifth of the time of a tree.

    Shapes: samples (n_samples, n_features).
    """
    samples = np.asarray(samples, dtype=np.float64)
    count = min(count, len(samples))
    tree = KDTree(samples)
    columns = np.ascontiguousarray(samples.T)
    search = NearestSamples(columns, tree, count, reach, settings=settings)
    length = settings.length(count, max(1.0, dimension))
    pays = settings.new_per_known * len(samples) <= n_new
    short = dimension <= settings.most_dimensions and length < len(samples)
    if not (pays and short and len(samples) <= settings.most_known):
        return search
    distance, found = tree.query(samples, length, workers=cores())
    return NearestSamples(
        columns, tree, count, reach, np.sort(found, axis=1), distance[:, -1], settings
    )


# The exact search on a torch device, and the table of neighbours that it finds.


@dataclass(frozen=True)
class NeighborTable:
    """Neighbours of every sample, on the device."""

    distances: "Tensor"  # (n, n_neighbors)
    indices: "Tensor"  # (n, n_neighbors)

    def copies(self) -> sp.csr_array:
        """Return ones for the neighbours at distance 0, on the host, (n, n)."""
        n_samples = len(self.indices)
        zero = self.distances == 0
        row, nth = zero.nonzero(as_tuple=True)
        column = self.indices[row, nth]
        pairs = (row.cpu().numpy(), column.cpu().numpy())
        entries = (np.ones(len(row)), pairs)
        return sp.csr_array(entries, shape=(n_samples, n_samples))

    def symmetric(self) -> ResidentMatrix:
        """Return a matrix with an entry wherever either sample is a neighbour."""
        torch = extra("torch")
        n, k = self.indices.shape
        row = torch.arange(n, device=self.indices.device)
        row = row[:, None].expand(n, k).reshape(-1)
        column = self.indices.reshape(-1)
        # One number for each pair: sorting it brings both directions of an edge together and puts
        # the entries into the order of the rows.
        keys = torch.cat([row * n + column, column * n + row])
        key, order = keys.sort()
        kept = torch.ones_like(key, dtype=torch.bool)
        kept[1:] = key[1:] != key[:-1]
        key = key[kept]
        order = order[kept]
        count = torch.bincount(key // n, minlength=n)
        starts = torch.cat([count.new_zeros(1), count.cumsum(0)])
        distances = self.distances.reshape(-1)
        return ResidentMatrix(
            starts=starts.int(), columns=(key % n).int(), entries=distances[order % (n * k)]
        )


class DeviceSearch(NeighborSearch):
    """Exact search on a torch device.

    Neighbours of the fitted samples are found in cells, those of new samples by comparing all
    pairs.
    """

    def __init__(
        self,
        n_neighbors: int = 64,
        *,
        device: str = "cuda",
        settings: CellSettings = CellSettings(),
    ) -> None:
        """Store the parameters."""
        self.n_neighbors = n_neighbors
        self.device = device
        self.settings = settings

    def fit(self, X, y=None) -> "DeviceSearch":
        """Put the samples on the device."""
        self.samples_ = self._on_device(X)
        self.mean_ = self.samples_.double().mean(dim=0)
        return self

    def fit_transform(self, X, y=None) -> NeighborTable:
        """Put the samples on the device and return the neighbours of each."""
        self.fit(X)
        found = nearest(self.samples_, self.n_neighbors, settings=self.settings)
        return NeighborTable(*found)

    def sample_order(self, X) -> np.ndarray:
        """Return an order in which neighbours lie close together, (n_samples,)."""
        # Products with the kernel then read memory that is in the cache.
        order = cell_order(self._on_device(X), settings=self.settings)
        return order.cpu().numpy()

    def transform(self, X) -> sp.csr_array:
        """Return distances to `n_neighbors` + 1 samples, (n_queries, n_samples)."""
        torch = extra("torch")
        n_samples = len(self.samples_)
        count = min(self.n_neighbors + 1, n_samples)
        step = max(1, self.settings.distances_per_step // n_samples)
        queries = self._on_device(X).double() - self.mean_
        known = self.samples_.double() - self.mean_
        # Matrix products would round, and a sample would not find itself.
        exact = "donot_use_mm_for_euclid_dist"
        found = [
            torch.cdist(block, known, compute_mode=exact).topk(count, largest=False)
            for block in queries.split(step)
        ]
        distances = torch.cat([block.values for block in found])
        indices = torch.cat([block.indices for block in found])
        data = distances.cpu().numpy().ravel().astype(float)
        columns = indices.cpu().numpy().ravel()
        starts = np.arange(0, len(data) + 1, count)
        return sp.csr_array((data, columns, starts), shape=(len(X), n_samples))

    def _on_device(self, X) -> "Tensor":
        # A copy, since torch warns about arrays that are read-only.
        return extra("torch").as_tensor(np.array(X)).to(self.device)
