"""Strips of rows, and dense tiles of rows that have their columns in common."""

import numpy as np
import pytest

from manifactor import datasets
from manifactor.spectral.kernel import affinity
from manifactor.spectral.neighbors import NeighborSettings, neighbor_graph
from manifactor.spectral.operators import (
    HostOperator,
    TiledRows,
    TileSettings,
    columns_of_tiles,
    locally_ordered,
    strip_of,
)
from manifactor.spectral.pipeline import diffuse
from manifactor.spectral.search.exact import TreeSearch
from manifactor.spectral.settings import DiffusionSettings


@pytest.fixture(scope="module")
def matrices():
    """A walk on samples in random order, and in the order of a tree's leaves."""
    X, _ = datasets.sample("torus", 4000, random_state=0)
    order = TreeSearch(ordered_above=0).sample_order(X)
    return [affinity(neighbor_graph(some, 64)).normalized() for some in (X, X[order])]


def test_tiles_multiply_as_the_rows_do(matrices, rng):
    block = rng.random((4000, 5), dtype=np.float32)
    rows = strip_of(matrices[1], slice(700, 1411))
    product = TiledRows(rows, tile_rows=24) @ block
    assert product.dtype == np.float32
    np.testing.assert_allclose(product, rows @ block, rtol=1e-5)


def test_rows_of_a_strip_are_not_copied(matrices):
    strip = strip_of(matrices[0], slice(100, 200))
    assert np.shares_memory(strip.data, matrices[0].data)
    assert (strip != matrices[0][100:200]).nnz == 0


def test_samples_in_the_order_of_leaves_have_columns_in_common(matrices):
    random, ordered = map(columns_of_tiles, matrices)
    assert ordered < 4 < 15 < random


def test_a_good_order_is_kept_and_a_random_one_is_not(matrices):
    random, ordered = matrices
    assert (locally_ordered(ordered)[1] == np.arange(4000)).all()
    band, order = locally_ordered(random)
    assert sorted(order) == list(range(4000))
    assert columns_of_tiles(band) < columns_of_tiles(random) / 2


def test_a_recurrence_with_tiles_is_that_with_rows(matrices, rng):
    found = []
    now = rng.random((4000, 6), dtype=np.float32)
    for most in (4.0, 0.0):
        operator = HostOperator(matrices[1], tiles=TileSettings(most_columns=most))
        before = now[::-1].copy()
        operator.recur(now, before, 0.2, 0.7, 1.3)
        found.append(before)
    np.testing.assert_allclose(*found, atol=1e-5)


@pytest.mark.slow
def test_functions_come_in_the_order_of_the_given_samples():
    X, _ = datasets.sample("rectangle", 3000, random_state=0)
    given, ordered = (
        diffuse(
            X,
            DiffusionSettings(n_functions=4, searching=NeighborSettings(ordered_above=n)),
            rng=np.random.default_rng(0),
        ).spectrum
        for n in (3000, 2999)
    )
    np.testing.assert_allclose(ordered.weights, given.weights, rtol=1e-9)
    np.testing.assert_allclose(ordered.eigenvalues, given.eigenvalues, atol=1e-7)
    np.testing.assert_allclose(ordered.functions, given.functions, atol=1e-2)
