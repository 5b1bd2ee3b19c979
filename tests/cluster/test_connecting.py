import sys

import pytest

from manifactor._support.workers import WorkersLost
from manifactor.cluster import ClusterSettings, cluster_workers
from manifactor.cluster.connecting import _addressed


@pytest.mark.parametrize("where", ["tcp://node1:8786", "node1:8786", "127.0.0.1:1"])
def test_an_address_is_that_of_a_scheduler(where):
    assert _addressed(where) == {"address": where}


def test_a_scheduler_file_is_told_by_its_ending(tmp_path):
    file = tmp_path / "scheduler.json"
    file.touch()
    assert _addressed(str(file)) == {"scheduler_file": str(file)}
    with pytest.raises(FileNotFoundError, match="no such scheduler file"):
        _addressed(str(tmp_path / "missing.json"))


@pytest.mark.parametrize("where", ["locale", "local:0", "local:", "node1", ""])
def test_other_texts_are_refused(where):
    with (
        pytest.raises(ValueError, match="local:WORKERS, the address of a Dask"),
        cluster_workers(where),
    ):
        pass


def test_nobody_at_the_address_is_one_line():
    soon = ClusterSettings(connect_timeout=0.1)
    with (
        pytest.raises(WorkersLost, match=r"answers at 127.0.0.1:9 within 0.1 s. Start"),
        cluster_workers("127.0.0.1:9", settings=soon),
    ):
        pass


def test_a_missing_dask_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with (
        pytest.raises(ValueError, match=r"pip install 'manifactor\[cluster\]'"),
        cluster_workers("local"),
    ):
        pass
