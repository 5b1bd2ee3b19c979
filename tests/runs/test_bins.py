import numpy as np
import pytest

from manifactor.runs.places import bin_labels, grid_labels


def test_the_first_bin_of_a_circle_reaches_across_zero():
    labels, centres = bin_labels(
        np.array([350.0, 10.0, 0.0, 360.0, 44.9, 45.1, 314.9, -10.0]), "circle", n_bins=4
    )
    assert labels.tolist() == [0, 0, 0, 0, 0, 1, 3, 0]
    assert centres.tolist() == [0, 90, 180, 270]


def test_the_ends_of_an_interval_lie_in_its_first_and_last_bin():
    labels, centres = bin_labels(np.array([0.0, 0.24, 0.26, 0.99, 1.0]), "interval", n_bins=4)
    assert labels.tolist() == [0, 0, 1, 3, 3]
    assert centres.tolist() == [0.125, 0.375, 0.625, 0.875]


def test_every_sample_is_within_half_a_bin_of_its_centre(rng):
    angle = rng.uniform(0, 360, size=1000)
    labels, centres = bin_labels(angle, "circle", n_bins=7)
    apart = np.abs((angle - centres[labels] + 180) % 360 - 180)
    assert apart.max() <= 360 / 14


@pytest.mark.parametrize(
    ("coordinate", "topology", "message"),
    [
        ([0.0, 1.2], "interval", r"must lie in \[0, 1\]; got values from 0 to 1.2"),
        ([0.0, np.nan], "circle", "one finite number for each sample; got shape .* with 1 NaN"),
        ([[0.0, 1.0]], "interval", "one finite number"),
        ([0.0, 1.0], "other", "`topology` must be one of 'interval', 'circle'"),
    ],
)
def test_what_has_no_bins_is_refused(coordinate, topology, message):
    with pytest.raises(ValueError, match=message):
        bin_labels(np.array(coordinate), topology, n_bins=3)


def test_a_grid_counts_its_cells_row_by_row():
    assert grid_labels(np.array([0, 1, 2, -1]), np.array([3, 0, -1, 1]), n_columns=4).tolist() == [
        3,
        4,
        -1,
        -1,
    ]
