"""The cost of a command: its parts, workers, words; inputs."""

from pathlib import Path

import numpy as np
import pytest

from manifactor.cryoem.files.mrc import write_stack, write_volume
from manifactor.operators.forecast import Forecast
from manifactor.runs.cost import PartCost, cost_of_parts, cost_of_pieces, forecast_input
from manifactor.runs.sources import open_input
from manifactor.runs.task import Task, forecast_side_by_side
from manifactor.tables.reading import Input, UnreadTable


def test_parts_follow_each_other_and_the_largest_takes_the_memory():
    parts = [PartCost("reading", 2, 3e8), PartCost("fitting", 70, 1e9)]
    cost = cost_of_parts([*parts, PartCost("placing", 0, 9e9)])
    assert (cost.seconds, cost.memory, cost.worker_memory) == (72, 1e9, 0)
    assert str(cost) == "about 1.0 GB and 72 s"
    assert cost.as_rows() == [
        ["part", "time", "memory"],
        ["reading", "2 s", "0.3 GB"],
        ["fitting", "70 s", "1.0 GB"],
    ]


def test_memory_on_workers_is_not_that_of_the_client():
    fitting = PartCost("fitting", 30, 1e9)
    placing = PartCost("placing", 90, 2e9, on_workers=True)
    cost = cost_of_parts([fitting, placing], n_workers=4)
    assert str(cost) == "about 1.0 GB, 2.0 GB on each of 4 workers, and 2 minutes"
    assert cost.as_rows()[2] == ["placing", "2 minutes", "2.0 GB a worker"]
    alone = cost_of_parts([fitting, placing])
    assert str(alone) == "about 2.0 GB and 2 minutes"


@pytest.mark.parametrize(
    ("seconds", "n_workers", "elapsed"),
    [
        ((10, 10, 10, 10), 2, 20),
        ((10, 10, 100), 2, 100),  # the longest is not divided
        ((10, 20), 8, 20),
    ],
)
def test_pieces_are_divided_over_workers(seconds, n_workers, elapsed):
    pieces = [PartCost(str(k), each, 1e9 + k) for k, each in enumerate(seconds)]
    cost = cost_of_pieces(pieces, n_workers=n_workers)
    assert cost.seconds == elapsed
    assert cost.n_workers == min(n_workers, len(seconds))
    assert cost.worker_memory == 1e9 + len(seconds) - 1
    assert cost.memory == 2e8


FIT = Forecast(memory=5e8, seconds=9)


def table(n, n_features=8, path=None):
    """Samples that take no memory."""
    samples = np.broadcast_to(np.float32(0), (n, n_features))
    return Input(samples, np.arange(n), path=path)


def seconds_of(cost):
    return {part.name: part.seconds for part in cost.parts}


def test_samples_are_placed_if_not_all_are_fitted():
    whole = forecast_input(table(20_000), FIT, 20_000, n_cores=2)
    assert list(seconds_of(whole)) == ["reading", "fitting", "writing"]
    part = forecast_input(table(10**6), FIT, 20_000, n_cores=2)
    assert list(seconds_of(part)) == ["reading", "fitting", "placing", "writing"]
    # CPU seconds that were measured, of one core that places and of two.
    assert 6 < seconds_of(part)["placing"] < 24
    assert 2 < seconds_of(part)["writing"] < 9
    assert part.memory < 1.3e9


def test_a_table_in_parts_is_read_twice_and_not_for_a_forecast(tmp_path):
    # Takes no room on a disk.
    np.lib.format.open_memmap(
        tmp_path / "big.npy", mode="w+", dtype=np.float32, shape=(5 * 10**7, 8)
    )
    task = Task(tmp_path / "big.npy")
    opened = task.open()
    assert isinstance(opened, UnreadTable)
    one, ten = (task.forecast(opened, n_workers=n, n_cores=1) for n in (1, 10))
    before, after = seconds_of(one), seconds_of(ten)
    assert list(before) == ["reading", "fitting", "placing", "writing"]
    assert after["placing"] == pytest.approx(before["placing"] / 10)
    # All samples are written where they are placed.
    assert before["writing"] < 1
    assert max(one.memory, ten.memory, ten.worker_memory) < 2e9


def test_images_are_not_read_for_a_forecast(tmp_path, rng, monkeypatch):
    def blocks(*_):
        raise AssertionError("images were read")

    monkeypatch.setattr("manifactor.cryoem.files.stacks.ImageSource.blocks", blocks)
    images = rng.standard_normal((40, 32, 32)).astype(np.float32)
    write_stack(tmp_path / "a.mrcs", images, pixel_size=2.0)
    task = Task(tmp_path / "a.mrcs")
    cost = task.forecast(task.open())
    assert list(seconds_of(cost)) == ["reading", "components", "fitting", "writing"]


def test_volumes_have_components_too(tmp_path, rng):
    for number in range(5):
        volume = rng.standard_normal((16, 16, 16)).astype(np.float32)
        write_volume(tmp_path / f"{number}.mrc", volume, pixel_size=2.0)
    opened = open_input(tmp_path)
    cost = forecast_input(opened, FIT, 5, n_cores=2)
    assert list(seconds_of(cost)) == ["reading", "components", "fitting", "writing"]


@pytest.fixture
def on_cores(monkeypatch):
    """Set the number of cores; at first one."""

    def change(count):
        monkeypatch.setattr("manifactor.runs.cost.cores", lambda: count)

    change(1)
    return change


def test_side_by_side_each_task_has_a_worker(tmp_path, on_cores):
    paths = [tmp_path / f"{name}.npy" for name in "abc"]
    for path in paths:
        np.save(path, np.arange(900.0).reshape(300, 3) % 7)
    tasks = [Task(Path(path)) for path in paths]
    one, two = (forecast_side_by_side(tasks, n_workers=n) for n in (1, 2))
    assert [part.name for part in two.parts] == ["a", "b", "c"]
    assert one.seconds == pytest.approx(2 * two.seconds)
    assert one.seconds == pytest.approx(sum(part.seconds for part in one.parts))
