"""An unpickler that builds what it is told to build, in bounded memory and time."""

import pickle
from collections.abc import Callable, Mapping
from typing import Any

from manifactor._support.bounded_files import BoundedFile

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
