"""Do samples move independently on the factors?"""

import numpy as np
import pytest

from manifactor.judging.table import CRITERIA
from manifactor.models.moves.motion import (
    COUPLINGS,
    correlation_times,
    couplings,
    length_of_move,
    time_of_move,
)

from ..moving import latents, walk

LAG = 10


def of_walks(u):
    before = [each[:, None] for each in u[:-LAG].T]
    return couplings(before, [each[:, None] for each in u[LAG:].T])


def failing(found):
    return {name for name, each in found.items() if not CRITERIA[name].judge(each).passed}


def reflected(moves, start=(0.3, 0.4)):
    """Walks of given moves that are reflected at each step."""
    at, out = np.array(start), np.empty_like(moves)
    for t, move in enumerate(moves):
        at = np.abs(at + move)
        out[t] = at = np.where(at > 1, 2 - at, at)
    return out


@pytest.mark.parametrize("seed", range(5))
def test_independent_walks_pass_all_tests_however_few_times_they_cross_their_range(seed):
    u = latents(6000, np.random.default_rng(seed), steps=(0.01, 0.03))
    assert failing(of_walks(u)) == set()


def test_walks_driven_by_the_same_noise_have_correlated_moves(rng):
    noise = rng.normal(size=(6000, 2)) * 0.03
    noise[:, 1] = 0.6 * noise[:, 0] + 0.8 * noise[:, 1]
    assert "moves" in failing(of_walks(reflected(noise)))


def test_a_walk_that_is_faster_where_the_other_is_large_has_a_dependent_speed(rng):
    first = walk(6000, rng, 0.03)
    free = np.cumsum(0.03 * (0.2 + 1.8 * first) * rng.normal(size=6000)) % 2
    second = np.where(free > 1, 2 - free, free)
    assert "speed" in failing(of_walks(np.column_stack([first, second])))


def test_a_walk_that_is_pulled_by_the_other_has_a_dependent_drift(rng):
    first = walk(6000, rng, 0.03)
    second = np.empty(6000)
    at = 0.5
    for t, target in enumerate(first):
        at += 0.05 * (target - at) + 0.02 * rng.normal()
        second[t] = at
    assert {"drift", "places"} <= failing(of_walks(np.column_stack([first, second])))


def test_bursts_are_compared_with_permutations_and_their_places_are_not(rng):
    # Places that depend on each other, as the caller chose them.
    u = np.repeat(rng.random((800, 1)), 2, axis=1) + 0.1 * rng.random((800, 2))
    before = np.repeat(u, 5, axis=0)
    free, joint = rng.normal(size=(4000, 2)), np.repeat(rng.normal(size=(4000, 1)), 2, axis=1)
    for noise, failed in [(free, set()), (free + joint, {"moves", "speed"})]:
        after = before + 0.02 * noise
        found = couplings(np.hsplit(before, 2), np.hsplit(after, 2), n_repeats=5)
        assert set(found) == set(COUPLINGS) - {"places", "transitions"}
        assert failing(found) == failed


def test_times_and_lengths_are_those_of_a_reflected_walk():
    # An interval of 50 steps.
    lowest = (np.pi / 50) ** 2
    assert correlation_times(20_000, lowest) == pytest.approx(39.5, abs=0.1)
    assert length_of_move(time_of_move(0.15, lowest), lowest) == pytest.approx(0.15)
