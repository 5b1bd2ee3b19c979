"""Samples whose noise is known."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from manifactor.samples import likelihood
from manifactor.samples.likelihood import GaussianLikelihood, denoise

N = 1000


@pytest.fixture(scope="module")
def ring():
    """A circle of radius 1, and the same with noise that differs between samples."""
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, N)
    clean = np.column_stack([np.cos(angle), np.sin(angle)])
    half = 0.3 * rng.standard_normal((N, 2, 2)) * rng.random((N, 1, 1))
    covariance = half @ half.transpose(0, 2, 1) + 1e-3 * np.eye(2)
    noise = (np.linalg.cholesky(covariance) @ rng.standard_normal((N, 2, 1)))[:, :, 0]
    return clean, clean + noise, covariance


def moved(samples, covariance):
    return denoise(
        GaussianLikelihood.of_samples(samples, covariance), samples, rng=np.random.default_rng(0)
    )


def test_noisy_samples_of_a_circle_come_to_lie_on_it(ring):
    clean, noisy, covariance = ring
    found = moved(noisy, covariance)
    assert np.square(found - clean).mean() < 0.5 * np.square(noisy - clean).mean()
    radius, before = (np.linalg.norm(each, axis=1) for each in (found, noisy))
    assert radius.std() < 0.5 * before.std()


def test_samples_without_noise_stay_where_they_are(ring):
    clean, _, covariance = ring
    found = moved(clean, 1e-6 * covariance)
    np.testing.assert_allclose(found, clean, atol=1e-2)


@pytest.mark.medium
def test_denoising_does_not_depend_on_axes_or_units(ring):
    _, noisy, covariance = ring
    angle = 0.7
    turn = 5 * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    there = moved(noisy @ turn.T, turn @ covariance @ turn.T)
    np.testing.assert_allclose(there, moved(noisy, covariance) @ turn.T, atol=1e-6)


def test_a_sample_that_tells_nothing_lies_in_the_middle(ring):
    clean, noisy, covariance = ring
    told = GaussianLikelihood.of_samples(noisy, covariance)
    told.precision[0], told.linear[0] = 0, 0
    found = denoise(told, noisy, rng=np.random.default_rng(0))
    np.testing.assert_allclose(found[0], clean.mean(axis=0), atol=0.15)


def test_samples_stay_where_they_are_if_they_lie_further_apart_than_their_noise(monkeypatch):
    # More samples than points stand for the density.
    monkeypatch.setattr(likelihood, "POINTS", 600)
    monkeypatch.setattr(likelihood, "LEARNED", 1200)
    rng = np.random.default_rng(0)
    clean = rng.random((1800, 2))
    noisy = clean + 0.0045 * rng.standard_normal(clean.shape)
    found = moved(noisy, np.tile(0.0045**2 * np.eye(2), (1800, 1, 1)))
    assert np.square(found - clean).mean() < 1.2 * np.square(noisy - clean).mean()
    assert len(np.unique(found, axis=0)) == 1800


def test_what_a_spread_tells_is_the_likelihood_of_samples_with_and_without_it():
    rng = np.random.default_rng(0)
    noise, spread = np.cov(rng.normal(size=(3, 9))), np.cov(rng.normal(size=(3, 9)))
    samples = rng.normal(size=(5, 3))
    told, evidence = GaussianLikelihood.of_samples(samples, np.tile(noise, (5, 1, 1))).of_centres(
        spread
    )
    wide, narrow = (multivariate_normal(cov=each) for each in (noise + spread, noise))
    np.testing.assert_allclose(evidence, wide.logpdf(samples) - narrow.logpdf(samples))
    np.testing.assert_allclose(told.precision[0], np.linalg.inv(noise + spread))
    np.testing.assert_allclose(told.linear, samples @ np.linalg.inv(noise + spread))


@pytest.mark.medium
def test_the_spread_of_points_is_found_beyond_the_noise_of_samples():
    rng = np.random.default_rng(1)
    spread, middle = np.array([[1, 0.5], [0.5, 2]]), np.array([3.0, -2.0])
    points = rng.multivariate_normal(middle, spread, 20_000)
    variance = rng.uniform(0.2, 2, (len(points), 1, 1)) * np.eye(2)
    samples = points + np.sqrt(variance[:, 0, :1]) * rng.normal(size=points.shape)
    told, found = (
        GaussianLikelihood.of_samples(samples, variance).about(np.tile(middle, (len(points), 1))),
        np.eye(2),
    )
    for _ in range(30):
        found = told.spread(found)
    np.testing.assert_allclose(found, spread, atol=0.06)
