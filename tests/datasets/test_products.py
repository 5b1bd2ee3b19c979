import numpy as np
import pytest

from manifactor.datasets.products import Interval, Sphere, circle, product


@pytest.mark.parametrize("part", [Interval(3.0), circle(2.0), Sphere(0.5)])
def test_no_two_points_are_farther_apart_than_the_extent(part):
    X, _ = part.draw(400, np.random.RandomState(0))
    distances = np.linalg.norm(X[:, None] - X, axis=2)
    assert 0.97 * part.extent < distances.max() <= part.extent + 1e-12


def test_eigenvalues_of_a_product_are_sums_of_one_of_each_part():
    first, second = Interval(1.3), Sphere(0.7)
    n = 40
    sums = first.eigenvalues(n)[:, None] + second.eigenvalues(n)
    lowest = np.sort(sums.ravel())[:n]
    np.testing.assert_allclose(product(first, second).eigenvalues(n), lowest)


def test_a_sphere_has_2l_plus_1_harmonics_of_degree_l():
    values = Sphere(2.0).eigenvalues(25)
    degrees = np.repeat(np.arange(5), 2 * np.arange(5) + 1)
    np.testing.assert_allclose(values, degrees * (degrees + 1) / 4)
