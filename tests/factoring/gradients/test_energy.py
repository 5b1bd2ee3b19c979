import numpy as np
import pytest

from manifactor.factoring.gradients.purity import count_directions, energy_along

from ..looks import geometry_of


@pytest.fixture(scope="module", params=["samples", "distances only"])
def geometry(request, rectangle):
    return geometry_of(rectangle[0], 60, distances_only=request.param == "distances only")


@pytest.fixture(scope="module")
def sides(geometry, rectangle):
    """The lowest function along each side, as unit coefficients."""
    functions = geometry.spectrum.functions[:, 1:6]
    units = []
    for place in rectangle[1]:
        wave = np.cos(np.pi * place).ravel()
        correlation = np.corrcoef(np.c_[wave, functions].T)[0, 1:]
        units.append(np.eye(len(geometry.eigenvalues))[:, [np.abs(correlation).argmax()]])
    return units


def test_energy_along_a_side_is_all_of_its_own_and_none_of_the_other_s(geometry, sides):
    first, second = sides
    energy = energy_along(geometry, first)
    assert (first.T @ energy @ first).item() > 0.75 * geometry.rayleigh(first)
    assert (second.T @ energy @ second).item() < 0.05 * geometry.rayleigh(second)


def test_a_side_has_one_direction_and_both_together_have_two(geometry, sides):
    assert [count_directions(geometry, side) for side in sides] == [1, 1]
    assert count_directions(geometry, np.hstack(sides)) == 2
