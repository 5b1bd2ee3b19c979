"""Memory of a fit, that of its arrays at the peak, counted before it starts."""

from dataclasses import dataclass

from manifactor._support.errors import extra
from manifactor._support.memory import available_memory
from manifactor.operators.engines.chebyshev import block_width

# Entries of a row of the symmetric graph for each neighbour.
ENTRIES_PER_NEIGHBOR = 1.07


@dataclass(frozen=True)
class Forecast:
    """Memory of a fit; ``str()`` reads as prose.

    Attributes
    ----------
    memory : float
        In bytes.
    device_memory : float
        Bytes on the device; 0 for a fit on the CPU.
    """

    memory: float
    device_memory: float = 0.0

    @property
    def fits(self) -> bool:
        """Whether this machine has the memory."""
        return self.memory <= available_memory()

    def __str__(self) -> str:
        there = f" and {as_size(self.device_memory)} on the device" if self.device_memory else ""
        return f"about {as_size(self.memory)}{there}"


def forecast(
    n_samples: int, n_features: int, *, n_neighbors: int | str, n_functions: int
) -> Forecast:
    """Count what fitting so many samples of so many columns takes on the CPU."""
    if n_neighbors == "all":
        # The kernel, and what is made of it.
        return Forecast(2.5 * 8 * n_samples**2)
    entries = ENTRIES_PER_NEIGHBOR * n_samples * int(n_neighbors)
    width = block_width(n_samples, n_functions)
    # The graph has 12 bytes an entry, and its dense tiles are held beside it; a block of the solver
    # is there twice in single and twice in double precision, functions and samples twice in double.
    numbers = 24 * width + 16 * n_functions + 16 * n_features
    return Forecast(6 * 12 * entries + n_samples * numbers)


def require_memory(needed: Forecast, n_samples: int) -> None:
    """Raise MemoryError for a fit that exceeds the memory, and say which would not."""
    available = available_memory()
    if needed.memory <= available:
        return
    fewer = int(n_samples * available / needed.memory)
    raise MemoryError(
        f"the fit must fit into memory; {n_samples} samples need {needed}, and this machine can "
        f"give {available / 1e9:.1f} GB. Fit at most {fewer} samples and place the others "
        f"(`fit_samples={fewer}`, or `transform`), or lower `n_neighbors` and `n_functions`."
    )


def as_size(memory: float) -> str:
    """Return bytes in words."""
    if memory < 1e8:  # a decimal of a gigabyte says nothing
        return f"{max(1, round(memory / 1e6))} MB"
    return f"{memory / 1e9:.1f} GB"


def forecast_on_device(
    n_samples: int, n_features: int, *, n_neighbors: int, n_functions: int
) -> Forecast:
    """Count what fitting so many samples of so many columns takes on a GPU.

    Of 10,000,000 samples of a torus the bytes are the 75 GB that were measured on an H200.
    """
    entries = ENTRIES_PER_NEIGHBOR * n_neighbors
    # Tiles of the search at most, and of one query; beside them, the table of neighbours.
    searching = min(2**31, 40_000 * n_samples) / n_samples + 12 * n_neighbors
    # An entry of that table while it is made symmetric: itself and its row, 20; the keys of both
    # directions of a pair and their places, before and after they are sorted, 16 each; and as much
    # again for the sort.
    joining = 116 * n_neighbors
    # An entry of the graph while functions are computed: a column of 4, distance, kernel and walk
    # in single precision, and the walk in double; and the solver's block, which fills a GPU.
    solving = 24 * entries + 26 * block_width(n_samples, n_functions, wide=256)
    device = 16 * n_features + max(searching, joining, solving)
    # On the host, at the end: distances and kernel with 12 bytes an entry, and functions once more
    # than there are.
    host = 24 * entries + 24 * n_functions + 16 * n_features
    return Forecast(n_samples * host, n_samples * device)


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
    name, cuda = str(device).removeprefix("torch:"), extra("torch").cuda
    # Torch keeps what earlier fits have released, and uses it again.
    kept = cuda.memory_reserved(name) - cuda.memory_allocated(name)
    # The allocator needs some room.
    return 0.9 * (cuda.mem_get_info(name)[0] + kept)
