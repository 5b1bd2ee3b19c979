"""Commands that are killed before a file operation: outputs are whole, nothing is left."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot fork here")
def test_a_kill_before_any_file_operation_leaves_whole_outputs_only(tmp_path):
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
    kills = [json.loads(line) for line in found.stdout.splitlines()]
    assert [kill for kill in kills if kill["output"] or kill["left"]] == []
    # Among the operations are the renames, and the removal of the old output.
    counts = Counter(kill["case"] for kill in kills)
    assert len(counts) == 5
    assert min(counts.values()) >= 2
