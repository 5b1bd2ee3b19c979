"""Factors whose lengths depend on the place on another factor."""

import numpy as np
import pytest

from manifactor import ManifoldFactorizer
from manifactor.datasets.warps import Revolution
from manifactor.scores import score


def points(factor):
    if factor.topology == "circle":
        return np.column_stack([np.cos(factor.coordinate), np.sin(factor.coordinate)])
    return factor.embedding


@pytest.mark.slow
def test_circles_of_unequal_radius_are_a_factor_but_no_product():
    X, truth = Revolution("bulge", 3.0, 12.0)(2000, np.random.default_rng(0))
    fit = ManifoldFactorizer(sense="geometry", random_state=0).fit(X)
    assert fit.verdict_ == "partial"
    assert score([points(f) for f in fit.factors_], truth).solved
    failed = {test.name for test in fit.evidence_.failed}
    assert {"product", "modulation in data"} <= failed


@pytest.mark.slow
def test_a_spheroid_is_no_product_where_lengths_are_measured_in_samples():
    sphere = np.random.default_rng(0).normal(size=(1500, 3))
    sphere /= np.linalg.norm(sphere, axis=1, keepdims=True)
    fit = ManifoldFactorizer(sense="volume", random_state=0).fit(sphere * [1, 1, 2])
    assert fit.verdict_ != "product"
    assert "poles" in {test.name for test in fit.evidence_.failed}
