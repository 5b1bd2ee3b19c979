import numpy as np
import pytest

from manifactor import ManifoldFactorizer, datasets
from manifactor.factoring.deflation import conditional_mean
from manifactor.scores import coordinate_correlation


@pytest.fixture(scope="module")
def fit_and_truth():
    X, truth = datasets.sample("turning_objects", 1500, random_state=0)
    return ManifoldFactorizer(method="deflation", random_state=0).fit(X), truth


def test_two_turning_objects_in_one_image_are_told_apart(fit_and_truth):
    fit, truth = fit_and_truth
    assert [factor.topology for factor in fit.factors_] == ["circle", "circle"]
    for factor, true in zip(
        fit.factors_, truth, strict=True
    ):  # the brighter object explains more and comes first
        assert coordinate_correlation(factor.coordinate, true) > 0.98
    assert np.nanmax(fit.evidence_.leakage) < 0.1


def test_deflation_never_claims_a_product(fit_and_truth):
    fit, _ = fit_and_truth
    assert fit.verdict_ == "partial"
    assert "a sum alone does not prove a product" in fit.evidence_.reason


def test_deflation_places_its_own_samples_only(fit_and_truth):
    fit, _ = fit_and_truth
    assert fit.coordinates().shape == (1500, 2)
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
    assert abs(np.mean(conditional_mean(noise, place) * noise)) < 0.3
    np.testing.assert_allclose(conditional_mean(np.ones((50, 2)), place), 1)
