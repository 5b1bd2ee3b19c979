"""Report and explorer of particles of all views: of their own fits, and of given coordinates."""

import base64
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import mrcfile
import numpy as np
import pytest
import starfile
from PIL import features

from manifactor import datasets
from manifactor.command.main import main
from manifactor.cryoem import pages
from manifactor.cryoem.all_views.shown import Wanted, read_volumes
from manifactor.cryoem.all_views.volumes import MODEL_FILE, open_motions
from manifactor.cryoem.files.formats import read_particles
from manifactor.cryoem.files.mrc import write_volume
from manifactor.cryoem.pages import ParticlePages
from manifactor.cryoem.words import blind_sentence
from manifactor.runs.folder import read_run
from manifactor.runs.run import open_run
from manifactor.views import figures
from manifactor.views.explorer.previews import Viewpoint
from manifactor.views.figures import scale_bar
from manifactor.views.pictures import movie_bytes
from manifactor.views.report import write_movies, write_report
from tests.views.scenes import open_scene

from ..conftest import EMPTY
from .conftest import (
    READY,
    Reader,
    address,
    changed,
    copied,
    near_arguments,
    run_of_coordinates,
    serving,
)

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def page(moving_run):
    # Two of the drawings, which take most of the time, and a ninth of the cells.
    draw = figures.drawn

    def drawn(name, *given):
        return draw(name, *given) if name in ("seen1", "deviation1") else EMPTY

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "BANDS", 16)
        patch.setattr(figures, "drawn", drawn)
        return write_report(moving_run).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def moving(moving_run):
    return open_scene(moving_run)


def words(page):
    return re.sub(r"\s+", " ", "".join(Reader(page).words))


@pytest.mark.slow
def test_the_report_says_what_was_found_in_all_views(page):
    text = words(page)
    assert "three principal volumes" in text
    assert "(correlations 0.99, 0.90 and 0.80)" in text
    assert "0.98 on factor 1 and 0.95 on factor 2" in text
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
    assert page.count("100 Å") == 2 + 2  # of each strip, and of its film
    names = reader.values("id")
    assert len(names) == len(set(names))


def test_directions_blind_to_a_motion_are_said(moving_run):
    motions = open_motions(open_run(moving_run), read_run(moving_run)[1])
    blind, seen = (blind_sentence(motions, motion) for motion in (0, 1))
    assert re.search(r"near rot -?\d+°, tilt 8\d° are blind to it", blind)
    assert "of the particles have no sure coordinate" in blind
    assert "No direction is blind to it: the deviation is at most 0.02" in seen


def test_movies_show_the_molecule_along_each_motion(moving_run, tmp_path, monkeypatch):
    monkeypatch.setattr(pages, "PIXELS", 24)
    written = write_movies(moving_run, page=tmp_path / "page.html")
    assert {"page-factor1.gif", "page-factor2.gif"} <= {path.name for path in written}


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
    typed = ["average", str(moving_run), "--factor", "2", "--bins", "3", "--out"]
    assert main([*typed, str(tmp_path / "volumes")]) == 0
    assert len(list(tmp_path.glob("volumes/average_*.mrc"))) == 3
    assert "3 volumes of the model that all 400 particles gave" in capsys.readouterr().out
    for option in ("--match", "--halves"):
        assert main([*typed, str(tmp_path / "no"), option]) == 2
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
    folder = copied(moving_run, tmp_path)
    (folder / MODEL_FILE).unlink()
    assert open_scene(folder).preview.kind == "images"  # they show one view
    original = open_run(folder).particles.path
    blocks = starfile.read(original)
    blocks["particles"]["rlnAngleTilt"] = np.linspace(0, 180, len(blocks["particles"]))
    turned = original.with_name("turned.star")
    starfile.write(blocks, turned)
    scene = open_scene(changed(folder, input=str(turned), particles=str(turned)))
    assert scene.preview.kind == "nothing"
    assert "has particles of all views. Pick one with --view" in scene.preview.why
    out = tmp_path / "averages"
    assert main(["average", str(folder), "--factor", "1", "--out", str(out)]) == 2
    assert "Pick one with --view ROT,TILT" in capsys.readouterr().err


def test_columns_that_cannot_be_read_are_missed_beside_the_molecule(moving_run, moving, tmp_path):
    assert moving.about()["warnings"] == []
    folder = copied(moving_run, tmp_path)
    for columns, entries in {
        "particles": {"particles": "gone/file.star"},
        "the input": {"input": "gone/z.npy", "all_views": None},
    }.items():
        scene = open_scene(changed(folder, **entries))
        assert scene.preview.kind == "molecule"
        *_, warning = scene.about()["warnings"]
        assert warning.startswith(f"There are no columns of {columns}: ")
        assert "gone/" in warning


# Coordinates that another program found.

N_GIVEN = 300


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """A run of coordinates that another program might have found."""
    folder = tmp_path_factory.mktemp("coordinates") / "data"
    folder.mkdir()
    clean = {"blur": 8, "signal_to_noise": None, "defocus": (9e3, 2e4)}
    simulation = datasets.simulate_views(N_GIVEN, size=32, pixel_size=9.4, random_state=0, **clean)
    return run_of_coordinates(simulation, folder)


@pytest.fixture(scope="module")
def volumes(given):
    """Three volumes along the interval, as `cryodrgn eval_vol` writes them."""
    folder = given.parent / "evaluated"
    folder.mkdir()
    (line,) = (p for p in open_run(given).places if p.topology == "interval")
    ends = np.argsort(line.coordinate)[[20, N_GIVEN // 2, -20]]
    np.savetxt(folder / "z_values.txt", np.load(given.parent / "data" / "z.npy")[ends])
    for k in range(3):
        cube = np.zeros((16, 16, 16), np.float32)
        cube[7:9, 4 * k + 3 : 4 * k + 5, 7:9] = 1
        write_volume(folder / f"vol_{k:03d}.mrc", cube, pixel_size=16.0)
    return folder


@pytest.fixture(scope="module")
def shown(given, volumes):
    run = open_run(given)
    wanted = Wanted(volumes=read_volumes(volumes, run))
    return ParticlePages.open(run, read_run(given)[1], wanted)


@pytest.fixture(scope="module")
def given_scene(given, shown):
    return open_scene(given, shown=[shown])


@pytest.fixture(scope="module")
def given_page(given, volumes, shown, tmp_path_factory):
    """The page of the command line, of volumes that `shown` has computed and kept."""
    out = tmp_path_factory.mktemp("page") / "page.html"
    typed = ["report", str(given), "--out", str(out), "--volumes", str(volumes)]
    kept = (given / MODEL_FILE).stat().st_mtime_ns
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figures, "drawn", lambda *_: EMPTY)
        assert main([*typed, "--view", "0,90", "--width", "30"]) == 0
    assert (given / MODEL_FILE).stat().st_mtime_ns == kept
    return out.read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_report_shows_molecule_images_and_volumes_along_a_factor(given_page):
    text = words(given_page)
    means = r"Means of \d+ images within 30° of rot 0°, tilt 90°"
    expected = "Deviation expected of a coordinate"
    for said in (means, "corrected for their CTF", "seen from rot 0°, tilt 90°", expected):
        assert len(re.findall(said, text)) == 2
    assert "3 of 3 volumes of evaluated, vol_000.mrc to vol_002.mrc" in text
    assert "".join(Reader(given_page).values("aria-label")).count("Strip of") == 5


def image(scene, source, at=((0.5,), (0.0,)), view=(0.0, 90.0), **given):
    asked = {"factor": 0, "mode": "held", "count": 15, **given}
    return scene.near(at, look=Viewpoint(view=view, source=source), **asked)


@pytest.mark.slow
def test_each_source_follows_the_direction_and_the_sliders(given_scene):
    scene = given_scene
    assert list(scene.preview.sources) == ["molecule", "images", "volumes"]
    (line,) = (f for f, p in enumerate(scene.run.places) if p.topology == "interval")
    other = [(0.0,), (0.0,)]
    other[line] = (0.95,)
    for source in scene.preview.sources:
        here = image(scene, source)["image"]
        assert here == image(scene, source)["image"]
        assert here != image(scene, source, view=(90.0, 40.0))["image"]
        assert here != image(scene, source, at=other)["image"]


@pytest.mark.slow
def test_a_grid_shows_each_source_and_a_selection_has_images_only(given_scene):
    how = {"at": ((0.5,), (0.0,)), "count": 20, "mode": "held"}
    for source, distinct in (("molecule", 4), ("images", 4), ("volumes", 2)):
        look = Viewpoint(view=(0.0, 90.0), source=source)
        found = given_scene.grid([0, 1], 2, look=look, **how)
        cells = base64.b64decode(found["thumbnails"])
        size = len(cells) // 4
        assert size == np.prod(found["thumbnail_shape"])
        # Volumes are along one of the factors only.
        assert len({cells[i * size : (i + 1) * size] for i in range(4)}) == distinct
    with pytest.raises(ValueError, match="choose images"):
        given_scene.mean([[]], look)
    seen = given_scene.mean([[]], replace(look, source="images"))
    assert 0 < seen["counts"][0] < N_GIVEN  # of those seen from there
    assert given_scene.sample(7)["samples"] == [7]


def test_a_mean_is_of_images_near_the_direction(given_scene):
    scene = given_scene
    found = image(scene, "images", mode="matched")
    angles = scene.run.particles.angles[found["samples"]]
    rot, tilt = np.radians(angles[:, :2]).T
    along_x = np.sin(tilt) * np.cos(rot)
    assert (np.abs(along_x) > np.cos(np.radians(30)) - 1e-6).all()
    assert found["cone"]["images"] == scene.preview.directed((0.0, 90.0)).cone.n_particles
    assert found["cone"]["corrected"]
    n_greys = len(base64.b64decode(found["thumbnails"]))
    assert n_greys == len(found["samples"]) * np.prod(found["thumbnail_shape"])
    assert found["reach"].keys() == {0}


@pytest.mark.slow
def test_the_page_of_given_coordinates_is_told_what_can_be_shown(given_scene):
    scene = given_scene
    about = json.loads(json.dumps(scene.about(), allow_nan=False))
    preview = about["preview"]
    assert list(preview["bars"]) == list(preview["sources"])
    assert preview["views"]["expected"]
    assert sum(preview["views"]["counts"]) == N_GIVEN
    assert (scene.preview.what.motions.model.consistency > 0.3).all()
    assert [cone.width for cone in scene.preview.what.cones] == [30, 30]
    assert "column 1" in about["columns"]  # what was fitted can still be coloured by
    asked = near_arguments({"at": [[0.5], [0.0]]}, scene)
    assert asked["look"].source == "molecule"
    with pytest.raises(ValueError, match="`source` must be one of molecule"):
        near_arguments({"at": [[0.5], [0.0]], "source": "else"}, scene)


@pytest.mark.slow
def test_what_a_run_cannot_show_is_refused(given, torus_run, volumes, capsys):
    for typed, message in {
        (str(torus_run), "--view", "0,90"): "--view and --width choose among particles",
        (str(given), "--width", "0"): "--width must be",
        (str(given), "--volumes-along", "1"): "give its folder with --volumes",
        (str(given), "--view", "0,90", "--width", ".01"): "the view must show some",
    }.items():
        assert main(["report", *typed, "--out", str(volumes / "no.html")]) == 2
        assert message in capsys.readouterr().err


def with_particles(folder, path):
    """What is shown of a run whose record names other particles, and no volumes."""
    (folder / MODEL_FILE).unlink(missing_ok=True)
    changed(folder, particles=str(path), fingerprint=read_particles(path).fingerprint)
    return ParticlePages.open(open_run(folder), read_run(folder)[1], Wanted())


@pytest.mark.slow
def test_without_images_the_pages_say_why(given, tmp_path):
    folder = copied(given, tmp_path)
    blocks = starfile.read(given.parent / "data" / "particles.star")
    names = blocks["particles"]["rlnImageName"]
    blocks["particles"]["rlnImageName"] = names.str.replace("data/", "gone/")
    starfile.write(blocks, tmp_path / "moved.star")
    found = with_particles(folder, tmp_path / "moved.star")
    assert found.what.motions is None
    assert "gone" in found.what.why
    scene = open_scene(folder, shown=[found])
    assert scene.preview.kind == "features"
    assert re.match("No images are averaged: .*gone", scene.preview.why)


@pytest.mark.slow
def test_volumes_of_images_with_a_ctf_need_the_pixel_size_as_a_fit_does(given, tmp_path):
    data = Path(shutil.copytree(given.parent / "data", tmp_path / "data"))
    folder = copied(given, tmp_path)
    blocks = starfile.read(data / "particles.star")
    angstroms = ["rlnOriginXAngst", "rlnOriginYAngst"]
    blocks["particles"] = blocks["particles"].drop(columns=angstroms, errors="ignore")
    blocks["optics"] = blocks["optics"].drop(columns="rlnImagePixelSize")
    starfile.write(blocks, data / "particles.star", overwrite=True)
    with mrcfile.open(data / "particles.mrcs", mode="r+") as stack:
        stack.voxel_size = 0.0
    found = with_particles(folder, data / "particles.star")
    assert found.what.motions is None
    assert "a CTF need a pixel size" in found.what.why


@pytest.mark.browser
def test_the_page_switches_between_molecule_images_and_volumes(window, given_scene):
    width = 400
    with serving(given_scene) as port:
        opened = window(width=width, scheme="dark")
        opened.goto(address(port, "#view=0_90"))
        opened.wait_for_selector(READY)
        caption = opened.locator("#caption")
        assert "The molecule at the chosen coordinates" in caption.inner_text()
        assert opened.locator("#modes").is_hidden()
        opened.get_by_label("images", exact=True).check()
        opened.wait_for_selector("#caption:has-text('corrected for the CTF')")
        assert opened.locator("#modes").is_visible()
        assert opened.locator("#samples canvas").count() > 3
        opened.get_by_label("volumes", exact=True).check()
        opened.wait_for_selector("#caption:has-text('the nearest of 3 volumes')")
        opened.wait_for_function("() => location.hash.includes('source=volumes')")
        wide = "document.querySelector('#all-but-selection').scrollWidth"
        assert opened.evaluate(wide) <= width
