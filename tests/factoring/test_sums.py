"""Factors of a sum, and of its terms."""

import numpy as np
import pytest

from manifactor import ManifoldFactorizer, datasets
from manifactor.scores import coordinate_correlation

from .places import ring, sphere

NOISE = 0.03


@pytest.fixture(scope="module")
def objects():
    X, truth = datasets.sample("turning_objects", 900, random_state=0)
    fit = ManifoldFactorizer(method="sum", random_state=0).fit(X[:700])
    return fit, X, truth


def strip(rng):
    return rng.uniform(size=(800, 2)) * [8, 1]


@pytest.mark.slow
def test_two_turning_objects_in_one_image_are_a_sum(objects):
    fit, _, truth = objects
    assert (fit.verdict_, fit.evidence_.sense) == ("product", "sum")
    assert [factor.topology for factor in fit.factors_] == ["circle", "circle"]
    # The brighter object explains more and comes first.
    for factor, true in zip(fit.factors_, truth, strict=True):
        assert coordinate_correlation(factor.coordinate, true[:700]) > 0.999
    assert np.nanmax(fit.evidence_.leakage) < 0.1


@pytest.mark.slow
def test_new_images_are_placed_as_well_as_those_of_the_fit(objects):
    fit, X, truth = objects
    new = fit.coordinates(X[700:])
    for column, true in zip(new.T, truth, strict=True):
        assert coordinate_correlation(column, true[700:]) > 0.999


@pytest.mark.medium
def test_an_earlier_name_of_the_method_warns_and_finds_the_same(rng):
    X = strip(rng)[:200]
    fit = ManifoldFactorizer(method="sum", random_state=0).fit(X)
    before = fit.coordinates()
    with pytest.warns(FutureWarning, match="method='sum'"):
        fit.set_params(method="deflation").fit(X)
    np.testing.assert_array_equal(fit.coordinates(), before)


@pytest.mark.medium
def test_confidence_falls_with_the_distance_from_the_sum(rng):
    X = np.c_[strip(rng), 0.05 * rng.normal(size=800)]
    fit = ManifoldFactorizer(method="sum", random_state=0).fit(X)
    near, far = [4, 0.5, 0.0], [4, 0.5, 5.0]
    long, short = fit.locate(np.array([near, far]))
    assert long.confidence[0] > 0.95
    assert short.confidence[1] < min(0.2, long.confidence[1])
    np.testing.assert_allclose(long.coordinate, 0.5, atol=0.05)


# Terms that are products themselves.


def bent_square_and_circle(n_samples, seed):
    """Samples of a sum, with the places on the two sides and on the circle."""
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(-1, 1, size=(2, n_samples))
    angle = rng.uniform(0, 2 * np.pi, size=n_samples)
    # Each side bends the other, so that the surface is no sum of two curves.
    surface = np.column_stack([1.4 * x, y, 0.5 * x * y, 0.3 * x**2 * y])
    X = np.hstack([surface, 0.8 * ring(angle)])
    return X + NOISE * rng.normal(size=X.shape), x, y, angle


@pytest.fixture(scope="module")
def fit():
    X, *_ = bent_square_and_circle(700, 2)
    noise = np.full(X.shape[1], NOISE)
    return ManifoldFactorizer(sense="sum", random_state=0).fit(X, noise=noise)


def correlated(a, b):
    return abs(np.corrcoef(a, b)[0, 1])


def turned_alike(a, b):
    """How well two angles agree, from 0 to 1, up to a rotation and a reflection."""
    return max(abs(np.exp(1j * (sign * a - b)).mean()) for sign in (1, -1))


@pytest.mark.slow
def test_a_surface_that_is_a_product_is_divided(fit):
    _, x, y, angle = bent_square_and_circle(700, 2)
    assert {test.name for test in fit.evidence_.failed} <= {"certainty"}
    assert [each.topology for each in fit.factors_] == ["interval", "interval", "circle"]
    first, second, third = (each.coordinate for each in fit.factors_)
    assert min(correlated(first, x), correlated(second, y)) > 0.99
    assert turned_alike(third, angle) > 0.99
    assert fit.choices_["term 1"].value == 2
    assert "term 2" not in fit.choices_
    assert 0.9 < fit.evidence_.reliability < 1


@pytest.mark.slow
def test_a_sphere_and_a_circle_stay_two_factors(rng):
    circle = ring(rng.uniform(0, 2 * np.pi, size=600))
    X = np.hstack([2 * sphere(rng, 600), circle])
    X += NOISE * rng.normal(size=X.shape)
    fit = ManifoldFactorizer(sense="sum", random_state=0).fit(X)
    assert [each.topology for each in fit.factors_] == ["other", "circle"]
    assert not fit.evidence_.fails("sum", "own share", "leakage", "folds")
    assert fit.choices_["term 1"].value == 1
