"""Any input as samples: arrays, coordinates of other programs, images, volumes."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from manifactor._support.files import require_regular_file
from manifactor._support.parameters import require_count, require_number
from manifactor._support.values import bad_values
from manifactor.cryoem.components import (
    Components,
    ImageSettings,
    VolumeComponents,
    image_components,
    require_filters,
    volume_components,
)
from manifactor.cryoem.files.cryosparc import read_cs
from manifactor.cryoem.files.formats import ParticleChoice, group_sizes
from manifactor.cryoem.files.particles import Particles, view_directions
from manifactor.cryoem.files.stacks import STACK_SUFFIXES, ImageSource, stack_images, volume_series
from manifactor.cryoem.one_view import View
from manifactor.estimators.arrays import FEWEST_SAMPLES
from manifactor.tables.columns import COLUMN_REMEDIES, ColumnChoice, Columns, quoted
from manifactor.tables.files import MODE, MoveChoice, read_table
from manifactor.tables.frames import frame_names, is_frames, left_out
from manifactor.tables.pickles import read_pickled_numbers
from manifactor.tables.stores import StoredTable, is_stored, read_npy
from manifactor.tables.text import line_of

# Particle images of one view, and volumes: what goes with them, and how they are chosen.


# Kinds of inputs, and what to do about an option that does not go with one.
TABLE, PARTS = "coordinates", "a table that is read in parts"
IMAGES, STACK, VOLUMES = "a file of particles", "a stack of images", "a folder of volumes"
ALL_VIEWS = "particles of all views"
INSTEAD = {
    TABLE: "Name their particles with --particles, and choose some of them afterwards: manifactor "
    "select --column rlnClassNumber 3 3.",
    PARTS: "Add --coordinates csv, or leave it out.",
    STACK: "Give its STAR or .cs file instead, or leave it out.",
}
# The kinds of inputs that options of `fit` go with, where these are not all.
OF_MOVES = ("--time", "--trajectory", "--trajectories", "--bursts", "--pairs", "--lag")
OF_ROWS = ("--particles", "--ind", *OF_MOVES)
OF_FILES, OF_FILTERS = ("--datadir", "--class", "--optics-group"), ("--mask-radius", "--low-pass")
GOES_WITH = {
    **dict.fromkeys(("--columns", "--drop"), (TABLE, PARTS)),
    **dict.fromkeys(OF_ROWS, (TABLE,)),
    "--standardise": (TABLE, PARTS, IMAGES, STACK),
    "--view": (IMAGES,),
    **dict.fromkeys(OF_FILES, (IMAGES, ALL_VIEWS)),
    **dict.fromkeys(("--phase-flip", "--components"), (IMAGES, STACK)),
    **dict.fromkeys(("--pixel-size", *OF_FILTERS), (IMAGES, STACK, ALL_VIEWS)),
}


@dataclass(frozen=True)
class Given:
    """What was given with an input."""

    particles: Any = None
    indices: Any = None
    view: tuple[float, float] | None = None
    width: float | None = None  # degrees around the view
    settings: ImageSettings = field(default_factory=ImageSettings)
    columns: ColumnChoice = field(default_factory=ColumnChoice)
    choice: ParticleChoice = field(default_factory=ParticleChoice)
    moves: MoveChoice = field(default_factory=MoveChoice)
    further: tuple[Path, ...] = ()  # files that are fitted together with the input

    def require(self, path: Path, kind: str) -> None:
        """Refuse options that do not go with a kind of input: nobody sees that they do nothing."""
        options = {
            "--particles": self.particles,
            "--ind": self.indices,
            "--view": self.view,
            "--columns": self.columns.columns,
            "--drop": self.columns.drop,
            **{f"--{name.replace('_', '-')}": value for name, value in vars(self.settings).items()},
            **self.choice.options,
            **dict.fromkeys(self.moves.options, True),
        }
        # The results of a job in cryoSPARC, and its passthrough file.
        joined = kind == IMAGES and is_cs(path) and is_cs(self.particles or "")
        paired = kind == TABLE and self.particles is not None
        known = ["--particles"] * joined + ["--datadir", "--pixel-size"] * paired
        for option, value in options.items():
            if value and option not in known and kind not in GOES_WITH[option]:
                advice = INSTEAD.get(kind, "Leave it out.")
                raise ValueError(f"{option} does not go with {kind}; got {path}. {advice}")


def is_cs(path) -> bool:
    """Return whether a file is one of cryoSPARC, by its name."""
    return Path(path).suffix.lower() == ".cs"


# Particles seen from one direction.

# Degrees around the mean direction in which particles count as one view.
MAX_ANGLE = 30.0


def checked_width(width: float | None, view: tuple[float, float] | None) -> float:
    """Return the degrees around a view, usually 10; refuse them where there is no view."""
    if width is None:
        return 10.0
    require_number("width", width, low=0, high=180)
    if view is None:
        raise ValueError(
            "--width is the angle around a view; give one with --view ROT,TILT, or "
            "leave --width out."
        )
    return width


def picked(
    particles: Particles, view: tuple[float, float], width: float, *, or_opposite: bool = False
) -> Particles:
    """Return the particles within `width` degrees of a view, (rot, tilt).

    Or within as many of the opposite view, if asked for.
    """
    # One image alone has no differences to factor.
    near = particles.near_view(*view, width=width, or_opposite=or_opposite)
    if near.sum() < 2:
        rot, tilt = view
        raise ValueError(
            f"the view must show some particles; within {width:g} degrees of rot "
            f"{rot:g}, tilt {tilt:g} there are {near.sum()} of {len(near)}. Choose "
            "another view or a larger --width."
        )
    return particles[near]


def is_one_view(particles: Particles) -> bool:
    """Return whether all particles are seen within an angle of their mean direction."""
    return _spread(particles) <= MAX_ANGLE


def require_one_view(particles: Particles, *, max_angle: float = MAX_ANGLE) -> None:
    """Refuse images of many views, whose differences are mostly those of the views."""
    spread = _spread(particles)
    if spread > max_angle:
        raise ValueError(
            f"images must show one view; those of {particles.path} are up to {spread:.0f} degrees "
            "apart from their middle. Pick one with --view ROT,TILT --width DEGREES (`manifactor "
            "views` lists them), or fit all of them together with --all-views."
        )


def require_one_class(particles: Particles) -> None:
    """Refuse images of several classes of a 2-D classification.

    Such classes usually are different views, and no other angles tell these apart.
    """
    classes = particles.microscope.get("class")
    flat = particles.angles is None or particles.in_plane_only
    if classes is None or not flat or (classes == classes[0]).all():
        return
    raise ValueError(
        f"images must show one view; those of {particles.path} are of "
        f"{len(np.unique(classes))} classes of a 2-D classification: "
        f"{group_sizes(classes)}. Choose one with --class, or several of one view."
    )


def _spread(particles: Particles) -> float:
    """Return the largest angle in degrees between views and their mean direction."""
    # Particles of a 2-D class have no angles; to choose the class was to choose a view.
    if particles.angles is None:
        return 0.0
    directions = view_directions(particles.angles)
    mean = directions.mean(axis=0)
    length = np.linalg.norm(mean)
    if length < 1e-6:  # directions that cancel have no mean direction
        return 180.0
    # Rounding may take a cosine beyond 1, where the angle is not a number.
    cosines = np.clip(directions @ mean / length, -1, 1)
    return float(np.degrees(np.arccos(cosines)).max())


# Inputs whose files were checked and not read yet.


@dataclass(frozen=True)
class UnreadImages:
    """Images of one view, or volumes, that were found and not read yet."""

    path: Path
    source: ImageSource
    view: View | None = None  # the images in one frame; None for volumes
    settings: ImageSettings = field(default_factory=ImageSettings)
    notes: tuple[str, ...] = ()  # what a user should know of how they will be read

    @property
    def n_samples(self) -> int:
        """How many images or volumes there are."""
        return len(self.source)

    @property
    def particles(self) -> Particles | None:
        """Particles in the order of the images."""
        return None if self.view is None else self.view.particles

    @property
    def rows(self) -> np.ndarray:
        """Row numbers in the file of the particles, or in the stack."""
        if self.particles is None:
            return np.arange(self.n_samples)
        return self.particles.rows

    def components(self, rng: np.random.Generator) -> Components | VolumeComponents:
        """Read all of them and return their principal components."""
        if self.view is None:
            return volume_components(self.source)
        return image_components(self.view, self.settings, rng=rng)


def particles_of_one_view(path: Path, given: Given, width: float) -> Particles:
    """Return the chosen particles of a file, seen from one direction."""
    choice, passthrough = given.choice, given.particles
    if passthrough is None:
        particles = choice.read(path)
    else:
        particles = choice.read(Path(passthrough), results=path)
    particles = choice.chosen(particles)
    if given.view is not None:
        particles = picked(particles, given.view, width)
    require_one_view(particles)
    if not choice.classes:
        require_one_class(particles)
    return particles


def _unread_images(path: Path, particles: Particles | None, given: Given) -> UnreadImages:
    """Return images that are enough, and that the settings suit."""
    settings = given.settings
    view = run_images(path, particles, phase_flip=settings.phase_flip, choice=given.choice)
    source = view.source
    if len(source) < FEWEST_SAMPLES:
        raise ValueError(
            f"a fit needs at least {FEWEST_SAMPLES} images, and hundreds to show a motion; "
            f"{path} gives {len(source)}. Widen the choice, or add images."
        )
    require_filters(source.shape, source.pixel_size, settings)
    if settings.components is not None:
        require_count("--components", settings.components, low=1, high=len(source))
    label = "cell dimensions in its header" if particles is None else particles.pixel_size_label
    note = (
        f"{path} states no pixel size ({label}); 1 A is taken, so that all lengths are "
        "in pixels. Give it in Angstrom with --pixel-size."
    )
    notes = () if source.pixel_size_stated else (note,)
    return UnreadImages(path, source, view, settings, notes)


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


# Any input as samples: arrays, coordinates of other programs, images, volumes.


@dataclass(frozen=True)
class Input:
    """Samples and their origin."""

    samples: np.ndarray  # (n, n_features)
    rows: np.ndarray  # (n,): the samples' row numbers in the input, or in the file of the particles
    particles: Particles | None = None  # particles in the order of the samples
    components: Components | VolumeComponents | None = None  # how images or volumes became samples
    columns: Columns | None = None  # which columns of a table these are, and their scale
    path: Path | None = None  # the file of a table
    # What is known of the samples' moves, as arguments of `fit`
    moves: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()  # what a user should know of how the input was read
    names: tuple[str, ...] | None = None  # of the files of the samples, if each has its own

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
        """Names or numbers of the columns in their file; None for all columns without names."""
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
        words = found.message("samples", self.labels, where=where, remedies=COLUMN_REMEDIES)
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
    if path.is_dir() and not is_stored(path) and not is_frames(path):
        given.require(path, VOLUMES)
        return UnreadImages(path, volume_series(path))
    if path.suffix.lower() in STACK_SUFFIXES:
        given.require(path, STACK)
        return _unread_images(path, None, given)
    if _holds_particles(path):
        given.require(path, IMAGES)
        particles = particles_of_one_view(path, given, width)
        return _unread_images(particles.path, particles, given)
    given.require(path, TABLE)
    parts = [_from_coordinates(each, given) for each in (path, *given.further)]
    found = parts[0] if len(parts) == 1 else _joined(parts)
    if given.settings.standardise:
        found = _standardised(found)
    if not given.moves.options:
        return found
    assert found.columns is not None
    files = [
        (each, part.n_samples) for each, part in zip((path, *given.further), parts, strict=True)
    ]
    return replace(found, moves=given.moves.read(files, found.columns))


def read_opened(opened: Input | UnreadImages, rng: np.random.Generator) -> Input:
    """Return the samples of an input that is open; `rng` draws images to learn from."""
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
    how: dict = {}
    if path.is_dir() and is_frames(path):
        how = {"notes": left_out(path), "names": frame_names(path)}
    return Input(samples, rows, found, columns=table.columns, path=path, **how)


def _joined(parts: Sequence[Input]) -> Input:
    """Return trajectories of several files as one table."""
    first = parts[0]
    for part in parts:
        if part.columns != first.columns:
            raise ValueError(
                f"the files of --trajectories must have the same columns; {first.path} has "
                f"{_named(first)}, and {part.path} has {_named(part)}."
            )
        if part.particles is not None:
            raise ValueError(
                "particles go with one file of coordinates; --trajectories got "
                f"{len(parts)}. Leave --particles out, or fit one file."
            )
        part.require_values()
    samples = np.concatenate([part.samples for part in parts])
    # Files of several folders may have the same names.
    names = tuple(f"{part.path}/{name}" for part in parts for name in part.names or ())
    named = names if len(names) == len(samples) else None
    return replace(first, samples=samples, rows=np.arange(len(samples)), names=named)


def _named(part: Input) -> str:
    assert part.columns is not None
    return quoted([str(label) for label in part.columns.labels])


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
