"""The study of factors of dynamics: its problems and its table."""

import numpy as np
import pytest

from studies import dynamics
from studies.dynamics import GROUPS, LINE, RING, random_map, record, render

pytestmark = pytest.mark.nightly


@pytest.mark.parametrize("view", [("warp", 0.3), ("network", 1.5), ("shear", 0.5)])
def test_maps_are_smooth_and_the_same_for_a_seed(rng, view):
    u = rng.random((50, 2))
    one, other = (random_map((RING, LINE), view, np.random.default_rng(1)) for _ in range(2))
    assert np.array_equal(one(u), other(u))
    assert np.abs(one(u + 1e-6) - one(u)).max() < 1e-4


def test_the_table_counts_solved_fits_of_each_group(monkeypatch):
    monkeypatch.setitem(GROUPS, "shear", [lambda seed: _small(seed)])
    one = record("shear", 0, 3)
    assert one["seed"] == 3
    other = {**one, "seed": 4, "solved": not one["solved"]}
    row = next(line for line in render([one, other]).splitlines() if line.startswith("| shear"))
    assert row.startswith("| shear | 2 | 1 |")


def _small(seed):
    return dynamics.of_trajectory(
        (LINE, LINE), ("shear", 0.5), seed, n_steps=1000, step=0.06, n_fitted=300
    )
