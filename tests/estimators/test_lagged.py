"""Fits by pairs of samples a lag apart, whose operator is taken instead of a metric."""

import numpy as np
import pytest

from manifactor import ManifoldFactorizer, load, save
from manifactor.estimators.moving import read_moves
from manifactor.judging.evidence import NoProductStructureWarning
from manifactor.models.moves.paths import Pairs
from manifactor.scores import score

from ..moving import latents, seen

pytestmark = pytest.mark.medium

STEPS = (0.15, 0.2)


def factored(X, **known):
    return ManifoldFactorizer(random_state=0).fit(X, **known)


def truth_of(u):
    return [u[:, [0]], u[:, [1]]]


@pytest.fixture(scope="module")
def path():
    u = latents(6000, np.random.default_rng(1), steps=STEPS)
    return u, seen(u)


@pytest.fixture(scope="module")
def fit(path):
    _, X = path
    return factored(X[:-1], pairs=X[1:], lag=0.5, fit_samples=800)


def test_pairs_of_long_moves_tell_the_factors_of_a_bent_map(path, fit):
    u, _ = path
    assert fit.evidence_.sense == "dynamics"
    assert score([factor.embedding for factor in fit.factors_], truth_of(u[fit.rows_])).solved
    assert fit.choices_["dynamics"].value == "pairs"
    names = {test.name for test in fit.evidence_.tests}
    assert names >= {"transitions", "coverage", "moves", "completeness"}
    assert "resolution" not in names
    assert fit.diffusion_.path is None
    assert not fit.diffusion_.lagged


def test_rates_are_those_of_the_process_in_the_callers_time(fit):
    # A reflected walk forgets cos(k pi u) at a rate of (k pi step)^2 / 2 in each step of .5.
    for rates, step in zip(fit.rates_, STEPS, strict=True):
        assert rates[0] == pytest.approx((np.pi * step) ** 2 / 2 / 0.5, rel=0.1)


def test_without_moves_there_are_no_rates(path):
    plain = ManifoldFactorizer(random_state=0, n_factors=1).fit(path[1][:200])
    assert not hasattr(plain, "rates_")
    with pytest.raises(ValueError, match="needs `pairs`"):
        plain.markov_model(0)


def test_archives_hold_rates_but_no_pairs(fit, tmp_path):
    save(fit, tmp_path / "fit.npz")
    loaded = load(tmp_path / "fit.npz")
    assert np.array_equal(loaded.rates_[0], fit.rates_[0])
    with pytest.raises(ValueError, match="loaded from a file"):
        loaded.markov_model(0)


def test_a_markov_model_has_the_rates_of_its_factor(fit):
    model = fit.markov_model(0, n_states=25)
    T, pi = model.transition_matrix, model.stationary_distribution
    assert T.shape == (25, 25)
    assert np.allclose(T.sum(axis=1), 1)
    assert np.allclose(pi @ T, pi)
    assert np.allclose(pi[:, None] * T, (pi[:, None] * T).T)  # reversible
    assert model.edges[[0, -1]].tolist() == [0, 1]
    assert repr(model) == f"MarkovModel(25 states, lag={model.lag:g})"
    slowest = np.sort(np.linalg.eigvals(T).real)[-2]
    assert -np.log(slowest) / model.lag == pytest.approx(fit.rates_[0][0], rel=0.1)


def test_short_steps_or_too_few_of_them_are_taken_as_a_metric_and_a_lag_decides(path):
    def moves(X, lag=None):
        times = 0.5 * np.arange(len(X))
        return read_moves(ManifoldFactorizer(), X, {"times": times, "trajectories": False}, lag)[1]

    _, X = path
    short = seen(latents(3000, np.random.default_rng(1)))
    assert "shorter than" in moves(short).why
    assert "too few for the operator" in moves(X[:1200]).why
    assert isinstance(moves(X), Pairs)
    assert "correlation times are enough" in moves(X).why
    assert moves(X, lag=0).why == "the caller gave a lag of 0"
    by_lag = moves(short, lag=1.1)
    assert (by_lag.time, len(by_lag.before)) == (1.0, 2998)
    assert np.array_equal(by_lag.after[0], short[2])


def test_latents_that_pull_each_other_are_not_called_a_product(rng):
    u, at = np.empty((6000, 2)), np.array([0.3, 0.6])
    for t in range(len(u)):
        move = rng.normal(size=2) * 0.15
        move[1] += 0.3 * (at[0] - at[1])
        at = 1 - np.abs(1 - np.abs(at + move))
        u[t] = at
    with pytest.warns(NoProductStructureWarning):
        found = factored(seen(u[:-1]), pairs=seen(u[1:]), fit_samples=800)
    assert found.verdict_ == "none"


X60 = np.random.default_rng(0).normal(size=(60, 3))
BAD = [
    ({"pairs": X60[:59]}, r"shape of `X`, \(60, 3\), .*; got \(59, 3\)"),
    ({"pairs": X60}, "`pairs` must differ from `X`"),
    ({"pairs": X60 * [[np.nan, 1, 1]]}, "`pairs` must be finite"),
    ({"pairs": X60 + 1, "lag": 0}, "`lag` must be positive with `pairs`"),
    ({"pairs": X60 + 1, "lag": -1.0}, "`lag` must"),
    ({"lag": 1.0}, "`lag` is for `pairs`, `times` and `trajectories`"),
    ({"pairs": X60 + 1, "times": np.arange(60)}, "in one way; got `times` and `pairs`"),
    ({"times": np.cumsum(np.ones(60)), "lag": 30}, "`lag` must leave 50 pairs or more"),
]


@pytest.mark.parametrize(("known", "message"), BAD)
def test_pairs_that_cannot_be_used_say_what_must_hold(known, message):
    X = np.cumsum(X60, axis=0) if "times" in known else X60
    with pytest.raises(ValueError, match=message):
        ManifoldFactorizer().fit(X, **known)


def test_few_pairs_are_refused():
    with pytest.raises(ValueError, match="`pairs` must be 50 or more"):
        ManifoldFactorizer().fit(X60[:20], pairs=X60[20:40])


def test_pairs_that_do_not_depend_on_each_other_are_refused(rng):
    with pytest.raises(ValueError, match="last for a lag, and show none"):
        factored(rng.random((3000, 2)), pairs=rng.random((3000, 2)), fit_samples=300)


def test_pairs_are_tried_where_a_metric_says_little():
    # Steps of .06 pass the bends of the map, but not the 64th neighbour.
    X = seen(latents(12_000, np.random.default_rng(0), steps=(0.06, 0.06)))
    fit = factored(X, times=np.arange(len(X)), fit_samples=500)
    assert fit.verdict_ == "product"
    assert 'by a metric is "partial"' in fit.choices_["dynamics"].why
