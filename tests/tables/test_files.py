import io
import os
import pickle

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from manifactor.tables.files import array_name, column_names, read_samples
from manifactor.tables.pickles import read_pickled_array
from manifactor.tables.stores import stored_table

X = np.arange(12.0).reshape(4, 3)


@pytest.mark.parametrize(
    ("name", "start", "delimiter"),
    [
        ("a.csv", "0.0", ","),
        ("A.CSV", "x,y,z\n0", ","),
        ("a.csv", '\ufeff"x","y","z"\n0', ","),
        ("a.tsv", "0.0", "\t"),
        ("a.txt", "0.0", "  "),
    ],
)
def test_tables_are_read_with_or_without_column_names(tmp_path, name, start, delimiter):
    rows = f"{start},1,2\n3,4,5\n6,7,8\n9,10,11\n".replace(",", delimiter)
    (tmp_path / name).write_text(rows, encoding="utf-8")
    np.testing.assert_array_equal(read_samples(tmp_path / name), X)


def test_numpy_files_are_read(tmp_path):
    np.save(tmp_path / "a.npy", X.astype(np.int32))
    np.savez(tmp_path / "one.npz", anything=X)
    np.savez(tmp_path / "several.npz", truth=X[:1], X=X)
    for name in ("a.npy", "one.npz", "several.npz"):
        found = read_samples(tmp_path / name)
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, X)
    assert array_name(tmp_path / "one.npz") == "anything"
    assert array_name(tmp_path / "several.npz") == "X"


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int16])
def test_floats_of_a_large_file_stay_where_they_are(tmp_path, kind):
    np.save(tmp_path / "a.npy", X.astype(kind))
    found = read_samples(tmp_path / "a.npy")
    assert isinstance(found, np.memmap)
    assert found.dtype == (np.float32 if kind == np.int16 else kind)
    assert found.flags.writeable == (kind == np.int16)
    np.testing.assert_array_equal(found, X)
    columns = dict(zip("xyz", X.T.astype(kind), strict=True))
    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
    found = read_samples(tmp_path / "a.parquet")
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, X)


def table_with(*names):
    """A table of cryoSPARC whose every field holds its own place."""
    table = np.zeros(4, dtype=[("uid", "<u8"), *((name, "<f4") for name in names)])
    for place, name in enumerate(names):
        table[name] = place + np.arange(4) / 10
    return table


MODES = "must hold fields components_mode_0/value, .* variability analysis; it holds none"


def saved(save, *arrays, **named):
    """The bytes that numpy or pyarrow write."""
    file = io.BytesIO()
    save(file, *arrays, **named)
    return file.getvalue()


def parquet_file(**columns):
    return saved(lambda file: parquet.write_table(pyarrow.table(columns), file))


OBJECTS = saved(np.save, np.array([{}, 1], dtype=object))
GARBAGE = b"\x00\x01garbage"
PLAIN = "is damaged, or not a file of plain numbers: "


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"", "is empty; it must hold samples"),
        ("a.csv", b"x,y\n", "holds no samples"),
        ("a.csv", b'x,y\n"' + b"1;2;" * 40_000, "field larger than .* Repair the quotes in it"),
        ("a.npy", OBJECTS, PLAIN + "it holds objects, .* unpickled"),
        ("a.npy", saved(np.save, np.array([["a", "b"]])), "must hold real numbers"),
        ("a.npy", saved(np.save, np.ones((3, 3), dtype=complex)), "must hold real numbers"),
        ("a.npy", saved(np.save, np.ones(5)), r"one sample a row; got an array of shape \(5,\)"),
        ("a.npy", saved(np.save, np.empty((7, 0))), r"one sample a row; .* shape \(7, 0\)"),
        ("a.npz", saved(np.savez, a=X, b=X), "an array `X`, or one array; it holds a, b. Save"),
        ("a.parquet", parquet_file(name=["a", "b"]), "all columns hold text"),
        ("a.parquet", parquet_file(), "must be a table of numbers: it has no columns"),
        ("a.parquet", GARBAGE, PLAIN),
        ("a.pkl", pickle.dumps(np.ones(5)), r"one sample a row; got an array of shape \(5,\)"),
        ("a.cs", saved(np.save, table_with("ctf/df1_A", "components_mode_x/value")), MODES),
        ("a.cs", saved(np.save, np.ones(5)), MODES),
        ("a.docx", b"1,2\n", "or a folder of .mrc volumes; got a.docx"),
    ],
)
def test_bad_files_say_what_must_hold(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message) as error:
        read_samples(tmp_path / name)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("read", [read_samples, column_names, stored_table, read_pickled_array])
@pytest.mark.parametrize("suffix", [".csv", ".npy", ".npz", ".parquet", ".pkl", ".cs"])
def test_what_is_not_a_file_is_refused_and_a_pipe_is_not_waited_for(tmp_path, suffix, read):
    path = tmp_path / f"a{suffix}"
    if read is not column_names or suffix in (".csv", ".parquet"):
        with pytest.raises(ValueError, match=r"must be a file; .* does not exist"):
            read(path)
        os.mkfifo(path)
        with pytest.raises(ValueError, match=r"must be a file; .* is a named pipe"):
            read(path)


@pytest.mark.parametrize("write", [pickle.dump, lambda wide, file: np.savez(file, X=wide)])
def test_what_exceeds_the_memory_says_how_much_it_needs(tmp_path, monkeypatch, write):
    path = tmp_path / ("a.pkl" if write is pickle.dump else "a.npz")
    with path.open("wb") as file:
        write(np.zeros((10, 20)), file)
    monkeypatch.setattr("manifactor._support.memory.available_memory", lambda: 1000)
    with pytest.raises(ValueError, match=r"would take .* GB of memory, and .* are avail"):
        read_samples(path)
