import json

import numpy as np
import pytest

from manifactor.tables.columns import ColumnChoice, Columns

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
        (
            ColumnChoice("widht"),
            NAMES,
            "--columns: there is no column 'widht'; the nearest are 'width'",
        ),
        (
            ColumnChoice(drop="zzz"),
            NAMES,
            "--drop: there is no column 'zzz'; there are 'id', 'length', 'width', '10'",
        ),
        (ColumnChoice("4"), NAMES, "--columns: columns are numbered from 0 to 3; got 4"),
        (ColumnChoice("2-1"), NAMES, "lower number to the higher one; got 2-1. Write 1-2"),
        (ColumnChoice("x"), None, "have no names; give numbers from 0 to 3"),
        (ColumnChoice(drop="0-3"), NAMES, "--drop must leave at least one column"),
        (ColumnChoice(labels=("a",)), NAMES, "the columns of the run: there is no"),
    ],
)
def test_a_column_that_does_not_exist_is_refused(choice, names, message):
    with pytest.raises(ValueError, match=message):
        choice.numbers(names, 4)


def test_columns_come_back_from_their_record():
    columns = Columns((1, 2), 4, ("a,b", "c"), np.array([1.0, 2.0]), np.array([3.0, 4]))
    record = json.loads(json.dumps(columns.record))
    again = Columns.from_record(record)
    assert again.choice.numbers(["x", "a,b", "c", "y"], 4) == (1, 2)
    np.testing.assert_array_equal(again.scaled(np.ones((1, 2))), [[0, -0.25]])
    everything = Columns(range(2), 2)
    assert everything.record == Columns((0, 1), 2).record
    assert everything.record["numbers"] is None
    assert Columns.from_record(everything.record) == everything
    assert everything.choice.numbers(None, 3) == (0, 1)


def test_a_record_of_many_columns_takes_no_memory():
    everything = Columns(range(10**15), 10**15)
    again = Columns.from_record(everything.record)
    with pytest.raises(ValueError, match="of the run: columns are numbered from 0 to 3"):
        again.choice.numbers(None, 4)


def test_constant_columns_are_not_scaled(rng):
    samples = np.c_[rng.uniform(size=50) * 1000, np.full(50, 0.1)]
    columns = Columns(range(2), 2).standardised(samples)
    np.testing.assert_allclose(columns.scaled(samples).std(axis=0), [1, 0], atol=1e-12)
    assert columns.scale[1] == 1


def test_columns_whose_deviation_vanishes_are_not_scaled_but_named(rng):
    samples = np.c_[rng.uniform(size=50), rng.uniform(size=50) * 1e-200]
    with pytest.raises(ValueError, match=r"those of column 'b' differ by .*e-201. Leave"):
        Columns(range(2), 2, ("a", "b")).standardised(samples)
