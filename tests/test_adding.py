"""The two examples of docs/architecture.md: a model and a measure are a function and a row each."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.decomposition import FastICA

from manifactor import MODELS, ManifoldFactorizer, load, save
from manifactor.judging import candidate as judging
from manifactor.judging.candidate import Candidate, measured
from manifactor.judging.measure import Measure
from manifactor.judging.table import CRITERIA, MEASURES
from manifactor.kinds import Model, always, as_they_are
from manifactor.models.sums.independence import main_directions
from manifactor.models.sums.summands import ByTerms, Sum, Summand
from manifactor.models.sums.terms import Reading, fit_reading, share_left

pytestmark = pytest.mark.medium


# A model: components that are independent are straight terms of a sum.
def by_components(model, operator, facts, tried):
    """Read factors off the independent components of the samples."""
    samples, rng = operator.points, np.random.default_rng(0)
    directions = main_directions(samples, rng=rng)
    shown = directions(samples)
    ica = FastICA(shown.shape[1], random_state=0, whiten="unit-variance")
    parts = ica.fit_transform(shown)
    terms = [
        fit_reading(np.outer(part, column), Reading("interval", part[:, None], 1.0))
        for part, column in zip(parts.T, ica.mixing_.T, strict=True)
    ]
    starts = (np.linalg.lstsq(shown, term.at.means, rcond=None)[0] for term in terms)
    summands = tuple(
        Summand(term.sheet, start, term.variance, 1.0)
        for term, start in zip(terms, starts, strict=True)
    )
    total = Sum(directions, summands, share_left(shown, terms), noise_left=True)
    kinds, factors = frozenset({"places"}), total.factors(samples)
    made = Candidate(model.name, model.sense, operator, facts, kinds, factors, ByTerms(total))
    yield measured(made)


ICA = Model("ica", "ica", "Components are independent.", as_they_are, by_components, always)

# A measure: how many factors there are for each column.
CROWDING = Measure(
    "crowding",
    1.0,
    "number of factors for each column of the samples",
    "there are {value:.1f} factors for each column",
    "Ask for fewer factors with `n_factors`.",
    at_most=True,
    of=lambda candidate, facts: len(candidate.factors) / facts.drawn.columns.shape[1],
    models=frozenset({"geometry", "places"}),
)


@pytest.fixture
def mixture(rng):
    """Two independent uniform columns, mixed so that their directions are not orthogonal."""
    return rng.uniform(-1, 1, size=(900, 2)) @ np.array([[1.0, 0.9], [0.0, 0.6]])


def test_a_model_is_a_function_and_a_row(monkeypatch, mixture, tmp_path):
    monkeypatch.setitem(MODELS, "ica", replace(ICA))
    fit = ManifoldFactorizer(random_state=0).fit(mixture)
    tried = {each.name: each for each in fit.factorization_.tried}
    # It is measured and rated beside all others, and printed with them.
    assert {"leakage", "folds", "filling", "skew"} <= set(tried["ica"].measured)
    assert 0 < tried["ica"].probability <= 1
    assert "ica" in fit.choices_["sense"].why
    assert "ica: Components are independent." in str(MODELS)
    # It is taken, saved, loaded and placed like all others.
    for name in MODELS.keys() - {"one factor", "ica"}:
        never = replace(MODELS[name], worth_trying=lambda *_: False)
        monkeypatch.setitem(MODELS, name, never)
    # The mixture is skewed, so that its factors are returned only if they are asked for.
    fit = ManifoldFactorizer(2, random_state=0).fit(mixture)
    assert (fit.evidence_.sense, fit.n_factors_) == ("ica", 2)
    save(fit, tmp_path / "fit.npz")
    again = load(tmp_path / "fit.npz")
    np.testing.assert_allclose(again.transform(mixture), fit.transform(mixture))


def test_a_measure_is_a_row(monkeypatch, mixture):
    monkeypatch.setattr(judging, "MEASURES", (*MEASURES, CROWDING))
    monkeypatch.setitem(CRITERIA, "crowding", CROWDING)
    (X,) = (np.hstack([mixture, mixture[:, :1] ** 2]),)
    fit = ManifoldFactorizer(random_state=0, sense="geometry").fit(X)
    (test,) = [each for each in fit.evidence_.tests if each.name == "crowding"]
    assert test.value == pytest.approx(fit.n_factors_ / 3)
