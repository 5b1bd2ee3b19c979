import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from manifactor import DisconnectedGraphWarning, ManifoldFactorizer, SampleWarning, datasets
from manifactor._support.errors import held_warnings, issue, parted, warn_caller
from manifactor._support.threads import map_threads


def test_a_warning_names_the_line_that_called_the_package():
    X, _ = datasets.sample("torus", 150, random_state=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ManifoldFactorizer(random_state=0).fit(X)
    named = {Path(warning.filename).name for warning in caught}
    assert named == {"test_warning.py"}
    assert SampleWarning in {warning.category for warning in caught}


def test_a_warning_of_no_package_names_the_line_itself():
    with pytest.warns(UserWarning, match="so") as caught:
        warn_caller("so", UserWarning)
    assert Path(caught[0].filename).name == "test_warning.py"


def test_held_warnings_are_issued_once_and_can_be_parted():
    with held_warnings() as held:
        for _ in range(2):
            warn_caller("few", SampleWarning)
        warn_caller("apart", DisconnectedGraphWarning)
    of_graph, others = parted(held, DisconnectedGraphWarning)
    with warnings.catch_warnings(record=True, action="always") as caught:
        issue(others)
    assert [str(each.message) for each in caught] == ["few"]
    assert [str(each.message) for each in of_graph] == ["apart"]


def test_warnings_of_threads_started_inside_are_held_too():
    with held_warnings() as held:
        map_threads(lambda text: warn_caller(text, UserWarning), ["one", "two"])
    assert {str(each.message) for each in held} == {"one", "two"}


def test_what_an_inner_context_issues_is_held_by_the_outer_one():
    with held_warnings() as outer:
        with held_warnings() as inner:
            warn_caller("so", UserWarning)
        assert not outer
        issue(inner)
    assert [str(each.message) for each in outer] == ["so"]


def test_warnings_of_other_packages_are_issued_at_once():
    with held_warnings() as held, pytest.warns(RuntimeWarning, match="not ours"):
        warnings.warn("not ours", RuntimeWarning, stacklevel=1)
    assert not held


def test_fits_that_overlap_in_threads_leave_the_filters_of_warnings_alone():
    X, _ = datasets.sample("torus", 150, random_state=1)
    second_began, first_ended = Event(), Event()

    def first(*_):
        assert second_began.wait(60)

    def second(*_):
        second_began.set()
        assert first_ended.wait(60)

    def fit(callback):
        # Asking for one factor is enough to hold warnings, and warns of nothing.
        return ManifoldFactorizer(1, random_state=0, callback=callback).fit(X)

    before = list(warnings.filters)
    with ThreadPoolExecutor(2) as pool:
        running = pool.submit(fit, first), pool.submit(fit, second)
        running[0].add_done_callback(lambda _: first_ended.set())
        assert [len(each.result(120).factors_) for each in running] == [1, 1]
    assert warnings.filters == before
