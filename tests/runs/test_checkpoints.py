import warnings
from itertools import islice

import numpy as np
import pytest

from manifactor import ManifoldFactorizer, datasets
from manifactor._support.parameters import Choice
from manifactor.runs.archive import Checkpoints, CheckpointWarning, write_tree

from ..conftest import PickledWorkers, read_only


@pytest.fixture(scope="module")
def samples():
    return read_only(datasets.sample("torus", 500, random_state=0)[0])


@pytest.mark.slow
def test_a_stopped_fit_goes_on_from_its_checkpoints(samples, tmp_path):

    def stop(stage, fraction):
        if stage == "factors":
            raise KeyboardInterrupt

    fit = ManifoldFactorizer(random_state=0, callback=stop)
    fit_stages = Checkpoints(tmp_path / "kept", worth_writing=0.0)
    with pytest.raises(KeyboardInterrupt):
        fit.fit(samples, stages=fit_stages)
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == [
        "neighbours.npz",
        "preparation.npz",
        "spectrum.npz",
    ]
    again = ManifoldFactorizer(random_state=0)
    again_stages = Checkpoints(tmp_path / "kept", resume=True, worth_writing=0.0)
    again.fit(samples, stages=again_stages)
    assert list(again.timings_) == ["factors"]
    fresh = ManifoldFactorizer(random_state=0).fit(samples)
    np.testing.assert_array_equal(again.coordinates(), fresh.coordinates())
    np.testing.assert_allclose(again.transform(samples[:9]), fresh.transform(samples[:9]))


@pytest.mark.slow
def test_checkpoints_of_another_fit_are_refused_and_left_alone(samples, tmp_path):
    fit = ManifoldFactorizer(random_state=0)
    fit_stages = Checkpoints(tmp_path, worth_writing=0.0)
    fit.fit(samples, stages=fit_stages)
    other = ManifoldFactorizer(random_state=0, bandwidth=0.3)
    other_stages = Checkpoints(tmp_path, resume=True, worth_writing=0.0)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(
        ValueError, match="must belong to this fit; they are of other samples or settings"
    ):
        other.fit(samples, stages=other_stages)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.slow
def test_a_full_disk_costs_the_checkpoint_and_nothing_else(samples, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("manifactor._support.files.tempfile.mkdtemp", full)
    monkeypatch.setattr("manifactor._support.files.tempfile.mkstemp", full)
    fit = ManifoldFactorizer(random_state=0)
    fit_stages = Checkpoints(tmp_path, worth_writing=0.0)
    with pytest.warns(
        CheckpointWarning, match="could not be written for --resume: .*No space left"
    ):
        assert fit.fit(samples, stages=fit_stages).verdict_ == "product"
    assert not tmp_path.exists()


def test_a_damaged_checkpoint_is_refused(tmp_path):
    (tmp_path / "neighbours.npz").write_bytes(b"nonsense")
    with pytest.raises(ValueError, match="is damaged, or of another version"):
        Checkpoints(tmp_path, resume=True).recall("neighbours", "key", lambda: 1)


@pytest.mark.parametrize("stage", [("key", Choice(1, "a")), ("key",), 3])
def test_a_checkpoint_of_another_stage_is_refused(tmp_path, stage):
    write_tree(tmp_path / "spectrum.npz", stage)
    with pytest.raises(ValueError, match=r"spectrum.npz is damaged, .*another type"):
        Checkpoints(tmp_path, resume=True).recall("spectrum", "key", lambda: 1)


@pytest.mark.parametrize("results", [(), 3])
def test_a_group_of_no_pieces_is_refused_not_read_for_ever(tmp_path, results):
    write_tree(tmp_path / "images.000000.npz", ("key", results))
    stages = Checkpoints(tmp_path, resume=True)
    with pytest.raises(ValueError, match=r"images.000000.npz is damaged"):
        list(stages.pieces("images", "key", abs, [(1,), (2,)]))


def test_nothing_to_resume_is_said(tmp_path):
    with pytest.raises(ValueError, match="no checkpoint to resume"):
        Checkpoints(tmp_path / "none", resume=True)


@pytest.mark.slow
def test_a_resumed_fit_leaves_outliers_out_as_before(samples, tmp_path):
    X = np.vstack([samples, [[40.0, 0, 0, 0], [0, 40.0, 0, 0]]])
    with warnings.catch_warnings(action="ignore"):
        fresh = ManifoldFactorizer(random_state=0)
        fresh_stages = Checkpoints(tmp_path, worth_writing=0.0)
        fresh.fit(X, stages=fresh_stages)
        (tmp_path / "spectrum.npz").unlink()
        again = ManifoldFactorizer(random_state=0)
        again_stages = Checkpoints(tmp_path, resume=True, worth_writing=0.0)
        again.fit(X, stages=again_stages)
    assert again.outliers_.sum() == fresh.outliers_.sum() == 2
    np.testing.assert_array_equal(again.coordinates(), fresh.coordinates())


def squared(number):
    return np.full(2, number**2)


def test_pieces_of_a_stopped_stage_are_not_computed_again(tmp_path):
    jobs, workers = [(k,) for k in range(5)], PickledWorkers()
    stopped = Checkpoints(tmp_path, worth_writing=0.0)
    assert len(list(islice(stopped.pieces("squares", "key", squared, jobs), 3))) == 3
    fractions = []
    resumed = Checkpoints(tmp_path, resume=True, worth_writing=0.0)
    found = resumed.pieces(
        "squares", "key", squared, jobs, workers=workers, report=fractions.append
    )
    assert [result[0] for result in found] == [0, 1, 4, 9, 16]
    assert workers.done == 2 * ["squared"]
    assert fractions == pytest.approx([0.6, 0.8, 1.0])
    with pytest.raises(ValueError, match="must belong to this fit"):
        list(resumed.pieces("squares", "another key", squared, jobs))


def test_short_stages_of_pieces_leave_no_files(tmp_path):
    stages = Checkpoints(tmp_path / "kept", worth_writing=60.0)
    assert len(list(stages.pieces("squares", "key", squared, [(1,), (2,)]))) == 2
    assert not (tmp_path / "kept").exists()


def test_pieces_that_cannot_be_written_are_yielded_with_one_warning(tmp_path):
    stages = Checkpoints(tmp_path / "no" / "folder", worth_writing=0.0)
    with pytest.warns(CheckpointWarning) as caught:
        found = list(stages.pieces("squares", "key", squared, [(k,) for k in range(4)]))
    assert [result[0] for result in found] == [0, 1, 4, 9]
    assert len(caught) == 1
