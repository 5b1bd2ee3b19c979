import datetime

import numpy as np
import pandas
import pytest

from manifactor._support.parameters import (
    require_choice,
    require_columns_of_numbers,
    require_count,
    require_indices,
    require_number,
)


def test_what_is_right_passes():
    require_choice("method", "a", ["a", "b"])
    require_number("width", 1, low=1, high=1)
    require_number("width", np.float32(0.5), above=0)
    assert type(require_count("size", np.int64(3), low=1, high=3)) is int
    require_indices("exclude", (1, 3), low=1, high=3, of="functions")
    require_indices("exclude", [], low=1, high=3, of="functions")


def refused(check, message, *arguments, **limits):
    with pytest.raises(ValueError, match=message):
        check(*arguments, **limits)


def test_what_is_wrong_is_refused_with_what_would_be_right():
    for value in ("c", None, 3, ["a"]):
        refused(require_choice, "`m` must be one of 'a', 'b'; got ", "m", value, ["a", "b"])
        refused(require_choice, "'a' or a number; got ", "m", value, ["a"], "or a number")
    for value in (True, "1", None, np.nan, np.inf, 3.5, -1):
        message = r"`width` must be a number in \[0, 2\]; got "
        refused(require_number, message, "width", value, low=0, high=2)
    refused(require_number, "must be a number above 0; got 0", "width", 0, above=0)
    for value in (True, 2.0, "2", None, 0, 4):
        message = r"`size` must be a whole number in \[1, 3\]; got .* with 9 samples. Change it"
        refused(require_count, message, "size", value, low=1, high=3, n_samples=9)
    limits = {"low": 1, "high": 3, "of": "functions"}
    refused(require_indices, "a sequence of indices of functions; got 3", "exclude", 3, **limits)
    refused(require_indices, r"whole number in \[1, 3\]; got 4", "exclude", [1, 4], **limits)


def test_a_data_frame_with_text_or_dates_is_refused_by_their_columns():
    frame = pandas.DataFrame({"x": [0.5, 1.5], "n": [1, 2], "s": ["1", "2"]})
    require_columns_of_numbers(frame)
    require_columns_of_numbers(frame.astype({"n": "Int64"}))
    frame = frame.assign(kind=["1", "red"], when=pandas.Timestamp("2020-01-01"))
    message = r"column 'kind' holds 'red'. .*drop\(columns=\['kind', 'when'\]\)"
    with pytest.raises(ValueError, match=message):
        require_columns_of_numbers(frame)


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        (pandas.Timestamp("2020-01-02", tz="Europe/Berlin"), "2020-01-02 00:00:00"),
        (pandas.Period("2020-01", "M"), "2020-01'"),
        (datetime.date(2020, 1, 2), "2020-01-02'"),
        (pandas.Interval(0, 1), r"\(0"),
        ([1, 2], r"\[1, 2\]"),
        (np.ones(2), r"\[1"),
    ],
)
def test_a_cell_that_is_no_number_is_refused_after_missing_ones(cell, shown):
    X = pandas.DataFrame({"x": [0.5, 1.5], 7: pandas.Series([None, cell])})
    message = rf"column 7 holds '{shown}.*X.drop\(columns=\[7\]\)\.$"
    with pytest.raises(ValueError, match=message):
        require_columns_of_numbers(X)
