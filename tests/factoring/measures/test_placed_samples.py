"""The tests that need places and samples only, on places that are known."""

import numpy as np
import pytest

from manifactor.judging.measures.density import gaussian_factors
from manifactor.judging.measures.places import (
    crossing,
    filling,
    folds,
    modulation_in_data,
    place_samples,
    seams,
    skew,
    twist_in_data,
)

from ..places import ring as at_angles
from ..places import sphere


def ring(turn):
    return at_angles(2 * np.pi * turn)


def cylinder(rng, n, noise=0.0):
    """Places, dimensions and samples of a cylinder, with noise in 20 columns."""
    turn, height = rng.uniform(size=(2, n))
    samples = np.column_stack([ring(turn), 3 * height, np.zeros((n, 17))])
    samples = samples + noise * rng.normal(size=samples.shape)
    return [ring(turn), height[:, None]], [1, 1], samples


def box(rng, n, sides, keep):
    """Places, dimensions and samples of a part of a box."""
    inside = rng.uniform(size=(4 * n, len(sides))) * sides
    samples = inside[keep(inside)][:n]
    return np.hsplit(samples, len(sides)), [1] * len(sides), samples


def inaccurate(places, rng, error=0.02):
    """Intervals' places with errors, of 2 % of their lengths unless said otherwise."""
    return [p + error * np.ptp(p) * rng.normal(size=p.shape) for p in places]


def measured(places, dimensions, samples):
    """Skew or crossing, the larger of them, and modulation."""
    placed = place_samples(places, dimensions, samples)
    across = max(skew(placed).value, crossing(placed).value)
    return across, modulation_in_data(placed).value


@pytest.mark.medium
@pytest.mark.parametrize("n", [500, 2000])
@pytest.mark.parametrize("noise", [0.0, 0.08])
def test_a_circle_that_is_one_cosine_is_folded_and_right_places_are_not(rng, n, noise):
    (circle, height), dimensions, samples = cylinder(rng, n, noise)
    assert folds(place_samples([circle, height], dimensions, samples)).value < 0.01
    assert folds(place_samples([circle[:, :1], height], dimensions, samples)).value > 0.4


def test_a_fold_of_few_samples_is_seen(rng):
    # All but 5 % lie on one half of the circle, whose cosine tells them apart.
    n = 4000
    turn = rng.uniform(0.05, 0.45, size=n) + 0.5 * (rng.uniform(size=n) < 0.05)
    height = rng.uniform(size=(n, 1))
    samples = np.hstack([ring(turn), height])
    found = folds(place_samples([ring(turn)[:, :1], height], [1, 1], samples))
    assert found.value == pytest.approx(0.05, abs=0.02)
    assert found.noise < 0.01


def test_errors_along_a_long_factor_fold_no_short_one(rng):
    places, dimensions, samples = box(rng, 3000, [20.0, 1.0], lambda x: x[:, 0] > 0)
    assert folds(place_samples(inaccurate(places, rng), dimensions, samples)).value == 0


def test_outliers_and_copies_are_no_folds(rng):
    places, dimensions, samples = cylinder(rng, 2000)
    copies = rng.integers(2000, size=400)
    places = [np.vstack([place, place[copies]]) for place in places]
    samples = np.vstack([samples, samples[copies]])
    inliers = np.ones(2400, dtype=bool)
    inliers[:20] = False
    samples[:20] += 10
    placed = place_samples(places, dimensions, samples, inliers=inliers)
    assert folds(placed).value < 0.01


@pytest.mark.parametrize("n", [500, 2000])
def test_a_box_is_filled_however_its_density_changes_along_each_side(rng, n):
    places = np.hsplit(rng.beta(2, 5, size=(n, 3)), 3)
    placed = place_samples(places, [1, 1, 1], np.hstack(places))
    assert filling(placed).value == 0


def test_dependent_samples_leave_nothing_empty(rng):
    u = rng.uniform(-1, 1, size=(12_000, 2))
    u = u[rng.uniform(0, 1.6, size=len(u)) < 1 + 0.6 * u.prod(axis=1)][:4000]
    assert filling(place_samples(np.hsplit(u, 2), [1, 1], u)).value < 0.002


@pytest.mark.medium
@pytest.mark.parametrize(
    ("n_factors", "keep"),
    [
        (2, lambda x: x.sum(axis=1) > 0.3),  # a corner of 5 % cut off
        (2, lambda x: np.hypot(*(x - 0.5).T) > 0.15),  # a hole of 7 %
        (2, lambda x: np.hypot(*(x - 0.5).T) < 0.5),  # a disk
        # a hole that only three factors together show
        (3, lambda x: np.linalg.norm(x - 0.5, axis=1) > 0.35),
    ],
)
def test_what_is_cut_off_is_empty(rng, n_factors, keep):
    places, dimensions, samples = box(rng, 4000, [1.0] * n_factors, keep)
    found = filling(place_samples(inaccurate(places, rng), dimensions, samples))
    assert found.net > 0.005


@pytest.mark.parametrize("n", [1000, 2000])
def test_the_metric_of_a_product_has_blocks_that_depend_on_one_place_each(rng, n):
    # Bent, unevenly stretched places, with noise.
    places, dimensions, samples = cylinder(rng, n, noise=0.02)
    bent = np.column_stack([np.cos(samples[:, 2]), np.sin(samples[:, 2])])
    samples = np.hstack([samples[:, :2], bent, samples[:, 3:]])
    across, change = measured([places[0], places[1] ** 1.5], dimensions, samples)
    assert across < 0.03
    assert change < 0.06


def test_the_skew_of_a_sheared_torus_is_the_cosine_of_its_angle(rng):
    # The metric of two turns at an angle of 80 degrees: 2 s + d, with s the sum.
    u, v = rng.uniform(size=(2, 3000))
    cosine = np.cos(np.deg2rad(80))
    one, other = np.sqrt(1 - cosine), np.sqrt(cosine)
    samples = np.hstack([one * ring(u), one * ring(v), other * ring(u + v)])
    placed = place_samples([ring(u), ring(v)], [1, 1], samples)
    assert skew(placed).value == pytest.approx(cosine, abs=0.03)
    assert crossing(placed).value < 0.02
    assert modulation_in_data(placed).value < 0.02


def test_a_surface_and_mixed_coordinates_have_a_metric_in_blocks(rng):
    both = [sphere(rng, 2000), ring(rng.uniform(size=2000))]
    assert max(measured(both, [2, 1], np.hstack(both))) < 0.04
    u, v = rng.uniform(size=(2, 3000, 1))
    mixed = u + 0.05 * np.cos(2 * np.pi * v)
    across, _ = measured([mixed, v], [1, 1], np.hstack([u, v]))
    assert across < 0.03


def test_lengths_around_a_cone_change_along_it(rng):
    turn, height = rng.uniform(size=(2, 3000))
    radius = 1 - 0.6 * height[:, None]
    samples = np.column_stack([radius * ring(turn), 10 * height])
    across, change = measured([ring(turn), height[:, None]], [1, 1], samples)
    assert across < 0.03
    assert change == pytest.approx(np.log(radius).std(), rel=0.2)


def test_numbers_do_not_depend_on_units_or_on_a_rotation(rng):
    places, dimensions, samples = cylinder(rng, 1000, noise=0.02)
    turned = 1e6 * samples @ np.linalg.qr(rng.normal(size=(20, 20)))[0]
    assert measured(places, dimensions, turned) == pytest.approx(
        measured(places, dimensions, samples), rel=1e-4
    )


@pytest.mark.parametrize(
    ("draw", "n_gaussian"),
    [
        (lambda rng, n: rng.normal(size=(n, 3)) * [1, 2, 5], 3),
        (lambda rng, n: np.column_stack([rng.normal(size=(n, 1)), rng.uniform(size=(n, 2))]), 1),
        (lambda rng, n: rng.laplace(size=(n, 3)), 0),
        (lambda rng, n: rng.beta(2, 2, size=(n, 3)), 0),
        (lambda rng, n: rng.exponential(size=(n, 3)), 0),
    ],
)
def test_gaussian_factors_are_counted(rng, draw, n_gaussian):
    samples = draw(rng, 3000)
    # Columns are turned, and places are ranks: only the data's own units tell.
    ranks = [np.argsort(np.argsort(x))[:, None] / 3000 for x in samples.T]
    turned = samples @ np.linalg.qr(rng.normal(size=(3, 3)))[0]
    assert gaussian_factors(place_samples(ranks, [1] * 3, turned)).value == n_gaussian


def test_a_bent_factor_is_identified_by_its_bend(rng):
    angle, height = rng.normal(size=(2, 3000, 1))
    samples = np.hstack([np.cos(angle), np.sin(angle), height])
    assert gaussian_factors(place_samples([angle, height], [1, 1], samples)).value == 1


def test_copies_of_one_sample_are_finite():
    ones = np.ones((300, 1))
    placed = place_samples([ones, ones], [1, 1], np.ones((300, 3)))
    numbers = [folds(placed), crossing(placed), modulation_in_data(placed)]
    assert all(np.isfinite([found.value, found.noise]).all() for found in numbers)


@pytest.mark.parametrize("n", [90, 600])
def test_wide_samples_are_looked_at_in_their_main_components(rng, n):
    places, dimensions, samples = cylinder(rng, n)
    wide = samples @ np.linalg.qr(rng.normal(size=(200, 20)))[0].T
    placed = place_samples(places, dimensions, wide)
    assert placed.samples.shape == (n, 64)
    np.testing.assert_allclose(placed.axes.T @ placed.axes, np.eye(64), atol=1e-8)
    assert (placed.samples**2).sum() == pytest.approx((wide**2).sum())


SURFACES = {
    "square": lambda x, y: x + 1j * y,
    "rectangle": lambda x, y: x + 0.6j * y,
    "disk": lambda x, y: np.sqrt((1 + x) / 2) * np.exp(1j * np.pi * y),
}


def turned(rng, n, surface, share):
    """Samples of a surface that turns by a share of a turn around a circle, placed."""
    turn, x, y = rng.uniform([[0], [-1], [-1]], 1, size=(3, n))
    plane = SURFACES[surface](x, y) * np.exp(2j * np.pi * share * turn)
    samples = np.column_stack([ring(turn), plane.real, plane.imag])
    return place_samples(np.hsplit(samples, [2]), [1, 2], samples)


@pytest.mark.parametrize("n", [1000, 6000])
@pytest.mark.parametrize(
    ("surface", "share"),
    [("square", 1 / 4), ("square", -1 / 4), ("square", 1 / 2), ("rectangle", 1 / 2)],
)
def test_a_surface_that_comes_back_turned_is_a_twist(rng, n, surface, share):
    assert twist_in_data(turned(rng, n, surface, share)).value > 0.2


# A whole turn is none, and a disk looks the same after any.
@pytest.mark.parametrize(
    ("surface", "share"), [("square", 0), ("square", 1), ("rectangle", 0), ("disk", 1 / 4)]
)
def test_a_surface_that_comes_back_as_it_was_is_no_twist(rng, surface, share):
    assert twist_in_data(turned(rng, 3000, surface, share)).value < 0.1


def test_a_density_that_changes_around_a_circle_is_no_twist(rng):
    turn, x, y = rng.uniform([[0], [-1], [-1]], 1, size=(3, 12_000))
    density = 1 + 0.9 * x**2 * np.cos(2 * np.pi * turn)
    samples = np.column_stack([ring(turn), x, y])[rng.uniform(0, 2, size=len(x)) < density]
    placed = place_samples(np.hsplit(samples, [2]), [1, 2], samples)
    assert twist_in_data(placed).value < 0.1


def test_two_angles_are_looked_at_only_where_they_must_be_independent(rng):
    # The second angle prefers the half of the first one, or the other half.
    turn = rng.uniform(size=3000)
    half = (turn + rng.integers(2, size=3000)) / 2 + 0.1 * rng.normal(size=3000)
    samples = np.hstack([ring(turn), ring(half)])
    placed = place_samples(np.hsplit(samples, 2), [1, 1], samples)
    assert twist_in_data(placed).value == 0
    assert twist_in_data(placed, beside_circles=True).value > 0.2


def test_half_a_circle_has_a_seam_where_its_ends_are_taken_for_one_place(rng):
    turn = rng.uniform(0, 2 * np.pi, size=2000)
    ring, half = at_angles(turn), at_angles(turn / 2)
    assert seams(place_samples([ring], [1], ring)).value < 1.5
    assert seams(place_samples([ring], [1], half)).value > 10
