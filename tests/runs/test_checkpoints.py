from itertools import islice

import numpy as np
import pytest

from manifactor.runs.archive import Checkpoints, CheckpointWarning

from ..conftest import PickledWorkers


def test_a_full_disk_costs_the_checkpoint_and_nothing_else(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.touch", full)
    stages = Checkpoints(tmp_path / "kept")
    with pytest.warns(CheckpointWarning, match="written for --resume: .*No space left"):
        assert stages.once("noise", lambda: np.ones(2)).sum() == 2
    # It is said once.
    assert stages.once("noise", lambda: np.ones(2)).sum() == 2
    assert not (tmp_path / "kept").exists()


def test_checkpoints_of_another_fit_and_damaged_ones_are_refused(tmp_path):
    folder = tmp_path / "kept"
    assert Checkpoints(folder, "one").once("noise", lambda: 1) == 1
    with pytest.raises(ValueError, match="must belong to this fit"):
        Checkpoints(folder, "another")
    assert Checkpoints(folder, "one").once("noise", lambda: 2) == 1
    (folder / "noise 1.000000.npz").write_bytes(b"nonsense")
    with pytest.raises(ValueError, match="is damaged, or of another version"):
        Checkpoints(folder, "one").once("noise", lambda: 2)


def squared(number):
    return np.full(2, number**2)


def test_pieces_of_a_stopped_stage_are_not_computed_again(tmp_path):
    jobs, workers = [(k,) for k in range(5)], PickledWorkers()
    folder = tmp_path / "kept"
    assert len(list(islice(Checkpoints(folder).pieces("squares", squared, jobs), 3))) == 3
    fractions = []
    resumed = Checkpoints(folder)
    how = {"workers": workers, "report": fractions.append}
    found = list(resumed.pieces("squares", squared, jobs, **how))
    assert [result[0] for result in found] == [0, 1, 4, 9, 16]
    assert workers.done == 2 * ["squared"]
    assert fractions == pytest.approx([0.6, 0.8, 1.0])
    # A stage that is repeated has pieces of its own.
    again = resumed.pieces("squares", squared, [(k + 1,) for k in range(2)])
    assert [result[0] for result in again] == [1, 4]
