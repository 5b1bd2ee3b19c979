"""Images of all views in pieces: on other workers, on any number of cores, resumed."""

from dataclasses import replace
from functools import partial

import mrcfile
import numpy as np
import pytest

from manifactor._support.stages import Stages
from manifactor.cryoem.all_views.motions import Motions
from manifactor.cryoem.all_views.placing import place_particles
from manifactor.cryoem.all_views.principal import principal_volumes
from manifactor.cryoem.all_views.transforms import read_transforms, transform_grid
from manifactor.cryoem.files.particles import Particles
from manifactor.cryoem.files.stacks import stack_images
from manifactor.runs.archive import Checkpoints

from ...conftest import PickledWorkers
from .molecules import moving

MOTIONS = Motions(("circle", "interval"))
N = 140


@pytest.fixture
def small(monkeypatch):
    """Images of so few blobs have several pieces, shares and blocks."""
    numbers = {
        "regression": {"BLOCK": 16, "THREAD_IMAGES": 32, "PIECE": 64},
        "placing": {"MOST_ROUNDS": 1},
        "principal": {"MAX_RANK": 3, "N_ROUNDS": 1},
    }
    for module, values in numbers.items():
        for name, value in values.items():
            monkeypatch.setattr(f"manifactor.cryoem.all_views.{module}.{name}", value)


@pytest.fixture(scope="module")
def known():
    return moving(N)


def placed(known, *, stages=None, **options):
    images, places = known
    options["stages"] = stages or Stages()
    return place_particles(images, MOTIONS, np.arange(100), places[:100], **options)


def bits_of(known, **options):
    """All that is found of images, as bytes."""
    principal = principal_volumes(known[0], stages=Stages(), **options)
    found = placed(known, **options)
    arrays = {**vars(principal), **{k: v for k, v in vars(found).items() if k != "motions"}}
    return {name: np.asarray(array).tobytes() for name, array in arrays.items()}


@pytest.mark.slow
def test_results_do_not_depend_on_workers_or_cores(known, small, monkeypatch):
    monkeypatch.setattr("manifactor._support.threads.cores", lambda: 1)
    expected = bits_of(known)
    monkeypatch.setattr("manifactor._support.threads.cores", lambda: 4)
    assert bits_of(known, workers=PickledWorkers()) == expected


@pytest.fixture
def stack(tmp_path):
    """Noise in a stack, with particles that have poses and shifts."""
    rng = np.random.default_rng(0)
    images = rng.standard_normal((40, 16, 16)).astype(np.float32)
    mrcfile.write(tmp_path / "a.mrcs", images)
    angles, shift = rng.uniform(0, 90, (40, 3)), rng.uniform(-2, 2, (40, 2))
    names = {"stack": np.repeat("a.mrcs", 40), "slice": np.arange(40)}
    particles = Particles(tmp_path / "a.star", np.arange(40), angles=angles, shift=shift, **names)
    source = stack_images(tmp_path / "a.mrcs", pixel_size=2.0)
    return replace(source, block_bytes=12 * 4 * 16**2), particles


def read(source, particles, *, stages=None, **options):
    options |= {"rng": np.random.default_rng(0), "stages": stages or Stages()}
    grid = transform_grid(source, particles)
    return read_transforms(source, particles, grid, **options).values


class Interrupted(PickledWorkers):
    """Workers that stop after some pieces."""

    def __init__(self, most):
        super().__init__()
        self.most = most

    def map(self, work, jobs, **options):
        for result in super().map(work, jobs, **options):
            if len(self.done) > self.most:
                raise KeyboardInterrupt
            yield result


def test_reading_goes_on_where_it_was_stopped(stack, tmp_path):
    kept = partial(Checkpoints, tmp_path / "kept")
    with pytest.raises(KeyboardInterrupt):
        read(*stack, stages=kept(), workers=Interrupted(3))
    workers = PickledWorkers()
    values = read(*stack, stages=kept(), workers=workers)
    assert workers.done == ["_coefficients"]
    np.testing.assert_array_equal(values, read(*stack))


@pytest.mark.slow
def test_placing_goes_on_where_it_was_stopped(known, small, tmp_path):
    kept = partial(Checkpoints, tmp_path / "kept")
    everything = PickledWorkers()
    expected = placed(known, workers=everything)
    n_places = -(-N // 64)
    before = len(everything.done) - n_places
    with pytest.raises(KeyboardInterrupt):
        placed(known, stages=kept(), workers=Interrupted(before + 2))
    again = PickledWorkers()
    found = placed(known, stages=kept(), workers=again)
    assert again.done == (n_places - 2) * ["likelihood_piece"]
    np.testing.assert_array_equal(found.places, expected.places)
    np.testing.assert_array_equal(found.deviations, expected.deviations)
