from pathlib import Path

import numpy as np
import pytest

from manifactor.cryoem.directions import (
    half_sphere_cells,
    known_directions,
    populated_views,
    sphere_cells,
)
from manifactor.cryoem.files.particles import Particles, view_directions
from manifactor.cryoem.simulate.all_views import PreferredDirections, uniform_directions


def particles(angles):
    return Particles(Path("a.star"), np.arange(len(angles)), angles=np.asarray(angles, dtype=float))


def test_counts_are_those_of_the_particles_that_a_fit_would_use(rng):
    directions = PreferredDirections().draw(3000, rng)
    rot = np.degrees(np.arctan2(directions[:, 1], directions[:, 0]))
    tilt = np.degrees(np.arccos(directions[:, 2]))
    seen = particles(np.c_[rot, tilt, np.zeros(3000)])
    found = populated_views(known_directions(seen), width=12.0)
    assert len(found) == 8
    counts = [view.n_particles for view in found]
    assert counts == sorted(counts, reverse=True)
    for view in found:
        near = seen.near_view(view.rot, view.tilt, width=12.0)
        assert near.sum() == view.n_particles


def test_preferred_directions_are_the_most_populated(rng):
    preferred = PreferredDirections(concentration=60.0)
    found = populated_views(preferred.draw(20_000, rng), n_views=4)
    for view, centre in zip(found, preferred.centres, strict=True):
        assert view.direction @ centre > np.cos(np.radians(3))


def test_cones_do_not_overlap(rng):
    found = populated_views(uniform_directions(2000, rng), width=15.0, n_views=20)
    directions = np.array([view.direction for view in found])
    cosines = directions @ directions.T
    assert (cosines[~np.eye(len(found), dtype=bool)] < np.cos(np.radians(30))).all()


def test_one_direction_is_one_view():
    angles = np.tile([180.0, 120.0, 0.0], (50, 1))
    (view,) = populated_views(view_directions(angles))
    assert view.n_particles == 50
    assert (abs(view.rot), view.tilt) == (180, 120)


def test_narrow_cones_have_fine_centres():
    angles = np.tile([33.3, 44.4, 0.0], (5, 1))
    (view,) = populated_views(view_directions(angles), width=0.1)
    assert (view.rot, view.tilt, view.n_particles) == (33.3, 44.4, 5)


def test_missing_poses_are_refused():
    without = Particles(Path("a.star"), np.arange(3))
    with pytest.raises(ValueError, match=r"need poses; a.star has none.*rlnAngleRot"):
        known_directions(without)
    some = particles([[0, 0, 0], [np.nan, 0, 0]])
    with pytest.raises(ValueError, match=r"1 of 2 in a.star have none. Remove"):
        known_directions(some)


def test_cells_have_equal_areas_and_hold_every_direction_once(rng):
    cells = sphere_cells(12)
    counts = cells.counts(uniform_directions(200_000, rng))
    assert counts.sum() == 200_000
    expected = 200_000 / len(cells)
    # As even as chance: the squared deviations are those of Poisson numbers.
    assert np.mean((counts - expected) ** 2) / expected == pytest.approx(1, abs=0.25)
    poles = np.array([[0.0, 0, 1], [0, 0, -1], [-1, 0, 0], [-1, -1e-17, 0]])
    assert (cells.index(poles) < len(cells)).all()
    assert cells.index(poles)[1] >= len(cells) - cells.per_band[-1]


def test_the_centre_of_a_cell_lies_in_it():
    cells = sphere_cells(12)
    assert cells.index(cells.centres).tolist() == list(range(len(cells)))


def test_a_view_and_the_one_from_behind_lie_in_one_cell_of_the_half_sphere(rng):
    cells, directions = half_sphere_cells(6), uniform_directions(100_000, rng)
    assert (cells.index(directions) == cells.index(-directions)).all()
    assert cells.index(cells.centres).tolist() == list(range(len(cells)))
    expected = 100_000 / len(cells)
    spread = np.mean((cells.counts(directions) - expected) ** 2)
    assert spread / expected == pytest.approx(1, abs=0.35)
