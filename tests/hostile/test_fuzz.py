"""Damaged files of every kind are refused cleanly, and the fuzzer finds what is not."""

import json
import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from .kinds import KINDS
from .project import ODD_FILES, Project

ROOT = Path(__file__).parents[2]

linux = pytest.mark.skipif(
    not hasattr(os, "pidfd_open") or not Path("/proc/self/status").exists(),
    reason="processes are watched as on Linux",
)


def python(*arguments):
    """Run a module of this folder in a process without the threads of pytest."""
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


@linux
@pytest.mark.slow
def test_damaged_files_of_every_kind_are_refused_cleanly():
    cases = 2 * len(KINDS)
    how = ("--cases", str(cases), "--jobs", "1", "--rehearse", "1")
    ended = python("tests.hostile.fuzz", *how)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert f"{cases} cases of {len(KINDS)} kinds" in ended.stdout


@linux
@pytest.mark.slow
def test_the_fuzzer_finds_every_broken_promise():
    ended = python("tests.hostile.broken")
    told = [json.loads(line) for line in ended.stdout.splitlines()]
    assert len(told) == 10, ended.stderr
    for expected, found, whole in told:
        assert found == expected
        assert whole, f"{expected}: the project was not restored"


@pytest.fixture
def project(tmp_path):
    contents = {"x.csv": b"a,b\n1,2\n3,4\n", "run/run.json": b'{"a": [1, 2]}'}
    return Project.made(tmp_path, contents)


@pytest.mark.parametrize("name", ["x.csv", "run/run.json"])
def test_a_case_is_damaged_in_the_same_way_every_time(project, name):
    def damaged(seed):
        how = project.damage(name, Random(seed))
        path = project.folder / name
        content = path.read_bytes() if how in ("damaged", "spliced") else b""
        project.restore()
        return how, content

    assert [damaged(seed) for seed in range(50)] == [damaged(seed) for seed in range(50)]
    assert len({damaged(seed) for seed in range(50)}) > 30


@pytest.mark.parametrize("how", ODD_FILES)
def test_a_project_is_restored_whatever_lies_in_place_of_a_file(project, how):
    assert project.changes() == []
    path = project.folder / "run/run.json"
    path.unlink()
    ODD_FILES[how](path)
    (project.folder / "new/deep").mkdir(parents=True)
    assert project.changes() == ["new", "new/deep", "run/run.json"]
    project.restore()
    assert project.changes() == []
    assert path.read_bytes() == project.contents["run/run.json"]
