"""Any input as samples: arrays, coordinates of other programs, images, volumes."""

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from manifactor._support.files import require_regular_file
from manifactor._support.values import bad_values
from manifactor.cryoem.components import Components, VolumeComponents
from manifactor.cryoem.files.cryosparc import read_cs
from manifactor.cryoem.files.formats import ParticleChoice
from manifactor.cryoem.files.particles import Particles
from manifactor.cryoem.files.stacks import STACK_SUFFIXES, stack_images
from manifactor.cryoem.one_view import View
from manifactor.tables.columns import COLUMN_REMEDIES, ColumnChoice, Columns, unit_scale
from manifactor.tables.files import MODE, paired_particles, read_table
from manifactor.tables.images import (
    Given,
    ImageSettings,
    UnreadImages,
    checked_width,
    is_cs,
    particles_of_one_view,
    unread_particles,
    unread_stack,
    unread_volumes,
)
from manifactor.tables.stores import StoredTable, is_stored
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
        row, column = found.place
        label = column if self.labels is None else self.labels[column]
        line = None if self.path is None else line_of(self.path, row)
        where = "" if line is None else f" (line {line} of {self.path})"
        place = f"row {row}, column {label!r}{where}"
        raise ValueError(found.words("samples", place, *COLUMN_REMEDIES))


def _components_record(components: Components | VolumeComponents) -> dict:
    record = {"text": str(components)}
    for name, value in asdict(components).items():
        if name != "samples":  # the run keeps its samples in a file of their own
            record[name] = _as_json(value)
    return record


def _as_json(value) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    return list(value) if isinstance(value, tuple) else value


def open_input(
    path,
    *,
    particles=None,
    indices=None,
    view: tuple[float, float] | None = None,
    width: float | None = None,
    settings: ImageSettings | None = None,
    columns: ColumnChoice | None = None,
    choice: ParticleChoice | None = None,
) -> Input | UnreadImages:
    """Open an input: a table is read, images and volumes are only checked."""
    path = Path(path)
    settings = settings or ImageSettings()
    columns = columns or ColumnChoice()
    choice = choice or ParticleChoice()
    choice.require_folder()
    angle = checked_width(width, view)
    given = Given(particles, indices, view, settings, columns, choice)
    if path.is_dir() and not is_stored(path):
        given.require_volumes()
        return unread_volumes(path)
    if path.suffix.lower() in STACK_SUFFIXES:
        given.require_stack(path)
        return unread_stack(path, settings, choice)
    if _holds_particles(path):
        given.require_images(path)
        seen = particles_of_one_view(path, choice, passthrough=particles, view=view, width=angle)
        return unread_particles(seen, settings, choice)
    given.require_table(path)
    found = _from_coordinates(path, columns, particles, indices, choice)
    return _standardised(found) if settings.standardise else found


def read_input(path, *, rng: np.random.Generator, **options: Any) -> Input:
    """Read the samples of an input; check first whatever can be checked at once.

    `options` are those of `open_input`. `rng` draws images to learn from, if there are many.
    """
    return read_opened(open_input(path, **options), rng)


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


def _from_coordinates(
    path: Path, used: ColumnChoice, particles, indices, choice: ParticleChoice
) -> Input:
    table = read_table(path, used)
    n_samples = len(table.samples)
    found = paired_particles(path, n_samples, particles=particles, indices=indices, choice=choice)
    # Row numbers count in the file of the particles, so that `select` finds them there.
    rows = np.arange(n_samples) if found is None else found.rows
    columns = Columns(table.numbers, table.total, table.names)
    samples = table.samples
    # Up to 256 MB, a copy that no other program can change: a fit of more takes more memory.
    if isinstance(samples, np.memmap) and samples.nbytes <= 2**28:
        samples = np.array(samples)
    return Input(samples, rows, found, columns=columns, path=path)


def _standardised(given: Input) -> Input:
    """Return a table with columns of unit variance; constant ones stay constant."""
    given.require_values()
    assert given.columns is not None
    mean, scale = unit_scale(given.samples, given.columns.labels)
    columns = replace(given.columns, mean=mean, scale=scale)
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
    standardise: bool = False  # as in `read_large`
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
        """Read the samples that are drawn."""
        return read_large(self.table, self.rows, standardise=self.standardise)


def read_large(table: StoredTable, rows: np.ndarray, *, standardise: bool = False) -> LargeInput:
    """Read some samples of a table, chunk by chunk."""
    samples = table.take(rows)
    if standardise:
        table = table.scaled(*unit_scale(samples, table.columns.labels))
        samples = table.columns.scaled(samples)
    return LargeInput(samples, rows, columns=table.columns, path=table.path, table=table)
