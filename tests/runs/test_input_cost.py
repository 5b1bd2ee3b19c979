"""The cost of an input, from reading to writing."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from manifactor.cryoem.files.formats import ParticleChoice
from manifactor.cryoem.files.mrc import write_stack, write_volume
from manifactor.runs.cost import forecast_input, n_columns
from manifactor.runs.several import forecast_side_by_side
from manifactor.runs.task import Task
from manifactor.spectral.forecast import Forecast
from manifactor.tables.images import ImageSettings, unread_stack
from manifactor.tables.reading import Input, UnreadTable, open_input
from manifactor.tables.stores import stored_table

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


def test_places_are_divided_over_workers_and_nothing_else_is():
    alone, shared = (
        forecast_input(table(10**7), FIT, 20_000, n_workers=n, n_cores=2) for n in (1, 4)
    )
    one, four = seconds_of(alone), seconds_of(shared)
    assert four["placing"] == pytest.approx(one["placing"] / 4)
    assert four["writing"] == one["writing"]
    # Places of all samples are gathered by one process.
    assert shared.worker_memory < alone.memory
    assert shared.memory == max(p.memory for p in alone.parts if p.name != "placing")


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


def test_wide_tables_are_placed_in_parts_of_fewer_samples(tmp_path):
    memory = []
    for n_features in (64, 640):
        path = tmp_path / f"{n_features}.npy"
        shape = (10**6, n_features)
        np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=shape)
        opened = UnreadTable(stored_table(path), np.arange(1000))
        cost = forecast_input(opened, FIT, 1000, n_cores=2)
        memory += [part.memory for part in cost.parts if part.name == "placing"]
    narrow, wide = memory
    assert wide < 1.1 * narrow < 1e9


def test_text_takes_longer_to_read_than_numbers(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"1,2\n" * 10**6)
    np.save(tmp_path / "a.npy", np.zeros((4, 10**5)))
    text, plain = (
        forecast_input(table(5, path=tmp_path / name), FIT, 5, n_cores=2)
        for name in ("a.csv", "a.npy")
    )
    assert seconds_of(text)["reading"] > 1.01 * seconds_of(plain)["reading"]


@pytest.fixture
def stack(tmp_path, rng):
    images = rng.standard_normal((40, 32, 32)).astype(np.float32)
    write_stack(tmp_path / "a.mrcs", images, pixel_size=2.0)
    return tmp_path / "a.mrcs"


def repeated(images, n):
    """The same images again and again, none of which is read."""
    source = images.source
    many = replace(source, file=np.zeros(n, int), slice=np.arange(n))
    return replace(images, source=many, view=replace(images.view, source=many))


def test_images_are_not_read_for_a_forecast(stack, monkeypatch):
    def blocks(*_):
        raise AssertionError("images were read")

    monkeypatch.setattr("manifactor.cryoem.files.stacks.ImageSource.blocks", blocks)
    task = Task(stack)
    cost = task.forecast(task.open())
    assert list(seconds_of(cost)) == ["reading", "components", "fitting", "writing"]


def test_the_cost_of_images_grows_with_their_number_and_size(stack):
    images = unread_stack(stack, ImageSettings(), ParticleChoice())
    few, many = (
        forecast_input(repeated(images, n), FIT, 3000, n_cores=2) for n in (10_000, 100_000)
    )
    assert seconds_of(many)["components"] > 2 * seconds_of(few)["components"]
    wide = replace(images.source, shape=(256, 256))
    large = replace(images, source=wide, view=replace(images.view, source=wide))
    large = forecast_input(repeated(large, 10_000), FIT, 3000, n_cores=2)
    assert large.seconds > few.seconds + 10
    # Images are learned from within bounded memory.
    assert many.memory < 2e9


def test_a_number_of_components_is_taken_into_account(stack):
    usual, few = (
        unread_stack(stack, each, ParticleChoice())
        for each in (ImageSettings(), ImageSettings(components=5))
    )
    assert (n_columns(usual), n_columns(few)) == (10, 5)


def test_volumes_have_components_too(tmp_path, rng):
    for number in range(5):
        volume = rng.standard_normal((16, 16, 16)).astype(np.float32)
        write_volume(tmp_path / f"{number}.mrc", volume, pixel_size=2.0)
    opened = open_input(tmp_path)
    cost = forecast_input(opened, FIT, 5, n_cores=2)
    assert list(seconds_of(cost)) == ["reading", "components", "fitting", "writing"]


def test_more_cores_shorten_what_they_share():
    two, eight = (forecast_input(table(10**6), FIT, 20_000, n_cores=n) for n in (2, 8))
    assert seconds_of(eight)["placing"] < seconds_of(two)["placing"]
    assert seconds_of(eight)["writing"] == seconds_of(two)["writing"]


def test_side_by_side_each_task_has_a_worker(tmp_path):
    paths = [tmp_path / f"{name}.npy" for name in "abc"]
    for path in paths:
        np.save(path, np.arange(900.0).reshape(300, 3) % 7)
    tasks = [Task(Path(path)) for path in paths]
    two = forecast_side_by_side(tasks, n_workers=2, n_cores=1)
    one = forecast_side_by_side(tasks, n_workers=1, n_cores=1)
    assert [part.name for part in two.parts] == ["a", "b", "c"]
    assert one.seconds == pytest.approx(2 * two.seconds)
    assert one.seconds == pytest.approx(sum(part.seconds for part in one.parts))
