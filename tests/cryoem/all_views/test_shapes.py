"""Which motions noisy principal coordinates show."""

import numpy as np
import pytest

from manifactor.cryoem.all_views.motions import Motions
from manifactor.cryoem.all_views.placing import even_places
from manifactor.cryoem.all_views.principal import by_chance, compare_spaces
from manifactor.cryoem.all_views.shapes import Judge, Shape, finest
from manifactor.cryoem.all_views.transforms import VolumeGrid
from manifactor.samples.likelihood import GaussianLikelihood

N = 2400
ALL = np.arange(N)


@pytest.fixture(scope="module")
def ring():
    """Places on a circle, and coordinates with noise of half its radius that differs in views."""
    rng = np.random.default_rng(0)
    at = rng.random(N)
    angle = 2 * np.pi * at
    states = np.sqrt(2) * np.column_stack([np.cos(angle), np.sin(angle)])
    variance = rng.uniform(0.2, 0.8, (N, 2))
    seen = states + np.sqrt(variance) * rng.standard_normal((N, 2))
    return (
        at,
        GaussianLikelihood.of_samples(seen, np.array([np.diag(each) for each in variance])),
        seen,
        states,
    )


@pytest.fixture(scope="module")
def judge(ring):
    _, told, seen, _ = ring
    return Judge(told, seen, ALL, np.random.default_rng(0))


@pytest.mark.medium
def test_a_circle_tells_as_much_as_a_density_and_an_interval_less(ring, judge):
    at = ring[0][:, None]
    circle, error, _ = judge.share(finest(("circle",), N), at)
    along = even_places(ring[3][:, 0])[:, None]
    interval, _, bare = judge.share(finest(("interval",), N), along)
    assert bare < interval
    assert circle > 1 - 3 * error
    assert interval < circle - 10 * error


@pytest.mark.slow
def test_a_motion_that_is_noise_tells_nothing_more(ring, judge):
    noise = np.random.default_rng(1).random(N)
    circle, error, _ = judge.share(finest(("circle",), N), ring[0][:, None])
    both, _, _ = judge.share(finest(("circle", "interval"), N), np.column_stack([ring[0], noise]))
    assert both < circle + 2 * error


@pytest.mark.slow
def test_what_spreads_about_a_circle_is_no_motion(ring):
    rng = np.random.default_rng(3)
    spread = np.diag([0.02, 0.02, 1])
    states = np.column_stack([ring[3], np.zeros(N)])
    states = states + rng.multivariate_normal(np.zeros(3), spread, N)
    seen = states + np.sqrt(0.1) * rng.standard_normal((N, 3))
    told = GaussianLikelihood.of_samples(seen, np.tile(0.1 * np.eye(3), (N, 1, 1)))
    judge = Judge(told, seen, ALL, rng)
    circle, error, bare = judge.share(Motions(("circle",)), ring[0][:, None])
    shape = Shape.learn(told, Motions(("circle",)), ALL, ring[0][:, None])
    np.testing.assert_allclose(shape.spread[2, 2], 1, rtol=0.1)
    assert circle > 1 - 3 * error > bare
    places = np.column_stack([ring[0], even_places(seen[:, 2])])
    both, _, _ = judge.share(finest(("circle", "interval"), N), places)
    assert both < circle + 2 * error


def test_coordinates_along_the_motion_are_nearer_to_the_true_ones(ring):
    at, told, seen, states = ring
    shape = Shape.learn(told, Motions(("circle",)), ALL, at[:, None])
    found = shape.coordinates(told)
    assert np.square(found - states).mean() < 0.7 * np.square(seen - states).mean()
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), np.sqrt(2), rtol=0.1)


def noisy_volumes(shared, seed):
    """Three volumes of noise that is stronger at low resolution, and three times what is shared."""
    grid, rng = VolumeGrid(9, 4.0), np.random.default_rng(seed)
    field = rng.standard_normal((4, *3 * (grid.side,))) + 3 * shared
    return grid, grid.bound(np.fft.fftshift(np.fft.fftn(field, axes=(1, 2, 3))).reshape(4, -1))


@pytest.mark.medium
def test_volumes_of_noise_agree_as_much_as_by_chance_and_shared_ones_more():
    (grid, first), (_, second) = noisy_volumes(0, 1), noisy_volumes(0, 2)
    chance = by_chance(first, second, grid)
    assert compare_spaces(first, second)[0][0] < 2 * chance
    shared = np.random.default_rng(3).standard_normal((4, *3 * (grid.side,)))
    (_, first), (_, second) = noisy_volumes(shared, 1), noisy_volumes(shared, 2)
    assert compare_spaces(first, second)[0].min() > 2 * by_chance(first, second, grid)
