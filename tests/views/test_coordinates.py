"""Report and explorer of another program's coordinates of particles of all views."""

import base64
import json
import re
import shutil
from pathlib import Path

import mrcfile
import numpy as np
import pytest
import starfile

from manifactor import datasets
from manifactor.command.main import main
from manifactor.cryoem.all_views.shown import Wanted, open_shown, read_volumes
from manifactor.cryoem.all_views.volumes import MODEL_FILE
from manifactor.cryoem.files.formats import read_particles
from manifactor.cryoem.files.mrc import write_volume
from manifactor.cryoem.simulate.writing import write_dataset
from manifactor.runs.folder import read_run
from manifactor.runs.options import FitOptions
from manifactor.runs.run import open_run
from manifactor.runs.task import Task
from manifactor.views.explorer.previews import Viewpoint
from manifactor.views.explorer.scene import open_scene

from .conftest import TOKEN, near_arguments, serving
from .test_moving import READY, words
from .test_report import Reader

pytest.importorskip("matplotlib")
N = 300


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """A run of coordinates that another program might have found."""
    folder = tmp_path_factory.mktemp("coordinates") / "data"
    folder.mkdir()
    simulation = datasets.simulate_views(
        N, size=32, pixel_size=9.4, blur=8, signal_to_noise=100, defocus=(9e3, 2e4), random_state=0
    )
    write_dataset(folder, simulation, name="data")
    turn, stretch = simulation.truth
    z = np.column_stack([turn, 4 * stretch / np.ptp(stretch)])
    np.save(folder / "z.npy", z)
    task = Task(folder / "z.npy", FitOptions(particles=str(folder / "particles.star")))
    task.fit(task.read(), folder.parent / "run")
    return folder.parent / "run"


@pytest.fixture(scope="module")
def volumes(given):
    """Three volumes along the interval, as `cryodrgn eval_vol` writes them."""
    folder = given.parent / "evaluated"
    folder.mkdir()
    (line,) = (p for p in open_run(given).places if p.topology == "interval")
    ends = np.argsort(line.coordinate)[[20, N // 2, -20]]
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
    return open_shown(run, read_run(given)[1], wanted)


@pytest.fixture(scope="module")
def scene(given, shown):
    return open_scene(given, shown=shown)


@pytest.fixture(scope="module")
def page(given, volumes, shown, tmp_path_factory):
    """The page of the command line, for which `shown` has computed the volumes."""
    out = tmp_path_factory.mktemp("page") / "page.html"
    typed = ["report", str(given), "--out", str(out), "--volumes", str(volumes)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("manifactor.views.figures.drawn", lambda *_: "<svg viewBox='0 0 1 1'></svg>")
        assert main([*typed, "--view", "0,90", "--width", "30"]) == 0
    return out.read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_report_shows_molecule_images_and_volumes_along_a_factor(page):
    text = words(page)
    assert "two half sets of images correlate by 0." in text
    assert len(re.findall(r"Means of \d+ images within 30° of rot 0°, tilt 90°", text)) == 2
    assert text.count("corrected for their CTF") == 2
    assert text.count("The molecule at 7 coordinates") == 2
    assert text.count("seen from rot 0°, tilt 90°") == 2
    assert "3 of 3 volumes of evaluated, vol_000.mrc to vol_002.mrc" in text
    assert text.count("Deviation expected of a coordinate that a single image tells") == 2
    labels = Reader(page).values("aria-label")
    assert len([label for label in labels if "Strip of" in label]) == 5


def test_images_show_what_the_coordinates_say(shown):
    assert (shown.motions.model.consistency > 0.3).all()
    assert shown.motions.expected
    assert [cone.width for cone in shown.cones] == [30, 30]


def image(scene, source, at=((0.5,), (0.0,)), view=(0.0, 90.0), **given):
    asked = {"factor": 0, "mode": "held", "count": 15, **given}
    return scene.near(at, look=Viewpoint(view=view, source=source), **asked)


def test_each_source_follows_the_direction_and_the_sliders(scene):
    assert list(scene.preview.sources) == ["molecule", "images", "volumes"]
    for source in scene.preview.sources:
        here = image(scene, source)["image"]
        assert here == image(scene, source)["image"]
        assert here != image(scene, source, view=(90.0, 40.0))["image"]
        (line,) = (f for f, p in enumerate(scene.run.places) if p.topology == "interval")
        other = [(0.0,), (0.0,)]
        other[line] = (0.95,)
        assert here != image(scene, source, at=other)["image"]


def test_a_mean_is_of_images_near_the_direction(scene):
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


def test_the_page_is_told_what_can_be_shown(scene):
    about = json.loads(json.dumps(scene.about(), allow_nan=False))
    preview = about["preview"]
    assert list(preview["bars"]) == list(preview["sources"])
    assert preview["views"]["expected"]
    assert sum(preview["views"]["counts"]) == N
    assert "column 1" in about["columns"]  # what was fitted can still be coloured by
    asked = near_arguments({"at": [[0.5], [0.0]]}, scene)
    assert asked["look"].source == "molecule"
    with pytest.raises(ValueError, match="`source` must be one of molecule"):
        near_arguments({"at": [[0.5], [0.0]], "source": "else"}, scene)


def test_volumes_are_kept_and_averages_are_made_of_them(given, shown, tmp_path, capsys):
    kept = (given / MODEL_FILE).stat().st_mtime_ns
    out = tmp_path / "volumes"
    typed = ["average", str(given), "--factor", "1", "--bins", "3", "--out", str(out)]
    assert main(typed) == 0
    assert len(list(out.glob("average_*.mrc"))) == 3
    assert (given / MODEL_FILE).stat().st_mtime_ns == kept
    assert main([*typed, "--overwrite", "--match"]) == 2
    assert "--match is for means of images" in capsys.readouterr().err


def test_what_a_run_cannot_show_is_refused(given, torus_run, volumes, capsys):
    for typed, message in {
        (str(torus_run), "--view", "0,90"): "--view and --width choose among particles",
        (str(given), "--width", "0"): "--width must be",
        (str(given), "--volumes-along", "1"): "give its folder with --volumes",
        (str(given), "--view", "0,90", "--width", ".01"): "the view must show some",
    }.items():
        assert main(["report", *typed, "--out", str(volumes / "no.html")]) == 2
        assert message in capsys.readouterr().err


@pytest.mark.slow
def test_without_images_the_pages_say_why(given, volumes, tmp_path):
    folder = Path(shutil.copytree(given, tmp_path / "run"))
    (folder / MODEL_FILE).unlink()
    record = json.loads((folder / "run.json").read_text())
    original = Path(record["particles"])
    blocks = starfile.read(original)
    names = blocks["particles"]["rlnImageName"]
    blocks["particles"]["rlnImageName"] = names.str.replace("data/", "gone/")
    moved = original.with_name("moved.star")
    starfile.write(blocks, moved)
    new = {"particles": str(moved), "fingerprint": read_particles(moved).fingerprint}
    (folder / "run.json").write_text(json.dumps({**record, **new}))
    found = open_shown(open_run(folder), read_run(folder)[1])
    assert found.motions is None
    assert "gone" in found.why
    scene = open_scene(folder, shown=found)
    assert scene.preview.kind == "features"
    assert re.match("No images are averaged: .*gone", scene.preview.why)


@pytest.mark.slow
@pytest.mark.parametrize("has_ctf", [True, False])
def test_volumes_of_images_with_a_ctf_need_the_pixel_size_as_a_fit_does(given, tmp_path, has_ctf):
    data, folder = tmp_path / "data", tmp_path / "run"
    shutil.copytree(given.parent / "data", data)
    shutil.copytree(given, folder)
    (folder / MODEL_FILE).unlink(missing_ok=True)
    blocks = starfile.read(data / "particles.star")
    angstroms = ["rlnOriginXAngst", "rlnOriginYAngst"]
    defocus = [] if has_ctf else ["rlnDefocusU", "rlnDefocusV", "rlnDefocusAngle"]
    blocks["particles"] = blocks["particles"].drop(columns=angstroms + defocus, errors="ignore")
    blocks["optics"] = blocks["optics"].drop(columns="rlnImagePixelSize")
    starfile.write(blocks, data / "particles.star", overwrite=True)
    with mrcfile.open(data / "particles.mrcs", mode="r+") as stack:
        stack.voxel_size = 0.0
    particles = read_particles(data / "particles.star")
    record = json.loads((folder / "run.json").read_text())
    new = {"particles": str(particles.path), "fingerprint": particles.fingerprint}
    (folder / "run.json").write_text(json.dumps({**record, **new}))
    found = open_shown(open_run(folder), read_run(folder)[1])
    assert (found.motions is None) == has_ctf
    assert ("a CTF need a pixel size" in found.why) == has_ctf


@pytest.mark.browser
def test_the_page_switches_between_molecule_images_and_volumes(window, scene):
    width = 400
    with serving(scene) as port:
        opened = window(width=width, scheme="dark")
        opened.goto(f"http://127.0.0.1:{port}/?token={TOKEN}#view=0_90")
        opened.wait_for_selector(READY)
        caption = opened.locator("#caption")
        assert "The molecule at the chosen places" in caption.inner_text()
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
