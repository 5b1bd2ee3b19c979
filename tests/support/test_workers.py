import os
import threading
import time
from multiprocessing import active_children

import pytest
from joblib import Parallel, cpu_count, delayed
from joblib.externals.loky import get_reusable_executor

from manifactor._support.processes import start_trackers
from manifactor._support.workers import Here, Outcome, Processes, WorkersLost, in_order
from manifactor.cluster import cluster_workers
from tests.pieces import cores_seen, divided, ended, gpu_seen, killed
from tests.worker_checks import (
    CHECKS,
    an_error_is_the_outcome_of_its_piece_alone,
    an_interrupt_leaves_no_process_and_no_traceback,
)


@pytest.fixture(autouse=True)
def no_process_of_another_test():
    yield
    get_reusable_executor(reuse=True).shutdown(kill_workers=True)


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("workers", [Here(), Processes(1)])
def test_all_workers_keep_their_promises(workers, check):
    check(workers)


@pytest.mark.slow
def test_an_error_in_a_process_is_the_outcome_of_its_piece_alone():
    an_error_is_the_outcome_of_its_piece_alone(Processes(2))


@pytest.mark.slow
def test_outcomes_come_as_soon_as_their_pieces_are_done(tmp_path):
    jobs = [("first", tmp_path, "seen"), ("second", tmp_path, None)]
    reported, outcomes = [], []
    for found in Processes(2).outcomes(ended, jobs, report=reported.append):
        outcomes.append(found)
        (tmp_path / "seen").touch()  # the first piece waits for it
    assert outcomes == [Outcome(1, "second"), Outcome(0, "first")]
    assert reported == [0.5, 1]


@pytest.mark.slow
def test_no_process_is_left_after_an_error_or_an_early_end():
    results = Processes(2).map(divided, [(1,), (0,), (1,)])
    with pytest.raises(ZeroDivisionError):
        list(results)
    assert active_children() == []
    for _ in Processes(2).map(time.sleep, [(0,), (600,)]):
        assert active_children() != []
        break
    assert active_children() == []


def test_processes_that_clean_up_do_not_warn_of_what_killed_ones_leave(monkeypatch):
    seen = []
    for tracker in ("multiprocessing", "joblib.externals.loky.backend"):
        look = lambda: seen.append(os.environ["PYTHONWARNINGS"])  # noqa: E731
        monkeypatch.setattr(f"{tracker}.resource_tracker.ensure_running", look)
    monkeypatch.setenv("PYTHONWARNINGS", "error")
    start_trackers()
    assert seen == ["ignore", "ignore"]
    assert os.environ["PYTHONWARNINGS"] == "error"


@pytest.mark.slow
def test_processes_of_somebody_else_are_left_alone():
    Parallel(n_jobs=2, max_nbytes=None)(2 * [delayed(os.getpid)()])
    # All of them: on a busy machine, one may have done both jobs.
    pids = {process.pid for process in active_children()}
    assert set(Processes(2).map(os.getpid, 2 * [()])) <= pids
    left = active_children()
    get_reusable_executor().shutdown(kill_workers=True)
    assert pids <= {process.pid for process in left}


@pytest.mark.slow
def test_a_process_that_ends_ends_the_work_with_advice():
    with pytest.raises(WorkersLost, match="memory was full"):
        list(Processes(2).outcomes(killed, [(False,), (True,), (False,)]))
    assert list(Processes(2).map(killed, 2 * [(False,)])) == [False, False]


@pytest.mark.slow
def test_processes_see_one_gpu_each(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5")
    jobs = [("first", tmp_path, "second"), ("second", tmp_path, "first")]
    with cluster_workers("local", device="cuda") as workers:
        assert sorted(workers.map(gpu_seen, jobs)) == ["3", "5"]
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "3,5"


@pytest.mark.slow
def test_processes_share_the_cores():
    share = max(1, cpu_count() // 2)
    with cluster_workers("local:2") as workers:
        assert {count for count, _ in workers.map(cores_seen, 2 * [()])} == {share}


def refuse():
    error = ValueError("this and that")
    error.lock = threading.Lock()
    raise error


def test_an_error_that_cannot_be_pickled_keeps_its_words():
    (found,) = Here().outcomes(refuse, [()])
    assert str(found.error) == "ValueError: this and that"


def test_results_that_come_early_are_held_back():
    early = (Outcome(index, str(index)) for index in (2, 0, 1))
    assert list(in_order(early)) == ["0", "1", "2"]


def test_there_are_no_more_processes_than_cores_that_may_be_used(monkeypatch):
    # As taskset and the schedulers of clusters restrict a process.
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0}, raising=False)
    assert set(Processes().map(os.getpid, 3 * [()])) == {os.getpid()}


@pytest.mark.slow
@pytest.mark.skipif(
    not hasattr(os, "killpg"), reason="interrupts are sent another way on this system"
)
def test_an_interrupt_ends_all_processes_without_a_traceback():
    an_interrupt_leaves_no_process_and_no_traceback("nullcontext(Processes(2))")
