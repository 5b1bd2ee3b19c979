import numpy as np
import pytest

from manifactor.factoring.prediction import PredictionSettings, predictability, thinned


def test_independent_arrays_predict_nothing_of_each_other(rng):
    assert predictability(rng.normal(size=(3000, 1)), rng.normal(size=(3000, 1)))[
        0
    ] == pytest.approx(0, abs=0.02)
    t = rng.uniform(size=(3000, 1))
    assert predictability(t, np.sin(5 * t))[0] > 0.999


def test_many_samples_are_thinned_and_few_are_not():
    rows = thinned(10_001, 4000)
    assert len(rows) == 4000
    assert (np.diff(rows) > 0).all()
    np.testing.assert_array_equal(rows, thinned(10_001, 4000))
    np.testing.assert_array_equal(thinned(4000, 4000), np.arange(4000))


def test_only_samples_that_may_be_drawn_are_drawn():
    even = np.arange(0, 1000, 2)
    rows = thinned(even, 100)
    assert len(rows) == 100
    assert np.isin(rows, even).all()


def test_samples_that_repeat_in_order_are_not_thinned_to_one_phase():
    rows = thinned(9000, 3000)
    phases = np.bincount(rows % 3)
    assert phases.min() > 900


def test_thinned_samples_lie_in_both_random_halves_of_a_measure():
    n = 20_000
    rows = thinned(n, 1000)
    half = np.random.default_rng(0).permutation(n)[: n // 2]
    assert np.isin(rows, half).mean() == pytest.approx(0.5, abs=0.05)


def test_more_neighbours_blur_what_is_predicted(rng):
    t = rng.uniform(size=(1000, 1))
    few, many = (
        predictability(t, np.sin(20 * t), settings=PredictionSettings(n_neighbors=k))[0]
        for k in (10, 300)
    )
    assert few > 0.99
    assert many < 0.5
