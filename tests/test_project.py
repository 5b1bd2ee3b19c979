"""Facts about the project's files beside the source: they agree with each other."""

import ast
import re
import runpy
import tomllib
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

from manifactor import __version__

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def read_yaml(path):
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def lowest(requirements):
    """Names and lowest versions of `name>=version`, as pip or conda write it."""
    return dict(re.split(r"\s*>=\s*", requirement) for requirement in requirements)


def test_the_changelog_has_a_section_for_the_version_with_its_date():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    unreleased, (version, date), *_ = re.findall(
        r"^## \[([^]]+)\](?: - (\d{4}-\d\d-\d\d))?$", text, re.MULTILINE
    )
    assert unreleased == ("Unreleased", "")
    citation = read_yaml("CITATION.cff")
    assert (version, date) == (citation["version"], str(citation["date-released"]))
    assert __version__ == version or "dev" in __version__


def test_the_citation_names_the_paper():
    (paper,) = read_yaml("CITATION.cff")["references"]
    names = [author["family-names"] for author in paper["authors"]]
    assert names == ["Zhang", "Moscovich", "Singer"]
    assert paper["title"] == "Product Manifold Learning"


def test_addresses_are_the_same_everywhere():
    urls, citation = PROJECT["urls"], read_yaml("CITATION.cff")
    about = read_yaml("conda/recipe.yaml")["about"]
    assert urls["Repository"] == citation["repository-code"] == about["repository"]
    assert urls["Documentation"] == citation["url"] == about["documentation"]
    own = re.compile(r"https://github\.com/manifactor[\w/-]*")
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob(".github/**/*.*")]
    for page in pages:
        for address in own.findall(page.read_text(encoding="utf-8")):
            assert address.startswith(urls["Repository"]), page


def test_the_conda_recipe_asks_for_what_the_package_asks_for():
    recipe = read_yaml("conda/recipe.yaml")
    context, requirements = recipe["context"], recipe["requirements"]
    python, *run = requirements["run"]
    assert python == "python >=${{ python_min }}"
    assert PROJECT["requires-python"] == f">={context['python_min']}"
    assert lowest(run) == lowest(PROJECT["dependencies"])
    assert context["version"] == read_yaml("CITATION.cff")["version"]
    (script,) = recipe["build"]["python"]["entry_points"]
    assert dict([script.split(" = ")]) == PROJECT["scripts"]
    assert recipe["about"]["license"] == PROJECT["license"]
    assert recipe["about"]["summary"] == PROJECT["description"]


def test_the_matrix_has_every_python_that_the_package_claims():
    claimed = re.findall(r":: (3\.\d+)$", "\n".join(PROJECT["classifiers"]), re.MULTILINE)
    matrix = read_yaml(".github/workflows/ci.yml")["jobs"]["matrix"]["strategy"]
    assert matrix["matrix"]["python"] == claimed
    assert PROJECT["requires-python"] == f">={claimed[0]}"
    systems = {name.partition("-")[0] for name in matrix["matrix"]["system"]}
    assert systems == {"ubuntu", "macos", "windows"}
    lowest_on = {
        case["system"]: case["python"]
        for case in matrix["matrix"]["include"]
        if case["dependencies"] == "minimum"
    }
    assert lowest_on == dict.fromkeys(matrix["matrix"]["system"], claimed[0])


def test_the_lowest_versions_are_pinned_for_the_environment_of_the_minimum():
    module = runpy.run_path(str(ROOT / ".ci" / "environment.py"))
    pins = module["lowest_versions"](PROJECT, module["Checks"]().extras)
    names = [pin.partition("==")[0] for pin in pins]
    assert len(set(names)) == len(names), "two extras ask for different versions"
    assert all(re.fullmatch(r"[\w-]+==[\d.]+", pin) for pin in pins)
    assert {"numpy", "scikit-learn", "pyarrow", "starlette"} <= set(names)


def test_the_release_workflow_has_no_secrets():
    text = (ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8")
    assert "secrets." not in text
    assert "password" not in text.partition("jobs:")[2]


def test_the_readme_fits_on_a_screen_and_names_the_test_command():
    assert len(README.splitlines()) <= 60
    assert "`make test`" in README
    assert (ROOT / ".ci" / "run").read_text(encoding="utf-8").rstrip().endswith("\nmake test")


def imported(path):
    """Names that a script imports from the project, each with its module."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        module = getattr(node, "module", None) or ""
        if isinstance(node, ast.ImportFrom) and module.startswith(("manifactor", "studies")):
            yield from ((module, alias.name) for alias in node.names)


def is_there(module, name):
    try:
        return hasattr(import_module(module), name) or bool(find_spec(f"{module}.{name}"))
    except ModuleNotFoundError:
        return False


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["benchmarks", "docs", "examples", "hostile", "studies"])
def test_what_scripts_import_is_there(folder):
    scripts = [path for path in sorted((ROOT / folder).rglob("*.py"))]
    pairs = {pair for path in scripts for pair in imported(path)}
    assert pairs
    assert [pair for pair in sorted(pairs) if not is_there(*pair)] == []


@pytest.mark.nightly
def test_the_python_of_the_readme_does_what_its_comments_say(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    names = {}
    exec(code, names)
    fit = names["fit"]
    assert fit.coordinates().shape == (3000, 2)
    assert [factor.topology for factor in fit.factors_] == ["circle", "circle"]
    assert "Two independent factors were found: two circles." in capsys.readouterr().out
