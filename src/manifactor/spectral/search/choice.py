"""The choice of a neighbour search, and the search of a given name."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import Any

from manifactor._support.parameters import Choice, given, require_choice
from manifactor.spectral.gpu import require_device
from manifactor.spectral.search.approximate import ApproximateSearch, FaissSettings
from manifactor.spectral.search.cells import CellSettings
from manifactor.spectral.search.device import DeviceSearch
from manifactor.spectral.search.exact import BruteSearch, NeighborSearch, TreeSearch

log = logging.getLogger("manifactor")

SEARCHES = ("kd_tree", "brute", "faiss")
EXACT_REASONS = {
    "kd_tree": "exact; a tree is fastest in few dimensions",
    "brute": "exact; comparing all pairs is fastest in many dimensions",
}


@dataclass(frozen=True)
class NeighborSettings:
    """Settings of `neighbor_graph` and of the choice of a search."""

    # Default number of neighbours: the lowest 30 functions of flat 2-D and 3-D shapes were most
    # accurate between 64 and 128.
    n_neighbors: int = 64

    # Above, scikit-learn's fused brute force is faster than a tree at every size that was measured
    # (3,000 to 50,000 samples).
    tree_dimensions: int = 8

    # Samples above which faiss costs half of a tree in 6 dimensions, and a fifth of brute force in
    # 16 and 64.
    approximate_above: int = 50_000

    # Up to so many dimensions a tree is fastest for any number of samples.
    few_dimensions: int = 5

    # Samples above which a tree puts those of a leaf next to each other; fewer stay in the caches
    # whatever their order. The search of 100,000 then takes .6 of the time.
    ordered_above: int = 50_000

    faiss: FaissSettings = field(default_factory=FaissSettings)
    cells: CellSettings = field(default_factory=CellSettings)

    def exact_search(self, n_features: int) -> str:
        """Return the name of the fastest exact search."""
        return "kd_tree" if n_features <= self.tree_dimensions else "brute"

    def prefers_approximate(self, n_samples: int, n_features: int) -> bool:
        """Return whether an approximate search is faster than the exact ones."""
        many = n_samples > self.approximate_above
        return many and n_features > self.few_dimensions


def choose_search(
    n_samples: int,
    n_features: int,
    *,
    method: Any = "auto",
    device: str = "cpu",
    settings: NeighborSettings = NeighborSettings(),
) -> Choice:
    """Choose the search for so many samples and columns.

    >>> choose_search(1000, 3)
    Choice(value='kd_tree', why='exact; a tree is fastest in few dimensions')
    >>> choose_search(1000, 3, method="brute")
    Choice(value='brute', why='set by the caller')
    """
    if not isinstance(method, str):
        return given("custom")
    require_choice("neighbors", method, ["auto", "precomputed", *SEARCHES])
    if method != "auto":
        return given(method)
    if device != "cpu":
        return Choice("cells", "exact; it runs on the device")
    exact = settings.exact_search(n_features)
    if not settings.prefers_approximate(n_samples, n_features):
        return Choice(exact, EXACT_REASONS[exact])
    many = f"there are more than {settings.approximate_above:,} samples"
    # Not imported here: loading faiss is left to the fit of the search.
    if find_spec("faiss") is not None:
        return Choice("faiss", f"approximate, as {many}; its recall is measured")
    log.warning(
        "the exact search (%s) of %d samples in %d dimensions takes time that grows "
        "with the square of the number of samples; faiss would save most of it: "
        "pip install 'manifactor[ann]'.",
        exact,
        n_samples,
        n_features,
    )
    return Choice(exact, f"exact; {many}, but the package faiss is not installed")


def make_search(
    method: str,
    n_neighbors: int,
    *,
    n_jobs: int | None = -1,
    device: str = "cpu",
    settings: NeighborSettings = NeighborSettings(),
) -> NeighborSearch:
    """Return a Euclidean search by name: "kd_tree", "brute", "faiss" or "cells"."""
    if method == "cells":
        where = require_device(device)
        return DeviceSearch(n_neighbors, device=where, settings=settings.cells)
    if method == "faiss":
        return ApproximateSearch(n_neighbors, n_jobs=n_jobs, settings=settings.faiss)
    exact: dict[str, Callable[..., NeighborSearch]] = {
        "kd_tree": partial(TreeSearch, ordered_above=settings.ordered_above),
        "brute": BruteSearch,
    }
    return exact[method](n_neighbors, n_jobs=n_jobs)
