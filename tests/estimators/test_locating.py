import warnings

import dask
import dask.array as da
import numpy as np
import pytest
import zarr
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from manifactor import DiffusionMap, ManifoldFactorizer, datasets
from manifactor.estimators.arrays import draw_count, draw_rows, rounded, take_by_chunks


@pytest.fixture(scope="module")
def fit(torus):
    return ManifoldFactorizer(2, sense="geometry", random_state=0).fit(torus[0][:700])


@pytest.fixture(scope="module")
def new():
    return datasets.sample("torus", 2000, random_state=1)[0]


def equal(places, others):
    pairs = zip(places, others, strict=True)
    return all(
        np.array_equal(one.embedding, other.embedding)
        and np.array_equal(one.coordinate, other.coordinate)
        for one, other in pairs
    )


def same(eager, lazy):
    pairs = zip(eager, dask.compute(*lazy, scheduler="sync"), strict=True)
    return all(np.array_equal(one, other) for one, other in pairs)


@pytest.mark.medium
def test_places_of_a_dask_array_are_lazy_and_those_of_its_samples(fit, new):
    lazy_samples = da.from_array(new, chunks=(777, 2))
    for placed, eager in zip(fit.locate(lazy_samples), fit.locate(new), strict=True):
        assert placed.coordinate.chunks == ((777, 777, 446),)
        assert placed.embedding.shape == (2000, 2)
        assert placed.confidence.dtype == np.float64
        assert same(eager, placed)
    for method in (fit.transform, fit.coordinates):
        expected = method(new)
        assert method(lazy_samples).shape == expected.shape
        assert method(lazy_samples.astype(np.float32)).dtype == np.float32
        np.testing.assert_allclose(method(lazy_samples).compute(), expected, atol=1e-9)


@pytest.mark.medium
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.nan, "the first in row 1810, column 1"),
        # Its square overflows.
        (1e151, r"in row 1810, column 1[.] Such a number is a"),
    ],
)
@pytest.mark.parametrize("method", ["locate", "transform", "coordinates"])
def test_a_wrong_value_is_named_by_its_row_in_the_array(fit, new, method, value, message):
    wrong = new.copy()
    wrong[1810, 1] = value
    for X in (wrong, da.from_array(wrong, chunks=(777, 4))):
        with pytest.raises(ValueError, match=message):
            dask.compute(getattr(fit, method)(X), scheduler="sync")


class Frame:
    def __dask_graph__(self):
        return {}


@pytest.mark.medium
def test_what_is_no_table_of_the_fit_s_columns_is_refused_at_once(fit, new):
    lazy = da.from_array(new, chunks=(500, 4))
    for X, message in [
        (lazy[:, :3], "expecting 4 features"),
        (lazy[:, 0], "must have one sample a row"),
        (Frame(), r"X\.to_dask_array"),
        (3.0, "Expected 2D array"),
        (None, "Expected 2D array|could not convert"),
        ("abc", "Expected 2D array|could not convert"),
        ([1.0, 2.0], "Expected 2D array"),
        (np.ma.array(new, mask=new > 0), "`X` must not have masked values; got"),
    ]:
        with pytest.raises(ValueError, match=message):
            fit.locate(X)
    with pytest.raises(ValueError, match=r"X\.to_dask_array"):
        ManifoldFactorizer().fit(Frame())
    with pytest.raises(ValueError, match=r"Call X.compute_chunk_sizes\(\) first"):
        ManifoldFactorizer().fit(lazy[lazy[:, 0] > 0])
    for method in (fit.locate, fit.transform, fit.coordinates):
        with pytest.raises(ValueError, match=r"0 sample\(s\)"):
            method(new[:0])
    assert equal(fit.locate(np.ma.array(new)), fit.locate(new))


@pytest.mark.slow
def test_a_part_of_an_array_outside_of_memory_is_drawn_and_fitted(new, tmp_path):
    stored = zarr.create_array(tmp_path / "a.zarr", shape=new.shape, chunks=(300, 4), dtype="f8")
    stored[:] = new
    lazy = da.from_array(new, chunks=(777, 2))
    geometry = ManifoldFactorizer(sense="geometry", random_state=0)
    fits = [clone(geometry).fit(X, fit_samples=500) for X in (lazy, stored)]
    rows = fits[0].rows_
    assert len(rows) == 500
    assert (np.diff(rows) > 0).all()
    whole = clone(geometry).fit(new[rows])
    assert whole.rows_ is None
    for fit in fits:
        np.testing.assert_array_equal(fit.rows_, rows)
        np.testing.assert_array_equal(fit.coordinates(), whole.coordinates())
    assert all(map(same, whole.locate(new), fits[1].locate(stored)))


def test_samples_too_large_for_memory_are_refused_before_they_are_read(monkeypatch):
    def unread(block):
        raise AssertionError("samples were read")

    lazy = da.zeros((30_000, 8), chunks=(1000, 8)).map_blocks(unread, meta=np.zeros(0))
    monkeypatch.setattr("manifactor.operators.forecast.available_memory", lambda: 1e8)
    with pytest.raises(MemoryError, match=r"20000 samples need .*`fit_samples=\d+`"):
        ManifoldFactorizer(random_state=0).fit(lazy)
    wide = da.zeros((30_000, 10**6), chunks=(1000, 10**6))
    monkeypatch.setattr("manifactor.operators.forecast.available_memory", lambda: 1e10)
    with pytest.raises(MemoryError, match="20000 samples need about 320"):
        ManifoldFactorizer(random_state=0).fit(wide)


@pytest.mark.parametrize("method", ["locate", "transform", "coordinates", "locator"])
def test_nothing_is_placed_before_the_fit(new, method):
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        getattr(ManifoldFactorizer(), method)(new)


def test_data_frames_are_located_by_the_names_of_their_columns(rectangle):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(rectangle[0][:300]).add_prefix("column ")
    fit = ManifoldFactorizer(1, random_state=0).fit(table)
    with warnings.catch_warnings(action="error"):
        placed = fit.locate(table)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        again = fit.locate(table.to_numpy())
    assert equal(placed, again)
    with pytest.raises(ValueError, match="unseen at fit time:\n- other 0"):
        fit.locate(table.rename(columns={"column 0": "other 0"}))


# Single precision in, single precision out; the numbers are those of double.


def test_fit_transform_keeps_the_precision_and_the_fit_is_that_of_double(torus):
    single = torus[0][:300].astype(np.float32)
    fits = [DiffusionMap(5, random_state=0) for _ in range(2)]
    functions, double = (
        fit.fit_transform(X)
        for fit, X in zip(fits, (single, single.astype(np.float64)), strict=True)
    )
    assert (functions.dtype, double.dtype) == (np.float32, np.float64)
    np.testing.assert_array_equal(functions, double.astype(np.float32))
    np.testing.assert_array_equal(*(fit.spectrum_.eigenvalues for fit in fits))


def test_an_angle_stays_below_a_whole_turn_when_it_is_rounded():
    angles = np.array([0.0, 3.0, np.nextafter(2 * np.pi, 0)])
    single = rounded(angles, "circle", np.float32)
    assert float(np.float32(angles[2])) > 2 * np.pi
    np.testing.assert_array_equal(single, np.array([0, 3, 0], np.float32))
    np.testing.assert_array_equal(rounded(angles, "circle", np.float64), angles)


def test_the_number_of_samples_drawn_depends_on_the_data_and_the_caller_only():
    assert draw_count("auto", 10**9) == 20_000
    assert draw_count("auto", 300) == 300
    assert draw_count(70_000, 10**9) == 70_000
    assert draw_count("all", 30_000) == 30_000


def test_drawn_rows_ascend_and_chunks_without_any_are_not_read():
    rows = draw_rows(10**9, 3, np.random.default_rng(0))
    assert rows.tolist() == [511136479, 636961686, 850624224]
    X, read = np.arange(10.0), []

    def part(start, stop):
        read.append((start, stop))
        return X[start:stop]

    found = take_by_chunks(np.array([1, 7]), np.array([0, 3, 5, 10]), part)
    assert found.tolist() == [1, 7]
    assert read == [(1, 2), (7, 8)]
