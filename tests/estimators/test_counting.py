"""Counts of independent subsystems of columns in time."""

import numpy as np
import pandas as pd
import pytest

from manifactor import SampleWarning, count_subsystems

FLIPS = np.array([0.02, 0.04, 0.07, 0.12])  # in a step
TIME_SCALES = -1 / np.log(1 - 2 * FLIPS)  # exact
N = 20_000


def switches(rng, flips, n=N):
    return np.where(np.cumsum(rng.random((n, len(flips))) < flips, axis=0) % 2, 1.0, -1.0)


@pytest.fixture(scope="module")
def states():
    return switches(np.random.default_rng(0), FLIPS)


@pytest.fixture(scope="module")
def mixture():
    """What each switch adds to six columns; each switch is in three of them, the last in noise."""
    loadings = np.zeros((4, 6))
    loadings[[0, 1, 2], [0, 1, 2]] = 1.0
    loadings[0, 3], loadings[1, 3], loadings[3, 4] = 1.0, 2.0, 0.5
    return loadings


@pytest.fixture(scope="module")
def columns(states, mixture):
    noise = 0.5 * np.random.default_rng(1).normal(size=(N, 6))
    return states @ mixture + noise


@pytest.fixture(scope="module")
def found(columns):
    return count_subsystems(columns)


def test_the_number_is_that_of_switches_and_noise_is_none(found):
    assert found.number == 4
    assert [len(times) for times in found.time_scales] == [1, 1, 1, 1]
    rng = np.random.default_rng(2)
    assert count_subsystems(rng.standard_t(4, size=(2000, 30))).number == 0


def test_shares_of_variance_and_members_are_those_of_the_mixture(found, mixture):
    exact = mixture**2 / ((mixture**2).sum(axis=0) + 0.25)
    np.testing.assert_allclose(found.shares, exact.T, atol=0.03)
    assert [own.tolist() for own in found.members] == [[0, 3], [1, 3], [2], [4]]


def test_time_scales_are_exact_and_the_slowest_is_first(found):
    np.testing.assert_allclose(np.concatenate(found.time_scales), TIME_SCALES, rtol=0.15)


def test_functions_are_the_switches(found, states):
    functions = np.concatenate(found.functions, axis=1)
    correlation = np.abs(np.corrcoef(functions.T, states.T)[:4, 4:])
    # Noise of half the deviation leaves .89 of a switch that is in one column.
    assert np.diag(correlation).min() > 0.6
    assert (correlation - np.diag(np.diag(correlation))).max() < 0.05


@pytest.mark.medium
def test_time_scales_are_in_units_of_times_and_in_seconds_of_dates(columns, found):
    halved = count_subsystems(columns, times=0.5 * np.arange(N))
    assert halved.lag == 0.5
    for half, whole in zip(halved.time_scales, found.time_scales, strict=True):
        np.testing.assert_allclose(2 * half, whole)
    dates = np.datetime64("2026-01-01") + np.timedelta64(1, "m") * np.arange(N)
    dated = count_subsystems(columns, times=dates)
    np.testing.assert_allclose(dated.time_scales[0], 60 * found.time_scales[0])


@pytest.mark.medium
def test_nothing_is_compared_across_recordings(columns):
    parts = np.split(columns, 200)
    found = count_subsystems(parts, trajectories=True)
    labelled = count_subsystems(columns, trajectories=np.repeat(np.arange(200), N // 200))
    assert found.number == labelled.number == 4
    np.testing.assert_array_equal(found.time_scales[0], labelled.time_scales[0])
    with pytest.raises(ValueError, match="three lags later; got 0"):
        count_subsystems(parts, trajectories=True, lag=34)


def test_a_mixture_of_columns_has_the_same_subsystems(columns, found):
    mixed = count_subsystems(columns @ np.random.default_rng(3).normal(size=(6, 6)) + 7)
    assert mixed.number == 4
    for one, other in zip(mixed.time_scales, found.time_scales, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3)


def test_noise_that_a_slanted_mixture_shares_is_no_dependence(states):
    # Columns nearly alike: noise of the two switches that they show is strongly correlated.
    mixed = states[:, :2] @ [[1.0, 1.0], [0.5, 0.7]]
    noise = 0.15 * np.random.default_rng(1).normal(size=mixed.shape)
    assert count_subsystems(mixed + noise).number == 2


@pytest.mark.medium
def test_switches_without_noise_or_columns_to_spare_are_counted(states):
    assert count_subsystems(states).number == 4
    doubled = np.hstack([states, states[:, :2], np.ones((N, 1))])
    found = count_subsystems(doubled)
    assert found.number == 4
    assert found.members[0].tolist() == [0, 4]


def driven(kind, rng):
    """Two switches that depend on each other."""
    first, u = switches(rng, FLIPS[:1])[:, 0], rng.random(N)
    if kind == "speed":
        return np.column_stack([first, np.where(np.cumsum(u < 0.06 + 0.05 * first) % 2, 1, -1)])
    second = np.empty(N)
    second[0] = 1.0
    for t in range(1, N):
        second[t] = first[t] if u[t] < 0.05 else second[t - 1] * (1 if u[t] < 0.97 else -1)
    return np.column_stack([first, second])


@pytest.mark.parametrize("kind", ["copies", "speed"])
def test_coupled_switches_are_one_subsystem(kind, columns):
    pair = driven(kind, np.random.default_rng(0))
    noise = 0.25 * np.random.default_rng(1).normal(size=pair.shape)
    found = count_subsystems(np.hstack([pair + noise, columns[:, [2]]]))
    assert found.number == 2
    assert sorted(len(times) for times in found.time_scales) == [1, 2]


def test_a_longer_lag_leaves_out_fast_subsystems(columns):
    found = count_subsystems(columns, lag=12)
    assert found.number == 3
    np.testing.assert_allclose(found.time_scales[0], TIME_SCALES[0], rtol=0.15)


def test_a_recording_that_is_too_short_for_its_slowest_subsystem_warns():
    with pytest.warns(SampleWarning, match="20 times as long as the longest"):
        count_subsystems(np.cumsum(np.random.default_rng(0).normal(size=(1000, 2)), axis=0))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"X": np.zeros(500)}, "one sample a row"),
        ({"X": np.zeros((150, 2))}, "200 samples or more.* got 147"),
        ({"X": np.zeros((500, 60))}, "10 for each of the 60 columns"),
        ({"X": np.full((500, 2), np.nan)}, "`X` must be finite"),
        ({"X": pd.DataFrame({"a": ["x"] * 500})}, "array of real numbers; got DataFrame"),
        ({"X": np.zeros((500, 2)), "times": np.arange(400)}, "`times` must have one number"),
        ({"X": np.zeros((500, 2)), "times": np.zeros(500)}, "`times` must differ"),
        ({"X": np.zeros((500, 2)), "trajectories": True}, "must be a list of arrays"),
        ({"X": np.zeros((500, 2)), "lag": 0}, "`lag` must be a number in"),
        ({"X": np.zeros((500, 2)), "lag": 0.2}, r"`lag` must be a number in \[0.5, inf\]"),
        ({"X": np.zeros((500, 2)), "lag": 200}, "a shorter `lag`"),
    ],
)
def test_bad_input_is_refused_with_a_reason(given, message):
    with pytest.raises(ValueError, match=message):
        count_subsystems(**given)


def test_words_name_number_times_and_columns(columns):
    table = pd.DataFrame(columns, columns=list("abcdef"))
    found = count_subsystems(table)
    words = str(found)
    assert words.startswith("6 columns show 4 independent subsystems (lag 1).")
    assert "\nSubsystem 1: columns a, d; time scales 2" in words
    assert "\nSubsystem 4: columns e; time scales " in words
    assert repr(found) == words
    noise = np.random.default_rng(0).normal(size=(500, 2))
    assert str(count_subsystems(noise)).startswith("2 columns show no independent subsystems")


def test_more_functions_than_can_be_compared_are_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="at most 50 functions"):
        count_subsystems(switches(rng, np.full(51, 0.02), 3000))
