import numpy as np
import pytest

from manifactor.samples import read_samples

X = np.arange(12.0).reshape(4, 3)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "0,1,2\n3,4,5\n6,7,8\n9,10,11\n"),
        ("a.csv", "x,y,z\n0,1,2\n3,4,5\n6,7,8\n9,10,11\n"),
        ("a.csv", '\ufeff"x","y","z"\n0,1,2\n3,4,5\n6,7,8\n9,10,11\n'),
        ("a.tsv", "0\t1\t2\n3\t4\t5\n6\t7\t8\n9\t10\t11\n"),
        ("a.txt", "0 1  2\n3 4 5\n6 7 8\n9 10 11\n"),
        ("A.CSV", "0,1,2\n3,4,5\n6,7,8\n9,10,11\n"),
    ],
)
def test_tables_are_read_with_or_without_column_names(tmp_path, name, text):
    (tmp_path / name).write_text(text, encoding="utf-8")
    np.testing.assert_array_equal(read_samples(tmp_path / name), X)


def test_numpy_files_are_read(tmp_path):
    np.save(tmp_path / "a.npy", X.astype(np.float32))
    np.savez(tmp_path / "one.npz", anything=X)
    np.savez(tmp_path / "several.npz", truth=X[:1], X=X)
    for name in ("a.npy", "one.npz", "several.npz"):
        found = read_samples(tmp_path / name)
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, X)


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
        np.save(path, np.array([{}, 1], dtype=object), allow_pickle=True)
    elif kind == "strings":
        np.save(path, np.array([["a", "b"]]))
    elif kind == "complex":
        np.save(path, np.ones((3, 3), dtype=complex))
    elif kind == "flat":
        np.save(path, np.ones(5))
    elif kind == "two arrays":
        np.savez(path, a=X, b=X)
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
        ("a.npy", "objects", "is not a plain array of numbers; pickled objects are never loaded"),
        ("a.npy", "strings", "must hold real numbers"),
        ("a.npy", "complex", "must hold real numbers"),
        ("a.npy", "flat", r"one sample a row; got an array of shape \(5,\)"),
        ("a.npy", "garbage", "is not a plain array of numbers; pickled objects are never loaded"),
        ("a.npz", "two arrays", "must hold an array `X`, or one array; it holds a, b"),
        ("a.npz", "garbage", "is not an .npz file of plain arrays"),
        ("a.docx", "words", "must end in one of .npy, .npz, .csv, .tsv, .txt, .parquet, .pkl, .cs; got a.docx"),
        ("a.csv", "missing", "does not exist"),
    ],
)
def test_bad_files_say_what_must_hold(tmp_path, name, kind, message):
    write(tmp_path / name, kind)
    with pytest.raises(ValueError, match=message) as error:
        read_samples(tmp_path / name)
    assert "\n" not in str(error.value)
