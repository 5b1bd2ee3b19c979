"""Report and explorer of a run of all views."""

import base64
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import starfile
from PIL import features

from manifactor.command.main import main
from manifactor.cryoem.all_views.volumes import open_motions
from manifactor.cryoem.movies import movie_bytes
from manifactor.runs.folder import read_run
from manifactor.runs.run import open_run
from manifactor.views import report
from manifactor.views.explorer.previews import Viewpoint
from manifactor.views.explorer.scene import open_scene
from manifactor.views.report import blind_sentence, scale_bar, write_movies, write_report

from .conftest import READY, address, near_arguments, serving
from .test_report import Reader

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def page(moving_run):
    with pytest.MonkeyPatch.context() as patch:
        # A ninth of the cells, which take most of the time to draw.
        patch.setattr(report, "BANDS", 16)
        return write_report(moving_run).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def moving(moving_run):
    return open_scene(moving_run)


def words(page):
    return re.sub(r"\s+", " ", "".join(Reader(page).words))


@pytest.mark.slow
def test_the_report_says_what_was_found_in_all_views(page):
    text = words(page)
    assert "three principal volumes, on which two half sets of images agree" in text
    assert "(correlations 0.99, 0.90 and 0.80)" in text
    assert "0.98 on factor 1 and 0.95 on factor 2; 1 if a coordinate means the same" in text
    assert re.search(r"median deviation is 0\.02 on factor 1 and 1° on factor 2", text)
    assert "No averages" not in text
    blind = r"9\d% of the directions show factor 1; \d%, around rot 0°, tilt 90°, are"
    assert re.search(blind, text)
    assert "All directions show factor 2." in text
    assert text.count("Coordinates of all 400 particles and their deviations: ") == 2
    assert "Confidence: half of the samples" not in text


@pytest.mark.slow
def test_the_report_maps_the_sphere_and_shows_the_molecule_along_each_motion(page):
    reader = Reader(page)
    labels = reader.values("aria-label")
    strips = [label for label in labels if "Strip of 7 mean images" in label]
    maps = [label for label in labels if "Map of the sphere" in label]
    assert (len(strips), len(maps)) == (2, 3)
    assert page.count('<div class="tile">') == 14
    assert page.count("100 Å") == 2
    names = reader.values("id")
    assert len(names) == len(set(names))


def test_directions_blind_to_a_motion_are_said(moving_run):
    motions = open_motions(open_run(moving_run), read_run(moving_run)[1])
    blind, seen = (blind_sentence(motions, motion) for motion in (0, 1))
    assert re.search(r"near rot -?\d+°, tilt 8\d° are blind to it", blind)
    assert "of the particles have no sure coordinate" in blind
    assert "No direction is blind to it: the deviation is at most 0.02" in seen


def test_movies_show_the_molecule_along_each_motion(moving_run, tmp_path, monkeypatch):
    monkeypatch.setattr(report, "PIXELS", 24)
    written = write_movies(moving_run, page=tmp_path / "page.html")
    names = {path.name for path in written}
    assert {"page-factor1.gif", "page-factor2.gif"} <= names


def test_the_image_follows_the_sliders_and_the_direction(moving):
    def image(at, view):
        look = Viewpoint(view=view)
        return moving.near(at, factor=0, mode="held", count=5, look=look)["image"]

    here = image([[0.1], [90.0]], (0.0, 0.0))
    assert here == image([[0.1], [90.0]], (0.0, 0.0))
    assert here != image([[0.9], [90.0]], (0.0, 0.0))
    assert here != image([[0.1], [270.0]], (0.0, 0.0))
    assert here != image([[0.1], [90.0]], (0.0, 90.0))


def test_the_page_is_told_of_directions_and_deviations(moving):
    about = json.loads(json.dumps(moving.about(), allow_nan=False))
    views = about["preview"]["views"]
    assert about["preview"]["kind"] == "molecule"
    assert about["preview"]["bar"]["length"] == 100
    assert views["deviations"][0][0] is None  # no particle, no deviation
    assert len(views["counts"]) == len(views["directions"]) == 64
    assert about["columns"]["factor2_deviation"]["label"] == "deviation on factor 2"
    found = moving.near([[0.5], [0.0]], factor=0, mode="held", count=3, look=Viewpoint())
    expected = moving.run.places[1].displayed_deviation[found["samples"]]
    np.testing.assert_allclose(found["deviations"][1], expected, atol=1e-4)


def test_a_direction_is_two_numbers(moving):
    for view in ([1], ["a", 2], 7):
        with pytest.raises(ValueError, match="view"):
            near_arguments({"at": [[0.5], [0.0]], "view": view}, moving)
    asked = near_arguments({"at": [[0.5], [0.0]], "view": [-90, 200]}, moving)
    assert asked["look"].view == (270, 180)


def test_scale_bars_have_round_lengths():
    lengths = [scale_bar(width)["length"] for width in (100, 240, 264, 1300, 9)]
    assert lengths == [20, 50, 100, 500, 2]


def test_averages_of_all_views_are_volumes(moving_run, tmp_path, capsys):
    out = tmp_path / "volumes"
    typed = ["average", str(moving_run), "--factor", "2", "--bins", "3"]
    assert main([*typed, "--out", str(out)]) == 0
    assert len(list(out.glob("average_*.mrc"))) == 3
    assert (out / "bins.csv").read_text().count("\n") == 4
    said = capsys.readouterr().out
    assert said.startswith("3 volumes of the model that all 400 particles gave, at ")
    for option in ("--match", "--halves"):
        assert main([*typed, "--out", str(tmp_path / "no"), option]) == 2
        assert f"{option} is for means of images" in capsys.readouterr().err


@pytest.mark.browser
def test_a_direction_is_picked_images_can_be_enlarged_and_nothing_is_cut(
    window, moving, moving_run, page
):
    opened = window()
    with serving(moving) as port:
        opened.goto(address(port, "#view=0_0"))
        opened.wait_for_selector(READY)
        image = opened.locator("#seen img")
        before = image.get_attribute("src")
        assert "seen from rot 0°, tilt 0°" in opened.locator("#caption").inner_text()
        opened.get_by_label("tilt", exact=True).focus()
        opened.keyboard.press("End")
        opened.wait_for_selector("#caption:has-text('tilt 180°')")
        assert image.get_attribute("src") != before
        disk = opened.locator("#disk")
        size = disk.bounding_box()["width"]
        disk.click(position={"x": size / 2, "y": size / 4})
        opened.wait_for_selector("#caption:has-text('rot 90°, tilt 41°')")
        opened.wait_for_function("() => location.hash === '#view=90_41'")
        assert "±" in opened.locator("#samples table").inner_text()
        for width in resized(opened):
            small = image.bounding_box()["width"]
            opened.get_by_title("Enlarge").click()
            assert opened.locator("#large img").bounding_box()["width"] > 1.3 * small
            opened.keyboard.press("Escape")
            wide = "document.querySelector('#all-but-selection').scrollWidth"
            assert opened.evaluate(wide) <= width
        opened.goto((moving_run / "report.html").as_uri())
    tile, enlarge = opened.locator(".tile").first, opened.get_by_label("Enlarge").first
    cut = "[...document.querySelectorAll('.wide')].filter(box => box.scrollWidth > box.clientWidth)"
    for width in resized(opened):
        before = tile.bounding_box()["width"]
        enlarge.check()
        assert tile.bounding_box()["width"] > 1.5 * before
        assert opened.evaluate("document.documentElement.scrollWidth") <= width
        assert opened.evaluate(f"{cut}.map(box => box.ariaLabel)") == []
        enlarge.uncheck()


def resized(page):
    """Widths of a page, wide and light, then narrow and dark."""
    for width, scheme in ((1280, "light"), (400, "dark")):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        yield width


PLAYED = """async () => {
  const video = document.querySelector("video");
  await video.play();
  await new Promise((done) => { video.onended = done; });
  return [video.duration, video.videoWidth, video.videoHeight];
}"""


@pytest.mark.browser
@pytest.mark.skipif(not features.check("avif"), reason="this Pillow encodes no AV1")
def test_a_browser_plays_the_movie_to_its_end(window, rng):
    images = rng.normal(size=(4, 73, 73))
    movie = movie_bytes(images, circular=True, seconds_per_frame=0.05)[".mp4"]
    page = window()
    video = f"data:video/mp4;base64,{base64.b64encode(movie).decode()}"
    page.set_content(f"<video muted src='{video}'></video>")
    duration, *size = page.evaluate(PLAYED)
    assert duration == pytest.approx(0.2)
    assert size == [219, 219]


def test_without_a_model_a_view_is_asked_for(moving_run, tmp_path, capsys):
    folder = Path(shutil.copytree(moving_run, tmp_path / "run"))
    (folder / "motions.npz").unlink()
    assert open_scene(folder).preview.kind == "images"  # they show one view
    record = json.loads((folder / "run.json").read_text())
    original = Path(record["particles"])
    blocks = starfile.read(original)
    n_particles = len(blocks["particles"])
    blocks["particles"]["rlnAngleTilt"] = np.linspace(0, 180, n_particles)
    turned = original.with_name("turned.star")
    starfile.write(blocks, turned)
    change = {"input": str(turned), "particles": str(turned)}
    (folder / "run.json").write_text(json.dumps({**record, **change}))
    scene = open_scene(folder)
    assert scene.preview.kind == "nothing"
    assert "has particles of all views. Pick one with --view" in scene.preview.why
    out = tmp_path / "averages"
    assert main(["average", str(folder), "--factor", "1", "--out", str(out)]) == 2
    assert "Pick one with --view ROT,TILT" in capsys.readouterr().err


def test_columns_that_cannot_be_read_are_missed_beside_the_molecule(moving_run, moving, tmp_path):
    assert moving.about()["warnings"] == []
    record = json.loads((moving_run / "run.json").read_text())
    numbers = {name: value for name, value in record.items() if name != "all_views"}
    folder = Path(shutil.copytree(moving_run, tmp_path / "run"))
    for columns, changed in {
        "particles": {**record, "particles": "gone/file.star"},
        "the input": {**numbers, "input": "gone/z.npy"},
    }.items():
        (folder / "run.json").write_text(json.dumps(changed))
        scene = open_scene(folder)
        assert scene.preview.kind == "molecule"
        *_, warning = scene.about()["warnings"]
        assert warning.startswith(f"There are no columns of {columns}: ")
        assert "gone/" in warning
