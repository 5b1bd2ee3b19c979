from manifactor.cluster import _configuration


def test_a_worker_is_told_its_share_of_the_cores():
    environment = _configuration(3)["distributed.nanny.pre-spawn-environ"]
    assert environment["LOKY_MAX_CPU_COUNT"] == environment["OMP_NUM_THREADS"] == "3"
