"""The molecule of two moving parts, the distribution of its motions, and the ion channel."""

import numpy as np
import pytest

from manifactor.cryoem.simulate.molecule import Motion


@pytest.mark.parametrize("correlation", [-1.0, 0.0, 0.6])
def test_motions_are_uniform_and_the_copula_correlates_angle_and_x_stretch(correlation):
    angle, stretch = Motion("xy", correlation, 4, 40.0, 0.0).draw(20000, np.random.default_rng(0))
    levels = np.linspace(0.05, 0.95, 10)
    np.testing.assert_allclose(np.quantile(angle, levels), np.pi / 2 * levels, atol=0.02)
    for along in stretch.T:
        np.testing.assert_allclose(np.quantile(along, levels), 40 * (2 * levels - 1), atol=1.2)
    found = np.corrcoef(np.c_[angle, stretch].T)
    assert found[0, 1] == pytest.approx(6 / np.pi * np.arcsin(correlation / 2), abs=0.02)
    np.testing.assert_allclose(found[2, :2], 0, atol=0.02)
