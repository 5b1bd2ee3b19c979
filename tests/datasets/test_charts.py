import numpy as np
from scipy import stats

from manifactor import datasets
from manifactor.datasets.charts import vase


def test_elliptic_coordinates_are_those_of_the_samples_and_samples_are_even_by_area():
    X, (across, around) = datasets.sample("ellipse", 4000, random_state=0)
    u = across[:, 0] * np.arctanh(0.6)
    np.testing.assert_allclose(X, 0.8 * np.c_[np.cosh(u), np.sinh(u)] * around)
    assert (X[:, 0] ** 2 + (X[:, 1] / 0.6) ** 2).max() <= 1
    np.testing.assert_allclose((X**2).mean(axis=0), [1 / 4, 0.36 / 4], rtol=0.05)


def test_an_annulus_is_even_by_area():
    X, (radius, angle) = datasets.sample("annulus", 4000, random_state=0)
    r = 0.4 + 0.6 * radius
    np.testing.assert_allclose(X, r * angle)
    assert stats.kstest((r[:, 0] ** 2 - 0.16) / 0.84, "uniform").pvalue > 0.01


def test_a_vase_has_the_radius_of_its_height_and_is_even_by_area():
    X, (place, _) = vase(0.3, 1.25, 0.5, 4.0)(4000, np.random.RandomState(0))
    t = place[:, 0]
    np.testing.assert_allclose(X[:, 2], 4 * t)
    np.testing.assert_allclose(np.hypot(X[:, 0], X[:, 1]), 1 + 0.3 * np.cos(2.5 * np.pi * t + 0.5))
    grid = np.linspace(0, 1, 2001)
    slope = -0.3 * 2.5 * np.pi * np.sin(2.5 * np.pi * grid + 0.5)
    area = (1 + 0.3 * np.cos(2.5 * np.pi * grid + 0.5)) * np.hypot(slope, 4)
    cumulative = np.cumsum(area) / area.sum()
    assert stats.kstest(t, lambda x: np.interp(x, grid, cumulative)).pvalue > 0.01


def test_the_hexagonal_torus_is_flat_with_an_angle_of_60_degrees():
    torus = datasets.SHAPES["hexagonal_torus"]
    waves, amplitudes = torus._isometry()
    metric = (2 * np.pi * amplitudes[:, None] * waves).T @ (2 * np.pi * amplitudes[:, None] * waves)
    np.testing.assert_allclose(metric, np.eye(2), atol=1e-12)
    first, second = torus.lattice
    lengths = np.linalg.norm(torus.lattice, axis=1)
    np.testing.assert_allclose(lengths, 1)
    np.testing.assert_allclose(first @ second, 0.5)
    # Three equal circles, 60 degrees apart.
    np.testing.assert_allclose(amplitudes, amplitudes[0])
