"""Samples of which the noise is known, and differs."""

import numpy as np
import pytest

from manifactor import ManifoldFactorizer

N = 1500


@pytest.fixture(scope="module")
def noisy():
    """A circle in four columns, two of them noise alone, and covariances that differ."""
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, N)
    clean = np.column_stack([np.cos(angle), np.sin(angle), np.zeros((N, 2))])
    half = 0.25 * rng.standard_normal((N, 4, 4)) * rng.uniform(0.3, 1, (N, 1, 1))
    covariance = half @ half.transpose(0, 2, 1) + 0.05 * np.eye(4)
    noise = (np.linalg.cholesky(covariance) @ rng.standard_normal((N, 4, 1)))[:, :, 0]
    return angle, clean + noise, covariance


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::manifactor.NoProductStructureWarning")
@pytest.mark.filterwarnings("ignore::manifactor.SampleWarning")
def test_a_circle_is_seen_through_noise_that_is_known_for_each_sample(noisy):
    angle, X, covariance = noisy
    assert (
        ManifoldFactorizer(sense="geometry", random_state=0).fit(X).factors_[0].topology == "other"
    )
    fit = ManifoldFactorizer(sense="geometry", random_state=0).fit(X, noise=covariance)
    assert [factor.topology for factor in fit.factors_] == ["circle"]
    turn = np.exp(1j * np.outer([1, -1], fit.factors_[0].coordinate))
    assert np.abs((turn * np.exp(-1j * angle)).mean(axis=1)).max() > 0.9


def test_standard_deviations_are_a_diagonal_covariance(noisy):
    _, X, covariance = noisy
    X, deviations = X[:400, :2], np.sqrt(covariance[:400, [0, 1], [0, 1]])
    fits = [
        ManifoldFactorizer(1, random_state=0).fit(X, noise=noise)
        for noise in (deviations, deviations[:, :, None] ** 2 * np.eye(2))
    ]
    first, second = (fit.diffusion_.samples for fit in fits)
    np.testing.assert_allclose(first, second, atol=1e-9)


@pytest.mark.parametrize(
    ("noise", "subject"),
    [
        (np.ones((N - 1, 4)), "a covariance of each sample"),
        (-np.ones((N, 4)), "0 or more"),
        (np.tile(np.diag([1.0, 1, 1, 0]), (N, 1, 1)), "sample 0"),
        (np.tile(np.triu(np.ones((4, 4))), (N, 1, 1)), "symmetric"),
    ],
)
def test_noise_that_is_none_is_refused(noisy, noise, subject):
    with pytest.raises(ValueError, match=subject):
        ManifoldFactorizer().fit(noisy[1], noise=noise)


def test_noise_of_each_sample_does_not_go_with_a_transformation(noisy):
    _, X, covariance = noisy
    with pytest.raises(ValueError, match="transformation"):
        ManifoldFactorizer(transformation="ranks").fit(X, noise=covariance)
