"""Files that become shorter while they are read."""

import signal
import subprocess
import sys

import pytest

SHORTER = """
import sys
import threading
import numpy as np
from manifactor._support.files import whole_folder
from manifactor.command.bus_errors import explain_bus_errors
from pathlib import Path
explain_bus_errors()
np.save("X.npy", np.ones((10_000, 4)))
X = np.load("X.npy", mmap_mode="r")
open("X.npy", "wb").close()
with whole_folder(Path("run")):
    if sys.argv[1] == "thread":
        thread = threading.Thread(target=X.sum)
        thread.start()
        thread.join()
    X.sum()
"""


@pytest.mark.skipif(not hasattr(signal, "SIGBUS"), reason="no bus errors here")
@pytest.mark.parametrize("where", ["main", "thread"])
def test_a_file_that_becomes_shorter_is_one_line(tmp_path, where):
    command = [sys.executable, "-c", SHORTER, where]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert found.returncode == 2
    assert found.stderr.startswith("manifactor: error: ")
    assert "X.npy became shorter while it was read. Repeat" in found.stderr
    assert found.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["X.npy"]
