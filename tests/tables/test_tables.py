"""Tables: which columns are used, names, delimiters, columns of text, and wrong cells."""

import json

import numpy as np
import pytest

from manifactor import ColumnWarning
from manifactor.tables.columns import ColumnChoice, Columns
from manifactor.tables.files import column_names, read_like, read_table
from manifactor.tables.text import layout_of, line_of

TEXT = "id,x,y\na1,0,1\nb2,2,3\nc3,4,5\n"
X = np.arange(6.0).reshape(3, 2)


@pytest.fixture
def write(tmp_path):
    def path_of(text, name="a.csv"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return path_of


# Which columns are used, and their scale.

NAMES = ["id", "length", "width", "10"]


@pytest.mark.parametrize(
    ("columns", "drop", "numbers"),
    [
        (None, None, (0, 1, 2, 3)),
        ("width,length", None, (1, 2)),
        ("0, 2-3", None, (0, 2, 3)),
        (None, "id", (1, 2, 3)),
        ("0-2", "length", (0, 2)),
        ("10", None, (3,)),
    ],
)
def test_columns_are_given_by_name_number_or_range(columns, drop, numbers):
    assert ColumnChoice(columns, drop).numbers(NAMES, 4) == numbers


@pytest.mark.parametrize(
    ("choice", "names", "message"),
    [
        (ColumnChoice("widht"), NAMES, "--columns: there is no column 'widht'; the nearest"),
        (ColumnChoice(drop="zzz"), NAMES, "--drop: there is no .*; there are 'id', 'length', "),
        (ColumnChoice("4"), NAMES, "--columns: columns are numbered from 0 to 3; got 4"),
        (ColumnChoice("2-1"), NAMES, "got 2-1. A range goes from the lower"),
        (ColumnChoice("x"), None, "have no names; give numbers from 0 to 3"),
        (ColumnChoice(drop="0-3"), NAMES, "--drop must leave at least one column"),
        (ColumnChoice(labels=("a",)), NAMES, "the columns of the run: there is no"),
        # A record of many columns takes no memory.
        (Columns(range(10**15), 10**15).choice, None, "of the run: columns are numbered"),
    ],
)
def test_a_column_that_does_not_exist_is_refused(choice, names, message):
    with pytest.raises(ValueError, match=message):
        choice.numbers(names, 4)


def test_columns_come_back_from_their_record():
    columns = Columns((1, 2), 4, ("a,b", "c"), np.array([1.0, 2.0]), np.array([3.0, 4]))
    again = Columns.from_record(json.loads(json.dumps(columns.record)))
    assert again.choice.numbers(["x", "a,b", "c", "y"], 4) == (1, 2)
    np.testing.assert_array_equal(again.scaled(np.ones((1, 2))), [[0, -0.25]])
    everything = Columns(range(2), 2)
    assert everything.record == Columns((0, 1), 2).record
    assert everything.record["numbers"] is None
    assert Columns.from_record(everything.record) == everything
    assert everything.choice.numbers(None, 3) == (0, 1)


def test_columns_are_scaled_unless_they_are_constant_or_vanish(rng):
    samples = np.c_[rng.uniform(size=50) * 1000, np.full(50, 0.1)]
    columns = Columns(range(2), 2).standardised(samples)
    np.testing.assert_allclose(columns.scaled(samples).std(axis=0), [1, 0], atol=1e-12)
    assert columns.scale[1] == 1
    samples[:, 1] = rng.uniform(size=50) * 1e-200
    with pytest.raises(ValueError, match=r"those of column 'b' differ by .*e-201. Leave"):
        Columns(range(2), 2, ("a", "b")).standardised(samples)


# The line of names.


NAMED = """0,1|.3,.4  0|.3  ,0,1|0,.3,.4  ,0|0,.3  ,2005,2006|0,.3,.4  ,0,1|s1,.3,.4
name,0,1|s1,.3,.4  id,8,length|0,.3,.4  id,400.5,401|0,.3,.4"""
# A sample with text or a gap is not a line of names.
UNNAMED = """0.0,1|.3,.4  1,2|.3,.4  1,|.3,.4  ,.1,.2|0,.3,.4  NA,.2|.3,.4  NA,NA|.3,.4
,?|.3,.4  NA,0,1|.3,.4,.5  0,NA|.3,.4  s0,.1,.2|s1,.3,.4  s0,0|s1,.4  # x,y|0,1|.3,.4"""


@pytest.mark.parametrize(("texts", "header"), [(NAMED, 1), (UNNAMED, 0)])
def test_a_line_of_names_may_hold_numbers(write, texts, header):
    for text in texts.replace("\n", "  ").split("  "):
        assert layout_of(write(text.replace("|", "\n"))).header == header, text


@pytest.mark.parametrize(
    ("name", "text", "names"),
    [
        ("a.txt", "# x y\n0 1\n2 3\n4 5\n", ["x", "y"]),
        ("a.txt", "# made by hand today\n0.0 1\n2 3\n4 5\n", []),
        ("a.csv", '\n"x, in m","y"\n"0","1"\n2,3\n\n4,5\n', ["x, in m", "y"]),
        ("a.csv", "x\n0,1\n2,3\n4,5\n", []),
        ("a.csv", '"#id","y"\n0,1\n2,3\n4,5\n', ["#id", "y"]),
    ],
)
def test_names_are_found_in_comments_and_quotes(write, name, text, names):
    path = write(text, name)
    np.testing.assert_array_equal(read_table(path).samples, X)
    assert column_names(path) == names


# Delimiters and encodings.


@pytest.mark.parametrize(
    ("content", "found", "code"),
    [
        ("x,y\n1,2\n3,4 \N{DEGREE SIGN}\n".encode("latin-1"), "line 3 has the byte 0xb0", "latin1"),
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


# Columns of text, and cells that are not numbers.


def test_columns_of_text_are_left_out_with_a_warning(write):
    with pytest.warns(ColumnWarning, match="hold text were left out: 'id'"):
        found = read_table(write(TEXT))
    np.testing.assert_array_equal(found.samples, X)
    assert found.columns == Columns((1, 2), 3, ("x", "y"))


@pytest.mark.parametrize(
    ("text", "columns", "message"),
    [
        ("x,y\n1,2\n3,blue\n5,\n7,8\n9,10\n", None, "line 3, column 'y' holds 'blue', and 1 more"),
        ("x,y\n1,2\n\n3,\n4,5\n", None, "line 4, column 'y' is empty. Fill it in, remove the row"),
        ("1,2\n3,a\n5,6\n", None, "line 2, column 1 holds 'a'"),
        (TEXT, "id", "line 2, column 'id' holds 'a1'"),
        ("a,b\nc,d\ne,f\n", None, "all columns hold text"),
        ("x,y\n1,2\n3\n", None, "line 3 has 1 cells, and the first row has 2"),
        ("1,2\n" * 60 + "3,4,5\n", None, "line 61 has 3 cells"),
        ("1,2\n" * 60 + "1,2\0\n", None, "line 61, column 1 holds '2.x00'"),
        ("1,2\n" * 60 + f'1,"{"x" * 200_000}"\n', None, ".*field larger than field limit"),
    ],
)
def test_a_cell_that_is_no_number_is_named(write, text, columns, message):
    with pytest.raises(ValueError, match=f"must be a table of numbers: {message}") as error:
        read_table(write(text), ColumnChoice(columns))
    assert "\n" not in str(error.value)


def test_lines_are_counted_as_an_editor_counts_them(write, tmp_path):
    path = write("# made today\nx,y\n\n0,1\n# half time\n2,3\n")
    assert [line_of(path, row) for row in (0, 1, 2)] == [4, 6, None]
    assert line_of(tmp_path / "a.parquet", 0) is None


def test_another_table_is_read_by_the_names_of_the_first(write):
    columns = Columns((1, 2), 3, ("x", "y"), np.array([1.0, 10.0]), np.array([2.0, 4]))
    path = write("y,z,x\n14,0,3\n18,0,5\n")
    np.testing.assert_array_equal(read_like(path, columns), [[1, 1], [2, 2]])
    path.write_text("y,z\n14,0\n")
    with pytest.raises(ValueError, match="the columns of the run: there is no column"):
        read_like(path, columns)
