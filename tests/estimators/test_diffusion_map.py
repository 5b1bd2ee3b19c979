import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import special_ortho_group
from sklearn.neighbors import KNeighborsTransformer, kneighbors_graph

from manifactor import DiffusionMap


@pytest.fixture(scope="module")
def few(rectangle):
    return rectangle[0][:500]


def test_the_callback_hears_every_stage_begin_and_end(few):
    heard = []
    DiffusionMap(5, callback=lambda *event: heard.append(event)).fit(few)
    stages = ("preparation", "neighbours", "affinity", "spectrum")
    assert heard == [(stage, done) for stage in stages for done in (0.0, 1.0)]


def lowest(X):
    return DiffusionMap(12, random_state=0).fit(X).spectrum_


@pytest.fixture(scope="module")
def plain(few):
    return lowest(few)


@pytest.mark.slow
@given(seed=st.integers(0, 1000), scale=st.sampled_from([1e-6, 0.3, 1e6]), shift=st.floats(-10, 10))
@settings(max_examples=6)
def test_rigid_motion_scaling_and_order_change_nothing_but_the_unit(few, plain, seed, scale, shift):
    turned = np.c_[few, np.zeros(len(few))] @ special_ortho_group.rvs(3, random_state=seed).T
    order = np.random.default_rng(seed).permutation(len(few))
    moved = lowest(scale * (turned + shift)[order])
    np.testing.assert_allclose(
        moved.eigenvalues * scale**2, plain.eigenvalues, rtol=1e-5, atol=1e-9
    )
    products = plain.weights[order, None] * plain.functions[order] * moved.functions
    np.testing.assert_allclose(np.abs(products.sum(axis=0)), 1, atol=1e-6)


@pytest.mark.parametrize("neighbors", [KNeighborsTransformer(n_neighbors=30), "precomputed"])
def test_samples_of_any_neighbour_search_are_placed_where_the_fit_has_them(few, neighbors):
    known = neighbors == "precomputed"
    given_ = kneighbors_graph(few, 30, mode="distance") if known else few
    fit = DiffusionMap(10, neighbors=neighbors, random_state=0).fit(given_)
    again = kneighbors_graph(few, 31, mode="distance", include_self=True) if known else few
    np.testing.assert_allclose(fit.transform(again), fit.spectrum_.functions[:, 1:], atol=1e-6)


def test_automatic_numbers_count_distinct_samples(rng):
    X = np.repeat(rng.uniform(size=(40, 2)), 20, axis=0)
    fit = DiffusionMap(random_state=0).fit(X)
    assert (fit.n_functions_, fit.n_neighbors_) == (5, 39)


def test_more_functions_than_distinct_samples_are_refused(rng):
    X = np.repeat(rng.normal(size=(10, 2)), 5, axis=0)
    with pytest.raises(ValueError, match="got 20 with 10 distinct samples"):
        DiffusionMap(20).fit(X)
