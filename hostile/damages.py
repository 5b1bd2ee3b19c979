"""Damages to files: each takes the bytes and a random source, and returns other bytes.

Some change any bytes; others know a format, and leave a file that is whole but wrong.
"""

import io
import json
import pickletools
import re
import struct
import warnings
import zipfile
from collections.abc import Callable, Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

Damage = Callable[[bytes, Random], bytes]

NAN, INF = float("nan"), float("inf")
# Whole numbers at which sizes, counts and offsets overflow or change their sign.
INTEGERS = (
    *(0, 1, -1, 2, 127, 255, 65535, 2**31 - 1, 2**31, -(2**31)),
    *(2**32 - 1, 2**63 - 1, -(2**63)),
)
# Squares of numbers above 1.3e154 overflow.
FLOATS = (0.0, -0.0, -1.0, 1e-320, 1e16, 1e39, 1e154, 1e155, 1e308, -1e308, INF, -INF, NAN)


def several(damages: Sequence[Damage], data: bytes, rng: Random) -> bytes:
    """Return the data after one damage, or a few; files that take little memory are small."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        data = rng.choice(damages)(data, rng)[: 10**6]
    return data


def spliced(data: bytes, other: bytes, rng: Random) -> bytes:
    """Return the start of the data followed by the end of another file."""
    return data[: rng.randint(0, len(data))] + other[rng.randint(0, len(other)) :]


def or_bytes(damage: Damage) -> Damage:
    """Return a damage that changes any bytes where the format is damaged already."""

    def changed(data: bytes, rng: Random) -> bytes:
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
                return damage(data, rng)
        except Exception:
            return several(BYTES, data, rng)

    return changed


# Any bytes.


def overwritten(data: bytes, rng: Random) -> bytes:
    """Return the data with a few bits flipped, or bytes replaced."""
    found = bytearray(data)
    flip = rng.random() < 0.5
    for _ in range(rng.choice((1, 1, 2, 8, 64) if flip else (1, 2, 4)) if data else 0):
        at = rng.randrange(len(found))
        value = rng.choice((0, 0x7F, 0x80, 0xFF, 0x0A, 0x20, rng.randrange(256)))
        found[at] = found[at] ^ 1 << rng.randrange(8) if flip else value
    return bytes(found)


def inserted(data: bytes, rng: Random) -> bytes:
    """Return the data with something in it, or behind it."""
    new = rng.randbytes(rng.choice((1, 2, 4, 16, 300)))
    behind = rng.choice((b"\0", b"\n", b"PK\x05\x06" + bytes(18), new)) * rng.choice((1, 1, 100))
    at = rng.randint(0, len(data))
    return rng.choice((data[:at] + new + data[at:], data + behind))


def repeated(data: bytes, rng: Random) -> bytes:
    """Return the data with a piece deleted, or repeated; short pieces are more likely."""
    start, stop = _piece(data, rng)
    return data[:start] + data[start:stop] * rng.choice((0, 0, 2, 3, 51)) + data[stop:]


def blanked(data: bytes, rng: Random) -> bytes:
    """Return the data with a piece of zeros, as a lost block of a disk leaves."""
    start, stop = _piece(data, rng)
    return data[:start] + bytes(stop - start) + data[stop:]


def _piece(data: bytes, rng: Random) -> tuple[int, int]:
    start = rng.randint(0, len(data))
    longest = rng.choice((1, 4, 16, 256, len(data)))
    return start, min(len(data), start + rng.randint(0, max(1, longest)))


def truncated(data: bytes, rng: Random) -> bytes:
    return data[: rng.choice((rng.randint(0, len(data)), max(0, len(data) - 1)))]


def renumbered(data: bytes, rng: Random) -> bytes:
    """Return the data with a binary number replaced by a hostile one."""
    code = rng.choice("hiiqqfd")
    if code in "fd":
        value: float = rng.choice(FLOATS)
        value = min(max(value, -3e38), 3e38) if code == "f" and value == value else value
    else:
        bits = 8 * struct.calcsize(f"<{code}")
        whole = rng.choice(INTEGERS) % 2**bits
        value = whole - 2**bits if whole >= 2 ** (bits - 1) else whole
    packed = struct.pack(rng.choice("<<<>") + code, value)
    # Numbers in binary files mostly lie at multiples of their size.
    last = max(0, len(data) - len(packed))
    at = rng.randint(0, min(last, rng.choice((256, last)))) // 2 * 2
    return data[:at] + packed + data[at + len(packed) :]


BYTES: tuple[Damage, ...] = (
    *[overwritten, inserted, repeated] * 2,
    *(blanked, truncated, renumbered),
)

# Text: hostile numbers and words, lines moved.

NUMBER = re.compile(rb"[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?")
WORD = re.compile(rb"[^\s,]+")
NUMBERS = (
    *b"nan inf -inf 1e308 -1e308 1e155 1e999 -1 0 -0.0 2147483648 9223372036854775807".split(),
    *b"9223372036854775808 1e-400 0x10 1_000 1,5 1.5.2 --1".split(),
    *(b"1" * 400, b"1" * 5000, b""),
)
WORDS = (
    *(b"", b"x", b"A" * 300, b"A" * 140_000, b"\x1b[31mred\x1b[0m", b"\x1b]0;title\x07"),
    *(b"\r", b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\t", b"\x85", b"$(touch PWNED)"),
    # A digit that is not ASCII; from right to left; the end of a line for str.splitlines only.
    *(each.encode() for each in ("\u0663", "\u202e", "\u2028")),
    *b"\" ' # ; ../../../../etc/passwd /dev/zero /dev/stdin %s%n __class__".split(),
    *b"loop_ data_ _rlnImageName <script>".split(),
)


def replaced(data: bytes, rng: Random) -> bytes:
    """Return the text with a number or a word replaced by a hostile one, or by another word."""
    hostile = [(NUMBER, rng.choice(NUMBERS)), (WORD, rng.choice(WORDS))] * 2
    pattern, new = rng.choice([*hostile, (WORD, rng.choice(WORD.findall(data) or [b"x"]))])
    found = list(pattern.finditer(data))
    if not found:
        return new + data
    chosen = rng.sample(found, min(len(found), rng.choice((1, 1, 1, 5))))
    # From the back, so that the positions in front stay valid.
    for match in sorted(chosen, key=lambda each: -each.start()):
        data = data[: match.start()] + new + data[match.end() :]
    return data


def hostile_column(data: bytes, rng: Random) -> bytes:
    """Return the text with a word replaced in every line that has as many words."""
    lines = [line.split() for line in data.split(b"\n")]
    width = len(rng.choice(lines))
    column, new = rng.randrange(max(1, width)), rng.choice((*NUMBERS, b"x"))
    for words in lines:
        if len(words) == width > 0:
            words[column] = new
    return b"\n".join(map(b" ".join, lines)) if width else data


def moved_line(data: bytes, rng: Random) -> bytes:
    """Return the text with a line deleted, repeated, or moved."""
    lines = data.split(b"\n")
    line = lines.pop(rng.randrange(len(lines)))
    at = rng.randint(0, len(lines))
    return b"\n".join([*lines[:at], *[line] * rng.choice((0, 1, 2, 200)), *lines[at:]])


def joined_lines(data: bytes, rng: Random) -> bytes:
    """Return the text with an end of a line removed, or all of them changed."""
    ends = [k for k in range(len(data)) if data[k] == 10]
    if not ends or rng.random() < 0.3:
        return data.replace(b"\n", rng.choice((b"\r\n", b"\r", b" ", b"\n\n", b"\x0b")))
    at = rng.choice(ends)
    return data[:at] + rng.choice((b"", b" ", b",")) + data[at + 1 :]


def widened(data: bytes, rng: Random) -> bytes:
    """Return the text with one very long line."""
    lines = data.split(b"\n")
    at, separator = rng.randrange(len(lines)), rng.choice((b" ", b",", b"\t"))
    lines[at] = separator.join([lines[at]] * rng.choice((2, 100, 3000)))
    return b"\n".join(lines)


TEXT: tuple[Damage, ...] = (
    *[replaced] * 5,
    *(hostile_column, moved_line, joined_lines, widened),
    *BYTES,
)

# JSON: one node of the tree changed.

LEAVES: tuple[Any, ...] = (
    *(None, True, 0, -1, 1.5, 2**31, 2**63, 10**400, NAN, INF, 1e308),
    *([], {}, [[]], [None], {"x": 1}, "", "x", "A" * 100_000, "/dev/zero", "../.."),
    *("\x1b[31m\x1b]0;x\x07", "\0", "\ud800"),
)
COUNTS = (500_000, 10**7, 2**31 - 1, 10**9, 2**53, 2**62)


@or_bytes
def changed_tree(data: bytes, rng: Random) -> bytes:
    tree = json.loads(data)
    nodes = list(_nodes(tree))
    if not nodes:
        return json.dumps(rng.choice(LEAVES)).encode()
    parent, key = rng.choice(nodes)
    old = parent[key]
    how = rng.choice(
        ("count", "pairs", "leaf", "leaf", "other", "remove", "rename", "nest", "number")
    )
    if how == "count":
        # A count that is not to be believed in place of a whole number.
        whole = [(each, name) for each, name in nodes if type(each[name]) is int]
        parent, key = rng.choice(whole or [(parent, key)])
        parent[key] = rng.choice(COUNTS)
    elif how == "pairs":
        # A list of pairs in place of an object, for which Python may take it.
        objects = [(each, name) for each, name in nodes if isinstance(each[name], dict)]
        for parent, key in rng.sample(objects, min(1, len(objects))):
            parent[key] = [list(item) for item in parent[key].items()]
    elif how == "leaf":
        parent[key] = rng.choice(LEAVES)
    elif how == "other":
        container, name = rng.choice(nodes)
        # A copy: a node inside itself could not be written.
        parent[key] = json.loads(json.dumps(container[name]))
    elif how == "remove":
        del parent[key]
    elif how == "rename" and isinstance(parent, dict):
        parent[rng.choice(("x", "", "__class__", key + " "))] = parent.pop(key)
    elif how == "nest":
        for _ in range(rng.choice((1, 2, 400))):
            parent[key] = [parent[key]] if rng.random() < 0.5 else {"value": parent[key]}
    elif isinstance(old, int | float) and not isinstance(old, bool):
        parent[key] = rng.choice((-old, old + 1, old * 1000, old - 1))
    else:
        parent[key] = 0
    return json.dumps(tree).encode("utf-8", "surrogatepass")


def _nodes(tree):
    """Yield the container and the key of every node below the root."""
    keys = tree if isinstance(tree, dict) else range(len(tree) if isinstance(tree, list) else 0)
    for key in list(keys):
        yield tree, key
        yield from _nodes(tree[key])


JSON: tuple[Damage, ...] = (*[changed_tree] * 12, *TEXT)

# .npy files: headers, and arrays of other values, another shape or type.

MAGIC = b"\x93NUMPY"
TYPES = ("<f2", "<f4", ">f8", "<f16", "<c16", "|b1", "<i1", "<u8", "<U3", "|S4", "|V8", "|O")


@or_bytes
def changed_header(data: bytes, rng: Random) -> bytes:
    """Return an .npy file with another type, shape or order in its header."""
    (length,) = struct.unpack("<H", data[8:10])
    header, body = data[10 : 10 + length].decode("latin1"), data[10 + length :]
    sides = "".join(f"{rng.choice(INTEGERS)}, " for _ in range(rng.choice((0, 1, 2, 3))))
    shape = rng.choice((f"({sides})", f"({sides})", "(60, 2.0)", "(1e9, 2)", "(True, 2)", "60"))
    order = rng.choice(("True", "None", "2"))
    odd = ("{" * 500, "(" * 5000, "\0", "{'x': __import__('os')}", "9" * 5000, "[]")
    header = rng.choice(
        [
            *[re.sub(r"(?<='shape': ).*?(?=, })", shape, header)] * 2,
            re.sub(r"(?<='descr': ).*?(?=, 'f)", repr(rng.choice(TYPES)), header),
            re.sub(r"(?<='fortran_order': )\w+", order, header),
            several(BYTES, header.encode("latin1"), rng).decode("latin1"),
            rng.choice(odd),
        ]
    )
    new = header.encode("latin1", "replace")[:65535]
    version = rng.choice((b"\1\0", b"\1\0", b"\1\0", b"\2\0", b"\3\0", b"\xff\0"))
    return (
        MAGIC + version + struct.pack("<H" if version == b"\1\0" else "<I", len(new)) + new + body
    )


@or_bytes
def changed_array(data: bytes, rng: Random) -> bytes:
    change = rng.choice((_hostile_values, _hostile_values, _same_values, _other_kind, _other_sides))
    return _saved(change(np.load(io.BytesIO(data)), rng))


def _saved(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def _hostile_values(array: np.ndarray, rng: Random) -> np.ndarray:
    found = array.copy()
    if found.dtype.names:
        name = rng.choice(found.dtype.names)
        found[name] = _hostile_values(np.ascontiguousarray(found[name]), rng)
        return found
    values = {"f": FLOATS, "c": FLOATS, "S": ("1@/dev/zero",)}.get(found.dtype.kind, INTEGERS)
    for _ in range(rng.choice((1, 3, 100))):
        found.flat[rng.randrange(found.size)] = np.array(rng.choice(values)).astype(found.dtype)
    return found


def _same_values(array: np.ndarray, rng: Random) -> np.ndarray:
    return array[[rng.randrange(len(array)) for _ in range(rng.choice((1, 2)))] * len(array)]


def _other_kind(array: np.ndarray, rng: Random) -> np.ndarray:
    if not array.dtype.names:
        return array.astype(rng.choice((*TYPES[:-2], "M8[s]")))
    fields = {name: array[name] for name in array.dtype.names}
    name = rng.choice(list(fields))
    old, n = fields.pop(name), len(array)
    fields |= rng.choice(
        [
            {},
            {rng.choice(("x", "uid ", "\x1b[31m", "é")): old},
            {name: np.full(n, rng.choice((b"", b"x", b"../a.mrcs")))},
            {name: np.full(n, rng.choice(FLOATS))},
            {name: np.zeros((n, rng.choice((0, 1, 2, 4))))},
            {name: np.zeros(n, rng.choice(("f4", "i8", "?")))},
        ]
    )
    found = np.zeros(n, [(each, v.dtype, v.shape[1:]) for each, v in fields.items()])
    for each, values in fields.items():
        found[each] = values
    return found


def _other_sides(array: np.ndarray, rng: Random) -> np.ndarray:
    choices = [array[:0], array[:1], array[:7], array.ravel(), array[None], array.T]
    choices += [array.ravel()[:1].reshape(()), array[..., None]]
    if array.ndim == 2:
        choices += [array[:, :0], array[:, :1], np.tile(array, (1, 30))]
    return np.asarray(rng.choice(choices))


NPY: tuple[Damage, ...] = (*[changed_header] * 6, *[changed_array] * 9, *BYTES)

# .npz files: members changed in archives that are whole as zip files.


@or_bytes
def changed_member(data: bytes, rng: Random) -> bytes:
    members = _members(data)
    name = rng.choice(list(members))
    if rng.random() < 0.7:
        members[name] = several(NPY, members[name], rng)
        return _zipped(members, rng)
    return _zipped(_other_members(members, name, rng), rng)


@or_bytes
def other_members(data: bytes, rng: Random) -> bytes:
    """Return an archive with a member too few, too many or damaged.

    Archives of manifactor have checksums: values that somebody else has put into them, with the
    right checksums, are not looked for.
    """
    members = _members(data)
    return _zipped(_other_members(members, rng.choice(list(members)), rng), rng)


def _other_members(members: dict[str, bytes], name: str, rng: Random) -> dict[str, bytes]:
    old = members.pop(name)
    changes: tuple[dict[str, bytes], ...] = (
        {},
        {rng.choice(("X", "x.npy", "../x.npy", "X.npy", "")): old},
        {name: old, rng.choice(("X", "y.npy", "a/b.npy", "X.txt")): b"x"},
        {name: rng.choice(list(members.values()) or [old])},
        {name: changed_header(old, rng)},
        {name: old[: rng.randrange(len(old))]},
    )
    return {**members, **rng.choice(changes)}


def _members(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _zipped(members: dict[str, bytes], rng: Random) -> bytes:
    file = io.BytesIO()
    methods = (zipfile.ZIP_STORED, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
    with zipfile.ZipFile(file, "w", rng.choice(methods)) as archive:
        for name, content in members.items():
            # Without a time of its own, the bytes would differ from run to run.
            archive.writestr(zipfile.ZipInfo(name), content, archive.compression)
    return file.getvalue()


ZIP: tuple[Damage, ...] = (*[changed_member] * 24, *BYTES)
OURS: tuple[Damage, ...] = (*[other_members] * 9, *BYTES)

# Pickles: operations removed, repeated, moved or added.

# Pieces that ask for code, for memory or for endless nesting.
OPERATIONS = (
    b"cos\nsystem\n(S'touch PWNED'\ntR",
    b'cbuiltins\neval\n(S\'open("PWNED","w")\'\ntR',
    b"\x8c\x05posix\x8c\x06system\x93\x8c\x0btouch PWNED\x85R",
    *(b"cnumpy.testing._private.utils\nrunstring\n", b"(lp0\n0g0\na", b"p2147483647\n"),
    *(b"r\xff\xff\xff\x7f", b"r\x00\x00\x00\x10", b"B\xff\xff\xff\x7f", b"\x8b\xff\xff\xff\x7f"),
    *(code + b"\0\0\0\0\4\0\0\0" for code in (b"\x8e", b"\x8d", b"\x96")),
    *(b"\x95\xff\xff\xff\xff\xff\xff\xff\x7f", b"L" + b"9" * 5000 + b"L\n", b"(" * 3000),
    *(b"]" * 3000 + b"a" * 2999, b"\x82\x01", b"Pid\n", b"\x8f", b"\x81", b"\x92"),
    *(b"N", b"0", b"2", b"b", b"R", b"}", b"."),
)


@or_bytes
def changed_opcodes(data: bytes, rng: Random) -> bytes:
    starts = [position for _, _, position in pickletools.genops(data)]
    pieces = [
        data[start:stop] for start, stop in zip(starts, [*starts[1:], len(data)], strict=True)
    ]
    at, other = rng.randrange(len(pieces)), rng.randrange(len(pieces))
    old = pieces[at]
    new = rng.choice(OPERATIONS)
    pieces[at : at + 1] = rng.choice(
        [[], [old, old], [pieces[other]], *[[new, old]] * 2, [several(BYTES, old, rng)]]
    )
    return b"".join(pieces)


PICKLE: tuple[Damage, ...] = (*[changed_opcodes] * 18, *BYTES)

# MRC: a field of the header, or a pixel.

# Offsets of the whole numbers of a header: sizes, mode, starts, intervals, axes, space group,
# extended header; of its floats: cell, statistics, origin.
MRC_INTEGERS = (*range(0, 40, 4), 64, 68, 72, 88, 92, 108, 220)
MRC_FLOATS = (*range(40, 64, 4), 76, 80, 84, 196, 200, 204, 216)


@or_bytes
def changed_map(data: bytes, rng: Random) -> bytes:
    integer = struct.pack("<I", rng.choice(INTEGERS) % 2**32)
    number = struct.pack("<f", rng.choice((NAN, INF, 3e38, -3e38, 0.0, -1.0)))
    machine = rng.choice((bytes(8), b"MAP \x11\x11\0\0", b"MAP DA\0\0"))
    at, new = rng.choice(
        [
            *[(rng.choice(MRC_INTEGERS), integer)] * 2,
            (12, struct.pack("<i", rng.choice((0, 1, 2, 3, 4, 6, 12, 101, 7)))),
            (208, machine),
            (rng.choice(MRC_FLOATS), number),
            (rng.randrange(1024, len(data) - 4) // 4 * 4, number),
        ]
    )
    return data[:at] + new + data[at + len(new) :]


MRC: tuple[Damage, ...] = (*[changed_map] * 18, *BYTES)

# Parquet files that stay whole: other types, names and values.

# What a cell may be; a column has cells of one of these types.
CELLS = (
    *(None, True, "x", "\x1b[31m", b"\xff", [1.0, 2.0], {"a": 1}),
    *(Decimal("1.5"), date(2020, 1, 1), 2**62),
)


@or_bytes
def changed_table(data: bytes, rng: Random) -> bytes:
    """Return a Parquet file with one column, or all rows, changed."""
    table = pa.parquet.read_table(io.BytesIO(data), use_threads=False)
    changes = (_other_column, _other_column, _other_columns, _other_names, _many_rows)
    table = rng.choice(changes)(table, rng)
    few = rng.choice((1, 7, 60, 1000))
    rows = few if table.num_rows < 2000 else 2**22
    file = io.BytesIO()
    pa.parquet.write_table(table, file, row_group_size=rows, store_schema=rows == few)
    return file.getvalue()


def _other_column(table: pa.Table, rng: Random) -> pa.Table:
    """Return the table with hostile cells in a column, or with cells of another type."""
    at = rng.randrange(table.num_columns)
    cells = table.column(at).to_pylist()
    values: tuple = (*FLOATS, None)
    if pa.types.is_integer(table.column(at).type):
        values = (*(n for n in INTEGERS if abs(n) < 2**62), None)
    for _ in range(rng.choice((1, 5))):
        cells[rng.randrange(len(cells))] = rng.choice(values)
    cells = rng.choice((cells, cells, [rng.choice(CELLS)] * len(cells)))
    return table.set_column(at, table.column_names[at], pa.array(cells))


def _other_names(table: pa.Table, rng: Random) -> pa.Table:
    names = list(table.column_names)
    new = ("", "x", names[0], "sample", "\x1b[31m", "A" * 10_000, "a.b", "\0")
    names[rng.randrange(len(names))] = rng.choice(new)
    return table.rename_columns(names)


def _other_columns(table: pa.Table, rng: Random) -> pa.Table:
    some = rng.sample(range(table.num_columns), rng.randint(0, table.num_columns))
    return rng.choice((table.select(some), table.slice(0, rng.choice((0, 1, 5)))))


def _many_rows(table: pa.Table, rng: Random) -> pa.Table:
    """Return the first row, and perhaps a long text, so often that only repetition is stored."""
    rows = np.zeros(rng.choice((60_000, 10**6, 4 * 10**6, 2 * 10**7)), np.int8)
    found = table.select([0]).take(pa.array(rows))
    if len(rows) > 60_000:
        return found
    text = pa.DictionaryArray.from_arrays(rows, ["x" * 30_000])
    return found.append_column("text", text)


PARQUET: tuple[Damage, ...] = (*[changed_table] * 9, *BYTES)

# How files are damaged, by their names or the ending of these.
FORMS: dict[str, tuple[Damage, ...]] = {
    **dict.fromkeys((".npy", ".cs"), NPY),
    **{"x.npz": ZIP, ".npz": OURS, ".pkl": PICKLE, ".parquet": PARQUET},
    **dict.fromkeys((".mrc", ".mrcs"), MRC),
    **dict.fromkeys((".json", ".part", ".zarray", ".zgroup"), JSON),
    **dict.fromkeys((".csv", ".tsv", ".txt", ".star", ".pdb", ".cif", ".yaml"), TEXT),
}


def damages_of(path: str) -> tuple[Damage, ...]:
    """Return the damages that suit a file."""
    name, suffix = Path(path).name, Path(path).suffix
    return FORMS.get(name, FORMS.get(suffix, BYTES))
