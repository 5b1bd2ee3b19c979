"""Memory and time of a fit, estimated before it starts from measured rates.

Rates of the CPU were measured on two cores of 2.4 GHz; the growth is that of tori of 10,000 to
1,000,000 samples.
"""

from dataclasses import dataclass, replace

from manifactor._support.errors import extra
from manifactor._support.memory import available_memory
from manifactor._support.threads import cores
from manifactor.spectral.filter_plan import block_width
from manifactor.spectral.laplacian import DENSE_SAMPLES
from manifactor.spectral.neighbors import FEW_DIMENSIONS, exact_search, prefers_approximate
from manifactor.spectral.parts import PARTED_ABOVE, part_size

# Entries of a row of the symmetric graph for each neighbour.
ENTRIES_PER_NEIGHBOR = 1.07

# Samples are held twice, in double precision.
BYTES_PER_SAMPLE_VALUE = 16

# Operations a second of dense products.
DENSE_FLOPS = 6e10


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
) -> Forecast:
    """Estimate what fitting samples of this shape costs on the CPU.

    The time is that of cores at 2.4 GHz, by default of as many as there are.

    >>> print(forecast(1_000_000, 4, n_neighbors=64, n_functions=100, n_cores=2))
    about 10.9 GB and 5 minutes
    """
    if n_neighbors == "all":
        cost = _dense_forecast(n_samples, n_functions)
    else:
        cost = _sparse_forecast(n_samples, n_features, int(n_neighbors), n_functions, search)
    # A quarter of the time, on the 2 cores of the measurements, one core works alone.
    slowdown = 0.25 + 0.75 * (2 / (n_cores or cores()))
    return replace(cost, seconds=cost.seconds * slowdown)


def _sparse_forecast(
    n_samples: int, n_features: int, count: int, n_functions: int, search: str
) -> Forecast:
    """Estimate the cost of a fit with `count` neighbours of each sample."""
    # The solver's block: two in single and two in double precision.
    block = 24.0 * n_samples * block_width(n_samples, n_functions)
    # Functions are held twice, in double precision.
    functions = 16 * n_samples * n_functions
    samples = BYTES_PER_SAMPLE_VALUE * n_samples * n_features
    # An entry is a number of 8 bytes and a column of 4; the peak of a fit, as measured, is 6 times
    # the memory of the graph: its dense tiles are held beside it.
    graph = 6 * 12 * (ENTRIES_PER_NEIGHBOR * n_samples * count)
    memory = graph + (block + functions) + samples
    seconds = _search_seconds(n_samples, n_features, search)
    # What follows the spectrum.
    seconds += 0.5
    seconds += 1.5e-5 * n_samples
    seconds += _spectrum_seconds(n_samples, count, n_functions)
    # Spectra of two halves take 0.7 of the whole. Many samples have two parts instead.
    if n_samples <= PARTED_ABOVE:
        return Forecast(memory, 1.7 * seconds)
    part = _spectrum_seconds(part_size(n_samples), count, n_functions)
    return Forecast(memory, seconds + 2 * part)


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


def _dense_forecast(n_samples: int, n_functions: int) -> Forecast:
    """Estimate the cost of a fit with all samples as neighbours."""
    matrix = 8.0 * n_samples**2
    # Three passes over the kernel for each function, ten times slower than products of dense
    # matrices, as they wait for memory.
    seconds = 3 * n_functions * matrix / 8 / DENSE_FLOPS * 10
    return Forecast(2.5 * matrix, seconds)


def _search_seconds(n_samples: int, n_features: int, search: str) -> float:
    """Estimate the seconds of a search; of the fastest one if it is not ours."""
    if search not in ("kd_tree", "brute", "faiss"):
        approximate = prefers_approximate(n_samples, n_features)
        search = "faiss" if approximate else exact_search(n_features)
    if search == "faiss":
        return n_samples * (3e-5 + 6e-7 * n_features)
    if search == "kd_tree":
        return n_samples * 3e-5 * (1 if n_features <= FEW_DIMENSIONS else 5)
    # The choice of the nearest costs as much as 16 columns more.
    return 2.0 * n_samples**2 * (n_features + 16) / DENSE_FLOPS


def _spectrum_seconds(n_samples: int, n_neighbors: int, n_functions: int) -> float:
    """Estimate the seconds of the eigensolver."""
    if n_samples <= DENSE_SAMPLES:
        return 0.5
    # Products of the sparse matrix with a block, and operations on a block in units of
    # n_samples * width^2.
    products = 38 * (n_samples / 10_000) ** 0.30
    width = block_width(n_samples, n_functions)
    entries = ENTRIES_PER_NEIGHBOR * n_samples * n_neighbors
    sparse = 2 * entries * width * products / 1.6e10
    return sparse + 20 * n_samples * width**2 / DENSE_FLOPS


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


# Memory and time of a fit on a GPU.
#
# Bytes are counted in the code, and were traced in fits through torch on the CPU; for 10,000,000
# samples of a torus they are the 75 GB that were measured on an H200. Seconds were measured there,
# with 100,000 to 10,000,000 samples.


def is_gpu(device: str) -> bool:
    """Return whether a device is one whose cost is known."""
    return str(device).removeprefix("torch:").partition(":")[0] == "cuda"


def forecast_on_device(
    n_samples: int, n_features: int, *, n_neighbors: int, n_functions: int
) -> Forecast:
    """Estimate what fitting samples of this shape costs on a GPU.

    >>> print(forecast_on_device(1_000_000, 4, n_neighbors=64, n_functions=100))
    about 4.1 GB, 7.5 GB on the device, and 4 s
    """
    entries = ENTRIES_PER_NEIGHBOR * n_neighbors
    # What does not grow, then a sample in all stages but the spectrum, and one in the spectrum.
    spectrum = 1.4e-6 * (n_samples / 1_000_000) ** 0.385
    seconds = 0.6 + n_samples * (2.3e-6 + spectrum)
    # At the end: distances and kernel with 12 bytes an entry, and functions once more than there
    # are.
    host = 24 * entries + 24 * n_functions + BYTES_PER_SAMPLE_VALUE * n_features
    # Tiles of the search, and the table of neighbours that it fills.
    searching = min(2**31, 40_000 * n_samples) + 12 * n_neighbors * n_samples
    # An entry of that table while it is made symmetric: itself and its row, 20; the keys of both
    # directions of a pair and their places, before and after they are sorted, 16 each; and as much
    # again for the sort.
    joining = 116 * n_neighbors * n_samples
    # An entry of the graph while functions are computed: a column of 4, distance, kernel and walk
    # in single precision, and the walk in double. The solver makes use of 256 vectors.
    width = block_width(n_samples, n_functions, wide=256)
    solving = n_samples * (24 * ENTRIES_PER_NEIGHBOR * n_neighbors + 26 * width)
    samples = BYTES_PER_SAMPLE_VALUE * n_features * n_samples
    on_device = float(samples + max(searching, joining, solving))
    return Forecast(n_samples * host, seconds, on_device)


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


def available_on(device: str) -> float:
    """Return the bytes of a GPU's memory that a fit may take."""
    name = str(device).removeprefix("torch:")
    cuda = extra("torch").cuda
    free, _ = cuda.mem_get_info(name)
    # Torch keeps what earlier fits have released, and uses it again.
    kept = cuda.memory_reserved(name) - cuda.memory_allocated(name)
    # The allocator needs some room.
    return 0.9 * (free + kept)
