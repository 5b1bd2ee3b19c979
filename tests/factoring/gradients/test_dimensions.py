import pytest

from manifactor.factoring.gradients.looks import FEWER, MORE, Dimensions


@pytest.mark.parametrize(
    ("missing", "data", "found", "misfit", "difference"),
    [
        (False, 1.5, 2, 0.5, ""),
        (False, 1.0, 2, 1.0, MORE),
        (True, 3.5, 2, 1.5, FEWER),
        (False, 3.5, 2, 0.0, ""),  # noise fills the others
    ],
)
def test_dimensions_miss_the_data_s_both_ways(missing, data, found, misfit, difference):
    result = Dimensions(data, found, missing).misfit(2, 0.75)
    assert (result.dimensions, result.difference) == (misfit, difference)
