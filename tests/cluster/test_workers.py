"""Pieces of work on a Dask cluster; most tests share one of two processes."""

import importlib.util
import os
import signal
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import dask
import joblib
import numpy as np
import pytest

from manifactor._support.workers import Here, PieceLost, Processes, WorkersLost
from manifactor.cluster import cluster_workers
from manifactor.cluster.workers import _outcome
from tests.pieces import cores_seen, diffused, divided, killed, killed_once

pytestmark = pytest.mark.slow

INTERRUPTED = """
import time
from multiprocessing import active_children
from manifactor.cluster import cluster_workers

if __name__ == "__main__":
    try:
        with cluster_workers("local:2") as workers:
            for _ in workers.map(time.sleep, [(0,)] + 9 * [(600,)]):
                print("one is done", flush=True)
    except KeyboardInterrupt:
        print("interrupted")
        print(active_children())
"""


@pytest.fixture(scope="module")
def workers():
    with (
        pytest.MonkeyPatch.context() as patch,
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
    ):
        patch.setenv("CUDA_VISIBLE_DEVICES", "3,5")
        with cluster_workers("local", device="cuda") as started:
            yield started


def test_fits_are_the_same_to_the_last_bit(workers):
    jobs = [(seed,) for seed in range(3)]
    done = []
    found = list(workers.map(diffused, jobs, report=done.append))
    for one, expected in zip(found, Here().map(diffused, jobs), strict=True):
        np.testing.assert_array_equal(one, expected)
    assert done == [1 / 3, 2 / 3, 1]


def test_the_backend_of_joblib_that_the_user_chose_does_the_work(workers):
    with workers.client.as_current(), joblib.parallel_config("dask"):
        pids = set(Processes(2).map(os.getpid, 4 * [()]))
        (found,) = Processes().map(diffused, [(0,)])
    assert pids <= set(workers.client.run(os.getpid).values())
    np.testing.assert_array_equal(found, diffused(0))


def test_an_error_is_the_outcome_of_its_piece_alone(workers):
    outcomes = sorted(
        workers.outcomes(divided, [(1,), (0,), (3,)]), key=lambda found: found.index
    )
    assert [found.result for found in outcomes] == [6, None, 2]
    assert isinstance(outcomes[1].error, ZeroDivisionError)
    assert "in divided" in outcomes[1].error.__notes__[0]


def test_a_worker_that_joins_without_manifactor_is_told():
    future = SimpleNamespace(
        status="error",
        exception=lambda: ModuleNotFoundError("No module named 'manifactor'"),
    )
    with pytest.raises(ValueError, match="Install it with `pip install"):
        _outcome(future, 0, 1)


def test_map_raises_the_error_of_a_piece(workers):
    with pytest.raises(ZeroDivisionError):
        list(workers.map(divided, [(1,), (0,)]))


def test_workers_share_the_cores(workers):
    share = max(1, joblib.cpu_count() // 2)
    assert set(workers.map(cores_seen, 2 * [()])) == {(share, str(share))}


def test_there_is_a_worker_for_each_gpu(workers):
    seen = workers.client.run(os.getenv, "CUDA_VISIBLE_DEVICES")
    assert sorted(seen.values()) == ["3", "5"]


def test_the_piece_of_a_worker_that_dies_is_done_again(workers, tmp_path):
    jobs = [(tmp_path / "first",), (tmp_path,)]
    assert list(workers.map(killed_once, jobs)) == ["first", tmp_path.name]


def test_a_piece_that_ends_its_workers_is_named_and_the_others_are_kept(workers):
    outcomes = list(workers.outcomes(killed, [(False,), (True,), (False,)]))
    (lost,) = (found for found in outcomes if found.error is not None)
    assert isinstance(lost.error, PieceLost)
    assert str(lost.error).startswith("piece 2 of 3 ended its worker 2 times")
    assert sorted(found.index for found in outcomes) == [0, 1, 2]


def sleeping(dask_scheduler):
    return [key for key in dask_scheduler.tasks if key.startswith("sleep")]


def test_pieces_are_cancelled_when_nobody_wants_them(workers):
    for _ in workers.map(time.sleep, [(0,)] + 9 * [(0.5,)]):
        break
    start = time.monotonic()
    while workers.client.run_on_scheduler(sleeping):
        assert time.monotonic() - start < 60
        time.sleep(0.01)


def test_a_client_stays_open(workers):
    with cluster_workers(workers.client) as again:
        assert list(again.map(divided, [(2,)])) == [3]
    assert workers.client.status == "running"


def test_there_is_a_dashboard_where_bokeh_is_installed(workers):
    served = importlib.util.find_spec("bokeh") is not None
    assert (workers.dashboard is not None) == served


@pytest.fixture
def scheduler(tmp_path):
    """A scheduler without workers, and its file."""
    file = tmp_path / "scheduler.json"
    options = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
    options += ["--dashboard-address", "127.0.0.1:0", "--scheduler-file", str(file)]
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", *options]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        while not file.exists():
            time.sleep(0.05)
        yield process, str(file)
        process.kill()


def divided_while(stopping, file):
    with cluster_workers(file) as workers:
        stopping.start()
        list(workers.map(divided, [(1,), (2,)]))


@pytest.mark.filterwarnings("ignore:the cluster has no workers yet")
def test_a_scheduler_that_is_gone_ends_the_work_with_advice(scheduler):
    process, file = scheduler
    stopping = threading.Timer(0.3, process.kill)
    with pytest.raises(WorkersLost, match="--resume"):
        divided_while(stopping, file)
    stopping.join()


def test_an_interrupt_leaves_no_process_and_no_traceback():
    # As in a terminal, Ctrl-C reaches the workers as well.
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED],
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
