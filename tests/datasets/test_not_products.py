import numpy as np
import pytest
from scipy import stats

from manifactor import datasets
from manifactor.datasets.not_products import (
    MAPS,
    PROFILES,
    Cloud,
    CutCorner,
    Ellipsoid,
    Frustum,
    Hole,
    LatticeTorus,
    Revolution,
    Scene,
    SolidEllipsoid,
    Stadium,
    shifting,
    turning,
)
from studies.families import ellipsoid


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


def test_an_ellipsoid_has_the_same_confocal_coordinates_along_its_longest_and_shortest_axis():
    chart = ellipsoid(3.0, 2.0, 1.0)
    X, (along, around) = chart(500, np.random.RandomState(0))
    first, second = Ellipsoid((2.0, 1.0, 3.0)).coordinates(X[:, [1, 2, 0]])
    np.testing.assert_allclose(first[0], np.cos(np.pi * along), atol=1e-9)
    np.testing.assert_allclose(first[1], around, atol=1e-9)
    # Only the side that the middle axis tells belongs to another coordinate.
    np.testing.assert_allclose(second[0][:, 0], first[1][:, 1])
    np.testing.assert_allclose(second[1][:, 0], first[0][:, 0])
    np.testing.assert_allclose((second[1] ** 2).sum(axis=1), 1)
    np.testing.assert_array_equal(np.sign(second[1][:, 1]), np.sign(X[:, 1]))


@pytest.mark.parametrize("correlation", [0.0, 0.3])
def test_columns_of_a_cloud_have_variance_one_and_the_correlation(correlation):
    X = samples(Cloud(3, correlation))
    expected = np.eye(3)
    expected[0, 1] = expected[1, 0] = correlation
    np.testing.assert_allclose(np.cov(X.T), expected, atol=0.05)


@pytest.mark.parametrize(
    ("shape", "area"),
    [
        (CutCorner((2.0, 1.0), 0.5), 2 - 0.125),
        (Hole((2.0, 1.0), 0.3), 2 - np.pi * 0.09),
        (Stadium((2.0, 1.0)), 1 + np.pi / 4),
    ],
)
def test_carved_rectangles_lack_as_much_area_as_they_say(shape, area):
    grid = np.stack(np.meshgrid(*[(np.arange(400) + 0.5) / 400] * 2), axis=-1)
    inside = shape.contains(grid.reshape(-1, 2) * shape.sides)
    assert 2 * inside.mean() == pytest.approx(area, rel=0.003)
    X, (first, second) = shape(500, np.random.RandomState(0))
    assert shape.contains(X).all()
    np.testing.assert_allclose(X, np.hstack([first, second]) * shape.sides)


@pytest.mark.parametrize("degrees", [65.0, 80.0, 90.0, 110.0])
def test_the_lattice_torus_is_isometric(degrees):
    torus = LatticeTorus(degrees, length=1.3)
    X, places = torus(200, np.random.RandomState(0))
    turns = np.array([np.arctan2(p[:, 1], p[:, 0]) for p in places]).T / (2 * np.pi)
    # Nearby on the torus: the shortest of the differences by lattice vectors.
    step = turns[:, None] - turns
    flat = np.linalg.norm((step - step.round()) @ torus.lattice, axis=2)
    straight = np.linalg.norm(X[:, None] - X, axis=2)
    near = (flat > 0) & (flat < 0.05)
    assert near.sum() > 50
    np.testing.assert_allclose(straight[near], flat[near], rtol=0.01)


@pytest.mark.parametrize("name", sorted(datasets.FIELD["conformal"]))
def test_conformal_maps_stretch_all_directions_alike(name):
    shape = datasets.FIELD["conformal"][name]
    u = np.linspace(*shape.real, 7)
    v = np.linspace(*shape.imaginary, 7)
    z = (u[:, None] + 1j * v).ravel()
    h = 1e-6
    points = MAPS[shape.mapping]
    along, across = ((points(z + step) - points(z - step)) / (2 * h) for step in (h, 1j * h))
    stretch = np.linalg.norm(along, axis=1)
    np.testing.assert_allclose(np.linalg.norm(across, axis=1), stretch, rtol=1e-6)
    np.testing.assert_allclose((along * across).sum(axis=1), 0, atol=1e-6)
    # A warp, not a rigid motion.
    assert stretch.max() > 1.4 * stretch.min()


@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_radii_of_a_surface_of_revolution_vary_by_the_ratio(profile):
    radius = PROFILES[profile](np.linspace(0, 1, 101), 3.0)
    assert radius.min() == pytest.approx(1)
    assert radius.max() == pytest.approx(3)
    X, (t, around) = Revolution(profile, 3.0, 5.0)(50, np.random.RandomState(0))
    np.testing.assert_allclose(X[:, 2:], 5 * t)
    expected = PROFILES[profile](t, 3.0) * around
    np.testing.assert_allclose(X[:, :2], expected)


def test_the_sphere_s_maps_end_on_the_sphere():
    z = np.array([0.3 + 0.2j, -1.0 + 2.0j])
    for name in ("stereographic", "mercator"):
        np.testing.assert_allclose(np.linalg.norm(MAPS[name](z), axis=1), 1)


LEFT, MIDDLE, RIGHT = (-0.5, 0.0), (0.0, 0.0), (0.5, 0.0)
TWO_TURNING = ((turning, LEFT, 0.7), (turning, RIGHT, 0.7))


@pytest.mark.parametrize("ratio", [1, 30])
def test_variances_of_objects_apart_have_the_ratio(ratio):
    # Small enough that none of the bright object reaches into the other half.
    scene = Scene(((turning, LEFT, 0.4), (shifting, RIGHT, 0.4)), ratio)
    X, truth = scene(300, np.random.RandomState(0))
    assert [t.shape[1] for t in truth] == [2, 1]
    by_pixel = X.reshape(-1, 24, 24).var(axis=0)
    bright, dim = by_pixel[:, :12].sum(), by_pixel[:, 12:].sum()
    assert bright / dim == pytest.approx(ratio, rel=0.05)


def test_variances_between_the_first_and_the_last_object_are_evenly_spaced():
    places = [(-0.5, -0.5), (0.5, -0.5), (0.0, 0.5)]
    X = samples(Scene([(turning, place, 0.4) for place in places], 100), 300)
    rows = X.reshape(-1, 24, 24).var(axis=0)
    thirds = [rows[:12, :12].sum(), rows[:12, 12:].sum(), rows[12:].sum()]
    np.testing.assert_allclose(thirds, [1, 0.1, 0.01], rtol=0.2)


def test_what_lies_behind_the_first_object_is_not_seen():
    objects = ((turning, MIDDLE, 0.7), (shifting, MIDDLE, 0.3))
    alone, covered = (samples(Scene(objects, 1.0, occluding=covers), 300) for covers in (0, 1))
    assert (covered <= alone + 1e-12).all()
    assert (covered < 0.5 * alone).any()


def test_noise_is_relative_to_the_deviation_of_the_pixels():
    clean, noisy = (samples(Scene(TWO_TURNING, 1.0, noise=noise), 300) for noise in (0.0, 0.5))
    deviation = np.sqrt(clean.var(axis=0).mean())
    assert np.std(noisy - clean) == pytest.approx(0.5 * deviation, rel=0.02)
