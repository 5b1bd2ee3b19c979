import numpy as np
import pytest

from manifactor.factoring.prediction import (
    PredictionSettings,
    predictability,
    thinned,
)


def test_independent_arrays_predict_nothing_of_each_other(rng):
    assert predictability(rng.normal(size=(3000, 1)), rng.normal(size=(3000, 1)))[
        0
    ] == pytest.approx(0, abs=0.02)
    t = rng.uniform(size=(3000, 1))
    assert predictability(t, np.sin(5 * t))[0] > 0.999


def test_many_samples_are_thinned_evenly_and_few_are_not():
    assert len(np.arange(10_001)[thinned(10_001, 4000)]) == 3334
    assert len(np.arange(4000)[thinned(4000, 4000)]) == 4000


def test_more_neighbours_blur_what_is_predicted(rng):
    t = rng.uniform(size=(1000, 1))
    few, many = (
        predictability(t, np.sin(20 * t), settings=PredictionSettings(n_neighbors=k))[0]
        for k in (10, 300)
    )
    assert few > 0.99
    assert many < 0.5
