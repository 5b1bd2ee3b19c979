"""`fit` of a folder of pictures, and what is shown of its run."""

import base64
import csv
import io
import json
import re

import numpy as np
import pytest
from PIL import Image

from manifactor import load
from manifactor.runs.run import open_run
from manifactor.views import plots
from manifactor.views.explorer.previews import Viewpoint
from tests.views.scenes import open_scene

from .conftest import manifactor, record_of, refusal

N = 240


@pytest.fixture(scope="module")
def images():
    """A spot that moves on a square, red and blue, (240, 6, 8, 3)."""
    rng = np.random.default_rng(0)
    row, column = rng.uniform(0, 5, (2, N, 1, 1))
    y, x = np.mgrid[:6, :8]
    spot = np.exp(-((x - column - 1) ** 2 + (y - row) ** 2) / 5)
    return (250 * np.stack([spot, 0 * spot, spot**2], axis=-1)).astype(np.uint8)


@pytest.fixture(scope="module")
def project(images, tmp_path_factory):
    """A folder of pictures, some with a name that is hard to write, and its run."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "pictures").mkdir()
    for k, image in enumerate(images):
        Image.fromarray(image).save(folder / "pictures" / name_of(k))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        line = "fit pictures --sense geometry --n-factors 2 --out run"
        assert manifactor(line) == 0
        assert manifactor("report run") == 0
    return folder


@pytest.fixture
def here(project, monkeypatch):
    monkeypatch.chdir(project)
    return project


def name_of(k):
    return f'a,"b" #{k}.png' if k % 7 == 0 else f"img{k}.png"


def look_of(path):
    """Mode and frames of a picture."""
    with Image.open(path) as picture:
        return picture.mode, getattr(picture, "n_frames", 1)


def in_order():
    return sorted(range(N), key=lambda k: (k % 7 != 0, k))


def test_coordinates_name_the_file_of_every_picture(here, images):
    with (here / "run" / "coordinates.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert [line["file"] for line in lines] == [name_of(k) for k in in_order()]
    found = load("run").coordinates(images[in_order()])
    read = [float(line["factor1"]) for line in lines]
    np.testing.assert_allclose(read, found[:, 0], atol=1e-3)
    run = open_run("run")
    np.testing.assert_allclose(run.places[0].coordinate, read)
    assert run.names == [name_of(k) for k in in_order()]
    assert manifactor("select run --factor 1 --range .2 .4 --out some.csv") == 0
    with open("some.csv", newline="") as file:
        assert all(lines[int(line["sample"])] == line for line in csv.DictReader(file))


def test_the_record_says_that_columns_are_pixels(here):
    record = record_of(here / "run")
    assert record["columns"]["image"] == [6, 8, 3]
    assert record["choices"]["preparation"]["why"].startswith("images of 6 x 8 pixels in colour")
    assert load("run").along(0, 4).shape == (4, 6, 8, 3)


def test_pictures_are_shown_as_pictures_in_colour(here, images):
    page = (here / "run" / "report.html").read_text()
    assert page.count("mean images. Means of 240 images, along the factor") == 2
    pictures = re.findall(r'src="data:image/png;base64,([^"]+)', page)
    modes = [look_of(io.BytesIO(base64.b64decode(each)))[0] for each in pictures]
    # A film for each factor, and means along it.
    assert modes == ["RGB"] * (2 + 24)
    scene = open_scene(here / "run")
    assert scene.preview.kind == "images"
    near = scene.near([[0.5], [0.5]], factor=0, mode="held", count=9, look=Viewpoint(singles=3))
    assert near["thumbnail_shape"] == [6, 8, 3]
    assert near["names"] == [name_of(in_order()[k]) for k in near["samples"]]
    shown = np.frombuffer(base64.b64decode(near["thumbnails"]), np.uint8).reshape(3, 6, 8, 3)
    for k, thumbnail in zip(near["samples"], shown, strict=True):
        given = images[in_order()[k]]
        assert np.corrcoef(given.ravel(), thumbnail.ravel())[0, 1] > 0.999
    json.dumps(near)


def test_mean_pictures_are_written_and_drawn_in_colour(here):
    assert manifactor("average run --factor 1 --bins 3 --out means") == 0
    means = np.load("means/averages.npy")
    assert means.shape == (3, 6, 8, 3)
    assert look_of("means/averages.png") == ("RGB", 1)
    assert look_of("means/averages.gif")[1] == 4
    line = "average run --factor 1 --factor 2 --bins 2 --out grid"
    assert manifactor(line) == 0
    assert look_of("grid/averages.png") == ("RGB", 1)
    figure = plots.overview(load("run"))
    assert [ax.get_title() for ax in figure.axes if "along" in ax.get_title()] == [
        "along factor 1",
        "along factor 2",
    ]


def test_other_pictures_are_read_like_those_of_the_run(here, images, tmp_path):
    run = open_run("run")
    np.save(tmp_path / "new.npy", images[:3])
    assert np.array_equal(run.read(tmp_path / "new.npy"), images[:3].reshape(3, -1))
    for wrong in (images[:3, 1:], images[:3].repeat(2, axis=1), images[:3, ..., 0]):
        np.save(tmp_path / "new.npy", wrong)
        with pytest.raises(ValueError, match="must hold images of 6 x 8 pixels in colour"):
            run.read(tmp_path / "new.npy")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "must hold pictures"),
        (b"no picture", "a.png is damaged"),
        ("one", "a fit needs at least 4 samples"),
    ],
)
def test_a_folder_that_cannot_be_fitted_is_refused_in_one_line(folder, capsys, content, message):
    (folder / "new").mkdir()
    if content == "one":
        Image.fromarray(np.eye(5, dtype=np.uint8)).save(folder / "new" / "a.png")
    elif content:
        (folder / "new" / "a.png").write_bytes(content)
    assert message in refusal("fit new", folder, capsys)
