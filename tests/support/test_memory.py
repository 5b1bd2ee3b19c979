import psutil
import pytest

from manifactor._support import memory
from manifactor._support.memory import available_memory, left_in_groups

GROUP, GROUP_1 = "sys/fs/cgroup", "sys/fs/cgroup/memory/slurm/job_7"
JOB = f"{GROUP}/system.slice/slurmstepd.scope/job_7"
# Files of a machine's `proc` and `sys`, and what its control groups leave.
MACHINES = {
    "a job has the limit of its own group": (
        {
            "proc/self/cgroup": "0::/system.slice/slurmstepd.scope/job_7/step_0\n",
            f"{JOB}/step_0/memory.max": "max\n",
            f"{JOB}/step_0/memory.current": "900\n",
            f"{JOB}/memory.max": "5000\n",
            f"{JOB}/memory.current": "2000\n",
            f"{GROUP}/system.slice/memory.max": "90000\n",
            f"{GROUP}/system.slice/memory.current": "1000\n",
        },
        [float("inf"), 3000, 89000],
    ),
    "files that were read are not counted as used": (
        {
            "proc/self/cgroup": "0::/job\n",
            f"{GROUP}/job/memory.max": "5000\n",
            f"{GROUP}/job/memory.current": "4500\n",
            f"{GROUP}/job/memory.stat": "anon 500\nactive_file 1000\ninactive_file 3000\n",
        },
        [4500],
    ),
    "groups of the first version": (
        {
            "proc/self/cgroup": "9:pids:/x\n4:cpu,memory:/slurm/job_7\n0::/\n",
            f"{GROUP_1}/memory.limit_in_bytes": "5000\n",
            f"{GROUP_1}/memory.usage_in_bytes": "1000\n",
            f"{GROUP_1}/memory.stat": "active_file 1\ntotal_active_file 100\ntotal_inactive_file 200\n",
        },
        [4300],
    ),
    "a container that does not show its group": (
        {
            "proc/self/cgroup": "0::/../../docker/abc\n",
            f"{GROUP}/memory.max": "7000\n",
            f"{GROUP}/memory.current": "1000\n",
        },
        [6000],
    ),
    "no groups": ({}, []),
}


@pytest.mark.parametrize(("files", "expected"), MACHINES.values(), ids=MACHINES)
def test_memory_is_limited_by_control_groups(tmp_path, files, expected):
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert list(left_in_groups(tmp_path)) == expected


def test_memory_is_what_is_free_and_left_of_the_smallest_limit(monkeypatch):
    monkeypatch.setattr(memory, "left_in_groups", lambda _: iter(()))
    free = psutil.virtual_memory().available
    assert available_memory() == pytest.approx(0.9 * free, rel=0.3)
    monkeypatch.setattr(memory, "left_in_groups", lambda _: iter((3e6, 1e6)))
    assert available_memory() == 0.9e6
    monkeypatch.setattr(memory, "left_in_groups", lambda _: iter((-1e6,)))
    assert available_memory() == 0
