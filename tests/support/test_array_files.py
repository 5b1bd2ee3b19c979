import struct
import tracemalloc
import zipfile
from io import BytesIO

import numpy as np
import pytest

from manifactor._support.array_files import ArrayFileError, npy_header, open_archive

X = np.arange(12.0).reshape(4, 3)


def npy(header, data=b""):
    """An .npy file with any header."""
    text = header.encode("latin1")
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


def described(shape, descr="'<f8'"):
    return f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}"


def archive(path, *, compression=zipfile.ZIP_STORED, **members):
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, content in members.items():
            file.writestr(name.replace("__", "."), content)
    return path


def read(path, *names):
    with open_archive(path) as opened:
        return opened.read(*names)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_that_numpy_wrote_come_back(tmp_path, save):
    arrays = {"X": X, "F": np.asfortranarray(X), "n": np.arange(3), "e": np.empty((0, 2))}
    save(tmp_path / "a.npz", **arrays)
    found = read(tmp_path / "a.npz")
    assert list(found) == list(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
    assert list(read(tmp_path / "a.npz", "n")) == ["n"]


@pytest.fixture
def peak():
    """The memory taken since the start of the test, in bytes."""
    tracemalloc.start()
    yield lambda: tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()


def plain(shape, data):
    return npy(described(shape), data)


def test_a_member_that_is_not_what_it_says_is_named(tmp_path):
    path = archive(tmp_path / "a.npz", X__npy=plain("(1,)", bytes(800)))
    with pytest.raises(ArrayFileError, match=r"a.npz is .* more bytes than its shape \(in 'X'\)"):
        read(path)


def test_what_is_wrong_with_an_archive_is_said(tmp_path):
    np.savez(tmp_path / "a.npz", X=X)
    content = (tmp_path / "a.npz").read_bytes()
    encrypted, changed = bytearray(content), bytearray(content)
    for start in (content.index(b"PK\x03\x04") + 6, content.index(b"PK\x01\x02") + 8):
        encrypted[start] |= 1
    changed[-200] ^= 1
    lzma = archive(tmp_path / "b.npz", compression=zipfile.ZIP_LZMA, X__npy=b"a").read_bytes()
    for found, words in [
        (encrypted, "is encrypted"),
        (changed, "is damaged.*'X'"),
        (lzma, r"compressed as no \.npz file is"),
        *((each, "is damaged, or not a file") for each in (content[:300], b"hello", b"")),
    ]:
        (tmp_path / "a.npz").write_bytes(found)
        with pytest.raises(ArrayFileError, match=words):
            read(tmp_path / "a.npz")


@pytest.mark.medium
def test_an_archive_that_claims_far_more_than_it_stores_is_refused(tmp_path, peak):
    zeros = plain("(10000000,)", bytes(80_000_000))
    path = archive(tmp_path / "a.npz", compression=zipfile.ZIP_DEFLATED, X__npy=zeros)
    del zeros
    tracemalloc.reset_peak()
    with pytest.raises(ArrayFileError, match="bytes and claims 80,000,000"):
        read(path)
    assert peak() < 2**20


def test_members_that_are_no_arrays_are_left_out(tmp_path):
    path = archive(tmp_path / "a.npz", X__npy=plain("(1,)", bytes(8)), notes__txt="a")
    assert list(read(path)) == ["X"]


def with_header(text):
    return npy(text.ljust(117) + "\n", bytes(80))


def header_of(content):
    return npy_header(BytesIO(content), len(content))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "cannot be read"),
        (b"\x93NUMPY\x09\x00", "cannot be read"),
        (with_header("'''"), "cannot be read"),
        (with_header("(" * 110), "cannot be read"),
        (with_header(described("(5, 2)")[:-1]), "cannot be read"),
        (with_header(described("(5, 2)", "'<f7'")), "cannot be read"),
        (with_header(described("5")), "cannot be read"),
        (with_header(described("(5, 2)", "'|O'")), "holds objects"),
        (with_header(described("(5, 2)", "[('a', '|O'), ('b', '<f4')]")), "holds objects"),
        (with_header(described("(-5, -2)")), r"shape \(-5, -2\)"),
        (with_header(described("(True, 2)")), "shape .True, 2"),
        (with_header(described("(10**9, 0)")), "cannot be read"),
        (with_header(described("(1000000000000, 0)")), "shape .1000000000000, 0"),
        (with_header(described("(5, 3)")), "and 80 bytes follow"),
        (with_header(described("(5, 2)", "'|V0'")), "values of 0 bytes"),
        (with_header(described("(5, 2)", "[('a', '<f4', (9999999,))]")), "of 39999996 bytes"),
    ],
)
def test_a_header_that_cannot_be_is_refused_before_anything_is_read(content, reason):
    with pytest.raises(ValueError, match=reason):
        header_of(content)
