"""Places on motions, the volumes of motions, and whether places mean the same in all views."""

import numpy as np
import pytest

from manifactor._support.stages import Stages
from manifactor.cryoem.all_views.motions import Motions
from manifactor.cryoem.all_views.placing import (
    learn,
    learn_known,
    place_particles,
    unexplained,
    view_consistency,
)
from manifactor.cryoem.all_views.regression import FeatureMoments
from manifactor.samples.likelihood import GaussianLikelihood

from .molecules import BODY, moving, random_rotations, transforms_of, turning

pytestmark = pytest.mark.medium

BOTH = Motions(("circle", "interval"), ((2, 0), (0, 2), (1, 1)))
N_FEATURES = 9  # constant; cosine, sine, twice; x, x^2; x cosine, x sine


def test_features_of_even_places_are_uncorrelated_and_close_at_the_end_of_a_circle():
    features = BOTH.features(BOTH.grid)
    products = features.T @ features / len(features)
    np.testing.assert_allclose(products, np.eye(features.shape[1]), atol=0.01)
    ends = np.array([[0.0, 0.3], [1.0, 0.3]])
    np.testing.assert_allclose(*BOTH.features(ends), atol=1e-12)


def test_products_of_two_motions_follow_their_factors():
    two = Motions(("interval", "interval"))
    assert (1, 1) in two.grow().terms
    assert (2, 1) not in two.grow().terms
    assert (2, 1) in two.grow().grow().terms
    # (1, 2) needs (1, 1), which is not there.
    assert (1, 2) not in two.with_terms([(0, 2)]).grow().terms


def noisy_likelihood(places, strength, rng):
    """The likelihood of features that were measured with noise."""
    features = BOTH.features(places)
    n_features = features.shape[1]
    noise = rng.standard_normal(features.shape) / np.sqrt(strength)
    quadratic = np.repeat(strength * np.eye(n_features)[None], len(places), axis=0)
    return GaussianLikelihood(strength * (features + noise), quadratic)


def test_ends_are_where_the_places_end_and_not_their_posteriors():
    rng = np.random.default_rng(2)
    places = np.column_stack([rng.uniform(size=2500), rng.uniform(0.1, 0.8, size=2500)])
    *_, cells = BOTH.posterior(noisy_likelihood(places, 15.0, rng))
    edges = np.linspace(0, 1, cells.shape[2] + 1)

    def ends(shares):
        below = np.append(0, np.cumsum(shares))
        return np.interp([0.005, 0.995], below, edges)

    shares = BOTH.shares(cells, np.zeros(N_FEATURES))
    np.testing.assert_allclose(ends(shares[1]), [0.1035, 0.7965], atol=0.02)
    assert np.all(np.abs(ends(cells.mean(axis=0)[1]) - [0.1035, 0.7965]) > 0.025)


@pytest.mark.parametrize("strength", [3.0, 30.0, 3000.0])
def test_deviations_are_the_size_of_the_errors(strength):
    rng = np.random.default_rng(1)
    places = rng.uniform(size=(1500, 2))
    found, deviations, *_ = BOTH.posterior(noisy_likelihood(places, strength, rng))
    error = found - places
    error[:, 0] = (error[:, 0] + 0.5) % 1 - 0.5
    ratio = np.sqrt((error**2).mean(axis=0) / (deviations**2).mean(axis=0))
    assert np.all((ratio > 0.85) & (ratio < 1.15))


CIRCLE = Motions(("circle",), ((2,), (3,), (4,), (5,), (6,)))


def test_a_part_that_turns_does_so_at_constant_speed_whatever_the_places():
    warped = CIRCLE.grid + 0.04 * np.sin(2 * np.pi * CIRCLE.grid)
    # Harmonics of a turn are orthogonal volumes, fainter the higher they are.
    power = np.repeat(0.2 ** np.arange(7), [1, *6 * [2]])
    known = CIRCLE.features(CIRCLE.grid)
    mixing = np.linalg.lstsq(known, CIRCLE.features(warped), rcond=None)[0]
    lengths = CIRCLE.lengths((mixing * power) @ mixing.T)
    straight = CIRCLE.at_lengths(CIRCLE.grid, lengths)
    np.testing.assert_allclose(straight - straight[0], warped - warped[0], atol=0.003)
    # Volumes follow: the matrix undoes that of the warp.
    turned = CIRCLE.mixing(lengths) @ mixing
    np.testing.assert_allclose((np.abs(turned[1:5, 1:5]) ** 2).sum(axis=1), 1, atol=0.05)


TWO = Motions(("interval", "interval"))
TURN_AND_SHIFT = Motions(("circle", "interval"))


def moved(places, *, blobs):
    """The body, with one blob moved along x and one along z."""
    points = np.repeat(BODY[None], len(places), axis=0)
    points[:, blobs[0], 0] += 0.2 * (places[:, 0] - 0.5)
    points[:, blobs[1], 2] += 0.2 * (places[:, 1] - 0.5)
    return points


def images_of(blobs, count=800):
    places = np.random.default_rng(2).uniform(size=(count, 2))
    points = moved(places, blobs=blobs)
    images = transforms_of(points, random_rotations(count), noise=1.0, scale=10.0)
    return images, places


@pytest.mark.parametrize(("blobs", "product"), [((0, 0), True), ((0, 3), False)])
def test_motions_of_the_same_part_have_products(blobs, product):
    images, places = images_of(blobs)
    learned = learn_known(images, TWO, places)
    assert ((1, 1) in learned.motions.terms) is product


def test_volumes_are_improved_by_what_they_leave():
    images, places = images_of((0, 3), count=600)
    features = FeatureMoments.known(TWO.features(places))
    first = learn(images, TWO, TWO, features)
    second = learn(images, TWO, TWO, features, first.halves)
    noise = [unexplained(learned)[0].mean() for learned in (first, second)]
    assert noise[1] - 1 < 0.8 * (noise[0] - 1)


def test_motions_that_images_do_not_show_add_no_terms():
    images, places = images_of((0, 3))
    others = np.random.default_rng(5).uniform(size=places.shape)
    learned = learn_known(images, TWO, others)
    assert learned.motions.added == ()
    # No volume is left of the first terms, which stay.
    mean, *others = np.linalg.norm(learned.halves[0], axis=1)
    assert np.all(np.array(others) < 0.1 * mean)


def turned_images(rotations, seed=0):
    """Images of a molecule that turns, with places on the turn and on nothing."""
    places = np.random.default_rng(seed).uniform(size=(len(rotations), 2))
    points = turning(2 * np.pi * places[:, 0])
    images = transforms_of(points, rotations, noise=1.0, scale=3.0, seed=seed)
    return images, FeatureMoments.known(TURN_AND_SHIFT.features(places))


def test_a_motion_that_images_do_not_show_has_no_consistency():
    turn, nothing = view_consistency(*turned_images(random_rotations(1000)), TURN_AND_SHIFT)
    assert turn > 0.8
    assert np.isnan(nothing)


def test_views_along_one_axis_do_not_tell():
    rotations = random_rotations(10_000)
    near = rotations[np.abs(rotations[:, 2, 2]) > np.cos(np.radians(10))]
    assert np.isnan(view_consistency(*turned_images(near), TURN_AND_SHIFT)).all()


@pytest.mark.nightly  # "deviations are the size of the errors" is the same of known features
def test_errors_are_as_large_as_stated_and_an_interval_ends_where_particles_do():
    images, truth = images_of((0, 3), count=1200)
    even = Motions(("interval", "interval"))
    found = place_particles(images, even, np.arange(1200), truth**1.3, stages=Stages())
    error = found.places - truth
    # Places by arc length, although the start had another density.
    ratio = np.sqrt((error**2).mean(axis=0) / (found.deviations**2).mean(axis=0))
    assert np.all((ratio > 0.8) & (ratio < 1.25))


def test_errors_of_poses_are_measured():
    places = np.random.default_rng(0).uniform(size=(1200, 1))
    points = turning(2 * np.pi * places[:, 0])
    images = transforms_of(points, random_rotations(1200), noise=1.0, scale=3.0)
    features = FeatureMoments.known(CIRCLE.features(places))
    vectors = np.radians(4.0) * np.random.default_rng(3).standard_normal((1200, 3))
    exact, off = (
        unexplained(learn(each, CIRCLE, CIRCLE, features))[1]
        for each in (images, images.turn(vectors))
    )
    assert exact[0] < np.radians(1.0)
    np.testing.assert_allclose(np.degrees(off[0]), 4.0, rtol=0.35)


def side_views(count):
    """Rotations whose views lie near the equator."""
    rotations = random_rotations(8 * count, seed=4)
    near = np.abs(rotations[:, 2, 2]) < 0.3
    return rotations[near][:count]


def drifting(places, rotations):
    """Places whose zero turns with the azimuth of the view, as where views are chained
    by their likeness: neighbouring views agree, all together do not."""
    azimuth = np.arctan2(rotations[:, 2, 1], rotations[:, 2, 0]) / (2 * np.pi)
    return np.column_stack([(places[:, 0] + 2 * azimuth) % 1, places[:, 1]])


def test_places_that_drift_with_the_view_are_found_out():
    rotations = side_views(660)
    images, places = moving(660, rotations=rotations)
    right, wrong = (
        view_consistency(
            images, FeatureMoments.known(TURN_AND_SHIFT.features(given)), TURN_AND_SHIFT
        )
        for given in (places, drifting(places, rotations))
    )
    assert right[0] > 0.8
    assert wrong[0] < 0.2
