"""The two examples of docs/architecture.md: a model and a measure are a function and a row each."""

from dataclasses import replace

import numpy as np
import pytest

from manifactor import MODELS, ManifoldFactorizer, load, save
from manifactor.judging import candidate as judging
from manifactor.judging.candidate import Candidate, measured
from manifactor.judging.measure import Measure
from manifactor.judging.table import CRITERIA, MEASURES
from manifactor.kinds import Model, always, as_they_are
from manifactor.models.components import linear_sum
from manifactor.models.sums.independence import main_directions
from manifactor.models.sums.summands import ByTerms

pytestmark = pytest.mark.medium


# A model: principal components are places on intervals.
def by_axes(model, operator, facts, tried):
    """Read factors off the first two principal components of the samples."""
    directions = main_directions(operator.points, rng=facts.stream(model.name))
    axes = np.eye(directions.axes.shape[1])[:, :2]
    total = linear_sum(directions, operator.points, [axes[:, [0]], axes[:, [1]]])
    kinds, factors = frozenset({"places"}), total.factors(operator.points)
    made = Candidate(model.name, model.sense, operator, facts, kinds, factors, ByTerms(total))
    yield measured(made)


AXES = Model("axes", "axes", "Factors are principal axes.", as_they_are, by_axes, always)

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
    monkeypatch.setitem(MODELS, "axes", replace(AXES))
    # Others that are sure would end the search.
    for name in ("sum", "ica"):
        never = replace(MODELS[name], worth_trying=lambda *_: False)
        monkeypatch.setitem(MODELS, name, never)
    fit = ManifoldFactorizer(2, random_state=0).fit(mixture)
    tried = {each.model: each for each in fit.candidates_}
    # It is measured and rated beside all others, and printed with them.
    assert {"leakage", "folds", "filling", "skew"} <= set(tried["axes"].measured)
    assert 0 < tried["axes"].probability <= 1
    assert "axes" in str(fit.candidates_)
    assert "axes: Factors are principal axes." in str(MODELS)
    # It is taken, saved, loaded and placed like all others.
    for name in MODELS.keys() - {"one factor", "axes"}:
        never = replace(MODELS[name], worth_trying=lambda *_: False)
        monkeypatch.setitem(MODELS, name, never)
    # The mixture is skewed, so that its factors are returned only if they are asked for.
    fit = ManifoldFactorizer(2, random_state=0).fit(mixture)
    assert (fit.evidence_.sense, fit.n_factors_) == ("axes", 2)
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
