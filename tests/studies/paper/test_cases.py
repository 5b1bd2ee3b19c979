from operator import attrgetter

import numpy as np
import pytest

from studies.paper.cases import BEYOND, CASES, Data


@pytest.mark.parametrize("case", [*CASES.values(), *BEYOND.values()], ids=attrgetter("name"))
def test_every_data_set_is_drawn_with_its_factors(case):
    data = case.draw(12, 0)
    assert len(data.samples) == 12
    assert np.isfinite(data.samples).all()
    assert len(data.truth) == case.n_factors
    assert all(len(true) == 12 for true in data.truth)


def test_the_papers_settings_are_the_papers():
    given = {
        case.name: (case.delta, case.gamma, case.bandwidth, case.density_correction)
        for case in CASES.values()
    }
    assert given["rectangle_z"] == given["rectangle_xyz"] == (0.5, 0.85, 0.5, 0)
    for molecule in ("molecule_low", "molecule_high", "molecule_xy"):
        assert given[molecule] == (1.0, 0.8, 10.0, 1.0)
    assert (given["torus"], given["cube"]) == ((1.0, 0.6, 0.5, 0), (0.25, 0.8, 1.0, 0))


def test_three_factors_of_a_sheet_and_a_circle_are_compared_with_both_stretches():
    data = CASES["molecule_xy"].draw(8, 0)
    assert [t.shape[1] for t in data.truth_for(2)] == [2, 2]
    assert [t.shape[1] for t in data.truth_for(3)] == [2, 1, 1]
    plain = Data(np.zeros((3, 2)), (np.zeros((3, 2)), np.zeros((3, 2))))
    assert [t.shape[1] for t in plain.truth_for(3)] == [2, 2]


def test_images_become_components_of_unit_variance():
    samples = CASES["molecule_low"].draw(8, 0).samples
    assert samples.shape == (8, 4)
    assert samples.std(axis=0) == pytest.approx(1)


def test_the_papers_delta_is_a_quarter_of_the_tolerance():
    case = CASES["rectangle_z"]
    assert case.tolerance == 2.0
    words = "delta = 0.5 in units of lambda/4 (that is 2.0 in true units)"
    assert words in case.published_settings
