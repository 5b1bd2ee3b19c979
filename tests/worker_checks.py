"""What all `Workers` promise: the checks that each kind of them must pass."""

import os
import signal
import subprocess
import sys

import pytest

from tests.pieces import divided

INTERRUPTED = """
import time
from contextlib import nullcontext
from multiprocessing import active_children
from manifactor._support.workers import Processes

if __name__ == "__main__":
    try:
        with {workers} as workers:
            for _ in workers.map(time.sleep, [(0,)] + 9 * [(600,)]):
                print("one is done", flush=True)
    except KeyboardInterrupt:
        print("interrupted")
        print(active_children())
"""


def results_come_in_the_order_of_the_jobs(workers):
    done = []
    found = workers.map(divided, [(1,), (3,), (2,)], report=done.append)
    assert list(found) == [6, 2, 3]
    assert done == [1 / 3, 2 / 3, 1]


def no_jobs_have_no_results(workers):
    assert list(workers.map(divided, [])) == []
    assert list(workers.outcomes(divided, [])) == []


def an_error_is_the_outcome_of_its_piece_alone(workers):
    outcomes = sorted(workers.outcomes(divided, [(1,), (0,), (3,)]), key=lambda found: found.index)
    assert [found.result for found in outcomes] == [6, None, 2]
    assert isinstance(outcomes[1].error, ZeroDivisionError)
    assert "in divided" in outcomes[1].error.__notes__[0]


def map_raises_the_error_of_a_piece(workers):
    with pytest.raises(ZeroDivisionError):
        list(workers.map(divided, [(1,), (0,)]))


CHECKS = [
    results_come_in_the_order_of_the_jobs,
    no_jobs_have_no_results,
    an_error_is_the_outcome_of_its_piece_alone,
    map_raises_the_error_of_a_piece,
]


def an_interrupt_leaves_no_process_and_no_traceback(workers):
    """Check workers of other processes, given as the source of their context."""
    # As in a terminal, Ctrl-C reaches the workers as well.
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED.format(workers=workers)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as command:
        try:
            assert command.stdout.readline() == "one is done\n"
            os.killpg(command.pid, signal.SIGINT)
            # Workers that live on would keep the pipes open.
            out, err = command.communicate(timeout=300)
        finally:
            command.kill()
    assert out == "interrupted\n[]\n"
    assert err == ""
