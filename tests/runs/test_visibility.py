"""Which directions show a motion, and which are blind to it."""

from dataclasses import replace

import numpy as np
import pytest

from manifactor.cryoem.all_views.shown import motion_records, visibility
from manifactor.cryoem.all_views.volumes import UNKNOWN
from manifactor.runs.places import Place

from ..cryoem.moving import moving_views

VIEWS = moving_views()


def test_a_motion_along_x_is_not_seen_from_there():
    along, around = (visibility(VIEWS, motion) for motion in (0, 1))
    rot, tilt = along.axis
    assert abs(np.sin(np.radians(rot))) < 0.05
    assert tilt == pytest.approx(90, abs=3)
    assert 0 < along.blind == pytest.approx(along.blind_particles)
    assert along.blind + along.shown == pytest.approx(1)
    assert (around.shown, around.blind, around.axis) == (1, 0, None)


def test_blind_directions_all_around_have_no_axis():
    height = VIEWS.directions[:, 2]
    blind = np.where(height < 0.5, UNKNOWN, 0.01)
    found = visibility(replace(VIEWS, deviations=blind[:, None]), 0)
    assert found.blind == pytest.approx(0.5, abs=0.15)
    assert found.axis is None


def test_directions_with_few_particles_do_not_count():
    few = np.where(VIEWS.deviations[:, 0] > 0.1, 1, 4 * VIEWS.counts)
    found = visibility(replace(VIEWS, counts=few), 0)
    assert (found.shown, found.blind, found.axis) == (1, 0, None)
    assert 0 < found.blind_particles < 0.1


def test_deviations_are_told_in_the_unit_of_the_factor():
    spread = np.full(9, np.pi / 60)
    places = [Place(np.zeros(9), shape, None, spread) for shape in ("interval", "circle")]
    medians = [each["median_deviation"] for each in motion_records(VIEWS, places)]
    np.testing.assert_allclose(medians, [np.pi / 60, 3])
    unknown = [Place(np.zeros((9, 2)), "other")]
    assert motion_records(VIEWS, unknown) == []
