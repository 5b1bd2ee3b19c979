"""Memory and time of a whole command, with those of its parts."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from manifactor._support.threads import cores
from manifactor.cryoem.one_view.images import (
    LEARNING_BYTES,
    MAX_COEFFICIENTS,
    SURVEYED,
    given_shell,
)
from manifactor.cryoem.volumes import VolumeSettings, ball_of
from manifactor.runs.fitting import Opened
from manifactor.runs.parts import PartSettings
from manifactor.spectral.forecast import Forecast, as_duration, as_size
from manifactor.tables.images import UnreadImages
from manifactor.tables.reading import Input, UnreadTable
from manifactor.tables.text import DELIMITERS


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

    @property
    def longest(self) -> PartCost:
        """The part that takes most of the time."""
        return max(self.parts, key=lambda part: part.seconds)

    def __str__(self) -> str:
        if not self.worker_memory:
            return super().__str__()
        several = f"each of {self.n_workers} workers"
        which = "the worker" if self.n_workers == 1 else several
        workers = f"{as_size(self.worker_memory)} on {which}"
        own = f"about {as_size(self.memory)}, {workers},"
        return f"{own} and {as_duration(self.seconds)}"

    def as_rows(self, what: str = "part") -> list[list[str]]:
        """Return the rows of a table of the parts, the names of its columns first."""
        rows = [[what, "time", "memory"]]
        for part in self.parts:
            duration = as_duration(part.seconds) if part.seconds >= 1 else "< 1 s"
            where = " a worker" if part.on_workers and self.worker_memory else ""
            rows.append([part.name, duration, f"{as_size(part.memory)}{where}"])
        return rows


def cores_of_worker(n_workers: int, n_cores: int | None) -> int:
    """Return the cores of a worker; None where all share those of this machine."""
    return n_cores or max(1, cores() // n_workers)


def cost_of_parts(
    parts: Sequence[PartCost], *, n_workers: int = 1, device_memory: float = 0.0
) -> Cost:
    """Return the cost of parts that follow each other; those without time are left out.

    >>> fitting, placing = PartCost("fitting", 5, 1e9), PartCost("placing", 9, 5e8)
    >>> print(cost_of_parts([fitting, placing]))
    about 1.0 GB and 14 s
    """
    kept = tuple(part for part in parts if part.seconds > 0)
    alone = n_workers == 1
    here = [part.memory for part in kept if alone or not part.on_workers]
    there = [part.memory for part in kept if not alone and part.on_workers]
    return Cost(
        memory=max(here, default=0.0),
        seconds=sum(part.seconds for part in kept),
        device_memory=device_memory,
        parts=kept,
        n_workers=n_workers,
        worker_memory=max(there, default=0.0),
    )


def cost_of_pieces(pieces: Sequence[PartCost], *, n_workers: int, client: float) -> Cost:
    """Return the cost of independent pieces of work, each done by one of some workers."""
    seconds = [piece.seconds for piece in pieces]
    used = min(n_workers, len(pieces))
    # At best the workers end together, and no piece is divided.
    elapsed = max(sum(seconds) / used, *seconds)
    largest = max(piece.memory for piece in pieces)
    return Cost(
        memory=client, seconds=elapsed, parts=tuple(pieces), n_workers=used, worker_memory=largest
    )


# Memory and time of reading, fitting, placing and writing an input.


@dataclass(frozen=True)
class InputRates:
    """Rates of `forecast_input`, measured on a core of 2.4 GHz.

    Where two rates of one kind of work are given, the first is of what one core does alone, the
    second of what all cores share.
    """

    # Seconds and bytes of Python and the libraries; seconds of torch and of a GPU.
    start_seconds: float = 2.0
    device_start_seconds: float = 6.0
    process_bytes: float = 2e8

    # Bytes a second of text, of other tables, and of plain numbers on a disk.
    text_rate: float = 3e7
    table_rate: float = 2e8
    disk_rate: float = 5e8

    # Bytes in memory for a number of a table while it is read.
    table_bytes: float = 16.0

    # Seconds of a line of a file of particles.
    particle_seconds: float = 2e-5

    # Seconds for a pixel: a window and a Fourier transform, spectra of the images that are
    # surveyed, and to shift and turn it.
    pixel_seconds: tuple[float, float] = (1e-8, 1e-8)
    survey_seconds: tuple[float, float] = (2e-8, 3e-8)
    turn_seconds: tuple[float, float] = (0.0, 8e-8)

    # Cycles per box that are kept of images, and components: estimates.
    cycles: float = 24.0
    n_components: int = 10

    # Operations a second of the covariance of coefficients and of its eigenvectors, and operations
    # of the latter in units of n_coefficients^3.
    covariance_flops: float = 6e10
    eigenvector_flops: float = 3.4e10
    eigenvector_operations: float = 9.0

    # Blocks of images in memory; copies of coefficients, and of their covariance.
    image_bytes: float = 2.7e8
    coefficient_copies: int = 2
    covariance_copies: int = 4

    # Seconds for a voxel of a volume, and for one that its components are found from.
    voxel_seconds: float = 2.7e-8
    kept_voxel_seconds: float = 1.4e-7

    # Bytes of a fit whatever its size: those of its threads, and of the samples that tests are made
    # with.
    fit_bytes: float = 1e8

    # Seconds of a sample that is placed, and of each of its columns. On factors of several
    # dimensions it takes several times as long.
    place_seconds: tuple[float, float] = (6e-6, 1e-5)
    place_column_seconds: float = 1e-8
    # Bytes of a block of samples that is placed, and of a place.
    block_bytes: float = 1.5e8
    place_bytes: float = 100.0

    # Seconds of a line of coordinates that are written in parts.
    part_line_seconds: float = 5e-7

    # Seconds and bytes of a line of coordinates.csv, and of one of the particles.
    line_seconds: float = 4.5e-6
    line_bytes: float = 250.0
    particle_line_seconds: float = 1.5e-5
    particle_line_bytes: float = 1500.0
    # Seconds of comparing places with what is known of particles, of which up to some thousands are
    # taken.
    confounder_seconds: float = 0.8
    # Bytes of a fitted sample in memory and in the archive, and those written a second.
    fitted_bytes: float = 4000.0
    archive_rate: float = 5e8


def n_columns(opened: Opened, rates: InputRates = InputRates()) -> int:
    """Return how many columns the samples have; of images, how many are expected."""
    if isinstance(opened, UnreadTable):
        return opened.table.shape[1]
    if isinstance(opened, UnreadImages):
        return opened.settings.components or min(rates.n_components, opened.n_samples - 1)
    return opened.samples.shape[1]


def forecast_input(
    opened: Opened,
    fitting: Forecast,
    n_fitted: int,
    *,
    n_workers: int = 1,
    n_cores: int | None = None,
    rates: InputRates = InputRates(),
) -> Cost:
    """Estimate the cost of a fit from the first file that is read to the last written."""
    each = cores_of_worker(n_workers, n_cores)
    work = _Work(opened, n_fitted, n_workers, each, rates)
    if isinstance(opened, UnreadImages):
        before = _image_parts(opened, work)
    else:
        before = [PartCost("reading", _table_seconds(opened, rates), work.samples)]
    memory = work.samples + rates.fit_bytes + fitting.memory
    start = rates.device_start_seconds if fitting.device_memory else 0.0
    fit = PartCost("fitting", start + fitting.seconds, memory)
    parts = [*before, fit, _placing(work), _writing(work)]
    return cost_of_parts(parts, n_workers=n_workers, device_memory=fitting.device_memory)


@dataclass(frozen=True)
class _Work:
    """What is done to an input, and where."""

    opened: Opened
    n_fitted: int
    n_workers: int
    n_cores: int
    rates: InputRates

    @property
    def n_placed(self) -> int:
        """How many samples are placed: all, or none where all were fitted."""
        n_samples = self.opened.n_samples
        return 0 if self.n_fitted == n_samples and not self.in_parts else n_samples

    @property
    def in_parts(self) -> bool:
        """Whether samples are read where they are placed, and written there."""
        return isinstance(self.opened, UnreadTable)

    @property
    def samples(self) -> float:
        """Bytes of the process with its samples, while nothing else is done."""
        rates, opened = self.rates, self.opened
        numbers = len(opened.rows) * n_columns(opened, rates)
        # What is read from a disk when it is needed is not held.
        mapped = isinstance(opened, Input) and not _is_held(opened.samples)
        return rates.process_bytes + (0 if mapped else rates.table_bytes * numbers)

    @property
    def fitted(self) -> float:
        """Bytes of the process with its samples and a fit of them."""
        return self.samples + self.rates.fitted_bytes * self.n_fitted

    def seconds(self, count: float, rate: tuple[float, float]) -> float:
        """Return the seconds of so much work, of which the cores share a part."""
        alone, shared = rate
        return count * (alone + shared / self.n_cores)


def _is_held(samples) -> bool:
    """Return whether samples are in memory, not on a disk."""
    return isinstance(samples, np.ndarray) and not isinstance(samples, np.memmap)


def _table_seconds(given: Input | UnreadTable, rates: InputRates) -> float:
    """Return the seconds of Python's start and of reading a table."""
    seconds = rates.start_seconds
    if given.particles is not None:
        seconds += rates.particle_seconds * len(given.particles)
    return seconds + _pass_seconds(given.path, rates)


def _pass_seconds(path: Path | None, rates: InputRates) -> float:
    """Return the seconds of reading a table once."""
    if path is None:
        return 0.0
    suffix = path.suffix.lower()
    usual = rates.disk_rate if suffix == ".npy" else rates.table_rate
    return _size_on_disk(path) / (rates.text_rate if suffix in DELIMITERS else usual)


def _size_on_disk(path: Path) -> int:
    """Return the bytes of a file, or of all files in a folder."""
    if path.is_dir():
        return sum(each.stat().st_size for each in path.rglob("*") if each.is_file())
    return path.stat().st_size


def _image_parts(images: UnreadImages, work: _Work) -> list[PartCost]:
    """Return reading, and what makes samples of images or volumes."""
    rates = work.rates
    pixels = float(np.prod(images.source.shape))
    if images.view is None:
        passes, seconds, held = float(images.n_samples), *_volume_work(images, rates)
    else:
        passes, seconds, held = _image_work(images, work)
    lines = 0 if images.particles is None else len(images.particles)
    reading = rates.start_seconds + rates.particle_seconds * lines
    reading += passes * pixels * np.dtype(np.float32).itemsize / rates.disk_rate
    memory = work.samples + rates.image_bytes
    return [PartCost("reading", reading, memory), PartCost("components", seconds, memory + held)]


def _image_work(images: UnreadImages, work: _Work) -> tuple[float, float, float]:
    """Return how often an image is read, and seconds and bytes of the components."""
    rates = work.rates
    n, pixels = images.n_samples, float(np.prod(images.source.shape))
    surveyed = min(SURVEYED, n)
    p = _n_coefficients(images, rates)
    learned = min(n, LEARNING_BYTES / (4 * p))
    # Images beyond those that are learned from are read once more, with all others.
    transformed = learned + (n if learned < n else 0)
    seconds = (
        work.seconds(pixels * transformed, rates.pixel_seconds)
        + work.seconds(pixels * surveyed, rates.survey_seconds)
        + learned * p**2 / rates.covariance_flops
        + rates.eigenvector_operations * p**3 / rates.eigenvector_flops
    )
    passes = transformed + surveyed
    if images.particles is not None and _is_moved(images):
        seconds += work.seconds(pixels * passes, rates.turn_seconds)
    numbers = rates.coefficient_copies * learned * p + rates.covariance_copies * p**2
    return passes, seconds, 4 * numbers


def _n_coefficients(images: UnreadImages, rates: InputRates) -> float:
    """Return how many Fourier coefficients of an image are kept, about."""
    size, low_pass = images.source.shape[0], images.settings.low_pass
    cycles = min(rates.cycles, size / 2 - 1)
    if low_pass is not None:
        cycles = given_shell(low_pass, size, images.source.pixel_size)
    return min(np.pi * cycles**2, MAX_COEFFICIENTS)


def _is_moved(images: UnreadImages) -> bool:
    """Return whether images are shifted or turned before they are compared."""
    particles, view = images.particles, images.view
    assert particles is not None
    assert view is not None
    shift = particles.shift_at(images.source.pixel_size)
    turn = particles.turned(view.frame)
    return bool(np.any(shift)) or bool(np.any(turn))


def _volume_work(images: UnreadImages, rates: InputRates) -> tuple[float, float]:
    """Return seconds and bytes of the components of volumes."""
    shape = images.source.shape
    kept = int(ball_of(min(MAX_SIDE, min(shape))).sum())
    seconds = rates.voxel_seconds * float(np.prod(shape))
    seconds += rates.kept_voxel_seconds * kept
    return images.n_samples * seconds, 3 * 4.0 * images.n_samples * kept


def _placing(work: _Work) -> PartCost:
    rates, n, width = work.rates, work.n_placed, n_columns(work.opened, work.rates)
    seconds = work.seconds(n, rates.place_seconds)
    seconds += n * rates.place_column_seconds * width
    memory = work.fitted + rates.block_bytes
    if work.in_parts:
        seconds += _pass_seconds(work.opened.path, rates) + n * rates.part_line_seconds
        rows = min(n, PartSettings().most_rows(width))
        memory += rows * (rates.table_bytes * width + rates.place_bytes)
    elif work.n_workers == 1:
        memory += rates.place_bytes * n
    return PartCost("placing", seconds / work.n_workers, memory, on_workers=True)


def _writing(work: _Work) -> PartCost:
    rates = work.rates
    n = 0 if work.in_parts else work.opened.n_samples
    seconds = rates.line_seconds * n
    seconds += rates.fitted_bytes * work.n_fitted / rates.archive_rate
    memory = work.fitted + (rates.place_bytes + rates.line_bytes) * n
    if work.opened.particles is not None:
        seconds += rates.confounder_seconds + rates.particle_line_seconds * n
        memory += rates.particle_line_bytes * n
    return PartCost("writing", seconds, memory)
