import numpy as np
import pytest

from manifactor import ManifoldFactorizer, datasets
from manifactor.spectral.preparation import prepare


@pytest.fixture(scope="module")
def noisy():
    return datasets.sample(
        "square", 1000, noise=0.05, ambient_dimension=20, random_state=0
    )[0]


def test_isotropic_noise_is_dropped_and_nothing_else(noisy):
    found = prepare(noisy)
    assert found.components.shape == (20, 2)
    assert (
        found.reason
        == "18 of 20 principal components are isotropic Gaussian noise and were dropped"
    )


@pytest.mark.parametrize(
    "shape", ["square", "equal_torus3", "sphere_sphere", "swiss_roll", "strip10"]
)
def test_clean_samples_are_left_alone(shape):
    assert prepare(datasets.sample(shape, 1000, random_state=0)[0]) is None


def test_equal_variances_that_are_no_gaussian_are_structure(rng):
    X = np.c_[10 * rng.uniform(size=(2000, 1)), rng.uniform(size=(2000, 6))]
    assert prepare(X) is None
    assert prepare(np.c_[X[:, :1], rng.normal(size=(2000, 6))]).components.shape == (
        7,
        1,
    )


@pytest.mark.parametrize("columns", [4, 20])
def test_a_gaussian_blob_is_not_flattened(rng, columns):
    assert prepare(rng.normal(size=(1000, columns))) is None


def test_few_samples_and_many_columns_are_left_alone(noisy):
    assert prepare(noisy[:100]) is None
    assert prepare(np.zeros((200, 1001))) is None
    assert (
        ManifoldFactorizer(preparation="none", random_state=0).fit(noisy).preparation_
        is None
    )


def test_new_samples_go_through_the_same_preparation(noisy):
    fit = ManifoldFactorizer(random_state=0).fit(noisy)
    assert fit.preparation_ is not None
    assert fit.verdict_ == "product"
    np.testing.assert_allclose(
        fit.transform(noisy), np.hstack([f.embedding for f in fit.factors_]), atol=1e-4
    )
