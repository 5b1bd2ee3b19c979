import sys

import pytest

from manifactor._support.workers import WorkersLost
from manifactor.cluster import _address, cluster_workers


@pytest.mark.parametrize("where", ["tcp://node1:8786", "node1:8786", "127.0.0.1:1"])
def test_an_address_is_that_of_a_scheduler(where):
    assert _address(where) == where


def test_a_scheduler_file_is_told_by_its_ending(tmp_path):
    file = tmp_path / "scheduler.json"
    file.write_text('{"address": "tcp://10.0.0.1:8786", "workers": {}}')
    assert _address(str(file)) == "tcp://10.0.0.1:8786"
    with pytest.raises(FileNotFoundError, match="no such scheduler file"):
        _address(str(tmp_path / "missing.json"))


@pytest.mark.parametrize("text", ["", "{}", "[]", "no json", '{"address": 3}'])
def test_another_file_is_no_scheduler_file(tmp_path, text):
    file = tmp_path / "other.json"
    file.write_text(text)
    with (
        pytest.raises(ValueError, match="must name the address of a Dask scheduler"),
        cluster_workers(str(file)),
    ):
        pass


def test_a_file_of_a_scheduler_that_has_ended_is_named_with_its_address(tmp_path, monkeypatch):
    file = tmp_path / "old.json"
    file.write_text('{"address": "tcp://127.0.0.1:9"}')
    monkeypatch.setattr("manifactor.cluster.CONNECT_TIMEOUT", 0.1)
    with (
        pytest.raises(WorkersLost, match=r"tcp://127.0.0.1:9, which .*old.json names"),
        cluster_workers(str(file)),
    ):
        pass


@pytest.mark.parametrize("where", ["locale", "local:0", "Local:2", "local:", "node1", ""])
def test_other_texts_are_refused(where):
    with (
        pytest.raises(ValueError, match="local:WORKERS, the address of a Dask"),
        cluster_workers(where),
    ):
        pass


def test_nobody_at_the_address_is_one_line(monkeypatch):
    monkeypatch.setattr("manifactor.cluster.CONNECT_TIMEOUT", 0.1)
    with (
        pytest.raises(WorkersLost, match=r"answers at 127.0.0.1:9 within 0.1 s. Start"),
        cluster_workers("127.0.0.1:9"),
    ):
        pass


def test_a_missing_dask_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with (
        pytest.raises(ValueError, match=r"pip install 'manifactor\[cluster\]'"),
        cluster_workers("local"),
    ):
        pass
