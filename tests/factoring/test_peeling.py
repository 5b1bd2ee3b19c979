import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifactor import DiffusionMap, datasets
from manifactor.factoring.gradients import measure_geometry
from manifactor.factoring.peeling import (
    Look,
    batch_size,
    impurity,
    peel,
    product_share,
    without_energy,
)
from manifactor.scores import regression_r2


def look(name, n=1500, n_functions=60):
    X, truth = datasets.sample(name, n, random_state=0)
    fit = DiffusionMap(n_functions, random_state=0).fit(X)
    geometry = measure_geometry(
        fit.spectrum_, fit._affinity, X, rng=np.random.default_rng(0)
    )
    return Look(np.arange(n), geometry), truth


@pytest.fixture(scope="module")
def square():
    return look("square")


def peeled(look):
    return peel([look], rng=np.random.default_rng(0))


@pytest.mark.parametrize(
    ("eigenvalues", "size"),
    [
        ([1, 4, 9], 1),
        ([1, 1.01, 2.0, 4], 2),
        ([1, 1.1, 1.2, 3], 3),
        ([2.0], 1),
        ([], 0),
        ([1, 1, 1], 3),
    ],
)
def test_functions_below_twice_the_lowest_eigenvalue_are_no_products(eigenvalues, size):
    assert batch_size(np.array(eigenvalues, dtype=float)) == size


@given(turn=st.floats(0, np.pi))
@settings(max_examples=5, deadline=None)
def test_a_rotation_inside_the_eigenspace_of_a_square_does_not_matter(square, turn):
    seen, truth = square
    functions = seen.geometry.spectrum.functions.copy()
    gradients = seen.geometry.gradients.copy()
    c, s = np.cos(turn), np.sin(turn)
    functions[:, 1:3] = functions[:, 1:3] @ [[c, -s], [s, c]]
    gradients[:, :, :2] = gradients[:, :, :2] @ [[c, -s], [s, c]]
    spectrum = replace(seen.geometry.spectrum, functions=functions)
    geometry = replace(seen.geometry, spectrum=spectrum, gradients=gradients)
    found = peeled(replace(seen, geometry=geometry)).looks[0]
    assert len(found.blocks) == 2
    lowest = [geometry.values(block[:, :1]) for block in found.blocks]
    r2 = np.array([[regression_r2(true, f) for f in lowest] for true in truth])
    assert r2.max(axis=0).min() > 0.98
    assert r2.min(axis=0).max() < 0.02


def test_what_has_no_energy_along_one_side_is_a_function_of_the_other(square):
    seen, truth = square
    block = peeled(seen).looks[0].blocks[0]
    others = without_energy(seen.geometry, [block])
    own = max(
        truth, key=lambda true: regression_r2(true, seen.geometry.values(block[:, :1]))
    )
    (other,) = (true for true in truth if true is not own)
    assert others.shape[1] >= 3
    assert all(
        regression_r2(other, seen.geometry.values(others[:, [j]])) > 0.9
        for j in range(3)
    )


def test_a_disk_stays_whole():
    found = peeled(look("disk")[0])
    assert len(found.looks[0].blocks) == 1


def test_a_parallelogram_is_refused_for_its_products():
    found = peeled(look("parallelogram")[0])
    assert len(found.looks[0].blocks) == 1
    assert found.refused < 0.3


def test_products_of_a_square_s_functions_are_functions(square):
    found = peeled(square[0]).looks[0]
    assert product_share(found.geometry, found.blocks) > 0.95


def test_going_around_a_moebius_band_takes_a_quarter_of_a_quantum(square):
    band = peeled(look("moebius", n_functions=80)[0]).looks[0]
    flat = peeled(square[0]).looks[0]
    assert impurity(flat.geometry, flat.blocks) < 0.05
    assert len(band.blocks) == 2
    assert 0.1 < impurity(band.geometry, band.blocks) < 0.4


def test_halves_of_the_samples_vouch_for_the_split(square):
    found = peeled(square[0])
    assert found.splits[0].n_blocks == 2
    assert found.splits[0].q[0] < 0.2
    assert (
        found.splits[0].noise == 0
    ).all()  # without halves there is no noise to be seen


def test_nothing_is_found_without_a_warning_of_numbers(square):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        peeled(square[0])
