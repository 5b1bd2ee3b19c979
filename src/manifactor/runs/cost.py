"""Memory and time of a whole command, with those of its parts.

Memory is counted from what is held; time is rough, that of a core of 2.4 GHz.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from manifactor._support.threads import cores
from manifactor.operators.forecast import DENSE_FLOPS, Forecast, as_duration, as_size
from manifactor.runs.folder import most_rows
from manifactor.tables.reading import Input, UnreadImages, UnreadTable
from manifactor.tables.text import DELIMITERS

# An input whose files were checked, and not necessarily read.
Opened = Input | UnreadImages | UnreadTable

# Seconds and bytes of Python and the libraries.
START_SECONDS, PROCESS_BYTES = 2.0, 2e8
# Bytes a second from a disk: of text, and of all else.
TEXT_RATE, DISK_RATE = 3e7, 4e8


@dataclass(frozen=True)
class PartCost:
    """Time of one part of a command, and memory at its peak."""

    name: str
    seconds: float
    memory: float  # bytes of the process, or of each worker
    # Whether the part is divided over workers. Its time is that of all together.
    on_workers: bool = False


@dataclass(frozen=True)
class Cost(Forecast):
    """Memory and time of a command; ``str()`` reads as prose."""

    parts: tuple[PartCost, ...] = ()  # what the command does, in this order
    n_workers: int = 1  # how many workers share the work; with one, this process does it all
    worker_memory: float = 0.0  # bytes of each worker; 0 without any

    def __str__(self) -> str:
        if not self.worker_memory:
            return super().__str__()
        which = "the worker" if self.n_workers == 1 else f"each of {self.n_workers} workers"
        own, each = as_size(self.memory), as_size(self.worker_memory)
        return f"about {own}, {each} on {which}, and {as_duration(self.seconds)}"

    def as_rows(self, what: str = "part") -> list[list[str]]:
        """Return the rows of a table of the parts, the names of its columns first."""
        rows = [[what, "time", "memory"]]
        for part in self.parts:
            duration = as_duration(part.seconds) if part.seconds >= 1 else "< 1 s"
            where = " a worker" if part.on_workers and self.worker_memory else ""
            rows.append([part.name, duration, f"{as_size(part.memory)}{where}"])
        return rows


def cores_of_worker(n_workers: int) -> int:
    """Return the cores of each of some workers that share those of this machine."""
    return max(1, cores() // n_workers)


def cost_of_parts(
    parts: Sequence[PartCost], *, n_workers: int = 1, device_memory: float = 0.0
) -> Cost:
    """Return the cost of parts that follow each other; those without time are left out."""
    kept = tuple(part for part in parts if part.seconds > 0)
    there = [part.memory for part in kept if n_workers > 1 and part.on_workers]
    here = [part.memory for part in kept if n_workers == 1 or not part.on_workers]
    return Cost(
        memory=max(here, default=0.0),
        seconds=sum(part.seconds for part in kept),
        device_memory=device_memory,
        parts=kept,
        n_workers=n_workers,
        worker_memory=max(there, default=0.0),
    )


def cost_of_pieces(pieces: Sequence[PartCost], *, n_workers: int) -> Cost:
    """Return the cost of independent pieces of work, each done by one of some workers."""
    seconds = [piece.seconds for piece in pieces]
    used = min(n_workers, len(pieces))
    return Cost(
        memory=PROCESS_BYTES,
        # At best the workers end together, and no piece is divided.
        seconds=max(sum(seconds) / used, *seconds),
        parts=tuple(pieces),
        n_workers=used,
        worker_memory=max(piece.memory for piece in pieces),
    )


def n_columns(opened: Opened) -> int:
    """Return how many columns the samples have; of images, how many are expected."""
    if isinstance(opened, UnreadTable):
        return opened.table.shape[1]
    if isinstance(opened, UnreadImages):
        return opened.settings.components or min(10, opened.n_samples - 1)
    return opened.samples.shape[1]


def forecast_input(
    opened: Opened,
    fitting: Forecast,
    n_fitted: int,
    *,
    n_workers: int = 1,
    n_cores: int | None = None,
) -> Cost:
    """Estimate the cost of a fit from the first file that is read to the last written."""
    each = n_cores or cores_of_worker(n_workers)
    # Samples that are read from a disk when they are needed are not held.
    mapped = isinstance(opened, Input) and type(opened.samples) is not np.ndarray
    held = PROCESS_BYTES + (0 if mapped else 16 * len(opened.rows) * n_columns(opened))
    n_particles = 0 if opened.particles is None else len(opened.particles)
    start = START_SECONDS + 2e-5 * n_particles
    if isinstance(opened, UnreadImages):
        before = _image_parts(opened, start, held, each)
    else:
        before = [PartCost("reading", start + _pass_seconds(opened.path), held)]
    # Torch and a GPU start in some seconds. Threads of a fit, and the samples that tests are made
    # with, take memory whatever its size.
    seconds = fitting.seconds + (6 if fitting.device_memory else 0)
    fit = PartCost("fitting", seconds, held + 1e8 + fitting.memory)
    fitted = held + 4000 * n_fitted
    placing, writing = _after(opened, n_fitted, fitted, n_workers, each)
    parts = [*before, fit, placing, writing]
    return cost_of_parts(parts, n_workers=n_workers, device_memory=fitting.device_memory)


def _pass_seconds(path: Path | None) -> float:
    """Return the seconds of reading a table once."""
    if path is None:
        return 0.0
    files = [each for each in path.rglob("*") if each.is_file()] if path.is_dir() else [path]
    rate = TEXT_RATE if path.suffix.lower() in DELIMITERS else DISK_RATE
    return sum(each.stat().st_size for each in files) / rate


def _image_parts(images: UnreadImages, start: float, held: float, n_cores: int) -> list[PartCost]:
    """Return reading, and what makes samples of images or volumes."""
    n, pixels = float(images.n_samples), float(np.prod(images.source.shape))
    # Beside the samples, blocks of images.
    memory = held + 2.7e8
    if images.view is None:
        # Volumes are reduced to a ball in 32 voxels, of which there are three copies.
        reading, seconds = n, 1e-7 * n * pixels
        components = 3 * 4 * n * np.pi / 6 * min(pixels, 32**3)
    else:
        # Fourier coefficients of an image that are kept, about.
        p = np.pi * max(1.0, min(24.0, images.source.shape[0] / 2 - 1)) ** 2
        # As many images as fit into 256 MB are learned from; all others are read once more, and
        # 2000 before, to see what of them is noise.
        learned = min(n, 2**28 / (4 * p))
        reading = learned + (n if learned < n else 0) + min(2000, n)
        seconds = pixels * reading * (1e-8 + 2e-8 / n_cores)
        seconds += (learned + 15 * p) * p**2 / DENSE_FLOPS
        components = 4 * (2 * learned * p + 4 * p**2)
    start += 4 * pixels * reading / DISK_RATE
    return [
        PartCost("reading", start, memory),
        PartCost("components", seconds, memory + components),
    ]


def _after(
    opened: Opened, n_fitted: int, fitted: float, n_workers: int, n_cores: int
) -> tuple[PartCost, PartCost]:
    """Return the cost of placing all samples, none where all were fitted, and of writing."""
    n, width, memory = opened.n_samples, n_columns(opened), fitted + 1.5e8
    seconds = n * (6e-6 + 1e-5 / n_cores + 1e-8 * width)
    n_lines = n
    if isinstance(opened, UnreadTable):
        # Samples are read where they are placed, and written there.
        n_lines, seconds = 0, seconds + _pass_seconds(opened.path)
        memory += min(n, most_rows(width)) * (16 * width + 100)
    elif n_fitted == n:
        seconds = 0.0
    elif n_workers == 1:
        memory += 100 * n
    placing = PartCost("placing", seconds / n_workers, memory, on_workers=True)
    # Lines of coordinates.csv, and the archive.
    seconds, memory = 5e-6 * n_lines + 8e-6 * n_fitted, fitted + 350 * n_lines
    if opened.particles is not None:
        # Their lines, and comparisons with what is known of them.
        seconds, memory = seconds + 0.8 + 1.5e-5 * n_lines, memory + 1500 * n_lines
    return placing, PartCost("writing", seconds, memory)


def forecast_all_views(
    n_images: int, size: int, *, n_mates: int = 1, n_workers: int = 1, on_device: bool = False
) -> Cost:
    """Estimate memory and time of a fit of all views, before any image is read.

    Rates were measured in fits of 3,000 to 100,000 images of 48 to 256 pixels.
    """
    threads = min(cores_of_worker(n_workers), 8)
    n_shown, n_fitted = n_images * n_mates, min(0.4 * n_images, 6000)
    # A set of volumes takes .3 s; small images have no frequencies up to the usual cut.
    volume_seconds = 0.3 * min(1.0, (size // 2 - 1) / 12.5) ** 3
    # Few images show few terms, of which there are few volumes and products.
    terms = min(1.0, n_shown / 4000)
    # An image takes 4000 bytes: its coefficients, the covariance of its coordinates, its line of
    # text. Volumes, a block of images, and the sums of each thread are held beside them, and what
    # torch needs to use a GPU.
    start = 4e8 + 2e8 * terms + 1.5e9 * on_device
    here = start + 4000 * n_images
    sums = 2.2e8 * terms * (1 if on_device else threads)
    there = start + sums + 4000 * n_images / n_workers

    def divided(name: str, n_compared: float, n_volumes: int, n_learned: int = 0) -> PartCost:
        # Of an image, seconds in a round of expectation maximisation, and in a comparison with
        # volumes alone; and bytes of products of its features, if volumes are learned from it.
        each = (1e-4 if on_device else 3e-4) * n_compared + 1.5e-4 * n_images
        seconds = each / (threads * n_workers)
        memory = there + 12_000 * n_learned / n_workers
        return PartCost(name, seconds + volume_seconds * n_volumes, memory, on_workers=True)

    # Two half sets in 7 rounds, with one to start from, and the final volumes in 3.
    principal = 8 * min(12_000, n_shown) + 3 * min(20_000, n_shown)
    # Some 5 rounds from known places, 3 from all, in which images are compared before and after,
    # and some 10 cells of views. Three sets of volumes are solved for in each.
    learned = min(30_000, n_shown)
    motions = 5 * min(n_fitted * n_mates, 30_000) + 7 * learned + 10 * min(4000, n_images)
    reading = 4.0 * n_images * size**2 / 3.5e8 / n_workers
    parts = [
        PartCost("reading", reading, there, on_workers=True),
        divided("volumes", principal, 17),
        PartCost("factors", 8 * n_fitted / 6000, here),
        divided("placing", motions, 54, learned),
        PartCost("writing", 1e-4 * n_images, here),
    ]
    return cost_of_parts(parts, n_workers=n_workers, device_memory=3e9 * on_device)
