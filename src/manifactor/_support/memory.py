"""The memory that this process may still take, and whether a file fits into it."""

from collections.abc import Iterator, Sequence
from math import prod
from pathlib import Path

import psutil

# Forecasts are exact to some percent, and other programs need memory, too.
SHARE = 0.9

# Control groups of version 2 and 1: their folder, and the names of limit, use, and of the cache of
# files, which is counted as used and given back when it is needed.
CGROUP_2 = ("sys/fs/cgroup", "memory.max", "memory.current", ("active_file", "inactive_file"))
CGROUP_1 = (
    "sys/fs/cgroup/memory",
    "memory.limit_in_bytes",
    "memory.usage_in_bytes",
    ("total_active_file", "total_inactive_file"),
)


def available_memory() -> float:
    """Return the bytes that this process may take beyond those that it has.

    Batch systems, systemd and containers limit them by control groups.
    """
    left = (psutil.virtual_memory().available, *left_in_groups(Path("/")))
    return SHARE * max(0.0, min(left))


def held_memory() -> float:
    """Return the bytes that this process has."""
    return float(psutil.Process().memory_info().rss)


def left_in_groups(root: Path) -> Iterator[float]:
    """Yield the bytes left in the control group of this process and in those above."""
    groups = root / "proc/self/cgroup"
    lines = groups.read_text().splitlines() if groups.is_file() else []
    for line in lines:
        _, controllers, name = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        folder, limit, use, cache = CGROUP_1 if controllers else CGROUP_2
        top = root / folder
        # A container may not show the groups above its own, nor its own name.
        for group in (top / name.lstrip("/") / "any").parents:
            most, used, stat = group / limit, group / use, group / "memory.stat"
            if most.is_file() and used.is_file():
                lines = stat.read_text().splitlines() if stat.is_file() else []
                counts = dict(line.split() for line in lines)
                reclaimable = sum(int(counts.get(name, 0)) for name in cache)
                bytes_at_most = float(most.read_text().replace("max", "inf"))
                yield bytes_at_most - int(used.read_text()) + reclaimable
            if group == top:
                break


# Sizes that headers claim, compared before anything is allocated.

# Formats that compress may claim so many times what they store, beyond 64 MB. Measured numbers are
# compressed tenfold at most, and only images or tables with few values more than that.
MOST_EXPANSION = 100


def require_plausible(path: Path, shape: Sequence[int], stored: int, *, itemsize: int = 8) -> None:
    """Refuse numbers, as a header claims them, far larger than what is stored of them."""
    # Rows without columns have numbers, too. Python's integers do not overflow.
    claimed = itemsize * prod(max(1, side) for side in shape)
    if min(shape, default=0) < 0 or claimed > 2**26 + MOST_EXPANSION * stored:
        raise ValueError(
            f"{path} holds {stored:,} bytes and claims {claimed:,}, as numbers of shape "
            f"{tuple(shape)}; it is incomplete or damaged. Write it again."
        )


def require_memory(
    path: Path,
    needed: float,
    remedy: str = "Save the array as an .npy file, which is read in parts.",
) -> None:
    """Refuse to read a file into more memory than is available."""
    available = available_memory()
    if needed > available:
        raise ValueError(
            f"{path} would take {needed / 1e9:.1f} GB of memory, and {available / 1e9:.1f} GB are "
            f"available. {remedy}"
        )
