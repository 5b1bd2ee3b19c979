"""Independent components as factors: of principal components, and of functions."""

import numpy as np
import pytest

from manifactor import ManifoldFactorizer, load, save
from manifactor._support.errors import NothingFoundError
from manifactor.datasets.products import ring
from manifactor.models.components import independent_curves
from manifactor.statistics import mutual_r2


def network(n, rng):
    """A weak network of two uniform numbers, (n, 12), and these."""
    truth = rng.uniform(-1, 1, size=(n, 2))
    hidden = np.tanh(truth @ rng.normal(size=(2, 16)) + rng.normal(size=16) / 2)
    return hidden @ rng.normal(size=(16, 12)), truth


def curves_of(sources, rng):
    """Independent curves of a random linear mixture of sources, (n, q), and places on them."""
    mixed = sources @ rng.normal(size=(sources.shape[1],) * 2)
    mixed = mixed - mixed.mean(axis=0)
    values = mixed @ np.linalg.svd(mixed, full_matrices=False)[2].T
    curves, _ = independent_curves(values, [2, 3], rng=rng)
    return curves, [values @ curve for curve in curves]


def test_mixed_numbers_are_found_whatever_their_density(rng):
    sources = np.column_stack([rng.uniform(size=1500), rng.laplace(size=1500)])
    _, places = curves_of(sources, rng)
    r2 = mutual_r2(places, [sources[:, [0]], sources[:, [1]]])
    assert np.sort(r2, axis=1)[:, 1].min() > 0.95
    assert r2.min() < 0.05


def test_two_components_on_a_closed_curve_are_one_circle(rng):
    sources = np.column_stack([ring(rng.uniform(0, 2 * np.pi, size=1500)), rng.uniform(size=1500)])
    curves, places = curves_of(sources, rng)
    assert sorted(curve.shape[1] for curve in curves) == [1, 2]
    circle = max(places, key=lambda place: place.shape[1])
    assert mutual_r2([circle], [sources[:, :2]])[0, 0] > 0.95


@pytest.mark.medium
def test_a_bent_map_is_undone_and_its_fit_is_saved_and_places_new_samples(rng, tmp_path):
    X, truth = network(1600, rng)
    fit = ManifoldFactorizer(2, sense="ica", random_state=0).fit(X[:1200])
    assert fit.evidence_.sense == "ica"
    new = [placed.embedding for placed in fit.factorization_.locate(X[1200:])]
    r2 = mutual_r2(new, [truth[1200:, [0]], truth[1200:, [1]]])
    assert max(r2[0, 0] + r2[1, 1], r2[0, 1] + r2[1, 0]) > 1.7
    places = fit.transform(X[1200:])
    error = fit.inverse_transform(places) - X[1200:]
    assert error.var() < 0.03 * X.var()
    save(fit, tmp_path / "fit.npz")
    np.testing.assert_allclose(load(tmp_path / "fit.npz").transform(X[1200:]), places)


@pytest.mark.medium
def test_components_of_a_gaussian_cloud_are_refused_as_halves_of_it_show_others(rng):
    X = rng.normal(size=(1000, 3)) @ rng.normal(size=(3, 4))
    with pytest.raises(NothingFoundError, match="no components are independent"):
        ManifoldFactorizer(sense="ica", random_state=0).fit(X)
