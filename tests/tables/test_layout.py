"""Tables in text: which first line holds names, and which delimiter is expected."""

import warnings

import numpy as np
import pandas
import pytest

from manifactor import ColumnWarning
from manifactor.tables.columns import ColumnChoice
from manifactor.tables.files import read_table
from manifactor.tables.text import layout_of

X = np.random.default_rng(0).uniform(size=(6, 3))
FRAME = pandas.DataFrame(X)


def layout(folder, text, name="a.csv"):
    path = folder / name
    path.write_text(text)
    return layout_of(path)


@pytest.mark.parametrize(
    "text",
    [
        "0,1\n.3,.4\n",
        "0\n.3\n",
        ",0,1\n0,.3,.4\n",
        ",0\n0,.3\n",
        ",2005,2006\n0,.3,.4\n",
        ",0,1\ns1,.3,.4\n",
        "name,0,1\ns1,.3,.4\n",
        "id,8,length\n0,.3,.4\n",
        "id,400.5,401\n0,.3,.4\n",
    ],
)
def test_a_line_of_names_may_hold_numbers(tmp_path, text):
    found = layout(tmp_path, text)
    assert found.header == 1
    assert found.numbers_in_names


@pytest.mark.parametrize(
    "text",
    [
        "0.0,1\n.3,.4\n",
        "1,2\n.3,.4\n",
        "1,\n.3,.4\n",
        ",.1,.2\n0,.3,.4\n",
        "NA,.2\n.3,.4\n",
        "NA,NA\n.3,.4\n",
        ",?\n.3,.4\n",
        "NA,0,1\n.3,.4,.5\n",
        "0,NA\n.3,.4\n",
        "s0,.1,.2\ns1,.3,.4\n",
        "s0,0\ns1,.4\n",
        "# x,y\n0,1\n.3,.4\n",
    ],
)
def test_a_sample_with_text_or_a_gap_is_no_line_of_names(tmp_path, text):
    assert layout(tmp_path, text).header == 0


def test_numbered_columns_of_pandas_are_names_and_no_sample(tmp_path):
    path = tmp_path / "a.csv"
    FRAME.to_csv(path, index=False)
    with pytest.warns(ColumnWarning, match="taken for the names .* '0', '1', '2'. If"):
        found = read_table(path)
    np.testing.assert_allclose(found.samples, X)
    assert found.columns.names == ("0", "1", "2")


@pytest.mark.parametrize("label", ["{}", "s{}"])
def test_the_index_of_pandas_is_left_out_unless_it_is_chosen(tmp_path, label):
    path = tmp_path / "a.csv"
    frame = FRAME.set_axis([label.format(k) for k in range(6)]).add_prefix("x")
    frame.to_csv(path)
    with pytest.warns(ColumnWarning, match="has no name and was left out, as the ind"):
        found = read_table(path)
    np.testing.assert_allclose(found.samples, X)
    assert found.columns.numbers == (1, 2, 3)
    with warnings.catch_warnings(action="error"):
        assert read_table(path, ColumnChoice("1-2")).columns.names == ("x0", "x1")


def test_a_column_without_a_name_gets_that_of_pandas(tmp_path):
    assert layout(tmp_path, "x,,y\n1,a,2\n").names == ("x", "Unnamed: 1", "y")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "a;b\n.1;.2\n", r"line 2 has semicolons\. .*sep=';'\)"),
        ("a.csv", ".1;.2\n.3;.4\n", "semicolons.*sep=';'"),
        ("a.csv", "a;b\n0,1;0,2\n", "semicolons and decimal commas.*decimal=','"),
        ("a.csv", "a\tb\n.1\t.2\n", "must have commas .* has tabs"),
        ("a.tsv", "a,b\n.1,.2\n", "must have tabs .* has commas"),
        ("a.txt", ".1, .2\n.3, .4\n", "must have white space .* has commas"),
        ("a.txt", "a b\n0,1 0,2\n", "has white space and decimal commas"),
        ("a.csv", "a;b\nr1;.1;.2\n", "line 2 has semicolons"),
        ("a.csv", "a b\n.1  .2\n", "must have commas .* line 2 has white space"),
        ("a.csv", "a b\n0,1 0,2\n", "has white space and decimal commas"),
        ("a.tsv", ".1 .2\n.3 .4\n", "has white space.*sep=.*s"),
        ("a.csv", "1,2;3,4\n", "line 1 has semicolons and decimal commas"),
    ],
)
def test_another_delimiter_is_named(tmp_path, name, text, message):
    with pytest.raises(ValueError, match=message):
        layout(tmp_path, text, name)


@pytest.mark.parametrize("text", ['x,y\n"0,123",5\n', 'x,y\n"1,234","2,5"\n', 'x,y\n"1,234",5\n'])
def test_numbers_with_commas_are_refused(tmp_path, text):
    with pytest.raises(ValueError, match=r"and decimal commas\. .*, decimal=','\)"):
        layout(tmp_path, text)


@pytest.mark.parametrize(
    "text",
    [
        'id,tags,x\n3,"1;2, 3",.5\n',
        "x,y,z\n1.0,2.0,3;4;5;6;7;8\n",
        "x,z\n1,2;3\n",
        "my list,z\n1 2,3\n",
        "1.0,2.0,3;4;5;6;7;8\n1.5,2.5,3\n",
    ],
)
def test_other_delimiters_inside_of_text_do_not_matter(tmp_path, text):
    assert layout(tmp_path, text).total == 1 + text.split("\n")[0].count(",")


def test_spaces_inside_of_text_between_tabs_do_not_matter(tmp_path):
    assert layout(tmp_path, "list\tx\n1 2\t3\n", "a.tsv").total == 2
