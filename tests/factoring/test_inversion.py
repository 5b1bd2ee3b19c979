import numpy as np
import pytest

from manifactor.factors.inversion import PlaceSpace, choose_window, values_at

from .places import sphere


def line(n):
    """Even places on an interval."""
    return PlaceSpace(("interval",), (1,), np.linspace(0, 1, n)[:, None])


def ring(n):
    """Even places on a circle, and their angles."""
    angle = 2 * np.pi * np.arange(n) / n
    return PlaceSpace(("circle",), (2,), np.c_[np.cos(angle), np.sin(angle)]), angle


def test_a_linear_function_is_returned_as_it_is_up_to_the_ends():
    space = line(200)
    at = np.array([[0.0], [0.123], [1.0]])
    found = values_at(space, 3 * space.places, at, 12)
    assert found == pytest.approx(3 * at, abs=1e-4)
    # Places beyond the ends of an interval count as the ends.
    beyond, ends = (values_at(space, space.places**2, np.c_[[0.0, 1.0]] * k, 12) for k in (7, 1))
    assert np.array_equal(beyond, ends)


def test_a_circle_has_no_ends():
    space, angle = ring(400)
    values = np.cos(angle)[:, None]
    near_the_seam = np.array([-0.01, 0.0, 0.01])
    at = np.c_[np.cos(near_the_seam), np.sin(near_the_seam)]
    assert values_at(space, values, at, 10) == pytest.approx(
        np.cos(near_the_seam)[:, None], abs=1e-3
    )
    # The length of a cosine and sine does not matter.
    assert values_at(space, values, 5 * at, 10) == pytest.approx(values_at(space, values, at, 10))


def test_noise_makes_windows_wide_and_bends_make_them_narrow(rng):
    space, angle = ring(1000)
    bent = np.c_[np.cos(9 * angle), np.sin(9 * angle)]
    noisy = np.cos(angle)[:, None] + rng.normal(size=(1000, 1))
    narrow, wide = choose_window(space, bent), choose_window(space, noisy)
    assert narrow.value == 8
    assert wide.value >= 128
    assert "8: " in narrow.why


def test_slopes_are_not_extrapolated_where_there_are_no_samples():
    corner = np.random.default_rng(0).uniform(0, 0.3, size=(500, 2))
    space = PlaceSpace(("interval",) * 2, (1, 1), corner)
    values = corner.sum(axis=1, keepdims=True)
    far = values_at(space, values, np.array([[1.0, 1.0]]), 24)
    assert 0.5 < far.item() < 0.8


def test_places_on_a_surface_may_have_more_columns_than_dimensions(rng):
    points = sphere(rng, 2000)
    space = PlaceSpace(("other",), (3,), points)
    found = values_at(space, points, points[:50], 24)
    assert np.abs(found - points[:50]).max() < 0.02


def test_copies_of_one_sample_are_averaged():
    space = PlaceSpace(("interval",), (1,), np.full((40, 1), 0.5))
    values = np.arange(40.0)[:, None]
    assert 0 <= values_at(space, values, np.array([[0.5]]), 40).item() <= 39
    assert choose_window(space, values).value >= 8
