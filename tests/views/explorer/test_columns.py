from pathlib import Path

import numpy as np
import pytest
from matplotlib.path import Path as Outline

from manifactor.cryoem.files.particles import Particles
from manifactor.runs.places import Place
from manifactor.views.explorer.columns import (
    Column,
    described_factor,
    feature_columns,
    in_polygon,
    inside,
    particle_columns,
    place_columns,
)


def test_points_in_a_polygon_are_those_that_matplotlib_finds(rng):
    points, corners = rng.uniform(size=(5000, 2)), rng.uniform(size=(23, 2))
    star = corners[np.argsort(np.arctan2(*(corners - 0.5).T))]
    assert 500 < in_polygon(points, star).sum() < 4500
    assert (in_polygon(points, star) == Outline(star, closed=False).contains_points(points)).all()


def test_the_middle_of_a_pentagram_is_outside():
    turn = np.radians(90 + 144 * np.arange(5))
    pentagram = np.column_stack([np.cos(turn), np.sin(turn)])
    assert in_polygon(np.array([[0.0, 0.0], [0.0, 0.8]]), pentagram).tolist() == [False, True]


def test_conditions_hold_together():
    columns = {"a": Column("a", np.arange(10.0)), "b": Column("b", np.arange(10.0)[::-1])}
    box = {"x": "a", "y": "b", "polygon": [[1.5, -1], [8.5, -1], [8.5, 11], [1.5, 11]]}
    found = inside(columns, [box, {"column": "b", "low": 3, "high": 20}])
    assert np.flatnonzero(found).tolist() == [2, 3, 4, 5, 6]
    assert inside(columns, []).all()


def test_a_sample_without_a_number_is_in_no_range():
    columns = {"a": Column("a", np.array([1.0, np.nan]))}
    assert inside(columns, [{"column": "a", "low": -9, "high": 9}]).tolist() == [True, False]
    assert columns["a"].limits() == (1.0, 1.0)


def test_a_circle_is_drawn_round_with_confidence_outwards():
    columns = place_columns(
        [Place(np.radians([0.0, 90.0, 180.0]), "circle", np.array([1.0, 0.0, 0.5]))]
    )
    view = described_factor(columns, 1, Place(np.zeros(3), "circle"))["view"]
    x, y = (columns[view[axis]].values for axis in "xy")
    assert np.allclose(np.hypot(x, y), [1, 0.4, 0.7])
    assert np.allclose(np.degrees(np.arctan2(y, x)) % 360, [0, 90, 180])
    assert np.allclose(columns["factor1"].values, [0, 90, 180])  # shown in degrees


@pytest.mark.parametrize(
    ("place", "view"),
    [
        (Place(np.zeros(3), "interval"), ("factor2", "factor2_confidence")),
        (Place(np.zeros((3, 3)), "other"), ("factor2_0", "factor2_1")),
        (Place(np.zeros((3, 1)), "other"), ("factor2_0", "factor2_confidence")),
    ],
)
def test_every_shape_has_columns_to_be_drawn_with(place, view):
    columns = place_columns([place, place])
    assert tuple(described_factor(columns, 2, place)["view"].values()) == view
    assert set(view) <= set(columns)


def test_what_is_the_same_for_all_particles_is_no_column():
    microscope = {
        "defocus_u": np.array([1e4, 2e4]),
        "voltage": np.array([300.0, 300.0]),
        "group": np.array(["b", "a"]),
    }
    found = particle_columns(Particles(Path("p.star"), np.arange(2), microscope=microscope))
    assert list(found) == ["particle defocus u", "particle group"]
    assert found["particle group"].values.tolist() == [1, 0]


def test_of_a_wide_table_only_the_first_columns_are_offered(monkeypatch):
    monkeypatch.setattr("manifactor.views.explorer.columns.MOST_FEATURES", 2)
    samples = np.arange(12.0).reshape(3, 4)
    found = feature_columns(samples, ["a", "b", "c", "d"])
    assert [column.label for column in found.values()] == ["a", "b"]
    assert list(feature_columns(samples)) == ["column 1", "column 2"]
