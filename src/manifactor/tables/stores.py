"""Tables on disk of which blocks of rows are read: .npy, Zarr, Parquet."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from manifactor._support.array_files import DAMAGE, name_damage, npy_header
from manifactor._support.errors import extra
from manifactor._support.files import numeric_order, require_regular_file
from manifactor._support.memory import require_plausible
from manifactor._support.values import bad_values
from manifactor.estimators.arrays import image_shape, take_by_chunks
from manifactor.tables.columns import COLUMN_REMEDIES, ColumnChoice, Columns, quoted, without_text

# zarr, pyarrow and Pillow raise any errors for damaged files; taken where nothing else is called.
ANY = (Exception,)
# Tables with more rows are read in parts, as their coordinates would be a .csv file of more than 50
# MB. So are those with more numbers, 1 GB; a memory-mapped .npy file may have any.
MOST_ROWS, MOST_NUMBERS = 1_000_000, 2**27


@dataclass(frozen=True)
class Store:
    """A table on disk."""

    total: int  # number of all columns
    edges: np.ndarray  # first row of each chunk, in which it is best read, and the number of rows
    # Returns rows as floats: (start, stop, columns) -> (stop - start, len(columns))
    read: Callable[[int, int, Sequence[int]], np.ndarray]
    names: tuple[str, ...] | None = None
    text: tuple[int, ...] = ()  # columns that hold no numbers
    image: tuple[int, ...] | None = None  # shape of an image, if the columns are its pixels

    @property
    def n_rows(self) -> int:
        """Number of all rows."""
        return int(self.edges[-1])


def is_stored(path: Path) -> bool:
    """Return whether this is a folder that holds a Zarr store or Parquet files."""
    return is_zarr(path) or (path.is_dir() and any(path.glob("*.parquet")))


def is_zarr(path: Path) -> bool:
    """Return whether this is the folder of a Zarr store."""
    # What Zarr 3 and Zarr 2 write into the folder of an array or a group.
    names = ("zarr.json", ".zarray", ".zgroup")
    return path.is_dir() and any((path / name).is_file() for name in names)


def open_store(path: Path) -> Store:
    """Return the table of a .npy or .parquet file, a Zarr store or a Parquet folder."""
    if not path.is_dir():
        require_regular_file(path)
    # Opened once by each process; a file that has changed is opened again.
    return _opened(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=2)
def _opened(path: Path, changed: int) -> Store:
    if is_zarr(path):
        store = _open_zarr(path)
    elif path.suffix.lower() == ".npy":
        array = read_npy(path)
        # A file without chunks is read a million numbers at a time.
        at_once = max(1, 2**20 // max(1, prod(array.shape[1:])))
        store = _array_store(path, array, at_once)
    else:
        store = _open_parquet(path)
    if not store.n_rows:
        raise ValueError(f"{path} is empty; it must hold samples, one a row.")
    return store


def _array_store(path: Path, array: Any, at_once: int) -> Store:
    """Return the store of one array on disk, of which slices can be read."""
    image = require_table(path, array)
    n_rows, total = int(array.shape[0]), prod(map(int, array.shape[1:]))

    def read(start: int, stop: int, columns: Sequence[int]) -> np.ndarray:
        with name_damage(path, kinds=ANY):
            block = np.array(array[start:stop]).reshape(stop - start, total)
        block = block[:, list(columns)] if len(columns) < total else block
        return block.astype(float_type(block.dtype), copy=False)

    return Store(total, np.append(np.arange(0, n_rows, at_once), n_rows), read, image=image)


def read_npy(path: Path) -> np.ndarray:
    """Memory-map the array in an .npy file, read-only."""
    with name_damage(path), path.open("rb") as file:
        npy_header(file, path.stat().st_size)
        # A memory map cannot hold objects, so that no pickle is ever loaded.
        return np.lib.format.open_memmap(path, mode="r")


def _open_zarr(path: Path) -> Store:
    zarr = extra("zarr")
    # Before zarr looks into any file: a named pipe would stop it for ever.
    files = [file for file in path.rglob("*") if not file.is_dir()]
    for file in files:
        require_regular_file(file, f"a part of {path}")
    with name_damage(path, kinds=ANY):
        opened = zarr.open(str(path), mode="r")
        arrays = {"X": opened} if hasattr(opened, "shape") else dict(opened.arrays())
    array = arrays[sample_array(path, sorted(arrays))]
    with name_damage(path, kinds=ANY):
        # Shards are read as a whole.
        chunks = getattr(array, "shards", None) or array.chunks
    stored = sum(file.stat().st_size for file in files)
    # Chunks that are missing count as zeros, so that a store of a few bytes may claim any size.
    for shape in (array.shape, chunks):
        require_plausible(path, shape, stored)
    return _array_store(path, array, chunks[0])


def sample_array(path: Path, names: Sequence[str]) -> str:
    """Return which of several arrays holds the samples: X, or the only one."""
    if "X" not in names and len(names) != 1:
        raise ValueError(
            f"{path} must hold an array `X`, or one array; it holds "
            f"{', '.join(names) or 'none':.200}. Save the samples under the name X."
        )
    return "X" if "X" in names else names[0]


def require_table(path: Path, array: Any) -> tuple[int, ...] | None:
    """Refuse an array that is not a table of real numbers, or images, whose shape is returned."""
    try:
        image = image_shape(array.shape)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    if image is None and (len(array.shape) != 2 or not array.shape[1]):
        raise ValueError(
            f"{path} must hold a table with one sample a row; got an array of shape {array.shape}."
        )
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{path} must hold real numbers; got values of type {array.dtype}.")
    return image


def _open_parquet(path: Path) -> Store:
    """Return the table of a .parquet file, or of a folder of such files."""
    files = _parquet_files(path) if path.is_dir() else [path]
    groups = [(file, group) for file in files for group in _row_groups(file)]
    if not groups:
        raise ValueError(f"{path} is empty; it must hold samples, one a row.")
    schema = groups[0][1].physical_schema
    names = tuple(schema.names)
    for file, group in groups:
        if tuple(group.physical_schema.names) != names:
            raise ValueError(
                f"all files of {path} must have the same columns; {file.name} has "
                f"{quoted(group.physical_schema.names)}, and {files[0].name} has {quoted(names)}."
            )
    edges = np.cumsum([0, *(group.row_groups[0].num_rows for _, group in groups)])

    def read(start: int, stop: int, columns: Sequence[int]) -> np.ndarray:
        first = int(np.searchsorted(edges, start, side="right")) - 1
        last = int(np.searchsorted(edges, stop))
        wanted = [names[number] for number in columns]
        blocks = []
        for number in range(first, last):
            low, high = edges[number : number + 2]
            block = _read_group(*groups[number], wanted)
            blocks.append(block[max(start - low, 0) : min(stop, high) - low])
        return np.concatenate(blocks)

    text = tuple(k for k, kind in enumerate(schema.types) if not _holds_numbers(kind))
    return Store(len(names), edges, read, names, text)


def _row_groups(path: Path) -> list[Any]:
    """Return the row groups of a Parquet file, as fragments of a dataset."""
    require_regular_file(path, "a part of the table")
    dataset, disk = extra("pyarrow.dataset"), extra("pyarrow.fs").LocalFileSystem()
    options = dataset.ParquetFragmentScanOptions(page_checksum_verification=True)
    file_format = dataset.ParquetFileFormat(default_fragment_scan_options=options)
    with name_damage(path, kinds=ANY):
        fragment = file_format.make_fragment(str(path), disk)
        names, groups = fragment.physical_schema.names, fragment.split_by_row_group()
    if not names:
        raise ValueError(f"{path} must be a table of numbers: it has no columns.")
    counts = [group.row_groups[0].num_rows for group in groups]
    for count in (*counts, sum(counts)):
        require_plausible(path, (count, len(names)), path.stat().st_size)
    if len(set(names)) < len(names):
        raise ValueError(
            f"{path} must have columns with names that differ; it has {quoted(names)}."
        )
    return groups


def _read_group(path: Path, group: Any, names: list[str]) -> np.ndarray:
    """Return some columns of a row group as floats; missing cells are nan."""
    with name_damage(path, kinds=(*DAMAGE, extra("pyarrow").ArrowException)):
        table = group.to_table(columns=names)
        if len(table) != group.row_groups[0].num_rows:
            raise ValueError(f"it has {len(table)} of {group.row_groups[0].num_rows} rows")
        arrow, columns = extra("pyarrow"), []
        for column in table.columns:
            kind = arrow.from_numpy_dtype(float_type(np.dtype(column.type.to_pandas_dtype())))
            # Whole numbers beyond 2^53 are rounded, as numpy does it.
            columns.append(column.cast(kind, safe=False).to_numpy())
        return np.column_stack(columns)


def float_type(dtype: np.dtype) -> type[np.floating]:
    """Return the precision in which numbers of a type are held as they are."""
    small = dtype.itemsize <= (4 if dtype.kind == "f" else 2)
    return np.float32 if small else np.float64


def _holds_numbers(kind: Any) -> bool:
    """Return whether a type of Arrow is one of numbers."""
    types = extra("pyarrow").types
    kind = kind.value_type if types.is_dictionary(kind) else kind
    kinds = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    return any(is_kind(kind) for is_kind in kinds)


def _parquet_files(folder: Path) -> list[Path]:
    """Return the files of a folder, in the order of the numbers in their names."""
    # Programs that write such folders leave _SUCCESS, _metadata and checksums.
    files = [path for path in folder.iterdir() if path.name[0] not in "._"]
    other = [path.name for path in files if path.suffix.lower() != ".parquet"]
    if other:
        raise ValueError(
            f"a folder of Parquet files must hold nothing else; {folder} also holds "
            f"{quoted(sorted(other), most=3)}. Move them elsewhere."
        )
    return sorted(files, key=numeric_order)


@dataclass(frozen=True)
class StoredTable:
    """A table on disk of any size, as it travels between processes, which read the rows."""

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
        if store.n_rows != self.n_samples:
            raise ValueError(
                f"{self.path} has {store.n_rows:,} samples, and had {self.n_samples:,} when it was "
                "opened. Repeat the command when no other program writes it."
            )
        block = store.read(start, stop, self.columns.numbers)
        # In double precision: the estimator knows which samples it leaves in single.
        wrong = bad_values(block, precision=np.float64)
        if wrong is not None:
            where = f" of {self.path}; only the rows {start:,} to {stop - 1:,} were read"
            labels, remedies = self.columns.labels, COLUMN_REMEDIES
            raise ValueError(
                wrong.message("samples", labels, first_row=start, where=where, remedies=remedies)
            )
        return self.columns.scaled(block)

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Return samples of ascending numbers, read chunk by chunk."""
        return take_by_chunks(rows, self.edges, self.read)


def stored_table(path: Path, choice: ColumnChoice = ColumnChoice()) -> StoredTable:
    """Return a table on disk without columns of text, which are refused where they were chosen."""
    store = open_store(path)
    used = choice.numbers(store.names, store.total)
    text = [number for number in used if number in store.text]
    if text and choice.named:
        names = quoted([(store.names or ())[number] for number in text])
        raise ValueError(
            f"{path} must be a table of numbers: columns that hold none are "
            f"{names}. Leave them out with --drop, or choose others with --columns."
        )
    used = without_text(path, used, text, store.names)
    columns = Columns.of(used, store.total, store.names).pixels_of(store.image)
    return StoredTable(path, columns, store.n_rows)


def in_parts(path: Path, coordinates: str = "auto") -> bool:
    """Return whether the rows of a table are read in parts."""
    is_file = path.suffix.lower() in (".npy", ".parquet") and path.is_file()
    possible = is_file or is_stored(path)
    if not possible or coordinates != "auto":
        return possible and coordinates == "parquet"
    # A file of less than a megabyte need not be opened.
    if is_file and path.stat().st_size < 2**20:
        return False
    store = open_store(path)
    many = path.suffix.lower() != ".npy" and store.n_rows * store.total > MOST_NUMBERS
    return many or store.n_rows > MOST_ROWS
