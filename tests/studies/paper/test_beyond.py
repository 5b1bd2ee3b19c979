from dataclasses import replace

import numpy as np
import pytest

from studies.paper.beyond import BEYOND_METHODS, BeyondSettings, angle_error, beyond, joint_angles
from studies.paper.cases import BEYOND


def ring(angle):
    return np.column_stack([np.cos(angle), np.sin(angle)])


def test_joint_angles_are_the_first_link_and_the_difference_of_both(torus_found, rng):
    first, second = rng.uniform(0, 2 * np.pi, size=(2, 500))
    circles = tuple(replace(factor, topology="circle") for factor in torus_found.factors)
    found = replace(
        torus_found,
        truth=(ring(first), ring(second)),
        places=(ring(1 - first), ring(second + 2)),
        factors=circles,
        rows=np.arange(500),
    )
    angles = joint_angles(found)
    for joint, true in ((1, first), (2, second - first)):
        assert angle_error(angles[joint][0], true)[1] < 1.5


def test_links_that_are_no_circles_have_no_angles(torus_found):
    intervals = tuple(replace(factor, topology="interval") for factor in torus_found.factors)
    assert joint_angles(replace(torus_found, factors=intervals)) == {}


@pytest.mark.slow
def test_every_shape_and_method_is_in_the_table(small, lab):
    section = beyond(small, lab, recipe=BeyondSettings(n_poses=2))
    assert len(section.tables[0].rows) == len(BEYOND) * len(BEYOND_METHODS)
    places, arm = section.pictures
    assert len(places.figure.get_axes()) == 2 * len(BEYOND)
    assert len(arm.figure.get_axes()[0].get_lines()) == 2
    assert arm.caption.startswith("Left: 2 poses")
