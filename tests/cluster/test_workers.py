"""Pieces of work on a Dask cluster; most tests share one of two processes."""

import importlib.util
import logging
import os
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import dask
import distributed
import joblib
import numpy as np
import pytest

from manifactor._support.workers import Processes, WorkersLost
from manifactor.cluster import _outcome, cluster_workers
from tests.pieces import diffused, divided, killed, killed_once
from tests.worker_checks import CHECKS

pytestmark = pytest.mark.slow


SETTINGS = {
    "distributed.scheduler.allowed-failures": 1,
    # A piece that waits at a worker that dies would be blamed for it as well.
    "distributed.scheduler.worker-saturation": 1.0,
    "distributed.scheduler.worker-ttl": None,
    # It can stop a worker of Python 3.11 for ever.
    "distributed.worker.profile.enabled": False,
    # On a busy machine a worker takes long to start, and to start anew.
    "distributed.comm.timeouts.connect": "1 minute",
    "distributed.deploy.lost-worker-timeout": "5 minutes",
}


@pytest.fixture(scope="module")
def workers():
    place = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    alone = {"threads_per_worker": 1, "memory_limit": 0, "silence_logs": logging.CRITICAL}
    with (
        dask.config.set(SETTINGS),
        distributed.LocalCluster(2, **place, **alone) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
        cluster_workers(client) as found,
    ):
        yield found


@pytest.mark.parametrize("check", CHECKS)
def test_a_cluster_keeps_the_promises_of_all_workers(workers, check):
    check(workers)


def test_a_fit_is_the_same_to_the_last_bit(workers):
    (found,) = workers.map(diffused, [(0,)])
    np.testing.assert_array_equal(found, diffused(0))


def test_the_backend_of_joblib_that_the_user_chose_does_the_work(workers):
    with workers.client.as_current(), joblib.parallel_config("dask"):
        pids = set(Processes(2).map(os.getpid, 4 * [()]))
    assert pids <= set(workers.client.run(os.getpid).values())


def test_a_worker_that_joins_without_manifactor_is_told():
    future = SimpleNamespace(
        status="error", exception=lambda: ModuleNotFoundError("No module named 'manifactor'")
    )
    with pytest.raises(ValueError, match="Install it with `pip install"):
        _outcome(future, 0, 1)


def test_a_piece_that_ended_its_workers_is_named():
    error = distributed.KilledWorker("piece", None, 1)
    lost = _outcome(SimpleNamespace(status="error", exception=lambda: error), 1, 3)
    assert (lost.index, type(lost.error)) == (1, WorkersLost)
    assert str(lost.error).startswith("piece 2 of 3 ended its worker 2 times")


def test_the_piece_of_a_worker_that_dies_is_done_again(workers, tmp_path):
    jobs = [(tmp_path / "first",), (tmp_path,)]
    assert list(workers.map(killed_once, jobs)) == ["first", tmp_path.name]


@pytest.mark.nightly  # the two tests above show what a worker that dies leaves, and the words
def test_a_piece_that_ends_its_workers_is_named_and_the_others_are_kept(workers):
    outcomes = list(workers.outcomes(killed, [(False,), (True,), (False,)]))
    (lost,) = (found for found in outcomes if found.error is not None)
    assert isinstance(lost.error, WorkersLost)
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


def test_a_scheduler_that_is_gone_ends_the_work_with_advice(scheduler):
    process, file = scheduler
    stopping = threading.Timer(0.3, process.kill)
    with pytest.raises(WorkersLost, match="--resume"):
        divided_while(stopping, file)
    stopping.join()
