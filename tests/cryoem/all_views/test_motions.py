"""Places on motions: features, posteriors and their deviations."""

import numpy as np
import pytest

from manifactor.cryoem.all_views.motions import Motions
from manifactor.cryoem.all_views.regression import Likelihood

BOTH = Motions(("circle", "interval")).grown()
N_FEATURES = 9  # constant; cosine, sine, twice; x, x^2; x cosine, x sine


def test_features_of_even_places_are_uncorrelated_and_of_unit_variance():
    features = BOTH.features(BOTH.grid)
    products = features.T @ features / len(features)
    np.testing.assert_allclose(products, np.eye(features.shape[1]), atol=0.01)


def test_features_of_a_circle_close_at_its_end():
    ends = np.array([[0.0, 0.3], [1.0, 0.3]])
    np.testing.assert_allclose(*BOTH.features(ends), atol=1e-12)


def test_own_terms_depend_on_one_motion_alone():
    places = np.random.default_rng(0).uniform(size=(50, 2))
    others = places.copy()
    others[:, 0] = 0.5
    unchanged = np.ptp(BOTH.features(places) - BOTH.features(others), axis=0) == 0
    own = BOTH.own_columns(1)
    # The first column is the constant.
    assert np.flatnonzero(unchanged)[1:].tolist() == own.tolist()


def test_products_of_two_motions_follow_their_factors():
    two = Motions(("interval", "interval"))
    assert (1, 1) in two.grown().terms
    assert (2, 1) not in two.grown().terms
    assert (2, 1) in two.grown().grown().terms
    # (1, 2) needs (1, 1), which is not there.
    assert (1, 2) not in two.with_terms([(0, 2)]).grown().terms


def noisy_likelihood(places, strength, rng):
    """The likelihood of features that were measured with noise."""
    features = BOTH.features(places)
    n_features = features.shape[1]
    noise = rng.standard_normal(features.shape) / np.sqrt(strength)
    quadratic = np.repeat(strength * np.eye(n_features)[None], len(places), axis=0)
    return Likelihood(strength * (features + noise), quadratic)


@pytest.mark.parametrize("strength", [3.0, 30.0, 3000.0])
def test_deviations_are_the_size_of_the_errors(strength):
    rng = np.random.default_rng(1)
    places = rng.uniform(size=(4000, 2))
    found, deviations, *_ = BOTH.posterior(noisy_likelihood(places, strength, rng))
    error = found - places
    error[:, 0] = (error[:, 0] + 0.5) % 1 - 0.5
    ratio = np.sqrt((error**2).mean(axis=0) / (deviations**2).mean(axis=0))
    assert np.all((ratio > 0.85) & (ratio < 1.15))


def test_an_image_that_shows_nothing_has_the_deviation_of_even_places():
    nothing = Likelihood(np.zeros((1, N_FEATURES)), np.zeros((1, N_FEATURES, N_FEATURES)))
    _, deviations, mean, _ = BOTH.posterior(nothing)
    np.testing.assert_allclose(deviations, np.sqrt(1 / 12), rtol=0.01)
    np.testing.assert_allclose(mean[0], np.eye(N_FEATURES)[0], atol=0.01)


def test_images_are_placed_one_by_one():
    rng = np.random.default_rng(2)
    terms = noisy_likelihood(rng.uniform(size=(2100, 2)), 1000.0, rng)
    # Blocks of images begin elsewhere.
    part = slice(1900, None)
    expected = BOTH.posterior(terms)[0][part]
    np.testing.assert_allclose(BOTH.posterior(terms[part])[0], expected)


def test_the_grid_of_many_motions_stays_small():
    assert len(Motions(("interval", "interval", "circle", "interval")).grid) <= 4000


def test_terms_stop_where_features_are_many():
    circles = Motions(3 * ("circle",))
    for _ in range(5):
        circles = circles.grown()
    count = circles.features(np.zeros((1, 3))).shape[1]
    assert 30 < count <= 40
