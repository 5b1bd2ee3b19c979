import numpy as np
import pytest
from scipy.spatial import KDTree

from manifactor.spectral.search.device import nearest_samples


def torus(n, rng):
    angle = rng.uniform(0, 2 * np.pi, (n, 2))
    return np.hstack([np.cos(angle), np.sin(angle)])


def neighbours(around):
    return [row[inside].tolist() for row, inside in zip(around.indices, around.inside, strict=True)]


@pytest.mark.parametrize("n_new", [100, 10**6])
def test_the_nearest_samples_are_those_of_a_tree(rng, n_new):
    known, new = torus(2000, rng), torus(300, rng)
    search = nearest_samples(known, 30, dimension=2.0, n_new=n_new)
    assert (search.lists is not None) == (n_new == 10**6)
    around = search.around(new)
    distance, expected = KDTree(known).query(new, 30)
    assert neighbours(around) == np.sort(expected, axis=1).tolist()
    nearest, squared = around.nearest()
    np.testing.assert_array_equal(nearest, expected[:, 0])
    np.testing.assert_allclose(squared, distance[:, 0] ** 2)


def test_lists_do_not_change_a_bit_even_where_they_do_not_reach(rng):
    # Of uneven density: some new samples lie beyond what the lists know.
    known = rng.normal(size=(2000, 2)) ** 3
    new = rng.normal(size=(400, 2)) ** 3
    few, many = (nearest_samples(known, 30, dimension=2.0, n_new=n) for n in (1, 10**6))
    by_tree, by_lists = few.around(new), many.around(new)
    assert neighbours(by_tree) == neighbours(by_lists)
    np.testing.assert_array_equal(by_tree.squared.ravel(), by_lists.squared[by_lists.inside])


def test_of_samples_at_equal_distances_the_same_are_taken(rng):
    known = np.stack(np.meshgrid(np.arange(40.0), np.arange(40.0)), -1).reshape(-1, 2)
    new = known[rng.choice(1600, 100)] + 0.5
    few, many = (nearest_samples(known, 10, dimension=2.0, n_new=n) for n in (1, 10**6))
    assert neighbours(few.around(new)) == neighbours(many.around(new))


@pytest.mark.parametrize("n_new", [1, 10**6])
def test_a_far_sample_has_the_neighbours_of_its_nearest_one(rng, n_new):
    known = torus(2000, rng)
    search = nearest_samples(known, 9, dimension=2.0, n_new=n_new, reach=1.0)
    around = search.around(np.full((1, 4), 50.0))
    expected = np.argmin(((known - 50) ** 2).sum(axis=1))
    assert around.nearest()[0].tolist() == [expected]
