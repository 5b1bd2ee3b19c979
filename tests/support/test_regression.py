import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from manifactor._support.regression import neighbour_means, without_itself


@pytest.mark.parametrize("serial_limit", [0, 1000])
def test_values_are_averaged_over_neighbours_without_the_sample(rng, serial_limit):
    source, values = rng.normal(size=(300, 2)), rng.normal(size=(300, 3))
    means = neighbour_means(source, 5, serial_limit=serial_limit)(values)
    search = NearestNeighbors(n_neighbors=5).fit(source)
    near = search.kneighbors(return_distance=False)
    np.testing.assert_allclose(means, values[near].mean(axis=1))


def test_means_on_a_line_are_those_of_a_plane_that_is_one():
    line = np.random.default_rng(0).normal(size=(300, 1))
    plane = np.hstack([line, np.zeros_like(line)])
    values = np.cos(line)
    np.testing.assert_allclose(neighbour_means(line, 9)(values), neighbour_means(plane, 9)(values))


@pytest.mark.parametrize("n_columns", [1, 2])
def test_the_mean_around_one_of_many_copies_does_not_depend_on_its_own_value(rng, n_columns):
    # Eight places of 25 copies each: most samples are none of their own neighbours.
    source = np.repeat(rng.normal(size=(8, n_columns)), 25, axis=0)
    values = rng.normal(size=(200, 1))
    means = neighbour_means(source, 5)
    before = means(values)
    for sample in (0, 12, 24, 199):
        changed = values.copy()
        changed[sample] += 100.0
        assert means(changed)[sample] == pytest.approx(before[sample])


def test_a_sample_with_many_copies_leaves_the_last_of_them_out():
    near = np.array([[3, 0, 1], [4, 5, 6]])
    found = without_itself(near, np.array([0, 2]))
    np.testing.assert_array_equal(found, [[3, 1], [4, 5]])
