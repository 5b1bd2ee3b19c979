import numpy as np
import pytest

from manifactor.cryoem.simulate.molecule import Motion


def test_angles_and_stretches_are_uniform():
    angle, stretch = Motion("xy", 0.6, 4, 40.0).draw(20000, np.random.default_rng(0))
    quantiles = np.linspace(0.05, 0.95, 10)
    np.testing.assert_allclose(np.quantile(angle, quantiles), np.pi / 2 * quantiles, atol=0.02)
    np.testing.assert_allclose(
        np.quantile(stretch, quantiles, axis=0)[:, 0], 40 * (2 * quantiles - 1), atol=1.2
    )
    np.testing.assert_allclose(
        np.quantile(stretch, quantiles, axis=0)[:, 1], 40 * (2 * quantiles - 1), atol=1.2
    )


@pytest.mark.parametrize("correlation", [-1.0, -0.5, 0.0, 0.6, 1.0])
def test_the_copula_correlates_angle_and_x_stretch_alone(correlation):
    angle, stretch = Motion("xy", correlation, 4, 40.0).draw(20000, np.random.default_rng(0))
    found = np.corrcoef(np.c_[angle, stretch].T)
    assert found[0, 1] == pytest.approx(6 / np.pi * np.arcsin(correlation / 2), abs=0.02)
    np.testing.assert_allclose(found[2, :2], 0, atol=0.02)
