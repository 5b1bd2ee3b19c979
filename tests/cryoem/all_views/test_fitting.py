"""Motions that images of all views show, the coordinates of all particles, and the cost."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from manifactor.cryoem.all_views import fitting, placing, principal
from manifactor.cryoem.all_views.fitting import factor_all_views, is_moving, places_of
from manifactor.cryoem.all_views.model import UNKNOWN
from manifactor.cryoem.all_views.motions import Motions
from manifactor.cryoem.all_views.placing import PlacedParticles
from manifactor.cryoem.all_views.shapes import Shape
from manifactor.cryoem.all_views.transforms import point_group
from manifactor.runs.options import FitOptions
from manifactor.runs.task import Task

from .molecules import (
    BODY,
    moving,
    random_rotations,
    shifting,
    symmetric,
    transforms_of,
    turn_agreement,
)


@pytest.fixture(scope="module")
def coarse():
    """So coarse volumes have some hundred coefficients, of which spaces of eight volumes have much
    in common by chance."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(principal, "MAX_RANK", 8)
        patch.setattr(placing, "MOST_ROUNDS", 1)
        yield patch


@pytest.mark.nightly
def test_every_particle_gets_its_places(coarse):
    images, places = moving(900)
    found = factor_all_views(images, {"n_factors": 2})
    assert found.fit.verdict_ in ("product", "partial")
    topologies = [factor.topology for factor in found.fit.factors_]
    assert sorted(topologies) == ["circle", "interval"]
    turn, shift = topologies.index("circle"), topologies.index("interval")
    assert turn_agreement(found.placed.places[:, turn], places[:, 0]) > 0.9
    correlation = np.corrcoef(found.placed.places[:, shift], places[:, 1])[0, 1]
    assert abs(correlation) > 0.9
    # Of one motion it may not be known, in so few images.
    assert np.nanmin(found.placed.consistency) > 0.8
    # The principal coordinates hold the motion.
    angle = 2 * np.pi * places[:, 0]
    truth = np.column_stack([np.cos(angle), np.sin(angle), places[:, 1]])
    known = np.column_stack([np.ones(len(places)), found.principal.coordinates])
    rest = truth - known @ np.linalg.lstsq(known, truth, rcond=None)[0]
    assert np.all(rest.var(axis=0) < 0.35 * truth.var(axis=0))
    assert np.all(np.diff(found.principal.information) <= 0)


@pytest.mark.medium
def test_a_rigid_molecule_shows_no_motion(coarse, monkeypatch):
    monkeypatch.setattr(principal, "MAX_RANK", 3)
    points = np.repeat(BODY[None], 400, axis=0)
    images = transforms_of(points, random_rotations(400), noise=1.0, scale=1.5)
    with pytest.raises(ValueError, match="rigid, or a motion below the noise"):
        factor_all_views(images)


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


@pytest.mark.nightly  # test_slices.py shows that symmetric views are used
@pytest.mark.filterwarnings("ignore::manifactor.SampleWarning")
def test_motions_of_a_symmetric_molecule_are_found_in_few_images(coarse, monkeypatch):
    monkeypatch.setattr(principal, "N_ROUNDS", 5)
    images, places = moving_ring(350)  # too few without the symmetry
    found = factor_all_views(replace(images, symmetry="C4"))
    assert [factor.topology for factor in found.fit.factors_] == ["interval", "circle"]
    shift, turn = found.placed.places.T
    assert abs(np.corrcoef(shift, places[:, 1])[0, 1]) > 0.98
    assert turn_agreement(turn, places[:, 0]) > 0.9


def seen(states, seed=0):
    """Principal coordinates of particles in these states (n, rank), from images of random views."""
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(*states.shape, states.shape[1] + 4))
    information = 60 * half @ half.transpose(0, 2, 1)
    covariance = np.linalg.inv(information + np.eye(states.shape[1]))
    noise = (np.linalg.cholesky(information) @ rng.normal(size=states.shape)[..., None])[..., 0]
    told = (information @ states[..., None])[..., 0] + noise
    return principal.PrincipalVolumes(
        np.zeros((1, 1)),
        (covariance @ told[..., None])[..., 0],
        covariance,
        information.mean(axis=0).diagonal(),
        np.full(4, 0.9),
        0.1,
    )


TURN = 2 * np.pi * np.random.default_rng(1).uniform(size=(900, 1))
CIRCLE = np.hstack([np.cos(TURN), np.sin(TURN), 0 * TURN])
APART = np.where(np.arange(900) % 10 < 3, 1.0, 0.0)


def placed_but_by(blind):
    """What places particles, with no information about motions of some topologies."""

    def place(_, motions, __, places, **___):
        deviations = [UNKNOWN if each in blind else 0.02 for each in motions.topologies]
        return PlacedParticles(motions, None, places, np.tile(deviations, (len(places), 1)), None)

    return place


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("states", "headline"),
    [
        (2 * APART[:, None] - 1, "two states"),
        (np.column_stack([4 * APART, 0 * APART]), "two states"),
        (CIRCLE[:, :2], "one motion, a circle"),
        (CIRCLE + np.outer(APART, [0, 0, 4]), "two classes; a circle in the larger"),
    ],
)
def test_the_verdict_is_in_words_and_classes_are_told_apart(monkeypatch, states, headline):
    monkeypatch.setattr(fitting, "principal_volumes", lambda *_, **__: seen(states))
    monkeypatch.setattr(fitting, "place_particles", placed_but_by({}))
    found = factor_all_views(None)
    assert found.headline == headline
    if found.clusters is None:
        assert "class" not in headline
        return
    # The largest is the first; those in one state or class have one number.
    assert np.mean(found.clusters == np.where(APART, 2, 1)) > 0.99


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::manifactor.SampleWarning")
def test_motions_that_their_own_coordinates_do_not_show_are_passed_over(monkeypatch):
    known, passed_over = seen(CIRCLE[:, :2]).likelihood, []

    def both_and_one(told, *_, **__):
        at = TURN / (2 * np.pi)
        yield Shape.learn(known, Motions(("circle", "interval")), np.arange(900), np.c_[at, at])
        passed_over.append(True)
        yield Shape.learn(known, Motions(("circle",)), np.arange(900), at)

    monkeypatch.setattr(fitting, "principal_volumes", lambda *_, **__: seen(CIRCLE[:, :2]))
    monkeypatch.setattr(fitting, "place_particles", placed_but_by({}))
    monkeypatch.setattr(fitting, "find_shapes", both_and_one)
    assert factor_all_views(None).headline == "one motion, a circle"
    assert passed_over


def cache_of_one(function):
    """A function that returns the result of its first call again."""
    results = []
    return lambda *given: results[0] if results else results.append(function(*given)) or results[0]


@pytest.mark.slow
def test_a_factor_that_no_image_shows_is_dropped_and_the_rest_judged_again(monkeypatch):
    height = np.random.default_rng(2).uniform(-1.5, 1.5, 500)
    states = CIRCLE[:500] + np.outer(height, [0, 0, 1])
    monkeypatch.setattr(fitting, "principal_volumes", lambda *_, **__: seen(states))
    # Only the places differ: what is found before is found once.
    monkeypatch.setattr(fitting, "_factor", cache_of_one(fitting._factor))
    monkeypatch.setattr(fitting, "place_particles", placed_but_by({}))
    assert factor_all_views(None).headline.startswith("two motions: a")
    monkeypatch.setattr(fitting, "place_particles", placed_but_by({"interval"}))
    found = factor_all_views(None)
    assert (found.headline, found.dropped) == ("one motion, a circle", 1)
    assert len(places_of(found)) == 1
    coordinate = found.fit.factors_[0].coordinate / (2 * np.pi)
    assert turn_agreement(coordinate, TURN[found.rows, 0] / (2 * np.pi)) > 0.95
    monkeypatch.setattr(fitting, "place_particles", placed_but_by({"interval", "circle"}))
    with pytest.raises(ValueError, match="no image tells its particle's place"):
        factor_all_views(None)


@pytest.mark.parametrize(
    ("states", "moving"),
    [(np.tile([1.0, -0.5, 0.2], (600, 1)), False), (CIRCLE, True), (CIRCLE * [0, 1, 0], False)],
)
def test_particles_of_a_cluster_move_unless_along_the_line_between_clusters(states, moving):
    between = np.array([[0.0, 2.0, 0.0]])
    assert is_moving(seen(states).likelihood, between) == moving


def placed(topology, places):
    """What was found of one motion."""
    motions, deviations = Motions((topology,)), np.full((len(places), 1), 0.02)
    particles = PlacedParticles(motions, None, places[:, None], deviations, None)
    return SimpleNamespace(placed=particles)


@pytest.mark.parametrize(("topology", "turn"), [("interval", 1), ("circle", 2 * np.pi)])
def test_coordinates_are_places_however_many_particles_are_there(topology, turn):
    uneven = ((np.arange(2000) + 0.5) / 2000) ** 2
    (place,) = places_of(placed(topology, uneven))
    np.testing.assert_allclose(place.coordinate, turn * uneven)
    np.testing.assert_allclose(place.deviation, 0.02 * turn)


def test_a_task_for_workers_of_another_folder_has_absolute_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    moved = Task(Path("all.star"), FitOptions(datadir="data", seed=3)).anywhere
    assert (moved.path, moved.options.seed) == (tmp_path / "all.star", 3)
    assert Path(moved.options.datadir) == tmp_path / "data"
    assert Task(Path("all.star")).anywhere.options.datadir is None
