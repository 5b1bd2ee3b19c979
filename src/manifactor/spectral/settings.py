"""Parameters of the way from samples to a Diffusion: their record, defaults and checks."""

from dataclasses import dataclass
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
from manifactor.spectral.laplacian import SOLVERS
from manifactor.spectral.neighbors import N_NEIGHBORS, SEARCHES
from manifactor.spectral.preparation import PREPARATIONS

# Samples needed to resolve one function.
SAMPLES_PER_FUNCTION = 8


@dataclass(frozen=True)
class DiffusionSettings:
    """The caller's parameters of `diffuse`, which are documented in `DiffusionMap`.

    A method that needs few functions gives their number and the reason for it.
    """

    n_functions: int | str | Choice = "auto"
    n_neighbors: int | str = "auto"
    bandwidth: float | str = "auto"
    density_correction: float = 1.0
    neighbors: Any = "auto"
    preparation: str = "auto"
    solver: str = "auto"
    device: str = "cpu"
    n_jobs: int | None = -1

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
    if n_samples > N_NEIGHBORS:
        why = "low eigenfunctions are most accurate with 64 to 128 neighbours"
        return Choice(N_NEIGHBORS, why)
    return Choice(n_samples - 1, "there are no more samples")


def number_of_functions(settings: DiffusionSettings, n_distinct: int) -> Choice:
    """Return the number of functions to compute, the constant one included."""
    asked = settings.n_functions
    if isinstance(asked, Choice):
        return Choice(min(asked.value, n_distinct - 1), asked.why)
    return automatic_functions(n_distinct) if asked == "auto" else given(asked)


def automatic_functions(n_samples: int) -> Choice:
    """Return the number of functions to compute unless the caller says so."""
    # The constant function and two others: less shows nothing. 100 functions show the products of
    # all factors of the built-in shapes.
    count = min(100, max(3, n_samples // SAMPLES_PER_FUNCTION), n_samples - 1)
    return Choice(
        count,
        f"one for every {SAMPLES_PER_FUNCTION} samples, 100 at most; more only where a dimension "
        "of the data is missing",
    )


def require_diffusion(settings: DiffusionSettings, n_samples: int) -> None:
    """Raise ValueError for a parameter that is wrong for this number of samples."""
    require_choice("preparation", settings.preparation, PREPARATIONS)
    require_choice("solver", settings.solver, ["auto", *SOLVERS])
    if settings.device != "cpu":
        require_device(settings.device)
        require_choice("solver", settings.solver, ["auto", "chebyshev"], "on a device")
    search, n_jobs = settings.neighbors, settings.n_jobs
    if isinstance(search, str):
        require_choice("neighbors", search, ["auto", "precomputed", *SEARCHES])
    elif not (hasattr(search, "fit") and hasattr(search, "transform")):
        raise ValueError(
            "`neighbors` must be a name or an object with fit and transform, such as "
            f"sklearn.neighbors.KNeighborsTransformer; got {search!r}."
        )
    _require_bandwidth(settings)
    require_number("density_correction", settings.density_correction, low=0, high=1)
    _require_neighbors(settings, n_samples)
    is_whole = isinstance(n_jobs, Integral) and not isinstance(n_jobs, bool)
    # More than any machine has cores: the threads could not be started.
    if n_jobs is not None and not (is_whole and 0 < abs(n_jobs) <= 2**15):
        raise ValueError(
            "`n_jobs` must be None or a whole number other than 0, -1 for all cores; "
            f"got {n_jobs!r}."
        )
    count = settings.n_functions
    if isinstance(count, str):
        require_choice("n_functions", count, ["auto"], "or a number")
    elif not isinstance(count, Choice):
        require_count("n_functions", count, low=2, high=n_samples - 1, n_samples=n_samples)


def _require_bandwidth(settings: DiffusionSettings) -> None:
    if not isinstance(settings.bandwidth, str):
        require_number("bandwidth", settings.bandwidth, above=0)
        return
    require_choice("bandwidth", settings.bandwidth, ["auto", "local"], "or a positive number")
    if settings.bandwidth == "local" and settings.dense:
        raise ValueError(
            "`bandwidth='local'` needs a neighbour graph; got `n_neighbors='all'`. "
            "Set `n_neighbors` to a number."
        )


def _require_neighbors(settings: DiffusionSettings, n_samples: int) -> None:
    count = settings.n_neighbors
    if not isinstance(count, str):
        require_count("n_neighbors", count, low=1, high=n_samples - 1, n_samples=n_samples)
        if settings.precomputed or settings.own_search:
            decides, where = "the search given as `neighbors` decides", "in the search"
            if settings.precomputed:
                decides, where = "precomputed distances decide", "by the distances of each sample"
            raise ValueError(
                f"{decides} the number of neighbours; got `n_neighbors`={count}. Leave it at "
                f"'auto', and set the number {where}."
            )
        return
    require_choice("n_neighbors", count, ["auto", "all"], "or a number")
    if settings.dense and (settings.own_search or settings.precomputed):
        raise ValueError(
            "`n_neighbors='all'` measures Euclidean distances; got "
            f"`neighbors`={settings.neighbors!r}. Leave `neighbors` at 'auto'."
        )
