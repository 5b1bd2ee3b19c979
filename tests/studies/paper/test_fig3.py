from dataclasses import replace

import numpy as np
import pytest

from studies.paper.fig3 import MOLECULES, THREE_MOTIONS, TWO_MOTIONS, fig3, motions_of


@pytest.mark.slow
def test_every_molecule_is_drawn_with_its_numbers(small, lab):
    section = fig3(small, lab)
    assert list(section.numbers) == list(MOLECULES)
    # The molecule, and five functions of two motions by two methods.
    assert len(section.pictures[0].figure.get_axes()) == 1 + 4 * 5
    own = section.numbers["molecule_low"]["default"]["own"]
    assert f"Default: R^2 {own:.3f} own" in section.text[0]
    assert "stretches over x and y" in section.pictures[2].caption
    assert "over stretch (across)" in section.pictures[1].caption


def test_two_stretches_are_one_motion_or_two(lab):
    found = lab.by_method["default"]
    assert tuple(motions_of(found).lowest) == TWO_MOTIONS
    turn, stretch = found.truth
    apart = replace(found, truth=(turn, *np.hsplit(stretch, 2)))
    assert tuple(motions_of(apart).lowest) == THREE_MOTIONS
