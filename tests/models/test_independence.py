import numpy as np
import pytest

from manifactor.models.sums.independence import (
    axes_errors,
    cumulants,
    far_off,
    independent_parts,
    is_bell,
)

from ..factoring.places import ring


def principal(X):
    X = X - X.mean(axis=0)
    return X @ np.linalg.svd(X, full_matrices=False)[2].T


def sizes(X):
    return sorted(p.reading.shape[1] for p in independent_parts(principal(X)))


@pytest.mark.parametrize("width", [1, 3, 30])
def test_the_sides_of_a_rectangle_are_told_apart_whatever_their_lengths(rng, width):
    sides = rng.uniform(size=(2000, 2)) * [width, 1]
    mixed = principal(sides @ np.linalg.qr(rng.normal(size=(2, 2)))[0])
    parts = independent_parts(mixed)
    found = np.hstack([mixed @ part.reading for part in parts])
    match = np.abs(np.corrcoef(found.T, sides.T)[:2, 2:])
    np.testing.assert_allclose(match.max(axis=1), 1, atol=0.01)


def test_parts_add_up_to_the_samples(rng):
    X = principal(np.hstack([ring(rng.uniform(0, 7, 1000)), rng.uniform(size=(1000, 2))]))
    parts = independent_parts(X)
    np.testing.assert_allclose(sum(part(X) for part in parts), X, atol=1e-9)
    strength = [part.variance for part in parts]
    assert strength == sorted(strength, reverse=True)


def test_wells_and_gaps_do_not_join_two_circles(rng):
    wells = np.repeat([0, 2, 4], 1000)[:, None] + 0.3 * rng.normal(size=(3000, 2))
    arcs = [ring(rng.permutation(w)) for w in wells.T]
    assert sizes(np.hstack([arcs[0], 0.1 * arcs[1]])) == [2, 2]


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_gaussians_are_parts_along_their_principal_axes_whatever_their_unit(rng, unit):
    X = unit * principal(rng.normal(size=(2000, 3)) * [2, 1, 1])
    first, second = independent_parts(X)
    assert (first.gaussian, second.gaussian) == (True, True)
    assert (len(first.writing), len(second.writing)) == (1, 2)
    own = first.reading[:, 0] * X[:, 0].std()
    np.testing.assert_allclose(np.abs(own), [1, 0, 0], atol=1e-9)


@pytest.mark.parametrize("unit", [1e-18, 1e18])
def test_axes_of_equal_variances_are_not_known(unit):
    errors = axes_errors(unit * np.array([4.0, 1.0, 1.0, 0.0, 0.0]), 400)
    assert errors[1, 2] == np.pi / 4
    assert errors[0, 1] == pytest.approx(1 / 30)
    # No variance is an axis along which nothing varies.
    assert not errors[3:].any()
    assert not np.diag(errors).any()


def test_cumulants_of_a_gaussian_are_0_and_those_of_a_circle_are_known(rng):
    third, fourth = cumulants(rng.normal(size=(200_000, 2)))
    assert max(np.abs(third).max(), np.abs(fourth).max()) < 0.05
    _, fourth = cumulants(np.sqrt(2) * ring(2 * np.pi * np.arange(1000) / 1000))
    np.testing.assert_allclose([fourth[0, 0, 0, 0], fourth[0, 0, 1, 1]], [-1.5, -0.5])


def test_only_samples_beyond_any_tail_are_far_off(rng):
    tails = rng.normal(size=(5000, 2))
    assert not far_off(tails).any()
    assert far_off(np.vstack([tails, [[0, 9]]])).nonzero()[0].tolist() == [5000]


def test_a_bell_may_have_heavy_tails_but_no_edges(rng):
    assert is_bell(rng.standard_t(2, size=(1000, 1)))
    assert not is_bell(rng.uniform(size=(1000, 1)))
