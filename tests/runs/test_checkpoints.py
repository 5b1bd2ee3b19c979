import warnings

import numpy as np
import pytest

from manifactor import ManifoldFactorizer, datasets
from manifactor.runs.checkpoints import Checkpoints, CheckpointWarning

from ..conftest import read_only


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
    np.testing.assert_allclose(
        again.transform(samples[:9]), fresh.transform(samples[:9])
    )


@pytest.mark.slow
def test_checkpoints_of_another_fit_are_refused_and_left_alone(samples, tmp_path):
    fit = ManifoldFactorizer(random_state=0)
    fit_stages = Checkpoints(tmp_path, worth_writing=0.0)
    fit.fit(samples, stages=fit_stages)
    other = ManifoldFactorizer(random_state=0, bandwidth=0.3)
    other_stages = Checkpoints(tmp_path, resume=True, worth_writing=0.0)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(
        ValueError,
        match="must belong to this fit; they are of other samples or settings",
    ):
        other.fit(samples, stages=other_stages)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.slow
def test_a_full_disk_costs_the_checkpoint_and_nothing_else(
    samples, tmp_path, monkeypatch
):
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


def test_a_damaged_checkpoint_is_refused(tmp_path):
    (tmp_path / "neighbours.npz").write_bytes(b"nonsense")
    with pytest.raises(ValueError, match="is damaged, or of another version"):
        Checkpoints(tmp_path, resume=True).recall("neighbours", "key", lambda: 1)


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
