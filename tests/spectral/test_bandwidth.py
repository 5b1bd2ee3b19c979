import numpy as np
import pytest
import scipy.sparse as sp

from manifactor import datasets
from manifactor._support.parameters import given
from manifactor.spectral.kernel import (
    BandwidthSettings,
    choose_bandwidth,
    dimension_from_slope,
    kernel_slopes,
    local_scale,
    rescale,
)
from manifactor.spectral.neighbors import neighbor_graph


@pytest.mark.parametrize(
    ("shape", "dimension"),
    [
        ("equal_torus", 2),
        ("sphere", 2),
        ("sphere3", 3),
        ("rectangle", 2),
        ("sphere_sphere", 4),
        ("equal_torus3", 3),
    ],
)
def test_the_dimension_is_read_off_the_slope(shape, dimension):
    X, _ = datasets.sample(shape, 2000, random_state=0)
    found = choose_bandwidth(neighbor_graph(X, 64).distances).dimension
    assert found == pytest.approx(dimension, abs=0.3)


def test_without_a_cut_the_dimension_is_twice_the_slope():
    assert dimension_from_slope(1.0, 1e9) == pytest.approx(2.0, rel=0.02)


def test_bins_of_distances_give_the_slope_of_the_distances(rng):
    squared = rng.uniform(size=5000)
    candidates = np.array([0.05, 0.3, 2.0])
    u = squared / candidates[:, None]
    exact = (u * np.exp(-u)).sum(axis=1) / (100 + np.exp(-u).sum(axis=1))
    np.testing.assert_allclose(kernel_slopes(squared, candidates, 100), exact, rtol=1e-3)


def test_bandwidth_scales_with_the_square_of_the_unit(rectangle):
    X, _ = rectangle
    one, other = (choose_bandwidth(neighbor_graph(scale * X, 32).distances) for scale in (1.0, 1e6))
    assert other.value == pytest.approx(1e12 * one.value, rel=1e-9)
    assert other.dimension == pytest.approx(one.dimension, rel=1e-9)


def test_the_bandwidth_reaches_the_neighbours_of_sparse_samples(rng):
    X = rng.uniform(size=(2000, 2)) ** 2  # a hundred times denser in one corner
    distances = neighbor_graph(X, 64).distances
    found = choose_bandwidth(distances)
    assert np.mean(local_scale(distances) ** 2 <= found.value) >= 0.94
    assert found.value > found.candidates[np.argmax(found.slopes)]
    assert found.choice.why == (
        "wider than the steepest point of the curve, to reach the 8th neighbour of "
        "95% of the samples"
    )


def test_the_bandwidth_of_even_samples_is_the_steepest_point_of_the_curve():
    angle = np.linspace(0, 2 * np.pi, 1000, endpoint=False)
    X = np.c_[np.cos(angle), np.sin(angle)]
    found = choose_bandwidth(neighbor_graph(X, 64).distances)
    assert found.value == found.candidates[np.argmax(found.slopes)]
    assert found.choice.why.startswith("the steepest point of the curve")


def test_a_bandwidth_of_the_caller_s_is_kept():
    X, _ = datasets.sample("torus", 500, random_state=0)
    distances = neighbor_graph(X, 30).distances
    kept, automatic = (
        choose_bandwidth(distances, bandwidth=bandwidth) for bandwidth in (2, "auto")
    )
    assert kept.choice == given(2.0)
    assert kept.dimension == automatic.dimension


def test_a_local_bandwidth_names_the_neighbour_that_scales():
    X, _ = datasets.sample("torus", 500, random_state=0)
    settings = BandwidthSettings(scale_neighbor=5)
    found = choose_bandwidth(neighbor_graph(X, 30).distances, bandwidth="local", settings=settings)
    assert "scaled by those to the 5th neighbours" in found.choice.why


def test_a_sample_s_scale_is_the_distance_to_one_of_its_neighbours():
    rows = [[0, 3, 1, 2], [0, 0, 5, 0], [7, 0, 0, 9]]
    distances = sp.csr_array(np.array(rows, dtype=float))
    assert local_scale(distances, neighbor=2).tolist() == [2, 5, 9]
    doubled = rescale(distances, np.full(3, 2.0), np.full(4, 8.0))
    np.testing.assert_allclose(doubled.data, 2 * distances.data)


def test_a_sample_without_neighbours_has_no_scale():
    with pytest.raises(ValueError, match=r"must have a neighbour .* 1 have none"):
        local_scale(sp.csr_array(np.array([[0.0, 1.0], [0.0, 0.0]])))
