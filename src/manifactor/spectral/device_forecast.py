"""Memory and time of a fit on a GPU, estimated before it starts."""

from dataclasses import dataclass

from manifactor._support.extras import extra
from manifactor.spectral.filter_plan import block_width
from manifactor.spectral.forecast import Forecast, as_size


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
