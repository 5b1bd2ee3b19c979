from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifactor.factors.factor import make_factors, selection
from manifactor.factors.shapes import interval_ends, place_on_shape
from manifactor.statistics import predictability

from ...conftest import box_spectrum, grid


def circle_spectrum(n=800):
    angle = 2 * np.pi * grid(n, 1)[:, 0]
    waves = np.sqrt(2) * np.column_stack(
        [g(k * angle) for k in (1, 2, 3) for g in (np.cos, np.sin)]
    )
    spectrum, _ = box_spectrum([1.0], 7, n_samples=n)
    return replace(
        spectrum, eigenvalues=np.array([0.0, 1, 1, 4, 4, 9, 9]), functions=np.c_[np.ones(n), waves]
    ), angle


def test_exact_functions_of_an_interval_give_its_arc_length():
    spectrum, _ = box_spectrum([2.0], 6, n_samples=800)
    factor = make_factors(spectrum, [selection(spectrum, [1, 2, 3, 4])])[0][0]
    assert (factor.topology, factor.dimension) == ("interval", 1)
    np.testing.assert_allclose(factor.coordinate, grid(800, 1)[:, 0], atol=5e-3)
    np.testing.assert_allclose(factor.eigenvalues, (np.pi * np.arange(1, 5) / 2) ** 2)
    assert factor.confidence.mean() > 0.99
    assert repr(factor).startswith("Factor(interval, dimension=1, n_functions=4, lowest")
    assert str(factor) == "an interval, 4 eigenfunctions, eigenvalues from 2.467"


def test_the_ends_of_an_interval_are_where_its_samples_end():
    t = grid(800, 1)[:, 0]
    # As the lowest function of an uneven interval
    stretched = 0.9 * np.cos(np.pi * t)[:, None] + 0.1
    ends = interval_ends("interval", stretched)
    _, coordinate = place_on_shape("interval", stretched, None, ends)
    np.testing.assert_allclose(coordinate, t, atol=5e-3)


@pytest.mark.medium
@given(turn=st.floats(0, 2 * np.pi))
@settings(max_examples=8)
def test_a_rotation_inside_the_eigenspace_of_a_circle_only_shifts_the_angle(turn):
    spectrum, angle = circle_spectrum()
    coefficients = selection(spectrum, [1, 2, 3, 4])
    c, s = np.cos(turn), np.sin(turn)
    coefficients[:, :2] = coefficients[:, :2] @ [[c, -s], [s, c]]
    factor = make_factors(spectrum, [coefficients])[0][0]
    assert (factor.topology, factor.dimension) == ("circle", 1)
    assert abs(np.mean(np.exp(1j * (factor.coordinate - angle)))) > 1 - 1e-9
    assert (factor.coordinate >= 0).all()
    assert (factor.coordinate < 2 * np.pi).all()
    np.testing.assert_allclose(np.hypot(*factor.embedding.T), 1)


@pytest.mark.parametrize(("lengths", "dimension"), [([1.3, 1.0], 2), ([1.3, 1.1, 1.0], 3)])
def test_a_box_has_the_dimension_of_its_sides(lengths, dimension):
    spectrum, _ = box_spectrum(lengths, 10, n_samples=2000)
    factor = make_factors(spectrum, [selection(spectrum, range(1, 9))])[0][0]
    assert (factor.topology, factor.dimension) == ("other", dimension)


def test_places_of_the_training_samples_are_the_factor_s_own_and_angles_below_a_full_turn():
    spectrum, _ = circle_spectrum()
    (factor,), (reading,) = make_factors(spectrum, [selection(spectrum, [1, 2])])
    embedding, coordinate = reading.place(spectrum.functions)
    np.testing.assert_array_equal(embedding, factor.embedding)
    np.testing.assert_array_equal(coordinate, factor.coordinate)
    _, angle = reading.place(np.array([[1.0, 1.0, -1e-20, 0, 0, 0, 0]]))
    assert angle.tolist() == [0.0]


def test_functions_are_sorted_by_eigenvalue_whatever_order_they_are_given_in():
    spectrum, _ = box_spectrum([1.0], 5)
    factor = make_factors(spectrum, [selection(spectrum, [3, 1, 2])])[0][0]
    assert (np.diff(factor.eigenvalues) > 0).all()
    np.testing.assert_array_equal(factor.functions, spectrum.functions[:, 1:4])
    # The only factor is placed with confidence.
    assert (make_factors(spectrum, [selection(spectrum, [1])])[0][0].confidence == 1).all()


def test_confidence_is_one_where_gradients_are_orthogonal_and_low_where_they_are_not():
    spectrum, waves = box_spectrum([1.0, 1.0], 40, n_samples=2000)
    x, y = (waves.tolist().index(w) for w in ([1, 0], [0, 1]))
    assert all(
        (f.confidence > 0.99).all()
        for f in make_factors(spectrum, [selection(spectrum, [i]) for i in (x, y)])[0]
    )
    slanted = selection(spectrum, [y])
    slanted[x] = slanted[y] = 0.5**0.5
    for factor in make_factors(spectrum, [selection(spectrum, [x]), slanted])[0]:
        assert factor.confidence.mean() < 0.6


def test_the_other_factor_s_modulation_is_taken_out_of_a_circle_s_radius():
    spectrum, _ = circle_spectrum(n=3000)
    rng = np.random.default_rng(0)
    other = np.sqrt(2) * np.cos(np.pi * rng.uniform(size=3000))
    functions = spectrum.functions.copy()
    functions[:, 1:3] *= (1 + 0.2 * other)[:, None]
    functions[:, 3] = other
    eigenvalues = np.array([0.0, 1, 1, 1.2, 4, 9, 9])
    spectrum = replace(spectrum, eigenvalues=eigenvalues, functions=functions)
    chart = make_factors(spectrum, [selection(spectrum, [1, 2]), selection(spectrum, [3])])[1][
        0
    ].chart
    raw, freed = functions[:, 1:3], chart(functions)
    np.testing.assert_allclose(chart.read(functions @ chart.combinations), freed, atol=1e-12)
    assert predictability(raw, other[:, None])[0] > 0.5
    assert predictability(freed, other[:, None])[0] < 0.1
