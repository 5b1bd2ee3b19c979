"""Small damages to the bytes of a file; each takes the bytes and a random source."""

import struct
from collections.abc import Callable, Sequence
from random import Random

Mutation = Callable[[bytes, Random], bytes]

# Whole numbers at which sizes, counts and offsets overflow or change their sign.
HOSTILE_INTEGERS = (
    0,
    1,
    -1,
    2,
    127,
    255,
    65535,
    2**31 - 1,
    2**31,
    -(2**31),
    2**32 - 1,
    2**63 - 1,
    -(2**63),
)
# Squares of numbers above 1.3e154 overflow.
HOSTILE_FLOATS = (
    0.0,
    -0.0,
    -1.0,
    1e-320,
    1e16,
    1e39,
    1e154,
    1e155,
    1e308,
    -1e308,
    float("inf"),
    float("-inf"),
    float("nan"),
)


def flipped(data: bytes, rng: Random) -> bytes:
    """Return the data with a few bits flipped."""
    found = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8, 64))):
        if found:
            found[rng.randrange(len(found))] ^= 1 << rng.randrange(8)
    return bytes(found)


def overwritten(data: bytes, rng: Random) -> bytes:
    """Return the data with a few bytes replaced."""
    found = bytearray(data)
    for _ in range(rng.choice((1, 2, 4))):
        if found:
            value = rng.choice((0, 0x7F, 0x80, 0xFF, 0x0A, 0x20, rng.randrange(256)))
            found[rng.randrange(len(found))] = value
    return bytes(found)


def inserted(data: bytes, rng: Random) -> bytes:
    """Return the data with random bytes inserted."""
    at = rng.randint(0, len(data))
    return data[:at] + rng.randbytes(rng.choice((1, 2, 4, 16, 300))) + data[at:]


def deleted(data: bytes, rng: Random) -> bytes:
    """Return the data without a piece."""
    start, stop = _piece(data, rng)
    return data[:start] + data[stop:]


def duplicated(data: bytes, rng: Random) -> bytes:
    """Return the data with a piece repeated."""
    start, stop = _piece(data, rng)
    return data[:stop] + data[start:stop] * rng.choice((1, 1, 2, 50)) + data[stop:]


def blanked(data: bytes, rng: Random) -> bytes:
    """Return the data with a piece of zeros, as a lost block of a disk leaves."""
    start, stop = _piece(data, rng)
    return data[:start] + bytes(stop - start) + data[stop:]


def truncated(data: bytes, rng: Random) -> bytes:
    """Return the start of the data."""
    return data[: rng.choice((rng.randint(0, len(data)), max(0, len(data) - 1)))]


def lengthened(data: bytes, rng: Random) -> bytes:
    """Return the data with something behind it."""
    more = rng.choice((b"\0", b"\n", b"PK\x05\x06" + bytes(18), rng.randbytes(64)))
    return data + more * rng.choice((1, 1, 100))


def renumbered(data: bytes, rng: Random) -> bytes:
    """Return the data with a binary number replaced by a hostile one."""
    code = rng.choice("hiiqqfd")
    if code in "fd":
        value: float = rng.choice(HOSTILE_FLOATS)
        value = min(max(value, -3e38), 3e38) if code == "f" and value == value else value
    else:
        bits = 8 * struct.calcsize(f"<{code}")
        whole = rng.choice(HOSTILE_INTEGERS) % 2**bits
        value = whole - 2**bits if whole >= 2 ** (bits - 1) else whole
    packed = struct.pack(rng.choice("<<<>") + code, value)
    # Numbers in binary files mostly lie at multiples of their size.
    last = max(0, len(data) - len(packed))
    at = rng.randint(0, min(last, rng.choice((256, last)))) // 2 * 2
    return data[:at] + packed + data[at + len(packed) :]


def spliced(data: bytes, other: bytes, rng: Random) -> bytes:
    """Return the start of the data followed by the end of another file."""
    return data[: rng.randint(0, len(data))] + other[rng.randint(0, len(other)) :]


def _piece(data: bytes, rng: Random) -> tuple[int, int]:
    """Return where a random piece starts and stops; short ones are more likely."""
    start = rng.randint(0, len(data))
    longest = rng.choice((1, 4, 16, 256, len(data)))
    return start, min(len(data), start + rng.randint(0, max(1, longest)))


BYTES: tuple[Mutation, ...] = (
    flipped,
    overwritten,
    inserted,
    deleted,
    duplicated,
    blanked,
    truncated,
    lengthened,
    renumbered,
)


# Bytes of a damaged file.
LARGEST = 10**6


def several(mutations: Sequence[Mutation], data: bytes, rng: Random) -> bytes:
    """Return the data after one mutation, or a few.

    Repeated ones can make a file large; those that are promised to take little memory
    are small.
    """
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        data = rng.choice(mutations)(data, rng)[:LARGEST]
    return data
