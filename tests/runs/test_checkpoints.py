from itertools import islice

import numpy as np
import pytest

from manifactor import ManifoldFactorizer, datasets
from manifactor._support.parameters import Choice
from manifactor.runs.archive import Checkpoints, CheckpointWarning, write_tree

from ..conftest import PickledWorkers, read_only


@pytest.fixture(scope="module")
def samples():
    return read_only(datasets.sample("torus", 400, random_state=0)[0])


def checkpoints(folder, **how):
    """Checkpoints that write every stage."""
    return Checkpoints(folder, worth_writing=0.0, **how)


@pytest.mark.slow
def test_a_stopped_fit_goes_on_from_its_checkpoints_and_no_other_does(samples, tmp_path):
    def stop(stage, fraction):
        if stage == "factors":
            raise KeyboardInterrupt

    fit = ManifoldFactorizer(random_state=0, callback=stop)
    with pytest.raises(KeyboardInterrupt):
        fit.fit(samples, stages=checkpoints(tmp_path))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert sorted(before) == ["neighbours.npz", "preparation.npz", "spectrum.npz"]
    other = ManifoldFactorizer(random_state=0, bandwidth=0.3)
    with pytest.raises(ValueError, match="belong to this fit; they are of other samples or set"):
        other.fit(samples, stages=checkpoints(tmp_path, resume=True))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    again = ManifoldFactorizer(random_state=0)
    again.fit(samples, stages=checkpoints(tmp_path, resume=True))
    assert list(again.timings_) == ["factors"]
    fresh = ManifoldFactorizer(random_state=0).fit(samples)
    np.testing.assert_array_equal(again.coordinates(), fresh.coordinates())
    np.testing.assert_allclose(again.transform(samples[:9]), fresh.transform(samples[:9]))


def test_a_full_disk_costs_the_checkpoint_and_nothing_else(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.touch", full)
    with pytest.warns(CheckpointWarning, match="written for --resume: .*No space left"):
        assert checkpoints(tmp_path).recall("noise", "key", lambda: np.ones(2)).sum() == 2
    assert not tmp_path.exists()


def test_a_checkpoint_that_is_damaged_missing_or_of_another_stage_is_refused(tmp_path):
    for stage in (("key", Choice(1, "a")), ("key",), 3):
        write_tree(tmp_path / "spectrum.npz", stage)
        with pytest.raises(ValueError, match=r"spectrum.npz is damaged, .*\(value"):
            Checkpoints(tmp_path, resume=True).recall("spectrum", "key", lambda: 1)
    (tmp_path / "spectrum.npz").write_bytes(b"nonsense")
    with pytest.raises(ValueError, match="is damaged, or of another version"):
        Checkpoints(tmp_path, resume=True).recall("spectrum", "key", lambda: 1)
    with pytest.raises(ValueError, match="no checkpoint to resume"):
        Checkpoints(tmp_path / "none", resume=True)


def squared(number):
    return np.full(2, number**2)


def test_pieces_of_a_stopped_stage_are_not_computed_again(tmp_path):
    jobs, workers = [(k,) for k in range(5)], PickledWorkers()
    stopped = checkpoints(tmp_path)
    assert len(list(islice(stopped.pieces("squares", "key", squared, jobs), 3))) == 3
    fractions = []
    resumed = checkpoints(tmp_path, resume=True)
    found = resumed.pieces(
        "squares", "key", squared, jobs, workers=workers, report=fractions.append
    )
    assert [result[0] for result in found] == [0, 1, 4, 9, 16]
    assert workers.done == 2 * ["squared"]
    assert fractions == pytest.approx([0.6, 0.8, 1.0])
    with pytest.raises(ValueError, match="must belong to this fit"):
        list(resumed.pieces("squares", "another key", squared, jobs))


def test_short_stages_leave_no_files_and_what_cannot_be_written_is_warned_of_once(tmp_path):
    short = Checkpoints(tmp_path / "kept", worth_writing=60.0)
    assert len(list(short.pieces("squares", "key", squared, [(1,), (2,)]))) == 2
    assert not (tmp_path / "kept").exists()
    stages = checkpoints(tmp_path / "no" / "folder")
    with pytest.warns(CheckpointWarning) as caught:
        found = list(stages.pieces("squares", "key", squared, [(k,) for k in range(4)]))
    assert [result[0] for result in found] == [0, 1, 4, 9]
    assert len(caught) == 1
