import numpy as np
import pytest

from manifactor.factoring.sums.sheets import choose_neighbors, local_fit


def test_a_straight_line_is_fitted_without_error_up_to_its_ends():
    t = np.linspace(0, 1, 200)[:, None]
    values = np.hstack([2 * t, 1 - t])
    ends = np.array([[0.0], [1.0]])
    fit = local_fit(t, values, ends, 15)
    np.testing.assert_allclose(fit.means, [[0, 1], [2, 0]], atol=0.01)
    np.testing.assert_allclose(fit.slopes[:, 0], [[2, -1], [2, -1]], rtol=0.05)


def test_noise_asks_for_more_neighbours_than_a_bend_does(rng):
    t = np.sort(rng.uniform(size=1500))[:, None]
    bent = np.cos(20 * t)
    few, explained = choose_neighbors(t, bent)
    assert (few, explained > 0.999) == (15, True)
    many, explained = choose_neighbors(t, t + 0.5 * rng.normal(size=t.shape))
    assert many == 135
    assert explained == pytest.approx(t.var() / (t.var() + 0.25), abs=0.1)


def test_places_that_tell_nothing_explain_nothing(rng):
    noise = rng.normal(size=(1000, 3))
    _, explained = choose_neighbors(rng.uniform(size=(1000, 1)), noise)
    assert abs(explained) < 0.05


def test_copies_have_no_slope_and_do_no_harm():
    places = np.repeat([[0.0], [1.0]], 40, axis=0)
    fit = local_fit(places, places, places[:1], 15)
    np.testing.assert_allclose(fit.means, 0, atol=1e-9)
    assert np.isfinite(fit.slopes).all()


@pytest.mark.parametrize("topology", ["interval", "circle"])
def test_the_order_along_a_curve_tells_the_same_neighbours_as_a_search(rng, topology):
    along = rng.vonmises(0, 2, size=400)
    places = {
        "interval": along[:, None],
        "circle": np.column_stack([np.cos(along), np.sin(along)]),
    }[topology]
    values = np.column_stack([np.cos(3 * along), along**2]) + rng.normal(size=(400, 2))
    searched = local_fit(places, values, places[:50], 30)
    ordered = local_fit(places, values, places[:50], 30, topology=topology)
    np.testing.assert_allclose(ordered.means, searched.means)
    np.testing.assert_allclose(ordered.slopes, searched.slopes, atol=1e-9)
    assert choose_neighbors(places, values, topology=topology) == pytest.approx(
        choose_neighbors(places, values)
    )
