"""The page of a run: one file that stands alone, reads in order, and never breaks."""

import re
import shlex
import sys
from copy import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from manifactor.command.arguments import parse_arguments
from manifactor.command.fitting import tasks_of
from manifactor.command.main import main
from manifactor.judging.evidence import Warp
from manifactor.judging.table import CRITERIA
from manifactor.runs.folder import read_run
from manifactor.runs.options import FitOptions
from manifactor.runs.run import open_run
from manifactor.runs.task import Task
from manifactor.views.explorer.scene import scene_of
from manifactor.views.notebook import result_html
from manifactor.views.report import report_page, templates, write_report
from manifactor.views.words import describe

from .conftest import NAMES, Reader, changed, copied

pytestmark = pytest.mark.medium

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def made(torus_run):
    """The run of a torus, with its page."""
    write_report(torus_run)
    return torus_run


@pytest.fixture
def run(made, tmp_path):
    """A copy of that run, to be changed."""
    return copied(made, tmp_path)


@pytest.fixture(scope="module")
def page(made):
    return (made / "report.html").read_text(encoding="utf-8")


def test_the_page_needs_nothing_but_itself(page):
    reader = Reader(page)
    assert "http:" not in page
    assert "https:" not in page
    assert all(source.startswith("data:") for source in reader.values("src"))
    links = [*reader.values("href"), *reader.values("xlink:href")]
    assert all(link[0] == "#" or link.startswith("data:") for link in links)
    assert not {"script", "link", "iframe"} & {tag for tag, _ in reader.elements}
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    assert policy in reader.values("content")
    # Names are there once, and every one asked for is there.
    names = reader.values("id")
    assert len(names) == len(set(names))
    asked = re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', page)
    assert len(asked) > 50
    assert {one or other for one, other in asked} <= set(names)


def test_headings_are_in_order_and_the_verdict_comes_before_the_factors(page):
    reader = Reader(page)
    assert reader.headings.count(1) == 1
    assert reader.headings[0] == 1
    assert max(np.diff(reader.headings)) <= 1
    text, last = "".join(reader.words), 0
    order = ["Factors of torus.csv", "two circles", "Factor 1: a circle", "Factor 2"]
    order += ["Independence", "Tests behind the verdict", "Leakage", "Computation", "Seconds"]
    for words in order:
        last = text.index(words, last)


def test_every_picture_is_described_with_numbers(page):
    reader = Reader(page)
    drawings = [a for tag, a in reader.elements if tag == "svg" and "aria-hidden" not in a]
    labels = [a.get("aria-label", "") for a in drawings]
    assert len(labels) == 3 + 3 + 1 + 1 + 3  # of two factors, of both, of columns, of the fit
    assert "".join(reader.words).count("Confidence: half of the samples have") == 2
    assert all(re.search(r"\d", label) and len(label) > 40 for label in labels)
    assert len(set(labels)) == len(labels)
    assert all(a.get("scope") for tag, a in reader.elements if tag == "th")
    tags = [tag for tag, _ in reader.elements]
    assert tags.count("table") == tags.count("caption")
    # Numbers have no images, and of 600 samples all are drawn.
    assert "img" not in tags
    assert "No averages" not in page
    assert "Drawn:" not in page


def test_the_same_run_gives_the_same_bytes(run, undrawn):
    assert write_report(run).read_text() == write_report(run).read_text()


IMAGES = FitOptions(width=8.0, phase_flip=True, low_pass=1e-5, standardise=True, classes=(3, 4))
METHOD = FitOptions(
    **{"fit_samples": "all", "n_factors": 2, "method": "triplets", "n_neighbors": "all"},
    **{"bandwidth": 0.1 + 0.2, "density_correction": 0.0, "solver": "arpack", "device": "cuda:0"},
)
PARTS = FitOptions(particles="/a b/p.star", ind="/a b/ind.pkl", seed=7, fit_samples=500)
TASKS = [
    Task(Path("/data/z.npy")),
    Task(Path("/a b/z.pkl"), PARTS),
    Task(Path("/p.star"), IMAGES, view=(-12.5, 1 / 3)),
    Task(Path("/z.npy"), METHOD),
]


@pytest.mark.parametrize("task", TASKS)
def test_the_command_of_a_task_gives_the_task_back(task):
    typed = shlex.split(shlex.join(task.arguments))
    (back,) = tasks_of(parse_arguments(typed)[1])
    assert replace(back, options=replace(back.options, input=None, view=())) == task


def test_the_page_has_the_command_that_makes_the_run_again(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = re.search(r"<code>manifactor (.*?)</code>", (run / "report.html").read_text())[1]
    assert "--n-factors 2 --seed 3 --out again" in command
    assert main(shlex.split(command)) == 0
    again, before = (each / "coordinates.csv" for each in (tmp_path / "again", run))
    assert again.read_bytes() == before.read_bytes()


def test_a_run_without_its_command_or_its_other_entries_has_a_page(run, undrawn):
    kept = {"format", "version", "versions", "n_samples", "verdict", "factors"}
    changed(run, **dict.fromkeys(open_run(run).record.keys() - kept))
    text = write_report(run).read_text()
    assert "has no record of its command" in text
    assert "unknown input" in text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda run: (run / "run.json").write_text('{"format": "manifactor run", '), "run.json"),
        (lambda run: changed(run, confounders=[{"name": "defocus"}]), "confounders"),
        (lambda run: cut(run / "coordinates.csv"), "coordinates.csv is damaged"),
        (lambda run: (run / "factorization.npz").unlink(), "is not a run folder"),
    ],
)
def test_a_damaged_run_is_one_line_and_exit_code_2(run, capsys, damage, message):
    damage(run)
    before = (run / "report.html").read_bytes()
    for command in ("report", "explore"):
        assert main([command, str(run)]) == 2
        err = capsys.readouterr().err
        assert err.count("\n") == 1
        assert err.startswith("manifactor: error: ")
        assert message in err
    assert (run / "report.html").read_bytes() == before


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def test_without_matplotlib_the_words_come_and_then_one_line(run, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["report", str(run)]) == 2
    captured = capsys.readouterr()
    assert "Verdict: " in captured.out
    assert captured.err.startswith("manifactor: error: this needs the package matplotlib: ")
    assert captured.err.count("\n") == 1
    assert main(["demo", "--out", str(run.parent / "demo")]) == 2
    assert not (run.parent / "demo-data").exists()


def test_bars_end_beyond_their_limit_exactly_where_tests_do(annulus_run, annulus):
    parts = templates().get_template("parts.html").module

    def width(test):
        return float(re.findall(r'width="([^"]*)"', parts.bar(test))[1])

    tests = describe(open_run(annulus_run).record, annulus)["evidence"].tables[0].tests
    assert len(tests) > 9
    for test in tests:
        assert (width(test) >= 50 if test.at_least else width(test) <= 50) == test.passed
    views = CRITERIA["views"]  # at most
    for value, share in ((views.limit / 2, 25), (9 * views.limit, 100), (np.nan, 0), (-1, 0)):
        assert width(views.judge(value, dependent="")) == share
    assert width(replace(tests[0], limit=0.0)) == 100


def test_the_page_begins_with_the_columns_that_each_factor_moves(page, torus):
    lead = page[page.index('class="lead"') : page.index("<nav")]
    found = torus.loadings(column_names=NAMES)
    for f in range(2):
        assert all(f"{NAMES[c]} ({found.shares[c, f]:.0%})" in lead for c in found.leading(f))


def test_what_is_not_a_motion_is_said_at_the_top(run, undrawn):
    confounder = {"name": "defocus", "factor": 1, "r2": 0.8, "p": 0.01}
    changed(run, confounders=[{**confounder, "meaning": "factor 1 is <no> motion"}])
    text = write_report(run).read_text()
    warning = '<p class="warning">Warning: factor 1 is &lt;no&gt; motion.'
    assert text.index(warning) < text.index("<nav")


def test_report_explorer_and_notebook_show_how_probable_a_result_is(torus_run, torus, undrawn):
    fit = copy(torus)
    skew = CRITERIA["skew"].judge(0.2)
    evidence = replace(torus.evidence_, tests=(skew,), probability=0.7, probabilities=(0.997, 0.74))
    fit.factorization_ = replace(torus.factorization_, evidence=evidence)
    run, line = open_run(torus_run), "partial, 70 %: factor 1 99 %, factor 2 74 %"
    page = report_page(run, fit)
    said = "right in 70 % of simulated problems (factor 1 99 %, factor 2 74 %)."
    assert page.index(said) < page.index("<nav")
    each = [f"Right in {share} % of such results." for share in (99, 74)]
    assert page.index(each[0]) < page.index("Factor 2: a circle") < page.index(each[1])
    about = scene_of(run, fit).about()
    assert said in about["verdict"]
    assert [factor["probability"] for factor in about["factors"]] == each
    assert f"<strong>{line}</strong>" in result_html(fit)


def test_coordinates_that_separate_are_no_product_and_their_lengths_are_shown(
    annulus_run, annulus, undrawn
):
    # Failed tests are left out, to show the words of a sure result.
    sure = tuple(test for test in annulus.evidence_.tests if test.passed)
    evidence, fit = replace(annulus.evidence_, tests=sure, probability=0.95), copy(annulus)
    fit.factorization_ = replace(annulus.factorization_, evidence=evidence)
    text = report_page(open_run(annulus_run), fit)
    assert "they are not quite independent" in text
    assert "Two independent" not in text
    section = text.partition('id="separation"')[2].partition("</section>")[0]
    assert section.count("<figure") == 2
    assert str(annulus.evidence_.warp) in section
    # Lengths that depend on both coordinates are no curve.
    both = replace(annulus.evidence_, warp=Warp(None))
    fit = copy(annulus)
    fit.factorization_ = replace(annulus.factorization_, evidence=both)
    section = report_page(open_run(annulus_run), fit).partition('id="separation"')[2]
    assert section.partition("</section>")[0].count("<figure") == 1


def test_a_flat_torus_is_named_and_drawn_by_its_two_angles(hexagonal_run, undrawn):
    _, fit = read_run(hexagonal_run)
    text = report_page(open_run(hexagonal_run), fit)
    assert f"the data are one factor, {fit.evidence_.symmetries}." in text
    assert "Samples by their two angles" in text


@pytest.mark.browser
def test_a_browser_opens_the_page_from_disk_and_asks_nothing_of_anyone(made, window):
    page = window(offline=True)
    asked, own = [], (made / "report.html").as_uri()
    page.on("request", lambda request: asked.append(request.url))
    page.goto(own)
    page.locator("#evidence details").evaluate("box => (box.open = true)")
    assert {url.partition(":")[0] for url in asked} <= {"file", "data"}
    assert [url for url in asked if url.startswith("file:")] == [own]
    for width, scheme in ((1200, "light"), (360, "dark")):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        if not page.locator("details[open]").count():
            page.locator("summary").click()
        for kind in ("tests", "choices"):
            assert page.locator(f".{kind}").is_visible()
            box = page.locator(f".wide:has(.{kind})")
            assert box.evaluate("box => box.scrollWidth <= box.clientWidth")
    loaded = "[...document.images].every(image => image.complete && image.naturalWidth > 0)"
    assert page.evaluate(loaded)
    assert page.get_by_role("heading", level=1).is_visible()
