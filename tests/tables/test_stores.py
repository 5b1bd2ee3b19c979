import os
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zarr

from manifactor.tables.columns import ColumnChoice
from manifactor.tables.files import read_samples
from manifactor.tables.stores import stored_table

N = 95


@pytest.fixture
def X(rng):
    return rng.normal(size=(N, 3)).astype(np.float32)


def write_parquet(folder, X, *, files=12, **more):
    """Write rows to a folder of files, with names of which part.10 sorts before part.2 as text."""
    folder.mkdir()
    for number, rows in enumerate(np.array_split(np.arange(len(X)), files)):
        columns = dict(zip("abc", X[rows].T, strict=True))
        columns |= {name: values[rows] for name, values in more.items()}
        path = folder / f"part.{number}.parquet"
        pq.write_table(pa.table(columns), path, row_group_size=5)
    (folder / "_SUCCESS").touch()
    return folder


def write_zarr(path, X, chunks=(20, 2)):
    array = zarr.create_array(path, shape=X.shape, chunks=chunks, dtype=X.dtype)
    array[:] = X
    return path


def write_npy(path, X):
    np.save(path, np.asfortranarray(X))
    return path


@pytest.fixture(params=["zarr", "parquet", "npy"])
def path(request, tmp_path, X):
    writers = {"zarr": write_zarr, "parquet": write_parquet, "npy": write_npy}
    return writers[request.param](tmp_path / f"a.{request.param}", X)


def test_rows_and_chosen_columns_are_those_that_were_written_in_single_precision(path, X):
    table = stored_table(path)
    assert table.shape == (N, 3)
    assert table.read(0, 5).dtype == np.float32
    for start, stop in [(0, N), (3, 4), (17, 61)]:
        np.testing.assert_array_equal(table.read(start, stop), X[start:stop])
    np.testing.assert_array_equal(read_samples(path), X)
    rows = np.array([0, 19, 20, 21, 94])
    np.testing.assert_array_equal(table.take(rows), X[rows])
    table = stored_table(path, ColumnChoice(drop="1"))
    np.testing.assert_array_equal(table.read(2, 30), X[2:30, [0, 2]])
    columns = replace(table.columns, mean=np.array([1.0, 2.0]), scale=np.array([2.0, 4.0]))
    scaled = replace(table, columns=columns).read(2, 3)
    np.testing.assert_allclose(scaled, (X[2:3, [0, 2]] - [1, 2]) / [2, 4])


@pytest.mark.parametrize(
    ("value", "words"),
    [(np.nan, "finite; .* in row 61, column 'b'"), (np.finfo(float).max, r"1.8e\+308, in row 61")],
)
def test_a_wrong_value_is_named_by_its_row_in_the_table(tmp_path, X, value, words):
    X = X.astype(np.float64)
    X[61, 1] = value
    table = stored_table(write_parquet(tmp_path / "p", X))
    assert len(table.read(0, 61)) == 61
    with pytest.raises(ValueError, match=words):
        table.read(50, 70)
    # So is a cell that is missing.
    pq.write_table(pa.table({"a": [1, None, 3], "b": [True, False, True]}), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match="row 1, column 'a'"):
        stored_table(tmp_path / "a.parquet").read(0, 3)


def test_a_group_needs_one_array_or_one_named_x(tmp_path, X):
    path = tmp_path / "g.zarr"
    group = zarr.open_group(path, mode="w")
    with pytest.raises(ValueError, match="it holds none"):
        read_samples(path)
    for name in ("labels", "X"):
        array = group.create_array(name, shape=X.shape, chunks=(10, 3), dtype="f4")
        array[:] = X if name == "X" else 0
    np.testing.assert_array_equal(read_samples(path), X)
    np.testing.assert_array_equal(read_samples(path / "labels"), 0 * X)


@pytest.mark.parametrize(
    ("shape", "chunks", "dtype", "match"),
    [
        ((0, 3), "auto", "f4", "is empty; it must hold samples"),
        ((4,), "auto", "f4", "one sample a row; got an array of shape"),
        ((4, 3), "auto", "c16", "must hold real numbers"),
        # A store of a few bytes cannot claim gigabytes.
        ((10**10, 2), (10**7, 2), "f8", r"bytes and claims [\d,]+, as numbers of"),
        ((60, 2), (10**9, 2), "f8", r"bytes and claims [\d,]+, as numbers of"),
    ],
)
def test_stores_without_a_table_of_numbers_are_refused(tmp_path, shape, chunks, dtype, match):
    zarr.create_array(tmp_path / "a.zarr", shape=shape, chunks=chunks, dtype=dtype)
    for read in (read_samples, stored_table):
        with pytest.raises(ValueError, match=match):
            read(tmp_path / "a.zarr")


def test_a_folder_of_parquet_files_holds_nothing_else_and_one_kind(tmp_path, X):
    folder = write_parquet(tmp_path / "p", X)
    for name, content, match in [
        ("notes.txt", b"", r"also holds 'notes.txt'. Move them"),
        ("part.99.parquet", pa.table({"z": [1.0]}), r"same columns; part.99.parquet has 'z'"),
        ("part.99.parquet", pa.table([[1.0], [2.0]], names=["a", "a"]), "names that differ"),
        ("part.99.parquet", b"no parquet", r"part.99.parquet is damaged, or"),
    ]:
        if isinstance(content, bytes):
            (folder / name).write_bytes(content)
        else:
            pq.write_table(content, folder / name)
        with pytest.raises(ValueError, match=match):
            stored_table(folder)
        (folder / name).unlink()


def test_a_store_with_a_damaged_or_odd_chunk_is_named(tmp_path, X):
    path, odd = (write_zarr(tmp_path / name, X) for name in ("a.zarr", "b.zarr"))
    (path / "c/1/0").write_bytes(b"no chunk")
    with pytest.raises(ValueError, match=r"a.zarr is damaged, or not a file"):
        read_samples(path)
    (odd / "c/1/0").unlink()
    os.mkfifo(odd / "c/1/0")
    with pytest.raises(ValueError, match=r"c/1/0 is a named pipe"):
        stored_table(odd)


def test_a_damaged_parquet_file_is_named_when_its_rows_are_read(tmp_path, X):
    folder = write_parquet(tmp_path / "p", X)
    path = folder / "part.3.parquet"
    content = bytearray(path.read_bytes())
    content[4:60] = bytes(56)  # the header of the first page
    path.write_bytes(content)
    table = stored_table(folder)
    with pytest.raises(ValueError, match=r"part.3.parquet is damaged, or"):
        table.read(0, N)


def test_a_table_larger_than_the_memory_is_refused_as_a_whole(path, monkeypatch):
    monkeypatch.setattr("manifactor._support.memory.available_memory", lambda: 100)
    if path.suffix != ".npy":
        with pytest.raises(ValueError, match=r"would take .* GB of memory"):
            read_samples(path)
    assert len(stored_table(path).read(0, 3)) == 3
