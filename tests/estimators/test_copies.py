"""Copies of rows change nothing, however many there are of each."""

import numpy as np
import pytest

from manifactor import ManifoldFactorizer, datasets

pytestmark = pytest.mark.medium


def terms(rng):
    """A sum of a surface that is itself a product, and of a curve; one sample lies far off."""
    angle, u, v = rng.uniform(0, 2 * np.pi, 300), *rng.random((2, 300))
    X = np.column_stack([2 * np.cos(angle), 2 * np.sin(angle), u + v**2, 4 * v])
    X[7] += 20.0
    return X


TABLES = {"torus": lambda rng: datasets.sample("torus", 400, random_state=0)[0], "terms": terms}


@pytest.mark.parametrize("table", TABLES)
def test_copies_change_neither_verdict_nor_places_nor_numbers(table, rng):
    X = TABLES[table](rng)
    each = rng.integers(1, 6, size=len(X))
    copy_of = np.repeat(np.arange(len(X)), each)
    sense = "sum" if table == "terms" else "geometry"
    fits = [ManifoldFactorizer(sense=sense, random_state=0).fit(some) for some in (X, X[copy_of])]
    plain, copied = (fit.factorization_ for fit in fits)
    for one, other in zip(plain.factors, copied.factors, strict=True):
        np.testing.assert_array_equal(one.embedding[copy_of], other.embedding)
    assert plain.evidence.tests == copied.evidence.tests
    said = f"{len(copy_of) - len(X):,} of {len(copy_of):,} rows are copies of others"
    assert said in copied.evidence.explanation
    assert "copies" not in plain.evidence.explanation
    np.testing.assert_array_equal(fits[0].outliers_[copy_of], fits[1].outliers_)
    new = X[:40] * 1.001
    for one, other in zip(fits[0].locate(new), fits[1].locate(new), strict=True):
        np.testing.assert_allclose(one.embedding, other.embedding)
        np.testing.assert_allclose(one.confidence, other.confidence)
