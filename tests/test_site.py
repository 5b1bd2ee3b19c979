"""Facts about the site that hold before it is built."""

import inspect
import re
import sys
from fnmatch import fnmatch
from pathlib import Path
from pkgutil import resolve_name

import pytest
from sklearn.base import BaseEstimator

import manifactor
import manifactor.cluster  # on the page of the API; imported by nothing else
from manifactor import DiffusionMap, ManifoldFactorizer, datasets, plots
from manifactor.command.arguments import command_parser, commands

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
# Folders of docs/ that a build writes, and those that hold no pages.
NO_PAGES = {"api", "gallery", "_static", "_templates", "_extensions"}
REPOSITORY = "https://example.org"

sys.path.insert(0, str(DOCS / "_extensions"))

from command_reference import PAGE, fill_page  # noqa: E402
from gallery_groups import ORDER  # noqa: E402
from outside_links import on_the_site  # noqa: E402
from published import FOR_OTHER_ROOMS, filled, is_published  # noqa: E402


def pages():
    """Names of all pages, without suffix."""
    found = (page.relative_to(DOCS) for page in DOCS.rglob("*.md"))
    return {page.with_suffix("").as_posix() for page in found if page.parts[0] not in NO_PAGES}


def text_of(page):
    return (DOCS / f"{page}.md").read_text(encoding="utf-8")


def entries(page):
    """Entries of the toctrees of a page, as names or patterns."""
    for toctree in re.findall(r"^```\{toctree\}\n(.*?)^```", text_of(page), re.M | re.S):
        lines = [line for line in toctree.splitlines() if line and line[0] != ":"]
        for line in lines:
            titled = re.fullmatch(r".* <(.*)>", line)
            yield (titled.group(1) if titled else line).removeprefix("/")


def reached(page, known):
    """Pages that the toctrees of a page lead to, directly or not."""
    children = {child for entry in entries(page) for child in known if fnmatch(child, entry)}
    return children.union(*(reached(child, known) for child in children))


def test_every_page_is_in_the_contents_and_every_entry_is_a_page_or_a_pattern():
    assert reached("index", pages()) == pages() - {"index"}
    for page in pages():
        for entry in entries(page):
            known = "*" in entry or entry in pages() or entry == "gallery/index"
            assert known, f"{page} lists {entry}"


def described_names():
    """Names on the page of the API, without the leading `manifactor.`."""
    page = text_of("api")
    listed = re.findall(r"^   ~?([\w.]+)$", page, re.M)
    constants = re.findall(r"^\.\. py:data:: manifactor\.([\w.]+)$", page, re.M)
    return {*listed, *constants}


def test_every_public_name_is_on_the_page_of_the_api_and_exists():
    modules = {"datasets", "plots", "scores"}
    public = set(manifactor.__all__) - modules - {"__version__"}
    public |= {f"datasets.{name}" for name in datasets.__all__}
    home = plots.__name__
    own = {n for n, v in vars(plots).items() if n.isupper() or getattr(v, "__module__", "") == home}
    public |= {f"plots.{name}" for name in own if not name.startswith("_")}
    assert public - described_names() == set()
    for name in described_names():
        assert resolve_name(f"manifactor.{name}") is not None


def imported_names(page):
    """Names that the code of a page imports from manifactor, without its name."""
    text = text_of(page)
    lines = re.findall(r"from manifactor([\w.]*) import ([\w, ]+)", text)
    pairs = [(module, name.strip()) for module, names in lines for name in names.split(",")]
    return {f"{module}.{name}".lstrip(".") for module, name in pairs}


def test_code_of_a_page_imports_public_names_only():
    public = described_names() | set(manifactor.__all__)
    found = {page: imported_names(page) for page in pages() - {"architecture"}}
    assert len(set().union(*found.values())) > 5
    private = {page: names - public for page, names in found.items()}
    assert {page: names for page, names in private.items() if names} == {}


def command_sections():
    """Sections of the page of all commands, as the site shows it, by command."""
    source = [text_of(PAGE)]
    fill_page(None, PAGE, source)
    _, *sections = re.split(r"^## (.+)\n", source[0], flags=re.M)
    return dict(zip(sections[::2], sections[1::2], strict=True))


def test_every_option_of_every_command_is_in_its_section_with_its_help():
    sections = command_sections()
    assert list(sections) == list(commands())
    parsers = command_parser()._subparsers._group_actions[0].choices
    for name, command in parsers.items():
        entries = dict(re.findall(r"^`(.+)`\n: (.+)$", sections[name], re.M))
        described = {word for entry in entries for word in entry.split()}
        flags = {flag for each in command._actions for flag in each.option_strings}
        assert flags - described == {"-h", "--help"}, name
        assert len(entries) == len(command._actions) - 1, name  # all but the help


def test_methods_of_our_own_are_published_and_those_of_scikit_learn_are_not():
    for name in ("fit", "transform", "coordinates", "locate"):
        assert is_published(name, getattr(ManifoldFactorizer, name))
    for name in ("get_params", "set_output", "set_fit_request"):
        assert not is_published(name, getattr(ManifoldFactorizer, name))
    classes = [getattr(manifactor, name) for name in ("Factor", "Spectrum", "Evidence")]
    classes += [ManifoldFactorizer, manifactor.judging.measure.Test]
    assert FOR_OTHER_ROOMS - {name for one in classes for name in dir(one)} == set()
    assert FOR_OTHER_ROOMS.isdisjoint(dir(BaseEstimator))


@pytest.mark.parametrize(
    ("link", "page", "folder", "expected"),
    [
        ("cryoem.md#using-a-run", "method.md", DOCS, "cryoem.md#using-a-run"),
        ("#sums", "method.md", DOCS, "#sums"),
        ("https://semver.org", "method.md", DOCS, "https://semver.org"),
        ("../CHANGELOG.md", "method.md", DOCS, "changelog.md"),
        ("../examples/plot_torus.py", "method.md", DOCS, "gallery/plot_torus.rst"),
        ("../benchmarks/growth.py", "method.md", DOCS, f"{REPOSITORY}/benchmarks/growth.py"),
        # Links of included files, and of a page in a folder, start from their own folder.
        ("docs/guarantees.md#commands-end", "changelog.md", ROOT, "guarantees.md#commands-end"),
        ("SECURITY.md", "changelog.md", ROOT, "security.md"),
        *(
            (link, "reproduction/index.md", DOCS / "reproduction", expected)
            for link, expected in [("../../CHANGELOG.md", "../changelog.md"), ("a.png", "a.png")]
        ),
    ],
)
def test_links_out_of_the_documentation_stay_on_the_site_where_they_can(
    link, page, folder, expected
):
    moved = on_the_site(f"[a]({link})", folder=folder, page=DOCS / page, repository=REPOSITORY)
    assert moved == f"[a]({expected})"


@pytest.mark.parametrize("estimator", [ManifoldFactorizer, DiffusionMap])
def test_every_parameter_of_an_estimator_is_described_on_its_page(estimator):
    text = filled(inspect.getdoc(estimator))
    parameters = text.partition("Parameters\n")[2].partition("Attributes\n")[0]
    described = re.findall(r"^(\w+) : \S.*\n    \S", parameters, re.M)
    assert sorted(described) == sorted(estimator().get_params())
    assert "As in" not in text


def test_every_example_of_a_group_exists():
    assert all((ROOT / "examples" / name).exists() for name in ORDER)
