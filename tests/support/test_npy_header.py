from io import BytesIO

import numpy as np
import pytest

from manifactor._support.array_files import npy_header


def with_header(text, values=b"\0" * 80, version=b"\x01\x00"):
    header = text.encode().ljust(117) + b"\n"
    size = len(header).to_bytes(2, "little")
    return b"\x93NUMPY" + version + size + header + values


def header_of(content):
    return npy_header(BytesIO(content), len(content))


def described(descr="'<f8'", shape="(5, 2)"):
    return f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}"


def test_a_whole_file_has_the_header_of_its_array():
    fields = [("uid", "<u8"), ("pose", "<f4", (3,))]
    content = BytesIO()
    np.save(content, np.zeros(4, dtype=fields))
    found = header_of(content.getvalue())
    assert (found.shape, found.dtype) == ((4,), np.dtype(fields))
    assert found.start == len(content.getvalue()) - 4 * 20


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "cannot be read"),
        (b"\x93NUMPY\x09\x00", "cannot be read"),
        (with_header("'''"), "cannot be read"),
        (with_header("(" * 110), "cannot be read"),
        (with_header(described()[:-1]), "cannot be read"),
        (with_header(described(descr="'<f7'")), "cannot be read"),
        (with_header(described(shape="5")), "cannot be read"),
        (with_header(described(descr="'|O'")), "holds objects"),
        (with_header(described(descr="[('a', '|O'), ('b', '<f4')]")), "holds objects"),
        (with_header(described(shape="(-5, -2)")), r"shape \(-5, -2\)"),
        (with_header(described(shape="(True, 2)")), "shape .True, 2"),
        (with_header(described(shape="(10**9, 0)")), "cannot be read"),
        (with_header(described(shape="(1000000000000, 0)")), "shape .1000000000000, 0"),
        (with_header(described(shape="(5, 3)")), "are 120 bytes, and 80 follow"),
        (with_header(described(descr="'|V0'")), "values of 0 bytes"),
        (with_header(described(descr="[('a', '<f4', (10000000,))]")), "are 400000000 b"),
    ],
)
def test_a_header_that_cannot_be_is_refused_before_anything_is_read(content, reason):
    with pytest.raises(ValueError, match=reason):
        header_of(content)
