"""What was proposed is listed, and can be chosen."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from manifactor import ManifoldFactorizer, datasets, factorize, load, save
from manifactor.factorization import Proposal, Proposals
from manifactor.scores import score


@pytest.fixture(scope="module")
def vase():
    X, truth = datasets.sample("vase", 900, random_state=0)
    # Of copies, the distinct rows are factored.
    X, truth = np.vstack([X, X[:50]]), [np.vstack([t, t[:50]]) for t in truth]
    with pytest.MonkeyPatch.context() as patch:
        # A sure result would end the search.
        patch.setattr(factorize, "is_sure", lambda candidate: False)
        return ManifoldFactorizer(random_state=0).fit(X), X, truth


@pytest.mark.medium
def test_candidates_are_listed_the_result_first_then_the_likeliest(vase):
    fit, *_ = vase
    first, *others = fit.candidates_
    assert (first.n_factors, first.probability) == (fit.n_factors_, fit.evidence_.probability)
    assert first.shapes == tuple(factor.shape for factor in fit.factors_)
    known = [each.probability for each in others if not np.isnan(each.probability)]
    assert known == sorted(known, reverse=True)
    lines = str(fit.candidates_).splitlines()
    assert len(lines) == 1 + len(fit.candidates_)
    assert "an interval and a circle" in lines[1]


@pytest.mark.medium
def test_a_candidate_is_chosen_with_its_evidence_and_places(vase, tmp_path):
    fit, X, truth = vase
    chosen = fit.choose(1)
    listed = fit.candidates_[1]
    assert chosen.evidence_.probability == pytest.approx(listed.probability)
    assert chosen.n_factors_ == listed.n_factors
    assert len(chosen.factors_[0].embedding) == len(X)
    assert score([factor.embedding for factor in chosen.factors_], truth).solved
    assert chosen.transform(X[:5]).shape[0] == 5
    # The estimator itself stays as it is, and the table is the same.
    assert fit.candidates_[0].model != listed.model
    assert str(chosen.candidates_) == str(fit.candidates_)
    assert chosen.choose(0).evidence_.tests == fit.evidence_.tests
    # It is saved and loaded like all others.
    save(chosen, tmp_path / "chosen.npz")
    loaded = load(tmp_path / "chosen.npz")
    assert loaded.evidence_.probability == chosen.evidence_.probability
    assert str(loaded.candidates_) == str(fit.candidates_)
    with pytest.raises(ValueError, match="can be chosen only where it was found"):
        loaded.choose(1)


@pytest.mark.medium
def test_what_cannot_be_chosen_is_refused_in_words(vase, tmp_path):
    fit, *_ = vase
    with pytest.raises(ValueError, match="`k` must"):
        fit.choose(len(fit.candidates_))
    with pytest.raises(ValueError, match="can be chosen only where it was found"):
        pickle.loads(pickle.dumps(fit)).choose(1)
    nothing = Proposal("ica", 0, why_not="no components are independent")
    listed = Proposals([*fit.candidates_, nothing])
    with pytest.raises(ValueError, match="no components are independent"):
        replace(fit.factorization_, proposals=listed).choose(len(listed) - 1)


@pytest.mark.medium
@pytest.mark.filterwarnings("ignore")
def test_none_hides_no_division():
    X = np.random.default_rng(0).normal(size=(400, 3)) ** 3
    fit = ManifoldFactorizer(random_state=0).fit(X)
    several = [k for k, each in enumerate(fit.candidates_) if each.n_factors > 1]
    assert fit.verdict_ != "none" or several
    for k in several:
        assert fit.choose(k).n_factors_ == fit.candidates_[k].n_factors


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_factor_that_is_no_larger_than_noise_is_left_out(rng):
    u, v = rng.uniform(size=(2, 2000, 1))
    X = np.hstack([u, 1.4 * v]) @ np.linalg.qr(rng.normal(size=(12, 2)))[0].T
    noisy = X + 0.25 / np.sqrt(12) * rng.normal(size=X.shape)
    fit = ManifoldFactorizer(random_state=0).fit(noisy)
    assert fit.n_factors_ == 2
    places = [factor.embedding for factor in fit.factors_]
    # As far as the noise of a fourth of the smaller factor allows.
    assert score(places, [v, u]).worst > 0.85
    assert score(places, [v, u]).leak < 0.05
    # New samples are placed on those that are left.
    assert [each.coordinate.shape for each in fit.locate(noisy[:7])] == [(7,), (7,)]
