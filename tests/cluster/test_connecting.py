"""Where a cluster is, and whether its workers run what this process runs."""

import pkgutil
import sys

import pytest

from manifactor._support import __version__
from manifactor._support.workers import WorkersLost
from manifactor.cluster import _address, check_workers, cluster_workers


def connect(where):
    with cluster_workers(where):
        pass


@pytest.mark.parametrize("where", ["tcp://node1:8786", "node1:8786", "127.0.0.1:1"])
def test_an_address_is_that_of_a_scheduler(where):
    assert _address(where) == where


@pytest.mark.slow
@pytest.mark.parametrize("text", ["", "{}", "[]", "no json", '{"address": 3}'])
def test_another_file_is_no_scheduler_file(tmp_path, text):
    file = tmp_path / "other.json"
    file.write_text(text)
    with pytest.raises(ValueError, match="must name the address of a Dask scheduler"):
        connect(str(file))


@pytest.mark.parametrize("where", ["locale", "local:0", "Local:2", "local:", "node1", ""])
def test_other_texts_are_refused(where):
    with pytest.raises(ValueError, match="local:WORKERS, the address of a Dask"):
        connect(where)


def test_nobody_at_the_address_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr("manifactor.cluster.CONNECT_TIMEOUT", 0.1)
    file = tmp_path / "old.json"
    file.write_text('{"address": "tcp://127.0.0.1:9"}')
    with pytest.raises(WorkersLost, match=r"tcp://127.0.0.1:9, which .*old.json names"):
        connect(str(file))
    with pytest.raises(WorkersLost, match=r"answers at 127.0.0.1:9 within 0.1 s. Start"):
        connect("127.0.0.1:9")


def test_a_missing_dask_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ValueError, match=r"pip install 'manifactor\[cluster\]'"):
        connect("local")


HERE = {"python": "3.11.7.final.0", "numpy": "2.4.1", "scipy": "1.17.0"}


class Answering:
    """A client whose workers say what they have."""

    def __init__(self, answer, workers=1, profiled=False):
        self.answer, self.workers, self.profiled = answer, workers, profiled

    def get_versions(self, packages):
        workers = {f"w{index}": {"packages": HERE} for index in range(self.workers)}
        return {"client": {"packages": HERE}, "workers": workers}

    def run(self, function, name, on_error):
        answer = self.answer if function is pkgutil.resolve_name else self.profiled
        return {f"w{index}": answer for index in range(self.workers)}


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("99.0", r"as this process; got 99.0. Install one"),
        (
            ModuleNotFoundError("No module named 'manifactor'"),
            r"\(No module named 'manifactor'\). Install",
        ),
    ],
)
def test_another_manifactor_or_none_is_refused(answer, said):
    with pytest.raises(ValueError, match=said):
        check_workers(Answering(answer))


def test_a_cluster_without_workers_is_told():
    with pytest.warns(UserWarning, match="no workers yet; pieces wait"):
        check_workers(Answering(__version__, workers=0))


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="a bug of Python 3.11")
def test_a_profiler_that_may_stop_workers_is_told():
    with pytest.warns(UserWarning, match="WORKER__PROFILE__ENABLED=False, or use"):
        check_workers(Answering(__version__, profiled=True))
