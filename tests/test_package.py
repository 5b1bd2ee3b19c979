"""What is published works by itself: the wheel and the source archive."""

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "manifactor"

pytest.importorskip("hatchling")


def build(root, kind, out):
    """Build a wheel or a source archive and return its path."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(out)]
    subprocess.run(command, cwd=root, check=True, capture_output=True)
    (built,) = out.glob("manifactor-*")
    return built


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build(ROOT, "wheel", tmp_path_factory.mktemp("dist"))


def contents(wheel):
    """The bytes of every file in a wheel."""
    with zipfile.ZipFile(wheel) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def installed(wheel, folder):
    """Install a wheel into an empty environment that sees the dependencies."""
    command = [sys.executable, "-m", "venv", "--without-pip", str(folder)]
    subprocess.run(command, check=True)
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    options = ["--no-deps", "--no-index", "--no-compile", "--disable-pip-version-check"]
    subprocess.run([*pip, *options, str(wheel)], check=True)
    # Files of the test environment's packages, without its links to this source: files
    # that name folders are not read in folders that such a file names.
    (packages,) = folder.rglob("site-packages")
    given = [path for path in sys.path if Path(path).name == "site-packages"]
    (packages / "dependencies.pth").write_text("\n".join(given))
    return python


def output(command, folder):
    """What a command prints in a folder that has nothing to do with the source."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    how = {"cwd": folder, "env": environment, "capture_output": True, "text": True}
    ended = subprocess.run([str(part) for part in command], timeout=300, **how)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.nightly
def test_the_wheel_works_in_an_empty_environment(tmp_path, torus, wheel):
    python = installed(wheel, tmp_path / "environment")
    program = python.with_name("manifactor")
    where = "import manifactor; print(manifactor.__file__)"
    assert str(tmp_path) in output([python, "-c", where], tmp_path)
    np.save(tmp_path / "samples.npy", torus[0][:800])
    out = output([program, "fit", "samples.npy", "--out", "run"], tmp_path)
    assert "Factor 2: a circle" in out
    assert (tmp_path / "run" / "coordinates.csv").exists()


@pytest.mark.nightly
def test_the_source_archive_is_complete_and_builds_the_same_wheel(tmp_path, wheel):
    archive = build(ROOT, "sdist", tmp_path / "sdist")
    with tarfile.open(archive) as opened:
        opened.extractall(tmp_path, filter="data")
    (root,) = tmp_path.glob("manifactor-*")
    for folder in ["benchmarks", "docs", "examples", "hostile", "src", "studies", "tests"]:
        given = {p.relative_to(ROOT) for p in (ROOT / folder).rglob("*.py")}
        assert given <= {p.relative_to(root) for p in root.rglob("*.py")}
    for name in ["CHANGELOG.md", "CITATION.cff", "LICENSE", "Makefile", "docs/method.md"]:
        assert (root / name).exists()
    assert contents(build(root, "wheel", tmp_path / "again")) == contents(wheel)


@pytest.mark.slow
def test_the_wheel_has_every_file_of_the_package_and_absolute_links(wheel):
    wheel = contents(wheel)
    given = {
        f"manifactor/{path.relative_to(SOURCE).as_posix()}"
        for path in SOURCE.rglob("*.*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert {name for name in wheel if name.startswith("manifactor/")} == given
    assert "manifactor/views/explorer/page/index.html" in given
    (metadata,) = (name for name in wheel if name.endswith(".dist-info/METADATA"))
    text = wheel[metadata].decode()
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert len(links) > 10
    assert all(link.startswith("https://") for link in links)
    images = re.findall(r'!\[[^\]]+\]\((\S+)\)|<img src="(\S+)"', text)
    assert {bool(markdown) for markdown, _ in images} == {True, False}
    for address in map("".join, images):
        folder, name = address.split("/docs/")
        assert folder.startswith("https://raw.githubusercontent.com/")
        assert (ROOT / "docs" / name).exists()
