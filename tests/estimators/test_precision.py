"""Single precision in, single precision out; the numbers are those of double."""

import dask.array as da
import numpy as np
import pytest

from manifactor import DiffusionMap, ManifoldFactorizer, datasets, load, save
from manifactor.estimators.arrays import precision_of, rounded


@pytest.fixture(scope="module")
def fit(torus):
    return ManifoldFactorizer(random_state=0).fit(torus[0][:700])


@pytest.fixture(scope="module")
def new():
    return datasets.sample("torus", 200, random_state=1)[0].astype(np.float32)


def test_results_have_the_precision_of_the_samples(fit, new):
    for X, dtype in ((new, np.float32), (new.astype(np.float64), np.float64)):
        arrays = [part for placed in fit.locate(X) for part in placed]
        arrays += [fit.transform(X), fit.coordinates(X)]
        assert {array.dtype for array in arrays} == {np.dtype(dtype)}


def test_results_without_samples_have_the_precision_of_the_fit(fit, new, tmp_path):
    single = ManifoldFactorizer(2, random_state=0).fit(new)
    # Functions of the fit keep their digits, and so do files.
    assert {factor.coordinate.dtype for factor in single.factors_} == {np.dtype(np.float64)}
    save(single, tmp_path / "fit.npz")
    loaded = load(tmp_path / "fit.npz")
    cases = ((single, np.float32), (fit, np.float64), (loaded, np.float64))
    for each, dtype in cases:
        found = (each.coordinates(), each.along(0, 3), each.places_along(0, 3))
        assert {array.dtype for array in found} == {np.dtype(dtype)}
        assert (found[0] < 2 * np.pi).all()
    rounded = loaded.coordinates().astype(np.float32)
    np.testing.assert_array_equal(single.coordinates(), rounded)
    assert single.fit(new.astype(np.float64)).coordinates().dtype == np.float64


def test_numbers_are_rounded_only_at_the_end(fit, new):
    double = new.astype(np.float64)
    single = fit.transform(double).astype(np.float32)
    np.testing.assert_array_equal(fit.transform(new), single)
    for placed, expected in zip(fit.locate(new), fit.locate(double), strict=True):
        rounded = expected.embedding.astype(np.float32)
        np.testing.assert_array_equal(placed.embedding, rounded)
    # The function for many calls, by which files are written, does not round.
    for placed, expected in zip(fit.locator(len(new))(new), fit.locate(double), strict=True):
        np.testing.assert_array_equal(placed.coordinate, expected.coordinate)


def test_lazy_places_have_the_precision_that_they_say(fit, new):
    lazy = da.from_array(new, chunks=(90, 4))
    for array in (fit.transform(lazy), fit.locate(lazy)[0].coordinate):
        assert array.dtype == np.float32
        assert array.compute(scheduler="sync").dtype == np.float32


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


def test_a_data_frame_is_in_single_precision_if_all_columns_are():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"a": np.zeros(2, np.float32), "b": [1, 2]})
    assert precision_of(table) == np.float64
    assert precision_of(table[["a"]]) == np.float32
    assert precision_of([[1.0]]) == precision_of(np.ones((2, 2), int)) == np.float64
