"""Functions that break each promise in turn, to see that the fuzzer finds them.

Run as ``python -m hostile.broken``; it prints what was expected and found.
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


def _computes_for_ever(path: Path) -> None:
    while True:
        pass


def _takes_memory(path: Path) -> None:
    taken = np.ones(3 * 2**27, np.uint8)
    time.sleep(60)  # until the process that watches has seen it, however busy it is
    taken.sum()


def _raises(path: Path) -> None:
    raise KeyError(path.name)


def _leaves_a_file(path: Path) -> None:
    Path("half").touch()
    _refuses(path)


def _refuses(path: Path) -> None:
    raise ValueError("the file must be whole.")


BROKEN = {
    "died of SIGSEGV": lambda path: os.kill(os.getpid(), signal.SIGSEGV),
    "hangs: more than 2 s of processor time": _computes_for_ever,
    "hangs: it waits for something that does not come": lambda path: os.read(os.pipe()[0], 1),
    "took more than 0.25 GB": _takes_memory,
    "asked for 4.0 GB": lambda path: np.empty(2**32, np.uint8),
    "traceback": _raises,
    "left half behind": _leaves_a_file,
    "code of the data was run": lambda path: Path("PWNED").touch(),
    "prints a control sequence of a file": lambda path: print("\x1b[31m"),
    "": _refuses,
}


if __name__ == "__main__":
    # A busy machine takes a second to give out the memory.
    limits = Limits(cpu_seconds=2, memory=2**28, asleep_seconds=1.0)
    with tempfile.TemporaryDirectory(prefix="manifactor-fuzz-") as folder:
        os.chdir(folder)
        project = Project.made(Path(folder), {"x.csv": b"1,2\n", "a/b.csv": b"3\n"})
        for expected, call in BROKEN.items():
            found = run_call(call, "x.csv", project, limits)[0]
            print(json.dumps([expected, found, not project.changes()]), flush=True)
        os.chdir("/")
