import numpy as np
import pytest

from manifactor import datasets
from manifactor.spectral.neighbors import neighbor_graph
from manifactor.spectral.search.cells import CellSettings
from manifactor.spectral.search.device import DeviceSearch

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch
ON_TORCH = "torch:cpu"  # the functions that run on a GPU, on the CPU


@pytest.fixture(scope="module")
def torus():
    return datasets.sample("torus", 2500, random_state=0)[0]


def test_both_sides_find_the_same_graph(torus):
    host = neighbor_graph(torus, 40)
    device = neighbor_graph(torus, 40, device=ON_TORCH)
    back = device.inverse
    np.testing.assert_allclose(
        device.distances.tocsr()[back][:, back].toarray(), host.distances.toarray(), rtol=1e-5
    )
    np.testing.assert_array_equal(np.sort(device.distinct), np.arange(2500))
    assert (device.method.value, device.recall) == ("cells", 1.0)


def test_copies_are_merged_as_on_the_host(torus):
    doubled = np.vstack([torus[:600], torus[:50]])
    host, device = (neighbor_graph(doubled, 20, device=device) for device in ("cpu", ON_TORCH))
    assert len(device.distinct) == len(host.distinct) == 600
    np.testing.assert_array_equal(device.inverse[600:], device.inverse[:50])
    np.testing.assert_array_equal(
        device.multiplicity[device.inverse], host.multiplicity[host.inverse]
    )


def test_new_samples_are_sought_on_the_device(torus):
    search = DeviceSearch(5, device="cpu").fit(torus)
    found = search.transform(torus[:7] + 0.01)
    exact = np.sort(np.linalg.norm(torus[:7, None] + 0.01 - torus, axis=2), axis=1)[:, :6]
    np.testing.assert_allclose(np.sort(found.data.reshape(7, 6), axis=1), exact, atol=1e-5)


def test_new_samples_far_from_the_origin_find_themselves(torus):
    far = torus[:200] + 1e6
    found = DeviceSearch(3, device="cpu").fit(far).transform(far)
    assert (found.data.reshape(200, 4).min(axis=1) == 0).all()
    assert DeviceSearch(3, device="cpu").fit(far.astype(np.float32)).transform(far).shape == (
        200,
        200,
    )


def test_steps_do_not_change_the_neighbours_of_new_samples(torus):
    small = CellSettings(distances_per_step=5000)
    stepped = DeviceSearch(5, device="cpu", settings=small).fit(torus)
    whole = DeviceSearch(5, device="cpu").fit(torus)
    assert (stepped.transform(torus[:9]) != whole.transform(torus[:9])).nnz == 0
