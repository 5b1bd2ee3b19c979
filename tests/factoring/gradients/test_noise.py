import numpy as np

from manifactor.factoring.gradients.division import deficit_in_halves, excess_in_halves


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


def test_halves_add_as_much_to_the_square_of_a_mean_as_noise_does(rng):
    x = rng.normal(size=(4000, 2, 500))  # 4000 data sets of two halves of 500
    halves = x.mean(axis=2).T
    whole = halves.mean(axis=0)  # 0 but for noise
    noise = excess_in_halves(whole**2, list(halves**2))
    np.testing.assert_allclose(noise.mean(), (whole**2).mean(), rtol=0.1)


def test_without_halves_there_is_no_noise_to_be_seen():
    assert excess_in_halves(0.3, []) == deficit_in_halves(0.3, []) == 0
    assert excess_in_halves(np.ones(3), []).tolist() == [0, 0, 0]
