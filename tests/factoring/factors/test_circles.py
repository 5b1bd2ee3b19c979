import numpy as np
import pytest

from manifactor.factoring.factors.shapes import angle_of, on_circle, unit_vectors, widest_gap


def test_angles_come_back_from_a_circle(rng):
    angle = rng.uniform(0, 2 * np.pi, size=100)
    radius = rng.uniform(0.1, 2, size=(100, 1))
    np.testing.assert_allclose(angle_of(radius * on_circle(angle)), angle)
    np.testing.assert_allclose(unit_vectors(radius * on_circle(angle)), on_circle(angle))


def test_the_origin_has_no_direction():
    assert unit_vectors(np.zeros((1, 2))).tolist() == [[0, 0]]


def test_the_widest_gap_of_angles_may_lie_across_0():
    start, width = widest_gap(np.array([-2.0, 0.0, 2.0]))
    assert (start, width) == pytest.approx((2.0, 2 * np.pi - 4))
