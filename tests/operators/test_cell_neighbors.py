import numpy as np
import pytest
from scipy.spatial import KDTree

from manifactor import datasets
from manifactor.operators.engines import cells
from manifactor.operators.engines.cells import DeviceSearch, QueryBatch, nearest
from manifactor.operators.neighbors import neighbor_graph

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch
ON_TORCH = "torch:cpu"  # the functions that run on a GPU, on the CPU


@pytest.fixture
def small(monkeypatch):
    """Cells so small that a few hundred samples fill many of them."""
    monkeypatch.setattr(cells, "SAMPLES_PER_CELL", 16)
    monkeypatch.setattr(cells, "FIRST_CELLS", 4)
    monkeypatch.setattr(cells, "QUERIES_PER_BLOCK", 8)


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def searches(monkeypatch):
    """The searches that were made: whether by differences alone, and of how many queries."""
    made = []
    searched = cells._searched

    def noted(search, rows):
        made.append((search.by_differences, len(rows)))
        return searched(search, rows)

    monkeypatch.setattr(cells, "_searched", noted)
    return made


def single(samples):
    return np.asarray(samples, dtype=np.float32)


def ring(rng, n):
    one, other = rng.uniform(0, 2 * np.pi, (2, n))
    return single(np.c_[3 * np.cos(one), 3 * np.sin(one), 2 * np.cos(other), 2 * np.sin(other)])


def assert_nearest(samples, k, *, rtol=1e-6):
    """All that `nearest` promises, against a tree in double precision; returns what it gave."""
    n = len(samples)
    found = nearest(torch.tensor(samples), k)
    distances, indices = (tensor.numpy() for tensor in found)
    samples = samples.astype(float)
    assert distances.dtype == np.float32
    assert indices.dtype == np.int64
    assert (np.diff(distances, axis=1) >= 0).all()
    assert (indices != np.arange(n)[:, None]).all()
    assert (np.diff(np.sort(indices, axis=1), axis=1) > 0).all()
    measured = np.linalg.norm(samples[:, None] - samples[indices], axis=2)
    np.testing.assert_allclose(distances, measured, rtol=rtol)
    expected = KDTree(samples).query(samples, k + 1)[0][:, 1:]
    np.testing.assert_allclose(distances, expected, rtol=rtol)
    return distances, indices


def test_neighbours_on_a_torus_are_those_of_a_tree(rng, searches):
    assert_nearest(ring(rng, 5000), 32)
    (_, first), _, (_, again), _ = searches
    assert (first, 0 < again < 2500) == (5000, True)


def knots(rng, n, size, width):
    return np.concatenate([c + width * rng.normal(size=(size, 3)) for c in rng.normal(size=(n, 3))])


def test_neighbours_in_knots_much_smaller_than_a_cell_are_told_apart_by_differences(rng, searches):
    assert_nearest(single(np.r_[rng.normal(size=(2000, 3)), knots(rng, 5, 90, 1e-4)]), 32)
    assert 0 < sum(queries for sharp, queries in searches if sharp) <= 450


def test_blurred_knots_are_told_apart_at_the_second_reach_too(rng, searches, small):
    assert_nearest(single(np.r_[rng.normal(size=(300, 3)), knots(rng, 10, 30, 1e-5)]), 8)
    assert [sharp for sharp, _ in searches] == [False, True, False, True]
    assert searches[3][1] > 0


def test_copies_are_neighbours_at_distance_zero(rng, small):
    distances, _ = assert_nearest(single(np.repeat(rng.normal(size=(150, 3)), 4, axis=0)), 6)
    assert (distances[:, :3] == 0).all()
    assert (distances[:, 3:] > 0).all()


@pytest.mark.parametrize("value", [0.0, 0.1, -1e6])
def test_samples_may_all_be_equal(value, searches):
    distances, _ = assert_nearest(np.full((700, 3), value, dtype=np.float32), 5)
    assert (distances == 0).all()
    assert sum(queries for _, queries in searches) == 0


@pytest.mark.parametrize(
    ("n", "columns", "k"), [(2, 3, 1), (40, 3, 39), (3000, 1, 10), (400, 3, 399), (1500, 40, 10)]
)
def test_neighbours_are_exact_for_any_number_of_samples_and_columns(rng, n, columns, k, small):
    assert_nearest(single(rng.normal(size=(n, columns))), k)


def uneven(rng):
    return [knots(rng, 1, rng.integers(3, 600), 10.0**k) for k in rng.integers(-5, 1, 12)]


def lattice(_):
    return np.stack(np.meshgrid(*[np.arange(9)] * 3), axis=-1).reshape(-1, 9, 3)


@pytest.mark.parametrize("samples", [uneven, lattice])
def test_neighbours_are_exact_at_any_density_and_among_ties(rng, samples, small):
    assert_nearest(single(np.concatenate(samples(rng))), 20)


def test_samples_of_double_precision_are_centred_before_they_are_rounded(rng):
    samples = rng.normal(size=(1500, 3)) + 1e6
    distances, _ = nearest(torch.tensor(samples), 8)
    expected = KDTree(samples).query(samples, 9)[0][:, 1:]
    np.testing.assert_allclose(distances.numpy(), expected, rtol=1e-4)


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_squares_neither_vanish_nor_overflow(rng, scale):
    samples = single(rng.normal(size=(300, 3)))
    unit, scaled = (nearest(torch.tensor(samples * np.float32(by)), 5) for by in (1, scale))
    np.testing.assert_allclose(scaled[0].numpy(), unit[0].numpy() * np.float32(scale), rtol=1e-4)
    assert torch.equal(scaled[1], unit[1])


def test_the_memory_of_a_step_does_not_change_the_answer(rng, monkeypatch):
    samples = torch.tensor(rng.normal(size=(110, 30)))
    whole = nearest(samples, 12)
    starts, widths = [], []
    candidates, measured = QueryBatch.candidates, cells._measured
    monkeypatch.setattr(
        QueryBatch, "candidates", lambda *args: starts.append(args[2]) or candidates(*args)
    )
    monkeypatch.setattr(
        cells, "_measured", lambda *args: widths.append(args[2].shape[1]) or measured(*args)
    )
    monkeypatch.setattr(cells, "CPU_STEP_BYTES", 2**17)
    tiled = nearest(samples, 12)
    assert max(starts) > 0, "the samples that a query meets came in several steps"
    assert set(widths) == {23}, "of which no more than the best were kept"
    assert torch.equal(tiled[1], whole[1])
    torch.testing.assert_close(tiled[0], whole[0], rtol=1e-6, atol=0)


def full_above(limit, sizes):
    """A device on which no step of more than `limit` bytes fits."""
    chosen = cells.choose_candidates

    def step(search, meeting, size):
        sizes.append(size)
        if size > limit:
            raise torch.OutOfMemoryError("out of memory")
        return chosen(search, meeting, size)

    return step


def test_a_device_too_full_for_the_smallest_step_says_what_to_do(monkeypatch):
    sizes: list[int] = []
    monkeypatch.setattr(cells, "choose_candidates", full_above(0, sizes))
    with pytest.raises(MemoryError, match="it was full even with steps of 4 MiB"):
        nearest(torch.arange(100.0)[:, None], 5)
    assert sizes[-1] == cells.LEAST_STEP_BYTES


@pytest.fixture(scope="module")
def torus():
    return datasets.sample("torus", 1500, random_state=0)[0]


def test_both_sides_find_the_same_graph(torus):
    host = neighbor_graph(torus, 40)
    device = neighbor_graph(torus, 40, device=ON_TORCH)
    back = device.inverse
    np.testing.assert_allclose(
        device.distances.tocsr()[back][:, back].toarray(), host.distances.toarray(), rtol=1e-5
    )
    np.testing.assert_array_equal(np.sort(device.distinct), np.arange(1500))
    assert (device.method.value, device.recall) == ("cells", 1.0)


def test_new_samples_are_sought_on_the_device_in_any_steps(torus, monkeypatch):
    search = DeviceSearch(5, device="cpu").fit(torus)
    found = search.transform(torus[:7] + 0.01)
    exact = np.sort(np.linalg.norm(torus[:7, None] + 0.01 - torus, axis=2), axis=1)[:, :6]
    np.testing.assert_allclose(np.sort(found.data.reshape(7, 6), axis=1), exact, atol=1e-5)
    monkeypatch.setattr(cells, "DISTANCES_PER_STEP", 5000)
    assert (search.transform(torus[:7] + 0.01) != found).nnz == 0
