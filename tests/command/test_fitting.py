"""`fit` on samples: what it writes, says, keeps and reuses."""

import csv
import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest
import zarr

from manifactor import datasets, factorize, load
from manifactor._support.threads import cores
from manifactor.runs.run import open_run

from .conftest import interrupt_at, manifactor, record_of, refusal


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A table and its run, made once."""
    folder = tmp_path_factory.mktemp("fitted")
    assert manifactor(f"simulate rectangle --n 400 --seed 1 --out {folder}/data.npz") == 0
    assert manifactor(f"fit {folder}/data.npz --out {folder}/data-run --seed 4") == 0
    return folder


@pytest.fixture
def again(fitted, folder):
    """A copy of both, in the current folder."""
    shutil.copytree(fitted, folder, dirs_exist_ok=True)
    return folder


@pytest.mark.slow
def test_a_run_is_replaced_only_when_told_and_the_same_seed_gives_the_same(again, capsys):
    before = (again / "data-run" / "coordinates.csv").read_bytes()
    neighbors = record_of(again / "data-run")["neighbors"]
    assert neighbors == {"search": "kd_tree", "count": 64, "recall": 1.0}
    assert "pass --overwrite" in refusal("fit data.npz", again, capsys)
    # Checkpoints of an interrupted fit are not deleted in silence.
    (again / ".data-run.stages").mkdir()
    assert manifactor("fit data.npz --seed 4 --overwrite") == 0
    assert "note: deleting the checkpoints" in capsys.readouterr().err
    assert not (again / ".data-run.stages").exists()
    assert (again / "data-run" / "coordinates.csv").read_bytes() == before


@pytest.mark.slow
def test_another_candidate_is_returned_by_its_number(folder, capsys, monkeypatch):
    X, _ = datasets.sample("vase", 700, random_state=0)
    np.save(folder / "vase.npy", X)
    # A sure result would end the search.
    monkeypatch.setattr(factorize, "is_sure", lambda candidate: False)
    assert manifactor("fit vase.npy --out usual") == 0
    listed = record_of(folder / "usual")["candidates"]
    k = next(k for k, each in enumerate(listed) if k and each["n_factors"] > 1)
    assert manifactor(f"fit vase.npy --candidate {k} --out chosen") == 0
    chosen = record_of(folder / "chosen")
    assert len(chosen["factors"]) == listed[k]["n_factors"]
    assert chosen["probability"] == pytest.approx(listed[k]["probability"])
    # Unsure results are printed with the list.
    unsure = chosen["verdict"] in ("partial", "none")
    assert ("--candidate K" in capsys.readouterr().out.rpartition("Verdict:")[2]) == unsure
    assert "whole number of at least 0" in refusal("fit vase.npy --candidate -1", folder, capsys)
    assert "--candidate must be" in refusal("fit vase.npy --candidate 99", folder, capsys)


def test_a_dry_run_says_what_it_costs_and_writes_nothing(data, folder, capsys):
    shutil.copy(data, folder / "other.npz")
    assert manifactor("fit data.npz --dry-run") == 0
    assert manifactor("fit data.npz other.npz --dry-run --fit-samples 400") == 0
    one, several = capsys.readouterr().out.splitlines()
    assert one == "The fit will take about 0.3 GB."
    assert several.startswith("The fit will take about 0.2 GB, 0.")
    assert several.endswith(" workers.") or cores() == 1
    assert sorted(path.name for path in folder.iterdir()) == ["data.npz", "other.npz"]


# Interrupts.


def test_an_interrupt_gives_130_and_leaves_nothing(data, folder, capsys, monkeypatch):
    interrupt_at("spectrum", 0.0, monkeypatch)
    before = sorted(folder.iterdir())
    assert manifactor("fit data.npz") == 130
    assert "interrupted; no partial output was left" in capsys.readouterr().err
    assert sorted(folder.iterdir()) == before


# Tables: which columns are used, how they are scaled, what is said of them.


@pytest.fixture
def table(folder, rng):
    """A rectangle whose sides are in other units, with an id, a label and a constant."""
    X = rng.uniform(size=(400, 2)) * [1.6, 1]
    with (folder / "a.csv").open("w") as file:
        file.write("id,length,width,mass,kind\n")
        for i, (length, width) in enumerate(X):
            file.write(f"s{i},{length},{1000 * width},3,{i % 4}\n")
    return X


def test_suspicious_columns_are_named_before_the_verdict(table, folder, capsys):
    assert manifactor("fit a.csv --sense geometry --out run") == 0
    said = capsys.readouterr()
    assert "warning: columns that hold text were left out: 'id'." in said.err
    assert "note: 1 of 4 columns are constant" in said.err
    assert "the first is column 'mass'" in said.err
    assert "Column 'kind' holds a few whole numbers, as a label does" in said.err
    assert "Columns 'length' and 'width' differ in scale" in said.out
    columns = record_of(folder / "run")["columns"]
    assert columns["names"] == ["length", "width", "mass", "kind"]
    assert columns["numbers"] == [1, 2, 3, 4]
    assert columns["scale"] is None


@pytest.mark.slow
def test_chosen_and_scaled_columns_show_the_product_and_place_other_tables(
    table, folder, capsys, undrawn
):
    assert manifactor("fit a.csv --drop id,3-4 --standardise --out run") == 0
    assert "Two factors were found, two intervals" in capsys.readouterr().out
    record = record_of(folder / "run")
    assert record["columns"]["names"] == ["length", "width"]
    assert record["reproduce"].endswith("a.csv --drop id,3-4 --standardise")
    with (folder / "run" / "loadings.csv").open() as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["column", "factor1", "factor2", "factor1_factor2", "noise"]
    assert [row[0] for row in rows[1:]] == ["length", "width"]
    assert manifactor("report run --out page.html") == 0
    assert (folder / "page.html").is_file()
    assert not (folder / "run" / "report.html").exists()
    assert "2 of 5: length, width; each to unit variance" in capsys.readouterr().out
    run, fit = open_run("run"), load("run")
    np.testing.assert_allclose(run.samples().std(axis=0), 1)
    rows = [f"{1000 * width},{length}" for length, width in table[:5]]
    (folder / "new.csv").write_text("\n".join(["width,length", *rows]))
    found = fit.coordinates(run.read("new.csv"))
    np.testing.assert_allclose(found, fit.coordinates()[:5], atol=1e-6)


# Tables that are read and placed in parts.

N = 1500
FIT = "fit big.zarr --coordinates parquet --fit-samples 500 --sense geometry --out run"


@pytest.fixture
def store(folder):
    X, _ = datasets.sample("torus", N, random_state=0)
    array = zarr.create_array("big.zarr", shape=X.shape, chunks=(400, 4), dtype="f4")
    array[:] = X
    return np.asarray(X, np.float32)


@pytest.mark.slow
def test_a_store_is_fitted_in_part_placed_as_a_whole_and_shown(store, folder, capsys, undrawn):
    assert manifactor(FIT) == 0
    said = capsys.readouterr().out
    assert "two circles" in said
    assert "1,500 samples: 500 were fitted, the others placed beside them." in said
    assert "run/coordinates/part-*.parquet" in said
    record = record_of(folder / "run")
    assert record["n_samples"] == N
    assert record["choices"]["samples fitted"]["value"] == "500 of 1,500"
    table = pq.read_table("run/coordinates")
    np.testing.assert_array_equal(table["sample"].to_numpy(), np.arange(N))
    fit = load("run")
    assert len(fit.rows_) == 500
    # Files are in double precision, whatever that of the samples is.
    expected = np.degrees(fit.locate(store.astype(float))[0].coordinate)
    np.testing.assert_allclose(table["factor1"].to_numpy(), expected, atol=1e-9)
    assert manifactor("report run") == 0
    assert manifactor("select run --factor 1 --range 350 20 --out s.csv") == 0
    assert "of 1500 samples" in capsys.readouterr().out
    assert "in parts. Use report" in refusal("average run --factor 1", folder, capsys)
    text = refusal("select run --overwrite --out big.zarr/s.parquet", folder, capsys)
    assert "is the input of the run and is not replaced" in text
