"""Facts about the source itself."""

import ast
import inspect
import re
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import manifactor

SOURCE = Path(manifactor.__file__).parent

# The rooms, the lowest first. A room imports from those before it in this list and from itself; the
# packages of `models` are rooms of their own.
ROOMS = [
    *("_support", "scores", "statistics", "samples", "operators", "models.peeling", "factors"),
    *("models.sums", "models.components", "models.pieces", "models.moves", "models.triplets"),
    "models.separable",
    *("judging", "settings", "factorization", "kinds", "factorize", "estimators"),
    *("datasets", "tables", "runs", "cluster", "views", "command", "cryoem", "__main__"),
]


# Rooms whose functions have at most 50 lines.
SHORT = ("samples", "operators", "estimators")


@cache
def modules():
    """Syntax trees of all modules by their names."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        name = ".".join(["manifactor", *parts]).removesuffix(".__init__")
        found[name] = ast.parse(path.read_text(encoding="utf-8"))
    return found


@cache
def imports():
    """Pairs of a module and one that it imports; the package names the public ones only for types."""
    trees = {name: tree for name, tree in modules().items() if name != "manifactor"}
    return {(name, target) for name, tree in trees.items() for target in imported(tree)}


def room(module):
    _, first, *inner = module.split(".")
    return f"models.{inner[0]}" if first == "models" and inner else first


def is_module(name):
    path = SOURCE.parent / name.replace(".", "/")
    return path.is_dir() or path.with_suffix(".py").exists()


def imported(tree):
    """Modules that a module imports, or names in a string, as for `import_module`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and str(node.value).startswith("manifactor."):
            yield from [node.value] if is_module(node.value) else []
        if isinstance(node, ast.ImportFrom):
            assert not node.level, "imports are absolute, so that their direction can be seen"
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("manifactor"):
            for alias in node.names:
                deeper = f"{node.module}.{alias.name}"
                yield deeper if is_module(deeper) else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("manifactor"))


def test_every_module_lies_in_a_listed_room_and_imports_point_down():
    names = modules().keys() - {"manifactor", "manifactor.models"}
    assert {room(name) for name in names} == set(ROOMS)
    for name, target in imports():
        assert target != "manifactor", f"{name} imports the package itself"
        assert ROOMS.index(room(target)) <= ROOMS.index(room(name)), f"{name} imports {target}"


def test_modules_do_not_import_each_other_in_a_circle():
    graph = {name: set() for name in modules()}
    for name, target in imports():
        graph[name] |= {target} - {name}
    TopologicalSorter(graph).prepare()  # raises CycleError with the circle's names


def test_functions_are_short_and_only_the_command_line_prints():
    for name, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and room(f"{name}.").startswith(SHORT):
                length = node.end_lineno - node.lineno + 1
                assert length <= 50, f"{name}.{node.name} has {length} lines"
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id != "print" or name == "manifactor.command.terminal", name


def test_dir_lists_the_public_names_and_nothing_else():
    assert dir(manifactor) == sorted(manifactor.__all__)


def test_type_checkers_see_the_public_names():
    nodes = ast.walk(modules()["manifactor"])
    imports = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    seen = {alias.name for node in imports for alias in node.names if alias.asname}
    assert seen == set(manifactor.__all__)


@pytest.mark.slow
def test_heavy_optional_packages_are_not_imported_at_import_time():
    heavy = ["torch", "dask", "plotly", "faiss", "matplotlib", "clarabel", "tqdm", "mrcfile"]
    heavy += ["PIL", "gemmi", "starlette", "uvicorn"]
    code = f"import sys; from manifactor import *; {heavy=}"
    code += "; print([name for name in heavy if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_public_names_exist_and_are_documented():
    for name in manifactor.__all__:
        assert getattr(manifactor, name).__doc__


def public_methods():
    for estimator in (manifactor.DiffusionMap, manifactor.ManifoldFactorizer):
        for name, method in inspect.getmembers(estimator, inspect.isfunction):
            own = method.__module__.startswith("manifactor.")
            if own and not name.startswith("_"):
                yield pytest.param(method, id=f"{estimator.__name__}.{name}")


@pytest.mark.parametrize("method", list(public_methods()))
def test_public_methods_of_estimators_say_what_they_take_and_return(method):
    signature, text = inspect.signature(method), inspect.getdoc(method)
    if len(signature.parameters) > 1:  # beside `self`
        assert "\nParameters\n----------\n" in text
        for name in list(signature.parameters)[1:]:
            assert re.search(rf"^[\w, *]*\b{name}\b", text, re.MULTILINE), name
    if signature.return_annotation is not None:
        assert "\nReturns\n-------\n" in text


def test_links_in_the_documentation_lead_somewhere():
    root = Path(__file__).parents[1]  # the package may be installed elsewhere
    pages = [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").rglob("*.md"))]
    links = [
        (page, link)
        for page in pages
        for link in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8"))
    ]
    missing = [
        f"{page.name}: {link}"
        for page, link in links
        if "://" not in link and not (page.parent / link).exists()
    ]
    assert len(links) > 10
    assert missing == []
