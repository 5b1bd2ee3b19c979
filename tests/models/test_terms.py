import numpy as np
import pytest

from manifactor.models.sums.terms import Fitter, Reading, agreement, find_sum, fit_reading
from manifactor.scores import score

from ..factoring.places import ring, sphere


def find(X, max_factors=6):
    rng = np.random.default_rng(0)
    return find_sum(X, max_factors=max_factors, n_neighbors=64, rng=rng)


def read(X, surfaces=True):
    return Fitter(6, 64, np.random.default_rng(0), surfaces).read(X)


def solved(found, X, truth):
    return score(found.explain(X).places, truth).solved


@pytest.mark.medium
@pytest.mark.parametrize("sd", [(1.5, 1), (5, 1), (4, 2, 1)])
def test_gaussians_of_different_widths_are_told_apart(rng, sd):
    truth = rng.normal(size=(1000, len(sd)))
    X = truth * sd
    found = find(X)
    assert solved(found, X, [column[:, None] for column in truth.T])
    assert found.left < 1e-4
    assert 0 < found.axes_error < 0.1


@pytest.mark.medium
def test_a_factor_thirty_times_weaker_is_found(rng):
    angle, t = rng.uniform(0, 2 * np.pi, size=800), rng.uniform(size=800)
    X = np.column_stack([10 * ring(angle), t])
    found = find(X)
    assert [term.sheet.topology for term in found.summands] == ["circle", "interval"]
    assert solved(found, X, [ring(angle), t[:, None]])


@pytest.mark.medium
def test_noise_with_heavy_tails_is_no_term_beside_a_circle_and_an_interval(rng):
    angle, t = rng.uniform(0, 2 * np.pi, size=2000), rng.uniform(size=2000)
    X = np.column_stack([ring(angle), 2 * t, np.zeros((2000, 3))])
    noisy = X + 0.02 * rng.standard_t(3, size=X.shape)
    found = find(noisy)
    assert [term.sheet.topology for term in found.summands] == ["circle", "interval"]
    assert solved(found, noisy, [ring(angle), t[:, None]])


@pytest.mark.medium
def test_the_strongest_term_comes_first_and_shares_are_of_what_others_leave(rng):
    X = rng.uniform(size=(1000, 3)) * [1, 5, 2] + 0.05 * rng.normal(size=(1000, 3))
    found = find(X)
    variances = [term.variance for term in found.summands]
    assert variances == sorted(variances, reverse=True)
    assert min(term.explained for term in found.summands) == found.own_share > 0.9
    assert len(find(X, max_factors=2).summands) == 2


@pytest.mark.medium
def test_some_terms_of_a_sum_leave_the_others_as_noise(rng):
    X = rng.uniform(size=(1000, 3)) * [5, 2, 1]
    whole = find(X)
    some = whole.chosen([0, 1])
    assert solved(some, X, [X[:, :1], X[:, 1:2]])
    variances = X.var(axis=0)
    assert some.left == pytest.approx(variances[2] / variances.sum(), rel=0.05)
    assert some.structured_rest == 0


@pytest.mark.medium
def test_functions_of_an_interval_are_its_own_cosines_and_halves_of_a_strip_agree(rng):
    t = rng.uniform(size=(800, 2))
    X = t * [8, 1]
    found = find(X)
    long, short = found.factors(X)
    np.testing.assert_allclose(long.eigenvalues, (np.pi * np.arange(1, 7) / 8) ** 2, rtol=0.05)
    assert abs(np.corrcoef(short.functions[:, 0], np.cos(np.pi * t[:, 1]))[0, 1]) > 0.99
    np.testing.assert_allclose((short.functions**2).mean(axis=0), 1)
    assert agreement(found, X, find, rng=rng) > 0.95
    assert agreement(found, X, lambda half: find(half[:, ::-1]), rng=rng) < 0.5


@pytest.mark.slow
def test_a_surface_and_a_weak_circle_add_up(rng):
    surface, circle = sphere(rng, 1200), ring(rng.uniform(0, 2 * np.pi, size=1200))
    X = np.hstack([10 * surface, circle])
    found = find(X)
    assert [term.sheet.dimension for term in found.summands] == [2, 1]
    assert solved(found, X, [surface, circle])


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
    first = fit_reading(samples, reading)
    assert first.sheet.topology == "circle"
    (polished,) = Fitter(1, 64, rng).polish(samples, [first])
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
