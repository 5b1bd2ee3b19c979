from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifactor import ManifoldFactorizer, datasets
from manifactor.runs.places import (
    Place,
    all_places,
    bin_labels,
    fitted_places,
    from_table,
    grid_labels,
    table_columns,
)

# Files have 8 digits; finer differences of angles are rounding.
degrees = st.integers(0, 360 * 10**5 - 1).map(lambda n: n / 10**5)


@given(low=degrees, high=degrees, at=degrees)
def test_a_circles_range_and_its_complement_cover_the_circle(low, high, at):
    place = Place(np.radians([at]), "circle")
    assert low == high or place.between(low, high)[0] or place.between(high, low)[0]


@given(low=degrees, width=st.floats(0, 359), share=st.floats(0, 1))
def test_what_lies_on_the_way_up_is_in_the_range(low, width, share):
    width = round(width, 5)
    at = round(round(low + share * width, 5) % 360, 5)
    inside = Place(np.radians([at]), "circle")
    assert inside.between(low, round(round(low + width, 5) % 360, 5))[0]


def test_the_ends_of_a_range_belong_to_it():
    place = Place(np.array([0.2, 0.4, 0.41]), "interval")
    assert place.between(0.2, 0.4).tolist() == [True, True, False]


def test_a_factor_of_more_dimensions_has_no_range():
    with pytest.raises(ValueError, match="needs a factor that is an interval or a circle"):
        Place(np.zeros((3, 2)), "other").between(0, 1)


def test_a_table_gives_the_places_back(rng):
    places = [
        Place(rng.uniform(size=5), "interval", rng.uniform(size=5)),
        Place(rng.uniform(size=(5, 3)), "other", rng.uniform(size=5), None, rng.random((5, 2))),
        Place(rng.uniform(0, 6, size=5), "circle", rng.uniform(size=5)),
    ]
    table = table_columns(places, np.arange(5) + 7)
    assert list(table)[:4] == ["sample", "factor1", "factor1_confidence", "factor2_0"]
    assert table["sample"].tolist() == [7, 8, 9, 10, 11]
    columns = np.column_stack(list(table.values()))
    factors = [{"topology": place.topology} for place in places]
    rows, back = from_table(Path("a.csv"), list(table), columns, factors)
    assert rows.tolist() == [7, 8, 9, 10, 11]
    for before, after in zip(places, back, strict=True):
        np.testing.assert_allclose(after.coordinate, before.coordinate, rtol=1e-9)
        np.testing.assert_array_equal(after.confidence, before.confidence)
    np.testing.assert_array_equal(back[1].angles, places[1].angles)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::manifactor.NoProductStructureWarning")
def test_other_samples_of_a_flat_torus_have_the_angles_of_those_near_them():
    X, _ = datasets.sample("hexagonal_torus", 2500, random_state=0)
    fit = ManifoldFactorizer(sense="separable", random_state=0).fit(X[:2000])
    (fitted,), (placed,) = fitted_places(fit), all_places(fit, X)
    np.testing.assert_allclose(np.radians(fitted.angles), fit.evidence_.symmetries.angles)
    off = np.abs((placed.angles[:2000] - fitted.angles + 180) % 360 - 180)
    assert np.quantile(off, 0.99) < 5
    # Others lie where the same angles are in the data.
    ring = np.exp(1j * np.radians(placed.angles))
    near = np.argmax((ring[2000:, None] * ring[:2000].conj()).real.sum(axis=2), axis=1)
    spacing = np.linalg.norm(X[2000:] - X[near], axis=1)
    assert np.median(spacing) < 0.1 * np.linalg.norm(X.std(axis=0))


def test_the_first_bin_of_a_circle_reaches_across_zero():
    angles = np.array([350.0, 10.0, 0.0, 360.0, 44.9, 45.1, 314.9, -10.0])
    labels, centres = bin_labels(angles, "circle", n_bins=4)
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


def test_cells_of_a_grid_are_counted_row_by_row():
    labels = grid_labels(np.array([0, 1, 1]), np.array([2, 0, -1]), n_columns=3)
    assert labels.tolist() == [2, 3, -1]
