"""Samples from a file: .npy, .npz, .csv, .tsv, .txt, .parquet, .pkl, .cs."""

import csv
import re
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from manifactor._support.extras import extra
from manifactor.inputs.pickles import read_pickled_array

# Column delimiters of tables in text; None for any white space.
DELIMITERS: dict[str, str | None] = {".csv": ",", ".tsv": "\t", ".txt": None}

# The fields of cryoSPARC's 3D variability analysis, one for each mode.
MODE = re.compile(r"components_mode_(\d+)/value")


def read_samples(path) -> np.ndarray:
    """Read the samples in a file, one a row, as floats.

    Floats of an .npy are not loaded: they are memory-mapped and read when needed. A
    table may start with a line of column names. An .npz must hold an array ``X``, or
    one array only. A .pkl must be a plain array, such as cryoDRGN's z; a .cs must hold
    the components of a variability analysis.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    ndarray of shape (n_samples, n_features), float32 or float64
    """
    path = Path(path)
    _require_readable(path)
    X = READERS[path.suffix.lower()](path)
    if X.ndim != 2:
        raise ValueError(
            f"{path} must hold a table with one sample a row; got an array of shape "
            f"{X.shape}."
        )
    if X.dtype.kind not in "fiub":
        raise ValueError(
            f"{path} must hold real numbers; got values of type {X.dtype}."
        )
    if isinstance(X, np.memmap) and X.dtype in (np.float32, np.float64):
        return X
    # Single precision holds the integers of images, of 16 bits at most, as they are.
    small = isinstance(X, np.memmap) and X.dtype.kind != "f" and X.itemsize <= 2
    return X.astype(np.float32 if small else np.float64)


def _require_readable(path: Path) -> None:
    """Refuse what is missing, a folder, of an unknown format or empty."""
    if not path.is_file():
        problem = "is a folder" if path.is_dir() else "does not exist"
        raise ValueError(f"the input must be a file; {path} {problem}.")
    if path.suffix.lower() not in READERS:
        raise ValueError(
            f"the input must end in one of {', '.join(READERS)}, be particles (.star, "
            f".cs, .mrcs) or a folder of .mrc volumes; got {path.name}."
        )
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty; it must hold samples, one a row.")


def column_names(path) -> list[str]:
    """Return the names of a table's columns, or none if its first line has numbers."""
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        return list(extra("pyarrow.parquet").read_schema(path).names)
    if suffix not in DELIMITERS:
        return []
    cells = _first_cells(path, DELIMITERS[suffix])
    return cells if _is_header(cells) else []


def _first_cells(path: Path, delimiter: str | None) -> list[str]:
    # Spreadsheet programs start UTF-8 files with a mark that "utf-8-sig" skips.
    with path.open(encoding="utf-8-sig") as file:
        first = file.readline().strip()
    if delimiter is None:
        return first.split()
    return next(csv.reader([first], delimiter=delimiter), [])


def _is_header(cells: list[str]) -> bool:
    # One number is enough for data: a first row with a gap is no header.
    return not any(_is_number(cell) for cell in cells)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def read_npy(path: Path) -> np.ndarray:
    """Memory-map the array in an .npy file, read-only."""
    try:
        # A memory map cannot hold objects, so that no pickle is ever loaded.
        return np.lib.format.open_memmap(path, mode="r")
    except (ValueError, EOFError) as error:
        raise ValueError(
            f"{path} is not a plain array of numbers; pickled objects are never loaded."
        ) from error


def _read_npz(path: Path) -> np.ndarray:
    try:
        # Opened here, since numpy does not close a damaged archive.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            names = list(stored)
            only = names[0] if len(names) == 1 else None
            chosen = "X" if "X" in names else only
            if chosen is not None:
                return stored[chosen]
    except Exception as error:  # damaged and foreign files lead to any exception
        raise ValueError(
            f"{path} is not an .npz file of plain arrays; pickled objects are never "
            "loaded."
        ) from error
    raise ValueError(
        f"{path} must hold an array `X`, or one array; it holds "
        f"{', '.join(names) or 'none'}."
    )


def _read_table(path: Path, *, delimiter: str | None) -> np.ndarray:
    try:
        n_header_lines = int(_is_header(_first_cells(path, delimiter)))
        # numpy warns of a table without rows; the error below says it better.
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            X = np.loadtxt(
                path,
                delimiter=delimiter,
                skiprows=n_header_lines,
                ndmin=2,
                encoding="utf-8-sig",
            )
    except ValueError as error:
        raise _not_a_table(path, error) from error
    if not X.size:
        raise ValueError(
            f"{path} holds no samples; it must hold a line of numbers for each."
        )
    return X


def _read_parquet(path: Path) -> np.ndarray:
    parquet = extra("pyarrow.parquet")
    try:
        table = parquet.read_table(path)
        return np.column_stack([column.to_numpy() for column in table.columns])
    except OSError:
        raise
    except Exception as error:  # damaged and foreign files lead to any exception
        raise _not_a_table(path, error) from error


def _not_a_table(path: Path, error: Exception) -> ValueError:
    # The first line only, since the command line prints messages of one line.
    reason = str(error).splitlines() or [type(error).__name__]
    return ValueError(f"{path} must be a table of numbers: {reason[0]}")


def _read_components(path: Path) -> np.ndarray:
    """Return the components of a 3D variability analysis, one column a mode."""
    table = read_npy(path)
    fields = {}
    for name in table.dtype.names or ():
        if found := MODE.fullmatch(name):
            fields[int(found[1])] = name
    if not fields:
        raise ValueError(
            f"{path} must hold fields components_mode_0/value, "
            "components_mode_1/value, ... of a 3D variability analysis; it holds none."
        )
    # By number: as text, mode 10 would come before mode 2.
    return np.column_stack([table[fields[mode]] for mode in sorted(fields)])


READERS: dict[str, Callable[[Path], np.ndarray]] = {
    ".npy": read_npy,
    ".npz": _read_npz,
    **{
        suffix: partial(_read_table, delimiter=delimiter)
        for suffix, delimiter in DELIMITERS.items()
    },
    ".parquet": _read_parquet,
    ".pkl": read_pickled_array,
    ".cs": _read_components,
}
