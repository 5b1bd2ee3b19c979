import psutil
import pytest

from manifactor._support import memory
from manifactor._support.memory import available_memory, left_in_groups


@pytest.fixture
def machine(tmp_path):
    """Write files of a machine's `proc` and `sys`, and return what its groups leave."""

    def left(files):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return list(left_in_groups(tmp_path))

    return left


def test_a_job_has_the_limit_of_its_own_control_group(machine):
    job = "sys/fs/cgroup/system.slice/slurmstepd.scope/job_7"
    left = machine(
        {
            "proc/self/cgroup": "0::/system.slice/slurmstepd.scope/job_7/step_0\n",
            f"{job}/step_0/memory.max": "max\n",
            f"{job}/step_0/memory.current": "900\n",
            f"{job}/memory.max": "5000\n",
            f"{job}/memory.current": "2000\n",
            "sys/fs/cgroup/system.slice/memory.max": "90000\n",
            "sys/fs/cgroup/system.slice/memory.current": "1000\n",
        }
    )
    assert left == [float("inf"), 3000, 89000]


def test_files_that_were_read_are_not_counted_as_used(machine):
    job = "sys/fs/cgroup/job"
    left = machine(
        {
            "proc/self/cgroup": "0::/job\n",
            f"{job}/memory.max": "5000\n",
            f"{job}/memory.current": "4500\n",
            f"{job}/memory.stat": "anon 500\nactive_file 1000\ninactive_file 3000\n",
        }
    )
    assert left == [4500]


def test_control_groups_of_the_first_version_are_read(machine):
    job = "sys/fs/cgroup/memory/slurm/job_7"
    stat = "active_file 1\ntotal_active_file 100\ntotal_inactive_file 200\n"
    left = machine(
        {
            "proc/self/cgroup": "9:pids:/x\n4:cpu,memory:/slurm/job_7\n0::/\n",
            f"{job}/memory.limit_in_bytes": "5000\n",
            f"{job}/memory.usage_in_bytes": "1000\n",
            f"{job}/memory.stat": stat,
        }
    )
    assert left == [4300]


def test_in_a_container_that_does_not_show_its_group_the_root_is_read(machine):
    root = "sys/fs/cgroup"
    left = machine(
        {
            "proc/self/cgroup": "0::/../../docker/abc\n",
            f"{root}/memory.max": "7000\n",
            f"{root}/memory.current": "1000\n",
        }
    )
    assert left == [6000]


def test_where_there_are_no_control_groups_none_limits_the_memory(tmp_path):
    assert list(left_in_groups(tmp_path)) == []


def test_memory_is_what_is_free_and_left_of_the_smallest_limit(monkeypatch):
    monkeypatch.setattr(memory, "left_in_groups", lambda _: iter(()))
    free = psutil.virtual_memory().available
    assert available_memory() == pytest.approx(0.9 * free, rel=0.3)
    monkeypatch.setattr(memory, "left_in_groups", lambda _: iter((3e6, 1e6)))
    assert available_memory() == 0.9e6
    monkeypatch.setattr(memory, "left_in_groups", lambda _: iter((-1e6,)))
    assert available_memory() == 0
