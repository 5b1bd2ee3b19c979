import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from manifactor import DiffusionMap, datasets, plots
from manifactor._support.threads import interrupts_held
from manifactor.command.main import main
from manifactor.scores import column_r2
from manifactor.studies.paper import recipes, textbook
from manifactor.studies.paper.beyond import angle_error, joint_angles
from manifactor.studies.paper.cases import CASES, Data
from manifactor.studies.paper.fig1 import SIDES, lowest_modes
from manifactor.studies.paper.fig4 import across_factors, best_pair, product_functions
from manifactor.studies.paper.fig7 import pure_share, side_shares
from manifactor.studies.paper.lab import Job, Lab, find
from manifactor.studies.paper.pairs import best_similarities, pair_scores
from manifactor.studies.paper.panels import lowest_functions
from manifactor.studies.paper.rates import in_words, table_of
from manifactor.studies.paper.recipes import RECIPES, chosen, reproduce
from manifactor.studies.paper.section import Settings

from ..conftest import box_spectrum

QUICK = Settings(quick=True)


def sections(folder: Path) -> dict:
    return json.loads((folder / "numbers.json").read_text())["sections"]


def test_a_quick_run_of_everything_leaves_numbers_figures_and_one_page(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plots, "RESOLUTION", 50)
    folder = tmp_path / "reproduction"
    assert list(dict(reproduce([], folder, QUICK, n_jobs=1))) == list(RECIPES)
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
            image = np.asarray(
                Image.open(folder / f"{picture['name']}.png").convert("L")
            )
            assert 0.005 < (image < 250).mean() < 0.9, picture[
                "name"
            ]  # neither empty nor black
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
    assert len(reader.images) == sum(
        len(section["pictures"]) for section in sections(folder).values()
    )
    assert all(
        image["src"].startswith("data:image/png;base64,") and image["alt"]
        for image in reader.images
    )
    for link in reader.links:
        assert (
            link[1:] in reader.anchors
            if link.startswith("#")
            else (folder / link).is_file()
        )


def the_page_in_markdown_shows_the_same(folder):
    text = (folder / "index.md").read_text()
    for section in sections(folder).values():
        assert section["title"] in text
        assert all(
            f"]({picture['name']}.png)" in text for picture in section["pictures"]
        )
    assert "a quick run on few samples" in text


def what_the_folder_holds_is_kept_and_other_settings_do_not_mix(folder, capsys):
    before = (folder / "numbers.json").read_bytes()
    assert main(["reproduce", "fig1", "--quick"]) == 0
    assert "fig1     already done" in capsys.readouterr().out
    assert main(["reproduce", "fig1", "--quick", "--seed", "1"]) == 2
    assert (
        "reproduction holds a reproduction with other settings"
        in capsys.readouterr().err
    )
    assert (folder / "numbers.json").read_bytes() == before


def test_the_same_seed_gives_the_same_numbers_and_another_seed_others(tmp_path):
    runs = []
    for name, seed in (("one", 0), ("two", 0), ("three", 1)):
        list(reproduce(["fig1"], tmp_path / name, Settings(True, seed), n_jobs=1))
        runs.append(
            {
                key: section["numbers"]
                for key, section in sections(tmp_path / name).items()
            }
        )
    assert runs[0] == runs[1]
    assert all(runs[0][key] != runs[2][key] for key in runs[0])


def test_a_recipe_can_be_made_anew_and_the_others_stay(tmp_path, capsys, monkeypatch):
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
        (["fig1", "--seed", "x"], "invalid int value: 'x'"),
        (
            ["fig1", "--seed", "-1"],
            "`seed` must be a whole number in [0, 2147483648]; got -1",
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


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[1, 2]",
        "{}",
        '{"format": "manifactor reproduction"}',
        '{"format": "manifactor run"}',
        "truncated",
    ],
)
def test_a_damaged_record_is_refused_and_left_alone(
    tmp_path, monkeypatch, capsys, content
):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "table1", "--quick"]) == 0
    path = tmp_path / "reproduction" / "numbers.json"
    whole = json.loads(path.read_text())
    del whole["sections"]["table1"]["pictures"]
    path.write_text(
        json.dumps(whole)[: 500 if content == "truncated" else None]
        if content in ("truncated", "")
        else content
    )
    before = path.read_bytes()
    assert main(["reproduce", "table1", "--quick", "--overwrite"]) == 2
    assert (
        "reproduction must be new, empty, or hold the numbers.json"
        in capsys.readouterr().err
    )
    assert path.read_bytes() == before


def test_an_interrupted_run_leaves_a_folder_that_goes_on(tmp_path, monkeypatch, capsys):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    whole = recipes.as_html
    for name in (
        "picture",
        "as_html",
    ):  # before any picture is written, and between numbers and page
        monkeypatch.setattr(
            recipes,
            name,
            interrupted if name == "picture" else after_the_first(whole, interrupted),
        )
        assert main(["reproduce", "fig1", "--quick"]) == 130
        assert (
            "interrupted; finished recipes are kept; repeat the command to continue"
            in capsys.readouterr().err
        )
        monkeypatch.undo()
        monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "fig1", "--quick"]) == 0
    assert "already done" in capsys.readouterr().out
    assert (
        "analytic and computed eigenfunctions"
        in (tmp_path / "reproduction" / "index.html").read_text()
    )
    (tmp_path / "reproduction" / "fig1.pdf").unlink()
    assert main(["reproduce", "fig1", "--quick"]) == 0
    assert "already done" not in capsys.readouterr().out
    assert (tmp_path / "reproduction" / "fig1.pdf").is_file()


def after_the_first(function, then):
    calls = []

    def call(*arguments):
        calls.append(arguments)
        return (
            function(*arguments)
            if len(calls) == 1 and not arguments[0]["sections"]
            else then()
        )

    return call


def test_a_name_in_a_record_never_leads_out_of_the_folder(tmp_path, monkeypatch):
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


def test_workers_do_not_see_interrupts():
    with interrupts_held():
        child = subprocess.Popen(
            [sys.executable, "-c", "import time; time.sleep(0.5); print('whole')"],
            stdout=-1,
        )
    time.sleep(0.2)
    child.send_signal(signal.SIGINT)
    assert child.communicate()[0] == b"whole\n"


def test_without_matplotlib_the_extra_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["reproduce", "fig1", "--quick"]) == 2
    assert (
        "needs the package matplotlib: pip install 'manifactor[plots]'"
        in capsys.readouterr().err
    )
    assert not (tmp_path / "reproduction").exists()


def test_recipes_come_in_the_order_of_the_page_each_once():
    assert chosen([]) == chosen(["all", "fig2"]) == list(RECIPES)
    assert chosen(["table1", "fig2", "fig2"]) == ["fig2", "table1"]


def test_modes_of_the_rectangle_are_in_the_order_of_its_exact_eigenvalues():
    exact = datasets.exact_eigenvalues("rectangle", 13)[1:]
    np.testing.assert_allclose(
        np.pi**2 * (lowest_modes(12) ** 2 / SIDES**2).sum(axis=1), exact
    )


def test_scores_of_pairs_are_those_of_their_products():
    spectrum, _ = box_spectrum([1.3, 1.0], 12, n_samples=400)
    similarity, error, pairs = pair_scores(spectrum, 9)
    assert len(pairs) == 8 * 7 / 2
    for found, missed, (i, j) in zip(similarity, error, pairs, strict=True):
        product, root = (
            spectrum.functions[:, i] * spectrum.functions[:, j],
            np.sqrt(spectrum.weights),
        )
        assert found == pytest.approx(
            textbook.cosine(root * product, root * spectrum.functions[:, 9])
        )
        gap = abs(
            spectrum.eigenvalues[i] + spectrum.eigenvalues[j] - spectrum.eigenvalues[9]
        )
        assert missed == pytest.approx(gap / 4)


def test_the_textbook_pipeline_finds_the_same_spectrum_in_the_papers_units():
    X, _ = datasets.sample("rectangle", 600, random_state=0)
    quarter, functions = textbook.diffusion_map(X, 0.1, 8, seed=0)
    spectrum = (
        DiffusionMap(8, n_neighbors="all", bandwidth=0.1, density_correction=0)
        .fit(X)
        .spectrum_
    )
    # ours also knows that a walk may stay where it is
    np.testing.assert_allclose(4 * quarter, spectrum.eigenvalues, rtol=0.05, atol=1e-6)
    assert [
        round(textbook.cosine(functions[:, k], spectrum.functions[:, k]), 2)
        for k in range(8)
    ] == [1] * 8


def test_the_textbook_loop_finds_exact_products():
    spectrum, waves = box_spectrum([1.3, 1.0], 12, n_samples=4000)
    products = textbook.algorithm_1(spectrum.eigenvalues, spectrum.functions, 0.01, 0.9)
    of_both = [k for k in range(2, 12) if waves[k].all()]
    assert set(of_both) <= set(products)
    for k in of_both:
        assert (waves[products[k]].sum(axis=0) == waves[k]).all()


@pytest.fixture(scope="module")
def torus():
    return find(Job("torus", "default", 800, 0))


def test_the_best_pair_lies_within_delta_and_the_first_function_with_a_pair_has_no_second(
    torus,
):
    case = replace(CASES["torus"], delta=1e-12)
    assert best_pair(torus, case, 9)["pair"] is None
    first = best_pair(torus, replace(case, delta=1e3), 3)
    assert (first["pair"].tolist(), first["second"]) == ([1, 2], 0.0)
    panel = best_pair(torus, replace(case, delta=0.05), 12)
    similarity, error, pairs = pair_scores(torus.spectrum, 12)
    inside = error < 0.05
    assert panel["similarity"] == similarity[inside].max() >= panel["second"]
    assert panel["error"] < 0.05
    assert panel["pair"].tolist() in pairs[inside].tolist()
    limited = best_similarities(torus.spectrum, 0.05)
    assert limited[12 - 3] == panel["similarity"]
    assert (limited <= best_similarities(torus.spectrum, np.inf)).all()


def test_products_and_functions_of_one_factor_are_told_by_the_truth(torus):
    products = product_functions(torus, 6)
    assert products == sorted(set(products))
    for k in products:
        assert all(
            column_r2(true, torus.spectrum.functions[:, [k]])[0] < 0.5
            for true in torus.truth
        )
    large, small = (torus.matching(true) for true in range(2))
    functions = [torus.factors[i].coefficients[:, 0].argmax() for i in (large, small)]
    assert not across_factors(torus, np.array([products[0], functions[0]]))


def test_functions_are_compared_with_the_factor_they_were_found_for(torus):
    for true in range(2):
        lowest = lowest_functions(torus, true)
        assert (lowest.r2[:2] > 0.9).all()
        np.testing.assert_array_equal(
            lowest.functions, torus.factors[torus.matching(true)].functions[:, :5]
        )
    assert pure_share(side_shares(torus)) > 0.9
    assert [share.shape[1] for share in side_shares(torus)] == [2, 2]


def test_images_are_fitted_in_part_and_functions_belong_to_the_fitted_ones(monkeypatch):
    monkeypatch.setattr("manifactor.runs.task.FITTED_IMAGES", 700)
    found = find(Job("molecule_low", "default", 900, 0))
    assert (len(found.rows), len(found.places[0]), len(found.truth[0])) == (
        700,
        900,
        900,
    )
    assert found.samples.shape[0] == 900
    for true in range(2):
        assert (
            lowest_functions(found, true).r2[0] > 0.9
        )  # over other rows it would be 0
    assert found.numbers["own"] > 0.9


def test_rates_count_what_was_solved_by_case_and_method():
    run = {
        "solved": True,
        "own": 1.0,
        "leak": 0.0,
        "completeness": 1.0,
        "functions": [2, 4],
    }
    run |= {"pure_functions": 0.5, "verdict": "product"}
    failed = {
        **run,
        "solved": False,
        "own": 0.5,
        "leak": 0.3,
        "completeness": np.nan,
        "verdict": "none",
    }
    records = {("torus", "published"): [run, failed], ("torus", "default"): [run, run]}
    assert (
        in_words("published", CASES, records)
        == "Published: solved in 1 of 2 runs; not always: torus (1 of 2)."
    )
    assert in_words("default", CASES, records) == "Default: solved in 2 of 2 runs."
    assert table_of(CASES, records, "").rows == [
        [
            "torus",
            "published",
            "1 of 2",
            "0.750",
            "0.150",
            "1.00",
            "3.0",
            "50%",
            "1 / 0 / 1",
        ],
        [
            "torus",
            "default",
            "2 of 2",
            "1.000",
            "0.000",
            "1.00",
            "3.0",
            "50%",
            "2 / 0 / 0",
        ],
    ]


def test_joint_angles_are_the_first_link_and_the_difference_of_both():
    first, second = np.random.default_rng(0).uniform(0, 2 * np.pi, size=(2, 500))
    rings = tuple(np.c_[np.cos(angle), np.sin(angle)] for angle in (first, second))
    seen = (
        np.c_[np.cos(1 - first), np.sin(1 - first)],
        np.c_[np.cos(second + 2), np.sin(second + 2)],
    )
    arm = find(Job("robot_arm", "default", 500, 0))
    circles = tuple(replace(arm.factors[0], topology="circle") for _ in range(2))
    found = replace(arm, truth=rings, places=seen, factors=circles, rows=np.arange(500))
    angles = joint_angles(found)
    for joint, true in ((1, first), (2, second - first)):
        assert angle_error(angles[joint][0], true)[1] < 1.5


def test_the_papers_settings_are_the_papers():
    given = {
        case.name: (case.delta, case.gamma, case.bandwidth, case.density_correction)
        for case in CASES.values()
    }
    assert given["rectangle_z"] == given["rectangle_xyz"] == (0.5, 0.85, 0.5, 0)
    assert (
        given["molecule_low"]
        == given["molecule_high"]
        == given["molecule_xy"]
        == (1.0, 0.8, 10.0, 1.0)
    )
    assert (given["torus"], given["cube"]) == ((1.0, 0.6, 0.5, 0), (0.25, 0.8, 1.0, 0))


def test_three_factors_of_a_sheet_and_a_circle_are_compared_with_both_stretches():
    data = CASES["molecule_xy"].draw(8, 0)
    assert [t.shape[1] for t in data.truth_for(2)] == [2, 2]
    assert [t.shape[1] for t in data.truth_for(3)] == [2, 1, 1]
    plain = Data(np.zeros((3, 2)), (np.zeros((3, 2)), np.zeros((3, 2))))
    assert [t.shape[1] for t in plain.truth_for(3)] == [2, 2]


def test_the_papers_delta_is_a_quarter_of_the_tolerance():
    assert CASES["rectangle_z"].tolerance == 2.0
    assert (
        "delta = 0.5 in units of lambda/4 (that is 2.0 in true units)"
        in CASES["rectangle_z"].published_settings
    )


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
            assert (
                plots.function(
                    ax, np.random.default_rng(0).uniform(size=(50, 2)), np.arange(50.0)
                )
                is ax
            )
            pictures.append(plots.picture(figure))
    assert pictures[0] == pictures[1]
    assert Image.open(BytesIO(pictures[0][".png"])).size == (320, 320)
