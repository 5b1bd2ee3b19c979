import pytest

from manifactor.cluster.local import _configuration, _gpus, _visible


def test_workers_take_the_gpus_in_turn(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5")
    seen = [_visible(_gpus(), index) for index in range(3)]
    assert [each["CUDA_VISIBLE_DEVICES"] for each in seen] == ["3", "5", "3"]


def test_without_gpus_nothing_is_hidden():
    assert _visible([], 0) == {}


@pytest.mark.parametrize(("workers", "share"), [(1, "8"), (3, "2"), (20, "1")])
def test_workers_share_the_cores(monkeypatch, workers, share):
    monkeypatch.setattr("manifactor.cluster.local.cores", lambda: 8)
    environment = _configuration(workers)["distributed.nanny.pre-spawn-environ"]
    assert set(environment.values()) == {share}
