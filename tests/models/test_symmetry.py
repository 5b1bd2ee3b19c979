"""Continuous symmetries of shapes whose symmetries are known."""

import numpy as np
import pytest

from manifactor.datasets.products import rotations
from manifactor.datasets.shapes import LatticeTorus
from manifactor.models.separable.commuting import killing_tensors
from manifactor.models.separable.separation import _geometries
from manifactor.models.separable.symmetry import Symmetries, find_symmetries
from manifactor.operators.operator import DiffusionSettings
from manifactor.operators.pipeline import diffuse

from ..factoring.places import ring, sphere

pytestmark = pytest.mark.medium


def geometries(X):
    """The geometry of samples, and of halves of them."""
    rng = np.random.default_rng(0)
    return _geometries(diffuse(X, DiffusionSettings(n_functions=41, n_jobs=1), rng=rng), rng)


def symmetries(X, dimension=2):
    """The symmetries of samples."""
    whole, *halves = geometries(X)
    return find_symmetries(whole, halves, dimension)


def n_tensors(geometry, most, dimension=2):
    """Number of tensors, up to the largest gap in the logarithm of their mu."""
    mu = killing_tensors(geometry, dimension).mu
    return 2 + np.argmax(mu[2 : most + 1] / mu[1:most])


def test_a_sphere_has_three_symmetries_and_six_tensors():
    whole, *halves = geometries(sphere(np.random.default_rng(0), 2000))
    found = find_symmetries(whole, halves, 2)
    assert (found.count, found.name, str(found)) == (3, "sphere", "a sphere")
    assert n_tensors(whole, 12) == 6


def test_a_ball_of_five_dimensions_measured_as_four_is_not_a_sphere():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 5))
    X *= rng.random((1000, 1)) ** 0.2 / np.linalg.norm(X, axis=1, keepdims=True)
    found = symmetries(X, dimension=4)
    assert (found.count, found.name) == (10, None)


def test_a_solid_spheroid_has_one_symmetry_and_three_tensors():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(6000, 3))
    whole, *halves = geometries(X[np.linalg.norm(X, axis=1) < 1] * [0.5, 0.5, 1])
    assert find_symmetries(whole, halves, 3).count == 1
    assert n_tensors(whole, 8, dimension=3) == 3


def test_a_rectangle_has_no_symmetries_and_two_tensors():
    whole, *halves = geometries(np.random.default_rng(0).uniform(size=(2000, 2)) * [1, 0.7])
    assert str(find_symmetries(whole, halves, 2)) == "no continuous symmetries"
    assert n_tensors(whole, 12) == 2


def test_rotations_have_six_symmetries_and_are_not_a_sphere():
    found = symmetries(rotations(1800, np.random.RandomState(0))[0], dimension=3)
    assert (found.count, found.name) == (6, "SO(3)")


@pytest.mark.parametrize(("hole", "name"), [(0.4, "body of revolution"), (0.0, "disc")])
def test_an_annulus_and_a_disc_have_one(hole, name):
    square, angle = np.random.default_rng(0).uniform(
        [[hole**2], [0]], [[1], [2 * np.pi]], (2, 2000)
    )
    found = symmetries(np.sqrt(square)[:, None] * ring(angle))
    assert (found.count, found.name) == (1, name)


@pytest.mark.parametrize(("degrees", "length"), [(60, 1.0), (75, 1.3)])
def test_the_lattice_of_a_flat_torus_is_found(degrees, length):
    X, places = LatticeTorus(degrees, length)(2000, np.random.RandomState(0))
    found = symmetries(X)
    assert (found.count, found.name) == (2, "flat torus")
    assert found.lattice_angle == pytest.approx(degrees, abs=2)
    assert found.ratio == pytest.approx(length, abs=0.05)
    assert str(found).startswith("a flat torus, lattice angle ")
    # Each true angle is a sum of whole multiples of the angles found, up to a shift.
    waves = np.exp(1j * found.angles)
    for place in places:
        truth = place @ [1, 1j]
        agreement = [
            abs((truth * waves[:, 0] ** a * waves[:, 1] ** b).mean())
            for a in (-1, 0, 1)
            for b in (-1, 0, 1)
        ]
        assert max(agreement) > 0.98


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (Symmetries(6, "SO(3)"), "SO(3)"),
        (Symmetries(1), "1 continuous symmetry"),
        (Symmetries(2, "flat torus", 60.2, 0.4, 1.0), "lattice angle 60 +- 1 degrees"),
    ],
)
def test_words(found, words):
    assert words in str(found)


def test_an_unevenly_sampled_sphere_is_a_sphere():
    rng = np.random.default_rng(0)
    X = sphere(rng, 4000)
    found = symmetries(X[rng.random(4000) < np.exp(X[:, 0] - 1)][:1500])
    assert (found.count, found.name) == (3, "sphere")
