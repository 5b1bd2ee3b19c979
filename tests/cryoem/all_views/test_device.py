"""Images of all views that are compared with volumes on a device."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from manifactor._support.stages import Stages
from manifactor.cryoem.all_views import placing
from manifactor.cryoem.all_views.fitting import read_all_views
from manifactor.cryoem.all_views.motions import Motions
from manifactor.cryoem.all_views.placing import place_particles
from manifactor.cryoem.all_views.regression import FeatureMoments, map_likelihoods, normal_equations
from manifactor.runs.options import FitOptions
from manifactor.runs.task import Task

from .molecules import BODY, moving, volume_of

pytest.importorskip("torch")
pytestmark = pytest.mark.torch
MOTIONS = Motions(("circle", "interval"))


def test_a_device_that_is_not_there_is_refused_before_anything_is_read():
    options = FitOptions(all_views=True, device="nowhere")
    with pytest.raises(ValueError, match="`device` must be"):
        read_all_views(Task(Path("no.star"), options))


@pytest.fixture(scope="module")
def sides():
    """The same images for the functions of numpy, and for those that run on a GPU."""
    images, places = moving(160)
    return images, replace(images, device="torch:cpu"), places


def test_both_sides_make_the_same_equations(sides):
    *sides, places = sides
    features = FeatureMoments.known(MOTIONS.features(places))
    volumes = np.stack([volume_of(BODY + shift) for shift in (0, 0.02, 0.04, 0.06)])
    here, there = (
        [part for pair in normal_equations([(side, features)], [volumes]) for part in pair]
        for side in sides
    )
    for one, other in zip(here, there, strict=True):
        for ours, theirs in ((one.products, other.products), (one.images, other.images)):
            np.testing.assert_allclose(ours, theirs, atol=1e-5 * np.abs(ours).max())


def test_both_sides_have_the_same_likelihoods(sides):
    volumes = np.stack([volume_of(BODY), volume_of(BODY + 0.02)])
    here, there = (
        map_likelihoods(lambda terms: (terms.linear, terms.precision), side, volumes)
        for side in sides[:2]
    )
    for ours, theirs in zip(here, there, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5 * np.abs(ours).max())


@pytest.mark.slow
def test_both_sides_place_particles_alike(sides, monkeypatch):
    monkeypatch.setattr(placing, "MOST_ROUNDS", 1)
    *sides, places = sides
    known = np.arange(120)
    here, there = (
        place_particles(side, MOTIONS, known, places[:120], stages=Stages()) for side in sides
    )
    assert here.motions == there.motions
    np.testing.assert_allclose(here.places, there.places, atol=1e-3)
    np.testing.assert_allclose(here.deviations, there.deviations, atol=1e-3)
