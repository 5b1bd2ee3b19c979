import numpy as np
import pytest

from manifactor import datasets
from manifactor.datasets import warps
from manifactor.datasets.field import CONFORMAL
from manifactor.datasets.warps import PROFILES, Revolution


@pytest.mark.parametrize("name", sorted(CONFORMAL))
def test_conformal_maps_stretch_all_directions_alike(name):
    shape = CONFORMAL[name]
    u = np.linspace(*shape.real, 7)
    v = np.linspace(*shape.imaginary, 7)
    z = (u[:, None] + 1j * v).ravel()
    h = 1e-6
    along = (shape.mapping(z + h) - shape.mapping(z - h)) / (2 * h)
    across = (shape.mapping(z + 1j * h) - shape.mapping(z - 1j * h)) / (2 * h)
    stretch = np.linalg.norm(along, axis=1)
    np.testing.assert_allclose(np.linalg.norm(across, axis=1), stretch, rtol=1e-6)
    np.testing.assert_allclose((along * across).sum(axis=1), 0, atol=1e-6)
    # A warp, not a rigid motion.
    assert stretch.max() > 1.4 * stretch.min()


def test_both_coordinates_before_the_map_are_uniform_and_independent():
    _, (u, turn) = datasets.sample("mercator_map", 4000, random_state=0)
    assert u.shape == (4000, 1)
    assert turn.shape == (4000, 2)
    np.testing.assert_allclose(turn.mean(axis=0), 0, atol=0.05)
    assert abs(np.corrcoef(u[:, 0], turn[:, 0])[0, 1]) < 0.05


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
    for mapping in (warps.stereographic, warps.mercator):
        np.testing.assert_allclose(np.linalg.norm(mapping(z), axis=1), 1)
