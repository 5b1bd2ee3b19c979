import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from manifactor._support.regression import neighbour_means


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
    np.testing.assert_allclose(
        neighbour_means(line, 9)(values), neighbour_means(plane, 9)(values)
    )
