import numpy as np
import pytest

from manifactor import ManifoldFactorizer, datasets
from manifactor.factoring import deflation
from manifactor.factoring.deflation import (
    DeflationSettings,
    best_curve,
    conditional_mean,
    deflate,
)
from manifactor.scores import coordinate_correlation

from .looks import walk_spectrum


@pytest.fixture(scope="module")
def fit_and_truth():
    X, truth = datasets.sample("turning_objects", 1000, random_state=0)
    return ManifoldFactorizer(method="deflation", random_state=0).fit(X), truth


@pytest.mark.slow
def test_two_turning_objects_in_one_image_are_told_apart(fit_and_truth):
    fit, truth = fit_and_truth
    assert [factor.topology for factor in fit.factors_] == ["circle", "circle"]
    for factor, true in zip(
        fit.factors_, truth, strict=True
    ):  # the brighter object explains more and comes first
        assert coordinate_correlation(factor.coordinate, true) > 0.98
    assert np.nanmax(fit.evidence_.leakage) < 0.1


@pytest.mark.slow
def test_deflation_never_claims_a_product(fit_and_truth):
    fit, _ = fit_and_truth
    assert fit.verdict_ == "partial"
    assert "a sum alone does not prove a product" in fit.evidence_.reason


@pytest.mark.slow
def test_deflation_places_its_own_samples_only(fit_and_truth):
    fit, _ = fit_and_truth
    assert fit.coordinates().shape == (1000, 2)
    with pytest.raises(ValueError, match="fit all samples together"):
        fit.transform(np.zeros((2, 384)))


def test_deflation_finds_two_factors_or_says_why_not(torus):
    with pytest.raises(
        ValueError, match="`method='deflation'` finds two factors; got `n_factors`=3"
    ):
        ManifoldFactorizer(3, method="deflation").fit(torus[0])


def test_the_conditional_mean_leaves_the_sample_itself_out(rng):
    place = np.arange(50.0)[:, None]
    noise = rng.normal(size=(50, 4))
    assert abs(np.mean(conditional_mean(noise, place, n_averaged=20) * noise)) < 0.3
    np.testing.assert_allclose(
        conditional_mean(np.ones((50, 2)), place, n_averaged=20), 1
    )


def sum_of_circles(rng, n_samples=500):
    """Two circles in planes of their own, seen as sums of 8 features."""
    angles = rng.uniform(0, 2 * np.pi, size=(2, n_samples, 1))
    circles = [np.hstack([np.cos(a), np.sin(a)]) for a in angles]
    planes = np.linalg.qr(rng.normal(size=(8, 4)))[0].T
    return np.hstack([circles[0], 0.6 * circles[1]]) @ planes


def test_the_first_curve_is_read_from_the_spectrum_that_the_caller_has(
    rng, monkeypatch
):
    X = sum_of_circles(rng)
    start = walk_spectrum(X, 30)
    searched = []
    graph = deflation.neighbor_graph
    monkeypatch.setattr(
        deflation, "neighbor_graph", lambda *a: searched.append(a) or graph(*a)
    )
    settings = DeflationSettings(n_rounds=2)
    deflate(X, start, n_neighbors=64, settings=settings, rng=rng)
    assert len(searched) == 4  # two rests in each round, and never the samples


@pytest.mark.slow
def test_functions_beyond_those_that_are_used_do_not_matter(rng):
    X = sum_of_circles(rng)
    few, many = (
        deflate(
            X, walk_spectrum(X, count), n_neighbors=64, rng=np.random.default_rng(0)
        )
        for count in (9, 30)
    )
    assert few[1] == pytest.approx(many[1], abs=0.01)
    for one, other in zip(few[0], many[0], strict=True):
        assert coordinate_correlation(one.coordinate, other.coordinate[:, None]) > 0.999


def test_a_circle_explains_a_ring_better_than_an_interval_does(rng):
    angle = rng.uniform(0, 2 * np.pi, size=500)
    ring = np.c_[np.cos(angle), np.sin(angle)]
    found = walk_spectrum(ring, 9)
    circle = best_curve(ring - ring.mean(axis=0), found, rng=rng)
    assert len(circle.chart) == 2
    assert circle.explained > 0.95
    never = DeflationSettings(min_parallel=1.0)
    interval = best_curve(ring - ring.mean(axis=0), found, settings=never, rng=rng)
    assert len(interval.chart) == 1
    assert interval.explained < circle.explained
