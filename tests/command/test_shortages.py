import os
import subprocess
import sys
import threading

import pytest

from manifactor.__main__ import main

resource = pytest.importorskip("resource")


def limited(folder, line, **limits):
    """Run a command in a process with limits; its exit code and standard error."""

    def set_limits():
        for name, limit in limits.items():
            resource.setrlimit(getattr(resource, name), (limit, limit))

    found = subprocess.run(
        [sys.executable, "-m", "manifactor", *line.split()],
        cwd=folder,
        capture_output=True,
        text=True,
        preexec_fn=set_limits,
        # Each thread takes addresses: the limits are those of a machine of two cores.
        env={**os.environ, "OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"},
    )
    return found.returncode, found.stderr


@pytest.mark.parametrize("megabytes", [100, 1500])
def test_too_little_memory_to_load_the_program_is_one_line(tmp_path, megabytes):
    code, err = limited(tmp_path, "fit a.npy", RLIMIT_AS=megabytes * 10**6)
    assert code == 2
    assert err.startswith("manifactor: error: the memory of this process is limited")
    assert f"limited to {megabytes} MB of addresses (ulimit -v)" in err
    assert err.count("\n") == 1


# The process ends, and with it the sockets that wait for signals.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_no_threads_are_one_line(monkeypatch, capsys):
    def start(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    monkeypatch.setattr(sys, "argv", ["manifactor", "--version"])
    assert main() == 2
    err = capsys.readouterr().err
    assert err.startswith("manifactor: error: no more threads can be started. Raise")
    assert err.count("\n") == 1
