"""What a reproduction leaves in its folder: numbers, pictures, one page; and how it is computed."""

import io
import json
from functools import partial

import numpy as np
import pytest
from PIL import Image

from manifactor._support.workers import Here
from studies.paper import recipes
from studies.paper.finding import Job
from studies.paper.lab import Lab
from studies.paper.recipes import RECIPES, reproduce
from studies.paper.section import Settings

from ..views.conftest import Reader
from .conftest import FEWER, Small

pytestmark = pytest.mark.nightly


def coarse(made):
    """Draws the first figure of each recipe to a .png file of few pixels, and nothing else."""
    pictures = [made(name).pictures for name in RECIPES]
    drawn = [each[0].figure for each in pictures if each]
    files = {".pdf": b"%PDF"}

    def picture(figure):
        if figure in drawn:
            figure.set_layout_engine("none")  # labels overlap: to fit them in takes longest
            pixels = io.BytesIO()
            figure.savefig(pixels, format="png", dpi=40)
            files[".png"] = pixels.getvalue()
        return files

    return picture


def sections(folder):
    return json.loads((folder / "numbers.json").read_text())["sections"]


def test_a_quick_run_of_everything_leaves_numbers_figures_and_one_page(tmp_path, made, monkeypatch):
    stand_ins = {name: partial(lambda name, *_: made(name), name) for name in RECIPES}
    monkeypatch.setattr(recipes, "RECIPES", stand_ins)
    monkeypatch.setattr(recipes, "picture", coarse(made))
    folder = tmp_path / "reproduction"
    settings = Settings(quick=True)
    assert list(dict(reproduce([], folder, settings, workers=Here()))) == list(RECIPES)
    every_recipe_left_numbers_and_every_figure_two_files(folder)
    the_page_holds_its_pictures_and_all_its_links_lead_somewhere(folder)
    the_page_in_markdown_shows_the_same(folder)
    what_the_folder_holds_is_kept_and_other_settings_do_not_mix(folder)


def every_recipe_left_numbers_and_every_figure_two_files(folder):
    found = sections(folder)
    assert list(found) == list(RECIPES)
    for name, section in found.items():
        assert section["numbers"], name
        assert section["pictures"] or section["tables"], name
        for picture in section["pictures"]:
            assert (folder / f"{picture['name']}.pdf").read_bytes().startswith(b"%PDF")
            image = Image.open(folder / f"{picture['name']}.png").convert("L")
            dark = (np.asarray(image) < 250).mean()
            # Neither empty nor black.
            assert 0.005 < dark < 0.9, picture["name"]
            assert len(picture["caption"]) > 80


def the_page_holds_its_pictures_and_all_its_links_lead_somewhere(folder):
    reader = Reader((folder / "index.html").read_text())
    images = [attributes for tag, attributes in reader.elements if tag == "img"]
    drawn = [section["pictures"] for section in sections(folder).values()]
    assert len(images) == sum(map(len, drawn))
    assert all(image["src"].startswith("data:image/png;base64,") for image in images)
    assert all(image["alt"] for image in images)
    for link in reader.values("href"):
        assert link[1:] in reader.values("id") if link[0] == "#" else (folder / link).is_file()


def the_page_in_markdown_shows_the_same(folder):
    text = (folder / "index.md").read_text()
    for section in sections(folder).values():
        assert section["title"] in text
        for picture in section["pictures"]:
            assert f"]({picture['name']}.png)" in text
    assert "a quick run on few samples" in text


def what_the_folder_holds_is_kept_and_other_settings_do_not_mix(folder):
    before = (folder / "numbers.json").read_bytes()
    assert list(reproduce(["fig1"], folder, Settings(quick=True))) == [("fig1", None)]
    with pytest.raises(ValueError, match="other settings"):
        list(reproduce(["fig1"], folder, Settings(quick=True, seed=1)))
    assert (folder / "numbers.json").read_bytes() == before


def test_the_same_seed_gives_the_same_numbers_and_another_seed_others(tmp_path, monkeypatch):
    monkeypatch.setattr(recipes, "picture", lambda figure: {".pdf": b"%PDF", ".png": b"PNG"})
    drawn, few = FEWER["fig1"]
    monkeypatch.setitem(RECIPES, "fig1", partial(drawn, recipe=few))
    runs = []
    for name, seed in (("one", 0), ("two", 0), ("three", 1)):
        list(reproduce(["fig1"], tmp_path / name, Small(True, seed), workers=Here()))
        runs.append(sections(tmp_path / name)["fig1"]["numbers"])
    assert runs[0] == runs[1] != runs[2]


# Fits side by side.


def test_a_job_that_is_asked_for_twice_is_run_once(monkeypatch):
    run, shares = [], []
    monkeypatch.setattr("studies.paper.lab.measure", run.append)
    job, other = (Job("square", "default", 120, seed) for seed in range(2))
    lab = Lab(Here(), callback=shares.append)
    assert lab.measure([job, other, job]) == [None, None, None]
    assert run == [job, other]
    assert shares == [1 / 3, 2 / 3]  # the whole when the figure is drawn
