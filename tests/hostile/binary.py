"""Damages that know a format: .npy headers, .npz members, pickles, MRC headers."""

import io
import pickletools
import struct
import warnings
import zipfile
from random import Random

import numpy as np

from .mutations import BYTES, HOSTILE_FLOATS, HOSTILE_INTEGERS, Mutation, several
from .text import JSON

MAGIC = b"\x93NUMPY"
TYPES = (
    "<f2",
    "<f4",
    ">f8",
    "<f16",
    "<c16",
    "|b1",
    "<i1",
    "<u8",
    "<U3",
    "|S4",
    "|V8",
    "|O",
    "<M8[s]",
    "",
)


def changed_header(data: bytes, rng: Random) -> bytes:
    """Return an .npy file with another type, shape or order in its header."""
    if not data.startswith(MAGIC) or len(data) < 12:
        return several(BYTES, data, rng)
    length = struct.unpack("<H", data[8:10])[0]
    header, body = data[10 : 10 + length].decode("latin1"), data[10 + length :]
    new = rng.choice(HEADER_CHANGES)(header, rng).encode("latin1", "replace")
    version = rng.choice((b"\1\0", b"\1\0", b"\1\0", b"\2\0", b"\3\0", b"\xff\0"))
    size = struct.pack("<H" if version == b"\1\0" else "<I", min(len(new), 65535))
    return MAGIC + version + size + new[:65535] + body


def _other_shape(header: str, rng: Random) -> str:
    sides = [str(rng.choice(HOSTILE_INTEGERS)) for _ in range(rng.choice((0, 1, 2, 3)))]
    shape = "".join(f"{side}, " for side in sides)
    shape = rng.choice((f"({shape})", "(60, 2.0)", "(1e9, 2)", "(True, 2)", "60", "()"))
    return _other_entry(header, "shape", shape)


def _other_type(header: str, rng: Random) -> str:
    return _other_entry(header, "descr", repr(rng.choice(TYPES)))


def _other_order(header: str, rng: Random) -> str:
    return _other_entry(header, "fortran_order", rng.choice(("True", "None", "2")))


def _other_entry(header: str, name: str, new: str) -> str:
    start = header.find(f"'{name}': ") + len(name) + 4
    stop = header.find(", '", start) if name != "shape" else header.find(", }", start)
    return header[:start] + new + header[stop:]


def _other_text(header: str, rng: Random) -> str:
    return several(BYTES, header.encode("latin1"), rng).decode("latin1")


def _odd_text(header: str, rng: Random) -> str:
    odd = ("{" * 500, "(" * 5000, "\0", "{'x': __import__('os')}", "9" * 5000, "[]")
    return rng.choice(odd)


HEADER_CHANGES = (_other_shape, _other_shape, _other_type, _other_order, _other_text, _odd_text)


def changed_array(data: bytes, rng: Random) -> bytes:
    """Return an .npy file that is whole, of other values, another shape or type."""
    try:
        array = _changed(np.load(io.BytesIO(data)), rng)
    # An earlier mutation has damaged the file, or the change does not suit the array.
    except Exception:
        return several(BYTES, data, rng)
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def _changed(array: np.ndarray, rng: Random) -> np.ndarray:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return rng.choice(ARRAY_CHANGES)(array, rng)


def _hostile_values(array: np.ndarray, rng: Random) -> np.ndarray:
    found = array.copy()
    if found.dtype.names:
        name = rng.choice(found.dtype.names)
        found[name] = _hostile_values(np.ascontiguousarray(found[name]), rng)
        return found
    for _ in range(rng.choice((1, 3, 100))):
        if found.size and found.dtype.kind in "iub":
            whole = np.array(rng.choice(HOSTILE_INTEGERS)).astype(found.dtype)
            found.flat[rng.randrange(found.size)] = whole
        elif found.size and found.dtype.kind in "fc":
            found.flat[rng.randrange(found.size)] = rng.choice(HOSTILE_FLOATS)
        elif found.size:
            found.flat[rng.randrange(found.size)] = "1@/dev/zero"
    return found


def _same_values(array: np.ndarray, rng: Random) -> np.ndarray:
    rows = [rng.randrange(len(array)) for _ in range(rng.choice((1, 2)))] if array.size else []
    return array[rows * len(array)] if rows and array.ndim else array


def _other_kind(array: np.ndarray, rng: Random) -> np.ndarray:
    if array.dtype.names:
        return _other_field(array, rng)
    kind = rng.choice(("f2", "f4", ">f8", "c16", "?", "i1", "u8", "U3", "S4", "M8[s]"))
    return array.astype(kind)


def _other_field(array: np.ndarray, rng: Random) -> np.ndarray:
    """Return a table with a field dropped, renamed, repeated or of another type."""
    fields = {name: array[name] for name in array.dtype.names or ()}
    name = rng.choice(list(fields))
    how = rng.choice(("drop", "rename", "text", "number", "wide", "flat"))
    old = fields.pop(name)
    changed = {
        "drop": lambda: {},
        "rename": lambda: {rng.choice(("x", "uid ", "\x1b[31m", "é")): old},
        "text": lambda: {name: np.full(len(old), rng.choice((b"", b"x", b"../a.mrcs")))},
        "number": lambda: {name: np.full(len(old), rng.choice(HOSTILE_FLOATS))},
        "wide": lambda: {name: np.zeros((len(old), rng.choice((0, 1, 2, 4))))},
        "flat": lambda: {name: np.zeros(len(old), rng.choice(("f4", "i8", "?")))},
    }[how]()
    fields |= changed
    kinds = [(each, values.dtype, values.shape[1:]) for each, values in fields.items()]
    found = np.zeros(len(array), kinds)
    for each, values in fields.items():
        found[each] = values
    return found


def _other_sides(array: np.ndarray, rng: Random) -> np.ndarray:
    choices = [array[:0], array[:1], array[:7], array.ravel(), array[None], array.T]
    choices += [array.ravel()[0] if array.size else array, array[..., None]]
    if array.ndim == 2:
        choices += [array[:, :0], array[:, :1], np.tile(array, (1, 30))]
    return np.asarray(rng.choice(choices))


ARRAY_CHANGES = (_hostile_values, _hostile_values, _same_values, _other_kind, _other_sides)

NPY: tuple[Mutation, ...] = (*[changed_header] * 6, *[changed_array] * 9, *BYTES)


def changed_member(data: bytes, rng: Random) -> bytes:
    """Return an archive, whole as a zip file, with one member changed."""
    members = _members(data)
    if not members:
        return several(BYTES, data, rng)
    name = rng.choice(list(members))
    how = rng.choice(("content",) * 12 + ("drop", "rename", "swap", "add", "twice"))
    if "manifest.npy" in members and rng.random() < 0.35:
        how, name = "content", "manifest.npy"
    old = members.pop(name)
    changed = {
        "content": lambda: {name: _changed_content(name, old, rng)},
        "drop": lambda: {},
        "rename": lambda: {rng.choice(("X", "x.npy", "../x.npy", "X.npy", "")): old},
        "swap": lambda: {name: rng.choice(list(members.values()) or [old])},
        "add": lambda: {name: old, rng.choice(("X", "y.npy", "a/b.npy", "X.txt")): b"x"},
        "twice": lambda: {name: old, name + " ": old},
    }[how]()
    return _zipped({**members, **changed}, rng)


def _changed_content(name: str, data: bytes, rng: Random) -> bytes:
    if name == "manifest.npy":
        return _changed_manifest(data, rng)
    return several(NPY, data, rng)


def _changed_manifest(data: bytes, rng: Random) -> bytes:
    try:
        old = np.load(io.BytesIO(data)).tobytes()
    except Exception:  # as above
        return several(BYTES, data, rng)
    text = rng.choice(JSON)(old, rng)
    file = io.BytesIO()
    np.save(file, np.frombuffer(text, np.uint8))
    return file.getvalue()


def _members(data: bytes) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return {name: archive.read(name) for name in archive.namelist()}
    except Exception:  # an archive that an earlier mutation has damaged
        return {}


def _zipped(members: dict[str, bytes], rng: Random) -> bytes:
    file = io.BytesIO()
    methods = (zipfile.ZIP_STORED, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
    with zipfile.ZipFile(file, "w", rng.choice(methods)) as archive:
        for name, content in members.items():
            # Without a time of its own, the bytes would differ from run to run.
            archive.writestr(zipfile.ZipInfo(name), content, archive.compression)
    return file.getvalue()


ZIP: tuple[Mutation, ...] = (*[changed_member] * 24, *BYTES)


def other_members(data: bytes, rng: Random) -> bytes:
    """Return an archive, whole as a zip file, with a member too few, too many or damaged.

    Archives of manifactor have checksums: values that somebody else has put into them, with the
    right checksums, are not looked for.
    """
    members = _members(data)
    if not members:
        return several(BYTES, data, rng)
    name = rng.choice(list(members))
    old = members.pop(name)
    changes: tuple[dict[str, bytes], ...] = (
        {},
        {rng.choice(("X", "x.npy", "../x.npy", "")): old},
        {name: old, rng.choice(("X", "y.npy", "a/b.npy", "X.txt")): b"x"},
        {name: changed_header(old, rng)},
        {name: old[: rng.randrange(len(old))]},
    )
    return _zipped({**members, **rng.choice(changes)}, rng)


OURS: tuple[Mutation, ...] = (*[other_members] * 9, *BYTES)

# Pieces of pickles that ask for code, for memory or for endless nesting.
HOSTILE_PICKLES = (
    b"cos\nsystem\n(S'touch PWNED'\ntR",
    b'cbuiltins\neval\n(S\'open("PWNED","w")\'\ntR',
    b"\x8c\x05posix\x8c\x06system\x93\x8c\x0btouch PWNED\x85R",
    b"cnumpy.testing._private.utils\nrunstring\n",
    b"(lp0\n0g0\na",
    b"r\xff\xff\xff\x7f",
    b"r\x00\x00\x00\x10",
    b"p2147483647\n",
    b"B\xff\xff\xff\x7f",
    b"\x8e\x00\x00\x00\x00\x04\x00\x00\x00",
    b"\x8d\x00\x00\x00\x00\x04\x00\x00\x00",
    b"\x96\x00\x00\x00\x00\x04\x00\x00\x00",
    b"\x95\xff\xff\xff\xff\xff\xff\xff\x7f",
    b"\x8b\xff\xff\xff\x7f",
    b"L" + b"9" * 5000 + b"L\n",
    b"(" * 3000,
    b"]" * 3000 + b"a" * 2999,
    b"\x82\x01",
    b"Pid\n",
    b"N",
    b"0",
    b"2",
    b"b",
    b"R",
    b"}",
    b"\x8f",
    b"\x81",
    b"\x92",
    b".",
)


def changed_opcodes(data: bytes, rng: Random) -> bytes:
    """Return a pickle with operations removed, repeated, moved or added."""
    try:
        starts = [position for _, _, position in pickletools.genops(data)]
    except Exception:  # a pickle that an earlier mutation has damaged
        return several(BYTES, data, rng)
    ends = [*starts[1:], len(data)]
    pieces = [data[start:stop] for start, stop in zip(starts, ends, strict=True)]
    at = rng.randrange(len(pieces))
    how = rng.choice(("drop", "twice", "swap", "add", "add", "change"))
    if how == "drop":
        del pieces[at]
    elif how == "twice":
        pieces.insert(at, pieces[at])
    elif how == "swap":
        other = rng.randrange(len(pieces))
        pieces[at], pieces[other] = pieces[other], pieces[at]
    elif how == "add":
        pieces.insert(at, rng.choice(HOSTILE_PICKLES))
    else:
        pieces[at] = several(BYTES, pieces[at], rng)
    return b"".join(pieces)


PICKLE: tuple[Mutation, ...] = (*[changed_opcodes] * 18, *BYTES)

# Offsets of the whole numbers of an MRC header: sizes, mode, starts, intervals, axes,
# space group, extended header; of its floats: cell, statistics, origin.
MRC_INTEGERS = (0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 64, 68, 72, 88, 92, 108, 220)
MRC_FLOATS = (40, 44, 48, 52, 56, 60, 76, 80, 84, 196, 200, 204, 216)
MRC_MODES = (0, 1, 2, 3, 4, 6, 12, 101, 7)


def changed_map(data: bytes, rng: Random) -> bytes:
    """Return an MRC file with a field of its header, or a pixel, changed."""
    found = bytearray(data)
    how = rng.choice(("integer", "integer", "mode", "float", "machine", "pixels"))
    if how == "integer":
        value = rng.choice(HOSTILE_INTEGERS) % 2**32
        found[(at := rng.choice(MRC_INTEGERS)) : at + 4] = struct.pack("<I", value)
    elif how == "mode":
        found[12:16] = struct.pack("<i", rng.choice(MRC_MODES))
    elif how == "machine":
        found[208:216] = rng.choice((bytes(8), b"MAP \x11\x11\0\0", b"MAP DA\0\0"))
    else:
        value = rng.choice((float("nan"), float("inf"), 3e38, -3e38, 0.0, -1.0))
        at = rng.choice(MRC_FLOATS)
        if how == "pixels" and len(found) > 1028:
            at = rng.randrange(1024, len(found) - 4) // 4 * 4
        found[at : at + 4] = struct.pack("<f", value)
    return bytes(found)


MRC: tuple[Mutation, ...] = (*[changed_map] * 18, *BYTES)
