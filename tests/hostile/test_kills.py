"""Commands that are killed before a file operation: outputs are whole, nothing is left."""

import io
import json
import os
import runpy
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from hostile import kills
from hostile.kills import Bench, Case, Kill, problem_of


@pytest.mark.nightly
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot fork here")
def test_a_kill_before_a_file_operation_leaves_whole_outputs_only(tmp_path):
    root = Path(__file__).parents[2]
    found = subprocess.run(
        [sys.executable, "-m", "hostile.kills", tmp_path],
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


def stored(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


@pytest.mark.parametrize(
    ("suffix", "found", "finished", "whole"),
    [
        *((suffix, b"new", b"new", True) for suffix in (".star", ".csv", ".html")),
        *((suffix, b"new", b"now", False) for suffix in (".star", ".parquet", ".png")),
        # Times may be others.
        (".npz", stored(X=1, manifest=1), stored(X=1, manifest=2), True),
        (".npz", stored(X=1, manifest=1), stored(X=2, manifest=1), False),
        (".npz", stored(X=1, manifest=1), stored(X=1, manifest=2)[:-30], False),
        (".mrcs", bytes(2000), bytes(300) + b"12:30" + bytes(1695), True),
        (".mrcs", bytes(2000), bytes(1500) + b"12:30" + bytes(495), False),
        (".mrcs", bytes(2000), bytes(1999), False),
        (".json", b'{"seconds": 1}', b'{"seconds": 2}', True),
        (".json", b'{"seconds": 1}', b'{"verdict": 2}', False),
    ],
)
def test_an_output_is_whole_if_nothing_but_times_differs(tmp_path, suffix, found, finished, whole):
    path = tmp_path / f"out{suffix}"
    path.write_bytes(found)
    assert (problem_of(path, {}, {"": finished}) == "") is whole


def test_the_benchmark_fails_unless_every_kill_is_whole_and_clean():
    script = Path(__file__).parents[2] / "benchmarks" / "kills.py"
    exit_code = runpy.run_path(str(script))["exit_code"]
    well = Kill("fit", "1")
    assert exit_code([well, well]) == 0
    assert exit_code([well, Kill("fit", "2", output="it is missing")]) == 1
    assert exit_code([well, Kill("fit", "2", left=".out.new.1")]) == 1
    assert exit_code([]) == 1
