"""Any input as samples: arrays, coordinates of other programs, images, volumes."""

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np

from manifactor._support.files import require_regular_file
from manifactor._support.values import bad_values
from manifactor.cryoem.components import Components
from manifactor.cryoem.files.cryosparc import read_cs
from manifactor.cryoem.files.formats import ParticleChoice
from manifactor.cryoem.files.particles import Particles
from manifactor.cryoem.files.stacks import STACK_SUFFIXES, stack_images, volume_series
from manifactor.cryoem.one_view import View
from manifactor.cryoem.volumes import VolumeComponents
from manifactor.tables.columns import COLUMN_REMEDIES, Columns
from manifactor.tables.files import MODE, read_table
from manifactor.tables.images import (
    Given,
    UnreadImages,
    checked_width,
    is_cs,
    particles_of_one_view,
    unread_particles,
    unread_stack,
)
from manifactor.tables.pickles import read_pickled_numbers
from manifactor.tables.stores import StoredTable, is_stored, read_npy
from manifactor.tables.text import line_of


@dataclass(frozen=True)
class Input:
    """Samples and their origin."""

    samples: np.ndarray  # (n, n_features)
    rows: np.ndarray  # (n,): the samples' row numbers in the input, or in the file of the particles
    particles: Particles | None = None  # particles in the order of the samples
    components: Components | VolumeComponents | None = None  # how images or volumes became samples
    columns: Columns | None = None  # which columns of a table these are, and their scale
    path: Path | None = None  # the file of a table
    notes: tuple[str, ...] = ()  # what a user should know of how the input was read

    @property
    def n_samples(self) -> int:
        """Number of samples of the input."""
        return len(self.rows)

    @property
    def record(self) -> dict:
        """The entries of run.json."""
        record: dict = {}
        if self.particles is not None:
            record["particles"] = str(self.particles.path.resolve())
            record["fingerprint"] = self.particles.fingerprint
        if self.components is not None:
            record["components"] = _components_record(self.components)
        if self.columns is not None:
            record["columns"] = self.columns.record
        return record

    @property
    def labels(self) -> list[str | int] | None:
        """Names or numbers of the columns in their file.

        None if all columns are used and they have no names.
        """
        if self.columns is None:
            return None
        every = len(self.columns.numbers) == self.columns.total
        return None if every and self.columns.names is None else self.columns.labels

    def require_values(self) -> None:
        """Refuse NaN, infinite and huge values, and say where in the file they are."""
        found = bad_values(self.samples)
        if found is None:
            return
        line = None if self.path is None else line_of(self.path, found.place[0])
        where = "" if line is None else f" (line {line} of {self.path})"
        words = found.words("samples", self.labels, where=where, remedies=COLUMN_REMEDIES)
        raise ValueError(words)


def _components_record(components: Components | VolumeComponents) -> dict:
    record = {"text": str(components), **asdict(components)}
    del record["samples"]  # the run keeps its samples in a file of their own
    arrays = {name: each.tolist() for name, each in record.items() if isinstance(each, np.ndarray)}
    return record | arrays


def open_input(path, given: Given = Given()) -> Input | UnreadImages:
    """Open an input: a table is read, images and volumes are only checked."""
    path = Path(path)
    given.choice.require_folder()
    width = checked_width(given.width, given.view)
    if path.is_dir() and not is_stored(path):
        given.require_volumes()
        return UnreadImages(path, volume_series(path))
    if path.suffix.lower() in STACK_SUFFIXES:
        given.require_stack(path)
        return unread_stack(path, given.settings, given.choice)
    if _holds_particles(path):
        given.require_images(path)
        return unread_particles(particles_of_one_view(path, given, width), given)
    given.require_table(path)
    found = _from_coordinates(path, given)
    return _standardised(found) if given.settings.standardise else found


def read_input(path, given: Given = Given(), *, rng: np.random.Generator) -> Input:
    """Read the samples of an input; check first whatever can be checked at once.

    `rng` draws images to learn from, if there are many.
    """
    return read_opened(open_input(path, given), rng)


def read_opened(opened: Input | UnreadImages, rng: np.random.Generator) -> Input:
    """Return the samples of an input that is open."""
    if isinstance(opened, Input):
        return opened
    components = opened.components(rng)
    return Input(components.samples, opened.rows, opened.particles, components, notes=opened.notes)


def _holds_particles(path: Path) -> bool:
    """Return whether a file holds particle images rather than coordinates."""
    if is_cs(path) and path.is_file():
        # cryoSPARC writes the components of a variability analysis into a .cs, too.
        fields = read_cs(path).dtype.names or ()
        return not any(MODE.fullmatch(name) for name in fields)
    return path.suffix.lower() == ".star"


def _from_coordinates(path: Path, given: Given) -> Input:
    table = read_table(path, given.columns)
    samples = table.samples
    found = paired_particles(path, len(samples), given)
    # Row numbers count in the file of the particles, so that `select` finds them there.
    rows = np.arange(len(samples)) if found is None else found.rows
    # Up to 256 MB, a copy that no other program can change: a fit of more takes more memory.
    if isinstance(samples, np.memmap) and samples.nbytes <= 2**28:
        samples = np.array(samples)
    return Input(samples, rows, found, columns=table.columns, path=path)


def paired_particles(path: Path, n_samples: int, given: Given) -> Particles | None:
    """Return the particles that rows of coordinates belong to, in the same order."""
    particles, indices, choice = given.particles, given.indices, given.choice
    if particles is None:
        # Indices alone name nothing; ignoring them would hide the missing option.
        if indices is not None:
            raise ValueError(
                "--ind says which of the particles were used; give them with --particles."
            )
        return choice.read(path) if is_cs(path) else None
    particles = Path(particles)
    if is_cs(path) and is_cs(particles):
        if indices is not None:
            raise ValueError(
                f"--ind is not needed: {path} and {particles} are joined by uid. Leave it out."
            )
        return choice.read(particles, results=path)
    found = choice.read(particles)
    if indices is not None:
        found = found[_checked_indices(Path(indices), len(found))]
    if len(found) != n_samples:
        named = "" if indices is None else f" named by {indices}"
        raise ValueError(
            "there must be one particle for each row of coordinates; "
            f"{particles} has {len(found)}{named} and {path} has {n_samples}. If some "
            "were left out, give cryoDRGN's ind.pkl of just these with --ind."
        )
    return found


def _checked_indices(path: Path, count: int) -> np.ndarray:
    """Return row numbers that name each of `count` particles at most once."""
    require_regular_file(path, "--ind")
    # cryoDRGN pickles its indices, whatever the name of the file.
    is_npy = path.suffix.lower() == ".npy"
    indices = read_npy(path) if is_npy else read_pickled_numbers(path)
    is_flat = indices.ndim == 1 and indices.dtype.kind in "iu"
    if not is_flat or (len(indices) and not indices.min() >= 0):
        raise ValueError(
            f"{path} must hold row numbers from 0; got an array of {indices.dtype}, "
            f"shape {indices.shape}."
        )
    if len(indices) and indices.max() >= count:
        raise ValueError(
            f"{path} names particle {indices.max()}, but there are {count}, counted from 0."
        )
    numbers, counts = np.unique(indices, return_counts=True)
    if len(numbers) < len(indices):
        raise ValueError(
            f"{path} must name each particle once; it names particle "
            f"{numbers[counts.argmax()]} {counts.max()} times."
        )
    return indices


def _standardised(given: Input) -> Input:
    """Return a table with columns of unit variance; constant ones stay constant."""
    given.require_values()
    assert given.columns is not None
    columns = given.columns.standardised(given.samples)
    return replace(given, samples=columns.scaled(given.samples), columns=columns)


def run_images(
    path: Path,
    particles: Particles | None,
    *,
    phase_flip: bool = False,
    choice: ParticleChoice = ParticleChoice(),
) -> View:
    """Return the images of particles, or of a bare stack, aligned in one frame."""
    # Only particles have poses and a CTF; images of a bare stack are taken as they are.
    if particles is not None:
        return View(choice.images(particles), particles, phase_flip)
    require_regular_file(path)
    return View(stack_images(path, pixel_size=choice.pixel_size), None, phase_flip)


# A table that is not read as a whole: the samples that are drawn of it.


@dataclass(frozen=True)
class LargeInput(Input):
    """Samples drawn of a table on disk, and where all of them are.

    - samples: (n_drawn, n_features)
    - rows: (n_drawn,): their numbers in the table, ascending
    """

    table: StoredTable = field(kw_only=True)  # all samples

    @property
    def n_samples(self) -> int:
        """Number of all samples."""
        return self.table.n_samples


@dataclass(frozen=True)
class UnreadTable:
    """Samples that are drawn of a table on disk, and not read yet."""

    table: StoredTable  # all samples
    rows: np.ndarray  # those that are drawn, ascending
    standardise: bool = False  # whether to give the columns unit variance
    particles: None = None
    notes: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        """The file, or folder, of the table."""
        return self.table.path

    @property
    def n_samples(self) -> int:
        """Number of all samples."""
        return self.table.n_samples

    def read(self) -> LargeInput:
        """Read the samples that are drawn, chunk by chunk."""
        table = self.table
        samples = table.take(self.rows)
        if self.standardise:
            table = replace(table, columns=table.columns.standardised(samples))
            samples = table.columns.scaled(samples)
        return LargeInput(samples, self.rows, columns=table.columns, path=table.path, table=table)
