import os
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from threading import Barrier, get_ident

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from manifactor._support import threads
from manifactor._support.threads import cores, map_panels, map_threads, one_blas_thread


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
