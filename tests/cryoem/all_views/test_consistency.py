"""Consistency between views, where images tell nothing of it."""

import numpy as np

from manifactor.cryoem.all_views.motions import Motions
from manifactor.cryoem.all_views.placing import view_consistency
from manifactor.cryoem.all_views.regression import Features

from .molecules import BODY, random_rotations, transforms_of, turning

TWO = Motions(("circle", "interval"))


def turned_images(rotations, seed=0):
    """Images of a molecule that turns, with places on the turn and on nothing."""
    places = np.random.default_rng(seed).uniform(size=(len(rotations), 2))
    points = turning(2 * np.pi * places[:, 0])
    images = transforms_of(points, rotations, noise=1.0, scale=3.0, seed=seed)
    return images, Features.known(TWO.features(places))


def test_a_motion_that_images_do_not_show_has_no_consistency():
    for seed in range(3):
        images, features = turned_images(random_rotations(1000, seed), seed)
        turn, nothing = view_consistency(images, features, TWO)
        assert turn > 0.8
        assert np.isnan(nothing)


def test_views_along_one_axis_do_not_tell():
    rotations = random_rotations(30_000)
    near = rotations[np.abs(rotations[:, 2, 2]) > np.cos(np.radians(10))]
    assert np.isnan(view_consistency(*turned_images(near), TWO)).all()


def test_few_images_do_not_tell():
    images = transforms_of(np.repeat(BODY[None], 20, axis=0), random_rotations(20))
    features = Features.known(TWO.features(np.zeros((20, 2))))
    assert np.isnan(view_consistency(images, features, TWO)).all()
