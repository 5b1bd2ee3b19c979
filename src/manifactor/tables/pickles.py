"""An unpickler that builds what it is told to build, in bounded memory and time."""

import pickle
import re
import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, Literal

import numpy as np

from manifactor._support.files import BoundedFile, require_regular_file
from manifactor._support.memory import available_memory

# The unpickler of Python's library that is written in Python. The one in C keeps what it remembers
# in an array, which five bytes of a file make 16 GB large.
Unpickler: Any = pickle._Unpickler

# Operations that arrays need none of: they ask for objects of the program that reads the pickle, or
# build instances of its classes.
FOREIGN = (
    pickle.PERSID,
    pickle.BINPERSID,
    pickle.EXT1,
    pickle.EXT2,
    pickle.EXT4,
    pickle.INST,
    pickle.OBJ,
    pickle.NEWOBJ,
    pickle.NEWOBJ_EX,
    pickle.NEXT_BUFFER,
    pickle.READONLY_BUFFER,
)


class Set(list):
    """The items of a set.

    They are not hashed: whole numbers of a file may all have the same hash, and tuples of tuples
    may take for ever.
    """

    kind = "set"
    add = list.append


class Dict(list):
    """The keys and values of a dict, which are not hashed either."""

    kind = "dict"

    def __setitem__(self, key: Any, value: Any) -> None:
        """Add a key and its value."""
        self += (key, value)


class Memo(dict):
    """Objects that a pickle refers to, by their numbers.

    The numbers are those of the file, and may all have the same hash. Hashes of their digits are
    other ones in every process.
    """

    def __getitem__(self, number: int) -> Any:
        """Return an object."""
        return super().__getitem__(str(number))

    def __setitem__(self, number: int, value: Any) -> None:
        """Remember an object."""
        super().__setitem__(str(number), value)


class Refused(ValueError):
    """A pickle that asks for more than arrays of numbers."""


def shown(text: str, *, most: int = 200) -> str:
    """Return text of a file on one line, without control characters, cut short."""
    line = " ".join(text[: 10 * most].split())
    return "".join(c if c.isprintable() else "?" for c in line[:most])


class StrictUnpickler(Unpickler):
    """An unpickler with stand-ins for all names that a pickle may ask for."""

    def __init__(
        self,
        file: BoundedFile,
        stand_ins: Mapping[tuple[str, str], Callable],
        *,
        buildable: tuple[type, ...],
        most_bytes: int,
    ) -> None:
        """Store the parameters."""
        self.size = file.size
        self.stand_ins = stand_ins
        self.buildable = buildable
        self.left_bytes = most_bytes
        super().__init__(file)
        self.memo = Memo()

    def find_class(self, module: str, name: str) -> Callable:
        """Return the stand-in for a name."""
        # numpy 2 writes numpy._core where numpy 1 wrote numpy.core.
        asked = module.replace("numpy._core", "numpy.core"), name
        if asked not in self.stand_ins:
            raise Refused(
                f"it asks for {shown(f'{module}.{name}')}, and only plain numpy arrays "
                "are read from pickles."
            )
        return self.stand_ins[asked]

    def charge(self, made: Any) -> None:
        """Refuse a pickle that makes more of its bytes than an array needs."""
        if isinstance(made, bytes | Set):
            self.left_bytes -= len(made)
        else:
            self.left_bytes -= getattr(made, "nbytes", 0)
        if self.left_bytes < 0:
            raise Refused("it makes many arrays of the same bytes.")

    def refuse(self) -> None:
        """Refuse a foreign operation."""
        raise Refused("it is made of other things than plain numpy arrays.")

    def load_reduce(self) -> None:
        """Call a stand-in."""
        super().load_reduce()
        self.charge(self.stack[-1])

    def load_build(self) -> None:
        """Set the state of what a stand-in returned; nothing else is changed."""
        if not isinstance(self.stack[-2], self.buildable):
            self.refuse()
        super().load_build()
        self.charge(self.stack[-1])

    def load_bytearray8(self) -> None:
        """Read bytes; their number is not believed."""
        size = int.from_bytes(self.read(8), "little")
        if size > self.size:
            raise Refused(f"it claims {size} bytes, and has {self.size}.")
        self.append(bytearray(self.read(size)))

    def load_empty_set(self) -> None:
        """Begin a set."""
        self.append(Set())

    def load_frozenset(self) -> None:
        """Make a set of items."""
        items = self.pop_mark()
        self.append(Set(items))

    def load_empty_dictionary(self) -> None:
        """Begin a dict."""
        self.append(Dict())

    def load_dict(self) -> None:
        """Make a dict of keys and values."""
        items = self.pop_mark()
        self.append(Dict(items))


StrictUnpickler.dispatch = {
    **Unpickler.dispatch,
    **{code[0]: StrictUnpickler.refuse for code in FOREIGN},
    pickle.REDUCE[0]: StrictUnpickler.load_reduce,
    pickle.BUILD[0]: StrictUnpickler.load_build,
    pickle.BYTEARRAY8[0]: StrictUnpickler.load_bytearray8,
    pickle.EMPTY_SET[0]: StrictUnpickler.load_empty_set,
    pickle.FROZENSET[0]: StrictUnpickler.load_frozenset,
    pickle.EMPTY_DICT[0]: StrictUnpickler.load_empty_dictionary,
    pickle.DICT[0]: StrictUnpickler.load_dict,
}


# Pickled numpy arrays of numbers, read by an unpickler that builds nothing else.
#
# Even numpy's own classes are not admitted, since a forged dtype state can make numpy read foreign
# memory. Stand-ins take their place, and an array is made of plain bytes, a number type and a
# shape.

# What Python's unpickler raises for operations, texts and numbers that make no sense, and for
# stand-ins that are called with other arguments than numpy's.
UNPICKLING = (
    pickle.UnpicklingError,
    EOFError,
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    AssertionError,
    OverflowError,
    struct.error,
)

# cryoDRGN writes poses as a pair of arrays.
POSES_HINT = (
    " cryoDRGN's poses.pkl is a tuple; its coordinates are in the training folder, in z.N.pkl."
)


@dataclass(frozen=True)
class PickleSettings:
    """How much memory a pickle may take."""

    # Bytes for each byte of the file: what was read, an array made of it, and one more copy of text
    # that protocols before 3 store bytes as. Whatever takes more refers to the same bytes again and
    # again.
    bytes_per_byte: int = 3

    # Bytes for a file of any size, such as one with a few numbers of numpy.
    free: int = 2**16

    # Axes of an array; numpy has no more.
    most_axes: int = 64


def read_pickled_array(path: Path) -> np.ndarray:
    """Return the first object of a pickle file if it is a plain array of numbers.

    Nothing in the file is executed.
    """
    return _as_array(path, _unpickled(path))


def _as_array(path: Path, found: Any) -> np.ndarray:
    array = found.values if isinstance(found, _Array) else found
    if not isinstance(array, np.ndarray):
        kind = _kind(found)
        raise ValueError(
            f"{path} must hold one pickled array of numbers; got {kind}."
            + POSES_HINT * (kind == "tuple")
        )
    return array


def read_pickled_numbers(path: Path) -> np.ndarray:
    """Return the first object of a pickle file as an array of whole numbers.

    It may be an array, or a list, a tuple or a set of whole numbers; a set is sorted. Nothing in
    the file is executed.
    """
    found = _unpickled(path)
    if not isinstance(found, list | tuple) or isinstance(found, Dict):
        return _as_array(path, found)
    if not all(map(_is_whole, found)):
        raise ValueError(f"{path} must hold whole numbers; its {_kind(found)} does not.")
    numbers = np.array(found, dtype=np.int64)
    # A set has no order of its own; rows are named in that of their file.
    return np.unique(numbers) if isinstance(found, Set) else numbers


def _kind(found: Any) -> str:
    """Return what Python calls an object that was read."""
    return getattr(found, "kind", type(found).__name__.strip("_"))


def _is_whole(value) -> bool:
    """Return whether a value is a whole number that an array can hold."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return whole and abs(int(value)) < 2**63


def _unpickled(path: Path, settings: PickleSettings = PickleSettings()) -> Any:
    """Return the first object of a pickle file, made of stand-ins."""
    if path.exists():
        require_regular_file(path)
    most = path.stat().st_size * settings.bytes_per_byte + settings.free
    available = available_memory()
    if most > available:
        raise ValueError(
            f"{path} would take {most / 1e9:.1f} GB of memory, and "
            f"{available / 1e9:.1f} GB are available. Save the array as an .npy file, "
            "which is read in parts."
        )
    try:
        with BoundedFile(path) as file:
            return StrictUnpickler(
                file, STAND_INS, buildable=(_Array, _NumberType), most_bytes=most
            ).load()
    except OSError:  # a file that cannot be read at all says so itself
        raise
    except Refused as error:
        raise ValueError(f"{path} was refused and nothing in it was run: {error}") from error
    except UNPICKLING as error:
        reason = shown(str(error)) or "it ends too early."
        raise ValueError(f"{path} is not a pickled numpy array: {reason}") from error


class _NumberType:
    """Stand-in for numpy.dtype: kind and size, with the byte order as its state."""

    def __init__(self, code: Any, *_):
        # Floats, integers and booleans by name; no objects, voids, strings or fields. Nothing but
        # text is shown: lists may hold themselves, a billion times.
        known = isinstance(code, str)
        if not known or not re.fullmatch(r"[fiub]\d{1,2}", code):
            kind = repr(shown(code)) if known else type(code).__name__
            raise Refused(
                f"it holds values of type {kind}, and only numbers are read from pickles."
            )
        self.code = code
        self.order = "="

    def __setstate__(self, state: tuple) -> None:
        # numpy's state: version, byte order, subarray, names, fields, sizes and flags.
        _, order, *rest = state
        is_compound = any(part is not None for part in rest[:3])
        if order not in ("<", ">", "=", "|") or is_compound:
            raise Refused("it describes a compound type, and only numbers are read from pickles.")
        self.order = order

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(self.order + self.code)


class _Array:
    """Stand-in for an array before and after its state is set."""

    values: np.ndarray | None = None

    @property
    def nbytes(self) -> int:
        return 0 if self.values is None else self.values.nbytes

    def __setstate__(self, state: tuple) -> None:
        _, shape, number_type, is_fortran, data = state
        order = "F" if is_fortran else "C"
        self.values = _array_from_bytes(data, number_type, shape, order)


def _array_from_bytes(
    data, number_type, shape, order: str, *, most_axes: int = PickleSettings.most_axes
) -> np.ndarray:
    """Return an array of exactly as many bytes as its shape needs."""
    # Protocols before 3 store bytes as text.
    data = data.encode("latin1") if isinstance(data, str) else data
    has_bytes = isinstance(data, bytes | bytearray)
    if not isinstance(number_type, _NumberType) or not has_bytes:
        raise Refused("it holds an array of objects, and only numbers are read from pickles.")
    if len(shape) > most_axes or not all(map(_is_whole, shape)):
        raise Refused("it holds an array whose shape is not a few whole numbers.")
    shape = tuple(int(side) for side in shape)
    dtype = number_type.dtype
    # A larger shape would read beyond the bytes, a smaller one hide some.
    if prod(shape) * dtype.itemsize != len(data):
        raise Refused(f"it holds {len(data)} bytes for an array of shape {shape}.")
    layout: Literal["C", "F"] = "F" if order == "F" else "C"
    # A copy, since an array on the bytes of the file would be read-only.
    return np.frombuffer(data, dtype).reshape(shape, order=layout).copy()


def _reconstruct(*_) -> _Array:
    """Stand-in for numpy's constructor of an array without a state."""
    return _Array()


def _plain_set(values: Iterable = ()) -> Set:
    """Stand-in for the constructor of a set."""
    if not all(map(_is_whole, values)):
        raise Refused("it holds a set of other things than whole numbers.")
    return Set(values)


def _scalar(number_type, data):
    """Stand-in for numpy's constructor of a single number."""
    return _array_from_bytes(data, number_type, (), "C")[()]


def _encoded(text: str, encoding: str) -> bytes:
    """Stand-in for _codecs.encode, by which protocols before 3 write bytes."""
    # Pickles of bytes use latin1 only; any other codec would run code of its own.
    if encoding != "latin1":
        raise Refused("it asks for another encoding than latin1.")
    return text.encode("latin1")


# The names that pickles of arrays refer to, as numpy 1 wrote them. No other name is ever looked up.
STAND_INS: dict[tuple[str, str], Callable] = {
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _NumberType,
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy.core.numeric", "_frombuffer"): _array_from_bytes,
    ("numpy.core.multiarray", "scalar"): _scalar,
    ("_codecs", "encode"): _encoded,
    # Protocols before 4 make a set of a list by name, before 3 by an older name.
    ("builtins", "set"): _plain_set,
    ("__builtin__", "set"): _plain_set,
}
