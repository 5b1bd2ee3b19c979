from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifactor.models.triplets import Triplets, find_triplets

from ..conftest import box_spectrum


def textbook(spectrum, tolerance, threshold, max_parts):
    """Algorithm 1 as a loop; a matched function is a part no more."""
    w, f, eigenvalues = spectrum.weights, spectrum.functions, spectrum.eigenvalues
    tolerance = np.broadcast_to(tolerance, eigenvalues.shape)
    found = {}
    for k in range(1, len(eigenvalues)):
        best, best_parts = threshold, None
        for size in range(2, max_parts + 1):
            for parts in combinations([i for i in range(1, k) if i not in found], size):
                if abs(eigenvalues[list(parts)].sum() - eigenvalues[k]) < tolerance[k]:
                    product = np.prod([f[:, i] for i in parts], axis=0)
                    norms = np.sqrt((w * product**2).sum() * (w * f[:, k] ** 2).sum())
                    similarity = abs((w * product * f[:, k]).sum()) / norms
                    if similarity > best:
                        best, best_parts = similarity, parts
        if best_parts:
            found[k] = (best_parts, best)
    return found


def parts_of(found):
    return {k: tuple(p[p >= 0]) for k, p in zip(found.products, found.parts, strict=True)}


@pytest.mark.slow
@pytest.mark.parametrize(("tolerance", "threshold"), [(2.0, 0.85), (np.linspace(0, 8, 60), 0.5)])
def test_pairs_equal_the_textbook_loop(rectangle_spectrum, tolerance, threshold):
    expected = textbook(rectangle_spectrum, tolerance, threshold, 2)
    found = find_triplets(rectangle_spectrum, tolerance=tolerance, threshold=threshold)
    assert parts_of(found) == {k: parts for k, (parts, _) in expected.items()}
    np.testing.assert_allclose(found.similarity, [s for _, s in expected.values()], atol=1e-5)


def test_combinations_of_three_equal_the_textbook_loop():
    spectrum, _ = box_spectrum([1.0, 1.3, 1.7], 25)
    expected = textbook(spectrum, 3.0, 0.7, 3)
    found = find_triplets(spectrum, tolerance=3.0, threshold=0.7, max_parts=3)
    assert parts_of(found) == {k: parts for k, (parts, _) in expected.items()}


def test_on_exact_functions_every_product_is_found_and_nothing_else():
    spectrum, waves = box_spectrum([1.0, 1.3], 40, n_samples=2000)
    found = find_triplets(spectrum, tolerance=1e-6, threshold=0.9)
    assert set(found.products) == set(np.flatnonzero((waves > 0).all(axis=1)))
    np.testing.assert_array_equal(waves[found.parts].sum(axis=1), waves[found.products])
    np.testing.assert_allclose(found.similarity, 1, atol=1e-5)


@given(signs=st.lists(st.sampled_from([-1.0, 1.0]), min_size=25, max_size=25))
@settings(max_examples=10)
def test_signs_of_the_functions_do_not_matter(signs):
    spectrum, _ = box_spectrum([1.0, 1.3], 25)
    flipped = replace(spectrum, functions=spectrum.functions * signs)
    one, two = (find_triplets(s, tolerance=1.0, threshold=0.8) for s in (spectrum, flipped))
    np.testing.assert_array_equal(one.parts, two.parts)


def test_separability_holds_the_similarity_of_pairs_and_leaves_out_the_excluded():
    spectrum, waves = box_spectrum([1.0, 1.3], 12, n_samples=2000)
    found = find_triplets(spectrum, tolerance=1e-6, threshold=0.9)
    functions, matrix = found.separability()
    x_only = waves[functions][:, 1] == 0
    assert (matrix == matrix.T).all()
    assert (matrix[np.ix_(x_only, x_only)] == 0).all()
    np.testing.assert_allclose(matrix[matrix > 0], 1, atol=1e-5)
    rest, smaller = found.separability(exclude=functions[x_only])
    assert (rest.size, smaller.size) == (0, 0)


def test_functions_that_occur_with_excluded_ones_only_are_left_out_too():
    parts = np.array([[1, 2], [1, 3], [2, 4], [2, 4]])
    triplets = Triplets(np.array([5, 6, 7, 8]), parts, np.array([0.9, 0.8, 0.6, 0.7]))
    functions, matrix = triplets.separability(exclude=[1])
    assert functions.tolist() == [2, 4]
    # Of two products of the same parts, the more similar counts.
    np.testing.assert_array_equal(matrix, [[0, 0.7], [0.7, 0]])
