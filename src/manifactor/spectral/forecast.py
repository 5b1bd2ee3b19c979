"""Memory and time of a fit, estimated before it starts from measured rates."""

from dataclasses import dataclass, replace

from manifactor._support.errors import extra
from manifactor._support.memory import available_memory
from manifactor._support.threads import cores
from manifactor.spectral.filter_plan import block_width
from manifactor.spectral.neighbors import NeighborSettings
from manifactor.spectral.parts import PartSettings, part_size
from manifactor.spectral.solvers import SolverSettings


@dataclass(frozen=True)
class ForecastSettings:
    """Rates of `forecast`.

    They were measured on two cores of 2.4 GHz; the growth is that of tori of 10,000 to 1,000,000
    samples.
    """

    # Cores that the rates were measured on, and the share of the time, there, in which one core
    # works alone: a seventh of the CPU time is that of the main thread.
    measured_cores: int = 2
    serial_share: float = 0.25

    # Entries of a row of the symmetric graph for each neighbour.
    entries_per_neighbor: float = 1.07

    # An entry is a number of 8 bytes and a column of 4; the peak of a fit, as measured, is 6 times
    # the memory of the graph: its dense tiles are held beside it.
    bytes_per_entry: int = 12
    graph_copies: float = 6.0

    # Of a block of the solver: two in single and two in double precision.
    bytes_per_block_number: int = 24

    # Functions and samples are held twice, in double precision.
    bytes_per_function_value: int = 16
    bytes_per_sample_value: int = 16

    # With all samples as neighbours, the peak as a multiple of the dense kernel.
    dense_copies: float = 2.5

    # Passes over the dense kernel for each function, and how much slower they are than products of
    # dense matrices, as they wait for memory.
    dense_passes_per_function: int = 3
    dense_slowdown: float = 10.0

    # Products of the sparse matrix with a block at `products_samples` samples, and the power by
    # which they grow.
    products: float = 38
    products_samples: int = 10_000
    products_growth: float = 0.30

    # Operations a second: of products of the sparse matrix with a block, and of dense products.
    sparse_flops: float = 1.6e10
    dense_flops: float = 6e10

    # Operations of the dense algebra on a block, in units of n_samples * width^2.
    block_operations: int = 20

    # Seconds of a full decomposition, which is for few samples only.
    dense_solver_seconds: float = 0.5

    # Seconds a sample of a tree in few dimensions, and how many times that in more.
    tree_seconds: float = 3e-5
    larger_tree: float = 5.0

    # Seconds a sample of faiss, and additional ones for each column.
    faiss_seconds: float = 3e-5
    faiss_column_seconds: float = 6e-7

    # Brute force costs as much as so many columns more, for the choice of the nearest.
    brute_extra_columns: int = 16

    # Seconds of what follows the spectrum, and additional ones for each sample.
    factoring_seconds: float = 0.5
    factoring_sample_seconds: float = 1.5e-5

    # Spectra of two parts of the samples, where there are many; else of two halves, which take 0.7
    # of the whole.
    n_parts: int = 2
    halves_factor: float = 1.7


@dataclass(frozen=True)
class Forecast:
    """Memory and time of a fit; ``str()`` reads as prose.

    Attributes
    ----------
    memory : float
        In bytes.
    seconds : float
    device_memory : float
        Bytes on the device; 0 for a fit on the CPU.
    """

    memory: float
    seconds: float
    device_memory: float = 0.0

    @property
    def fits(self) -> bool:
        """Whether this machine has the memory."""
        return self.memory <= available_memory()

    def __str__(self) -> str:
        sizes = f"about {as_size(self.memory)}"
        if self.device_memory:
            sizes += f", {as_size(self.device_memory)} on the device,"
        return f"{sizes} and {as_duration(self.seconds)}"


def forecast(
    n_samples: int,
    n_features: int,
    *,
    n_neighbors: int | str,
    n_functions: int,
    search: str = "auto",
    n_cores: int | None = None,
    settings: ForecastSettings = ForecastSettings(),
) -> Forecast:
    """Estimate what fitting so many samples of so many columns costs on the CPU.

    The time is that of cores at 2.4 GHz, by default of as many as there are.

    >>> print(forecast(1_000_000, 4, n_neighbors=64, n_functions=100, n_cores=2))
    about 10.9 GB and 5 minutes
    """
    if n_neighbors == "all":
        cost = _dense_forecast(n_samples, n_functions, settings)
    else:
        shape = (n_samples, n_features, int(n_neighbors), n_functions)
        cost = _sparse_forecast(*shape, search=search, settings=settings)
    return replace(cost, seconds=cost.seconds * _slowdown(n_cores, settings))


def _sparse_forecast(
    n_samples: int,
    n_features: int,
    count: int,
    n_functions: int,
    *,
    search: str,
    settings: ForecastSettings,
) -> Forecast:
    """Estimate the cost of a fit with `count` neighbours of each sample."""
    entries = settings.entries_per_neighbor * n_samples * count
    width = block_width(n_samples, n_functions)
    block = float(settings.bytes_per_block_number * n_samples * width)
    functions = settings.bytes_per_function_value * n_samples * n_functions
    samples = settings.bytes_per_sample_value * n_samples * n_features
    graph = settings.graph_copies * settings.bytes_per_entry * entries
    memory = graph + (block + functions) + samples
    seconds = _search_seconds(n_samples, n_features, search, settings)
    seconds += settings.factoring_seconds
    seconds += settings.factoring_sample_seconds * n_samples
    seconds += _spectrum_seconds(n_samples, count, n_functions, settings)
    if n_samples <= PartSettings().parted_above:
        return Forecast(memory, settings.halves_factor * seconds)
    part = _spectrum_seconds(part_size(n_samples), count, n_functions, settings)
    return Forecast(memory, seconds + settings.n_parts * part)


def _slowdown(n_cores: int | None, settings: ForecastSettings) -> float:
    """Return the time on so many cores over that on those of the measurements."""
    ratio = settings.measured_cores / (n_cores or cores())
    return settings.serial_share + (1 - settings.serial_share) * ratio


def require_memory(needed: Forecast, n_samples: int) -> None:
    """Raise MemoryError for a fit that exceeds the memory, and say which would not."""
    available = available_memory()
    if needed.memory <= available:
        return
    fewer = int(n_samples * available / needed.memory)
    raise MemoryError(
        f"the fit must fit into memory; {n_samples} samples need {needed}, and this "
        f"machine can give {available / 1e9:.1f} GB. Fit at most {fewer} samples and "
        f"place the others (`fit_samples={fewer}`, or `transform`), or "
        "lower `n_neighbors` and `n_functions`."
    )


def _dense_forecast(n_samples: int, n_functions: int, settings: ForecastSettings) -> Forecast:
    """Estimate the cost of a fit with all samples as neighbours."""
    matrix = 8.0 * n_samples**2
    numbers = settings.dense_passes_per_function * n_functions * matrix / 8
    seconds = numbers / settings.dense_flops * settings.dense_slowdown
    return Forecast(settings.dense_copies * matrix, seconds)


def _search_seconds(
    n_samples: int, n_features: int, search: str, settings: ForecastSettings
) -> float:
    """Estimate the seconds of a search; of the fastest one if it is not ours."""
    choice = NeighborSettings()
    if search not in ("kd_tree", "brute", "faiss"):
        approximate = choice.prefers_approximate(n_samples, n_features)
        search = "faiss" if approximate else choice.exact_search(n_features)
    if search == "faiss":
        columns = settings.faiss_column_seconds * n_features
        return n_samples * (settings.faiss_seconds + columns)
    if search == "kd_tree":
        few = n_features <= choice.few_dimensions
        return n_samples * settings.tree_seconds * (1 if few else settings.larger_tree)
    columns = n_features + settings.brute_extra_columns
    return 2.0 * n_samples**2 * columns / settings.dense_flops


def _spectrum_seconds(
    n_samples: int, n_neighbors: int, n_functions: int, settings: ForecastSettings
) -> float:
    """Estimate the seconds of the eigensolver."""
    if n_samples <= SolverSettings().dense_samples:
        return settings.dense_solver_seconds
    growth = (n_samples / settings.products_samples) ** settings.products_growth
    products = settings.products * growth
    width = block_width(n_samples, n_functions)
    entries = settings.entries_per_neighbor * n_samples * n_neighbors
    sparse = 2 * entries * width * products / settings.sparse_flops
    dense = settings.block_operations * n_samples * width**2
    return sparse + dense / settings.dense_flops


def as_size(memory: float) -> str:
    """Return bytes in words."""
    # Below this, a decimal of a gigabyte says nothing.
    if memory < 1e8:
        return f"{max(1, round(memory / 1e6))} MB"
    return f"{memory / 1e9:.1f} GB"


def as_duration(seconds: float) -> str:
    """Return a duration in seconds, minutes or hours."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:.1f} hours"


# Memory and time of a fit on a GPU, estimated before it starts.


@dataclass(frozen=True)
class DeviceRates:
    """Rates of `forecast_on_device`.

    Bytes are counted in the code, and were traced in fits through torch on the CPU; of 10,000,000
    samples of a torus they are the 75 GB that were measured on an H200. Seconds were measured
    there, with 100,000 to 10,000,000 samples.
    """

    # Fraction of the free memory that a fit may take: the allocator needs some room.
    memory_share: float = 0.9

    # Tiles of the search at most, and of one query; beside them, the table of neighbours that it
    # fills.
    search_bytes: float = 2**31
    bytes_per_query: float = 40_000.0
    bytes_per_neighbor: float = 12.0

    # Of an entry of that table while it is made symmetric: itself and its row, 20; the keys of both
    # directions of a pair and their places, before and after they are sorted, 16 each; and as much
    # again for the sort.
    bytes_per_sorted_neighbor: float = 116.0

    # Of an entry of the graph while functions are computed: a column of 4, distance, kernel and
    # walk in single precision, and the walk in double.
    bytes_per_entry: float = 24.0
    entries_per_neighbor: float = 1.07

    # Vectors that fill a GPU, of which the solver makes use; bytes of a number in its block, and of
    # one in a sample.
    wide_block: int = 256
    bytes_per_block_number: float = 26.0
    bytes_per_sample_value: float = 16.0

    # On the host, at the end: distances and kernel with 12 bytes an entry, and functions once more
    # than there are.
    host_bytes_per_entry: float = 24.0
    host_bytes_per_function_value: float = 24.0

    # Seconds of what does not grow, of a sample in all stages but the spectrum, and of one in the
    # spectrum of `spectrum_samples` samples, which grows by a power.
    fixed_seconds: float = 0.6
    sample_seconds: float = 2.3e-6
    spectrum_seconds: float = 1.4e-6
    spectrum_samples: int = 1_000_000
    spectrum_growth: float = 0.385


def is_gpu(device: str) -> bool:
    """Return whether a device is one whose cost is known."""
    return str(device).removeprefix("torch:").partition(":")[0] == "cuda"


def forecast_on_device(
    n_samples: int,
    n_features: int,
    *,
    n_neighbors: int,
    n_functions: int,
    rates: DeviceRates = DeviceRates(),
) -> Forecast:
    """Estimate what fitting so many samples of so many columns costs on a GPU.

    >>> print(forecast_on_device(1_000_000, 4, n_neighbors=64, n_functions=100))
    about 4.1 GB, 7.5 GB on the device, and 4 s
    """
    entries = rates.entries_per_neighbor * n_neighbors
    size = n_samples / rates.spectrum_samples
    spectrum = rates.spectrum_seconds * size**rates.spectrum_growth
    seconds = rates.fixed_seconds + n_samples * (rates.sample_seconds + spectrum)
    host = (
        rates.host_bytes_per_entry * entries
        + rates.host_bytes_per_function_value * n_functions
        + rates.bytes_per_sample_value * n_features
    )
    shape = (n_samples, n_features, n_neighbors, n_functions)
    return Forecast(n_samples * host, seconds, _device_bytes(*shape, rates))


def _device_bytes(
    n_samples: int, n_features: int, n_neighbors: int, n_functions: int, rates: DeviceRates
) -> float:
    """Return the bytes on the device in the stage that takes most."""
    tiles = min(rates.search_bytes, rates.bytes_per_query * n_samples)
    searching = tiles + rates.bytes_per_neighbor * n_neighbors * n_samples
    joining = rates.bytes_per_sorted_neighbor * n_neighbors * n_samples
    width = block_width(n_samples, n_functions, wide=rates.wide_block)
    solving = n_samples * (
        rates.bytes_per_entry * rates.entries_per_neighbor * n_neighbors
        + rates.bytes_per_block_number * width
    )
    samples = rates.bytes_per_sample_value * n_features * n_samples
    return samples + max(searching, joining, solving)


def require_device_memory(needed: Forecast, n_samples: int, available: float) -> None:
    """Raise MemoryError for a fit that exceeds a device, and say which would not."""
    if needed.device_memory <= available:
        return
    fewer = int(n_samples * available / needed.device_memory)
    raise MemoryError(
        f"the fit must fit into the memory of the device; {n_samples} samples need "
        f"{as_size(needed.device_memory)} there, and it can give {as_size(available)}. "
        f"Fit at most {fewer} samples and place the others (`fit_samples={fewer}`, "
        "or `transform`), lower `n_neighbors` and `n_functions`, or use `device='cpu'`."
    )


def available_on(device: str, *, rates: DeviceRates = DeviceRates()) -> float:
    """Return the bytes of a GPU's memory that a fit may take."""
    name = str(device).removeprefix("torch:")
    cuda = extra("torch").cuda
    free, _ = cuda.mem_get_info(name)
    # Torch keeps what earlier fits have released, and uses it again.
    kept = cuda.memory_reserved(name) - cuda.memory_allocated(name)
    return rates.memory_share * (free + kept)
