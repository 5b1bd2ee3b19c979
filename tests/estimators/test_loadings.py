"""Loadings of a fit: which samples and columns they are of, and their names."""

import numpy as np
import pandas as pd
import pytest

from manifactor import ManifoldFactorizer, datasets

pytestmark = pytest.mark.medium


@pytest.fixture(scope="module")
def samples():
    X, _ = datasets.sample("rectangle", 800, random_state=0)
    return X


@pytest.fixture(scope="module")
def fit(samples):
    frame = pd.DataFrame(samples, columns=["length", "width"])
    return ManifoldFactorizer(sense="geometry", random_state=0).fit(frame)


def together(found):
    return np.column_stack([found.shares, found.interactions, found.noise])


def test_columns_that_were_fitted_have_their_names(fit, samples):
    found = fit.loadings()
    assert found.columns == ("length", "width")
    assert found.shares == pytest.approx(np.eye(2), abs=0.03)
    assert together(found).sum(axis=1) == pytest.approx(1)
    assert np.array_equal(fit.loadings(samples).shares, found.shares)


def test_new_samples_are_located_and_others_need_places(fit):
    new, _ = datasets.sample("rectangle", 500, random_state=1)
    found = fit.loadings(pd.DataFrame(new, columns=["length", "width"]))
    assert found.shares == pytest.approx(np.eye(2), abs=0.03)
    product = new.prod(axis=1)[:, None]
    frame = pd.DataFrame(new, columns=["length", "width"])
    placed = fit.loadings(product, places=fit.transform(frame))
    assert together(placed).sum() == pytest.approx(1)
    assert placed.interactions[0, 0] > 0.02
    with pytest.raises(ValueError, match="must have 800 rows, one for each sample of the fit"):
        fit.loadings(np.ones((500, 3)))


def test_noise_that_was_dropped_counts_as_noise(rng):
    clean, _ = datasets.sample("rectangle", 800, random_state=0)
    X = clean @ rng.normal(size=(2, 20)) + 0.15 * rng.normal(size=(800, 20))
    fit = ManifoldFactorizer(2, sense="geometry", random_state=0).fit(X)
    assert fit.preparation_ is not None
    noise = 0.15**2 / X.var(axis=0)
    for found in (fit.loadings(), fit.loadings(X)):
        # Some of the noise lies along the plane, and moves the coordinates.
        assert found.noise == pytest.approx(noise, abs=0.1)
        assert found.noise.mean() == pytest.approx(noise.mean(), abs=0.03)
