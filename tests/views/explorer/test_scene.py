import base64
import io
import json
import re
import shutil
from importlib import resources

import numpy as np
import pytest
from PIL import Image

from manifactor.cryoem.files.mrc import write_volume
from manifactor.cryoem.pictures import as_grey, each_as_grey
from manifactor.runs.options import FitOptions
from manifactor.runs.task import Task
from manifactor.views import plots
from manifactor.views.explorer.previews import Viewpoint, pictures
from manifactor.views.explorer.scene import open_scene


def picture(address):
    head, content = address.split(",")
    assert head == "data:image/png;base64"
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(content))))


def near(scene, at, **options):
    asked = {
        "factor": 0,
        "mode": "matched",
        "count": scene.preview.count,
        "look": Viewpoint(),
        **options,
    }
    return scene.near(at, **asked)


def test_the_mean_image_is_that_of_the_samples_named(scene):
    found = near(scene, [[0.2], [90.0]], mode="held", count=5, look=Viewpoint(singles=5))
    (_, images), *_ = scene.run.images().blocks(np.array(sorted(found["samples"])))
    assert (picture(found["image"]) == as_grey(images.mean(axis=0)[None])[0]).all()
    assert found["thumbnail_shape"] == [28, 28]
    greys = np.frombuffer(base64.b64decode(found["thumbnails"]), dtype=np.uint8)
    in_order = images[np.argsort(np.argsort(found["samples"]))]
    assert (greys.reshape(5, 28, 28) == each_as_grey(in_order)).all()


def test_the_image_changes_along_each_factor_and_not_across(scene):
    def image(stretch, turn, factor):
        return picture(
            near(scene, [[stretch], [turn]], factor=factor, mode="held", count=9)["image"]
        ).astype(float)

    here = image(0.2, 90.0, 0)
    assert np.corrcoef(here.ravel(), image(0.8, 90.0, 0).ravel())[0, 1] < 0.97
    assert np.corrcoef(here.ravel(), image(0.2, 270.0, 1).ravel())[0, 1] < 0.97
    matched = [near(scene, [[0.5], [turn]], count=40)["image"] for turn in (0.0, 180.0)]
    assert matched[0] == matched[1]  # spread over the circle, wherever its dial stands


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


def test_columns_keep_the_names_that_a_table_gives_them(torus_run, tmp_path):
    X = open_scene(torus_run).run.samples()
    np.savetxt(tmp_path / "named.csv", X, delimiter=",", header="a,b,c,tilt of d", comments="")
    task = Task(tmp_path / "named.csv", FitOptions(n_factors=2))
    task.fit(task.read(), tmp_path / "run")
    assert open_scene(tmp_path / "run").columns["column 4"].label == "tilt of d"


def test_an_input_that_changed_after_the_fit_is_named(torus_run, tmp_path):
    shutil.copytree(torus_run, tmp_path / "run")
    assert open_scene(tmp_path / "run").about()["warnings"] == []
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    (tmp_path / "run" / "run.json").write_text(
        json.dumps({**record, "input_changed": "2020-01-01T00:00:00+00:00"})
    )
    (warning,) = open_scene(tmp_path / "run").about()["warnings"]
    assert "torus.npy was changed after the fit" in warning


def test_volumes_are_shown_by_slices(tmp_path, rng):
    (tmp_path / "maps").mkdir()
    moving = rng.uniform(size=60)
    for i, place in enumerate(moving):
        volume = np.zeros((8, 10, 12), dtype=np.float32)
        volume[2:5, 3:7, 2 + round(6 * place)] = 1
        write_volume(tmp_path / "maps" / f"{i:03d}.mrc", volume, pixel_size=2.0)
    task = Task(tmp_path / "maps", FitOptions(n_neighbors=12))
    with pytest.warns(UserWarning, match="too few|No product"):
        task.fit(task.read(), tmp_path / "run")
    scene = open_scene(tmp_path / "run")
    at = scene.about()["factors"][0]["start"]
    cuts = [near(scene, [at], look=Viewpoint(axis=axis, depth=0.4)) for axis in (0, 1, 2)]
    assert [picture(cut["image"]).shape for cut in cuts] == [(10, 12), (8, 12), (8, 10)]
    assert [cut["slice"] for cut in cuts] == [4, 5, 5]


@pytest.mark.parametrize(("field", "kind"), [("input", "nothing"), ("particles", "features")])
def test_what_is_gone_is_named_and_the_places_stay(run, torus_run, tmp_path, field, kind):
    shutil.copytree(run if field == "particles" else torus_run, tmp_path / "run")
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    (tmp_path / "run" / "run.json").write_text(json.dumps({**record, field: "gone/file.star"}))
    scene = open_scene(tmp_path / "run")
    assert scene.preview.kind == kind
    assert "gone/file.star" in scene.preview.why
    assert scene.missing == ()  # said once
    assert len(near(scene, scene_start(scene))["samples"]) == 12


def scene_start(scene):
    return [factor["start"] for factor in scene.about()["factors"]]


def test_many_samples_are_thinned_for_drawing_and_counted_all(run, monkeypatch):
    monkeypatch.setattr("manifactor.views.explorer.scene.MOST_SHOWN", 100)
    scene = open_scene(run)
    found = scene.selected([{"column": "factor1", "low": 0, "high": 0.5}])
    shown = np.unpackbits(np.frombuffer(base64.b64decode(found["shown"]), dtype=np.uint8))[
        :100
    ].astype(bool)
    inside = scene.run.places[0].coordinate <= 0.5
    assert len(scene.shown) == 100
    assert found["count"] == inside.sum() > 100
    assert (shown == inside[scene.shown]).all()


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


@pytest.mark.parametrize(("sides", "shown"), [((150, 300), [64, 128]), ((128, 90), [128, 90])])
def test_thumbnails_are_shrunk_to_their_longest_side(rng, sides, shown):
    singles = rng.normal(size=(3, *sides))
    found = pictures(singles[0], singles)
    assert found["thumbnail_shape"] == shown
    assert len(base64.b64decode(found["thumbnails"])) == 3 * np.prod(shown)
