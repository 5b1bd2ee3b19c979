"""Tables: names, columns of text, and cells that are no numbers."""

import os
import warnings

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from manifactor import ColumnWarning
from manifactor.tables.columns import ColumnChoice, Columns
from manifactor.tables.files import column_names, read_like, read_table
from manifactor.tables.text import line_of

TEXT = "id,x,y\na1,0,1\nb2,2,3\nc3,4,5\n"
X = np.arange(6.0).reshape(3, 2)


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(TEXT)
    return path


def parquet_table(path):
    names = ["a", "b", "c"]
    columns = {"id": names, "x": X[:, 0], "when": np.arange(3).astype("M8[s]")}
    parquet.write_table(pyarrow.table({**columns, "y": X[:, 1]}), path)
    return path


def test_a_column_of_text_is_left_out_with_a_warning(table):
    with pytest.warns(ColumnWarning, match="hold text were left out: 'id'"):
        found = read_table(table)
    np.testing.assert_array_equal(found.samples, X)
    assert (found.columns.names, found.columns.numbers, found.columns.total) == (
        ("x", "y"),
        (1, 2),
        3,
    )


def test_text_and_dates_of_a_parquet_are_left_out_with_a_warning(tmp_path):
    path = parquet_table(tmp_path / "a.parquet")
    with pytest.warns(ColumnWarning, match="were left out: 'id', 'when'"):
        found = read_table(path)
    np.testing.assert_array_equal(found.samples, X)
    assert found.columns.names == ("x", "y")


def test_chosen_columns_are_read_whatever_the_others_hold(table, tmp_path):
    for path in (table, parquet_table(tmp_path / "a.parquet")):
        for choice in (ColumnChoice("x,y"), ColumnChoice("y", drop="x")):
            with warnings.catch_warnings(action="error"):
                found = read_table(path, choice)
            np.testing.assert_array_equal(found.samples, X[:, -len(found.columns.numbers) :])
    (tmp_path / "numbers.txt").write_text("0.0 1 2\n3 4 5\n")
    found = read_table(tmp_path / "numbers.txt", ColumnChoice("0,2"))
    np.testing.assert_array_equal(found.samples, [[0, 2], [3, 5]])
    assert found.columns.names is None


def test_columns_of_an_array_are_chosen_by_number(tmp_path):
    np.save(tmp_path / "a.npy", X)
    found = read_table(tmp_path / "a.npy", ColumnChoice(drop="0"))
    np.testing.assert_array_equal(found.samples, X[:, 1:])


@pytest.mark.parametrize(
    ("text", "choice", "message"),
    [
        (
            "x,y\n1,2\n3,blue\n5,\n7,8\n9,10\n",
            ColumnChoice(),
            "line 3, column 'y' holds 'blue', and 1 more cells are not numbers",
        ),
        (
            "x,y\n1,2\n\n3,\n4,5\n",
            ColumnChoice(),
            "line 4, column 'y' is empty. Fill it in, remove the row, or leave the",
        ),
        ("1,2\n3,a\n5,6\n", ColumnChoice(), "line 2, column 1 holds 'a'"),
        (TEXT, ColumnChoice("id"), "line 2, column 'id' holds 'a1'"),
        ("a,b\nc,d\ne,f\n", ColumnChoice(), "all columns hold text"),
        ("x,y\n1,2\n3\n", ColumnChoice(), "line 3 has 1 cells, and the first row has 2"),
        ("x,y\n1,2\n3,4,5\n", ColumnChoice(), "line 3 has 3 cells"),
    ],
)
def test_a_cell_that_is_no_number_is_named(tmp_path, text, choice, message):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(ValueError, match=f"must be a table of numbers: {message}"):
        read_table(tmp_path / "a.csv", choice)


@pytest.mark.parametrize(
    ("content", "found", "code"),
    [
        ("x,y\n1,2\n3,4 \N{DEGREE SIGN}\n".encode("latin-1"), "line 3 has the byte 0xb0", "latin1"),
        (b"x,y\n1,2\n\xff\xfe,3\n", "line 3 has the byte 0xff", "latin1"),
        ("x,y\n1,2\n".encode("utf-16"), "line 1 has the byte 0xff", "utf-16"),
        # Far beyond what is decoded at once.
        (b"1,2\n" * 9000 + b"3,\xc3\n", "line 9001 has the byte 0xc3", "latin1"),
    ],
)
@pytest.mark.parametrize("read", [read_table, lambda path: line_of(path, 10**6)])
def test_a_text_in_another_encoding_is_refused(tmp_path, content, found, code, read):
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"{found}.* iconv -f {code} -t utf-8"):
        read(path)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.txt", '"x" "y"\n"1" 0 1\n"2" 2 3\n"10" 4 5\n'),
        ("a.txt", '"x" "y"\n"8 9" 0 1\n"7 6 5" 2 3\n"c" 4 5\n'),
        ("a.txt", "x y\n1 0 1\n2 2 3\n3 4 5\n"),
        ("a.csv", '"x","y"\n"a",0,1\n"b",2,3\n"c",4,5\n'),
        ("a.tsv", "x\ty\n1\t0\t1\n2\t2\t3\n3\t4\t5\n"),
    ],
)
def test_row_names_of_r_are_left_out_as_an_index(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    with pytest.warns(ColumnWarning, match="the first column .* left out, as the index"):
        found = read_table(path)
    np.testing.assert_array_equal(found.samples, X)
    assert (found.columns.names, found.columns.numbers, found.columns.total) == (
        ("x", "y"),
        (1, 2),
        3,
    )


def test_a_line_shorter_than_fractions_or_unfinished_rows_names_no_columns(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("measured,today\n.5,1,2\n.6,3,4\n")
    assert read_table(path).samples.shape == (2, 3)
    path.write_text("x,y\n1,2,\n3,4,\n")
    with pytest.warns(ColumnWarning, match="hold text were left out: 2"):
        np.testing.assert_array_equal(read_table(path).samples, [[1, 2], [3, 4]])


def test_quoted_delimiters_do_not_move_the_columns_chosen(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('id,x,y\n"a,8,8,8",0,1\n"b,8,8,8",2,3\n"c,8,8,8",4,5\n')
    np.testing.assert_array_equal(read_table(path, ColumnChoice("1-2")).samples, X)


@pytest.mark.parametrize("read", [read_table, column_names, lambda path: line_of(path, 0)])
def test_a_file_that_cannot_be_split_is_refused(tmp_path, read):
    (tmp_path / "a.csv").write_bytes(b'x,y\n"' + b"1;2;" * 40_000)
    message = "must be a table of numbers: field larger than .* Repair the quotes in it"
    with pytest.raises(ValueError, match=message):
        read(tmp_path / "a.csv")


def test_a_long_line_with_another_delimiter_is_refused_as_a_short_one(tmp_path):
    row = ";".join(["0.12345"] * 20_000)
    (tmp_path / "a.csv").write_text(f"{row}\n{row}\n")
    with pytest.raises(ValueError, match="line 2 has semicolons"):
        read_table(tmp_path / "a.csv")


@pytest.mark.parametrize(
    ("name", "text", "names"),
    [
        ("a.txt", "# x y\n0 1\n2 3\n4 5\n", ["x", "y"]),
        ("a.txt", "# made by hand today\n0.0 1\n2 3\n4 5\n", []),
        ("a.csv", '\n"x, in m","y"\n"0","1"\n2,3\n\n4,5\n', ["x, in m", "y"]),
        ("a.csv", "x\n0,1\n2,3\n4,5\n", []),
    ],
)
def test_names_are_found_in_comments_and_quotes(tmp_path, name, text, names):
    path = tmp_path / name
    path.write_text(text)
    np.testing.assert_array_equal(read_table(path).samples, X)
    assert column_names(path) == names


def test_lines_are_counted_as_an_editor_counts_them(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("# made today\nx,y\n\n0,1\n# half time\n2,3\n")
    assert [line_of(path, row) for row in (0, 1, 2)] == [4, 6, None]
    assert line_of(tmp_path / "a.parquet", 0) is None


def test_another_table_is_read_by_the_names_of_the_first(tmp_path, table):
    columns = Columns((1, 2), 3, ("x", "y"), np.array([1.0, 10.0]), np.array([2.0, 4]))
    path = tmp_path / "new.csv"
    path.write_text("y,z,x\n14,0,3\n18,0,5\n")
    np.testing.assert_array_equal(read_like(path, columns), [[1, 1], [2, 2]])
    path.write_text("y,z\n14,0\n")
    with pytest.raises(ValueError, match="the columns of the run: there is no column"):
        read_like(path, columns)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (f'1,"{"x" * 200_000}"', "field larger than field limit"),
        ("1,2\0", "line 61, column 1 holds '2.x00'"),
        ("1,2,3", "line 61 has 3 cells, and the first row has 2"),
    ],
)
def test_a_row_that_is_no_row_of_numbers_is_refused_in_one_line(tmp_path, row, message):
    (tmp_path / "a.csv").write_text("1,2\n" * 60 + f"{row}\n")
    with pytest.raises(ValueError, match=rf"a.csv must be a table .*{message}") as error:
        read_table(tmp_path / "a.csv")
    assert "\n" not in str(error.value)


def test_a_pipe_in_place_of_a_table_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "x.csv")
    with pytest.raises(ValueError, match=r"must be a file; .*x.csv is a named pipe"):
        column_names(tmp_path / "x.csv")
