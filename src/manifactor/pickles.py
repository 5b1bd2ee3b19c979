"""Pickled plain numpy arrays, read by an unpickler that knows nothing else."""

import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np

ADMITTED = {
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("_codecs", "encode"),  # how old protocols write bytes
    *(
        (f"numpy.{core}.{module}", name)
        for core in ("core", "_core")
        for module, name in (("multiarray", "_reconstruct"), ("multiarray", "scalar"), ("numeric", "_frombuffer"))
    ),
}


def read_pickled_array(path: Path) -> np.ndarray:
    """The first object of a pickle file, if it is a plain array of numbers; nothing in the file is executed."""
    try:
        with path.open("rb") as file:
            array = _ArraysOnly(file).load()
    except OSError:
        raise
    except _Refused as error:
        raise ValueError(f"{path} was refused and nothing in it was run: {error}") from error
    except Exception as error:  # whatever a damaged or foreign file leads to
        raise ValueError(f"{path} is not a pickled numpy array: {' '.join(str(error).split())}") from error
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiub":
        got = f"an array of {array.dtype}" if isinstance(array, np.ndarray) else type(array).__name__
        raise ValueError(f"{path} must hold one pickled array of numbers; got {got}.")
    return array


class _Refused(ValueError):
    """A pickle that wants more than arrays."""


class _ArraysOnly(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in ADMITTED:
            raise _Refused(f"it asks for {module}.{name}, and only plain numpy arrays are read from pickles.")
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # names of numpy 1
            return super().find_class(module, name)
