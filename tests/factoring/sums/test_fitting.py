import numpy as np
import pytest

from manifactor.factoring.sums.fitting import Fitter, Reading

from ..places import ring


def read(X, surfaces=True):
    return Fitter(64, surfaces, np.random.default_rng(0)).read(X)


def test_a_gaussian_line_is_an_interval(rng):
    line = rng.normal(size=(1000, 1)) @ [[3.0, 4.0]]
    reading = read(line)
    assert reading.topology == "interval"
    assert abs(np.corrcoef(reading.places[:, 0], line[:, 0])[0, 1]) > 0.999


def test_a_circle_with_wells_is_a_circle_and_one_with_a_gap_an_interval(rng):
    wells = np.repeat([0, 2.1, 4.2], 500) + 0.35 * rng.normal(size=1500)
    assert read(ring(wells)).topology == "circle"
    arc = rng.uniform(0, 5, size=1500)
    reading = read(ring(arc))
    assert reading.topology == "interval"
    assert abs(np.corrcoef(reading.places[:, 0], arc)[0, 1]) > 0.999


def test_a_curve_that_was_read_as_a_circle_is_opened_when_it_is_fitted(rng):
    arc = rng.uniform(0, 4.5, size=1000)
    samples = ring(arc) - ring(arc).mean(axis=0)
    # Angles that leave hardly a gap.
    reading = Reading("circle", ring(arc * 6.0 / 4.5), 1.0)
    fitter = Fitter(64, False, rng)
    first = fitter.fit(samples, reading)
    assert first.sheet.topology == "circle"
    (polished,) = fitter.polish(samples, [first])
    assert polished.sheet.topology == "interval"
    assert abs(np.corrcoef(polished.at.places[:, 0], arc)[0, 1]) > 0.999


@pytest.mark.slow
def test_a_curve_that_winds_is_read_from_its_own_diffusion(rng):
    t = rng.uniform(2, 14, size=1500)
    reading = read(t[:, None] * ring(t), surfaces=False)
    assert reading.topology == "interval"
    assert reading.explained > 0.99


@pytest.mark.slow
def test_a_disk_is_a_surface_unless_only_curves_are_asked_for(rng):
    disk = np.sqrt(rng.uniform(size=1500))[:, None] * ring(rng.uniform(0, 7, size=1500))
    assert read(disk).topology == "other"
    curve = read(disk, surfaces=False)
    assert curve.topology != "other"
    assert curve.explained < 0.93
