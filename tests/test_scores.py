import numpy as np
import pytest

from manifactor.scores import (
    column_r2,
    coordinate_correlation,
    function_accuracy,
    information_imbalance,
    score,
)


@pytest.fixture
def latents(rng):
    return rng.uniform(size=(2, 1000, 1))


def test_order_orientation_and_scale_of_recovered_factors_do_not_matter(latents):
    a, b = latents
    found = score([-7 * b, a**3], [a, b])
    assert found.solved
    assert found.own > 0.99
    assert found.leak < 0.05
    assert found.match.tolist() == [[0, 1], [1, 0]]


def test_a_wrong_number_a_mixture_or_a_leak_is_not_solved(latents):
    a, b = latents
    assert not score([a], [a, b]).solved
    assert not score([a, b, a], [a, b]).solved
    assert not score([a, b + 0.4 * a], [a, b]).solved
    assert not score([a, np.c_[a, b]], [a, b]).solved


def test_angles_correlate_up_to_start_and_sense_of_rotation(rng):
    angle = rng.uniform(0, 2 * np.pi, size=500)
    circle = np.c_[np.cos(angle), np.sin(angle)]
    assert coordinate_correlation(1.3 - angle, circle) == pytest.approx(1)
    assert coordinate_correlation(2 * angle, circle) < 0.2
    assert coordinate_correlation(1 - angle, angle[:, None]) == pytest.approx(1)


def test_functions_of_their_own_factor_are_counted(latents):
    a, b = latents
    pure = [np.c_[np.cos(3 * a), np.cos(6 * a)], np.cos(3 * b)]
    assert function_accuracy(pure, [a, b]) == 1
    assert function_accuracy([np.c_[pure[0], a * b], pure[1]], [a, b]) == 3 / 4
    assert function_accuracy([a * b, *pure], [a, b]) == 3 / 4  # whatever the order


def test_a_column_that_is_constant_up_to_rounding_has_no_r2(latents):
    a, _ = latents
    rounded = 1 + 4e-15 * np.round(a)
    assert np.unique(rounded).size == 2
    shifted = 1e6 + a  # varies beside a large mean
    r2 = column_r2(a, np.c_[rounded, shifted])
    assert r2[0] == 0
    assert r2[1] > 0.9
    single = np.float32(0.1) * np.ones((1000, 1), dtype=np.float32)
    assert column_r2(a, single) == 0


def test_nearest_neighbours_tell_all_of_the_same_space_and_nothing_of_an_independent_one(latents):
    a, b = latents
    assert information_imbalance(a, 3 - 7 * a) == 2 / len(a)
    # The mean of ranks from 1 to n - 1, whose deviation is .018 for 1,000 samples.
    assert information_imbalance(a, b) == pytest.approx(1, abs=0.06)
    plane = np.hstack([a, b])
    assert information_imbalance(plane, a) < 0.1 < information_imbalance(a, plane)
    # Where all are equally far, the rank is the mean of all ranks.
    assert information_imbalance(a, 0 * b) == 1 - 1 / len(a)
