import numpy as np
import pytest

from manifactor._support.values import quotient


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_quotient_by_0_is_0_or_very_large_and_never_nan(dtype):
    found = quotient(np.array([0, 1, 1e10], dtype=dtype), np.zeros(3, dtype=dtype))
    assert found.dtype == dtype
    assert found[0] == 0
    assert (found[1:] > 1e30).all()


def test_a_quotient_of_numbers_is_a_number():
    assert quotient(1.0, 4.0) == 0.25
    assert quotient(0.0, 0.0) == 0
    assert quotient(1e10, 0.0) > 1e300
