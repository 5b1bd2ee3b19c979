"""Pages of Parquet files: their sizes are known before they are unpacked."""

import struct

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from manifactor.tables.files import read_samples

INT, LONG, TEXT, LIST, RECORD = 5, 6, 8, 9, 12


def varint(value):
    low, rest = value & 127, value >> 7
    return bytes([low | 128]) + varint(rest) if rest else bytes([low])


def encoded(kind, value):
    """A value in Thrift's compact protocol; a record is a dict of number: (type, value)."""
    if kind in (INT, LONG):
        return varint(2 * value)
    if kind == TEXT:
        return varint(len(value)) + value
    if kind == LIST:
        of, items = value
        start = bytes([len(items) << 4 | of])
        return start + b"".join(encoded(of, item) for item in items)
    content, last = b"", 0
    for number, (inner, each) in value.items():
        content += bytes([(number - last) << 4 | inner]) + encoded(inner, each)
        last = number
    return content + b"\0"


def page(unpacked, *, claimed, n_rows):
    """A page of zeros, compressed by zstd."""
    body = pa.Codec("zstd").compress(bytes(unpacked), asbytes=True)
    about = {1: (INT, n_rows), 2: (INT, 0), 3: (INT, 3), 4: (INT, 3)}
    header = {1: (INT, 0), 2: (INT, claimed), 3: (INT, len(body)), 5: (RECORD, about)}
    return encoded(RECORD, header) + body


def write(path, content, *, n_rows=10, n_columns=1):
    """A file of columns of doubles that all have this content."""
    columns = []
    schema = [{4: (TEXT, b"schema"), 5: (INT, n_columns)}]
    for k in range(n_columns):
        name, at = b"c%d" % k, 4 + k * len(content)
        schema.append({1: (INT, 5), 3: (INT, 0), 4: (TEXT, name)})
        about = {
            1: (INT, 5),
            2: (LIST, (INT, [0, 3])),
            3: (LIST, (TEXT, [name])),
            4: (INT, 6),
            5: (LONG, n_rows),
            6: (LONG, 8 * n_rows),
            7: (LONG, len(content)),
            9: (LONG, at),
        }
        columns.append({2: (LONG, at), 3: (RECORD, about)})
    size = 8 * n_rows * n_columns
    group = {1: (LIST, (RECORD, columns)), 2: (LONG, size), 3: (LONG, n_rows)}
    footer = encoded(
        RECORD,
        {1: (INT, 1), 2: (LIST, (RECORD, schema)), 3: (LONG, n_rows), 4: (LIST, (RECORD, [group]))},
    )
    end = footer + struct.pack("<I", len(footer)) + b"PAR1"
    path.write_bytes(b"PAR1" + n_columns * content + end)


def test_a_file_written_by_hand_is_read(tmp_path):
    write(tmp_path / "a.parquet", page(80, claimed=80, n_rows=10), n_columns=3)
    np.testing.assert_array_equal(read_samples(tmp_path / "a.parquet"), np.zeros((10, 3)))


@pytest.mark.parametrize("unpacked", [80, 2**28])
def test_pages_that_unpack_to_gigabytes_are_refused_before_they_are(tmp_path, unpacked):
    path = tmp_path / "a.parquet"
    write(path, page(unpacked, claimed=2**28, n_rows=10), n_columns=4)
    assert path.stat().st_size < 10**6
    with pytest.raises(ValueError, match=r"parquet .* pages unpack to 1,073,741,824"):
        read_samples(path)


@pytest.mark.parametrize(
    "header",
    [
        b"\x00",  # nothing
        b"\x15\x00\x15\x10\x00",  # one size
        b"\x25\x10\x15\x10\x00",  # no type
        b"\x26\x10\x15\x10\x00",  # a size of another type
        b"\x25\x10\x05\x04\x10\x15\x10\x00",  # the same size twice
        b"\x25\x01\x15\x10\x00",  # a size below 0
        b"\x25" + b"\xff" * 12,  # a number without end
        b"\x19\x15\x00\x15\x10\x15\x10\x00",  # a list
        b"\x1c" * 40,  # records in records
        b"\x18\xff\xff\x03",  # a text beyond the end
    ],
)
def test_headers_that_cannot_be_followed_are_refused(tmp_path, header):
    write(tmp_path / "a.parquet", header)
    message = "a.parquet cannot be read .*: the pages of column 'c0' do not follow each"
    with pytest.raises(ValueError, match=message):
        read_samples(tmp_path / "a.parquet")


@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("dictionary", [True, False])
def test_pages_of_pyarrow_are_followed(tmp_path, rng, compression, version, dictionary):
    X = np.round(rng.normal(size=(3000, 2)), 1)
    path = tmp_path / "a.parquet"
    parquet.write_table(
        pa.table({"a": X[:, 0], "b": X[:, 1]}),
        path,
        compression=compression,
        data_page_version=version,
        use_dictionary=dictionary,
        data_page_size=512,
        row_group_size=1000,
        write_page_checksum=True,
        write_statistics=True,
    )
    np.testing.assert_array_equal(read_samples(path), X)


def test_columns_that_lie_in_each_other_are_refused(tmp_path):
    path = tmp_path / "a.parquet"
    content = page(80, claimed=80, n_rows=10) + bytes(1000)  # longer than the footer
    write(path, content, n_columns=8)
    whole = path.read_bytes()
    path.write_bytes(b"PAR1" + whole[4 + 7 * len(content) :])
    with pytest.raises(ValueError, match=r"a\.parquet is damaged: .* its columns claim"):
        read_samples(path)


@pytest.mark.parametrize("content", [b"", page(40, claimed=40, n_rows=5)])
def test_a_file_with_fewer_rows_than_it_claims_is_refused(tmp_path, content):
    write(tmp_path / "a.parquet", content)
    message = rf"a\.parquet cannot be read .*: it has {5 * bool(content)} of 10 rows"
    with pytest.raises(ValueError, match=message):
        read_samples(tmp_path / "a.parquet")


def test_bytes_behind_the_last_page_of_a_column_are_no_page(tmp_path):
    content = page(80, claimed=80, n_rows=10) + bytes(23)
    write(tmp_path / "a.parquet", content, n_columns=2)
    assert read_samples(tmp_path / "a.parquet").shape == (10, 2)


def test_values_of_another_type_of_page_do_not_count(tmp_path):
    """pyarrow goes on to the next page, and so must we."""
    body = pa.Codec("zstd").compress(bytes(80), asbytes=True)
    header = {1: (INT, 0), 2: (INT, 80), 3: (INT, len(body)), 8: (RECORD, {1: (INT, 99)})}
    first = encoded(RECORD, header) + body
    path = tmp_path / "a.parquet"
    write(path, first + page(80, claimed=2**30, n_rows=10))
    with pytest.raises(ValueError, match=r"pages unpack to 1,073,741,904"):
        read_samples(path)


@pytest.mark.parametrize("dictionary", [True, False])
def test_row_groups_may_be_empty(tmp_path, dictionary):
    path = tmp_path / "a.parquet"
    tables = [pa.table({"a": np.arange(n, dtype=float)}) for n in (5, 0, 5)]
    schema = tables[0].schema
    with parquet.ParquetWriter(path, schema, use_dictionary=dictionary) as writer:
        for table in tables:
            writer.write_table(table)
    np.testing.assert_array_equal(read_samples(path).ravel(), [*range(5), *range(5)])


def test_checksums_of_pages_are_checked(tmp_path, rng):
    path = tmp_path / "a.parquet"
    table = pa.table({"a": rng.normal(size=300)})
    options = {"use_dictionary": False, "compression": "none"}
    parquet.write_table(table, path, write_page_checksum=True, **options)
    content = bytearray(path.read_bytes())
    content[700] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"a\.parquet cannot be read .*CRC"):
        read_samples(path)
