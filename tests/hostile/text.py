"""Damages to text and JSON: hostile numbers and words, lines moved, trees changed."""

import json
import re
from collections.abc import Callable
from random import Random
from typing import Any

from .mutations import BYTES, Mutation

NUMBER = re.compile(rb"[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?")
WORD = re.compile(rb"[^\s,]+")

# What a number may be replaced by.
NUMBERS = (
    b"nan",
    b"inf",
    b"-inf",
    b"1e308",
    b"-1e308",
    b"1e155",
    b"1e999",
    b"-1",
    b"0",
    b"-0.0",
    b"2147483648",
    b"9223372036854775807",
    b"9223372036854775808",
    b"1" * 400,
    b"1" * 5000,
    b"1e-400",
    b"0x10",
    b"1_000",
    b"1,5",
    b"1.5.2",
    b"--1",
    b"",
)
WORDS = (
    b"",
    b"x",
    b"A" * 300,
    b"A" * 140_000,
    b"\x1b[31mred\x1b[0m",
    b"\x1b]0;title\x07",
    b"\r",
    b"\0",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    "\u0663".encode(),  # a digit that is not ASCII
    "\u202e".encode(),  # writes from right to left
    "\u2028".encode(),  # ends a line for str.splitlines only
    b'"',
    b"'",
    b"#",
    b";",
    b"\t",
    b"\x85",
    b"../../../../etc/passwd",
    b"/dev/zero",
    b"/dev/stdin",
    b"$(touch PWNED)",
    b"%s%n",
    b"__class__",
    b"loop_",
    b"data_",
    b"_rlnImageName",
    b"<script>",
)


def hostile_number(data: bytes, rng: Random) -> bytes:
    """Return the text with a number replaced by a hostile one."""
    return _replaced(data, NUMBER, rng.choice(NUMBERS), rng)


def hostile_word(data: bytes, rng: Random) -> bytes:
    """Return the text with a word replaced by a hostile one."""
    return _replaced(data, WORD, rng.choice(WORDS), rng)


def swapped_words(data: bytes, rng: Random) -> bytes:
    """Return the text with a word replaced by another word of it."""
    words = WORD.findall(data)
    return _replaced(data, WORD, rng.choice(words), rng) if words else data


def hostile_column(data: bytes, rng: Random) -> bytes:
    """Return the text with a word replaced in every line that has as many words."""
    lines = data.split(b"\n")
    width = len(rng.choice(lines).split())
    if not width:
        return data
    column, new = rng.randrange(width), rng.choice(NUMBERS + WORDS[:1])
    for number, line in enumerate(lines):
        words = line.split()
        if len(words) == width:
            lines[number] = b" ".join([*words[:column], new, *words[column + 1 :]])
    return b"\n".join(lines)


def moved_line(data: bytes, rng: Random) -> bytes:
    """Return the text with a line deleted, repeated, or moved."""
    lines = data.split(b"\n")
    line = lines.pop(rng.randrange(len(lines)))
    how = rng.choice(("deleted", "repeated", "moved", "many"))
    copies = {"deleted": 0, "repeated": 2, "moved": 1, "many": 200}[how]
    at = rng.randint(0, len(lines))
    return b"\n".join([*lines[:at], *[line] * copies, *lines[at:]])


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
    at = rng.randrange(len(lines))
    separator = rng.choice((b" ", b",", b"\t"))
    lines[at] = separator.join([lines[at]] * rng.choice((2, 100, 3000)))
    return b"\n".join(lines)


def _replaced(data: bytes, pattern: re.Pattern, new: bytes, rng: Random) -> bytes:
    found = list(pattern.finditer(data))
    if not found:
        return new + data
    chosen = rng.sample(found, min(len(found), rng.choice((1, 1, 1, 5))))
    # From the back, so that the positions in front stay valid.
    for match in sorted(chosen, key=lambda each: -each.start()):
        data = data[: match.start()] + new + data[match.end() :]
    return data


TEXT: tuple[Mutation, ...] = (
    hostile_number,
    hostile_number,
    hostile_word,
    hostile_word,
    swapped_words,
    hostile_column,
    moved_line,
    joined_lines,
    widened,
    *BYTES,
)

LEAVES: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1.5,
    2**31,
    2**63,
    10**400,
    float("nan"),
    float("inf"),
    1e308,
    "",
    "x",
    "A" * 100_000,
    "\x1b[31m\x1b]0;x\x07",
    "\u0000",
    "\ud800",
    "/dev/zero",
    "../..",
    "__class__",
    [],
    {},
    [[]],
    [None],
    {"x": 1},
)


def changed_tree(data: bytes, rng: Random) -> bytes:
    """Return JSON with one node changed; other bytes with some bits flipped."""
    try:
        tree = json.loads(data)
    except ValueError:
        return rng.choice(BYTES)(data, rng)
    nodes = list(_nodes(tree))
    if not nodes:
        return json.dumps(rng.choice(LEAVES)).encode()
    parent, key = rng.choice(nodes)
    rng.choice(TREE_CHANGES)(parent, key, nodes, rng)
    return _dumped(tree)


def _dumped(tree) -> bytes:
    # An integer of 400 digits is written only if Python may turn it into text.
    return json.dumps(tree).encode("utf-8", "surrogatepass")


def _nodes(tree):
    """Yield the container and the key of every node below the root."""
    if isinstance(tree, dict):
        items = list(tree.items())
    else:
        items = list(enumerate(tree)) if isinstance(tree, list) else []
    for key, value in items:
        yield tree, key
        yield from _nodes(value)


def _new_leaf(parent, key, nodes, rng: Random) -> None:
    parent[key] = rng.choice(LEAVES)


def _other_node(parent, key, nodes, rng: Random) -> None:
    container, name = rng.choice(nodes)
    # A copy: a node inside itself could not be written.
    parent[key] = json.loads(json.dumps(container[name]))


def _removed(parent, key, nodes, rng: Random) -> None:
    del parent[key]


def _renamed(parent, key, nodes, rng: Random) -> None:
    if isinstance(parent, dict):
        parent[rng.choice(("x", "", "__class__", key + " "))] = parent.pop(key)
    else:
        parent.insert(key, parent[key])


def _nested(parent, key, nodes, rng: Random) -> None:
    for _ in range(rng.choice((1, 2, 400))):
        parent[key] = [parent[key]] if rng.random() < 0.5 else {"value": parent[key]}


def _new_number(parent, key, nodes, rng: Random) -> None:
    old = parent[key]
    is_number = isinstance(old, int | float) and not isinstance(old, bool)
    parent[key] = rng.choice((-old, old + 1, old * 1000, old - 1)) if is_number else 0


def _absurd_number(parent, key, nodes, rng: Random) -> None:
    """Put a count that is not to be believed in place of a whole number."""
    whole = [(p, k) for p, k in nodes if type(p[k]) is int]
    container, name = rng.choice(whole or [(parent, key)])
    container[name] = rng.choice((500_000, 10**7, 2**31 - 1, 10**9, 2**53, 2**62))


def _as_pairs(parent, key, nodes, rng: Random) -> None:
    """Put a list of pairs in place of an object, for which Python may take it."""
    objects = [(p, k) for p, k in nodes if isinstance(p[k], dict)]
    if objects:
        container, name = rng.choice(objects)
        container[name] = [list(item) for item in container[name].items()]


TREE_CHANGES: tuple[Callable, ...] = (
    _absurd_number,
    _as_pairs,
    _new_leaf,
    _new_leaf,
    _other_node,
    _removed,
    _renamed,
    _nested,
    _new_number,
)

JSON: tuple[Mutation, ...] = (*[changed_tree] * 12, *TEXT)
