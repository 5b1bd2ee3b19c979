"""The exact search on a torch device, and the table of neighbours that it finds."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from manifactor._support.extras import extra
from manifactor.spectral.resident import ResidentMatrix
from manifactor.spectral.search.cell_neighbors import nearest
from manifactor.spectral.search.cells import CellSettings, cell_order
from manifactor.spectral.search.interface import NeighborSearch

if TYPE_CHECKING:
    from torch import Tensor


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
