import numpy as np
import pytest
from scipy import stats

from manifactor.datasets.irreducible import Cloud, Ellipsoid, Frustum, SolidEllipsoid


def samples(shape, n_samples=4000):
    return shape(n_samples, np.random.RandomState(0))[0]


def test_an_ellipsoid_of_two_equal_axes_is_uniform_in_area():
    X = samples(Ellipsoid((1.0, 1.0, 2.0)))
    np.testing.assert_allclose((X**2 / [1, 1, 4]).sum(axis=1), 1)
    z = np.linspace(-2, 2, 2001)
    # Circumference times the length of the meridian for each step of z.
    area = np.sqrt(1 - z**2 / 4 + z**2 / 16)
    cumulative = np.cumsum(area) / area.sum()
    assert stats.kstest(X[:, 2], lambda x: np.interp(x, z, cumulative)).pvalue > 0.01


def test_a_solid_ellipsoid_is_uniform_in_volume():
    X = samples(SolidEllipsoid((1.0, 1.5, 2.0))) / [1, 1.5, 2]
    cubed = np.linalg.norm(X, axis=1) ** 3
    assert stats.kstest(cubed, "uniform").pvalue > 0.01


def test_a_frustum_is_a_sector_of_an_annulus_rolled_up():
    X = samples(Frustum(0.4, 10.0))
    radius = np.hypot(X[:, 0], X[:, 1])
    np.testing.assert_allclose(X[:, 2], 10 * (1 - radius) / 0.6)
    share = (radius**2 - 0.16) / 0.84
    assert stats.kstest(share, "uniform").pvalue > 0.01


@pytest.mark.parametrize("correlation", [0.0, 0.3])
def test_columns_of_a_cloud_have_variance_one_and_the_correlation(correlation):
    X = samples(Cloud(3, correlation))
    expected = np.eye(3)
    expected[0, 1] = expected[1, 0] = correlation
    np.testing.assert_allclose(np.cov(X.T), expected, atol=0.05)
