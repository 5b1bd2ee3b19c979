import numpy as np
import pytest

from manifactor import datasets
from manifactor.datasets.neurons import SQUARE, DirectionCells, GridCells, Recording, SpeedCells


def drawn(cells, n_samples=400):
    return cells.draw(n_samples, np.random.RandomState(0))


def test_counts_have_the_mean_and_variance_of_their_rates():
    counts, _ = Recording((SpeedCells(base=9.0, steepest=0.0),))(2000, np.random.RandomState(0))
    assert counts.mean() == pytest.approx(9, rel=0.01)
    assert counts.var() == pytest.approx(9, rel=0.02)


def test_a_hexagonal_grid_looks_the_same_after_a_turn_by_60_degrees():
    phases = np.random.RandomState(0).uniform(0, 2 * np.pi, size=(50, 2))
    # In phases, a turn by 60 degrees maps the waves a, b, a - b to b, b - a, -a.
    turned = np.column_stack([phases[:, 1], phases[:, 1] - phases[:, 0]])
    centre = np.zeros((1, 2))
    cell = GridCells(n_cells=1)
    np.testing.assert_allclose(cell.rates(phases, centre), cell.rates(turned, centre))
    assert cell.rates(centre, centre) == pytest.approx(cell.peak)


def test_a_hexagonal_module_is_one_factor_and_a_square_one_two():
    assert len(drawn(GridCells())[1]) == 1
    assert len(drawn(GridCells(SQUARE))[1]) == 2


def test_a_direction_cell_fires_most_at_its_preferred_direction():
    cells = DirectionCells()
    rates, [direction] = drawn(cells)
    assert rates.max() <= cells.peak
    preferred = 2 * np.pi * np.arange(cells.n_cells) / cells.n_cells
    vectors = np.column_stack([np.cos(preferred), np.sin(preferred)])
    assert np.argmax(rates, axis=1).tolist() == np.argmax(direction @ vectors.T, axis=1).tolist()


def test_rates_of_speed_cells_are_linear_in_the_speed():
    rates, [speed] = drawn(SpeedCells())
    slopes = (rates - 1) / speed
    np.testing.assert_allclose(slopes, np.broadcast_to(slopes[0], slopes.shape))


def test_a_recording_has_the_factors_of_all_its_cells():
    X, truth = datasets.sample("grid_and_direction", 50, random_state=0)
    assert X.shape == (50, 160)
    assert [true.shape[1] for true in truth] == [4, 2]
