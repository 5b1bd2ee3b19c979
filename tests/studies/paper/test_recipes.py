import io
import json
import sys
from dataclasses import replace
from functools import partial
from html.parser import HTMLParser
from itertools import chain, repeat
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from manifactor._support.workers import Here
from manifactor.command.main import main
from manifactor.studies.paper import recipes
from manifactor.studies.paper.fig1 import Fig1Settings, fig1
from manifactor.studies.paper.fig2 import Fig2Settings, fig2
from manifactor.studies.paper.fig3 import fig3
from manifactor.studies.paper.lab import Lab
from manifactor.studies.paper.panels import PanelSettings
from manifactor.studies.paper.recipes import RECIPES, chosen, reproduce
from manifactor.studies.paper.section import Settings
from manifactor.views import plots


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
def test_a_quick_run_of_everything_leaves_numbers_figures_and_one_page(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
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
    what_the_folder_holds_is_kept_and_other_settings_do_not_mix(folder, capsys)


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


def what_the_folder_holds_is_kept_and_other_settings_do_not_mix(folder, capsys):
    before = (folder / "numbers.json").read_bytes()
    assert main(["reproduce", "fig1", "--quick"]) == 0
    assert "fig1     already done" in capsys.readouterr().out
    assert main(["reproduce", "fig1", "--quick", "--seed", "1"]) == 2
    message = "reproduction holds a reproduction with other settings"
    assert message in capsys.readouterr().err
    assert (folder / "numbers.json").read_bytes() == before


@pytest.mark.slow
def test_the_same_seed_gives_the_same_numbers_and_another_seed_others(
    tmp_path, pictures_are_stand_ins
):
    runs = []
    for name, seed in (("one", 0), ("two", 0), ("three", 1)):
        list(reproduce(["fig1"], tmp_path / name, Settings(True, seed), workers=Here()))
        runs.append(sections(tmp_path / name)["fig1"]["numbers"])
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


@pytest.mark.slow
def test_a_recipe_can_be_made_anew_and_the_others_stay(
    tmp_path, capsys, monkeypatch, pictures_are_stand_ins
):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "fig1", "table1", "--quick"]) == 0
    table = sections(tmp_path / "reproduction")["table1"]
    assert main(["reproduce", "fig1", "--quick", "--overwrite"]) == 0
    assert "already done" not in capsys.readouterr().out
    assert sections(tmp_path / "reproduction")["table1"] == table
    assert main(["reproduce", "table1", "--quick", "--seed", "3", "--overwrite"]) == 2
    assert "holds a reproduction with other settings" in capsys.readouterr().err
    assert sections(tmp_path / "reproduction")["table1"] == table


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fig9"], "a recipe must be one of all, fig1, fig2"),
        (["fig1", "--out", "no/such/folder"], "must be a writable folder"),
        (
            ["fig1", "--out", "mine"],
            "mine must be new, empty, or hold the numbers.json that this command writes",
        ),
        (["fig1", "--seed", "x"], "invalid whole number value: 'x'"),
        (["fig1", "--seed", "-1"], "--seed: must be a whole number in [0, 4294967295]"),
        (
            ["fig1", "--seed", "2147483649"],
            "--seed must be a whole number in [0, 2147483648]; got 2147483649",
        ),
    ],
)
def test_bad_input_gets_one_line_and_leaves_nothing(
    tmp_path, monkeypatch, capsys, arguments, message
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    assert main(["reproduce", *arguments, "--quick"]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert [path.name for path in tmp_path.rglob("*")] == ["mine", "letter.txt"]


def without_pictures(text):
    record = json.loads(text)
    del record["sections"]["table1"]["pictures"]
    return json.dumps(record)


@pytest.mark.parametrize(
    "damaged",
    [
        without_pictures,
        lambda text: text[:500],
        lambda text: "[1, 2]",
        lambda text: "{}",
        lambda text: '{"format": "manifactor reproduction"}',
        lambda text: '{"format": "manifactor run"}',
        lambda text: text.replace('"took": ', '"took": 1' + 400 * "0"),
    ],
)
def test_a_damaged_record_is_refused_and_left_alone(tmp_path, monkeypatch, capsys, damaged):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "table1", "--quick"]) == 0
    path = tmp_path / "reproduction" / "numbers.json"
    path.write_text(damaged(path.read_text()))
    before = path.read_bytes()
    assert main(["reproduce", "table1", "--quick", "--overwrite"]) == 2
    message = "reproduction must be new, empty, or hold the numbers.json"
    assert message in capsys.readouterr().err
    assert path.read_bytes() == before


def interrupted(*_):
    raise KeyboardInterrupt


def interrupted_after_the_first(function):
    """The empty record's page is written, that of the first recipe no more."""

    def call(record, *arguments):
        return interrupted() if record["sections"] else function(record, *arguments)

    return call


@pytest.mark.slow
@pytest.mark.parametrize("where", ["picture", "as_html"])
def test_an_interrupted_run_leaves_a_folder_that_goes_on(
    tmp_path, monkeypatch, capsys, where, pictures_are_stand_ins
):
    """Before any picture is written, and between numbers and page."""
    monkeypatch.chdir(tmp_path)
    with monkeypatch.context() as patch:
        page = interrupted_after_the_first(recipes.as_html)
        patch.setattr(recipes, where, interrupted if where == "picture" else page)
        assert main(["reproduce", "fig1", "--quick"]) == 130
    message = "interrupted; finished recipes are kept; repeat the command to continue"
    assert message in capsys.readouterr().err
    assert main(["reproduce", "fig1", "--quick"]) == 0
    # The second interrupt came after the recipe's numbers were written.
    assert ("already done" in capsys.readouterr().out) == (where == "as_html")
    page = (tmp_path / "reproduction" / "index.html").read_text()
    assert "analytic and computed eigenfunctions" in page


@pytest.mark.slow
def test_a_recipe_whose_files_are_gone_is_made_again(
    tmp_path, monkeypatch, capsys, pictures_are_stand_ins
):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "fig1", "--quick"]) == 0
    (tmp_path / "reproduction" / "fig1.pdf").unlink()
    assert main(["reproduce", "fig1", "--quick"]) == 0
    assert "already done" not in capsys.readouterr().out
    assert (tmp_path / "reproduction" / "fig1.pdf").is_file()


def test_a_name_in_a_record_never_leads_out_of_the_folder(
    tmp_path, monkeypatch, pictures_are_stand_ins
):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "table1", "--quick"]) == 0
    for suffix in (".png", ".pdf"):
        (tmp_path / f"mine{suffix}").write_text("secret")
    path = tmp_path / "reproduction" / "numbers.json"
    record = json.loads(path.read_text())
    record["sections"]["table1"]["pictures"] = [{"name": "../mine", "caption": ""}]
    path.write_text(json.dumps(record))
    assert main(["reproduce", "fig1", "--quick"]) == 2
    assert "c2VjcmV0" not in (tmp_path / "reproduction" / "index.html").read_text()


def test_a_folder_that_is_there_and_empty_will_do(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "reproduction").mkdir()
    assert main(["reproduce", "table1", "--quick"]) == 0


def test_without_matplotlib_the_extra_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["reproduce", "fig1", "--quick"]) == 2
    message = "needs the package matplotlib: pip install 'manifactor[plots]'"
    assert message in capsys.readouterr().err
    assert not (tmp_path / "reproduction").exists()


def test_recipes_come_in_the_order_of_the_page_each_once():
    assert chosen([]) == chosen(["all", "fig2"]) == list(RECIPES)
    assert chosen(["table1", "fig2", "fig2"]) == ["fig2", "table1"]
