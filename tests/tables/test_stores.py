import os
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zarr

from manifactor._support.array_files import open_archive
from manifactor.estimators.columns import ColumnWarning
from manifactor.tables.columns import ColumnChoice
from manifactor.tables.files import column_names, read_samples, read_table
from manifactor.tables.stores import in_parts, stored_table

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


def test_columns_of_text_are_left_out_or_refused_where_they_were_chosen(tmp_path, X):
    text = {"name": np.array(["x"] * N), "when": np.arange(N).astype("M8[s]")}
    path = write_parquet(tmp_path / "p", X, **text)
    assert column_names(path) == ["a", "b", "c", "name", "when"]
    with pytest.warns(ColumnWarning, match="hold text were left out: 'name', 'when'"):
        assert stored_table(path).columns.names == ("a", "b", "c")
    with pytest.raises(ValueError, match="columns that hold none are 'name'"):
        stored_table(path, ColumnChoice("a,name"))
    with pytest.raises(ValueError, match="there is no column 'd'"):
        read_table(path, ColumnChoice("d"))


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


def test_the_size_decides_what_is_read_in_parts(path, monkeypatch):
    assert not in_parts(path)
    assert in_parts(path, "parquet")
    for name, value in {"SMALL_FILE": 0, "MOST_ROWS": N - 1}.items():
        monkeypatch.setattr(f"manifactor.tables.stores.{name}", value)
    assert in_parts(path)
    assert not in_parts(path, "csv")
    for name, value in {"MOST_ROWS": N, "MOST_NUMBERS": 3 * N - 1}.items():
        monkeypatch.setattr(f"manifactor.tables.stores.{name}", value)
    assert in_parts(path) == (path.suffix != ".npy")


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


def test_columns_of_one_value_cannot_claim_gigabytes(tmp_path):
    path = tmp_path / "a.parquet"
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(3 * 10**6, np.int8)), [1.5])
    with pq.ParquetWriter(path, pa.schema([("a", column.type)])) as writer:
        for _ in range(4):
            writer.write_table(pa.table({"a": column}))
    assert path.stat().st_size < 10**6
    for read in (stored_table, read_samples, column_names):
        with pytest.raises(ValueError, match=r"bytes and claims 96,000,000"):
            read(path)
    # A table that is only easily compressed is read.
    few = np.repeat(np.arange(10.0), 10**5)
    pq.write_table(pa.table({"a": few, "b": few[::-1]}), path)
    assert path.stat().st_size < 10**5
    np.testing.assert_array_equal(read_samples(path), np.column_stack([few, few[::-1]]))


def test_columns_of_text_and_of_lists_are_not_read(tmp_path):
    """Both may hold the same gigabytes in a few bytes."""
    path = tmp_path / "a.parquet"
    text = pa.DictionaryArray.from_arrays(np.zeros(10**4, np.int8), ["x" * 10**5])
    one = pa.ListArray.from_arrays([0] * 10**4 + [10**7], np.zeros(10**7))
    table = pa.table({"a": np.arange(1e4), "text": text, "list": one})
    pq.write_table(table, path, store_schema=False)
    assert path.stat().st_size < 10**6
    before = pa.default_memory_pool().max_memory()
    with pytest.warns(ColumnWarning, match="left out: 'text', 'list'"):
        samples = read_samples(path)
    np.testing.assert_array_equal(samples[:, 0], np.arange(1e4))
    assert pa.default_memory_pool().max_memory() == before


def test_a_table_larger_than_the_memory_is_refused_as_a_whole(path, monkeypatch):
    monkeypatch.setattr("manifactor._support.memory.available_memory", lambda: 100)
    if path.suffix != ".npy":
        with pytest.raises(ValueError, match=r"would take .* GB of memory"):
            read_samples(path)
    assert len(stored_table(path).read(0, 3)) == 3


def test_decimals_and_large_whole_numbers_are_numbers(tmp_path):
    path = tmp_path / "a.parquet"
    decimals = pa.array([1, 2], pa.decimal128(5, 2))
    table = {"a": [2**60 + 1, 3], "b": decimals, "c": pa.array([1.5, 2]).dictionary_encode()}
    pq.write_table(pa.table(table), path)
    expected = [[2.0**60, 1, 1.5], [3, 2, 2]]
    np.testing.assert_array_equal(read_samples(path), expected)


def test_a_mistake_in_our_own_code_is_not_taken_for_damage(tmp_path, X, monkeypatch):
    def mistaken(*_):
        raise TypeError("ours")

    write_parquet(tmp_path / "table", X)
    table = stored_table(tmp_path / "table", ColumnChoice())
    monkeypatch.setattr("manifactor.tables.stores.float_type", mistaken)
    with pytest.raises(TypeError, match="ours"):
        table.take(np.arange(3))
    np.savez(tmp_path / "x.npz", X=X)
    monkeypatch.setattr("manifactor._support.array_files.npy_header", mistaken)
    with open_archive(tmp_path / "x.npz") as archive, pytest.raises(TypeError, match="ours"):
        archive.read("X")
