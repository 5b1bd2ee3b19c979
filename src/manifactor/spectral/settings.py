"""Settings of the way from samples to a Diffusion: choices, defaults and checks."""

from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

from manifactor._support.parameters import (
    Choice,
    given,
    require_choice,
    require_count,
    require_number,
)
from manifactor.spectral.gpu import require_device
from manifactor.spectral.kernel import KernelSettings
from manifactor.spectral.laplacian import OutlierSettings, SpectrumSettings
from manifactor.spectral.neighbors import NeighborSettings
from manifactor.spectral.parts import PartSettings
from manifactor.spectral.preparation import PREPARATIONS, PreparationSettings
from manifactor.spectral.search.choice import SEARCHES
from manifactor.spectral.solvers import SOLVERS


@dataclass(frozen=True)
class FunctionCounts:
    """How many eigenfunctions are computed unless the caller says so."""

    # 100 functions show the products of all factors of the built-in shapes.
    usual: int = 100
    # A method may ask for more, where a dimension of the data is missing.
    largest: int = 400
    # Samples needed to resolve one function.
    samples_per_function: int = 8
    # The constant function and two others: less shows nothing.
    smallest: int = 3
    # A spectrum of the walk that ends below this eigenvalue ended because the kernel resolves no
    # more, not because the solver stopped.
    exhausted: float = 1e-3
    why: str = (
        "one for every 8 samples, 100 at most; more only where a dimension of the data is missing"
    )

    def automatic(self, n_samples: int) -> int:
        """Return the number of functions to compute for so many samples."""
        resolved = max(self.smallest, n_samples // self.samples_per_function)
        return min(self.usual, resolved, n_samples - 1)

    def limit(self, n_samples: int) -> int:
        """Return the largest number that a method may ask for."""
        return min(self.largest, n_samples // self.samples_per_function)


@dataclass(frozen=True)
class DiffusionSettings:
    """Settings of `diffuse`: the caller's parameters, then those of each algorithm.

    The parameters are documented in `DiffusionMap`.
    """

    n_functions: int | str = "auto"
    n_neighbors: int | str = "auto"
    bandwidth: float | str = "auto"
    density_correction: float = 1.0
    neighbors: Any = "auto"
    preparation: str = "auto"
    solver: str = "auto"
    device: str = "cpu"
    n_jobs: int | None = -1

    counts: FunctionCounts = field(default_factory=FunctionCounts)
    preparing: PreparationSettings = field(default_factory=PreparationSettings)
    searching: NeighborSettings = field(default_factory=NeighborSettings)
    kernel: KernelSettings = field(default_factory=KernelSettings)
    outliers: OutlierSettings = field(default_factory=OutlierSettings)
    parts: PartSettings = field(default_factory=PartSettings)
    spectrum: SpectrumSettings = field(default_factory=SpectrumSettings)

    @property
    def precomputed(self) -> bool:
        """Whether `X` is a matrix of distances."""
        return isinstance(self.neighbors, str) and self.neighbors == "precomputed"

    @property
    def own_search(self) -> bool:
        """Whether the caller's own object searches for neighbours."""
        return not isinstance(self.neighbors, str)

    @property
    def dense(self) -> bool:
        """Whether the kernel holds all pairs of samples."""
        return isinstance(self.n_neighbors, str) and self.n_neighbors == "all"


def number_of_neighbors(settings: DiffusionSettings, n_samples: int) -> Choice:
    """Return the number of neighbours of each sample, "all" for the dense kernel."""
    if settings.n_neighbors != "auto":
        return given(settings.n_neighbors)
    usual = settings.searching.n_neighbors
    if usual < n_samples:
        why = "low eigenfunctions are most accurate with 64 to 128 neighbours"
        return Choice(usual, why)
    return Choice(n_samples - 1, "there are no more samples")


def number_of_functions(settings: DiffusionSettings, n_distinct: int) -> Choice:
    """Return the number of functions to compute, the constant one included."""
    if settings.n_functions != "auto":
        return given(settings.n_functions)
    counts = settings.counts
    return Choice(counts.automatic(n_distinct), counts.why)


def require_diffusion(settings: DiffusionSettings, n_samples: int) -> None:
    """Raise ValueError for a parameter that is wrong for so many samples."""
    require_choice("preparation", settings.preparation, PREPARATIONS)
    _require_solver(settings)
    _require_search(settings)
    _require_bandwidth(settings)
    require_number("density_correction", settings.density_correction, low=0, high=1)
    _require_neighbors(settings, n_samples)
    _require_jobs(settings.n_jobs)
    if isinstance(settings.n_functions, str):
        require_choice("n_functions", settings.n_functions, ["auto"], "or a number")
    else:
        most = n_samples - 1
        require_count("n_functions", settings.n_functions, low=2, high=most, n_samples=n_samples)


def _require_solver(settings: DiffusionSettings) -> None:
    require_choice("solver", settings.solver, ["auto", *SOLVERS])
    if settings.device != "cpu":
        require_device(settings.device)
        require_choice("solver", settings.solver, ["auto", "chebyshev"], "on a device")


def _require_search(settings: DiffusionSettings) -> None:
    search = settings.neighbors
    if isinstance(search, str):
        require_choice("neighbors", search, ["auto", "precomputed", *SEARCHES])
    elif not (hasattr(search, "fit") and hasattr(search, "transform")):
        raise ValueError(
            "`neighbors` must be a name or an object with fit and transform, such as "
            f"sklearn.neighbors.KNeighborsTransformer; got {search!r}."
        )


def _require_bandwidth(settings: DiffusionSettings) -> None:
    if not isinstance(settings.bandwidth, str):
        require_number("bandwidth", settings.bandwidth, above=0)
        return
    names = ["auto", "local"]
    require_choice("bandwidth", settings.bandwidth, names, "or a positive number")
    if settings.bandwidth == "local" and settings.dense:
        raise ValueError(
            "`bandwidth='local'` needs a neighbour graph; got `n_neighbors='all'`. "
            "Set `n_neighbors` to a number."
        )


def _require_neighbors(settings: DiffusionSettings, n_samples: int) -> None:
    count = settings.n_neighbors
    if not isinstance(count, str):
        require_count("n_neighbors", count, low=1, high=n_samples - 1, n_samples=n_samples)
        _require_own_count(settings)
        return
    require_choice("n_neighbors", count, ["auto", "all"], "or a number")
    if settings.dense and (settings.own_search or settings.precomputed):
        raise ValueError(
            "`n_neighbors='all'` measures Euclidean distances; got "
            f"`neighbors`={settings.neighbors!r}. Leave `neighbors` at 'auto'."
        )


def _require_own_count(settings: DiffusionSettings) -> None:
    """Raise ValueError for a number of neighbours that something else decides."""
    if settings.precomputed:
        raise ValueError(
            "precomputed distances decide the number of neighbours; got "
            f"`n_neighbors`={settings.n_neighbors}. Leave it at 'auto', and give as "
            "many distances for each sample."
        )
    if settings.own_search:
        raise ValueError(
            "the search given as `neighbors` decides their number; got "
            f"`n_neighbors`={settings.n_neighbors}. Leave it at 'auto', and set the "
            "number in the search."
        )


def _require_jobs(n_jobs: Any) -> None:
    is_whole = isinstance(n_jobs, Integral) and not isinstance(n_jobs, bool)
    # More than any machine has cores: the threads could not be started.
    if n_jobs is not None and not (is_whole and 0 < abs(n_jobs) <= 2**15):
        raise ValueError(
            "`n_jobs` must be None or a whole number other than 0, -1 for all cores; "
            f"got {n_jobs!r}."
        )
