import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from manifactor.statistics import (
    blurred,
    distinct_rows,
    has_edge,
    leaves_noise,
    local_weights,
    matched_r2,
    nearest_on_line,
    neighbour_means,
    neighbour_sums,
    nested_r2,
    predictability,
    random_rows,
    without_itself,
)

from .places import ring


@pytest.mark.parametrize("n_columns", [1, 2])
def test_values_are_averaged_over_neighbours_without_the_sample(rng, n_columns):
    source, values = rng.normal(size=(300, n_columns)), rng.normal(size=(300, 3))
    near = NearestNeighbors(n_neighbors=5).fit(source).kneighbors(return_distance=False)
    np.testing.assert_allclose(neighbour_means(source, 5)(values), values[near].mean(axis=1))


@pytest.mark.parametrize("n_columns", [1, 2])
def test_the_mean_around_one_of_many_copies_does_not_depend_on_its_own_value(rng, n_columns):
    # Eight places of 25 copies each: most samples are none of their own neighbours.
    source = np.repeat(rng.normal(size=(8, n_columns)), 25, axis=0)
    values = rng.normal(size=(200, 1))
    means = neighbour_means(source, 5)
    before = means(values)
    for sample in (0, 12, 24, 199):
        changed = values.copy()
        changed[sample] += 100.0
        assert means(changed)[sample] == pytest.approx(before[sample])
    # With many copies, the last neighbour is left out.
    found = without_itself(np.array([[3, 0, 1], [4, 5, 6]]), np.array([0, 2]))
    np.testing.assert_array_equal(found, [[3, 1], [4, 5]])


def test_independent_arrays_predict_nothing_of_each_other(rng):
    one, other = rng.normal(size=(2, 3000, 1))
    assert predictability(one, other)[0] == pytest.approx(0, abs=0.02)
    t = rng.uniform(size=(3000, 1))
    assert predictability(t, np.sin(5 * t))[0] > 0.999


def test_many_samples_are_thinned_at_random_and_few_are_not():
    rows = random_rows(9000, 3000)
    assert len(rows) == 3000
    assert (np.diff(rows) > 0).all()
    np.testing.assert_array_equal(rows, random_rows(9000, 3000))
    np.testing.assert_array_equal(random_rows(4000, 4000), np.arange(4000))
    # Samples that repeat in order are not thinned to one phase, nor to one random half.
    assert np.bincount(rows % 3).min() > 900
    half = np.random.default_rng(0).permutation(9000)[:4500]
    assert np.isin(rows, half).mean() == pytest.approx(0.5, abs=0.03)
    # Only samples that may be drawn are drawn.
    assert np.isin(random_rows(half, 100), half).sum() == 100


def test_an_interval_has_an_edge_and_a_circle_a_hole_and_noise_has_neither(rng):
    noise = rng.normal(size=(1000, 3))
    assert not has_edge(noise)
    assert not has_edge(np.ones((100, 3)))
    assert has_edge(np.c_[noise, rng.uniform(size=1000)])
    assert has_edge(np.c_[noise, ring(rng.uniform(0, 2 * np.pi, 1000))])


def test_edges_are_looked_for_in_main_directions_only(rng):
    noise, strip = rng.normal(size=(1000, 3)), rng.uniform(size=1000)
    both = np.c_[noise, 0.5 * strip]
    assert has_edge(both)
    assert not has_edge(both, thick=0.1)
    assert not has_edge(both, most_directions=3)
    # Noise in many directions has none.
    assert not any(has_edge(draw) for draw in rng.normal(size=(10, 500, 20)))


@pytest.mark.parametrize("radius", [0.05, 0.1])
def test_a_small_circle_beside_the_factors_is_not_taken_for_noise(rng, radius):
    sheet = rng.uniform(size=(3000, 2))
    circle = radius * ring(rng.uniform(0, 2 * np.pi, size=3000))
    assert not leaves_noise(sheet, np.c_[sheet, circle])
    assert leaves_noise(sheet, np.c_[sheet, radius * rng.normal(size=(3000, 2))])


def test_a_small_factor_is_seen_beside_larger_noise_in_another_direction(rng):
    line, noise = rng.uniform(size=(4000, 1)), rng.normal(size=(4000, 1))
    circle, strip = ring(rng.uniform(0, 2 * np.pi, size=4000)), rng.uniform(size=(4000, 1))
    assert not leaves_noise(line, np.c_[line, 0.05 * circle, 0.12 * noise])
    assert not leaves_noise(line, np.c_[line, 0.3 * strip, 0.3 * noise])
    assert not leaves_noise(line, np.c_[line, 0.3 * strip + 0.05 * noise])
    assert leaves_noise(line, np.c_[line, 0.3 * noise])
    assert leaves_noise(line, np.c_[line, 0.1 * rng.normal(size=(4000, 20))])
    # Nothing left is nothing missing.
    assert leaves_noise(line, np.ones((4000, 2)))


def test_neighbours_on_a_line_are_a_run_of_the_ordered_places():
    found = nearest_on_line(np.array([5.0, 0.0, 6.5, 1.0]), 2)
    assert found.tolist() == [[0, 2], [1, 3], [0, 2], [1, 3]]


def test_sums_over_neighbours_have_their_weights():
    values = np.array([[1.0], [10.0], [100.0]])
    sums = neighbour_sums(np.array([[[1, 2]]]), np.array([[0, 2]]), values)
    assert sums.ravel() == [201.0]


def test_coordinates_are_matched_whatever_their_order_and_their_sign(rng):
    a, b = rng.uniform(size=(2, 500, 1))
    assert matched_r2([a, b], [b**2, -a]) > 0.98
    assert matched_r2([a, b], [a]) == 0
    assert nested_r2([a, b], [-a]) > 0.98
    assert nested_r2([a + b], [a, b]) < 0.7


def test_local_weights_give_the_value_and_the_slope_of_a_linear_function():
    around = np.array([[[-1.0, 0.0, 1.0, 2.0]]])
    weights, moves, spread = local_weights(around, 0.0, ridge=0.0)
    values = 5 + 3 * around[0, 0]
    np.testing.assert_allclose([weights @ values, moves @ values / spread[0]], [[[5]], [[3]]])


@pytest.mark.parametrize("columns", [1, 3, 50])
def test_copies_of_rows_are_told_by_the_first_of_them(rng, columns):
    X = rng.integers(3, size=(400, columns)).astype(float)
    X[10], X[200] = X[300], -0.0 * X[200]
    rows, copy_of = distinct_rows(X)
    np.testing.assert_array_equal(X[rows][copy_of], X)
    assert len(rows) == len(np.unique(X, axis=0))
    np.testing.assert_array_equal(copy_of[rows], np.arange(len(rows)))
    assert (rows[copy_of] <= np.arange(len(X))).all()


def test_errors_of_places_on_a_level_tell_nothing_of_another_factor(rng):
    level, other = rng.integers(10, size=1000) / 10, rng.uniform(size=1000)
    place = (level + 1e-4 * other)[:, None]
    assert predictability(place, other[:, None])[0] > 0.9
    assert predictability(blurred(place), other[:, None])[0] < 0.1
    assert predictability(blurred(place), level[:, None])[0] > 0.99
