import logging
import warnings

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from manifactor import DiffusionMap, ManifoldFactorizer, datasets
from manifactor._support.stages import fingerprint
from manifactor.runs.checkpoints import Checkpoints, CheckpointWarning
from manifactor.spectral.forecast import (
    Forecast,
    forecast,
    machine_memory,
    require_memory,
)


@pytest.fixture(scope="module")
def torus():
    return datasets.sample("torus", 1500, random_state=0)[0]


def test_what_did_not_change_is_kept(torus):
    fit = ManifoldFactorizer(random_state=0).fit(torus)
    first = fit.coordinates()
    assert "neighbours" in fit.timings_
    assert list(fit.set_params(n_factors=2).fit(torus).timings_) == ["factors"]
    assert list(fit.set_params(bandwidth=0.3).fit(torus).timings_) == [
        "affinity",
        "spectrum",
        "factors",
    ]
    assert "neighbours" in fit.set_params(n_neighbors=40).fit(torus).timings_
    again = fit.set_params(n_factors="auto", bandwidth="auto", n_neighbors="auto").fit(
        torus
    )
    np.testing.assert_array_equal(again.coordinates(), first)


def test_other_samples_are_never_taken_for_those_before(torus):
    fit = ManifoldFactorizer(random_state=0).fit(torus)
    moved = torus.copy()
    moved[7, 0] += 1e-9
    assert "neighbours" in fit.fit(moved).timings_


def test_a_fit_that_keeps_stages_equals_one_that_does_not(torus):
    kept = (
        ManifoldFactorizer(random_state=0).fit(torus).set_params(n_factors=2).fit(torus)
    )
    fresh = ManifoldFactorizer(n_factors=2, random_state=0).fit(torus)
    np.testing.assert_array_equal(kept.coordinates(), fresh.coordinates())


def test_a_stopped_fit_goes_on_from_its_checkpoints(torus, tmp_path, monkeypatch):
    monkeypatch.setattr("manifactor.runs.checkpoints.LONG", 0.0)

    def stop(stage, fraction):
        if stage == "factors":
            raise KeyboardInterrupt

    fit = ManifoldFactorizer(random_state=0, callback=stop)
    fit._stages = Checkpoints(tmp_path / "kept")
    with pytest.raises(KeyboardInterrupt):
        fit.fit(torus)
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == [
        "neighbours.npz",
        "spectrum.npz",
    ]
    again = ManifoldFactorizer(random_state=0)
    again._stages = Checkpoints(tmp_path / "kept", resume=True)
    again.fit(torus)
    assert list(again.timings_) == ["factors"]
    fresh = ManifoldFactorizer(random_state=0).fit(torus)
    np.testing.assert_array_equal(again.coordinates(), fresh.coordinates())
    np.testing.assert_allclose(again.transform(torus[:9]), fresh.transform(torus[:9]))


def test_checkpoints_of_another_fit_are_refused_and_left_alone(
    torus, tmp_path, monkeypatch
):
    monkeypatch.setattr("manifactor.runs.checkpoints.LONG", 0.0)
    fit = ManifoldFactorizer(random_state=0)
    fit._stages = Checkpoints(tmp_path)
    fit.fit(torus)
    other = ManifoldFactorizer(random_state=0, bandwidth=0.3)
    other._stages = Checkpoints(tmp_path, resume=True)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(
        ValueError,
        match="must hold stages of the same fit; those are of other samples or settings",
    ):
        other.fit(torus)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_full_disk_costs_the_checkpoint_and_nothing_else(
    torus, tmp_path, monkeypatch
):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("manifactor.runs.checkpoints.LONG", 0.0)
    monkeypatch.setattr("manifactor._support.files.tempfile.mkdtemp", full)
    monkeypatch.setattr("manifactor._support.files.tempfile.mkstemp", full)
    fit = ManifoldFactorizer(random_state=0)
    fit._stages = Checkpoints(tmp_path)
    with pytest.warns(
        CheckpointWarning, match="could not be kept for --resume: .*No space left"
    ):
        assert fit.fit(torus).verdict_ == "product"


def test_a_damaged_checkpoint_is_refused(tmp_path):
    (tmp_path / "neighbours.npz").write_bytes(b"nonsense")
    with pytest.raises(ValueError, match="is damaged, or of another version"):
        Checkpoints(tmp_path, resume=True)("neighbours", "key", lambda: 1)


def test_nothing_to_resume_is_said(tmp_path):
    with pytest.raises(ValueError, match="there is nothing to go on from"):
        Checkpoints(tmp_path / "none", resume=True)


def test_a_forecast_grows_with_the_samples_and_reads_as_prose():
    small, large = (
        forecast(n, 4, n_neighbors=64, n_functions=100) for n in (10_000, 1_000_000)
    )
    assert 50 < large.memory / small.memory < 200
    assert 100 < large.seconds / small.seconds < 1000
    assert str(Forecast(5.8e9, 540)) == "about 5.8 GB and 9 minutes"
    assert str(Forecast(1e8, 8000)) == "about 0.1 GB and 2.2 hours"


def test_what_does_not_fit_into_memory_is_refused_with_what_would():
    huge = forecast(10**9, 4, n_neighbors=64, n_functions=100)
    with pytest.raises(
        MemoryError, match=r"the fit must fit into memory; .* Fit at most \d+ samples"
    ):
        require_memory(huge, 10**9)
    require_memory(Forecast(0.5 * machine_memory(), 1), 10)


def test_a_fit_that_is_too_large_is_refused_before_it_starts(torus, monkeypatch):
    monkeypatch.setattr("manifactor.spectral.forecast.machine_memory", lambda: 1e6)
    with pytest.raises(MemoryError, match="Fit at most"):
        ManifoldFactorizer().fit(torus)


def test_the_forecast_is_logged_and_kept(torus, caplog):
    with caplog.at_level(logging.INFO, "manifactor"):
        fit = ManifoldFactorizer(random_state=0).fit(torus)
    assert f"forecast: {fit.forecast_}" in caplog.text
    assert ManifoldFactorizer().forecast(torus) == fit.forecast_


def test_a_resumed_fit_leaves_outliers_out_as_before(tmp_path, monkeypatch):
    monkeypatch.setattr("manifactor.runs.checkpoints.LONG", 0.0)
    X = np.vstack(
        [
            datasets.sample("torus", 1500, random_state=0)[0],
            [[40.0, 0, 0, 0], [0, 40.0, 0, 0]],
        ]
    )
    with warnings.catch_warnings(action="ignore"):
        fresh = ManifoldFactorizer(random_state=0)
        fresh._stages = Checkpoints(tmp_path)
        fresh.fit(X)
        (tmp_path / "spectrum.npz").unlink()
        again = ManifoldFactorizer(random_state=0)
        again._stages = Checkpoints(tmp_path, resume=True)
        again.fit(X)
    assert again.outliers_.sum() == fresh.outliers_.sum() == 2
    np.testing.assert_array_equal(again.coordinates(), fresh.coordinates())


def test_an_automatic_number_of_functions_is_not_taken_for_one_that_was_asked_for():
    X = np.repeat(datasets.sample("torus", 300, random_state=0)[0], 4, axis=0)
    fit = DiffusionMap(random_state=0).fit(X)
    assert fit.n_functions_ == 37
    assert fit.set_params(n_functions=100).fit(X).n_functions_ == 100


def test_settings_that_read_alike_have_other_fingerprints():
    assert fingerprint(2, 1, 110) != fingerprint(21, 1, 10)


def test_a_forecast_leaves_the_estimator_unfitted(torus):
    fit = ManifoldFactorizer()
    fit.forecast(torus)
    with pytest.raises(NotFittedError):
        fit.transform(torus)


def test_samples_that_change_after_the_fit_do_not_change_it(torus):
    mine = torus.copy()
    fit = ManifoldFactorizer(random_state=0).fit(mine)
    before = fit.transform(torus[:20])
    mine[:] = 99
    np.testing.assert_array_equal(fit.transform(torus[:20]), before)


def test_functions_that_do_not_fit_into_memory_are_not_computed_and_that_is_said(
    torus, monkeypatch, caplog
):
    fit = ManifoldFactorizer(random_state=0).fit(torus)
    diffusion = fit._diffusion(fit.spectrum_)
    assert (
        len(diffusion.grown(np.random.default_rng(0)).spectrum.eigenvalues)
        > fit.n_functions_
    )
    monkeypatch.setattr("manifactor.spectral.forecast.machine_memory", lambda: 1e6)
    assert diffusion.grown(np.random.default_rng(0)) is None
    assert "functions were called for and not computed" in caplog.text
