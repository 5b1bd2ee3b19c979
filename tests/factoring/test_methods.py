"""Factors whose lengths depend on the place on another factor."""

from dataclasses import replace

import numpy as np
import pytest

from manifactor import ManifoldFactorizer
from manifactor.datasets.not_products import Revolution
from manifactor.factoring import methods
from manifactor.factoring.judging.criteria import CRITERIA
from manifactor.factoring.methods import find_in_functions, weigh_peeled
from manifactor.scores import score
from manifactor.spectral.pipeline import diffuse


def points(factor):
    if factor.topology == "circle":
        return np.column_stack([np.cos(factor.coordinate), np.sin(factor.coordinate)])
    return factor.embedding


def spheroid(n_samples, axis):
    sphere = np.random.default_rng(0).normal(size=(n_samples, 3))
    sphere /= np.linalg.norm(sphere, axis=1, keepdims=True)
    return sphere * [1, 1, axis]


@pytest.fixture
def peeled(monkeypatch):
    """Peel samples, without a look at what is found."""
    monkeypatch.setattr(methods, "weigh_peeled", lambda peeled, *_, **__: peeled)

    def peel(X):
        diffusion = diffuse(X, rng=np.random.default_rng(0))
        return find_in_functions(diffusion, None, grow=False, rng=np.random.default_rng(0))

    return peel


def weighed(found):
    return weigh_peeled(found, None, rng=np.random.default_rng(0))


def with_limit(monkeypatch, name, limit):
    monkeypatch.setitem(CRITERIA, name, replace(CRITERIA[name], limit=limit))


@pytest.mark.slow
def test_refused_factors_are_taken_if_nothing_but_their_lengths_is_wrong(peeled, monkeypatch):
    X, _ = Revolution("bulge", 3.0, 12.0)(1200, np.random.default_rng(0))
    found = peeled(X)
    monkeypatch.setattr(methods, "weigh_peeled", weigh_peeled)
    assert found.peeling.refused is not None
    assert len(weighed(found).factors) == 2
    # Any share of folded samples is too large, so that another test fails.
    with_limit(monkeypatch, "folds", -1.0)
    assert not weighed(found).factors


@pytest.mark.slow
def test_refused_factors_are_not_taken_if_one_shrinks_to_a_point(peeled, monkeypatch):
    found = peeled(spheroid(1200, 2.5))
    monkeypatch.setattr(methods, "weigh_peeled", weigh_peeled)
    assert not weighed(found).factors
    # All else is right, so that it is the poles that refuse it.
    with_limit(monkeypatch, "poles", np.inf)
    assert len(weighed(found).factors) == 2


@pytest.mark.slow
def test_circles_of_unequal_radius_are_a_factor_but_no_product():
    X, truth = Revolution("bulge", 3.0, 12.0)(1200, np.random.default_rng(0))
    fit = ManifoldFactorizer(sense="geometry", random_state=0).fit(X)
    assert fit.verdict_ == "partial"
    assert score([points(f) for f in fit.factors_], truth).solved
    failed = {test.name for test in fit.evidence_.failed}
    assert {"product", "modulation in data"} <= failed


@pytest.mark.slow
def test_a_spheroid_is_no_product_where_lengths_are_measured_in_samples():
    fit = ManifoldFactorizer(sense="volume", random_state=0).fit(spheroid(1000, 2))
    assert fit.verdict_ != "product"
    assert "poles" in {test.name for test in fit.evidence_.failed}
