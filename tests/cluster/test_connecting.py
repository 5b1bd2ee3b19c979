"""Where a cluster is, and whether its workers run what this process runs."""

import sys

import pytest

from manifactor._support.workers import WorkersLost
from manifactor.cluster import _address, check_versions, cluster_workers


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
        connect("node1:8786")


class Answering:
    """A client whose workers have other versions."""

    def get_versions(self, packages):
        here = {"python": "3.12.1", "manifactor": "0.2.0", "numpy": "2.4.1", "scipy": "1.17.0"}
        there = [{**here, "manifactor": None}, {**here, "numpy": "2.3.0"}]
        workers = {f"w{index}": {"packages": each} for index, each in enumerate(there)}
        return {"client": {"packages": here}, "workers": workers}


def test_workers_with_other_versions_are_told():
    with pytest.warns() as warned:
        check_versions(Answering())
    told = [str(each.message).partition(":")[0] for each in warned]
    assert told == [
        "the workers have manifactor None, this process has 0.2.0",
        "the workers have numpy 2.3.0, this process has 2.4.1",
    ]
