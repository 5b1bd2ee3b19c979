import numpy as np
import pytest

from manifactor.models.sums.sheets import choose_neighbors, lay_sheet, local_fit

from ..factoring.places import ring, sphere


def test_a_straight_line_is_fitted_without_error_up_to_its_ends():
    t = np.linspace(0, 1, 200)[:, None]
    values = np.hstack([2 * t, 1 - t])
    ends = np.array([[0.0], [1.0]])
    means, slopes = local_fit(t, values, ends, 15)
    np.testing.assert_allclose(means, [[0, 1], [2, 0]], atol=0.01)
    np.testing.assert_allclose(slopes[:, 0], [[2, -1], [2, -1]], rtol=0.05)


def test_noise_asks_for_more_neighbours_than_a_bend_does(rng):
    t = np.sort(rng.uniform(size=1500))[:, None]
    bent = np.cos(20 * t)
    few, explained = choose_neighbors(t, bent)
    assert (few, explained > 0.999) == (15, True)
    many, explained = choose_neighbors(t, t + 0.5 * rng.normal(size=t.shape))
    assert many == 135
    assert explained == pytest.approx(t.var() / (t.var() + 0.25), abs=0.1)
    _, explained = choose_neighbors(t, rng.normal(size=(1500, 3)))
    assert abs(explained) < 0.05


def test_copies_have_no_slope_and_do_no_harm():
    places = np.repeat([[0.0], [1.0]], 40, axis=0)
    means, slopes = local_fit(places, places, places[:1], 15)
    np.testing.assert_allclose(means, 0, atol=1e-9)
    assert np.isfinite(slopes).all()


def test_places_on_an_interval_are_arc_lengths_whatever_the_first_places(rng):
    t = rng.uniform(size=1500)
    quarter = 3 * ring(np.pi / 2 * t)
    sheet = lay_sheet(np.exp(2 * t)[:, None], "interval", quarter)
    at = sheet.project(quarter)
    places = at.places[:, 0]
    assert abs(np.corrcoef(places, t)[0, 1]) > 0.9999
    assert np.abs(np.quantile(places, [0.01, 0.99]) - [0, 1]).max() < 0.02
    np.testing.assert_allclose(at.means, quarter, atol=0.003)


def test_places_on_a_circle_are_angles_of_its_length(rng):
    angle = rng.uniform(0, 2 * np.pi, size=1500)
    ellipse = ring(angle) * [2, 1]
    sheet = lay_sheet(ring(angle), "circle", ellipse)
    # A step is an angle for a unit of length; the ellipse has a length of 9.688.
    np.testing.assert_allclose(2 * np.pi / sheet.steps[0, 0, 0], 9.688, rtol=0.01)
    np.testing.assert_allclose(sheet.project(ellipse).means, ellipse, atol=0.01)


def test_the_nearest_point_of_a_sheet_is_across_its_tangent(rng):
    angle = rng.uniform(0, 2 * np.pi, size=1500)
    sheet = lay_sheet(ring(angle), "circle", ring(angle))
    out = 1.3 * ring(angle)
    at = sheet.project(out)
    across = np.einsum("ndq,nq->nd", at.tangents, out - at.means)
    np.testing.assert_allclose(across, 0, atol=1e-9)
    np.testing.assert_allclose(np.linalg.norm(out - at.means, axis=1), 0.3, atol=0.01)


def test_a_curve_does_not_fill_the_noise_around_it(rng):
    t = rng.uniform(size=2000)
    noisy = np.column_stack([t, 0.1 * rng.normal(size=2000)])
    places = t[:, None]
    for _ in range(6):
        sheet = lay_sheet(places, "interval", noisy)
        places = sheet.project(noisy).places
    assert 1 / sheet.steps[0, 0, 0] < 1.3  # its length
    assert np.corrcoef(places[:, 0], t)[0, 1] ** 2 > 0.97


def test_a_surface_has_two_tangents_and_places_on_it(rng):
    points = sphere(rng, 2000)
    sheet = lay_sheet(points, "other", points)
    assert sheet.dimension == 2
    assert np.abs(sheet.project(1.2 * points).places - points).max() < 0.1


def test_near_copies_do_not_move_places_without_end(rng):
    places = np.sort(rng.uniform(size=(60, 1)), axis=0)
    # Half of the samples are copies up to the smallest numbers that there are.
    samples = np.where(places < 0.5, 1e-290 * places, places) * [1.0, 2.0]
    sheet = lay_sheet(places, "other", samples)
    assert np.abs(sheet.project(samples - 0.1).places).max() < 1e15
