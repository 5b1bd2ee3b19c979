import numpy as np
import pytest

from manifactor import ManifoldFactorizer, datasets
from manifactor.spectral.preparation import (
    PreparationSettings,
    choose_preparation,
)


@pytest.fixture(scope="module")
def noisy():
    return datasets.sample(
        "square", 1000, noise=0.05, ambient_dimension=20, random_state=0
    )[0]


def test_isotropic_noise_is_dropped_and_nothing_else(noisy):
    choice = choose_preparation(noisy)
    assert choice.value.components.shape == (20, 2)
    assert (
        choice.why
        == choice.value.reason
        == "18 of 20 principal components are isotropic Gaussian noise and were dropped"
    )


@pytest.mark.parametrize(
    "shape", ["square", "equal_torus3", "sphere_sphere", "swiss_roll", "strip10"]
)
def test_clean_samples_are_left_alone(shape):
    choice = choose_preparation(datasets.sample(shape, 1000, random_state=0)[0])
    assert choice.value is None


def test_equal_variances_that_are_no_gaussian_are_structure(rng):
    X = np.c_[10 * rng.uniform(size=(2000, 1)), rng.uniform(size=(2000, 6))]
    choice = choose_preparation(X)
    assert choice.value is None
    assert choice.why == "no principal components are isotropic Gaussian noise"
    gaussian = np.c_[X[:, :1], rng.normal(size=(2000, 6))]
    assert choose_preparation(gaussian).value.components.shape == (7, 1)


@pytest.mark.parametrize("columns", [4, 20])
def test_a_gaussian_blob_is_not_flattened(rng, columns):
    choice = choose_preparation(rng.normal(size=(1000, columns)))
    assert choice.value is None
    assert choice.why == "all principal components look like one Gaussian"


def test_few_samples_and_many_columns_are_left_alone(noisy):
    few = choose_preparation(noisy[:100])
    narrow = choose_preparation(noisy[:, :3])
    wide = choose_preparation(np.zeros((200, 1001)))
    assert few.value is narrow.value is wide.value is None
    assert few.why == "fewer than 150 samples cannot tell noise from signal"
    assert narrow.why == "noise cannot be told from signal in 3 columns"
    assert wide.why == "the covariance of more than 1,000 columns costs too much"


@pytest.mark.slow
def test_a_caller_can_do_without_preparation(noisy):
    fit = ManifoldFactorizer(preparation="none", random_state=0).fit(noisy)
    assert fit.preparation_ is None


@pytest.mark.slow
def test_new_samples_go_through_the_same_preparation(noisy):
    fit = ManifoldFactorizer(random_state=0).fit(noisy)
    assert fit.preparation_ is not None
    assert fit.verdict_ == "product"
    np.testing.assert_allclose(
        fit.transform(noisy), np.hstack([f.embedding for f in fit.factors_]), atol=1e-4
    )


def test_blocks_of_samples_do_not_matter(noisy):
    whole = choose_preparation(noisy).value
    small = PreparationSettings(numbers_per_step=2000)
    again = choose_preparation(noisy, settings=small).value
    cosines = np.abs(again.components.T @ whole.components)
    np.testing.assert_allclose(cosines, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(again(noisy, settings=small), again(noisy), atol=1e-12)
