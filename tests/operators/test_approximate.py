import tracemalloc
import warnings

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsTransformer

from manifactor.operators.engines import searches
from manifactor.operators.engines.searches import ApproximateSearch

# The wrapper warns in some releases.
with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
    faiss = pytest.importorskip("faiss")


def ring(rng, n_samples):
    """Samples of a torus in space."""
    t, u = rng.uniform(0, 2 * np.pi, (2, n_samples))
    return np.c_[(2 + np.cos(u)) * np.cos(t), (2 + np.cos(u)) * np.sin(t), np.sin(u)]


def clumps(rng, n_clumps, size, width):
    """Samples in clumps much narrower than the distances between them."""
    centers = rng.uniform(size=(n_clumps, 1, 3))
    return (centers + width * rng.normal(size=(n_clumps, size, 3))).reshape(-1, 3)


@pytest.fixture(scope="module")
def torus():
    X = ring(np.random.default_rng(0), 4000)
    X.flags.writeable = False
    return X, ApproximateSearch(20).fit(X)


def parts(graph):
    """Distances and neighbours, (n_queries, n_neighbors + 1)."""
    return graph.data.reshape(graph.shape[0], -1), graph.indices.reshape(graph.shape[0], -1)


def share_found(X, graph, n_neighbors):
    """Share of all true neighbours that a graph holds."""
    exact = KNeighborsTransformer(n_neighbors=n_neighbors, algorithm="brute").fit(X).transform(X)
    return ((graph > 0).multiply(exact > 0)).nnz / (len(X) * n_neighbors)


@pytest.mark.slow
def test_the_neighbours_on_a_torus_are_found(torus):
    X, search = torus
    assert search.recall_ >= 0.99
    assert share_found(X, search.transform(X), 20) == pytest.approx(search.recall_, abs=0.003)
    assert search.effort_ < search.lists_.nlist == 15


@pytest.mark.medium
def test_more_lists_are_searched_for_more_recall(torus, monkeypatch):
    X, search = torus
    found = []
    for recall in (0.5, 0.9999):
        monkeypatch.setattr(searches, "LEAST_RECALL", recall)
        found.append(ApproximateSearch(20).fit(X))
    low, high = found
    assert low.effort_ < search.effort_ < high.effort_
    assert low.recall_ < search.recall_ < high.recall_
    assert high.recall_ >= 0.9999


def test_distances_are_exact_and_ascend(torus):
    X, search = torus
    distances, neighbors = parts(search.transform(X))
    assert distances.shape == (4000, 21)
    np.testing.assert_allclose(
        distances, np.linalg.norm(X[neighbors] - X[:, None], axis=2), rtol=1e-14
    )
    assert (np.diff(distances, axis=1) >= 0).all()
    assert (neighbors[:, 0] == np.arange(len(X))).all()


def test_close_samples_that_the_codes_cannot_tell_apart_are_found(rng):
    X = clumps(rng, 200, 20, 1e-5)
    search = ApproximateSearch(10).fit(X)
    assert search.n_candidates_ > 11
    assert search.recall_ >= 0.99


@pytest.mark.medium
def test_recall_that_is_out_of_reach_is_refused(rng):
    with pytest.raises(ValueError, match=r"a recall of 0.99 was not reached: 0\.\d+ .* 'brute'"):
        ApproximateSearch(2).fit(clumps(rng, 10, 200, 1e-7))


@pytest.mark.slow
def test_samples_in_a_file_are_never_copied_whole(rng, tmp_path, monkeypatch):
    monkeypatch.setattr(searches, "NUMBERS_PER_STEP", 2**16)
    X = (rng.normal(size=(8000, 3)) @ rng.normal(size=(3, 100))).astype(np.float32)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    tracemalloc.start()
    search = ApproximateSearch(5, n_jobs=2).fit(mapped)
    found = search.transform(mapped)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < X.nbytes
    assert np.shares_memory(search.samples_, mapped)
    assert (found[:100] != search.transform(X[:100])).nnz == 0


@pytest.mark.medium
def test_samples_whose_lists_hold_too_few_find_as_many_neighbours(rng, monkeypatch):
    monkeypatch.setattr(searches, "LEAST_RECALL", 0.5)
    X = np.r_[ring(rng, 4000), 100 + rng.normal(size=(60, 3))]
    distances, neighbors = parts(ApproximateSearch(80).fit(X).transform(X[4000:]))
    assert distances.shape == (60, 81)
    assert (np.sort(neighbors)[:, -60:] == np.arange(4000, 4060)).all()
