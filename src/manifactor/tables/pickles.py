"""Pickled numpy arrays of numbers, as cryoDRGN writes them; nothing in a pickle is executed.

Even numpy's own classes are not handed out, since a forged state of a dtype can make numpy read
foreign memory: stand-ins make an array of plain bytes, a number type and a shape.
"""

import pickle
import pickletools
import re
from collections.abc import Callable
from io import BytesIO
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from manifactor._support.errors import one_line
from manifactor._support.files import require_regular_file
from manifactor._support.memory import require_memory


class Refused(ValueError):
    """A pickle that asks for more than arrays of numbers."""


def read_pickled_array(path: Path) -> np.ndarray:
    """Return the first object of a pickle file if it is a plain array of numbers."""
    return _as_array(path, _unpickled(path))


def read_pickled_numbers(path: Path) -> np.ndarray:
    """Return an array, list, tuple or set of whole numbers in a pickle file as an array."""
    content = _unpickled(path)
    if not isinstance(content, list | tuple | set | frozenset):
        return _as_array(path, content)
    if not all(map(_is_whole, content)):
        raise ValueError(f"{path} must hold whole numbers; its {type(content).__name__} does not.")
    numbers = np.array(list(content), dtype=np.int64)
    # A set has no order of its own; rows are named in that of their file.
    return numbers if isinstance(content, list | tuple) else np.unique(numbers)


def _as_array(path: Path, content: Any) -> np.ndarray:
    if not isinstance(content, _Array):
        raise ValueError(
            f"{path} must hold one pickled array of numbers; got {type(content).__name__}. "
            "cryoDRGN's poses.pkl is a tuple; its coordinates are in z.N.pkl of the training run."
        )
    # A copy, since an array on the bytes of the file would be read-only.
    return content.values.copy()


def _is_whole(value: Any) -> bool:
    """Return whether a value is a whole number that an array can hold."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return whole and abs(int(value)) < 2**63


def _unpickled(path: Path) -> Any:
    """Return the first object of a pickle file, its arrays as stand-ins."""
    require_regular_file(path)
    # The bytes of the file, an array made of them, and one more copy of the text that protocols
    # before 3 store bytes as.
    require_memory(path, 3 * path.stat().st_size)
    content = path.read_bytes()
    try:
        # Python makes room for all numbers below one that it remembers.
        for operation, argument, _ in pickletools.genops(content):
            if operation.name.endswith("PUT") and (argument or 0) > len(content):
                raise Refused(f"it numbers {argument} objects, and has {len(content)} bytes.")
        # From memory: of a file, Python makes room for as many bytes as it is said to have.
        return _ArrayUnpickler(BytesIO(content)).load()
    except Refused as error:
        raise ValueError(f"{path} was refused and nothing in it was run: {error}") from error
    except (MemoryError, OSError):
        raise
    # Nothing but the unpickler is inside, which raises any kind.
    except Exception as error:
        reason = one_line(error)[:200] or "it ends too early."
        raise ValueError(f"{path} is not a pickled numpy array: {reason}") from error


class _ArrayUnpickler(pickle.Unpickler):
    """An unpickler that knows only the names that pickles of arrays refer to."""

    def find_class(self, module: str, name: str) -> Callable:
        # numpy 2 writes numpy._core where numpy 1 wrote numpy.core.
        make = STAND_INS.get((module.replace("numpy._core", "numpy.core"), name))
        if make is None:
            raise Refused(
                f"it asks for {f'{module}.{name}'[:200]!r}, and only plain numpy arrays are read "
                "from pickles."
            )
        # A new function each time: a pickle may set attributes of what it gets.
        return lambda *arguments: make(*arguments)


class _NumberType:
    """Stand-in for numpy.dtype: kind and size, with the byte order as its state."""

    def __init__(self, code: Any, *_: Any) -> None:
        # Floats, integers and booleans by name; no objects, voids, strings or fields.
        if not isinstance(code, str) or not re.fullmatch(r"[fiub]\d{1,2}", code):
            raise Refused("it holds values of another type, and only numbers are read.")
        self.dtype = np.dtype(code)

    def __setstate__(self, state: tuple) -> None:
        # numpy's state: version, byte order, subarray, names, fields, sizes and flags.
        _, order, *rest = state
        if order not in ("<", ">", "=", "|") or any(part is not None for part in rest[:3]):
            raise Refused("it describes a compound type, and only numbers are read from pickles.")
        self.dtype = self.dtype.newbyteorder(order)


class _Array:
    """Stand-in for an array, whose values are its state."""

    def __init__(self, values: np.ndarray = np.empty(0)) -> None:
        self.values = values

    def __setstate__(self, state: tuple) -> None:
        _, shape, number_type, is_fortran, data = state
        self.values = _values(data, number_type, shape, "F" if is_fortran else "C")


def _values(data: Any, number_type: Any, shape: Any, order: Any = "C") -> np.ndarray:
    """Return an array of exactly as many bytes as its shape needs."""
    if not isinstance(number_type, _NumberType) or not isinstance(data, bytes | bytearray):
        raise Refused("it holds an array of objects, and only numbers are read from pickles.")
    # A larger shape would read beyond the bytes, a smaller one hide some.
    whole = all(map(_is_whole, shape))
    if not whole or prod(map(int, shape)) * number_type.dtype.itemsize != len(data):
        raise Refused(f"it holds {len(data)} bytes for an array of another shape.")
    flat = np.frombuffer(data, number_type.dtype)
    return flat.reshape(shape, order="F" if order == "F" else "C")


def _encoded(text: str, encoding: str) -> bytes:
    """Stand-in for _codecs.encode, by which protocols before 3 write bytes."""
    # Pickles of bytes use latin1 only; another codec would run code of its own.
    if encoding != "latin1":
        raise Refused("it asks for another encoding than latin1.")
    return text.encode("latin1")


# The names that pickles of arrays refer to, as numpy 1 wrote them. No other name is looked up.
STAND_INS: dict[tuple[str, str], Callable] = {
    ("numpy", "ndarray"): lambda *_: _Array(),
    ("numpy", "dtype"): _NumberType,
    ("numpy.core.multiarray", "_reconstruct"): lambda *_: _Array(),
    ("numpy.core.numeric", "_frombuffer"): lambda *arguments: _Array(_values(*arguments)),
    ("numpy.core.multiarray", "scalar"): lambda kind, data: _values(data, kind, ())[()],
    ("_codecs", "encode"): _encoded,
    # Protocols before 4 make a set of a list by name, before 3 by an older name.
    ("builtins", "set"): set,
    ("__builtin__", "set"): set,
}
