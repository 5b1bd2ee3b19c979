import pickle

import numpy as np
import pytest
from scipy import stats

from manifactor import datasets
from manifactor.datasets.problems import KINDS, extent
from manifactor.datasets.products import (
    Interval,
    Sphere,
    beta,
    bumps,
    circle,
    exponential,
    gap,
    normal,
    uneven,
    von_mises,
    wells,
)


def drawn(part, n_samples=4000):
    return part(n_samples, np.random.RandomState(0))


def angles(latents):
    return np.arctan2(latents[:, 1], latents[:, 0])


def test_a_member_of_a_family_has_its_keywords_as_text_and_travels_to_other_processes():
    part = uneven(circle(2.0), wells(3.0, tilt=0.5))
    law = "Wells(barrier=3.0, tilt=0.5, count=3)"
    assert str(part) == f"Uneven(part=Sphere(radius=2.0, ambient=2), density={law})"
    np.testing.assert_array_equal(drawn(pickle.loads(pickle.dumps(part)))[0], drawn(part)[0])


@pytest.mark.parametrize("part", [Interval(3.0), circle(2.0), Sphere(0.5)])
def test_no_two_points_are_farther_apart_than_the_extent(part):
    X, _ = drawn(part, 400)
    distances = np.linalg.norm(X[:, None] - X, axis=2)
    assert 0.95 * extent(part) < distances.max() <= extent(part) + 1e-12


@pytest.mark.parametrize(
    "density", [beta(2, 5), bumps(0.12), von_mises(2.0), wells(3.0, 0.5), gap(0.1, 0.45)]
)
def test_densities_are_probabilities_of_keeping_a_sample(density):
    values = density(np.linspace(0, 1, 1001))
    assert values.min() >= 0
    assert 0.5 <= values.max() <= 1


@pytest.mark.parametrize(
    ("part", "scale", "latent", "law"),
    [
        (uneven(Interval(3.0), beta(2, 5)), 3.0, np.ravel, stats.beta(2, 5)),
        (uneven(circle(2.0), von_mises(1.5)), 2.0, angles, stats.vonmises(1.5)),
        (normal(0.5), 0.5, np.ravel, stats.norm()),
        (exponential(4.0), 4.0, np.ravel, stats.expon()),
    ],
)
def test_latents_follow_the_distribution_and_points_are_latents_in_units(part, scale, latent, law):
    points, latents = drawn(part)
    np.testing.assert_allclose(points, scale * latents)
    assert stats.kstest(latent(latents), law.cdf).pvalue > 0.01


def test_wells_are_as_deep_as_their_barrier():
    place = np.linspace(0, 1, 1201)
    energy = -np.log(wells(2.0, 0.0)(place))
    assert np.ptp(energy) == pytest.approx(2.0)
    minima = (energy[1:-1] < energy[:-2]) & (energy[1:-1] < energy[2:])
    assert minima.sum() == 3
    tilted = -np.log(wells(2.0, tilt=0.5)(place[[200, 600, 1000]]))
    assert len(np.unique(tilted.round(3))) == 3


# Random problems.


@pytest.fixture
def small(monkeypatch):
    """Let problems have 40 to 60 samples."""
    monkeypatch.setattr("manifactor.datasets.problems.N_SAMPLES", (40, 60))


@pytest.mark.usefixtures("small")
def test_random_problems_are_of_every_kind_and_say_whether_product_is_right():
    problems = [datasets.random_problem(seed) for seed in range(100)]
    np.testing.assert_array_equal(datasets.random_problem(7).X, problems[7].X)
    # The problems that the calibration and the probabilities rest on.
    sums = [np.abs(problem.X).sum() + np.abs(problem.truth[0]).sum() for problem in problems]
    assert np.log(sums).sum() == pytest.approx(874.4235756400492, rel=1e-9)
    assert {len(problem.truth) for problem in problems} == {1, 2, 3}
    assert {problem.kind for problem in problems} == {*KINDS, "irreducible"}
    scales = [np.abs(problem.X).max() for problem in problems]
    assert max(scales) > 1e9 * min(scales)
    for problem in problems:
        several = len(problem.truth) > 1
        assert problem.product == (several and problem.kind != "near")
        assert np.isfinite(problem.X).all()
        assert all(len(latents) == len(problem.X) for latents in problem.truth)


def irreducible(name):
    """Return the first random problem of an irreducible shape."""
    problems = (datasets.random_problem(seed) for seed in range(200))
    return next(each for each in problems if each.description.startswith(f"{name}, "))


@pytest.mark.medium
@pytest.mark.usefixtures("small")
def test_an_ellipsoid_has_two_pairs_of_coordinates_and_other_shapes_have_none():
    pairs = irreducible("ellipsoid").coordinates
    assert [[each.shape[1] for each in pair] for pair in pairs] == [[1, 2], [1, 2]]
    for name in ("sphere", "triangle", "moebius", "cloud2", "solid_ellipsoid"):
        assert irreducible(name).coordinates == ()


def test_random_problems_have_800_to_6000_samples():
    assert all(800 <= len(datasets.random_problem(seed).X) <= 6000 for seed in range(3))


@pytest.mark.usefixtures("small")
def test_even_problems_are_products_or_simple_irreducible_shapes():
    problems = [datasets.random_problem(seed, kinds="even") for seed in range(40)]
    assert {problem.kind for problem in problems} == {"even", "irreducible"}
    # The same problems as before there were other kinds.
    circles = "Sphere(radius=0.868, ambient=2) x Sphere(radius=1.235, ambient=2)"
    assert problems[7].description.startswith(circles)
    assert problems[7].X.shape == (41, 7)
    with pytest.raises(ValueError, match="`kinds` must be one of"):
        datasets.random_problem(0, kinds="odd")
