"""Free energies along factors."""

import numpy as np
import pytest
from scipy.stats import vonmises

from manifactor.runs.landscape import landscape
from manifactor.runs.places import Place

pytestmark = pytest.mark.medium

RNG = np.random.default_rng(0)
N = 4000


def measured(places, spread):
    """Places on an interval as posteriors have them: even before, measured with an error."""
    at = places + spread * RNG.normal(size=len(places))
    grid = (np.arange(300) + 0.5) / 300
    weights = np.exp(-((grid - at[:, None]) ** 2) / 2 / spread[:, None] ** 2)
    weights /= weights.sum(axis=1, keepdims=True)
    mean = weights @ grid
    deviation = np.sqrt(weights @ grid**2 - mean**2)
    return Place(mean, "interval", 1 - deviation / np.sqrt(1 / 12), deviation)


def well(n):
    """Places in a well of 8 kT times the squared distance from the middle."""
    drawn = RNG.normal(0.5, 0.25, size=3 * n)
    return drawn[(drawn > 0) & (drawn < 1)][:n]


@pytest.mark.parametrize(("low", "high"), [(0.01, 0.02), (0.1, 0.4)])
def test_the_error_of_places_does_not_flatten_a_well(low, high):
    found = landscape([measured(well(N), RNG.uniform(low, high, N))])
    truth = 8 * (found.centres[0] - 0.5) ** 2
    left = found.energy - truth
    assert np.abs(left - left.mean()).max() < 0.25
    # The ends of an interval are not known as well.
    assert np.all(found.error[5:-5] < 0.3)
    assert np.all(found.error[[0, -1]] > 0.5)


def test_images_that_show_nothing_tell_nothing():
    places = well(N)
    spread = np.full(N, 0.03)
    spread[::2] = 9.0
    both, sure = measured(places, spread), measured(places[1::2], spread[1::2])
    np.testing.assert_allclose(landscape([both]).energy, landscape([sure]).energy, atol=0.2)


def test_even_places_are_flat():
    found = landscape([Place(RNG.uniform(size=N), "interval", np.ones(N), np.full(N, 1e-3))])
    assert found.energy.max() < 0.2


@pytest.mark.slow
def test_two_factors_are_on_a_grid_and_a_circle_goes_around():
    turn = vonmises.rvs(1.0, loc=0.0, size=N, random_state=1) % (2 * np.pi)
    found = landscape([Place(well(N), "interval", np.ones(N)), Place(turn, "circle", np.ones(N))])
    across, around = np.meshgrid(*found.centres, indexing="ij")
    truth = 8 * (across - 0.5) ** 2 - np.cos(np.radians(around))
    left = found.energy - truth
    assert np.abs(left - left.mean()).mean() < 0.15
    header, first = found.as_csv.decode().splitlines()[:2]
    assert header == "coordinate1,coordinate2,density,kT,error_kT"
    assert len(first.split(",")) == 5
