"""Samples from a file: .npy, .npz, .csv, .tsv, .txt, .parquet, .pkl, .cs."""

import csv
import re
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

from manifactor._support.extras import extra
from manifactor.inputs.pickles import read_pickled_array


def read_samples(path) -> np.ndarray:
    """The samples in a file, one a row, as floats; those of an .npy stay there and are read when they are needed.

    A table may start with a line of column names. An .npz must hold an array ``X``, or one array only. A .pkl must be
    a plain array, such as cryoDRGN's z; a .cs must hold the components of a variability analysis.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(
            f"the input must be a file; {path} {'is a folder' if path.is_dir() else 'does not exist'}."
        )
    suffix = path.suffix.lower()
    if suffix not in READERS:
        raise ValueError(
            f"the input must end in one of {', '.join(READERS)}, be particles (.star, .cs, .mrcs) or a folder of .mrc "
            f"volumes; got {path.name}."
        )
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty; it must hold samples, one a row.")
    X = READERS[suffix](path)
    if X.ndim != 2:
        raise ValueError(
            f"{path} must hold a table with one sample a row; got an array of shape {X.shape}."
        )
    if X.dtype.kind not in "fiub":
        raise ValueError(
            f"{path} must hold real numbers; got values of type {X.dtype}."
        )
    return X if isinstance(X, np.memmap) and X.dtype in FLOATS else X.astype(np.float64)


def column_names(path) -> list[str]:
    """The names of a table's columns, where its first line has them; none otherwise."""
    path = Path(path)
    if path.suffix.lower() == ".parquet":
        return list(extra("pyarrow.parquet").read_schema(path).names)
    if path.suffix.lower() not in DELIMITERS:
        return []
    cells = _first_cells(path, DELIMITERS[path.suffix.lower()])
    return [] if any(_is_number(cell) for cell in cells) else cells


def _first_cells(path: Path, delimiter: str | None) -> list[str]:
    with path.open(encoding="utf-8-sig") as file:
        first = file.readline().strip()
    return (
        first.split()
        if delimiter is None
        else next(csv.reader([first], delimiter=delimiter), [])
    )


def _read_npy(path: Path) -> np.ndarray:
    try:
        return np.lib.format.open_memmap(path, mode="r")
    except (ValueError, EOFError) as error:
        raise ValueError(
            f"{path} is not a plain array of numbers; pickled objects are never loaded."
        ) from error


def _read_npz(path: Path) -> np.ndarray:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            names = list(stored)
            chosen = "X" if "X" in names else names[0] if len(names) == 1 else None
            if chosen is not None:
                return stored[chosen]
    except Exception as error:  # whatever a damaged or foreign file leads to
        raise ValueError(
            f"{path} is not an .npz file of plain arrays; pickled objects are never loaded."
        ) from error
    raise ValueError(
        f"{path} must hold an array `X`, or one array; it holds {', '.join(names) or 'none'}."
    )


def _read_table(delimiter: str | None) -> Callable[[Path], np.ndarray]:
    def read(path: Path) -> np.ndarray:
        try:
            cells = _first_cells(path, delimiter)
            header = (
                0 if any(_is_number(cell) for cell in cells) else 1
            )  # a row with a gap is no header
            with warnings.catch_warnings(
                action="ignore", category=UserWarning
            ):  # no rows: said below
                X = np.loadtxt(
                    path,
                    delimiter=delimiter,
                    skiprows=header,
                    ndmin=2,
                    encoding="utf-8-sig",
                )
        except ValueError as error:
            raise ValueError(
                f"{path} must be a table of numbers: {_first_line(error)}"
            ) from error
        if not X.size:
            raise ValueError(f"{path} holds no samples.")
        return X

    return read


def _read_parquet(path: Path) -> np.ndarray:
    parquet = extra("pyarrow.parquet")
    try:
        table = parquet.read_table(path)
        return np.column_stack([column.to_numpy() for column in table.columns])
    except OSError:
        raise
    except Exception as error:  # whatever a damaged or foreign file leads to
        raise ValueError(
            f"{path} must be a table of numbers: {_first_line(error)}"
        ) from error


def _read_components(path: Path) -> np.ndarray:
    """The components of cryoSPARC's 3D variability analysis, one column a mode."""
    table = _read_npy(path)
    modes = {
        int(found[1]): name
        for name in table.dtype.names or ()
        if (found := MODE.fullmatch(name))
    }
    if not modes:
        raise ValueError(
            f"{path} must hold fields components_mode_0/value, components_mode_1/value, ... of a 3D variability "
            "analysis; it holds none."
        )
    return np.column_stack([table[modes[mode]] for mode in sorted(modes)])


FLOATS = (np.float32, np.float64)
MODE = re.compile(r"components_mode_(\d+)/value")

DELIMITERS: dict[str, str | None] = {".csv": ",", ".tsv": "\t", ".txt": None}
READERS: dict[str, Callable[[Path], np.ndarray]] = {
    ".npy": _read_npy,
    ".npz": _read_npz,
    **{suffix: _read_table(delimiter) for suffix, delimiter in DELIMITERS.items()},
    ".parquet": _read_parquet,
    ".pkl": read_pickled_array,
    ".cs": _read_components,
}


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _first_line(error: BaseException) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
