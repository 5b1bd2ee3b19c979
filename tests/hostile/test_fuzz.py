"""Damaged files of every kind are refused cleanly, and the fuzzer finds what is not."""

import json
import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from hostile.kinds import KINDS
from hostile.project import ODD_FILES, Project

ROOT = Path(__file__).parents[2]

linux = pytest.mark.skipif(
    not hasattr(os, "pidfd_open") or not Path("/proc/self/status").exists(),
    reason="processes are watched as on Linux",
)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A folder with a small file of every kind."""
    from hostile.corpus import make_corpus

    folder = tmp_path_factory.mktemp("corpus")
    make_corpus(folder)
    return Project.read(folder)


@linux
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # commands print them
@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files_are_refused_cleanly(corpus, kind, monkeypatch, capfd):
    from hostile.running import Case, Limits, damage, exit_code, left_behind, problem_of

    monkeypatch.chdir(corpus.folder)
    for number in range(5):
        call, target = damage(Case(kind, 0, number), corpus)
        try:
            report = {"code": exit_code(call, target), "asked": 0}
            changes = corpus.changes()
        finally:
            corpus.restore()
        assert problem_of(report, "".join(capfd.readouterr()), Limits(), codes=(0, 2)) == ""
        assert left_behind(report, target, changes) == ""


def python(*arguments):
    """Run a module in a process without the threads of pytest."""
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


@linux
@pytest.mark.nightly
def test_cases_of_every_kind_are_run_in_processes():
    cases = 2 * len(KINDS)
    ended = python("hostile.fuzz", "--cases", str(cases), "--jobs", "1", "--rehearse", "1")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert f"{cases} cases of {len(KINDS)} kinds" in ended.stdout


@linux
@pytest.mark.nightly
def test_the_fuzzer_finds_every_broken_promise():
    ended = python("hostile.broken")
    told = [json.loads(line) for line in ended.stdout.splitlines()]
    assert len(told) == 10, ended.stderr
    for expected, found, whole in told:
        assert found == expected
        assert whole, f"{expected}: the project was not restored"


@pytest.fixture
def project(tmp_path):
    contents = {"x.csv": b"a,b\n1,2\n3,4\n", "run/run.json": b'{"a": [1, 2]}'}
    return Project.made(tmp_path, contents)


@pytest.mark.medium
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
