from dataclasses import replace

import numpy as np
import pytest

from studies.paper.fig2 import NOISY, Fig2Settings, fig2, sides_of


@pytest.mark.slow
def test_both_trials_are_drawn_with_their_numbers(small, rectangles):
    section = fig2(small, rectangles)
    assert list(section.numbers) == list(NOISY)
    assert [picture.name for picture in section.pictures] == [
        "fig2-rectangle_z",
        "fig2-rectangle_xyz",
    ]
    # The samples, and five functions of two sides by two methods.
    assert len(section.pictures[0].figure.get_axes()) == 1 + 4 * 5
    default = section.numbers["rectangle_z"]["default"]
    r2 = default["function_r2"][0]
    pure = (r2 >= 0.9).sum()
    assert f"Default: {pure} of {len(r2)} functions of the long side" in section.text[0]


def test_functions_of_the_truth_alone_do_not_depend_on_the_noise(rectangles):
    found = rectangles.by_method["default"]
    flat = replace(found, samples=np.hstack(found.truth))
    assert sides_of(flat).of_noise == 0
    everything = sides_of(flat, Fig2Settings(noise_gain=-1.0))
    assert everything.of_noise == sum(len(side.r2) for side in everything.lowest)
