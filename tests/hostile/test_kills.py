"""Commands that are killed before a file operation: outputs are whole, nothing is left."""

import json
import os
import runpy
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.hostile import kills
from tests.hostile.kills import Bench, Case, Kill, problem_of


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot fork here")
def test_a_kill_before_a_file_operation_leaves_whole_outputs_only(tmp_path):
    root = Path(__file__).parents[2]
    found = subprocess.run(
        [sys.executable, "-m", "tests.hostile.kills", tmp_path],
        cwd=root,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    log = tmp_path / "log.txt"
    assert found.returncode == 0, found.stderr + log.read_text()[-2000:]
    judged = [json.loads(line) for line in found.stdout.splitlines()]
    assert [kill for kill in judged if kill["output"] or kill["left"]] == []
    # Among the operations are the renames, and the removal of the old output.
    counts = Counter(kill["case"] for kill in judged)
    assert len(counts) == 5
    assert min(counts.values()) >= 2


@pytest.mark.parametrize(
    ("ends", "found"),
    [
        ({1: -9, 2: -9, 3: -9}, ["", "", ""]),
        ({1: -9, 2: 2, 3: -9}, ["", "it ended with 2 and was not killed", ""]),
        ({1: -9, 2: -9}, ["", "", "it ended with 0 and was not killed"]),
        ({1: -9, 2: -9, 3: -9, 4: -9}, ["", "", "", "it ended with -9"]),
    ],
)
def test_a_command_that_ends_otherwise_is_found(tmp_path, monkeypatch, ends, found):
    def forked(line, folder, *, before=None, **options):
        (folder / "out").write_text("new")
        if before == 0:
            folder.with_name("count.txt").write_text("3")
        return ends.get(before, 0)

    monkeypatch.setattr(kills, "forked", forked)
    (tmp_path / "inputs").mkdir()
    judged = Bench(tmp_path).kills(Case("fit", "out"))
    assert [kill.output for kill in judged] == found


@pytest.mark.parametrize("suffix", [".star", ".csv", ".parquet", ".png", ".html"])
def test_a_file_with_another_byte_is_not_whole(tmp_path, suffix):
    (tmp_path / f"out{suffix}").write_bytes(b"new")
    for old, whole in ((b"new", True), (b"now", False)):
        found = problem_of(tmp_path / f"out{suffix}", {}, {"": old})
        assert (found == "") is whole


def test_times_in_an_output_may_be_others(tmp_path):
    def written(name, **arrays):
        np.savez(tmp_path / name, **arrays)
        return (tmp_path / name).read_bytes()

    def is_whole(name, finished):
        return problem_of(tmp_path / name, {}, {"": finished}) == ""

    arrays = {"X": np.arange(3), "manifest": np.arange(2)}
    written("out.npz", **arrays)
    later = written("later.npz", **{**arrays, "manifest": np.zeros(2)})
    assert is_whole("out.npz", later)
    assert not is_whole("out.npz", written("other.npz", **{**arrays, "X": np.ones(3)}))
    assert not is_whole("out.npz", written("fewer.npz", X=np.arange(3)))
    assert not is_whole("out.npz", later[:-30])

    stack = bytes(2000)
    (tmp_path / "out.mrcs").write_bytes(stack)
    assert is_whole("out.mrcs", stack[:300] + b"12:30" + stack[305:])
    assert not is_whole("out.mrcs", stack[:1500] + b"12:30" + stack[1505:])
    assert not is_whole("out.mrcs", stack[:-1])

    (tmp_path / "out.json").write_text('{"seconds": 1}')
    assert is_whole("out.json", b'{"seconds": 2}')
    assert not is_whole("out.json", b'{"verdict": 2}')


def test_the_benchmark_fails_unless_every_kill_is_whole_and_clean():
    script = Path(__file__).parents[2] / "benchmarks" / "kills.py"
    exit_code = runpy.run_path(str(script))["exit_code"]
    well = Kill("fit", "1")
    assert exit_code([well, well]) == 0
    assert exit_code([well, Kill("fit", "2", output="it is missing")]) == 1
    assert exit_code([well, Kill("fit", "2", left=".out.new.1")]) == 1
    assert exit_code([]) == 1
