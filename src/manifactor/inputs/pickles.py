"""Pickled plain numpy arrays, read by an unpickler that builds nothing but them.

Even numpy's own classes are not admitted, since a forged state of a dtype can make numpy read foreign memory: stand-ins
take their place, and an array is made of plain bytes, a number type and a shape.
"""

import pickle
import re
from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import Any

import numpy as np


def read_pickled_array(path: Path) -> np.ndarray:
    """The first object of a pickle file, if it is a plain array of numbers; nothing in the file is executed."""
    try:
        with path.open("rb") as file:
            found = _ArraysOnly(file).load()
    except OSError:
        raise
    except _Refused as error:
        raise ValueError(
            f"{path} was refused and nothing in it was run: {error}"
        ) from error
    except Exception as error:  # whatever a damaged or foreign file leads to
        raise ValueError(
            f"{path} is not a pickled numpy array: {' '.join(str(error).split())}"
        ) from error
    array = found.values if isinstance(found, _Array) else found
    if not isinstance(array, np.ndarray):
        raise ValueError(
            f"{path} must hold one pickled array of numbers; got {type(found).__name__.strip('_')}."
        )
    return array


class _Refused(ValueError):
    """A pickle that wants more than arrays of numbers."""


class _NumberType:
    """What stands for numpy.dtype: a kind and a size, and the order of bytes as its state."""

    def __init__(self, code: str, *_):
        if not re.fullmatch(r"[fiub]\d{1,2}", str(code)):
            raise _Refused(
                f"it holds values of type {code!r}, and only numbers are read from pickles."
            )
        self.code, self.order = code, "="

    def __setstate__(self, state: tuple) -> None:
        _, order, *rest = state
        if order not in ("<", ">", "=", "|") or any(
            part is not None for part in rest[:3]
        ):
            raise _Refused(
                "it describes a compound type, and only numbers are read from pickles."
            )
        self.order = order

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(self.order + self.code)


class _Array:
    """What stands for an array before and after its state is known."""

    values: np.ndarray | None = None

    def __setstate__(self, state: tuple) -> None:
        _, shape, number_type, fortran, data = state
        self.values = _made(data, number_type, shape, "F" if fortran else "C")


def _made(data, number_type, shape, order: str) -> np.ndarray:
    """An array of bytes that are as many as its shape says."""
    data = data.encode("latin1") if isinstance(data, str) else data
    if not isinstance(number_type, _NumberType) or not isinstance(
        data, bytes | bytearray
    ):
        raise _Refused(
            "it holds an array of objects, and only numbers are read from pickles."
        )
    shape = tuple(int(side) for side in shape)
    if prod(shape) * number_type.dtype.itemsize != len(data):
        raise _Refused(f"it holds {len(data)} bytes for an array of shape {shape}.")
    return (
        np.frombuffer(data, number_type.dtype)
        .reshape(shape, order="F" if order == "F" else "C")
        .copy()
    )


def _encoded(text: str, encoding: str) -> bytes:
    """How old protocols write bytes."""
    if encoding != "latin1":
        raise _Refused(f"it asks for the encoding {encoding!r}.")
    return text.encode("latin1")


class _ArraysOnly(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        asked = module.replace("numpy._core", "numpy.core"), name
        if asked not in STAND_INS:
            raise _Refused(
                f"it asks for {module}.{name}, and only plain numpy arrays are read from pickles."
            )
        return STAND_INS[asked]


STAND_INS: dict[tuple[str, str], Callable] = {
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _NumberType,
    ("numpy.core.multiarray", "_reconstruct"): lambda *_: _Array(),
    ("numpy.core.numeric", "_frombuffer"): _made,
    ("_codecs", "encode"): _encoded,
}
