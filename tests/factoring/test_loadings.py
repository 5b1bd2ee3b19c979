"""Loadings: shares of the variance of columns, against exact ones of functions of known places."""

import numpy as np
import pytest

from manifactor.factors.inversion import PlaceSpace
from manifactor.factors.loadings import find_loadings
from manifactor.factors.shapes import on_circle


def loadings(places, values, topologies=None):
    """Return the loadings of columns over places of one column each, or as topologies say."""
    topologies = topologies or ("interval",) * places.shape[1]
    widths = tuple({"interval": 1, "circle": 2, "other": 3}[each] for each in topologies)
    columns, shape = range(values.shape[1]), values.shape[1:]
    space = PlaceSpace(topologies, widths, places)
    return find_loadings(space, values, columns=columns, shape=shape)


def table(found):
    return np.column_stack([found.shares, found.interactions, found.noise])


def test_shares_of_sums_and_products_are_the_exact_ones(rng):
    u, v, t = rng.uniform(size=(3, 3000))
    angle = 2 * np.pi * t
    noise = rng.normal(size=3000)
    parts = [np.sqrt(12) * (u - 0.5), np.sqrt(2) * np.cos(angle), np.cos(3 * np.pi * v)]
    first, second, third = parts
    values = np.column_stack(
        [
            first,
            first + second + third / np.sqrt(2) * np.sqrt(2) + noise,
            first * second,
            (1 + first) * (1 + second),
            first * np.sqrt(2) * third + noise,
            noise,
        ]
    )
    places = np.column_stack([u, on_circle(angle), v])
    found = loadings(places, values, ("interval", "circle", "interval"))
    assert found.pairs == ((0, 1), (0, 2), (1, 2))
    exact = [
        [1, 0, 0, 0, 0, 0, 0],
        [1 / 3.5, 1 / 3.5, 0.5 / 3.5, 0, 0, 0, 1 / 3.5],
        [0, 0, 0, 1, 0, 0, 0],
        [1 / 3, 1 / 3, 0, 1 / 3, 0, 0, 0],
        [0, 0, 0, 0, 0.5, 0, 0.5],
        [0, 0, 0, 0, 0, 0, 1],
    ]
    assert table(found) == pytest.approx(np.array(exact), abs=0.03)


@pytest.mark.parametrize("n", [40, 300, 2000])
def test_rows_sum_to_one_and_noise_explains_nothing_for_any_number_of_samples(n, rng):
    found = loadings(rng.uniform(size=(n, 2)), rng.normal(size=(n, 100)))
    assert table(found).sum(axis=1) == pytest.approx(1)
    assert table(found).min() >= 0
    # A regression on an eighth as many functions would explain an eighth in its own samples.
    assert found.noise.mean() > 1 - 2 / np.sqrt(n)


def test_a_column_of_one_place_is_not_attributed_to_a_dependent_one(rng):
    u = rng.normal(size=2000)
    v = 0.5 * u + np.sqrt(0.75) * rng.normal(size=2000)
    found = loadings(np.column_stack([u, v]), np.column_stack([u, v, u + v]))
    assert table(found)[:2] == pytest.approx(np.eye(4)[:2], abs=0.01)
    assert table(found)[2] == pytest.approx([0.5, 0.5, 0, 0], abs=0.03)


def test_functions_on_a_sphere_are_of_the_sphere(rng):
    sphere = rng.normal(size=(2000, 3))
    sphere /= np.linalg.norm(sphere, axis=1, keepdims=True)
    u = rng.uniform(size=2000)
    values = np.column_stack([sphere[:, 0], sphere[:, 0] * sphere[:, 1], u, np.exp(sphere[:, 2])])
    found = loadings(np.column_stack([sphere, u]), values, ("other", "interval"))
    assert found.shares == pytest.approx(np.eye(2)[[0, 0, 1, 0]], abs=0.01)
    assert found.curves[0] is None
    assert found.coordinates[0] is None


def test_curves_are_the_functions_that_made_the_columns(rng):
    u, t = rng.uniform(size=(2, 3000))
    angle = 2 * np.pi * t
    values = np.column_stack([np.exp(u) + np.sin(angle), 5 + u * np.cos(angle)])
    found = loadings(np.column_stack([u, on_circle(angle)]), values, ("interval", "circle"))
    line, turn = found.coordinates
    assert found.curves[0][0] == pytest.approx(np.exp(line), abs=0.05)
    assert found.curves[1][0] == pytest.approx(np.e - 1 + np.sin(turn), abs=0.05)
    assert found.curves[1][1] == pytest.approx(5 + np.cos(turn) / 2, abs=0.05)


def test_units_do_not_matter_and_a_constant_column_is_noise(rng):
    places = rng.uniform(size=(500, 2))
    values = np.column_stack([places @ [1, 1], places[:, 0] ** 2])
    scaled = np.column_stack([1e4 * values[:, 0] - 3e7, 1e-4 * values[:, 1], np.full(500, 0.1)])
    found, other = table(loadings(places, values)), table(loadings(places, scaled))
    assert other[:2] == pytest.approx(found, abs=1e-6)
    assert other[2].tolist() == [0, 0, 0, 1]


def test_the_leading_columns_are_named(rng):
    u, v = rng.uniform(size=(2, 500))
    space = PlaceSpace(("interval", "interval"), (1, 1), np.column_stack([u, v]))
    values = np.column_stack([u, v**2, v + 0.5 * rng.normal(size=500), rng.normal(size=500)])
    names = ["heat", "load", 7, "rest"]
    found = find_loadings(space, values, columns=names, shape=(4,))
    assert found.leading(1).tolist() == [1, 2]
    assert str(found).startswith("Factor 1 moves heat (100 %); factor 2 moves load (100 %) and")
    assert "column 7 (" in str(found)
    assert "rest" not in str(found)
    image = find_loadings(space, values, columns=range(4), shape=(2, 2))
    assert str(image).startswith("Factor 1 explains ")
