"""`fit` on tables that are read and placed in parts."""

import os
import time

import numpy as np
import pyarrow.parquet as pq
import pytest
import zarr

from manifactor import datasets, load

from .conftest import interrupt_at, manifactor, record_of, refusal

N = 3000
FIT = "fit big.zarr --coordinates parquet --fit-samples 500 --out run"


@pytest.fixture
def store(folder):
    X, _ = datasets.sample("torus", N, random_state=0)
    array = zarr.create_array("big.zarr", shape=X.shape, chunks=(400, 4), dtype="f4")
    array[:] = X
    return array


@pytest.mark.slow
def test_a_store_is_fitted_in_part_placed_as_a_whole_and_shown(store, folder, capsys):
    assert manifactor(FIT) == 0
    said = capsys.readouterr().out
    assert "Verdict: product" in said
    assert "3,000 samples: 500 were fitted, the others placed beside them." in said
    assert "run/coordinates/part-*.parquet" in said
    record = record_of(folder / "run")
    assert record["n_samples"] == N
    assert record["choices"]["samples fitted"]["value"] == "500 of 3,000"
    assert record["reproduce"].endswith("--fit-samples 500 --coordinates parquet")
    table = pq.read_table("run/coordinates")
    np.testing.assert_array_equal(table["sample"].to_numpy(), np.arange(N))
    fit = load("run")
    assert len(fit.rows_) == 500
    # Files are in double precision, whatever that of the samples is.
    expected = np.degrees(fit.locate(np.asarray(store, dtype=float))[0].coordinate)
    np.testing.assert_allclose(table["factor1"].to_numpy(), expected, atol=1e-9)
    assert not list(folder.glob(".run*"))
    assert manifactor("report run") == 0
    assert (folder / "run" / "report.html").is_file()
    assert manifactor("select run --factor 1 --range 350 20 --out s.csv") == 0
    assert "of 3000 samples" in capsys.readouterr().out
    assert "in parts. Use report" in refusal("average run --factor 1", folder, capsys)
    selecting = "select run --factor 1 --range 350 20 --overwrite --out"
    text = refusal(f"{selecting} big.zarr/s.parquet", folder, capsys)
    assert "is the input of the run and is not replaced" in text


@pytest.mark.slow
def test_an_interrupted_run_goes_on_with_the_fit_that_it_has(store, folder, monkeypatch, capsys):
    with monkeypatch.context() as patched:
        interrupt_at("places", 0.0, patched)
        assert manifactor(FIT) == 130
    assert "--resume to continue" in capsys.readouterr().err
    assert not (folder / "run").exists()
    before = (folder / ".run.stages" / "fit.npz").stat().st_mtime_ns
    assert manifactor(f"{FIT} --seed 1 --resume") == 2
    assert "must belong to this fit" in capsys.readouterr().err
    assert (folder / ".run.stages" / "fit.npz").stat().st_mtime_ns == before
    changed = next((folder / "big.zarr" / "c").rglob("0"))
    was = changed.stat()
    os.utime(changed, ns=(was.st_atime_ns, time.time_ns()))
    assert manifactor(f"{FIT} --resume") == 2
    assert "must belong to this fit" in capsys.readouterr().err
    os.utime(changed, ns=(was.st_atime_ns, was.st_mtime_ns))
    with monkeypatch.context() as patched:
        patched.setattr("manifactor.runs.task.fit_input", None)
        assert manifactor(f"{FIT} --resume") == 0
    assert len(pq.read_table("run/coordinates")) == N
    assert not list(folder.glob(".run*"))


@pytest.mark.slow
def test_columns_are_scaled_by_the_samples_that_were_drawn(store, folder):
    scale = np.array([1.0, 1.0, 30.0, 30.0])
    X = np.asarray(store[:]) * scale
    np.save("X.npy", X.astype(np.float32))
    line = "fit X.npy --coordinates parquet --fit-samples 500 --standardise --out run"
    assert manifactor(line) == 0
    columns = record_of(folder / "run")["columns"]
    drawn = X[load("run").rows_]
    np.testing.assert_allclose(columns["scale"], drawn.std(axis=0), rtol=1e-5)
    places = pq.read_table("run/coordinates")["factor1"].to_numpy()
    scaled = (X - columns["mean"]) / columns["scale"]
    expected = np.degrees(load("run").coordinates(scaled)[:, 0])
    off = np.abs(places - expected)
    assert np.minimum(off, 360 - off).max() < 1e-3


def test_what_needs_the_whole_table_is_refused(store, folder, capsys):
    (folder / "p.star").touch()
    text = refusal(f"{FIT} --particles p.star", folder, capsys)
    assert "that is read in parts; got big.zarr. Add --coordinates csv" in text
    (folder / "a.csv").write_text("1,2\n")
    text = refusal("fit a.csv --coordinates parquet --out run", folder, capsys)
    assert "of which rows are read; got a.csv. Leave it out." in text
