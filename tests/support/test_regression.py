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
