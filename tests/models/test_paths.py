"""Local covariances of moves, from trajectories and from bursts."""

import numpy as np
import pytest

from manifactor.models.moves.paths import (
    Bursts,
    GivenMetric,
    NoDiffusionWarning,
    Trajectory,
    noise_covariance,
)

from ..moving import jacobian, latents, seen

STEPS = np.array([0.04, 0.06])


def trajectory(samples, times=None, piece=None):
    times = np.arange(len(samples), dtype=float) if times is None else times
    piece = np.zeros(len(samples), int) if piece is None else piece
    return Trajectory(samples, times, piece, np.arange(len(samples)))


def relative_error(metric, u, scale=1.0):
    """Median error of covariances, relative to those of the steps of latents."""
    found = np.einsum("npq,nq,nrq->npr", metric.axes, metric.scales**2, metric.axes)
    roots = jacobian(u) * STEPS
    right = roots @ roots.transpose(0, 2, 1) * scale
    # Edges push moves inwards.
    inside = ((u > 0.15) & (u < 0.85)).all(axis=1)
    size = np.linalg.norm(right, axis=(1, 2))
    return np.median((np.linalg.norm(found - right, axis=(1, 2)) / size)[inside])


@pytest.fixture(scope="module")
def path():
    u = latents(8000, np.random.default_rng(0))
    return u, seen(u)


def test_covariances_of_steps_are_those_of_the_map(path):
    u, X = path
    found = trajectory(X).measured(X[::10], None)
    assert found.choices["lag"].value == 1
    assert relative_error(found.metric, u[::10]) < 0.2
    assert np.shares_memory(found.samples, X)


def test_noise_of_measurement_is_measured_and_there_is_none_in_clean_steps(path, rng):
    _, X = path
    assert not noise_covariance(trajectory(X)).any()
    sizes = np.array([0.02, 0.03, 0.04])
    noisy = X + sizes * rng.normal(size=X.shape)
    assert np.sqrt(np.diag(noise_covariance(trajectory(noisy)))) == pytest.approx(sizes, rel=0.2)


@pytest.mark.medium
def test_a_longer_lag_is_taken_where_noise_would_outweigh_steps(path, rng):
    u, X = path
    noisy = X + 0.03 * rng.normal(size=X.shape)
    found = trajectory(noisy).measured(noisy[::10], None)
    assert found.choices["lag"].value in (2, 4, 8)
    assert relative_error(found.metric, u[::10]) < 0.4
    off = np.linalg.norm(found.samples - X[::10]), np.linalg.norm(noisy[::10] - X[::10])
    assert off[0] < 0.9 * off[1]


@pytest.mark.medium
def test_moves_that_never_outweigh_noise_are_warned_of(rng):
    X = seen(latents(3000, rng, steps=(0.002, 0.003))) + 0.05 * rng.normal(size=(3000, 3))
    (warned,) = trajectory(X).measured(X[::10], None).warned
    assert warned.category is NoDiffusionWarning
    assert "outweigh" in warned.message


@pytest.mark.medium
def test_a_step_across_a_break_is_not_a_step(path):
    _, X = path
    jumping = np.concatenate([X[:4000], X[6000:]])
    piece = np.repeat([0, 1], [4000, 2000])
    assert len(trajectory(jumping, piece=piece).starts(3)) == 6000 - 2 * 3
    assert trajectory(jumping, piece=piece).duration == 5998
    whole = trajectory(jumping, piece=piece).measured(jumping[::10], None).metric
    parts = trajectory(X[:4000]).measured(jumping[:4000:10], None).metric
    # Without the break, one step would be as long as the data.
    assert np.median(whole.scales[:400] / parts.scales) == pytest.approx(1, abs=0.1)


def test_covariances_are_those_of_a_unit_of_time(path):
    u, X = path
    kept = np.sort(np.random.default_rng(0).choice(len(X), 6000, replace=False))
    found = trajectory(X[kept], times=kept.astype(float)).measured(X[kept][::10], None)
    assert relative_error(found.metric, u[kept][::10]) < 0.25


@pytest.mark.medium
def test_samples_of_a_trajectory_are_drawn_evenly_in_the_space_of_latents(path):
    u, X = path
    given = np.random.default_rng(0).permutation(len(X))
    path = Trajectory(X, np.arange(len(X)) * 1.0, np.zeros(len(X), int), given)
    rows = path.even_rows(1000)
    assert len(rows) > 990
    drawn = u[np.argsort(given)[rows]]

    def spread(places):
        counts = np.histogram2d(*places.T, bins=5, range=[[0, 1], [0, 1]])[0]
        return counts.std() / counts.mean()

    assert spread(drawn) < 0.8 * spread(u)


def test_bursts_tell_the_same_as_steps(rng):
    u = rng.random((1500, 2))
    v = u[:, None] + STEPS * rng.normal(size=(1500, 8, 2))
    Y = seen(v.reshape(-1, 2)).reshape(1500, 8, 3)
    found = Bursts(seen(u), Y).measured(seen(u), None)
    assert relative_error(found.metric, u) < 0.2
    before, after = found.path.moves(1.0)
    assert np.array_equal(before[:8], np.repeat(seen(u[:1]), 8, axis=0))
    assert np.array_equal(after[:8], Y[0])


def test_covariances_and_their_roots_are_the_same_metric(rng):
    u = rng.random((500, 2))
    J = jacobian(u) * STEPS
    by_roots = GivenMetric(J, are_roots=True).measured(seen(u), None)
    covariances = GivenMetric(J @ J.transpose(0, 2, 1), are_roots=False)
    found = covariances.measured(seen(u), None)
    assert found.choices["directions"].value == 2
    assert np.allclose(found.metric.scales, by_roots.metric.scales)
