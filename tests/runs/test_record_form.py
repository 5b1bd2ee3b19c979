from typing import Any

import numpy as np
import pytest

from manifactor.runs.record_form import Checked, misfit

SHARES = Checked([float], lambda shares: sum(shares) <= 1)
ENTRY = {"name": str, "shares?": (SHARES, None)}


@pytest.mark.parametrize(
    ("value", "hint", "found"),
    [
        (1, float, ""),
        (np.float64(1), float, ""),
        (1.0, int, "x has another type"),
        (True, int, "x has another type"),
        (True, bool, ""),
        (10**400, float, "x has another type"),
        (None, int | None, ""),
        ("1", int | None, "x has another type"),
        (np.zeros(3), np.ndarray | None, ""),
        ({"a": 1, "b": "2"}, dict[str, int], "x.b has another type"),
        ({1: 1}, dict[str, int], "x.1 has another type"),
        ((1, 2, "3"), tuple[int, ...], "x.2 has another type"),
        ((1,), tuple[int, str], "x.1 is missing"),
        ((1, "2", 3), tuple[int, str], "x.2 is one too many"),
        ([1], tuple[int, ...], "x has another type"),
        ({"name": "a", "further": object()}, ENTRY, ""),
        ({"shares": None}, ENTRY, "x.name is missing"),
        ({"name": "a", "shares": [0.5, "0.5"]}, ENTRY, "x.shares.1 has another type"),
        ({"name": "a", "shares": [0.5, 0.6]}, ENTRY, "x.shares has an impossible value"),
        ({"a": {"name": 1}}, {str: ENTRY}, "x.a.name has another type"),
        (object(), Any, ""),
    ],
)
def test_the_part_of_a_value_that_has_another_type_is_named(value, hint, found):
    assert misfit(value, hint, "x") == found
