import numpy as np
import pytest

from manifactor._support import values
from manifactor._support.values import ceil_div, quotient, require_spread, require_values

LARGEST = np.finfo(float).max


@pytest.mark.parametrize(
    ("X", "place"),
    [
        (np.array([[0.0, 1.0], [np.nan, np.inf]]), "2 .* first in row 1, column 0"),
        (np.array([0.0, -np.inf]), "1 .* first in entry 1"),
        (np.array([0.0, 1.0, np.inf, -np.inf]), "2 .* first in entry 2"),
        (np.array([LARGEST, np.nan]), "1 .* first in entry 1"),
    ],
)
def test_values_that_are_not_finite_are_counted_and_placed(X, place):
    with pytest.raises(ValueError, match=f"`X` must be finite; got {place}. Remove"):
        require_values(X)


@pytest.mark.parametrize("value", [LARGEST, -LARGEST, 1e154, -1e151])
def test_a_value_whose_square_overflows_is_named_as_a_mark_for_missing_ones(value):
    X = np.zeros((4, 3))
    X[2, 1] = X[3, 0] = value
    with pytest.raises(ValueError, match=r"must be smaller than 1e\+150") as error:
        require_values(X, first_row=10)
    said = f"got 2 that are not, the first, {value:.2g}, in row 12, column 1. Such a "
    assert said + "number is a usual mark for missing values: remove" in str(error.value)


def test_values_that_are_kept_have_finite_sums_of_squares():
    for dtype, largest in ((np.float64, values.LARGEST), (np.float32, values.LARGEST_SINGLE)):
        largest = np.array(largest, dtype)
        # A difference is twice as large as its ends; of 10^6 columns.
        assert np.isfinite(dtype(1e6) * (2 * largest) ** 2)


def test_samples_that_differ_by_less_than_their_squares_show_are_refused(rng):
    X = rng.normal(size=(50, 2)) * 1e-160
    with pytest.raises(ValueError, match="differ by more than 1e-150"):
        require_spread(X)
    # A column of a large number hides nothing of the others.
    with pytest.raises(ValueError, match="differ by more than 1e-150"):
        require_spread(np.c_[X, np.full(50, 7.0)])
    require_spread(X * 1e20)
    require_spread(np.zeros((50, 2)))  # copies are told from each other elsewhere


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_quotient_by_0_is_0_or_very_large_and_never_nan(dtype):
    found = quotient(np.array([0, 1, 1e10], dtype=dtype), np.zeros(3, dtype=dtype))
    assert found.dtype == dtype
    assert found[0] == 0
    assert (found[1:] > 1e30).all()
    assert quotient(1.0, 4.0) == 0.25
    assert quotient(0.0, 0.0) == 0


def test_a_quotient_is_rounded_up():
    assert [ceil_div(n, 4) for n in (0, 1, 8, 10)] == [0, 1, 2, 3]
