"""Samples from a file: .npy, .npz, .csv, .tsv, .txt, .parquet, .pkl, .cs, .zarr, images."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from manifactor._support.array_files import open_archive
from manifactor._support.files import require_regular_file
from manifactor._support.memory import require_memory
from manifactor.estimators.arrays import as_rows, in_pixels
from manifactor.tables import stores
from manifactor.tables.columns import ColumnChoice, Columns, Table, quoted
from manifactor.tables.frames import is_frames, read_frames
from manifactor.tables.pickles import read_pickled_array
from manifactor.tables.text import DELIMITERS, layout_of, read_labels, read_text

# The fields of cryoSPARC's 3D variability analysis, one for each mode.
MODE = re.compile(r"components_mode_(\d+)/value")


def read_samples(path) -> np.ndarray:
    """Read the samples in a file, one a row, as floats; all columns of numbers.

    Floats of an .npy are not loaded: they are memory-mapped and read when needed. A table may start
    with a line of column names, and its columns of text are left out. An .npz and a Zarr group must
    hold an array ``X``, or one array only. A .pkl must be a plain array, such as cryoDRGN's z; a
    .cs must hold the components of a variability analysis. The files of a folder of .parquet files
    are read one after the other. Images are rows of pixels, also those in picture files.

    Returns (n_samples, n_features).
    """
    return read_table(path).samples


def read_table(path, choice: ColumnChoice = ColumnChoice()) -> Table:
    """Read the chosen columns of a file."""
    path = Path(path)
    if stores.is_stored(path):
        return _read_stored(path, choice)
    if is_frames(path):
        return _read_array(read_frames, path, choice)
    _require_readable(path)
    return READERS[path.suffix.lower()](path, choice)


def _read_stored(path: Path, choice: ColumnChoice) -> Table:
    """Return a Zarr store, a Parquet file, or a folder of such files, as a whole."""
    stored = stores.stored_table(path, choice)
    require_memory(path, 8 * stored.n_samples * stored.shape[1])
    if path.is_dir():
        return Table(stored.read(0, stored.n_samples), stored.columns)
    samples = stores.open_store(path).read(0, stored.n_samples, stored.columns.numbers)
    return Table(samples.astype(np.float64, copy=False), stored.columns)


def column_names(path) -> list[str]:
    """Return the names of a table's columns; empty if it has none."""
    path = Path(path)
    if path.suffix.lower() in DELIMITERS:
        return list(layout_of(path).names or ())
    if path.suffix.lower() != ".parquet" and not stores.is_stored(path):
        return []
    return list(stores.open_store(path).names or ())


def read_like(path, columns: Columns) -> np.ndarray:
    """Return the samples of another file in the same columns and scale."""
    table = read_table(path, ColumnChoice() if columns.image else columns.choice)
    samples, names = table.samples, table.columns.names
    if columns.image and table.columns.image != columns.image:
        raise ValueError(
            f"{path} must hold images of {in_pixels(columns.image)}, as the run's input; got "
            f"{in_pixels(table.columns.image or (1, samples.shape[1]))}."
        )
    # By name: another file may have them in another order.
    if columns.names is not None and names is not None:
        samples = samples[:, [names.index(name) for name in columns.names]]
    return columns.scaled(samples)


def _require_readable(path: Path) -> None:
    """Refuse what is missing, a folder, of an unknown format or empty."""
    require_regular_file(path)
    if path.suffix.lower() not in READERS:
        raise ValueError(
            f"the input must end in one of {', '.join(READERS)}, be particles (.star, .cs, .mrcs, "
            ".mrc), pictures (a folder, .tif, .gif), a film (.mp4, .avi, ...), a Zarr store, a "
            f"folder of .parquet files, or a folder of .mrc volumes; got {path.name}."
        )
    if not path.stat().st_size:
        raise ValueError(f"{path} is empty; it must hold samples, one a row.")


# Arrays, of which all columns are read.


def array_name(path: Path) -> str:
    """Return the name of the array in an .npz that holds the samples."""
    with open_archive(path) as archive:
        return stores.sample_array(path, list(archive.members))


def read_npz(path: Path) -> np.ndarray:
    """Read the array in an .npz that holds the samples."""
    name = array_name(path)
    with open_archive(path) as archive:
        # Numbers may be converted to double precision, beside those that were read.
        return archive.read(name, itemsize=16)[name]


def _read_components(path: Path) -> np.ndarray:
    """Return the components of a 3D variability analysis, one column a mode."""
    table = stores.read_npy(path)
    modes = filter(None, map(MODE.fullmatch, table.dtype.names or ()))
    # By number: as text, mode 10 would come before mode 2.
    fields = [mode[0] for mode in sorted(modes, key=lambda mode: int(mode[1]))]
    if not fields:
        raise ValueError(
            f"{path} must hold fields components_mode_0/value, "
            "components_mode_1/value, ... of a 3D variability analysis; it holds none."
        )
    return np.column_stack([table[field] for field in fields])


def _read_latents(path: Path) -> np.ndarray:
    """Return pickled coordinates; refuse the CTF of cryoDRGN, which is a pickled array, too.

    Its nine columns are box size, pixel size, two defoci, their angle, voltage, spherical
    aberration, amplitude contrast and phase shift.
    """
    X = read_pickled_array(path)
    if X.shape[1:] != (9,) or not len(X):
        return X
    box, pixel, voltage, contrast = X[:, [0, 1, 5, 7]].T
    whole_box = (box == box[0]).all() and box[0] >= 2 and box[0] % 1 == 0
    # In kV; microscopes have 80 to 300, and no coordinate has such a mean.
    in_kilovolts = voltage.min() >= 50 and voltage.max() <= 1500
    if whole_box and in_kilovolts and pixel.min() > 0 and 0 <= contrast.min() <= 1:
        raise ValueError(
            f"{path} holds the CTF of every image, as cryoDRGN's ctf.pkl does, and no coordinates. "
            "Give z.N.pkl of the training folder, where N is the last epoch."
        )
    return X


def _read_array(read: Callable[[Path], np.ndarray], path: Path, choice: ColumnChoice) -> Table:
    """Return the chosen columns of an array as floats."""
    X = read(path)
    image = stores.require_table(path, X)
    X = as_rows(X)[0]
    mapped = isinstance(X, np.memmap)
    if not mapped or X.dtype not in (np.float32, np.float64):
        # Single precision holds the integers of images, of 16 bits at most, as they are.
        held = image is not None or (mapped and X.dtype.kind != "f")
        X = X.astype(stores.float_type(X.dtype) if held else np.float64, copy=False)
    columns = Columns(choice.numbers(None, X.shape[1]), X.shape[1]).pixels_of(image)
    # Without a selection, a memory-mapped file is not read.
    every = len(columns.numbers) == columns.total
    return Table(X if every else X[:, columns.numbers], columns)


READERS: dict[str, Callable[[Path, ColumnChoice], Table]] = {
    ".npy": partial(_read_array, stores.read_npy),
    ".npz": partial(_read_array, read_npz),
    ".pkl": partial(_read_array, _read_latents),
    ".cs": partial(_read_array, _read_components),
    **dict.fromkeys(DELIMITERS, read_text),
    ".parquet": _read_stored,
}


# What files tell of the moves of their rows: times, trajectories, bursts, pairs.


@dataclass(frozen=True)
class MoveChoice:
    """Where the moves of the rows of a table are told, if anywhere."""

    time: str | None = None  # column with the time of each row
    trajectory: str | None = None  # column with the trajectory that each row belongs to
    trajectories: bool = False  # whether each file is one trajectory
    bursts: str | None = None  # file with an array (n, r, p)
    pairs: str | None = None  # file with what followed each row
    lag: float | None = None  # time between pairs

    @property
    def options(self) -> list[str]:
        """The options that are given."""
        return [
            f"--{k}" for k, value in vars(self).items() if value is not None and value is not False
        ]

    @property
    def apart(self) -> tuple[tuple[str, str], ...]:
        """Columns that are not to be fitted, each with its option."""
        named = {"--time": self.time, "--trajectory": self.trajectory}
        return tuple((option, label) for option, label in named.items() if label is not None)

    def read(self, files: Sequence[tuple[Path, int]], columns: Columns) -> dict[str, Any]:
        """Return what is known of moves, as arguments of `fit`.

        Files are given with their numbers of rows. There is one, unless each is a trajectory.
        """
        moves: dict[str, Any] = {} if self.lag is None else {"lag": self.lag}
        if self.time is not None:
            only = ColumnChoice(labels=(self.time,))
            times = [read_table(path, only).samples[:, 0] for path, _ in files]
            moves["times"] = np.concatenate(times)
        if self.trajectory is not None:
            moves["trajectories"] = _labels(files[0][0], ColumnChoice(labels=(self.trajectory,)))
        if self.trajectories:
            moves["trajectories"] = np.repeat(np.arange(len(files)), [count for _, count in files])
        if self.bursts is not None:
            moves["bursts"] = _bursts(Path(self.bursts), columns)
        if self.pairs is not None:
            moves["pairs"] = _later(Path(self.pairs), columns)
        return moves


def _labels(path: Path, only: ColumnChoice) -> np.ndarray:
    """Return the labels in a column, which may be words in a table in text."""
    if path.suffix.lower() in DELIMITERS:
        return read_labels(path, only)
    return read_table(path, only).samples[:, 0]


def _later(path: Path, columns: Columns) -> np.ndarray:
    """Return what followed each row of a table, in its chosen columns and their scale, (n, p)."""
    require_regular_file(path, "--pairs")
    later = read_table(path).columns
    if columns.names is None:
        right = later.total == columns.total
    else:
        right = set(columns.names) <= set(later.names or ())
    if not right:
        asked, got = (quoted(list(map(str, some.labels))) for some in (columns, later))
        raise ValueError(
            f"--pairs must be a table with the columns of the input, {asked}; got {path.name} with "
            f"{got}."
        )
    return read_like(path, columns)


def _bursts(path: Path, columns: Columns) -> np.ndarray:
    """Return samples near those of a table, in its chosen columns and their scale, (n, r, p)."""
    require_regular_file(path, "--bursts")
    readers = {".npy": stores.read_npy, ".npz": read_npz}
    if path.suffix.lower() not in readers:
        raise ValueError(
            "--bursts must be an .npy or .npz file with an array of shape (samples, repeats, "
            f"columns); got {path.name}."
        )
    bursts = readers[path.suffix.lower()](path)
    if bursts.dtype.kind not in "fiub" or bursts.ndim != 3:
        raise ValueError(
            f"{path} must hold real numbers in an array of shape (samples, repeats, columns); got "
            f"{bursts.dtype}, shape {bursts.shape}."
        )
    if bursts.shape[2] == columns.total:
        bursts = bursts[:, :, columns.numbers]
    return columns.scaled(bursts)
