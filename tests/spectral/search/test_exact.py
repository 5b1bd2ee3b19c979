import numpy as np
import pytest
from sklearn.base import clone
from sklearn.neighbors import KNeighborsTransformer

from manifactor.spectral import searches as exact
from manifactor.spectral.searches import BruteSearch, TreeSearch, nearest_point


@pytest.mark.parametrize("search", [TreeSearch(7), BruteSearch(7)])
def test_new_samples_find_the_neighbours_that_scikit_learn_finds(rng, search):
    X, new = rng.normal(size=(200, 4)), rng.normal(size=(30, 4))
    ours = clone(search).fit(X).transform(new)
    theirs = KNeighborsTransformer(n_neighbors=7).fit(X).transform(new)
    assert ours.shape == (30, 200)
    np.testing.assert_allclose(ours.toarray(), theirs.toarray(), atol=1e-12)


@pytest.mark.parametrize("search", [TreeSearch(3), BruteSearch(3)])
def test_copies_far_from_the_origin_are_exactly_zero_apart(rng, search):
    X = 1e6 + rng.normal(size=(50, 12))
    distances = clone(search).fit_transform(np.r_[X, X])
    assert (np.sort(distances.data.reshape(100, 4))[:, :2] == 0).all()
    assert (np.sort(distances.data.reshape(100, 4))[:, 2:] > 0).all()


@pytest.mark.parametrize("n_columns", [3, 12])
def test_the_nearest_point_is_that_of_all_pairs_far_from_the_origin_too(rng, n_columns):
    points = 1e4 + rng.normal(size=(200, n_columns))
    new = 1e4 + rng.normal(size=(50, n_columns))
    distance, index = nearest_point(points)(new)
    gaps = np.linalg.norm(new[:, None] - points, axis=2)
    np.testing.assert_array_equal(index, gaps.argmin(axis=1))
    np.testing.assert_allclose(distance, gaps.min(axis=1))


def test_many_samples_are_ordered_by_the_leaves_of_the_tree(rng, monkeypatch):
    X = rng.uniform(size=(3000, 2))
    assert (TreeSearch().sample_order(X) == np.arange(3000)).all()
    monkeypatch.setattr(exact, "ORDERED_ABOVE", 2999)
    order = TreeSearch().sample_order(X)
    assert sorted(order) == list(range(3000))
    steps, random_steps = (np.diff(some, axis=0) for some in (X[order], X))
    assert np.linalg.norm(steps, axis=1).mean() < 0.1
    assert np.linalg.norm(random_steps, axis=1).mean() > 0.4
