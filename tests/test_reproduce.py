import json
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from manifactor import DiffusionMap, datasets, plots
from manifactor.cli import main
from manifactor.reproduce import textbook
from manifactor.reproduce.cases import CASES, Data
from manifactor.reproduce.fig1 import SIDES, lowest_modes
from manifactor.reproduce.fig4 import pair_scores
from manifactor.reproduce.lab import Job, Lab, find
from manifactor.reproduce.recipes import RECIPES, chosen, reproduce
from manifactor.reproduce.section import Settings

from .conftest import box_spectrum

QUICK = Settings(quick=True)


def sections(folder: Path) -> dict:
    return json.loads((folder / "numbers.json").read_text())["sections"]


def test_a_quick_run_of_everything_leaves_numbers_figures_and_one_page(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "reproduction"
    assert list(dict(reproduce([], folder, QUICK, n_jobs=1))) == list(RECIPES)
    every_recipe_left_numbers_and_every_figure_two_files(folder)
    the_page_holds_its_pictures_and_all_its_links_lead_somewhere(folder)
    the_page_in_markdown_shows_the_same(folder)
    what_the_folder_holds_is_kept_and_other_settings_do_not_mix(folder, capsys)


def every_recipe_left_numbers_and_every_figure_two_files(folder):
    found = sections(folder)
    assert list(found) == list(RECIPES)
    for name, section in found.items():
        assert section["numbers"], name
        assert section["pictures"] or section["tables"], name
        for picture in section["pictures"]:
            assert (folder / f"{picture['name']}.pdf").read_bytes().startswith(b"%PDF")
            image = np.asarray(Image.open(folder / f"{picture['name']}.png").convert("L"))
            assert 0.005 < (image < 250).mean() < 0.9, picture["name"]  # neither empty nor black
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
    assert len(reader.images) == sum(len(section["pictures"]) for section in sections(folder).values())
    assert all(image["src"].startswith("data:image/png;base64,") and image["alt"] for image in reader.images)
    for link in reader.links:
        assert link[1:] in reader.anchors if link.startswith("#") else (folder / link).is_file()


def the_page_in_markdown_shows_the_same(folder):
    text = (folder / "index.md").read_text()
    for section in sections(folder).values():
        assert section["title"] in text
        assert all(f"]({picture['name']}.png)" in text for picture in section["pictures"])
    assert "a quick run on few samples" in text


def what_the_folder_holds_is_kept_and_other_settings_do_not_mix(folder, capsys):
    before = (folder / "numbers.json").read_bytes()
    assert main(["reproduce", "fig1", "--quick"]) == 0
    assert "fig1     there already" in capsys.readouterr().out
    assert main(["reproduce", "fig1", "--quick", "--seed", "1"]) == 2
    assert "reproduction holds a reproduction with other settings" in capsys.readouterr().err
    assert (folder / "numbers.json").read_bytes() == before


def test_the_same_seed_gives_the_same_numbers_and_another_seed_others(tmp_path):
    runs = []
    for name, seed in (("one", 0), ("two", 0), ("three", 1)):
        list(reproduce(["fig1", "fig4"], tmp_path / name, Settings(True, seed), n_jobs=1))
        runs.append({key: section["numbers"] for key, section in sections(tmp_path / name).items()})
    assert runs[0] == runs[1]
    assert all(runs[0][key] != runs[2][key] for key in runs[0])


def test_a_recipe_can_be_made_anew_and_the_others_stay(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "fig1", "table1", "--quick"]) == 0
    table = sections(tmp_path / "reproduction")["table1"]
    assert main(["reproduce", "fig1", "--quick", "--overwrite"]) == 0
    assert "there already" not in capsys.readouterr().out
    assert sections(tmp_path / "reproduction")["table1"] == table
    assert main(["reproduce", "table1", "--quick", "--seed", "3", "--overwrite"]) == 0
    assert list(sections(tmp_path / "reproduction")) == ["table1"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fig9"], "a recipe must be one of all, fig1, fig2"),
        (["fig1", "--out", "no/such/folder"], "must be a writable folder"),
        (["fig1", "--out", "mine"], "mine is not what this command writes, and stays as it is"),
        (["fig1", "--seed", "x"], "invalid int value: 'x'"),
    ],
)
def test_bad_input_gets_one_line_and_leaves_nothing(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    assert main(["reproduce", *arguments, "--quick"]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert [path.name for path in tmp_path.rglob("*")] == ["mine", "letter.txt"]


def test_without_matplotlib_the_extra_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    assert main(["reproduce", "fig1", "--quick"]) == 2
    assert "needs the package matplotlib: pip install 'manifactor[plots]'" in capsys.readouterr().err
    assert not (tmp_path / "reproduction").exists()


def test_recipes_come_in_the_order_of_the_page_each_once():
    assert chosen([]) == chosen(["all", "fig2"]) == list(RECIPES)
    assert chosen(["table1", "fig2", "fig2"]) == ["fig2", "table1"]


def test_modes_of_the_rectangle_are_in_the_order_of_its_exact_eigenvalues():
    exact = datasets.exact_eigenvalues("rectangle", 13)[1:]
    np.testing.assert_allclose(np.pi**2 * (lowest_modes(12) ** 2 / SIDES**2).sum(axis=1), exact)


def test_scores_of_pairs_are_those_of_their_products():
    spectrum, _ = box_spectrum([1.3, 1.0], 12, n_samples=400)
    similarity, error, pairs = pair_scores(spectrum, 9)
    assert len(pairs) == 8 * 7 / 2
    for found, missed, (i, j) in zip(similarity, error, pairs, strict=True):
        product, root = spectrum.functions[:, i] * spectrum.functions[:, j], np.sqrt(spectrum.weights)
        assert found == pytest.approx(textbook.cosine(root * product, root * spectrum.functions[:, 9]))
        gap = abs(spectrum.eigenvalues[i] + spectrum.eigenvalues[j] - spectrum.eigenvalues[9])
        assert missed == pytest.approx(gap / 4)


def test_the_textbook_pipeline_finds_the_same_spectrum_in_the_papers_units():
    X, _ = datasets.sample("rectangle", 600, random_state=0)
    quarter, functions = textbook.diffusion_map(X, 0.1, 8, seed=0)
    spectrum = DiffusionMap(8, n_neighbors="all", bandwidth=0.1, density_correction=0).fit(X).spectrum_
    # ours also knows that a walk may stay where it is
    np.testing.assert_allclose(4 * quarter, spectrum.eigenvalues, rtol=0.05, atol=1e-6)
    assert [round(textbook.cosine(functions[:, k], spectrum.functions[:, k]), 2) for k in range(8)] == [1] * 8


def test_the_textbook_loop_finds_exact_products():
    spectrum, waves = box_spectrum([1.3, 1.0], 12, n_samples=4000)
    products = textbook.algorithm_1(spectrum.eigenvalues, spectrum.functions, 0.01, 0.9)
    of_both = [k for k in range(2, 12) if waves[k].all()]
    assert set(of_both) <= set(products)
    for k in of_both:
        assert (waves[products[k]].sum(axis=0) == waves[k]).all()


def test_three_factors_of_a_sheet_and_a_circle_are_compared_with_both_stretches():
    data = CASES["molecule_xy"].draw(8, 0)
    assert [t.shape[1] for t in data.truth_for(2)] == [2, 2]
    assert [t.shape[1] for t in data.truth_for(3)] == [2, 1, 1]
    plain = Data(np.zeros((3, 2)), (np.zeros((3, 2)), np.zeros((3, 2))))
    assert [t.shape[1] for t in plain.truth_for(3)] == [2, 2]


def test_the_papers_delta_is_a_quarter_of_the_tolerance():
    assert CASES["rectangle_z"].tolerance == 2.0
    assert "delta = 0.5 in units of lambda/4 (that is 2 in true units)" in CASES["rectangle_z"].published_settings


def test_jobs_side_by_side_find_what_they_find_alone():
    jobs = [Job("torus", method, 400, 0) for method in ("triplets", "default")]
    alone = [find(job).numbers for job in jobs]
    assert str(Lab(n_jobs=2).measure(jobs)) == str(alone)


def test_drawings_are_made_on_the_callers_axes_and_look_the_same_each_time():
    pictures = []
    for _ in range(2):
        with plots.style():
            figure = plots.new_figure(2, 2)
            ax = figure.subplots()
            assert plots.function(ax, np.random.default_rng(0).uniform(size=(50, 2)), np.arange(50.0)) is ax
            pictures.append(plots.picture(figure))
    assert pictures[0] == pictures[1]
    assert Image.open(BytesIO(pictures[0][".png"])).size == (320, 320)
