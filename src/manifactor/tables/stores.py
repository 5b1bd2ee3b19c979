"""Rows of memory-mapped arrays, read from their files.

A page of a memory map that its file no longer has ends the process. What is read from the file
itself is checked, and cannot change later.
"""

import mmap
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from manifactor._support.array_files import ArrayFileSettings, npy_header
from manifactor._support.errors import extra, first_sentence, one_line, warn_caller
from manifactor._support.files import BoundedFile, irregularity, numeric_order, require_regular_file
from manifactor._support.values import bad_values
from manifactor.estimators.arrays import take_by_chunks
from manifactor.estimators.columns import ColumnWarning
from manifactor.tables.columns import COLUMN_REMEDIES, ColumnChoice, Columns, listed
from manifactor.tables.parquet_pages import require_plausible_group, require_separate


@dataclass(frozen=True)
class MappedSettings:
    """Settings of `in_memory`."""

    # Bytes up to which samples are read at once: a fit of them takes more memory.
    most_read: int = 2**28


def in_memory(samples: np.ndarray, *, settings: MappedSettings = MappedSettings()) -> np.ndarray:
    """Return samples that no other program can change, unless they are very many."""
    if not isinstance(samples, np.memmap) or samples.nbytes > settings.most_read:
        return samples
    return read_rows(samples, 0, len(samples))


def read_rows(array: np.memmap, start: int, stop: int) -> np.ndarray:
    """Read rows of a memory-mapped array, and refuse a file that became shorter."""
    # A slice does not know where in the file it starts, and rows in Fortran's order are not
    # together.
    if not isinstance(array.base, mmap.mmap) or not array.flags.c_contiguous:
        return np.array(array[start:stop])
    shape = (min(stop, len(array)) - start, *array.shape[1:])
    before = start * array.nbytes // max(1, len(array))
    with open(str(array.filename), "rb") as file:
        found = np.fromfile(file, array.dtype, int(np.prod(shape)), offset=array.offset + before)
    if found.size < np.prod(shape):
        raise ValueError(
            f"{array.filename} became shorter while it was read. Repeat the command "
            "when no other program writes it."
        )
    return found.reshape(shape)


# Checks of Zarr stores and Parquet files before they are read, and of what they raise.
#
# A store of a few bytes may claim any size: chunks that are missing count as zeros, and a column of
# one value is stored once.


def require_plausible_size(
    path: Path,
    shape: tuple[int, ...],
    stored: int,
    *,
    settings: ArrayFileSettings = ArrayFileSettings(),
) -> None:
    """Refuse a table, or a chunk of it, far larger than what is stored of it."""
    if any(side < 0 for side in shape):
        raise ValueError(f"{path} is damaged: it claims the shape {shape}.")
    # Rows without columns have numbers, too. Python's integers do not overflow.
    claimed = settings.bytes_per_number * prod(max(1, side) for side in shape)
    if claimed > settings.free + settings.most_expansion * stored:
        raise ValueError(
            f"{path} holds {stored:,} bytes and claims {claimed:,}, as numbers of "
            f"shape {shape}; it is incomplete or damaged. Write it again."
        )


def stored_bytes(folder: Path) -> int:
    """Return the size of all files in a folder; refuse what is no regular file."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            path = Path(parent, name)
            problem = irregularity(path)
            if problem:
                raise ValueError(f"{folder} must hold files; {path} {problem}.")
            total += path.stat().st_size
    return total


@contextmanager
def damage_named(path: Path, kinds: tuple[type[Exception], ...] = (Exception,)) -> Iterator[None]:
    """Turn whatever zarr or pyarrow raise into an error that names the file."""
    try:
        yield
    except (MemoryError, FileNotFoundError, PermissionError):
        raise
    except kinds as error:
        reason = one_line(error) or type(error).__name__
        raise ValueError(
            f"{path} cannot be read and is probably damaged: {reason[:300]}"
        ) from error


# Stores of tables on disk, of which blocks of rows are read: .npy, Zarr, Parquet.

# What Zarr 3 and Zarr 2 write into the folder of an array or a group.
ZARR_FILES = ("zarr.json", ".zarray", ".zgroup")


@dataclass(frozen=True)
class StoreSettings:
    """Settings of `open_store`."""

    # Numbers of a .npy file, which has no chunks, that are read at a time.
    numbers_at_once: int = 2**20


class Store(Protocol):
    """A table on disk.

    - names: names of all columns
    - total: number of all columns
    - edges: first row of each chunk, in which the table is best read, and the number of rows
    - text: columns that hold no numbers
    """

    @property
    def names(self) -> tuple[str, ...] | None: ...  # noqa: D102

    @property
    def total(self) -> int: ...  # noqa: D102

    @property
    def edges(self) -> np.ndarray: ...  # noqa: D102

    @property
    def text(self) -> tuple[int, ...]: ...  # noqa: D102

    def read(self, start: int, stop: int, columns: Sequence[int]) -> np.ndarray:
        """Return rows as floats, (stop - start, len(columns))."""


@dataclass(frozen=True)
class ArrayStore:
    """A table that is one array on disk, of which slices can be read."""

    array: Any
    edges: np.ndarray
    path: Path
    names: tuple[str, ...] | None = None
    text: tuple[int, ...] = ()

    @property
    def total(self) -> int:
        """Number of all columns."""
        return int(self.array.shape[1])

    def read(self, start: int, stop: int, columns: Sequence[int]) -> np.ndarray:
        """Return rows as floats, (stop - start, len(columns))."""
        if isinstance(self.array, np.memmap):
            block = read_rows(self.array, start, stop)
        else:
            with damage_named(self.path):
                block = np.asarray(self.array[start:stop])
        if len(columns) < self.total:
            block = block[:, list(columns)]
        return block.astype(float_type(block.dtype), copy=False)


@dataclass(frozen=True)
class ParquetStore:
    """A table in one or several Parquet files, one after the other."""

    files: tuple[Path, ...]  # the file of each row group
    groups: tuple[int, ...]  # its number in the file
    edges: np.ndarray  # row groups are the chunks
    names: tuple[str, ...]
    text: tuple[int, ...]

    @property
    def total(self) -> int:
        """Number of all columns."""
        return len(self.names)

    def read(self, start: int, stop: int, columns: Sequence[int]) -> np.ndarray:
        """Return rows as floats, (stop - start, len(columns))."""
        first = int(np.searchsorted(self.edges, start, side="right")) - 1
        last = int(np.searchsorted(self.edges, stop))
        blocks = []
        for group in range(first, last):
            low, high = self.edges[group : group + 2]
            block = self._group(group, [self.names[number] for number in columns])
            blocks.append(block[max(start - low, 0) : min(stop, high) - low])
        return np.concatenate(blocks)

    def _group(self, group: int, names: list[str]) -> np.ndarray:
        """Return some columns of a row group; missing cells are nan."""
        path, number = self.files[group], self.groups[group]
        metadata = _parquet_metadata(path, path.stat().st_mtime_ns)
        pyarrow, parquet = extra("pyarrow"), extra("pyarrow.parquet")
        # Of pyarrow, and of pages that are not what they claim.
        kinds = (pyarrow.ArrowException, OSError, ValueError, LookupError)
        with (
            damage_named(path, kinds),
            parquet.ParquetFile(path, metadata=metadata, page_checksum_verification=True) as file,
        ):
            claimed = metadata.row_group(number)
            require_plausible_group(path, claimed, names)
            table = file.read_row_group(number, columns=names)
            if len(table) != claimed.num_rows:
                raise ValueError(f"it has {len(table)} of {claimed.num_rows} rows")
            # By name: pyarrow returns columns in the order of the file.
            columns = [_as_floats(table.column(name)) for name in names]
        kind = np.result_type(*columns)
        return np.column_stack([column.astype(kind, copy=False) for column in columns])


# Parsed once for all row groups: a file of 500 kB may have 6,000 of them.
@lru_cache(maxsize=2)
def _parquet_metadata(path: Path, changed: int) -> Any:
    parquet = extra("pyarrow.parquet")
    with damage_named(path):
        return parquet.read_metadata(path)


def _as_floats(column) -> np.ndarray:
    """Return a column of an Arrow table as floats; missing cells are nan."""
    precision = float_type(np.dtype(column.type.to_pandas_dtype()))
    kind = extra("pyarrow").from_numpy_dtype(precision)
    # Whole numbers beyond 2^53 are rounded, as numpy does it.
    return column.cast(kind, safe=False).to_numpy()


def float_type(dtype: np.dtype) -> type[np.floating]:
    """Return the precision in which numbers of a type are held as they are.

    >>> float_type(np.dtype("uint8")), float_type(np.dtype("int32"))
    (<class 'numpy.float32'>, <class 'numpy.float64'>)
    """
    small = dtype.itemsize <= (4 if dtype.kind == "f" else 2)
    return np.float32 if small else np.float64


def is_stored(path: Path) -> bool:
    """Return whether this is a folder that holds a Zarr store or Parquet files."""
    return is_zarr(path) or (path.is_dir() and any(path.glob("*.parquet")))


def is_zarr(path: Path) -> bool:
    """Return whether this is the folder of a Zarr store."""
    return path.is_dir() and any((path / name).is_file() for name in ZARR_FILES)


def open_store(path: Path) -> Store:
    """Return the table of a .npy or .parquet file, a Zarr store or a Parquet folder."""
    # Opened once by each process; a file that has changed is opened again.
    return _opened(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=2)
def _opened(path: Path, changed: int) -> Store:
    if is_zarr(path):
        store: Store = _open_zarr(path)
    elif path.suffix.lower() == ".npy":
        store = _open_npy(path)
    else:
        store = _open_parquet(path)
    if not store.edges[-1]:
        raise ValueError(f"{path} is empty; it must hold samples, one a row.")
    return store


def read_npy(path: Path) -> np.ndarray:
    """Memory-map the array in an .npy file, read-only."""
    try:
        with BoundedFile(path) as file:
            npy_header(file, file.size)
        # A memory map cannot hold objects, so that no pickle is ever loaded.
        return np.lib.format.open_memmap(path, mode="r")
    except ValueError as error:
        raise ValueError(
            f"{path} is damaged, or no {path.suffix} file of plain values: "
            f"{first_sentence(error)}. Write it again with the program that made it, "
            "or with numpy.save."
        ) from error


def _open_npy(path: Path, settings: StoreSettings = StoreSettings()) -> ArrayStore:
    array = read_npy(path)
    require_table(path, array)
    rows = max(1, settings.numbers_at_once // max(1, array.shape[1]))
    return ArrayStore(array, _edges(len(array), rows), path)


def _open_zarr(path: Path) -> ArrayStore:
    zarr = extra("zarr")
    # Before zarr looks into any file: a named pipe would stop it for ever.
    stored = stored_bytes(path)
    with damage_named(path):
        found = zarr.open(str(path), mode="r")
    if not hasattr(found, "shape"):
        with damage_named(path):
            names = list(found.array_keys())
        chosen = _member(path, names)
        with damage_named(path):
            found = found[chosen]
    require_table(path, found)
    with damage_named(path):
        # Shards are read as a whole.
        chunks = getattr(found, "shards", None) or found.chunks
    for shape in (found.shape, chunks):
        require_plausible_size(path, shape, stored)
    return ArrayStore(found, _edges(found.shape[0], chunks[0]), path)


def _member(path: Path, names: list[str]) -> str:
    """Return the name of the array of a group that holds the samples, as in an .npz."""
    chosen = sample_array(names)
    if chosen is None:
        raise ValueError(
            f"{path} must hold an array `X`, or one array; it holds "
            f"{', '.join(sorted(names)) or 'none'}. Save the samples under the name X, "
            "or give the array itself: its folder in the store."
        )
    return chosen


def sample_array(names: Sequence[str]) -> str | None:
    """Return which of several arrays holds the samples: X, or the only one."""
    only = names[0] if len(names) == 1 else None
    return "X" if "X" in names else only


def _edges(n_rows: int, at_once: int) -> np.ndarray:
    return np.append(np.arange(0, n_rows, at_once), n_rows)


def require_table(path: Path, array: Any) -> None:
    """Refuse an array that is no table of real numbers."""
    if len(array.shape) != 2 or not array.shape[1]:
        raise ValueError(
            f"{path} must hold a table with one sample a row; got an array of shape {array.shape}."
        )
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{path} must hold real numbers; got values of type {array.dtype}.")


def _open_parquet(path: Path) -> ParquetStore:
    """Return the table of a .parquet file, or of a folder of such files."""
    files = _parquet_files(path) if path.is_dir() else [path]
    schema = None
    of, groups, counts = [], [], [0]
    for file in files:
        own, metadata = parquet_layout(file)
        schema = own if schema is None else schema
        if own.names != schema.names:
            raise ValueError(
                f"all files of {path} must have the same columns; {file.name} has "
                f"{listed(own.names)}, and {files[0].name} has {listed(schema.names)}."
            )
        for group in range(metadata.num_row_groups):
            of.append(file)
            groups.append(group)
            counts.append(metadata.row_group(group).num_rows)
    assert schema is not None
    text = tuple(k for k, kind in enumerate(schema.types) if not holds_numbers(kind))
    edges = np.cumsum(counts)
    return ParquetStore(tuple(of), tuple(groups), edges, tuple(schema.names), text)


def parquet_layout(path: Path) -> tuple[Any, Any]:
    """Return the columns of a Parquet file and its metadata, checked."""
    require_regular_file(path, "a part of the table")
    parquet = extra("pyarrow.parquet")
    try:
        with parquet.ParquetFile(path) as file:
            schema, metadata = file.schema_arrow, file.metadata
    except (MemoryError, FileNotFoundError, PermissionError):
        raise
    # Nothing but pyarrow is inside, which raises any kind.
    except Exception as error:
        raise ValueError(f"{path} is no Parquet file: {one_line(error)}") from None
    if not schema.names:
        raise ValueError(f"{path} must be a table of numbers: it has no columns.")
    counts = [metadata.row_group(k).num_rows for k in range(metadata.num_row_groups)]
    stored = path.stat().st_size
    for count in (*counts, metadata.num_rows):
        require_plausible_size(path, (count, len(schema.names)), stored)
    require_separate(path, metadata, stored)
    if len(set(schema.names)) < len(schema.names):
        raise ValueError(
            f"{path} must have columns with names that differ; it has {listed(schema.names)}."
        )
    return schema, metadata


def holds_numbers(kind) -> bool:
    """Return whether a type of Arrow is one of numbers."""
    types = extra("pyarrow").types
    if types.is_dictionary(kind):
        return holds_numbers(kind.value_type)
    known: tuple[Callable, ...] = (
        types.is_integer,
        types.is_floating,
        types.is_boolean,
        types.is_decimal,
    )
    return any(is_kind(kind) for is_kind in known)


def _parquet_files(folder: Path) -> list[Path]:
    """Return the files of a folder, in the order of the numbers in their names."""
    # Programs that write such folders leave _SUCCESS, _metadata and checksums in them.
    found = [path for path in folder.iterdir() if path.name[0] not in "._"]
    other = [path.name for path in found if path.suffix.lower() != ".parquet"]
    if other:
        raise ValueError(
            f"a folder of Parquet files must hold nothing else; {folder} also holds "
            f"{listed(sorted(other), most=3)}. Move them elsewhere."
        )
    for path in found:
        require_regular_file(path, "a table")
    return sorted(found, key=numeric_order)


# Samples of tables that are too large to be read as a whole.


@dataclass(frozen=True)
class LargeSettings:
    """Which tables are too large to be read as a whole."""

    # Rows: the coordinates of more would be a .csv file of more than 50 MB.
    rows: int = 1_000_000

    # Numbers, 1 GB in double precision; a memory-mapped .npy file may have any number.
    numbers: int = 2**27

    # Bytes of a file that is never too large, so that it need not be opened.
    small_file: int = 2**20


@dataclass(frozen=True)
class StoredTable:
    """Samples of a table on disk, read a block of rows at a time.

    It is small, whatever the table's size: other processes get it and read the rows themselves.
    """

    path: Path
    columns: Columns  # which columns are used, and their scale
    n_samples: int

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples and of columns used."""
        return self.n_samples, len(self.columns.numbers)

    @property
    def edges(self) -> np.ndarray:
        """First row of each chunk, and the number of rows."""
        return open_store(self.path).edges

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return samples in sequence, scaled; refuse NaN, inf and huge values."""
        store = open_store(self.path)
        if store.edges[-1] != self.n_samples:
            raise ValueError(
                f"{self.path} has {store.edges[-1]:,} samples, and had "
                f"{self.n_samples:,} when it was opened. Repeat the command when no "
                "other program writes it."
            )
        block = store.read(start, stop, self.columns.numbers)
        self._require_values(block, start)
        return self.columns.scaled(block)

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Return samples of ascending numbers, read chunk by chunk."""
        return take_by_chunks(rows, self.edges, self.read)

    def scaled(self, mean: np.ndarray, scale: np.ndarray) -> "StoredTable":
        """Return the same, with columns that are shifted and divided by these."""
        return replace(self, columns=replace(self.columns, mean=mean, scale=scale))

    def _require_values(self, block: np.ndarray, start: int) -> None:
        # In double precision: the estimator knows which samples it leaves in single.
        found = bad_values(block, precision=np.float64)
        if found is None:
            return
        row, column = found.place
        label = self.columns.labels[column]
        place = (
            f"row {start + row}, column {label!r} of {self.path}; only the rows "
            f"{start:,} to {start + len(block) - 1:,} were read"
        )
        raise ValueError(found.words("samples", place, *COLUMN_REMEDIES))


def stored_table(path: Path, choice: ColumnChoice = ColumnChoice()) -> StoredTable:
    """Return the chosen columns of a table on disk; nothing is read yet.

    Columns of text are left out with a warning, and refused where they were chosen.
    """
    store = open_store(path)
    used = choice.numbers(store.names, store.total)
    text = [number for number in used if number in store.text]
    if text:
        names = listed([_label(store, number) for number in text])
        if len(text) == len(used) and not choice.named:
            raise ValueError(
                f"{path} must be a table of numbers: all columns hold text. "
                "Give a file with columns of numbers."
            )
        if choice.named:
            raise ValueError(
                f"{path} must be a table of numbers: columns that hold none are "
                f"{names}. Leave them out with --drop, or choose others with --columns."
            )
        warn_caller(f"columns that hold text were left out: {names}.", ColumnWarning)
        used = tuple(number for number in used if number not in store.text)
    names_used = None
    if store.names is not None:
        names_used = tuple(store.names[number] for number in used)
    columns = Columns(used, store.total, names_used)
    return StoredTable(path, columns, int(store.edges[-1]))


def _label(store: Store, number: int) -> str:
    return str(number) if store.names is None else store.names[number]


def in_parts(
    path: Path, coordinates: str = "auto", *, settings: LargeSettings = LargeSettings()
) -> bool:
    """Return whether the rows of a table are read in parts."""
    is_file = path.suffix.lower() in (".npy", ".parquet") and path.is_file()
    if coordinates == "csv" or not (is_file or is_stored(path)):
        return False
    if coordinates == "parquet":
        return True
    if is_file and path.stat().st_size < settings.small_file:
        return False
    store = open_store(path)
    n_rows = int(store.edges[-1])
    mapped = path.suffix.lower() == ".npy"
    many = not mapped and n_rows * store.total > settings.numbers
    return many or n_rows > settings.rows
