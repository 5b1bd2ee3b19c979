"""The cost of a command: its parts, workers, words; inputs."""

import numpy as np
import pytest

from manifactor.cryoem.files.stacks import write_stack
from manifactor.operators.forecast import Forecast
from manifactor.runs.cost import PartCost, cost_of_parts, cost_of_pieces, forecast_input
from manifactor.runs.sources import Input
from manifactor.runs.task import Task


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


def test_images_are_not_read_for_a_forecast(tmp_path, rng, monkeypatch):
    def blocks(*_):
        raise AssertionError("images were read")

    monkeypatch.setattr("manifactor.cryoem.files.stacks.ImageSource.blocks", blocks)
    images = rng.standard_normal((40, 32, 32)).astype(np.float32)
    write_stack(tmp_path / "a.mrcs", images, pixel_size=2.0)
    task = Task(tmp_path / "a.mrcs")
    cost = task.forecast(task.open())
    assert list(seconds_of(cost)) == ["reading", "components", "fitting", "writing"]
