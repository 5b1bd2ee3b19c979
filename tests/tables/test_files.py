import pickle
import zipfile

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from manifactor.tables.files import array_name, read_samples

X = np.arange(12.0).reshape(4, 3)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "0.0,1,2\n3,4,5\n6,7,8\n9,10,11\n"),
        ("a.csv", "x,y,z\n0,1,2\n3,4,5\n6,7,8\n9,10,11\n"),
        ("a.csv", '\ufeff"x","y","z"\n0,1,2\n3,4,5\n6,7,8\n9,10,11\n'),
        ("a.tsv", "0.0\t1\t2\n3\t4\t5\n6\t7\t8\n9\t10\t11\n"),
        ("a.txt", "0.0 1  2\n3 4 5\n6 7 8\n9 10 11\n"),
        ("A.CSV", "0.0,1,2\n3,4,5\n6,7,8\n9,10,11\n"),
    ],
)
def test_tables_are_read_with_or_without_column_names(tmp_path, name, text):
    (tmp_path / name).write_text(text, encoding="utf-8")
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


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_a_large_file_of_floats_stays_where_it_is(tmp_path, kind):
    np.save(tmp_path / "a.npy", X.astype(kind))
    found = read_samples(tmp_path / "a.npy")
    assert isinstance(found, np.memmap)
    assert found.dtype == kind
    assert not found.flags.writeable
    np.testing.assert_array_equal(found, X)


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int16])
def test_parquet_is_read_column_by_column(tmp_path, kind):
    from pyarrow import parquet

    parquet.write_table(
        pyarrow.table(dict(zip("xyz", X.T.astype(kind), strict=True))), tmp_path / "a.parquet"
    )
    found = read_samples(tmp_path / "a.parquet")
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, X)


def test_the_latent_space_of_cryodrgn_is_read(tmp_path):
    content = pickle.dumps(X.astype(np.float32)) + pickle.dumps(
        np.ones_like(X)
    )  # z_mu, then z_logvar
    (tmp_path / "z.24.pkl").write_bytes(content)
    found = read_samples(tmp_path / "z.24.pkl")
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, X)


def table_with(*names):
    """A table of cryoSPARC whose every field holds its own place."""
    table = np.zeros(4, dtype=[("uid", "<u8"), *((name, "<f4") for name in names)])
    for place, name in enumerate(names):
        table[name] = place + np.arange(4) / 10
    return table


def save_cs(path, table):
    with path.open("wb") as file:
        np.save(file, table)


def test_components_of_cryosparc_come_in_the_order_of_their_numbers(tmp_path):
    names = [f"components_mode_{mode}/value" for mode in (10, 2, 0)]
    save_cs(tmp_path / "a.cs", table_with(*names, "components_mode_0/component", "ctf/df1_A"))
    found = read_samples(tmp_path / "a.cs")
    assert found.dtype == np.float64
    np.testing.assert_allclose(
        found, np.array([2.0, 1.0, 0.0]) + np.arange(4)[:, None] / 10, rtol=1e-6
    )


def write(path, kind):
    if kind == "empty":
        path.write_bytes(b"")
    elif kind == "header only":
        path.write_text("x,y\n")
    elif kind == "words":
        path.write_text("1,2\n3,blue\n")
    elif kind == "gap":
        path.write_text("1,\n3,4\n5,6\n")
    elif kind == "ragged":
        path.write_text("1,2\n3\n")
    elif kind == "objects":
        with path.open("wb") as file:  # by its path, it would end in .npy
            np.save(file, np.array([{}, 1], dtype=object), allow_pickle=True)
    elif kind == "strings":
        np.save(path, np.array([["a", "b"]]))
    elif kind == "complex":
        np.save(path, np.ones((3, 3), dtype=complex))
    elif kind == "flat":
        with path.open("wb") as file:
            np.save(file, np.ones(5))
    elif kind == "two arrays":
        np.savez(path, a=X, b=X)
    elif kind == "no components":
        save_cs(path, table_with("ctf/df1_A", "components_mode_x/value"))
    elif kind == "all text":
        parquet.write_table(pyarrow.table({"name": ["a", "b"]}), path)
    elif kind == "no columns":
        parquet.write_table(pyarrow.table({}), path)
    elif kind == "a text":
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("notes.txt", "hello")
    elif kind == "no header":
        path.write_bytes(b"\x93NUMPY\x01\x00\x10\x00\t  {'descr'\n   \t[")
    elif kind == "cut short":
        np.save(path, np.zeros((9, 2)))
        path.write_bytes(
            path.read_bytes().replace(b"(9, 2), }" + 12 * b" ", b"(9000000000000, 2), }")
        )
    elif kind == "empty rows":
        np.save(path, np.empty((7, 0)))
    elif kind == "dict":
        path.write_bytes(pickle.dumps({"z": X}))
    elif kind == "flat pickle":
        path.write_bytes(pickle.dumps(np.ones(5)))
    elif kind == "call":
        path.write_bytes(b"cos\nsystem\n(V true\ntR.")
    elif kind == "garbage":
        path.write_bytes(b"\x00\x01garbage")


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("a.csv", "empty", "is empty; it must hold samples"),
        ("a.csv", "header only", "holds no samples"),
        ("a.csv", "words", "must be a table of numbers: .*blue"),
        ("a.csv", "ragged", "must be a table of numbers"),
        ("a.csv", "gap", "must be a table of numbers"),
        ("a.npy", "objects", "or not a .npy file of plain values: it holds objects, .* unpickled"),
        ("a.npy", "strings", "must hold real numbers"),
        ("a.npy", "complex", "must hold real numbers"),
        ("a.npy", "flat", r"one sample a row; got an array of shape \(5,\)"),
        (
            "a.npy",
            "garbage",
            "is damaged, or not a .npy file of plain values: its header cannot be read. "
            "Write it again with the program that made it, or with numpy.save",
        ),
        ("a.npz", "two arrays", "must hold an array `X`, or one array; it holds a, b"),
        ("a.npz", "garbage", "or not an .npz file of plain arrays"),
        ("a.npz", "a text", "or one array; it holds notes.txt. Save the samples under"),
        ("a.npy", "no header", "is damaged, or not a .npy file of .*: its header cannot"),
        (
            "a.npy",
            "cut short",
            r"is damaged, or not a .npy file .*: its header describes .*\(9000000000000, 2\)",
        ),
        ("a.npy", "empty rows", r"one sample a row; got an array of shape \(7, 0\)"),
        ("a.parquet", "all text", "must be a table of numbers: all columns hold text"),
        ("a.parquet", "no columns", "must be a table of numbers: it has no columns"),
        ("a.parquet", "garbage", "cannot be read and is probably damaged: "),
        ("a.pkl", "dict", "must hold one pickled array of numbers; got dict"),
        ("a.pkl", "flat pickle", r"one sample a row; got an array of shape \(5,\)"),
        ("a.pkl", "call", "refused and nothing in it was run: it asks for 'os.system"),
        ("a.pkl", "garbage", "is not a pickled numpy array: "),
        (
            "a.cs",
            "no components",
            "must hold fields components_mode_0/value, .* variability analysis; it holds none",
        ),
        ("a.cs", "flat", "must hold fields components_mode_0/value, .* it holds none"),
        ("a.cs", "objects", "or not a .cs file of plain values: it holds objects, .* unpickled"),
        (
            "a.cs",
            "garbage",
            "is damaged, or not a .cs file of plain values: its header cannot be read. "
            "Write it again with the program that made it, or with numpy.save",
        ),
        ("a.docx", "words", "or a folder of .mrc volumes; got a.docx"),
        ("a.csv", "missing", "does not exist"),
    ],
)
def test_bad_files_say_what_must_hold(tmp_path, name, kind, message):
    write(tmp_path / name, kind)
    with pytest.raises(ValueError, match=message) as error:
        read_samples(tmp_path / name)
    assert "\n" not in str(error.value)
