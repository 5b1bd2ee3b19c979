import numpy as np
import pytest
from scipy import stats

from manifactor.datasets.densities import (
    Beta,
    Bumps,
    Exponential,
    Gap,
    Normal,
    Uneven,
    VonMises,
    Wells,
)
from manifactor.datasets.products import Interval, circle

DENSITIES = [Beta(2, 5), Bumps(0.12), VonMises(2.0), Wells(3.0, 0.5), Gap(0.1, 0.45)]


def drawn(part, n_samples=4000):
    return part.draw(n_samples, np.random.RandomState(0))


def angles(latents):
    return np.arctan2(latents[:, 1], latents[:, 0])


@pytest.mark.parametrize("density", DENSITIES)
def test_densities_are_probabilities_of_keeping_a_sample(density):
    values = density(np.linspace(0, 1, 1001))
    assert values.min() >= 0
    assert 0.5 <= values.max() <= 1


@pytest.mark.parametrize(
    ("part", "latent", "law"),
    [
        (Uneven(Interval(3.0), Beta(2, 5)), np.ravel, stats.beta(2, 5)),
        (Uneven(circle(), VonMises(1.5)), angles, stats.vonmises(1.5)),
        (Normal(3.0), np.ravel, stats.norm()),
        (Exponential(3.0), np.ravel, stats.expon()),
    ],
)
def test_latents_follow_the_named_distribution(part, latent, law):
    _, latents = drawn(part)
    assert stats.kstest(latent(latents), law.cdf).pvalue > 0.01


@pytest.mark.parametrize(
    ("part", "scale"),
    [
        (Uneven(Interval(3.0), Beta(2, 5)), 3.0),
        (Uneven(circle(2.0), VonMises(1.5)), 2.0),
        (Normal(0.5), 0.5),
        (Exponential(4.0), 4.0),
    ],
)
def test_points_are_latents_in_units_of_the_part(part, scale):
    points, latents = drawn(part, 100)
    np.testing.assert_allclose(points, scale * latents)


def test_wells_are_as_deep_as_their_barrier():
    place = np.linspace(0, 1, 1201)
    energy = -np.log(Wells(2.0, 0.0)(place))
    assert np.ptp(energy) == pytest.approx(2.0)
    minima = (energy[1:-1] < energy[:-2]) & (energy[1:-1] < energy[2:])
    assert minima.sum() == 3
    tilted = -np.log(Wells(2.0, tilt=0.5)(place[[200, 600, 1000]]))
    assert len(np.unique(tilted.round(3))) == 3


def test_a_gap_holds_no_samples_and_the_rest_is_even():
    _, latents = drawn(Uneven(Interval(), Gap(0.1, 0.4)))
    t = latents[:, 0]
    assert not ((t > 0.4) & (t < 0.5)).any()
    closed = np.where(t < 0.45, t, t - 0.1) / 0.9
    assert stats.kstest(closed, "uniform").pvalue > 0.01


def test_bumps_of_width_12_percent_leave_a_tenth_of_the_density_everywhere():
    values = Bumps(0.12)(np.linspace(0, 1, 1001))
    assert values.min() >= 0.1 * values.max()
    # A valley between them all the same.
    assert values[500] < 0.3 * values.max()
