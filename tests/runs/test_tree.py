import numpy as np
import pytest
import scipy.sparse as sp

from manifactor import datasets
from manifactor._support.parameters import Choice
from manifactor.factoring.factorize import factorize
from manifactor.runs.archive import read_tree, write_tree
from manifactor.spectral.pipeline import diffuse, kept_stages


def test_records_arrays_and_plain_values_come_back(tmp_path):
    value = (Choice(3, "so"), {"a": np.arange(4), "b": None}, [1.5, True, "text"])
    write_tree(tmp_path / "tree.npz", value)
    choice, arrays, plain = read_tree(tmp_path / "tree.npz")
    assert choice == Choice(3, "so")
    np.testing.assert_array_equal(arrays["a"], np.arange(4))
    assert arrays["b"] is None
    assert plain == (1.5, True, "text")


@pytest.mark.slow
def test_a_diffusion_with_parts_comes_back_and_gives_the_same_factors(tmp_path, monkeypatch):
    X, _ = datasets.sample("torus", 1500, random_state=0)
    monkeypatch.setattr("manifactor.spectral.pipeline.PARTED_ABOVE", 1200)
    monkeypatch.setattr("manifactor.spectral.laplacian.SMALLEST_PART", 600)
    before = diffuse(X, rng=np.random.default_rng(0))
    write_tree(tmp_path / "diffusion.npz", before)
    after = read_tree(tmp_path / "diffusion.npz")
    one, two = (factorize(d, rng=np.random.default_rng(0)) for d in (before, after))
    np.testing.assert_array_equal(one.factors[0].embedding, two.factors[0].embedding)
    # Nothing is computed again from what was kept.
    stages = kept_stages(after)
    diffuse(X, stages=stages, rng=np.random.default_rng(1))
    assert stages.timings == {}


def test_a_value_that_would_not_come_back_is_refused(tmp_path):
    with pytest.raises(TypeError, match="`value/0` cannot be archived; got set"):
        write_tree(tmp_path / "tree.npz", ({1, 2},))
    assert not list(tmp_path.iterdir())
    write_tree(tmp_path / "tree.npz", (np.True_, np.int64(3)))
    assert read_tree(tmp_path / "tree.npz") == (True, 3)


@pytest.mark.parametrize("rows", [[0, 2, 1, 0], [0, 3, 2, 4], [0, 2, 4, 5]])
def test_a_matrix_whose_rows_cannot_be_is_refused(tmp_path, rows):
    matrix = sp.csr_array(np.eye(3)[[0, 1, 1]] + np.eye(3)[[0, 0, 1]])
    matrix.indptr = np.array(rows, matrix.indptr.dtype)
    write_tree(tmp_path / "matrix.npz", matrix)
    with pytest.raises(ValueError, match=r"matrix\.npz"):
        read_tree(tmp_path / "matrix.npz")
