"""Levels of a factor, and classes: pieces of the samples that are copies of each other."""

import numpy as np
import pytest

from manifactor import ManifoldFactorizer, load, save
from manifactor.factors.factor import Factor
from manifactor.judging.measures.product import told_of_pieces


def ring(angle):
    return np.column_stack([np.cos(angle), np.sin(angle)])


def along(coordinate, topology="interval"):
    """A factor of four functions of a coordinate."""
    turns = np.arange(1, 5) * (np.pi if topology == "interval" else 1)
    functions, sure = np.cos(coordinate[:, None] * turns), np.ones(len(coordinate))
    return Factor(functions, turns**2, topology, 1, coordinate[:, None], coordinate, sure)


@pytest.mark.parametrize("spread", [0.05, 0.2])
@pytest.mark.parametrize("count", [6, 10, 40])
def test_a_factor_says_at_how_many_places_samples_lie(rng, count, spread):
    level = rng.integers(count, size=2000) + spread * rng.normal(size=2000)
    assert along(level / (count - 1)).shape == f"{count} levels on an interval"
    angle = 2 * np.pi * level / count % (2 * np.pi)
    assert along(angle, "circle").shape == f"{count} levels on a circle"


def test_few_levels_are_classes(rng):
    assert along(rng.integers(3, size=500) / 2).shape == "3 classes"
    # Clusters at three of eight places along a curve are not eight levels.
    assert along(rng.choice([0, 3, 7], size=500) / 7).n_levels == 3


@pytest.mark.parametrize("seed", range(20))
def test_a_curve_has_no_levels(seed):
    rng = np.random.default_rng(seed)
    assert along(rng.random(1000)).n_levels == 1
    assert along(rng.beta(2, 5, size=300)).n_levels == 1
    assert along(2 * np.pi * rng.random(500), "circle").n_levels == 1


@pytest.fixture(scope="module")
def levels():
    """Eight places on a circle beside an interval, and the fit."""
    rng = np.random.default_rng(0)
    level, u = rng.integers(8, size=800), rng.random(800)
    X = np.column_stack([ring(2 * np.pi * level / 8), 2 * u]) + 0.01 * rng.normal(size=(800, 3))
    return X, level, u, ManifoldFactorizer(random_state=0).fit(X)


@pytest.mark.medium
def test_levels_on_a_circle_are_found_and_named(levels):
    _, level, u, fit = levels
    assert fit.verdict_ == "product"
    shapes = {factor.shape: factor.coordinate for factor in fit.factors_}
    assert set(shapes) == {"8 levels on a circle", "an interval"}
    assert abs(np.corrcoef(shapes["an interval"], u)[0, 1]) > 0.99
    step = np.round(shapes["8 levels on a circle"] / (2 * np.pi / 8)).astype(int)
    # Up to where the circle begins and which way it runs.
    assert any(len(set((step - sign * level) % 8)) == 1 for sign in (1, -1))


@pytest.mark.medium
def test_new_samples_lie_on_the_level_of_their_nearest(levels, tmp_path):
    X, _, _, fit = levels
    at = fit.transform(X + 1e-4)
    np.testing.assert_allclose(at, fit.transform(X), atol=0.01)
    np.testing.assert_allclose(fit.transform(X), fit.factorization_.places().places, atol=1e-6)
    save(fit, tmp_path / "fit.npz")
    np.testing.assert_array_equal(load(tmp_path / "fit.npz").transform(X), fit.transform(X))


@pytest.mark.medium
def test_classes_beside_a_circle_are_a_factor(rng):
    kind, angle = rng.integers(3, size=900), rng.uniform(0, 2 * np.pi, 900)
    X = np.hstack([3 * np.eye(3)[kind], ring(angle)]) + 0.02 * rng.normal(size=(900, 5))
    fit = ManifoldFactorizer(random_state=0).fit(X)
    (own,) = [factor for factor in fit.factors_ if factor.shape == "3 classes"]
    assert len(fit.factors_) == 2
    assert len(set(zip(kind, own.coordinate, strict=True))) == 3


def test_classes_that_no_factor_tells_are_said(rng):
    kind, angle = rng.integers(3, size=600), rng.uniform(0, 2 * np.pi, (2, 600))
    places = [ring(each) for each in angle]
    assert told_of_pieces(places, kind) < 0.2
    assert told_of_pieces([*places, kind[:, None] / 2], kind) > 0.9
