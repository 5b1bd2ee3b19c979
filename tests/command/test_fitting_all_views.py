"""`fit --all-views`: what it refuses, and how it is resumed."""

import json
from pathlib import Path

import numpy as np
import pytest

from manifactor.cryoem.all_views.fitting import read_all_views
from manifactor.cryoem.files.formats import read_particles
from manifactor.cryoem.files.stacks import write_stack
from manifactor.runs.archive import ARCHIVE_VERSION
from manifactor.runs.options import FitOptions
from manifactor.runs.task import Task

from .conftest import POSE, interrupt_at, manifactor, refusal, write_star

N, SIZE = 40, 16


@pytest.fixture
def particles(folder, rng):
    """Images of noise, from all directions."""
    images = rng.standard_normal((N, SIZE, SIZE), dtype=np.float32)
    write_stack(folder / "stack.mrcs", images, pixel_size=5.0)
    rot, psi = rng.uniform(-180, 180, (2, N))
    tilt = np.degrees(np.arccos(rng.uniform(-1, 1, N)))
    poses = dict(zip(POSE, (rot, tilt, psi), strict=True))
    write_star(folder / "all.star", poses)
    return poses


def test_a_dry_run_reads_no_images(particles, folder, capsys, monkeypatch):
    def blocks(*_):
        raise AssertionError("images were read")

    monkeypatch.setattr("manifactor.cryoem.files.stacks.ImageSource.blocks", blocks)
    assert manifactor("fit all.star --all-views --dry-run") == 0
    assert capsys.readouterr().out.startswith("The fit will take about ")


def test_one_cluster_of_an_earlier_run_is_fitted(particles, folder, capsys):
    (folder / "run").mkdir()
    (folder / "run" / "factorization.npz").write_bytes(b"")
    lines = (f"{k},0.5,1,{1 + k % 3}" for k in range(N))
    (folder / "run" / "coordinates.csv").write_text(
        "\n".join(["sample,factor1,factor1_confidence,cluster", *lines, ""])
    )
    record = {
        "format": "manifactor run",
        "version": ARCHIVE_VERSION,
        "versions": {},
        "n_samples": N,
        "verdict": "none",
        "factors": [{"topology": "interval"}],
        "particles": "all.star",
        "fingerprint": read_particles(folder / "all.star").fingerprint,
        "all_views": {"found": "There are 3 clusters."},
    }
    (folder / "run" / "run.json").write_text(json.dumps(record))
    options = FitOptions(("all.star",), all_views=True, cluster_of="run", which=2)
    chosen, source, _ = read_all_views(Task(Path("all.star"), options))
    assert chosen.rows.tolist() == list(range(1, N, 3))
    assert len(source) == len(chosen)
    line = "fit all.star --all-views --dry-run --cluster-of run"
    assert "must be one of 1 to 3; got 4" in refusal(f"{line} --which 4", folder, capsys)
    assert "lies in run" in refusal(f"{line} --out run", folder, capsys)
    assert "goes with --all-views" in refusal("fit all.star --cluster-of run", folder, capsys)
    write_star(folder / "other.star", particles)
    line = line.replace("all.star", "other.star")
    assert "must be a run of other.star" in refusal(line, folder, capsys)


FIT = "fit all.star --all-views --out run"
SEARCH = "manifactor.cryoem.all_views.principal._search"


def no_motion(transforms, *_):
    """The mean volume of a rigid molecule and no others, without looking for them."""
    return np.zeros((1, transforms.grid.size), complex), np.full(1, 0.1), 0.1


def never(*_, **__):
    raise AssertionError("this was done before")


def test_a_resumed_fit_repeats_no_finished_stage(particles, folder, capsys, monkeypatch):
    with monkeypatch.context() as patch:
        interrupt_at("principal volumes", 0.0, patch)
        assert manifactor(FIT) == 130
    assert "repeat the command with --resume" in capsys.readouterr().err
    monkeypatch.setattr("manifactor.cryoem.files.stacks.ImageSource.blocks", never)
    monkeypatch.setattr(SEARCH, no_motion)
    assert manifactor(f"{FIT} --resume") == 2
    assert "a motion below the noise" in capsys.readouterr().err
    monkeypatch.setattr(SEARCH, never)
    assert "a motion below the noise" in refusal(f"{FIT} --resume", folder, capsys)
    message = "must belong to this fit; they are of other inputs or settings"
    assert message in refusal(f"{FIT} --seed 1 --resume", folder, capsys)
