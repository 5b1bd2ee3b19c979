import warnings

import numpy as np
import pytest

from manifactor import datasets
from manifactor.models.peeling import peeling
from manifactor.models.peeling.peeling import FEWER, MORE, Dimensions, peel, take_looks
from manifactor.models.peeling.purity import product_share
from manifactor.operators.geometry import count_directions
from manifactor.operators.pipeline import diffuse
from manifactor.scores import regression_r2

from ..factoring.looks import look_at, look_of, looks_at_halves


@pytest.fixture(scope="module")
def square():
    return look_at("square")


def peeled(*looks, **arguments):
    return peel(looks, rng=np.random.default_rng(0), **arguments)


def test_all_samples_and_two_halves_are_looked_at_unless_a_half_has_one_function(monkeypatch):
    X, _ = datasets.sample("torus", 200, random_state=0)
    diffusion = diffuse(X, rng=np.random.default_rng(0))
    whole, *halves = take_looks(diffusion, rng=np.random.default_rng(0))
    assert len(whole.part) == 200
    assert sorted(np.concatenate([half.part for half in halves])) == list(range(200))
    spectrum = peeling.laplacian_spectrum
    monkeypatch.setattr(
        peeling, "laplacian_spectrum", lambda *args, **kwargs: spectrum(*args, **kwargs).lowest(1)
    )
    (whole,) = take_looks(diffusion, rng=np.random.default_rng(0))
    assert len(whole.part) == 200


@pytest.mark.slow
def test_a_disk_stays_whole():
    found = peeled(look_at("disk")[0])
    assert len(found.looks[0].blocks) == 1
    assert found.refused is None


@pytest.mark.slow
def test_a_parallelogram_is_refused_for_its_products_unless_it_is_asked_for(monkeypatch):
    look, _ = look_at("parallelogram")
    found = peeled(look)
    assert len(found.looks[0].blocks) == 1
    assert found.refused.product_share < 0.3
    assert len(found.refused.looks[0].blocks) == 2
    asked = peeled(look, at_least=2)
    assert len(asked.looks[0].blocks) == 2
    assert product_share(look.geometry, asked.looks[0].blocks) < 0.7
    # Its sides are merged in vain, since nothing lies beside them: the merge is taken back.
    monkeypatch.setattr(peeling, "MAX_FACTORS", 1)
    np.testing.assert_array_equal(found.looks[0].blocks[0], peeled(look).looks[0].blocks[0])
    assert len(found.splits) == 1


@pytest.mark.slow
@pytest.mark.parametrize(("most", "found"), [(1, 1), (6, 3)])
def test_no_more_factors_are_found_than_allowed(monkeypatch, most, found):
    monkeypatch.setattr(peeling, "MAX_FACTORS", most)
    assert len(peeled(look_at("cube", 2000)[0]).looks[0].blocks) == found


def test_a_square_divides_without_halves_and_without_a_warning_of_numbers(square):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = peeled(square[0])
    assert found.splits[0].n_blocks == 2
    assert found.splits[0].q[0] < 0.2
    assert (found.splits[0].noise == 0).all()
    geometry, blocks = found.looks[0].geometry, found.looks[0].blocks
    assert product_share(geometry, blocks) > 0.95
    # One block has no products to miss, and none has all.
    assert product_share(geometry, blocks[:1]) == 1
    assert product_share(geometry, []) == 0


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
    # Halves of 1200 samples show no more noise than the 500: they excuse nothing.
    others = looks_at_halves("sphere_sphere", 1200, **size)
    assert len(peeled(whole, *others).looks[0].blocks) == 1


@pytest.mark.parametrize(("most", "found"), [(0.0, 1), (1.0, 2)])
def test_noise_of_the_products_is_taken_off_up_to_a_limit(monkeypatch, most, found):
    """A share that halves lose is added to the share of the whole, but not all of it."""
    monkeypatch.setattr(peeling, "MIN_PRODUCT_SHARE", 1.0)
    monkeypatch.setattr(peeling, "MAX_SHARE_NOISE", most)
    whole, _ = look_at("square", 400, n_functions=30)
    halves = looks_at_halves("square", 400, n_functions=30)
    assert len(peeled(whole, *halves).looks[0].blocks) == found


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


@pytest.mark.parametrize(
    ("missing", "data", "found", "misfit", "difference"),
    [
        (False, 1.5, 2, 0.5, ""),
        (False, 1.0, 2, 1.0, MORE),
        (True, 3.5, 2, 1.5, FEWER),
        (False, 3.5, 2, 0.0, ""),  # noise fills the others
    ],
)
def test_dimensions_miss_the_data_s_both_ways(missing, data, found, misfit, difference):
    assert Dimensions(data, found, missing).misfit(2, 0.75) == (misfit, difference)
