"""Motions that images of all views show, and the places of all particles."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from manifactor.cryoem.all_views.factoring import AllViewsSettings, factor_all_views
from manifactor.cryoem.all_views.motions import Motions
from manifactor.cryoem.all_views.placing import PlacingSettings, place_particles
from manifactor.cryoem.all_views.principal import (
    PrincipalSettings,
    compared_spaces,
    principal_volumes,
)
from manifactor.cryoem.all_views.slices import point_group

from .molecules import BODY, random_rotations, shifting, symmetric, transforms_of, turning

# So coarse volumes have some hundred coefficients, of which spaces of eight volumes have
# much in common by chance.
FEW = PrincipalSettings(max_rank=8, rounds=5, reproducible=0.7)


def moving(count, *, seed=0, rotations=None, noise=1.0, scale=3.0):
    """Images of a molecule that turns and shifts, with the places on both motions."""
    rng = np.random.default_rng(seed)
    places = rng.uniform(size=(count, 2))
    points = shifting(turning(2 * np.pi * places[:, 0]), 0.3 * places[:, 1] - 0.15)
    rotations = random_rotations(count, seed) if rotations is None else rotations
    return transforms_of(points, rotations, noise=noise, scale=scale), places


def turn_agreement(found, turn):
    """Circular correlation of places around a circle, up to rotation and reflection."""
    angles = 2 * np.pi * found[:, None] * [1, -1] - 2 * np.pi * turn[:, None]
    return np.abs(np.exp(1j * angles).mean(axis=0)).max()


@pytest.mark.slow
def test_principal_coordinates_hold_the_motion():
    images, places = moving(1500)
    found = principal_volumes(images, rng=np.random.default_rng(0), settings=FEW)
    truth = np.column_stack(
        [np.cos(2 * np.pi * places[:, 0]), np.sin(2 * np.pi * places[:, 0]), places]
    )[:, [0, 1, 3]]
    centred = truth - truth.mean(axis=0)
    known = np.column_stack([np.ones(len(places)), found.coordinates])
    rest = truth - known @ np.linalg.lstsq(known, truth, rcond=None)[0]
    share = (rest**2).sum(axis=0) / (centred**2).sum(axis=0)
    assert np.all(share < 0.3)
    assert np.all(np.diff(found.information) <= 0)


@pytest.mark.slow
def test_a_rigid_molecule_shows_no_motion():
    points = np.repeat(BODY[None], 1500, axis=0)
    images = transforms_of(points, random_rotations(1500), noise=1.0, scale=3.0)
    settings = AllViewsSettings(principal=replace(FEW, max_rank=3))
    with pytest.raises(ValueError, match=r"must show a motion.*Add images"):
        factor_all_views(images, settings=settings)


def test_volumes_of_the_same_space_agree_whatever_their_basis():
    rng = np.random.default_rng(0)
    half = rng.standard_normal((4, 40)) + 1j * rng.standard_normal((4, 40))
    first = np.hstack([half, half[:, ::-1].conj()])
    second = first.copy()
    second[1:] = rng.standard_normal((3, 3)) @ first[1:]
    agreement, _ = compared_spaces(first, second)
    np.testing.assert_allclose(agreement, 1, rtol=1e-6)


@pytest.mark.slow
def test_every_particle_gets_its_places():
    images, places = moving(2000)
    once = PlacingSettings(rounds=1, compared=500)
    settings = AllViewsSettings(principal=FEW, placing=once)
    found = factor_all_views(images, settings=settings)
    assert found.fit.verdict_ in ("product", "partial")
    topologies = [factor.topology for factor in found.fit.factors_]
    assert sorted(topologies) == ["circle", "interval"]
    turn, shift = topologies.index("circle"), topologies.index("interval")
    assert turn_agreement(found.placed.places[:, turn], places[:, 0]) > 0.9
    correlation = np.corrcoef(found.placed.places[:, shift], places[:, 1])[0, 1]
    assert abs(correlation) > 0.9
    assert np.all(found.placed.consistency > 0.8)


def side_views(count):
    """Rotations whose views lie near the equator."""
    rotations = random_rotations(8 * count, seed=4)
    near = np.abs(rotations[:, 2, 2]) < 0.3
    return rotations[near][:count]


def drifting(places, rotations):
    """Places whose zero turns with the azimuth of the view, as where views are chained
    by their likeness: neighbouring views agree, all together do not."""
    azimuth = np.arctan2(rotations[:, 2, 1], rotations[:, 2, 0]) / (2 * np.pi)
    return np.column_stack([(places[:, 0] + 2 * azimuth) % 1, places[:, 1]])


@pytest.mark.slow
def test_places_that_drift_with_the_view_are_found_out():
    rotations = side_views(1500)
    images, places = moving(1500, rotations=rotations)
    motions = Motions(("circle", "interval"))
    rows = np.arange(1500)
    settings = PlacingSettings(rounds=0)
    right, wrong = (
        place_particles(
            images, motions, rows, given, rng=np.random.default_rng(0), settings=settings
        )
        for given in (places, drifting(places, rotations))
    )
    assert turn_agreement(right.places[:, 0], places[:, 0]) > 0.8
    assert turn_agreement(wrong.places[:, 0], places[:, 0]) < 0.2
    assert right.consistency[0] > 0.8
    assert wrong.consistency[0] < 0.2


def test_few_particles_are_enough_to_be_placed():
    images, places = moving(400)
    motions = Motions(("circle", "interval"))
    known = np.arange(300)
    found = place_particles(
        images,
        motions,
        known,
        places[:300],
        rng=np.random.default_rng(0),
        settings=replace(PlacingSettings(), rounds=1),
    )
    assert turn_agreement(found.places[300:, 0], places[300:, 0]) > 0.8


def moving_ring(count):
    """Images of four units whose upper half turns and whose lower half moves out."""
    places = np.random.default_rng(0).uniform(size=(count, 2))
    upper, lower = [[0.14, 0.02, 0.12], [0.2, 0, 0.05]], [[0.12, 0.05, -0.1]]
    unit = np.array([*upper, *lower, [0.1, 0, -0.2]])
    # After a quarter turn, each unit of the ring has taken the place of the next.
    turn = Rotation.from_rotvec(np.outer(places[:, 0], [0, 0, np.pi / 2])).as_matrix()
    points = np.repeat(unit[None], count, axis=0)
    points[:, :2] = points[:, :2] @ turn.transpose(0, 2, 1)
    outward = shifting(points, 0.16 * places[:, 1] - 0.06)
    molecule = symmetric(outward, point_group("C4"))
    return transforms_of(molecule, random_rotations(count), noise=1.0, scale=2.0), places


def factored_ring(images, symmetry):
    settings = AllViewsSettings(principal=FEW)
    return factor_all_views(images, symmetry=symmetry, settings=settings)


def shapes(found):
    return [factor.topology for factor in found.fit.factors_]


@pytest.mark.slow
def test_motions_of_a_symmetric_molecule_are_found():
    images, places = moving_ring(500)
    found = factored_ring(images, "C4")
    assert found.fit.verdict_ == "product"
    assert shapes(found) == ["interval", "circle"]
    shift, turn = found.placed.places.T
    assert abs(np.corrcoef(shift, places[:, 1])[0, 1]) > 0.99
    assert turn_agreement(turn, places[:, 0]) > 0.9


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::manifactor.SampleWarning")
def test_symmetry_makes_few_images_enough():
    images, places = moving_ring(350)
    with_it, without = (factored_ring(images, name) for name in ("C4", "C1"))
    assert shapes(with_it) == ["interval", "circle"]
    assert turn_agreement(with_it.placed.places[:, 1], places[:, 0]) > 0.9
    assert turn_agreement(without.placed.places[:, 1], places[:, 0]) < 0.8
