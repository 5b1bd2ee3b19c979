import numpy as np
import pytest

from manifactor.datasets.products import (
    Disk,
    Interval,
    ProjectivePlane,
    Rotations,
    Sphere,
    Star,
    circle,
    product,
)


def points(part, n_samples=400):
    return part.draw(n_samples, np.random.RandomState(0))[0]


@pytest.mark.parametrize(
    "part",
    [Interval(3.0), circle(2.0), Sphere(0.5), Disk(2.0), Star(), ProjectivePlane(), Rotations()],
)
def test_no_two_points_are_farther_apart_than_the_extent(part):
    X = points(part)
    distances = np.linalg.norm(X[:, None] - X, axis=2)
    assert 0.95 * part.extent < distances.max() <= part.extent + 1e-12


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


def test_rotations_are_orthogonal_matrices_of_determinant_one():
    R = points(Rotations()).reshape(-1, 3, 3)
    np.testing.assert_allclose(R @ R.swapaxes(1, 2), np.broadcast_to(np.eye(3), R.shape), atol=1e-9)
    np.testing.assert_allclose(np.linalg.det(R), 1)
    # Uniform: the mean rotation is zero.
    np.testing.assert_allclose(R.mean(axis=0), 0, atol=0.1)


def test_the_projective_plane_is_made_of_projections_onto_lines():
    x2, y2, z2, xy, yz, zx = points(ProjectivePlane()).T
    xy, yz, zx = (mixed / np.sqrt(2) for mixed in (xy, yz, zx))
    P = np.array([[x2, xy, zx], [xy, y2, yz], [zx, yz, z2]]).transpose(2, 0, 1)
    np.testing.assert_allclose(P @ P, P, atol=1e-9)
    np.testing.assert_allclose(np.trace(P, axis1=1, axis2=2), 1)


def test_a_star_has_three_arms_of_equal_weight():
    X = points(Star(), 3000)
    angle = np.degrees(np.arctan2(X[:, 1], X[:, 0])).round()
    values, counts = np.unique(angle, return_counts=True)
    np.testing.assert_array_equal(values, [-120, 0, 120])
    assert counts.min() > 900
