from manifactor.cluster import _configuration, _gpus, _visible


def test_workers_take_the_gpus_in_turn(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5")
    seen = [_visible(_gpus(), index) for index in range(3)]
    assert [each["CUDA_VISIBLE_DEVICES"] for each in seen] == ["3", "5", "3"]


def test_without_gpus_nothing_is_hidden():
    assert _visible([], 0) == {}


def test_a_worker_is_told_its_share_of_the_cores():
    environment = _configuration(3)["distributed.nanny.pre-spawn-environ"]
    assert environment["LOKY_MAX_CPU_COUNT"] == environment["OMP_NUM_THREADS"] == "3"
