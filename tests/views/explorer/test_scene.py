"""What is drawn of a run, what lies near a place, and what is selected."""

import base64
import io
import json
import re
from dataclasses import replace
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from matplotlib.path import Path as Outline
from PIL import Image

from manifactor.cryoem.files.particles import Particles
from manifactor.cryoem.previews import particle_columns
from manifactor.runs.places import Place
from manifactor.views import plots
from manifactor.views.explorer.columns import (
    Column,
    about_factor,
    in_polygon,
    inside,
    place_columns,
)
from manifactor.views.explorer.previews import Viewpoint, signed_url
from manifactor.views.explorer.scene import strata
from manifactor.views.pictures import as_grey, each_as_grey
from tests.views.scenes import open_scene


def picture(address):
    head, content = address.split(",")
    assert head == "data:image/png;base64"
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(content))))


def near(scene, at, **look):
    return scene.near(Viewpoint(at, **{"count": scene.preview.count} | look))


@pytest.mark.medium
def test_the_mean_image_is_that_of_the_samples_named(scene):
    found = near(scene, [[0.2], [90.0]], mode="held", count=5, singles=5)
    (_, images), *_ = scene.run.images().blocks(np.array(sorted(found["samples"])))
    assert (picture(found["image"]) == as_grey(images.mean(axis=0)[None])[0]).all()
    assert found["thumbnail_shape"] == [28, 28]
    greys = np.frombuffer(base64.b64decode(found["thumbnails"]), dtype=np.uint8)
    in_order = images[np.argsort(np.argsort(found["samples"]))]
    assert (greys.reshape(5, 28, 28) == each_as_grey(in_order)).all()


def test_the_image_changes_along_each_factor_and_not_across(scene):
    def image(stretch, turn, factor):
        found = near(scene, [[stretch], [turn]], factor=factor, mode="held", count=9)
        return picture(found["image"]).astype(float).ravel()

    here = image(0.2, 90.0, 0)
    assert np.corrcoef(here, image(0.8, 90.0, 0))[0, 1] < 0.97
    assert np.corrcoef(here, image(0.2, 270.0, 1))[0, 1] < 0.97
    matched = [near(scene, [[0.5], [turn]], count=40)["image"] for turn in (0.0, 180.0)]
    assert matched[0] == matched[1]  # spread over the circle, wherever its dial stands


@pytest.mark.medium
def test_a_run_of_numbers_shows_its_features(torus_run):
    scene = open_scene(torus_run)
    found = near(scene, [[30.0], [200.0]], mode="held", count=1)
    samples = scene.run.samples()
    turns = np.array([place[0] for place in found["places"]])
    assert (np.abs(turns - [30, 200]) < 40).all()  # degrees in, degrees out
    assert scene.preview.kind == "features"
    assert found["mean"] == pytest.approx(samples[found["samples"][0]].tolist())
    assert found["spread"] == pytest.approx([0] * 4)
    assert "column 4" in scene.columns


def test_many_samples_are_thinned_for_drawing_and_counted_all(run, monkeypatch):
    monkeypatch.setattr("manifactor.views.explorer.scene.MOST_SHOWN", 100)
    scene = open_scene(run)
    found = scene.select([{"column": "factor1", "low": 0, "high": 0.5}])
    shown = np.unpackbits(np.frombuffer(base64.b64decode(found["shown"]), dtype=np.uint8))
    inside = scene.run.places[0].coordinate <= 0.5
    assert len(scene.shown) == 100
    assert found["count"] == inside.sum() > 100
    assert (shown[:100] == inside[scene.shown]).all()


def test_spectrum_angles_and_evidence_are_those_of_the_fit(scene):
    spectrum, angles, evidence = scene.spectrum(), scene.angles(), scene.evidence()
    assert spectrum["eigenvalues"] == scene.fit.spectrum_.eigenvalues[1:].tolist()
    assert set(spectrum["owners"]) == {-1, 0, 1}
    assert np.allclose(np.diag(angles["values"]), 1, atol=0.01)
    assert len(angles["values"]) == sum(angles["sizes"])
    assert str(scene.fit.evidence_)[:60] in evidence["html"]
    for test in scene.fit.evidence_.tests:
        assert f'<th scope="row">{test.name}</th>' in evidence["html"]
    assert json.dumps([spectrum, angles, evidence, scene.about()], allow_nan=False)


def test_report_and_explorer_use_the_same_colours():
    script = resources.files("manifactor.views.explorer").joinpath("page", "colours.js").read_text()
    listed = {
        name: re.findall(r'"(#\w+)"', colours)
        for name, colours in re.findall(r"const (\w+) = (\[[^\]]*\]);", script)
    }
    assert tuple(listed["CYCLE"]) == plots.CYCLE
    assert tuple(listed["FACTORS"]) == plots.CATEGORIES[:-1]  # black is lost in the dark


# Columns and selections.


def test_points_in_a_polygon_are_those_that_matplotlib_finds(rng):
    points, corners = rng.uniform(size=(5000, 2)), rng.uniform(size=(23, 2))
    star = corners[np.argsort(np.arctan2(*(corners - 0.5).T))]
    found = in_polygon(points, star)
    assert 500 < found.sum() < 4500
    assert (found == Outline(star, closed=False).contains_points(points)).all()


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
    circle = Place(np.radians([0.0, 90.0, 180.0]), "circle", np.array([1.0, 0.0, 0.5]))
    columns = place_columns([circle])
    view = about_factor(1, circle)["view"]
    x, y = (columns[view[axis]].values for axis in "xy")
    assert np.allclose(np.hypot(x, y), [1, 0.4, 0.7])
    assert np.allclose(np.degrees(np.arctan2(y, x)) % 360, [0, 90, 180])
    assert np.allclose(columns["factor1"].values, [0, 90, 180])  # shown in degrees


def test_what_is_the_same_for_all_particles_is_no_column():
    microscope = {"defocus_u": [1e4, 2e4], "voltage": [300.0, 300.0], "class": [2, 1]}
    microscope = {name: np.array(values) for name, values in microscope.items()}
    found = particle_columns(Particles(Path("p.star"), np.arange(2), microscope=microscope))
    assert list(found) == ["particle defocus u", "particle class"]
    assert found["particle class"].values.tolist() == [2, 1]


# Neighbourhoods.


@pytest.fixture
def dependent(rng):
    """An interval and a circle that depends on it."""
    line = rng.uniform(size=4000)
    angle = (2 * np.pi * line + np.pi / 2 * rng.normal(size=4000)) % (2 * np.pi)
    return Place(line, "interval"), Place(angle, "circle")


def test_matched_samples_are_spread_over_the_other_factor_and_the_nearest_comes_first(dependent):
    found = strata(dependent, 0, count=240)
    features = dependent[1].features
    everywhere = features.mean(axis=0)
    for where in (0.1, 0.5, 0.9):
        rows, weights, _ = found.near([[where], [0]], 240)
        away = np.abs(dependent[0].coordinate - where)
        nearest = np.argsort(away)[:240]
        assert rows[0] == nearest[0]
        assert (np.diff(away[rows]) >= 0).all()
        even = np.linalg.norm(weights @ features[rows] - everywhere)
        uneven = np.linalg.norm(features[nearest].mean(axis=0) - everywhere)
        assert even < 0.1 < 0.2 < uneven
        assert weights.sum() == pytest.approx(1)
        assert len(set(rows.tolist())) == len(rows)


def test_held_samples_are_near_on_all_factors_across_0_too(dependent):
    at = [[0.5], [359.0]]
    rows, weights, reached = strata(dependent, None, count=50).near(at, 50)
    assert len(rows) == 50
    assert np.allclose(weights, 1 / 50)
    assert reached[0] < 0.12
    assert reached[1] < 40
    assert (dependent[1].displayed[rows] < 180).any()
    assert (dependent[1].displayed[rows] > 180).any()


@pytest.mark.medium
def test_a_cell_of_a_grid_is_the_mean_near_its_place(torus_run, scene):
    numbers = open_scene(torus_run)
    look = Viewpoint(((0.0,), (0.0,)), count=20)
    found = numbers.grid(look, [1, 0], 3)
    assert found["along"] == [[0.0, 120.0, 240.0]] * 2
    here = near(numbers, [[240.0], [120.0]], mode="held", count=20)
    # Factor 2 comes first: its second place, and the third of factor 1.
    assert found["means"][1 * 3 + 2] == pytest.approx(here["mean"])
    assert found["far"] == [False] * 9
    # Twelve steps are narrower than a hundred samples of 600.
    assert all(numbers.grid(replace(look, count=300, mode="held"), [0], 12)["far"])
    images = scene.grid(Viewpoint(((0.5,), (0.0,)), count=9), [0, 1], 2)
    assert len(base64.b64decode(images["thumbnails"])) == 4 * np.prod(images["thumbnail_shape"])


def test_a_difference_is_red_above_blue_below_and_white_at_nothing():
    difference = np.array([[[3.0, 1.0], [0.0, 0.0], [-2.0, -2.0]]])  # of two colours
    above, nothing, below = picture(signed_url(difference))[0].astype(int)
    assert above[0] - above[2] > 100
    assert nothing.tolist() == [255] * 3
    assert below[2] - below[0] > 100
