from dataclasses import replace

import numpy as np
import pytest

from manifactor.cryoem.directions import (
    half_sphere_cells,
    known_directions,
    populated_views,
    sphere_cells,
)
from manifactor.cryoem.simulate.all_views import PreferredDirections, uniform_directions

from .files.test_particles import seen_from


def test_counts_are_those_of_the_particles_that_a_fit_would_use(rng):
    directions = PreferredDirections().draw(3000, rng)
    rot = np.degrees(np.arctan2(directions[:, 1], directions[:, 0]))
    tilt = np.degrees(np.arccos(directions[:, 2]))
    seen = seen_from(np.c_[rot, tilt, np.zeros(3000)])
    found = populated_views(known_directions(seen), width=12.0)
    counts = [cone.n_particles for cone in found]
    assert counts == sorted(counts, reverse=True)
    near = [seen.near_view(*cone.view, width=12.0).sum() for cone in found]
    assert len(counts) == 8
    assert near == counts


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


def test_missing_poses_are_refused():
    without = replace(seen_from(np.zeros((3, 3))), angles=None)
    with pytest.raises(ValueError, match=r"need poses; a.star has none.*rlnAngleRot"):
        known_directions(without)
    some = seen_from([[0, 0, 0], [np.nan, 0, 0]])
    with pytest.raises(ValueError, match=r"1 of 2 in a.star have none. Remove"):
        known_directions(some)


@pytest.mark.parametrize("cells", [sphere_cells(12), half_sphere_cells(6)], ids=["whole", "half"])
def test_cells_have_equal_areas_and_hold_every_direction_once(cells, rng):
    counts = cells.counts(uniform_directions(100_000, rng))
    assert counts.sum() == 100_000
    expected = 100_000 / len(cells)
    # As even as chance: the squared deviations are those of Poisson numbers.
    assert np.mean((counts - expected) ** 2) / expected == pytest.approx(1, abs=0.35)
    assert cells.index(cells.centres).tolist() == list(range(len(cells)))
