"""Factors of a sum, and of its terms."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from manifactor import Evidence, ManifoldFactorizer, datasets
from manifactor import factorize as terms
from manifactor.factorization import Factorization
from manifactor.factorize import divide_terms
from manifactor.factors.placing import ByFunctions
from manifactor.models.sums.summands import ByTerms
from manifactor.operators.operator import DiffusionSettings
from manifactor.scores import coordinate_correlation

from .places import interval, ring, sphere

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


def test_an_earlier_name_of_the_method_warns_and_finds_the_same(rng):
    X = strip(rng)
    fit = ManifoldFactorizer(method="sum", random_state=0).fit(X)
    before = fit.coordinates()
    with pytest.warns(FutureWarning, match="method='sum'"):
        fit.set_params(method="deflation").fit(X)
    np.testing.assert_array_equal(fit.coordinates(), before)


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
    assert fit.verdict_ == "product"
    assert fit.choices_["term 1"].value == 1


def sum_of_surfaces(points, count=1):
    """A sound sum of surfaces with the given points, and an interval."""
    t = np.random.default_rng(1).uniform(size=len(points))
    surface = replace(interval(t), topology="other", dimension=2, coordinate=None)
    leakage = np.where(np.eye(count + 1), np.nan, 0.05)
    return Factorization(
        factors=(*[surface] * count, interval(t)),
        evidence=Evidence((), leakage, sense="sum"),
        diffusion=SimpleNamespace(samples=points, settings=DiffusionSettings()),
        placer=ByTerms(SimpleNamespace(points=lambda samples, _: samples)),
    )


@pytest.mark.slow
def test_a_surface_that_is_no_product_of_lengths_stays_whole(rng):
    points, _ = datasets.sample("waist_2", 450, random_state=0)
    whole = sum_of_surfaces(points)
    found = divide_terms(whole, None, rng=rng)
    assert (found.factors, found.evidence) == (whole.factors, whole.evidence)
    assert found.choices["term 1"].value == 1


@pytest.fixture
def tried(monkeypatch):
    """Most factors that each term was to be divided into; each falls into two."""
    most_factors = []
    inner = Factorization(
        factors=tuple(interval(np.linspace(0, 1, 9)) for _ in range(2)),
        evidence=Evidence((), np.where(np.eye(2), np.nan, 0.1)),
        diffusion=SimpleNamespace(
            graph=SimpleNamespace(outliers=np.zeros(9, dtype=bool)), settled=str
        ),
    )

    def divided(*_, most, **__):
        most_factors.append(most)
        return inner

    monkeypatch.setattr(terms, "_inside", divided)
    return most_factors


@pytest.mark.parametrize(
    ("asked", "expected", "n_factors"), [(None, [4, 3], 5), (5, [3, 2], 5), (4, [2], 4), (3, [], 3)]
)
def test_no_more_factors_are_made_than_asked_for(tried, asked, expected, n_factors):
    whole = sum_of_surfaces(np.zeros((9, 3)), count=2)
    found = divide_terms(whole, asked, rng=None)
    assert tried == expected
    assert len(found.factors) == n_factors == found.evidence.n_factors


def test_only_surfaces_of_a_sum_with_right_places_are_looked_at(tried):
    whole = sum_of_surfaces(np.zeros((9, 3)))
    no_sum = replace(whole, placer=ByFunctions())
    curves = replace(whole, factors=(whole.factors[1],) * 2)
    alone = replace(whole, factors=whole.factors[:1], evidence=Evidence(()))
    for found in (no_sum, curves, alone):
        assert divide_terms(found, None, rng=None) == found
    assert tried == []


def test_factors_of_a_divided_term_own_no_functions_of_the_samples(tried):
    found = divide_terms(sum_of_surfaces(np.zeros((9, 3))), None, rng=None)
    assert found.coefficients == ()
    assert [(each.term, each.n_factors) for each in found.divided] == [(0, 2)]
    assert found.evidence.terms == ((1, 2), (3,))
