"""Facts about the source itself."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import manifactor

SOURCE = Path(manifactor.__file__).parent

# lower storeys never import from higher ones; equal storeys stand beside each other
STOREYS = [
    [
        "manifactor.version",
        "manifactor.threads",
        "manifactor.parameters",
        "manifactor.places",
        "manifactor.pickles",
        "manifactor.regression",
        "manifactor.scores",
        "manifactor.extras",
        "manifactor.stages",
        "manifactor.files",
        "manifactor.views.markup",
    ],
    ["manifactor.samples", "manifactor.cryoem.ctf", "manifactor.cryoem.star", "manifactor.cryoem.particles"],
    ["manifactor.datasets", "manifactor.cryoem.relion", "manifactor.cryoem.cryosparc", "manifactor.cryoem.stacks"],
    ["manifactor.cryoem.views"],
    [
        "manifactor.cryoem.formats",
        "manifactor.cryoem.images",
        "manifactor.cryoem.bins",
        "manifactor.cryoem.averages",
        "manifactor.cryoem.pictures",
        "manifactor.cryoem.confounders",
    ],
    ["manifactor.cryoem.volumes", "manifactor.cryoem.dataset"],
    ["manifactor.inputs"],
    ["manifactor.spectral.approximate", "manifactor.spectral.cells"],
    ["manifactor.spectral.resident"],
    ["manifactor.spectral.operators"],
    [
        "manifactor.spectral.preparation",
        "manifactor.spectral.neighbors",
        "manifactor.spectral.solvers",
    ],
    ["manifactor.spectral.kernel"],
    ["manifactor.spectral.spectrum"],
    ["manifactor.spectral.parts"],
    ["manifactor.forecast"],
    ["manifactor.factoring.maxcut", "manifactor.factoring.triplets", "manifactor.factoring.gradients"],
    ["manifactor.factoring.pure", "manifactor.factoring.chart"],
    ["manifactor.factoring.factor"],
    ["manifactor.factoring.measures", "manifactor.factoring.deflation"],
    ["manifactor.factoring.evidence", "manifactor.plots"],
    ["manifactor.factoring.factorize"],
    ["manifactor.fitting"],
    ["manifactor.estimators"],
    ["manifactor.archive", "manifactor.benchmark", "manifactor.views.words"],
    ["manifactor.checkpoints", "manifactor.runs"],
    ["manifactor.jobs"],
    ["manifactor.averaging", "manifactor.bridges", "manifactor.views.choices"],
    ["manifactor.views.figures"],
    ["manifactor.views.report"],
    ["manifactor.views.explorer.columns", "manifactor.views.explorer.near", "manifactor.views.explorer.behind"],
    ["manifactor.views.explorer.scene"],
    ["manifactor.views.explorer.asked", "manifactor.views.explorer.guard"],
    ["manifactor.views.explorer.server"],
    ["manifactor.reproduce.section", "manifactor.reproduce.cases", "manifactor.reproduce.textbook"],
    ["manifactor.reproduce.lab", "manifactor.reproduce.page", "manifactor.reproduce.pairs"],
    ["manifactor.reproduce.panels", "manifactor.reproduce.rates"],
    [f"manifactor.reproduce.{recipe}" for recipe in ("fig1", "fig2", "fig3", "fig4", "fig5", "fig6", "fig7")]
    + [f"manifactor.reproduce.{recipe}" for recipe in ("trials", "beyond", "table1")],
    ["manifactor.reproduce.recipes"],
    ["manifactor.arguments"],
    ["manifactor.cli"],
    ["manifactor", "manifactor.command"],
]


def storey(module):
    for level, modules in enumerate(STOREYS):
        if any(module == m or (m != "manifactor" and module.startswith(m + ".")) for m in modules):
            return level
    raise AssertionError(f"{module} has no storey; add it to STOREYS")


def modules():
    for path in sorted(SOURCE.rglob("*.py")):
        name = ".".join(["manifactor", *path.relative_to(SOURCE).with_suffix("").parts]).removesuffix(".__init__")
        if name not in ("manifactor.spectral", "manifactor.factoring", "manifactor.cryoem", "manifactor.reproduce"):
            yield name, ast.parse(path.read_text(encoding="utf-8"))


def imported(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert not node.level, "imports are absolute, so that their direction can be seen"
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("manifactor"):
            for alias in node.names:
                deeper = f"{node.module}.{alias.name}"
                path = SOURCE.parent / deeper.replace(".", "/")
                yield deeper if path.exists() or path.with_suffix(".py").exists() else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("manifactor"))


def test_imports_point_down():
    for name, tree in modules():
        for target in imported(tree):
            beside = target.rpartition(".")[0] == name.rpartition(".")[0] == "manifactor.datasets"
            inside = target.startswith(name + ".") or beside
            assert inside or storey(target) < storey(name), f"{name} imports {target}"


def test_only_the_command_line_prints():
    for name, tree in modules():
        calls = {
            node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        assert name == "manifactor.cli" or "print" not in calls, name


def test_heavy_optional_packages_are_not_imported_at_import_time():
    heavy = ["torch", "dask", "plotly", "faiss", "matplotlib", "cvxpy", "tqdm", "mrcfile", "starfile", "PIL", "gemmi"]
    heavy += ["starlette", "uvicorn"]
    code = f"import manifactor, sys; print([m for m in {heavy} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


def test_public_names_exist_and_are_documented():
    for name in manifactor.__all__:
        assert getattr(manifactor, name).__doc__


def test_links_in_the_documentation_lead_somewhere():
    root = SOURCE.parents[1]
    pages = [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").rglob("*.md"))]
    links = [(page, link) for page in pages for link in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8"))]
    missing = [
        f"{page.name}: {link}" for page, link in links if "://" not in link and not (page.parent / link).exists()
    ]
    assert len(links) > 10
    assert missing == []
