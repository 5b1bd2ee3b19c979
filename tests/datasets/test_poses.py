import numpy as np
import pytest
from scipy import stats
from scipy.spatial.transform import Rotation

from manifactor.cryoem.files.particles import euler_matrices, view_directions
from manifactor.cryoem.simulate.poses import (
    PreferredDirections,
    draw_poses,
    elevation_scores,
    pose_angles,
    uniform_directions,
    with_error,
)

N = 40_000


def test_uniform_directions_have_the_moments_of_the_sphere(rng):
    directions = uniform_directions(N, rng)
    np.testing.assert_allclose(np.linalg.norm(directions, axis=1), 1)
    np.testing.assert_allclose(directions.mean(axis=0), 0, atol=0.015)
    np.testing.assert_allclose(directions.T @ directions / N, np.eye(3) / 3, atol=0.01)
    # Heights are uniform on a sphere, as Archimedes knew.
    assert stats.kstest(directions[:, 2], stats.uniform(-1, 2).cdf).pvalue > 1e-3


def test_preferred_directions_follow_their_density(rng):
    preferred = PreferredDirections()
    directions = preferred.draw(N, rng)
    np.testing.assert_allclose(np.linalg.norm(directions, axis=1), 1)
    # The mean of any function: here indicators of cones, weighted by the density.
    even = uniform_directions(N, rng)
    weights = preferred.density(even)
    assert weights.mean() == pytest.approx(1, abs=0.02)
    for centre in preferred.centres:
        found = (directions @ centre > np.cos(np.radians(20))).mean()
        expected = weights[even @ centre > np.cos(np.radians(20))].sum() / N
        assert found == pytest.approx(expected, rel=0.1)
    peak = preferred.density(preferred.centres[:1])[0]
    assert peak == pytest.approx(0.3 + 0.7 * 0.4 * 20, rel=0.02)
    assert weights.min() == pytest.approx(0.3, abs=0.01)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weights": (1.0,)}, "`weights` must have one number for each.*got 1 and 4"),
        ({"concentration": 0.0}, "`concentration` must be a number above 0"),
        ({"floor": 1.5}, r"`floor` must be a number in \[0, 1\]; got 1.5"),
    ],
)
def test_a_density_that_cannot_be_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        PreferredDirections(**changes)


def test_angles_are_those_of_the_direction(rng):
    directions = uniform_directions(50, rng)
    angles = pose_angles(directions, rng.uniform(-180, 180, 50))
    np.testing.assert_allclose(view_directions(angles), directions, atol=1e-12)
    # The third row of a pose is the direction of projection.
    np.testing.assert_allclose(euler_matrices(angles)[:, 2], directions, atol=1e-12)


def test_errors_of_poses_have_the_given_size_and_no_direction(rng):
    true = euler_matrices(rng.uniform(-180, 180, size=(20_000, 3)))
    wrong = with_error(true, 2.0, rng)
    vectors = Rotation.from_matrix(wrong @ true.transpose(0, 2, 1)).as_rotvec()
    squared = np.degrees(vectors) ** 2
    np.testing.assert_allclose(squared.mean(axis=0), 4 / 3, rtol=0.05)
    np.testing.assert_allclose(np.degrees(vectors).mean(axis=0), 0, atol=0.04)


def test_poses_without_errors_are_the_true_ones(rng):
    poses = draw_poses(100, preferred=None, pose_error=0.0, max_shift=2.0, rng=rng)
    np.testing.assert_array_equal(euler_matrices(poses.angles), poses.rotations)
    assert 1.5 < np.abs(poses.shift).max() <= 2


def test_opposite_views_have_the_same_elevation_and_scores_are_normal(rng):
    directions = uniform_directions(5000, rng)
    scores = elevation_scores(directions)
    np.testing.assert_array_equal(scores, elevation_scores(-directions))
    assert stats.kstest(scores, "norm").pvalue > 0.99
    assert scores[np.abs(directions[:, 2]).argmax()] == scores.max()
