"""What a fit will cost, said before it starts: memory and time from rates that were measured."""

import os
from dataclasses import dataclass
from pathlib import Path

from manifactor.spectral.filter_plan import block_width
from manifactor.spectral.neighbors import FEW_DIMENSIONS, KD_TREE_DIMENSIONS, MANY
from manifactor.spectral.parts import PartSettings, part_size
from manifactor.spectral.solvers import SolverSettings

# on two cores of 2.4 GHz, and with the growth that tori of 10,000 to 1,000,000 samples showed
BOTH_WAYS = 1.07  # entries of a row of the graph for each neighbour
PRODUCTS, GROWTH = (
    38,
    0.36,
)  # of the matrix with the block at 10,000 samples, and the power by which they grow
FLOPS = 1.6e10  # of products of the sparse matrix with a block, a second
GEMM_FLOPS = 6e10  # of dense products
TREE = 3e-5  # seconds a sample of a tree search in few dimensions
LARGER_TREE = 5.0  # times as long in more
LISTS, LISTS_COLUMN = 3e-5, 6e-7  # seconds a sample of faiss, and for each column
FACTORS, FACTORS_SAMPLE = (
    0.5,
    1.5e-5,
)  # seconds of what follows the spectrum, and for each sample
SHARE = 0.9  # of the machine's memory that a fit may take


@dataclass(frozen=True)
class Forecast:
    """Memory, in bytes, and time, in seconds, that a fit will take; ``str()`` reads as prose."""

    memory: float
    seconds: float

    @property
    def fits(self) -> bool:
        """Whether this machine has the memory."""
        return self.memory <= SHARE * machine_memory()

    def __str__(self) -> str:
        return f"about {self.memory / 1e9:.1f} GB and {_duration(self.seconds)}"


def forecast(
    n_samples: int,
    n_features: int,
    *,
    n_neighbors: int | str,
    n_functions: int,
    search: str = "auto",
) -> Forecast:
    """What fitting so many samples of so many columns will cost on the CPU.

    Examples
    --------
    >>> print(forecast(1_000_000, 4, n_neighbors=64, n_functions=100))
    about 9.0 GB and 7 minutes
    """
    if n_neighbors == "all":
        matrix = 8.0 * n_samples**2
        return Forecast(2.5 * matrix, 3 * n_functions * matrix / 8 / GEMM_FLOPS * 10)
    entries = BOTH_WAYS * n_samples * int(n_neighbors)
    width = block_width(n_samples, n_functions)
    blocks = (
        24.0 * n_samples * width + 16 * n_samples * n_functions
    )  # two single, two double; the functions twice
    memory = 3.7 * 12 * entries + blocks + 16 * n_samples * n_features
    seconds = (
        _search_seconds(n_samples, n_features, search)
        + FACTORS
        + FACTORS_SAMPLE * n_samples
    )
    seconds += _spectrum_seconds(n_samples, int(n_neighbors), n_functions)
    if n_samples > PartSettings().parted_above:
        seconds += 2 * _spectrum_seconds(
            part_size(n_samples), int(n_neighbors), n_functions
        )
    else:
        seconds *= 1.7  # two halves
    return Forecast(memory, seconds)


def require_memory(needed: Forecast, n_samples: int) -> None:
    """Refuse a fit that cannot fit into memory, and say which would."""
    if not needed.fits:
        there = SHARE * machine_memory()
        fewer = int(n_samples * there / needed.memory)
        raise MemoryError(
            f"the fit must fit into memory; {n_samples} samples need {needed}, and this machine can give "
            f"{there / 1e9:.1f} GB. Fit at most {fewer} samples and place the others (--fit-samples {fewer}, or "
            "`transform`), or lower `n_neighbors` and `n_functions`."
        )


def machine_memory() -> float:
    """Bytes of memory that this process may use at most."""
    total = (
        float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
        if hasattr(os, "sysconf")
        else float("inf")
    )
    for limit in (
        "/sys/fs/cgroup/memory.max",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    ):
        text = Path(limit).read_text().strip() if Path(limit).is_file() else ""
        total = min(total, float(text)) if text.isdigit() else total
    return total


def _search_seconds(n_samples: int, n_features: int, search: str) -> float:
    if search not in ("kd_tree", "brute", "faiss"):
        exact = "kd_tree" if n_features <= KD_TREE_DIMENSIONS else "brute"
        search = exact if n_samples <= MANY or n_features <= FEW_DIMENSIONS else "faiss"
    if search == "faiss":
        return n_samples * (LISTS + LISTS_COLUMN * n_features)
    if search == "kd_tree":
        return n_samples * TREE * (1 if n_features <= FEW_DIMENSIONS else LARGER_TREE)
    return 2.0 * n_samples**2 * (n_features + 16) / GEMM_FLOPS


def _spectrum_seconds(n_samples: int, n_neighbors: int, n_functions: int) -> float:
    if n_samples <= SolverSettings().dense_samples:
        return 0.5
    products = PRODUCTS * (n_samples / 10_000) ** GROWTH
    width = block_width(n_samples, n_functions)
    pairs = 10 * n_samples * width**2 / GEMM_FLOPS
    return (
        2 * BOTH_WAYS * n_samples * n_neighbors * width * products / FLOPS + 2 * pairs
    )


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return (
        f"{seconds / 60:.0f} minutes"
        if seconds < 5400
        else f"{seconds / 3600:.1f} hours"
    )
