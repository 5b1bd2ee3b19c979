import numpy as np
import pytest

from manifactor import ManifoldFactorizer, datasets, load, save
from manifactor.scores import coordinate_correlation


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
def test_new_images_are_placed_as_well_as_those_of_the_fit(objects, tmp_path):
    fit, X, truth = objects
    new = fit.coordinates(X[700:])
    for column, true in zip(new.T, truth, strict=True):
        assert coordinate_correlation(column, true[700:]) > 0.999
    embedded = np.hstack([factor.embedding for factor in fit.factors_])
    np.testing.assert_allclose(fit.transform(X[:700]), embedded, atol=1e-9)
    # An archive places samples by the sum, too.
    save(fit, tmp_path / "fit.npz")
    again = load(tmp_path / "fit.npz")
    np.testing.assert_allclose(again.transform(X[700:]), fit.transform(X[700:]))


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
