import numpy as np
import pytest

from studies.conditions import NOISES, Conditions, draw_conditions, meet
from studies.mixture import FAMILIES, draw
from studies.parts import Drawn, Source


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_draws_samples_with_their_truths_and_the_same_ones_again(family):
    problem, again = (draw(5, family=family, n_samples=250) for _ in range(2))
    assert np.array_equal(problem.X, again.X)
    assert problem.conditions == again.conditions
    assert len(problem.X) <= 250
    assert np.isfinite(problem.X).all()
    for truth in problem.truths:
        assert all(len(t) == len(problem.X) and np.isfinite(t).all() for t in truth)
    assert not (problem.is_product and len(problem.truth) == 1)


@pytest.mark.medium
def test_conditions_are_as_wide_as_they_are_said_to_be():
    rng = np.random.RandomState(0)
    drawn = [draw_conditions(rng) for _ in range(1000)]
    n = np.array([each.n for each in drawn])
    noise = np.array([each.noise for each in drawn])
    assert 700 < np.median(n) < 1600
    assert n.min() < 220
    assert n.max() > 12_000
    assert np.mean(noise == 0) == pytest.approx(1 / 3, abs=0.05)
    assert 0.4 < noise.max() <= 0.5
    assert max(each.columns for each in drawn) > 300


@pytest.fixture(scope="module")
def square():
    places = np.random.default_rng(0).uniform(size=(2, 3000, 1))
    X = np.hstack(places)
    return Drawn(X, [tuple(places)], "square", True, float(X.std(axis=0).min()))


def meeting(drawn, **changes):
    n = changes.pop("n", len(drawn.X))
    return meet(Conditions(n, **changes), drawn, np.random.RandomState(0))


@pytest.mark.parametrize("kind", NOISES)
def test_noise_has_the_size_that_is_said(square, kind):
    X, (truth,), _ = meeting(square, noise=0.3, kind=kind)
    noise = X - np.hstack(truth)
    spread = np.sqrt((noise**2).mean())
    if kind == "heavy-tailed":
        spread = np.median(np.abs(noise)) / 0.6745
    assert spread == pytest.approx(0.3 * square.smallest, rel=0.05)


def test_noise_of_many_columns_is_as_large_as_that_of_ten(square):
    clean, noisy = (meeting(square, noise=noise, columns=200)[0] for noise in (0.0, 0.3))
    assert noisy.shape[1] == 200
    added = noisy.var(axis=0).sum() - clean.var(axis=0).sum()
    assert added == pytest.approx(10 * (0.3 * square.smallest) ** 2, rel=0.2)


@pytest.mark.parametrize(
    ("copies", "distinct"), [("none", 1000), ("some", 900), ("five each", 200)]
)
def test_copies_are_rows_that_are_equal(square, copies, distinct):
    X, (truth,), _ = meeting(square, n=1000, noise=0.1, copies=copies)
    assert len(X) == len(truth[0]) == 1000
    assert len(np.unique(X, axis=0)) == distinct


@pytest.mark.parametrize("void", ["corner", "hole"])
def test_a_void_leaves_samples_that_lie_as_before(square, void):
    X, (truth,), met = meeting(square, void=void)
    assert 0.75 * len(square.X) < met.n < 0.97 * len(square.X)
    assert np.allclose(X, np.hstack(truth))


def test_missing_cells_and_outliers_are_as_many_as_said(square):
    X, (truth,), _ = meeting(square, missing=0.1)
    assert np.mean(np.hstack(truth) != X) == pytest.approx(0.1, abs=0.015)
    X, (truth,), _ = meeting(square, outliers=0.02)
    assert np.mean((np.hstack(truth) != X).any(axis=1)) == pytest.approx(0.02, abs=0.01)


def test_places_depend_on_each_other_as_said():
    places = Source(20_000, np.random.RandomState(0), 0.6).places(2)
    assert np.corrcoef(places)[0, 1] == pytest.approx(6 / np.pi * np.arcsin(0.3), abs=0.02)
    assert np.quantile(places, [0.25, 0.75]) == pytest.approx([0.25, 0.75], abs=0.02)
