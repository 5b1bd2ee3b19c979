import numpy as np
import pytest

from manifactor import datasets
from manifactor.factoring.sums.fitting import Fitted
from manifactor.factoring.sums.peeling import agreement, axes_error, is_noise, peel_samples
from manifactor.factoring.sums.sheets import lay_sheet
from manifactor.scores import score

from ..places import ring


def peel(X, max_factors=6):
    rng = np.random.default_rng(0)
    return peel_samples(X, max_factors=max_factors, n_neighbors=64, rng=rng)


def solved(found, X, truth):
    return score(found.explain(X).places, truth).solved


@pytest.mark.parametrize("sd", [(1.5, 1), (5, 1), (4, 2, 1)])
def test_gaussians_of_different_widths_are_told_apart(rng, sd):
    truth = rng.normal(size=(1000, len(sd)))
    X = truth * sd
    found = peel(X)
    assert solved(found, X, [column[:, None] for column in truth.T])
    assert found.left < 1e-4
    assert 0 < found.axes_error < 0.1


def test_a_factor_thirty_times_weaker_is_found(rng):
    angle, t = rng.uniform(0, 2 * np.pi, size=1500), rng.uniform(size=1500)
    X = np.column_stack([10 * ring(angle), t])
    found = peel(X)
    assert [term.topology for term in found.summands] == ["circle", "interval"]
    assert solved(found, X, [ring(angle), t[:, None]])


def test_the_strongest_term_comes_first_and_shares_are_of_what_others_leave(rng):
    X = rng.uniform(size=(1000, 3)) * [1, 5, 2] + 0.05 * rng.normal(size=(1000, 3))
    found = peel(X)
    variances = [term.variance for term in found.summands]
    assert variances == sorted(variances, reverse=True)
    assert min(term.explained for term in found.summands) == found.own_share > 0.9
    assert len(peel(X, max_factors=2).summands) == 2


def test_functions_of_an_interval_are_its_own_cosines_and_halves_of_a_strip_agree(rng):
    t = rng.uniform(size=(800, 2))
    X = t * [8, 1]
    found = peel(X)
    long, short = found.factors(X)
    np.testing.assert_allclose(long.eigenvalues, (np.pi * np.arange(1, 7) / 8) ** 2, rtol=0.05)
    assert abs(np.corrcoef(short.functions[:, 0], np.cos(np.pi * t[:, 1]))[0, 1]) > 0.99
    np.testing.assert_allclose((short.functions**2).mean(axis=0), 1)
    assert agreement(found, X, peel, rng=rng) > 0.95
    assert agreement(found, X, lambda half: peel(half[:, ::-1]), rng=rng) < 0.5


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["disk", "triangle", "sphere", "moebius"])
def test_an_irreducible_shape_is_one_term(shape):
    X, _ = datasets.sample(shape, 1500, random_state=0)
    assert len(peel(X).summands) == 1


@pytest.mark.slow
def test_a_surface_and_a_weak_circle_add_up(rng):
    sphere = rng.normal(size=(1200, 3))
    sphere /= np.linalg.norm(sphere, axis=1, keepdims=True)
    circle = ring(rng.uniform(0, 2 * np.pi, size=1200))
    X = np.hstack([10 * sphere, circle])
    found = peel(X)
    assert [term.dimension for term in found.summands] == [2, 1]
    assert solved(found, X, [sphere, circle])


def test_noise_has_no_edge_and_an_interval_has_one(rng):
    noise = rng.normal(size=(2000, 3))
    assert is_noise(noise)
    assert not is_noise(np.column_stack([noise[:, 0], rng.uniform(size=2000)]))


def test_equal_gaussians_have_no_axes(rng):
    def fitted(values):
        sheet = lay_sheet(values, "interval", values)
        return Fitted(sheet, sheet.project(values), 1.0)

    a, b = rng.normal(size=(2, 2000, 1))
    b = b * a.std() / b.std()
    assert axes_error([fitted(a), fitted(b)]) > 0.5
    assert axes_error([fitted(a), fitted(3 * b)]) < 0.02
    assert axes_error([fitted(a), fitted(rng.uniform(size=(2000, 1)))]) == 0
