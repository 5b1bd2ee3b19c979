"""Graphs, spectra and fits on a device."""

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

from manifactor import DiffusionMap, ManifoldFactorizer, datasets, load, save
from manifactor.operators.engines.blocks import DeviceOperator
from manifactor.operators.engines.gpu import device_memory, require_device, resident, settled
from manifactor.operators.kernel import affinity
from manifactor.operators.laplacian import laplacian_spectrum
from manifactor.operators.neighbors import neighbor_graph

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch
ON_TORCH = "torch:cpu"  # the functions that run on a GPU, on the CPU


@pytest.fixture(scope="module")
def torus():
    return datasets.sample("torus", 1600, random_state=0)[0]


@pytest.fixture(scope="module")
def graphs(torus):
    """The same graph on both sides; on the device, samples are in an order of its own."""
    return neighbor_graph(torus, 40), neighbor_graph(torus, 40, device=ON_TORCH)


def test_both_sides_make_the_same_walk(graphs):
    host, device = affinity(graphs[0]), affinity(graphs[1])
    assert device.bandwidth.value == pytest.approx(host.bandwidth.value, rel=1e-5)
    host, device = (affinity(graph, bandwidth=0.05) for graph in graphs)
    assert device.step == pytest.approx(host.step, rel=1e-5)
    back = graphs[1].inverse
    np.testing.assert_allclose(device.degree[back], host.degree, rtol=1e-5)
    np.testing.assert_allclose(
        settled(device.kernel)[back][:, back].toarray(), host.kernel.toarray(), atol=1e-5
    )


@pytest.mark.slow
def test_both_sides_have_the_same_spectrum(graphs):
    host, device = (affinity(graph, bandwidth=0.05) for graph in graphs)
    host, device = (
        laplacian_spectrum(walk, 30, solver="chebyshev", rng=np.random.default_rng(0))
        for walk in (host, device)
    )
    np.testing.assert_allclose(device.eigenvalues, host.eigenvalues, rtol=1e-4, atol=1e-4)
    overlap = device.functions[graphs[1].inverse].T @ (host.weights[:, None] * host.functions)
    assert (np.linalg.svd(overlap[:25])[1] > 0.999).all()
    assert device.residuals.max() < 1e-4


def test_products_are_the_same_on_both_sides(graphs):
    spectrum = laplacian_spectrum(affinity(graphs[1]), 12, rng=np.random.default_rng(0))
    host, rng = settled(spectrum), np.random.default_rng(1)
    left, right = rng.normal(size=(2, 12, 3))
    near = rng.integers(1600, size=(7, 5))
    weights = rng.normal(size=(7, 2, 5))
    assert spectrum.resident is not None
    for one, other in zip(
        spectrum.triple_products(left, right), host.triple_products(left, right), strict=True
    ):
        np.testing.assert_allclose(one, other, atol=1e-10)
    np.testing.assert_allclose(spectrum.combined(left), host.combined(left), atol=1e-10)
    np.testing.assert_allclose(
        spectrum.local_products(near, weights), host.local_products(near, weights), atol=1e-10
    )
    np.testing.assert_allclose(
        host.local_products(near, weights)[3], weights[3] @ host.functions[near[3]]
    )


def test_rows_of_a_resident_matrix_are_those_of_its_copy(graphs):
    walk = affinity(graphs[1])
    rows = np.array([3, 1000, 17])
    np.testing.assert_allclose(walk.kernel[rows].toarray(), settled(walk.kernel)[rows].toarray())


def test_pieces_of_a_graph_are_counted(graphs, torus):
    whole = graphs[0].distances
    for n in (400, 1600):
        part = whole[:n][:, :n]
        assert resident(part, "cpu").components() == connected_components(part, directed=False)[0]


@pytest.mark.slow
def test_a_fit_on_a_device_factors_places_and_saves_like_any_other(torus, tmp_path):
    fit = ManifoldFactorizer(device=ON_TORCH, sense="geometry", random_state=0).fit(torus)
    assert fit.verdict_ == "product"
    assert [factor.topology for factor in fit.factors_] == ["circle", "circle"]
    placed = fit.transform(torus[:50])
    embedding = np.hstack([f.embedding for f in fit.factors_])
    np.testing.assert_allclose(placed, embedding[:50], atol=1e-3)
    save(fit, tmp_path / "fit.npz")
    again = load(tmp_path / "fit.npz")
    np.testing.assert_allclose(again.transform(torus[:50]), placed, atol=1e-5)


def test_a_full_device_is_a_clear_error():
    with pytest.raises(MemoryError, match=r"device's memory; it is full .*use"), device_memory():
        raise torch.OutOfMemoryError("CUDA out of memory.")


@pytest.mark.slow
def test_products_are_made_in_fewer_columns_where_memory_is_short(graphs, monkeypatch):
    operator = DeviceOperator(affinity(graphs[1]).normalized())
    block = operator.random(40, np.random.default_rng(0))
    whole, made = operator.product(block), []

    class Short:
        def __init__(self, matrix):
            self.matrix = matrix

        def __matmul__(self, block):
            if block.shape[1] > 12:
                raise torch.OutOfMemoryError("full")
            made.append(block.shape[1])
            return self.matrix @ block

    operator._matrix = {name: Short(matrix) for name, matrix in operator._matrix.items()}
    torch.testing.assert_close(operator.product(block), whole)
    assert made == [10, 10, 10, 10]


def test_direct_solvers_are_for_the_host(torus):
    with pytest.raises(ValueError, match="`solver` must be one of 'auto', 'chebyshev'"):
        DiffusionMap(device=ON_TORCH, solver="dense").fit(torus)


def test_a_device_that_cannot_be_used_says_why(monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("CUDA out of memory. Tried 2 MiB.\nMore")

    monkeypatch.setattr(torch, "empty", fail)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    with pytest.raises(ValueError, match=r"'cuda': CUDA out of memory. On .* finds 'cpu', 'cuda'"):
        require_device("cuda")
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    with pytest.raises(ValueError, match=r"pip install 'manifactor\[gpu\]'"):
        require_device("cuda")
