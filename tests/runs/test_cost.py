"""The memory of a command: its workers, words; inputs."""

import numpy as np

from manifactor.cryoem.files.stacks import write_stack
from manifactor.operators.forecast import forecast
from manifactor.runs.cost import Cost, cost_of_input
from manifactor.runs.sources import Input
from manifactor.runs.task import Task


def test_a_cost_reads_as_prose():
    assert str(Cost(1e9)) == "about 1.0 GB"
    assert str(Cost(2e8, 3e9)) == "about 0.2 GB and 3.0 GB on the device"
    assert str(Cost(2e8, 0.0, 4, 1e9)) == "about 0.2 GB, 1.0 GB on each of 4 workers"
    assert str(Cost(2e8, 0.0, 1, 1e9)) == "about 0.2 GB, 1.0 GB on the worker"


FIT = forecast(20_000, 8, n_neighbors=64, n_functions=100)


def table(n, n_features=8):
    """Samples that take no memory."""
    samples = np.broadcast_to(np.float32(0), (n, n_features))
    return Input(samples, np.arange(n))


def test_samples_that_are_placed_take_memory_where_they_are_placed():
    whole, part = (cost_of_input(table(n), FIT, 20_000) for n in (20_000, 10**6))
    assert whole.memory < part.memory < 1.3e9
    divided = cost_of_input(table(10**6), FIT, 20_000, n_workers=2)
    assert whole.worker_memory == part.worker_memory == 0
    assert 4e8 < divided.worker_memory < part.memory


def test_images_are_not_read_for_a_forecast(tmp_path, rng, monkeypatch):
    def blocks(*_):
        raise AssertionError("images were read")

    monkeypatch.setattr("manifactor.cryoem.files.stacks.ImageSource.blocks", blocks)
    images = rng.standard_normal((40, 32, 32)).astype(np.float32)
    write_stack(tmp_path / "a.mrcs", images, pixel_size=2.0)
    task = Task(tmp_path / "a.mrcs")
    opened = task.open()
    assert task.forecast(opened).memory > opened.reading_memory > 2.7e8
