import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifactor import datasets
from manifactor.factoring.gradients.peeling import PeelingSettings, peel
from manifactor.factoring.gradients.purity import ProductSettings, count_directions, product_share
from manifactor.scores import regression_r2

from ..looks import look_at, look_of, looks_at_halves


@pytest.fixture(scope="module")
def square():
    return look_at("square")


def peeled(*looks, **arguments):
    return peel(looks, rng=np.random.default_rng(0), **arguments)


@pytest.mark.slow
@given(turn=st.floats(0, np.pi))
@settings(max_examples=5)
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


@pytest.mark.slow
def test_a_disk_stays_whole():
    found = peeled(look_at("disk")[0])
    assert len(found.looks[0].blocks) == 1
    assert found.refused is None


@pytest.mark.slow
def test_a_parallelogram_is_refused_for_its_products():
    found = peeled(look_at("parallelogram")[0])
    assert len(found.looks[0].blocks) == 1
    assert found.refused.product_share < 0.3
    assert len(found.refused.peeling.looks[0].blocks) == 2


@pytest.mark.slow
def test_factors_that_are_asked_for_are_taken_whatever_their_products_are():
    look, _ = look_at("parallelogram")
    found = peeled(look, at_least=2)
    assert len(found.looks[0].blocks) == 2
    assert product_share(look.geometry, found.looks[0].blocks) < 0.7


def test_a_square_is_refused_where_products_must_be_perfect(square):
    found = peeled(square[0], settings=PeelingSettings(products=ProductSettings(min_share=1.0)))
    assert len(found.looks[0].blocks) == 1


@pytest.mark.slow
def test_no_more_factors_are_found_than_the_settings_allow():
    look, _ = look_at("cube", 2000)
    counts = [
        len(peeled(look, settings=PeelingSettings(max_factors=most)).looks[0].blocks)
        for most in (1, 2, 6)
    ]
    assert counts == [1, 2, 3]


def test_products_of_a_square_s_functions_are_functions(square):
    found = peeled(square[0]).looks[0]
    assert product_share(found.geometry, found.blocks) > 0.95


def test_one_block_has_no_products_to_miss_and_none_has_all(square):
    geometry = square[0].geometry
    assert product_share(geometry, [np.eye(len(geometry.eigenvalues))[:, :1]]) == 1
    assert product_share(geometry, []) == 0


def test_without_halves_there_is_no_noise_to_be_seen(square):
    found = peeled(square[0])
    assert found.splits[0].n_blocks == 2
    assert found.splits[0].q[0] < 0.2
    assert (found.splits[0].noise == 0).all()


@pytest.mark.slow
def test_halves_of_the_samples_vouch_for_a_split_that_noise_hides():
    """At 500 samples of two spheres q is .51, above its limit; their halves add .11."""
    size = {"n_functions": 40, "seed": 1}
    whole, _ = look_at("sphere_sphere", 500, **size)
    halves = looks_at_halves("sphere_sphere", 500, **size)
    found = peeled(whole, *halves)
    assert len(found.looks) == 3
    assert [len(look.blocks) for look in found.looks] == [2, 2, 2]
    assert found.splits[0].n_blocks == 2
    assert found.splits[0].noise[0] > 0.05
    assert len(peeled(whole).looks[0].blocks) == 1
    # Halves of 2000 samples show no more noise than the 500: they excuse nothing.
    others = looks_at_halves("sphere_sphere", 2000, **size)
    assert len(peeled(whole, *others).looks[0].blocks) == 1


def test_noise_of_the_products_is_taken_off_up_to_a_limit():
    """A share that halves lose is added to the share of the whole, but not all of it."""
    whole, _ = look_at("square", 400, n_functions=30)
    halves = looks_at_halves("square", 400, n_functions=30)
    strict = ProductSettings(min_share=1.0, max_noise=0.0)
    lenient = ProductSettings(min_share=1.0, max_noise=1.0)
    assert (
        len(peeled(whole, *halves, settings=PeelingSettings(products=strict)).looks[0].blocks) == 1
    )
    assert (
        len(peeled(whole, *halves, settings=PeelingSettings(products=lenient)).looks[0].blocks) == 2
    )


@pytest.mark.slow
def test_two_motions_that_are_coupled_are_one_factor_beside_a_third(rng):
    """A parallelogram's sides make no product; merged, they do with an interval."""
    sides, _ = datasets.sample("parallelogram", 2000, random_state=0)
    place = rng.uniform(size=(2000, 1))
    look = look_of(np.hstack([sides, place]), 80)
    found = peeled(look)
    geometry, blocks = look.geometry, found.looks[0].blocks
    assert len(blocks) == 2
    assert found.refused is None
    assert product_share(geometry, blocks) > 0.95
    assert sorted(count_directions(geometry, block) for block in blocks) == [1, 2]
    own = [regression_r2(place, geometry.values(block[:, :2])) for block in blocks]
    assert max(own) > 0.98
    assert min(own) < 0.05


@pytest.mark.slow
def test_a_merge_that_leaves_one_factor_is_taken_back():
    """A parallelogram's sides are merged in vain: nothing lies beside them."""
    look, _ = look_at("parallelogram")
    found = peeled(look)
    first = peeled(look, settings=PeelingSettings(max_factors=1))
    np.testing.assert_array_equal(found.looks[0].blocks[0], first.looks[0].blocks[0])
    assert len(found.splits) == 1


def test_nothing_is_found_without_a_warning_of_numbers(square):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        peeled(square[0])
