"""Report and explorer of particles of all views: of their own fits, and of given coordinates."""

import json
import re

import numpy as np
import pytest

from manifactor import datasets
from manifactor.command.main import main
from manifactor.cryoem import pages
from manifactor.cryoem.all_views.volumes import MODEL_FILE, Wanted, open_motions, read_volumes
from manifactor.cryoem.files.stacks import write_volume
from manifactor.cryoem.pages import ParticlePages, blind_sentence
from manifactor.runs.folder import read_run
from manifactor.runs.run import open_run
from manifactor.views import figures
from manifactor.views.explorer.previews import Viewpoint
from manifactor.views.report import write_movies, write_report
from tests.views.scenes import open_scene

from ..conftest import EMPTY
from .conftest import Reader, near_look, run_of_coordinates

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def page(moving_run):
    # Two of the drawings, which take most of the time, and a ninth of the cells.
    draw = figures.svg_of

    def drawn(name, *given):
        return draw(name, *given) if name in ("seen1", "deviation1") else EMPTY

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "BANDS", 16)
        patch.setattr(figures, "svg_of", drawn)
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


@pytest.mark.medium
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
    found = moving.near(Viewpoint(((0.5,), (0.0,)), mode="held", count=3))
    expected = moving.run.places[1].displayed_deviation[found["samples"]]
    np.testing.assert_allclose(found["deviations"][1], expected, atol=1e-4)


def test_a_direction_is_two_numbers(moving):
    for view in ([1], ["a", 2], 7):
        with pytest.raises(ValueError, match="view"):
            near_look({"at": [[0.5], [0.0]], "view": view}, moving)
    asked = near_look({"at": [[0.5], [0.0]], "view": [-90, 200]}, moving)
    assert asked.view == (270, 180)


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
        patch.setattr(figures, "svg_of", lambda *_: EMPTY)
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
    asked = {"mode": "held", "count": 15, **given}
    return scene.near(Viewpoint(at, view=view, source=source, **asked))


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
def test_what_a_run_cannot_show_is_refused(given, torus_run, volumes, capsys):
    for typed, message in {
        (str(torus_run), "--view", "0,90"): "--view and --width choose among particles",
        (str(given), "--width", "0"): "--width must be",
        (str(given), "--volumes-along", "1"): "give its folder with --volumes",
        (str(given), "--view", "0,90", "--width", ".01"): "the view must show some",
    }.items():
        assert main(["report", *typed, "--out", str(volumes / "no.html")]) == 2
        assert message in capsys.readouterr().err
