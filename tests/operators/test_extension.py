"""Functions at new samples, and the nearest samples of new ones."""

import numpy as np
import pytest
from scipy.spatial import KDTree

from manifactor import DiffusionMap, datasets
from manifactor.operators.extension import CombinedFunctions, NearestSamples, is_combinable


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings", [{}, {"bandwidth": "local"}, {"n_neighbors": "all"}, {"density_correction": 0.0}]
)
def test_extension_reproduces_the_training_functions(settings):
    X, _ = datasets.sample("torus", 800, random_state=0)
    fit = DiffusionMap(30, random_state=0, **settings).fit(X)
    again, exact = fit.transform(X), fit.spectrum_.functions[:, 1:]
    error = np.linalg.norm(again - exact, axis=0) / np.linalg.norm(exact, axis=0)
    assert error.max() < 1e-6


def test_extension_reproduces_training_functions_with_copies_and_bridges(rng):
    X = np.r_[rng.uniform(size=(200, 2)), rng.uniform(size=(150, 2)) + 5]
    X = np.r_[X, X[:30]]
    with pytest.warns(UserWarning, match="2 components"):
        fit = DiffusionMap(10, n_neighbors=10, random_state=0).fit(X)
    np.testing.assert_allclose(fit.transform(X), fit.spectrum_.functions[:, 1:], atol=1e-6)


@pytest.mark.medium
def test_extension_is_close_to_the_truth_at_new_samples():
    X, (angle, _) = datasets.sample("torus", 3000, random_state=0)
    fit = DiffusionMap(3, random_state=0).fit(X[:2000])
    new = fit.transform(X[2000:])
    scale = np.hypot(*new.T)
    np.testing.assert_allclose(scale, np.sqrt(2), rtol=0.15)
    turn = (new / scale[:, None]) @ [1, 1j] * (angle[2000:] @ [1, -1j])
    other = (new / scale[:, None]) @ [1, 1j] * (angle[2000:] @ [1, 1j])
    assert max(abs(turn.mean()), abs(other.mean())) > 0.995


def test_new_samples_like_the_outliers_lie_where_their_nearest_neighbour_lies():
    X, _ = datasets.sample("torus", 800, random_state=0)
    far = np.array([[40.0, 0, 0, 0]])
    fit = DiffusionMap(10, random_state=0).fit(np.vstack([X, far]))
    assert np.flatnonzero(fit.outliers_).tolist() == [800]
    nearest = np.linalg.norm(X - (far - 1), axis=1).argmin()
    np.testing.assert_array_equal(fit.transform(far - 1)[0], fit.spectrum_.functions[nearest, 1:])
    with pytest.raises(ValueError, match="1 of 1 have none within reach"):
        fit.transform(far + 1)


@pytest.fixture(scope="module")
def diffusion(torus):
    return DiffusionMap(20, random_state=0).fit(torus[0]).diffusion_


@pytest.mark.medium
def test_combinations_are_those_of_the_extended_functions(diffusion, torus, rng):
    coefficients = rng.normal(size=(20, 3))
    new = torus[0][:200] + 0.05 * rng.normal(size=(200, 4))
    functions = CombinedFunctions(diffusion, coefficients, reach=np.inf, n_new=200)
    for at in (new, torus[0][:50]):
        expected = diffusion.extended(at) @ coefficients
        np.testing.assert_allclose(functions(at).combined, expected, rtol=1e-9)
    np.testing.assert_array_equal(functions(torus[0][:50]).distance, 0)


@pytest.mark.medium
def test_a_value_does_not_depend_on_the_samples_beside_it(diffusion, torus, rng):
    coefficients = rng.normal(size=(20, 3))
    new = np.tile(torus[0][:1000], (3, 1)) + 0.05 * rng.normal(size=(3000, 4))
    few, many = (CombinedFunctions(diffusion, coefficients, reach=1.0, n_new=n) for n in (1, 10**6))
    whole = many(new).combined
    for rows in (slice(0, 1), slice(7, 30), slice(900, 2100)):
        np.testing.assert_array_equal(few(new[rows]).combined, whole[rows])


@pytest.mark.parametrize(
    "parameters", [{"bandwidth": "local"}, {"n_neighbors": "all"}, {"neighbors": "brute"}]
)
def test_other_kernels_and_searches_are_left_to_the_extension(torus, parameters):
    fit = DiffusionMap(5, random_state=0, **parameters).fit(torus[0][:300])
    assert not is_combinable(fit.diffusion_)


def ring(n, rng):
    angle = rng.uniform(0, 2 * np.pi, (n, 2))
    return np.hstack([np.cos(angle), np.sin(angle)])


def neighbours(indices, squared):
    return [row[near].tolist() for row, near in zip(indices, np.isfinite(squared), strict=True)]


@pytest.mark.parametrize("n_new", [100, 10**6])
def test_the_nearest_samples_are_those_of_a_tree(rng, n_new):
    known, new = ring(2000, rng), ring(300, rng)
    search = NearestSamples(known, 30, dimension=2.0, n_new=n_new)
    assert search.has_lists == (n_new == 10**6)
    indices, squared = search.around(new)
    distance, expected = KDTree(known).query(new, 30)
    assert neighbours(indices, squared) == np.sort(expected, axis=1).tolist()
    nearest = indices[np.arange(300), squared.argmin(axis=1)]
    np.testing.assert_array_equal(nearest, expected[:, 0])
    np.testing.assert_allclose(squared.min(axis=1), distance[:, 0] ** 2)


def uneven(rng):
    """Known and new samples, some of which lie beyond what lists know."""
    return rng.normal(size=(2000, 2)) ** 3, rng.normal(size=(400, 2)) ** 3


def halfway(rng):
    """A lattice, and new samples at equal distances from four of it."""
    known = np.stack(np.meshgrid(np.arange(40.0), np.arange(40.0)), -1).reshape(-1, 2)
    return known, known[rng.choice(1600, 100)] + 0.5


@pytest.mark.parametrize("samples", [uneven, halfway])
def test_lists_do_not_change_a_bit(rng, samples):
    known, new = samples(rng)
    few, many = (NearestSamples(known, 10, dimension=2.0, n_new=n) for n in (1, 10**6))
    by_tree, by_lists = few.around(new), many.around(new)
    assert neighbours(*by_tree) == neighbours(*by_lists)
    near = by_lists[1][np.isfinite(by_lists[1])]
    np.testing.assert_array_equal(by_tree[1].ravel(), near)


@pytest.mark.parametrize("n_new", [1, 10**6])
def test_a_far_sample_has_the_neighbours_of_its_nearest_one(rng, n_new):
    known = ring(2000, rng)
    search = NearestSamples(known, 9, dimension=2.0, n_new=n_new, reach=1.0)
    indices, squared = search.around(np.full((1, 4), 50.0))
    expected = np.argmin(((known - 50) ** 2).sum(axis=1))
    assert indices[0, squared[0].argmin()] == expected
