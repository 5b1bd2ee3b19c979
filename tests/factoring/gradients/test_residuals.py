import numpy as np
import pytest

from manifactor.factoring.gradients.looks import ResidualSettings, leaves_noise
from manifactor.factoring.prediction import EdgeSettings


@pytest.mark.parametrize("radius", [0.05, 0.1])
def test_a_small_circle_beside_the_factors_is_not_taken_for_noise(rng, radius):
    sheet = rng.uniform(size=(3000, 2))
    angle = rng.uniform(0, 2 * np.pi, size=3000)
    ring = radius * np.c_[np.cos(angle), np.sin(angle)]
    assert not leaves_noise(sheet, np.c_[sheet, ring])
    assert leaves_noise(sheet, np.c_[sheet, radius * rng.normal(size=(3000, 2))])


def test_a_small_factor_is_seen_beside_larger_noise_in_another_direction(rng):
    line, noise = rng.uniform(size=(4000, 1)), rng.normal(size=(4000, 1))
    angle = rng.uniform(0, 2 * np.pi, size=4000)
    ring, strip = np.c_[np.cos(angle), np.sin(angle)], rng.uniform(size=(4000, 1))
    assert not leaves_noise(line, np.c_[line, 0.05 * ring, 0.12 * noise])
    assert not leaves_noise(line, np.c_[line, 0.3 * strip, 0.3 * noise])
    assert not leaves_noise(line, np.c_[line, 0.3 * strip + 0.05 * noise])
    assert leaves_noise(line, np.c_[line, 0.3 * noise])


def test_nothing_left_is_nothing_missing(rng):
    line = rng.uniform(size=(500, 1))
    assert leaves_noise(line, np.ones((500, 2)))


def test_a_strip_is_noise_if_an_edge_must_be_sharper_than_an_interval_s(rng):
    line, strip = rng.uniform(size=(2, 3000, 1))
    both = np.hstack([line, 0.3 * strip])
    assert not leaves_noise(line, both)
    sharp = ResidualSettings(edges=EdgeSettings(depth=1.5))
    assert leaves_noise(line, both, settings=sharp)


def test_noise_in_many_directions_is_noise(rng):
    line, noise = rng.uniform(size=(3000, 1)), 0.1 * rng.normal(size=(3000, 20))
    assert leaves_noise(line, np.hstack([line, noise]))
