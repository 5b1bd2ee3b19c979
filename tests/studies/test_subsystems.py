"""The study of subsystems: its recordings and its table."""

import numpy as np
import pytest

from studies.subsystems import LAG, well_chain

pytestmark = pytest.mark.nightly


@pytest.mark.parametrize("name", ["ring", "wells"])
def test_chains_keep_their_density_and_forget_at_the_slowest_rate(name):
    x, density, cumulative, rate = well_chain(name)
    moves = np.diff(cumulative, axis=1, prepend=0)
    visited = density > 1e-12
    np.testing.assert_allclose(cumulative[visited, -1], 1)
    moves[~visited] = 0
    np.testing.assert_allclose(density @ moves, density, atol=1e-9)
    # In a double well the slowest function is odd, on the ring it has one wave.
    start = np.where(x > 0, 1.0, -1.0) if name == "wells" else np.cos(x)
    one, two = (density * start @ np.linalg.matrix_power(moves, k) @ start for k in (2, 3))
    assert -np.log(two / one) / LAG == pytest.approx(rate, rel=1e-3)
