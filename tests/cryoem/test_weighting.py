import numpy as np
import pytest

from manifactor.cryoem.one_view.images import WeightingSettings, component_weights, spikes


def test_weak_components_have_hardly_any_weight_and_strong_ones_all():
    weights = component_weights(np.array([1e4, 1.0, 0.1]))
    assert weights[0] == pytest.approx(1, abs=1e-3)
    assert weights[1] == 0.125
    assert weights[2] < 1e-3


def test_an_exponent_of_one_is_wieners_filter():
    ratio = np.array([4.0, 1.0])
    settings = WeightingSettings(exponent=1)
    assert component_weights(ratio, settings=settings).tolist() == [0.8, 0.5]


def test_a_signal_in_noise_is_found_with_its_strength(rng):
    n, p, signal = 4000, 400, 5.0
    values = rng.normal(size=(n, p))
    values[:, 0] *= np.sqrt(1 + signal)
    variance = np.linalg.eigvalsh(values.T @ values / n)[::-1]
    found = spikes(variance, p / n)
    assert found[0] == pytest.approx(signal, rel=0.15)
    # Noise alone may exceed its edge by a little, as its largest eigenvalue fluctuates.
    assert (found[5:] == 0).all()
