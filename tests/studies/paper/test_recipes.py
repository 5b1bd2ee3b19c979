import io
import json
from dataclasses import replace
from functools import partial
from html.parser import HTMLParser
from itertools import chain, repeat
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from manifactor._support.workers import Here
from manifactor.views import plots
from studies.paper import recipes
from studies.paper.fig1 import Fig1Settings, fig1
from studies.paper.fig2 import Fig2Settings, fig2
from studies.paper.fig3 import fig3
from studies.paper.lab import Lab
from studies.paper.panels import PanelSettings
from studies.paper.recipes import RECIPES, chosen, reproduce
from studies.paper.section import Settings


@pytest.fixture
def pictures_are_stand_ins(monkeypatch):
    """Write a few bytes in place of each picture: drawing takes most of the time."""
    files = {".pdf": b"%PDF", ".png": b"PNG"}
    monkeypatch.setattr(recipes, "picture", lambda figure: files)


# Data sets that others stand for: a fit takes up to seconds, and nothing is known about
# these after a quick run. All of them are drawn in test_cases.py, and images are fitted
# in test_finding.py.
STAND_INS = {
    "rectangle_xyz": "rectangle_z",
    "molecule_low": "torus",
    "molecule_high": "torus",
    "molecule_xy": "torus",
    "square": "equal_torus",
    "sphere_sphere": "equal_torus",
    "robot_arm": "equal_torus",
}


class FewFits(Lab):
    """Fits one data set in place of several of its kind."""

    def find(self, jobs):
        return super().find([with_stand_in(job) for job in jobs])

    def measure(self, jobs):
        return super().measure([with_stand_in(job) for job in jobs])


def with_stand_in(job):
    return replace(job, case=STAND_INS.get(job.case, job.case))


# Few pixels, and labels that overlap, show that a figure is neither empty nor black. To
# fit the labels in takes longer than to draw them.
COARSE = plots.PlotSettings(resolution=40)


def both_files(figure):
    figure.set_layout_engine("none")
    return plots.picture(figure, settings=COARSE)


def pixels_alone(figure):
    figure.set_layout_engine("none")
    pixels = io.BytesIO()
    figure.savefig(pixels, format="png", dpi=COARSE.resolution)
    return {".pdf": b"%PDF", ".png": pixels.getvalue()}


def coarse():
    """Draws the first figure to both files, and others to a .png file, in a third of the time."""
    drawn = chain([both_files], repeat(pixels_alone))
    return lambda figure: next(drawn)(figure)


# Fewer panels than on the page; all of them are drawn in the tests of each figure.
FEW_PANELS = {
    "fig1": partial(fig1, recipe=Fig1Settings(n_shown=4, n_columns=2)),
    "fig2": partial(fig2, recipe=Fig2Settings(panels=PanelSettings(n_functions=2))),
    "fig3": partial(fig3, recipe=PanelSettings(n_functions=2)),
}


def sections(folder: Path) -> dict:
    return json.loads((folder / "numbers.json").read_text())["sections"]


@pytest.mark.slow
def test_a_quick_run_of_everything_leaves_numbers_figures_and_one_page(tmp_path, monkeypatch):
    monkeypatch.setattr(recipes, "picture", coarse())
    monkeypatch.setattr(recipes, "Lab", FewFits)
    monkeypatch.setattr(recipes, "RECIPES", {**RECIPES, **FEW_PANELS})
    folder = tmp_path / "reproduction"
    settings = Settings(quick=True)
    assert list(dict(reproduce([], folder, settings, workers=Here()))) == list(RECIPES)
    every_recipe_left_numbers_and_every_figure_two_files(folder)
    what_is_known_was_found(folder)
    the_page_holds_its_pictures_and_all_its_links_lead_somewhere(folder)
    the_page_in_markdown_shows_the_same(folder)
    what_the_folder_holds_is_kept_and_other_settings_do_not_mix(folder)


def what_is_known_was_found(folder):
    numbers = {name: section["numbers"] for name, section in sections(folder).items()}
    assert min(numbers["fig1"]["cosine"][:3]) > 0.9
    assert numbers["trials"]["torus, default"][0]["solved"]
    assert numbers["beyond"]["equal_torus, default"][0]["solved"]
    assert numbers["fig7"]["default"]["own"] > 0.9
    assert 0 < numbers["table1"]["triplets"]["textbook"]["20"] < 18


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


class Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.images, self.links, self.open, self.anchors = [], [], [], set()

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.anchors.add(attributes.get("id"))
        if tag == "img":
            self.images.append(attributes)
        elif tag == "a":
            self.links.append(attributes["href"])
        if tag not in ("img", "meta"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def the_page_holds_its_pictures_and_all_its_links_lead_somewhere(folder):
    reader = Reader()
    reader.feed((folder / "index.html").read_text())
    assert reader.open == []
    drawn = [section["pictures"] for section in sections(folder).values()]
    assert len(reader.images) == sum(map(len, drawn))
    for image in reader.images:
        assert image["src"].startswith("data:image/png;base64,")
        assert image["alt"]
    for link in reader.links:
        if link.startswith("#"):
            assert link[1:] in reader.anchors
        else:
            assert (folder / link).is_file()


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


@pytest.mark.slow
def test_the_same_seed_gives_the_same_numbers_and_another_seed_others(
    tmp_path, pictures_are_stand_ins
):
    runs = []
    for name, seed in (("one", 0), ("two", 0), ("three", 1)):
        list(reproduce(["fig1"], tmp_path / name, Settings(True, seed), workers=Here()))
        runs.append(sections(tmp_path / name)["fig1"]["numbers"])
    assert runs[0] == runs[1] != runs[2]


def test_recipes_are_chosen_by_name_in_their_own_order():
    assert chosen(["all", "fig2"]) == chosen([]) == list(RECIPES)
    assert chosen(["fig3", "fig1", "fig3"]) == ["fig1", "fig3"]
    with pytest.raises(ValueError, match="fig99"):
        chosen(["fig99"])


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "numbers.json").write_text("{}")
    with pytest.raises(ValueError, match="new, empty, or hold"):
        list(reproduce(["fig1"], tmp_path, Settings(quick=True)))
    assert (tmp_path / "numbers.json").read_text() == "{}"
