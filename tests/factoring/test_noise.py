import numpy as np

from manifactor.factoring.noise import deficit_in_halves, excess_in_halves


def test_noise_is_what_halves_add_to_a_number_that_noise_raises():
    np.testing.assert_allclose(
        excess_in_halves(np.array([0.1, 0.5]), [[0.2, 0.3], [0.4, 0.1]]), [0.2, 0.0]
    )


def test_noise_is_what_halves_lose_of_a_number_that_noise_lowers():
    np.testing.assert_allclose(
        deficit_in_halves(np.array([0.9, 0.5]), [[0.7, 0.6], [0.5, 0.8]]), [0.3, 0.0]
    )


def test_one_number_s_noise_is_the_other_s_with_the_sign_turned(rng):
    value, halves = rng.normal(size=5), rng.normal(size=(2, 5))
    np.testing.assert_array_equal(
        deficit_in_halves(value, halves), excess_in_halves(-value, -halves)
    )


def test_twice_the_variance_of_a_mean_in_halves_is_the_noise_of_its_square(rng):
    x = rng.normal(size=(4000, 2, 500))  # 4000 data sets of two halves of 500
    whole = x.mean(axis=(1, 2)) ** 2  # a number that is 0 but for noise
    halves = x.mean(axis=2).T ** 2
    added = halves.mean() - whole.mean()
    np.testing.assert_allclose(added, whole.mean(), rtol=0.1)
    assert excess_in_halves(whole, list(halves)).mean() > added


def test_without_halves_there_is_no_noise_to_be_seen():
    assert excess_in_halves(0.3, []) == deficit_in_halves(0.3, []) == 0
    assert excess_in_halves(np.ones(3), []).tolist() == [0, 0, 0]
