"""Functions that break each promise in turn, to see that the fuzzer finds them.

Run as ``python -m tests.hostile.broken``; it prints what was expected and found.
"""

import json
import os
import signal
import tempfile
import time
from pathlib import Path

import numpy as np

from .project import Project
from .running import Limits, run_call


def _crashes(path: Path) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def _computes_for_ever(path: Path) -> None:
    while True:
        pass


def _waits_for_ever(path: Path) -> None:
    os.read(os.pipe()[0], 1)


def _takes_memory(path: Path) -> None:
    taken = np.ones(2**29, np.uint8)
    time.sleep(60)  # until the process that watches has seen it, however busy it is
    taken.sum()


def _asks_for_memory(path: Path) -> None:
    np.empty(2**32, np.uint8)


def _raises(path: Path) -> None:
    raise KeyError(path.name)


def _leaves_a_file(path: Path) -> None:
    Path("half").touch()
    raise ValueError("the file must be whole.")


def _runs_code(path: Path) -> None:
    Path("PWNED").touch()


def _prints_escapes(path: Path) -> None:
    print("\x1b[31m")


def _refuses(path: Path) -> None:
    raise ValueError("the file must be whole.")


BROKEN = {
    _crashes: "died of SIGSEGV",
    _computes_for_ever: "hangs: more than 1 s of processor time",
    _waits_for_ever: "hangs: it waits for something that does not come",
    _takes_memory: "took more than 0.25 GB",
    _asks_for_memory: "asked for 4.0 GB",
    _raises: "traceback",
    _leaves_a_file: "left half behind",
    _runs_code: "code of the data was run",
    _prints_escapes: "prints a control sequence of a file",
    _refuses: "",
}


def main() -> None:
    """Print for each function what the fuzzer should say, and what it says."""
    limits = Limits(cpu_seconds=1, memory=2**28, asleep_seconds=1.0)
    with tempfile.TemporaryDirectory(prefix="manifactor-fuzz-") as folder:
        os.chdir(folder)
        project = Project.made(Path(folder), {"x.csv": b"1,2\n", "a/b.csv": b"3\n"})
        for call, expected in BROKEN.items():
            found = run_call(call, "x.csv", lambda: None, project, limits)[0]
            whole = not project.changes()
            print(json.dumps([call.__name__, expected, found, whole]), flush=True)
        os.chdir("/")


if __name__ == "__main__":
    main()
