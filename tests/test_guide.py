"""Code and commands of the learning pages run as printed.

A block of text that follows a block of code is what the code prints; three dots stand
for anything. Blocks of one page run in order, in one folder and one namespace, so that
a page can be followed from its top. A block that needs a machine of its own, such as a
queue, has the comment ``<!-- not run: why -->`` before it.
"""

import contextlib
import io
import re
import shlex
import subprocess
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE, OutputChecker
from pathlib import Path

import pytest

from manifactor import MODELS
from manifactor.command.main import main
from manifactor.judging.table import CRITERIA

DOCS = Path(__file__).parents[1] / "docs"
FIRST = ["start"]
OTHERS = ["tutorial-first-fit", "tutorial-own-data", "partial-or-none", "howto-cluster"]
OTHERS += [
    "howto-columns",
    "howto-compare",
    "howto-few-samples",
    "howto-images",
    "howto-large-data",
]
OTHERS += ["howto-movies"]
OTHERS += ["howto-scale-columns", "howto-scikit-learn", "dynamics"]
OTHERS += ["howto-molecular-dynamics", "howto-neural-recordings"]
PAGES = [DOCS / f"{name}.md" for name in FIRST + OTHERS]
BLOCK = re.compile(
    r"(?P<skipped><!-- not run: [^>]+ -->\n)?```(?P<kind>\w*)\n(?P<body>.*?)```", re.DOTALL
)
COMMANDS = {"bash", "python"}


def blocks(page):
    """Kind and body of each block of a page that is run or printed, in order."""
    found = BLOCK.finditer(page.read_text(encoding="utf-8"))
    return [(block["kind"], block["body"]) for block in found if not block["skipped"]]


def run_python(body, names):
    """Run a block of Python; what it prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(body, "page", "exec"), names)
    return printed.getvalue()


def run_commands(body):
    """Run each command of a block; what they print."""
    lines = body.replace("\\\n", " ").splitlines()
    return "".join(map(run_command, lines))


def run_command(line):
    """Run a command as it is typed, those of manifactor in this process."""
    words = shlex.split(line, comments=True)
    if words[:1] != ["manifactor"]:
        return subprocess.check_output(line, shell=True, text=True)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert main(words[1:]) == 0, line
    return printed.getvalue()


def differences(page):
    """Run a page; for each block whose output differs, the expected and the real one."""
    names, printed, found = {}, "", []
    for kind, body in blocks(page):
        if kind == "python":
            printed = run_python(body, names)
        elif kind == "bash":
            printed = run_commands(body)
        elif not OutputChecker().check_output(body, printed, ELLIPSIS | NORMALIZE_WHITESPACE):
            found.append((body, printed))
    return found


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # some pages are about warnings
@pytest.mark.parametrize(
    "name", [*FIRST, *(pytest.param(name, marks=pytest.mark.gallery) for name in OTHERS)]
)
def test_code_of_a_page_prints_what_the_page_says(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("MPLBACKEND", "Agg")
    assert differences(DOCS / f"{name}.md") == []


def test_every_block_of_a_page_is_run_or_says_why_not():
    kinds = {kind for page in PAGES for kind, _ in blocks(page)}
    assert kinds <= {*COMMANDS, "text"}


def test_every_piece_of_advice_has_a_row_in_the_guide_to_verdicts():
    page = (DOCS / "partial-or-none.md").read_text(encoding="utf-8")
    table = page.partition('| printed after "What to do:"')[2].partition("\n\n")[0]
    cells = [row.split(" | ")[0].strip("| ") for row in table.splitlines()[2:]]
    starts = [text.partition("...")[0].strip() for cell in cells for text in cell.split("; ")]
    assert len(starts) > 10
    for one in CRITERIA.values():
        assert not one.advice or one.advice.startswith(tuple(starts)), one.advice


def names_in_tables(page, header):
    """Names in the first cells of the tables of a page whose header starts so."""
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    tables = [part.partition("\n\n")[0] for part in text.split(header)[1:]]
    rows = [row for table in tables for row in table.splitlines()[2:]]
    cells = [row.split(" | ")[0].strip("| ") for row in rows]
    return {name for cell in cells for name in re.split(", |; | and ", cell)}


@pytest.mark.parametrize(
    ("page", "header"),
    [("method-measurements", "| test | what it"), ("partial-or-none", "| test that failed |")],
)
def test_every_test_behind_a_verdict_has_a_row_on_the_pages_about_it(page, header):
    assert set(CRITERIA) - names_in_tables(page, header) == set()


def test_the_page_of_models_has_a_row_for_each_and_names_tests_that_there_are():
    page = (DOCS / "models.md").read_text(encoding="utf-8")
    rows = re.findall(r"\| \[([a-z ]+)\]\(#[a-z-]+\) \| ([^|]+) \|", page)
    assert rows == [(model.name, model.meaning) for model in MODELS.values()]
    named = set(re.findall(r'\("([a-z ]+)"\)', page))
    assert len(named) > 15
    assert named <= set(CRITERIA)


def test_rates_on_the_page_of_verdicts_are_those_that_were_measured():
    rate = re.compile(r"\d+ of \d+")
    promised = rate.findall((DOCS / "verdict.md").read_text(encoding="utf-8"))
    measured = rate.findall((DOCS / "accuracy.md").read_text(encoding="utf-8"))
    assert promised
    assert set(promised) <= set(measured)
