from dataclasses import replace

import pytest

from studies.paper.cases import CASES
from studies.paper.finding import found_in_images
from studies.paper.panels import lowest_functions


@pytest.mark.slow
def test_images_are_fitted_in_part_and_functions_belong_to_the_fitted_ones():
    data = CASES["molecule_low"].draw(600, 0)
    found = found_in_images(data, 0, n_fitted=500)
    assert len(found.rows) == 500
    assert len(found.places[0]) == len(found.truth[0]) == len(found.samples) == 600
    for true in range(2):
        # Over other rows it would be 0.
        assert lowest_functions(found, true).r2[0] > 0.9
    assert found.numbers["own"] > 0.9
    assert found.images.shape[0] == 3


def test_a_true_factor_that_was_not_found_counts_as_nothing(torus_found):
    half = replace(torus_found, places=torus_found.places[:1], factors=torus_found.factors[:1])
    matched = [half.matching(true) for true in range(2)]
    assert sorted(matched, key=str) == [0, None]
    assert half.numbers["own"] == half.score.own / 2
    assert not half.numbers["solved"]
    assert torus_found.numbers["solved"]
