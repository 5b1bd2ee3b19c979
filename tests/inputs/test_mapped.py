"""Rows of memory-mapped arrays, read from their files."""

import numpy as np
import pytest

from manifactor.tables.stores import MappedSettings, in_memory, read_rows


@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_are_those_of_the_array(tmp_path, rng, order):
    X = np.asarray(rng.normal(size=(50, 3)), order=order)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    some, few = mapped[5:30], mapped[:, 1:]
    np.testing.assert_array_equal(read_rows(mapped, 7, 20), X[7:20])
    np.testing.assert_array_equal(read_rows(mapped, 40, 60), X[40:])
    np.testing.assert_array_equal(read_rows(some, 2, 4), X[7:9])
    np.testing.assert_array_equal(read_rows(few, 2, 4), X[2:4, 1:])


def test_samples_stay_as_they_were_unless_they_are_very_many(tmp_path, rng):
    X = rng.normal(size=(50, 3))
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    found = in_memory(mapped)
    assert in_memory(mapped, settings=MappedSettings(most_read=10)) is mapped
    (tmp_path / "X.npy").write_bytes(b"")
    np.testing.assert_array_equal(found, X)
    with pytest.raises(ValueError, match=r"X\.npy became shorter while it was read"):
        in_memory(mapped)
