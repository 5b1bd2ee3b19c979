"""Volumes of motions: the terms that images show, and what volumes leave of images."""

import numpy as np
import pytest

from manifactor.cryoem.all_views.learning import (
    learn,
    learn_known,
    shared_power,
    unexplained,
    volumes_of_halves,
)
from manifactor.cryoem.all_views.motions import Motions
from manifactor.cryoem.all_views.regression import Features

from .molecules import BODY, GRID, random_rotations, transforms_of, volume_of

TWO = Motions(("interval", "interval"))


def moved(places, *, blobs):
    """The body, with one blob moved along x and one along z."""
    points = np.repeat(BODY[None], len(places), axis=0)
    points[:, blobs[0], 0] += 0.2 * (places[:, 0] - 0.5)
    points[:, blobs[1], 2] += 0.2 * (places[:, 1] - 0.5)
    return points


def images_of(blobs, count=1200):
    places = np.random.default_rng(2).uniform(size=(count, 2))
    points = moved(places, blobs=blobs)
    images = transforms_of(points, random_rotations(count), noise=1.0, scale=10.0)
    return images, places


@pytest.mark.slow
@pytest.mark.parametrize(("blobs", "product"), [((0, 0), True), ((0, 3), False)])
def test_motions_of_the_same_part_have_products(blobs, product):
    images, places = images_of(blobs)
    learned = learn_known(images, TWO, places)
    assert ((1, 1) in learned.motions.terms) is product


def test_volumes_are_improved_by_what_they_leave():
    images, places = images_of((0, 3), count=600)
    features = Features.known(TWO.features(places))
    first = learn(images, TWO, TWO, features)
    second = learn(images, TWO, TWO, features, volumes=first.volumes)
    assert unexplained(second).mean() - 1 < 0.8 * (unexplained(first).mean() - 1)


@pytest.mark.slow
def test_motions_that_images_do_not_show_add_no_terms():
    images, places = images_of((0, 3))
    others = np.random.default_rng(5).uniform(size=places.shape)
    learned = learn_known(images, TWO, others)
    assert learned.motions.added == ()
    # No volume is left of the first terms, which stay.
    first, second = volumes_of_halves(learned)
    assert np.linalg.norm(first[1]) < 0.1 * np.linalg.norm(first[0])
    assert np.linalg.norm(second[1]) < 0.1 * np.linalg.norm(second[0])


def test_power_is_shared_by_half_sets_where_they_are_the_same():
    volume = volume_of(BODY)
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((2, 2, GRID.size)) * np.abs(volume).max()
    halves = volume[None] + noise * (GRID.shells > 2)
    power = shared_power(halves[0], halves[1], GRID)[0]
    near, far = GRID.shells == 2, (GRID.shells == 4) & GRID.inside
    np.testing.assert_allclose(power[near].mean(), (np.abs(volume[near]) ** 2).mean())
    with_noise = (np.abs(halves[0, 0, far]) ** 2).mean()
    assert power[far].mean() < 0.5 * with_noise
