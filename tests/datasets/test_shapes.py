"""Shapes that are not products of lengths, and images of objects."""

import numpy as np
import pytest
from scipy import stats

from manifactor import datasets
from manifactor.datasets.shapes import (
    MAPS,
    Ellipsoid,
    cloud,
    frustum,
    scene,
    shifting,
    solid_ellipsoid,
    turning,
    vase,
)


def drawn(shape, n_samples=4000):
    return shape(n_samples, np.random.RandomState(0))


def cumulative(grid, area):
    """The distribution function of a density on a grid."""
    return lambda x: np.interp(x, grid, np.cumsum(area) / area.sum())


def around_ellipsoid():
    """Along the long axis of an ellipsoid with two equal ones: circumference times meridian."""
    X, z = drawn(Ellipsoid((1.0, 1.0, 2.0)))[0], np.linspace(-2, 2, 2001)
    np.testing.assert_allclose((X**2 / [1, 1, 4]).sum(axis=1), 1)
    return X[:, 2], cumulative(z, np.sqrt(1 - z**2 / 4 + z**2 / 16))


def in_solid_ellipsoid():
    X = drawn(solid_ellipsoid((1.0, 1.5, 2.0)))[0] / [1, 1.5, 2]
    return np.linalg.norm(X, axis=1) ** 3, "uniform"


def on_frustum():
    """A sector of an annulus, rolled up."""
    X = drawn(frustum(0.4, 10.0))[0]
    radius = np.hypot(X[:, 0], X[:, 1])
    np.testing.assert_allclose(X[:, 2], 10 * (1 - radius) / 0.6)
    return (radius**2 - 0.16) / 0.84, "uniform"


def in_annulus():
    X, (radius, angle) = datasets.sample("annulus", 4000, random_state=0)
    r = 0.4 + 0.6 * radius
    np.testing.assert_allclose(X, r * angle)
    return (r[:, 0] ** 2 - 0.16) / 0.84, "uniform"


def on_vase():
    X, (place, _) = drawn(vase(0.3, 1.25, 0.5, 4.0))
    t, grid = place[:, 0], np.linspace(0, 1, 2001)
    np.testing.assert_allclose(X[:, 2], 4 * t)
    np.testing.assert_allclose(np.hypot(X[:, 0], X[:, 1]), 1 + 0.3 * np.cos(2.5 * np.pi * t + 0.5))
    slope = -0.3 * 2.5 * np.pi * np.sin(2.5 * np.pi * grid + 0.5)
    area = (1 + 0.3 * np.cos(2.5 * np.pi * grid + 0.5)) * np.hypot(slope, 4)
    return t, cumulative(grid, area)


@pytest.mark.parametrize(
    "shape", [around_ellipsoid, in_solid_ellipsoid, on_frustum, in_annulus, on_vase]
)
def test_samples_are_where_they_should_be_and_even_by_area_or_volume(shape):
    assert stats.kstest(*shape()).pvalue > 0.01


def test_elliptic_coordinates_are_those_of_the_samples_and_samples_are_even_by_area():
    X, (across, around) = datasets.sample("ellipse", 4000, random_state=0)
    u = across[:, 0] * np.arctanh(0.6)
    np.testing.assert_allclose(X, 0.8 * np.c_[np.cosh(u), np.sinh(u)] * around)
    assert (X[:, 0] ** 2 + (X[:, 1] / 0.6) ** 2).max() <= 1
    np.testing.assert_allclose((X**2).mean(axis=0), [1 / 4, 0.36 / 4], rtol=0.05)


@pytest.mark.parametrize("correlation", [0.0, 0.3])
def test_columns_of_a_cloud_have_variance_one_and_the_correlation(correlation):
    expected = np.eye(3)
    expected[0, 1] = expected[1, 0] = correlation
    np.testing.assert_allclose(np.cov(drawn(cloud(3, correlation))[0].T), expected, atol=0.05)


def test_the_hexagonal_torus_is_flat_with_an_angle_of_60_degrees():
    torus = datasets.SHAPES["hexagonal_torus"]
    waves, amplitudes = torus._isometry()
    scaled = 2 * np.pi * amplitudes[:, None] * waves
    np.testing.assert_allclose(scaled.T @ scaled, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(torus.lattice @ torus.lattice.T, [[1, 0.5], [0.5, 1]])
    # Three equal circles, 60 degrees apart.
    np.testing.assert_allclose(amplitudes, amplitudes[0])


@pytest.mark.parametrize("name", sorted(datasets.FIELD["conformal"]))
def test_conformal_maps_stretch_all_directions_alike(name):
    keywords = datasets.FIELD["conformal"][name].keywords
    u = np.linspace(*keywords["real"], 7)
    v = np.linspace(*keywords["imaginary"] or (0, 2 * np.pi), 7)
    z = (u[:, None] + 1j * v).ravel()
    h = 1e-6
    points = MAPS[keywords["mapping"]]
    along, across = ((points(z + step) - points(z - step)) / (2 * h) for step in (h, 1j * h))
    stretch = np.linalg.norm(along, axis=1)
    np.testing.assert_allclose(np.linalg.norm(across, axis=1), stretch, rtol=1e-6)
    np.testing.assert_allclose((along * across).sum(axis=1), 0, atol=1e-6)
    # A warp, not a rigid motion.
    assert stretch.max() > 1.4 * stretch.min()


def test_the_sphere_s_maps_end_on_the_sphere():
    z = np.array([0.3 + 0.2j, -1.0 + 2.0j])
    for name in ("stereographic", "mercator"):
        np.testing.assert_allclose(np.linalg.norm(MAPS[name](z), axis=1), 1)


# Images of objects.


def test_what_lies_behind_the_first_object_is_not_seen():
    front = {"motions": (turning, shifting), "ratio": 1.0, "centres": ((0, 0), (0, 0))}
    alone, covered = (drawn(scene(**front, occluding=covers), 300)[0] for covers in (0, 1))
    assert (covered <= alone + 1e-12).all()
    assert (covered < 0.5 * alone).any()


def test_noise_is_relative_to_the_deviation_of_the_pixels():
    clean, noisy = (drawn(scene((turning,) * 2, 1.0, noise=n), 300)[0] for n in (0.0, 0.5))
    deviation = np.sqrt(clean.var(axis=0).mean())
    assert np.std(noisy - clean) == pytest.approx(0.5 * deviation, rel=0.02)
