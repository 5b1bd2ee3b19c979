import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zarr

from manifactor import ManifoldFactorizer, datasets
from manifactor._support.workers import Here
from manifactor.runs import folder
from manifactor.runs.archive import save
from manifactor.runs.folder import part_ranges, place_in_parts, write_run
from manifactor.runs.run import open_run, select_from_parts
from manifactor.tables.stores import stored_table

N = 2600


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(folder, "MOST_ROWS", 1000)


@pytest.fixture(scope="module")
def fitted():
    X = datasets.sample("torus", N, random_state=0)[0].astype(np.float32)
    return X, ManifoldFactorizer(random_state=0).fit(X[::4])


def stored(X, path):
    array = zarr.create_array(path, shape=X.shape, chunks=(200, 4), dtype=X.dtype)
    array[:] = X
    return stored_table(path)


@pytest.fixture
def placed(fitted, tmp_path):
    """A run in three parts, beside its input."""
    X, fit = fitted
    table = stored(X, tmp_path / "X.zarr")
    save(fit, tmp_path / "fit.npz")
    folder = tmp_path / "coordinates"
    n_parts = place_in_parts(tmp_path / "fit.npz", table, folder)
    record = {"input": str(tmp_path / "X.zarr"), "n_samples": N, "n_fitted": 650}
    record |= {"parts": n_parts, "columns": table.columns.record}
    write_run(fit, tmp_path / "run", record=record, parts=folder)
    return tmp_path / "run"


def test_parts_are_whole_chunks_unless_these_are_too_large(monkeypatch):
    monkeypatch.setattr(folder, "MOST_ROWS", 10)
    monkeypatch.setattr(folder, "MOST_NUMBERS", 60)
    assert part_ranges(np.arange(0, 25, 4), 3) == [(0, 8), (8, 16), (16, 24)]
    assert part_ranges(np.array([0, 15, 30]), 3) == [(0, 15), (15, 30)]
    assert part_ranges(np.array([0, 25]), 3) == [(0, 10), (10, 25)]


@pytest.mark.medium
def test_a_run_in_parts_has_the_places_of_all_samples(fitted, placed):
    X, fit = fitted
    assert not (placed / "coordinates.csv").exists()
    assert len(list((placed / "coordinates").iterdir())) == 3
    run = open_run(placed, some=True)
    assert not run.drawn
    np.testing.assert_array_equal(run.rows, np.arange(N))
    # In double precision, though the samples are in single.
    for place, expected in zip(run.places, fit.locator(N)(X), strict=True):
        np.testing.assert_allclose(place.coordinate, expected.coordinate, atol=1e-9)
        np.testing.assert_array_equal(place.confidence, expected.confidence)
    with pytest.raises(ValueError, match="reads the coordinates of all"):
        open_run(placed)


@pytest.mark.medium
def test_only_parts_that_are_missing_are_placed(fitted, tmp_path):
    X, fit = fitted
    table, folder = stored(X, tmp_path / "X.zarr"), tmp_path / "coordinates"
    save(fit, tmp_path / "fit.npz")

    class StopsAfterTwo(Here):
        def map(self, work, jobs, *, report):
            yield from super().map(work, jobs[:2], report=report)
            raise KeyboardInterrupt

    place = {"report": (seen := []).append}
    with pytest.raises(KeyboardInterrupt):
        place_in_parts(tmp_path / "fit.npz", table, folder, workers=StopsAfterTwo(), **place)
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert len(before) == 2
    assert place_in_parts(tmp_path / "fit.npz", table, folder, **place) == 3
    assert seen[-1] == 1
    assert len(list(folder.iterdir())) == 3
    assert all(path.stat().st_mtime_ns == then for path, then in before.items())


@pytest.mark.medium
def test_a_selection_is_that_of_a_run_in_one_table(placed, tmp_path):
    run = open_run(placed, some=True)
    inside = run.place(1).between(350, 20) & (run.places[1].confidence >= 0.5)
    for name in ("s.csv", "s.parquet"):
        out = tmp_path / name
        count, total = select_from_parts(placed, out, [(1, 350, 20)], least_confidence=0.5)
        assert (count, total) == (inside.sum(), N)
    samples = np.loadtxt(tmp_path / "s.csv", delimiter=",", skiprows=1)[:, 0]
    np.testing.assert_array_equal(samples, np.flatnonzero(inside))
    np.testing.assert_array_equal(pq.read_table(out)["sample"].to_numpy(), samples)


@pytest.mark.medium
def test_a_missing_or_damaged_part_is_named(placed):
    last = placed / "coordinates" / "part-00002.parquet"
    last.write_bytes(b"")
    with pytest.raises(ValueError, match=r"part-00002.parquet is damaged"):
        open_run(placed, some=True)
    first = placed / "coordinates" / "part-00000.parquet"
    for column in (["text"], [2.5], [N], [-1], [None]):
        table = {"sample": column, "factor1": [0.5], "factor1_confidence": [1.0]}
        table |= {"factor2": [0.5], "factor2_confidence": [1.0]}
        pq.write_table(pa.table(table), last)
        with pytest.raises(ValueError, match=r"part-00002.parquet is damaged"):
            open_run(placed, some=True)
    pq.write_table(pq.read_table(first).slice(0, 0), last)
    with pytest.raises(ValueError, match=r"damaged: it is empty"):
        open_run(placed, some=True)
    last.unlink()
    with pytest.raises(ValueError, match=r"part-00002.parquet is missing"):
        open_run(placed, some=True)
    assert json.loads((placed / "run.json").read_text())["parts"] == 3


def test_the_number_of_parts_is_compared_with_the_folder(placed):
    record = json.loads((placed / "run.json").read_text())
    missing, damaged = "part-00003.parquet is missing", "run.json is damaged: parts is {}"
    for count in (2**62, 4, 2, 0, -1):
        message = missing if count > 3 else damaged
        (placed / "run.json").write_text(json.dumps({**record, "parts": count}))
        with pytest.raises(ValueError, match=message.format(count)):
            open_run(placed, some=True)
