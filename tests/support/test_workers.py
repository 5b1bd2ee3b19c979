import operator
import os
import signal
import subprocess
import sys
import time

import pytest

from manifactor._support.workers import Processes

WAITING = """
import time
from manifactor._support.workers import Processes
try:
    for _ in Processes(2).map(time.sleep, [(0,)] + 9 * [(600,)]):
        print("one is done", flush=True)
except KeyboardInterrupt:
    print("interrupted")
"""


def ended(name, folder, awaited):
    """Return a job's name after the awaited job has ended; leave a sign of the end."""
    start = time.monotonic()
    while awaited and not (folder / awaited).exists():
        # Jobs that one process does in turn would wait for ever.
        assert time.monotonic() - start < 300
        time.sleep(0.01)
    (folder / name).touch()
    return name


@pytest.mark.slow
def test_results_come_in_the_order_of_the_jobs(tmp_path):
    jobs = [("first", tmp_path, "second"), ("second", tmp_path, None)]
    assert list(Processes(2).map(ended, jobs)) == ["first", "second"]


@pytest.mark.parametrize("jobs", [[(4, 2), (9, 3), (1, 1)], []])
def test_one_process_does_all_jobs_in_turn(jobs):
    found = Processes(1).map(operator.floordiv, jobs)
    assert list(found) == [a // b for a, b in jobs]


def test_there_are_no_more_processes_than_cores_that_may_be_used(monkeypatch):
    # As taskset and the schedulers of clusters restrict a process.
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0}, raising=False)
    assert set(Processes().map(os.getpid, 3 * [()])) == {os.getpid()}


@pytest.mark.slow
@pytest.mark.skipif(
    not hasattr(os, "killpg"), reason="interrupts are sent another way on this system"
)
def test_an_interrupt_ends_all_processes_without_a_traceback():
    # As in a terminal, Ctrl-C reaches the workers as well.
    with subprocess.Popen(
        [sys.executable, "-c", WAITING],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as command:
        try:
            assert command.stdout.readline() == "one is done\n"
            os.killpg(command.pid, signal.SIGINT)
            # Workers that were not ended would sleep on, with the pipes open.
            out, err = command.communicate(timeout=300)
        finally:
            command.kill()
    assert out == "interrupted\n"
    assert err == ""
