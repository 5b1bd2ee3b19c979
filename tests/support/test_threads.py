import multiprocessing
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from threading import Barrier, get_ident

import joblib
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from manifactor._support import threads
from manifactor._support.threads import cores, map_panels, map_threads, one_blas_thread, over_cores


def blas_threads():
    """Threads of numpy's BLAS; other packages may bring one that has fewer."""
    return {
        library["num_threads"]
        for library in threadpool_info()
        if library["user_api"] == "blas" and "numpy" in library["filepath"]
    }


@pytest.fixture
def two_threads():
    with threadpool_limits(2, user_api="blas"):
        assert blas_threads() == {2}
        yield


def test_blas_has_one_thread_inside_and_as_many_as_before_outside(two_threads):
    with one_blas_thread():
        with one_blas_thread():
            assert blas_threads() == {1}
        assert blas_threads() == {1}
    assert blas_threads() == {2}


def test_overlapping_contexts_do_not_wait_and_leave_the_threads_as_they_were(two_threads):
    both_inside, first_has_left = Barrier(2), Barrier(2)

    def first():
        with one_blas_thread():
            both_inside.wait(60)
        first_has_left.wait(60)

    def second():
        with one_blas_thread():
            both_inside.wait(60)
            first_has_left.wait(60)

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(first), pool.submit(second)]:
            done.result(120)
    assert blas_threads() == {2}


def _enter_and_leave(queue):
    with one_blas_thread():
        queue.put("entered")


@pytest.mark.skipif(sys.platform == "win32", reason="processes are not forked there")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_worker_forked_inside_the_context_does_not_deadlock():
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    with one_blas_thread():
        worker = context.Process(target=_enter_and_leave, args=(queue,))
        worker.start()
        # The limits guard against a deadlock only.
        assert queue.get(timeout=300) == "entered"
        worker.join(300)
    assert worker.exitcode == 0


def test_results_come_in_order_from_no_more_threads_than_cores(monkeypatch):
    assert map_threads(lambda a, b: a * b, [1, 2, 3], [4, 5, 6]) == [4, 10, 18]
    monkeypatch.setattr(threads, "cores", lambda: 1)
    assert len(set(map_threads(lambda _: get_ident(), range(20)))) == 1


@pytest.mark.parametrize("n_rows", [1, 1023, 19_999, 300_001])
def test_slices_cover_every_row_once_and_do_not_depend_on_the_cores(monkeypatch, n_rows):
    found = []
    for count in (1, 2, 16):
        monkeypatch.setattr(threads, "cores", lambda count=count: count)
        found.append(threads.row_slices(n_rows, 2048, at_least=512))
    assert found[0] == found[1] == found[2]
    panels = map_panels(lambda rows: rows, n_rows)
    for slices in (panels, found[0]):
        assert (slices[0].start, slices[-1].stop) == (0, n_rows)
        assert all(a.stop == b.start for a, b in pairwise(slices))


def test_cores_that_the_process_may_not_use_do_not_count(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0}, raising=False)
    # Counted once in a process: the others keep what they have.
    assert cores.__wrapped__() == 1


def test_jobs_are_counted_as_in_scikit_learn(monkeypatch):
    monkeypatch.setattr(threads, "cores", lambda: 8)
    assert [threads.thread_count(n) for n in (None, 1, 3, -1, -2, -99)] == [*(1, 1, 3), *(8, 7, 1)]
    with joblib.parallel_config(n_jobs=5):
        assert threads.thread_count(None) == 5
        assert threads.thread_count(2) == 2
    with joblib.parallel_config(backend="threading", n_jobs=-1):
        assert threads.thread_count(None) == 8


def test_results_that_nobody_takes_stay_few(monkeypatch):
    monkeypatch.setattr(threads, "cores", lambda: 2)
    begun = []
    results = over_cores(lambda item: begun.append(item) or item, range(100))
    assert next(results) == 0
    assert len(begun) <= 5
    assert list(results) == list(range(1, 100))
