import numpy as np
import pytest

from manifactor import Spectrum
from manifactor._support.parameters import given as chosen
from manifactor.factors.charts import make_chart, make_cloud
from manifactor.factors.factor import make_factors, selection
from manifactor.factors.shapes import angle_of, chart_functions, widest_gap
from manifactor.statistics import predictability

from ..places import sphere


def spectrum_of(eigenvalues, *functions):
    """A spectrum whose functions after the constant are the given ones, scaled."""
    functions = np.column_stack(functions)
    functions = functions - functions.mean(axis=0)
    functions /= np.sqrt((functions**2).mean(axis=0))
    n = len(functions)
    return Spectrum(
        np.array([0.0, *eigenvalues]),
        np.c_[np.ones(n), functions],
        np.full(n, 1 / n),
        np.zeros(len(eigenvalues) + 1),
        1e-3,
        chosen("exact"),
    )


def factor_of(spectrum):
    count = len(spectrum.eigenvalues)
    return make_factors(spectrum, [selection(spectrum, range(1, count))])[0][0]


def in_wells(n, rng, depth=3.0):
    """Angles in three unequal wells."""
    angle = rng.uniform(0, 2 * np.pi, size=50 * n)
    energy = depth * (1 + np.cos(3 * angle)) / 2 + 0.3 * np.cos(angle)
    return angle[rng.uniform(size=len(angle)) < np.exp(-energy - 0.3)][:n]


@pytest.mark.medium
def test_a_circle_with_wells_is_not_an_interval(rng):
    angle = in_wells(1500, rng)
    # As in deep wells: nearly a step from one well to the next.
    steps = angle + 0.25 * np.sin(3 * angle)
    turned = steps + 0.2
    cosine, sine = np.cos(turned), np.sin(turned)
    assert predictability(cosine[:, None], sine[:, None])[0] > 0.6
    factor = factor_of(spectrum_of([1, 1.3], cosine, sine))
    assert (factor.topology, factor.dimension) == ("circle", 1)
    order = np.argsort(angle)
    turns = np.diff(np.unwrap(factor.coordinate[order]))
    assert (turns >= 0).all() or (turns <= 0).all()


def test_a_star_of_three_arms_is_not_folded(rng):
    arm, radius = rng.integers(3, size=1500), rng.uniform(size=1500)
    # Values at the arms' ends, such that one function nearly tells the arms apart.
    ends = np.array([[0.94, -0.17, -0.77], [-0.35, 0.98, -0.64]])
    wave = np.sin(np.pi * radius / 2)
    spectrum = spectrum_of([1, 1.01, 4], *(ends[:, arm] * wave), np.cos(np.pi * radius))
    factor = factor_of(spectrum)
    assert (factor.topology, factor.dimension) == ("other", 1)
    star = radius[:, None] * np.eye(3)[arm]
    assert predictability(factor.embedding, star).min() > 0.98


def test_all_functions_of_a_batch_enter_a_chart_together(rng):
    x, y, z = sphere(rng, 1500).T
    # The projective plane: opposite points of a sphere are the same place.
    quadratic = [y * z, x * z, x * y, x * x - y * y, 3 * z * z - 1]
    spectrum = spectrum_of([6, 6.02, 6.05, 6.1, 6.2], *quadratic)
    factor = factor_of(spectrum)
    assert (factor.topology, factor.dimension) == ("other", 2)
    assert factor.embedding.shape[1] == 5


def test_a_higher_function_that_the_places_do_not_predict_enters_the_chart(rng):
    s, t = rng.uniform(size=(2, 1500))
    long = [np.cos(k * np.pi * s) for k in (1, 2)]
    spectrum = spectrum_of([1, 4, 5], *long, np.cos(np.pi * t))
    every = selection(spectrum, [1, 2, 3])
    assert chart_functions(spectrum, every, every[:, :0]) == (0, 2)


def test_an_impure_function_does_not_enter_the_chart(rng):
    s, t = rng.uniform(size=(2, 1500))
    wave, other = np.cos(np.pi * s), np.cos(np.pi * t)
    impure = np.cos(2 * np.pi * s) + 0.8 * other
    spectrum = spectrum_of([1, 4, 5], wave, impure, other)
    block, others = selection(spectrum, [1, 2]), selection(spectrum, [3])
    assert chart_functions(spectrum, block, others[:, :0]) == (0, 1)
    assert chart_functions(spectrum, block, others) == (0,)


def test_a_curve_that_goes_around_twice_is_not_a_circle(rng):
    t = rng.uniform(size=1500)
    angle = 4 * np.pi * t
    radius = 1 + 0.3 * t
    across = np.cos(np.pi * t)
    plane = [radius * np.cos(angle), radius * np.sin(angle)]
    assert factor_of(spectrum_of([1, 1.1, 3], *plane, across)).topology == "other"
    once = [np.cos(angle), np.sin(angle), np.cos(2 * angle)]
    assert factor_of(spectrum_of([1, 1.1, 4], *once)).topology == "circle"


def test_a_circle_stays_one_where_another_factor_changes_its_radius(rng):
    turn, height = rng.uniform(size=(2, 3000))
    radius = np.exp(-3 * height)
    angle = 2 * np.pi * turn
    plane = [radius * np.cos(angle), radius * np.sin(angle)]
    spectrum = spectrum_of([1, 1.1, 2], *plane, np.cos(np.pi * height))
    (factor, _), _ = make_factors(spectrum, [selection(spectrum, [1, 2]), selection(spectrum, [3])])
    assert factor.topology == "circle"
    assert np.cos(factor.coordinate - angle).mean() > 0.98


@pytest.mark.parametrize(("turns", "expected"), [(0, 0.0), (1, 1.0)])
def test_functions_that_another_factor_turns_are_modulated(rng, turns, expected):
    turn, height = rng.uniform(size=(2, 3000))
    # Half a turn of the strip for each turn around the circle, as on a Moebius band.
    half = turns * np.pi * turn
    wave = np.sin(np.pi * (height - 0.5))
    strip = [wave * np.cos(half), wave * np.sin(half + (turns == 0))]
    circle = [f(k * 2 * np.pi * turn) for k in (1, 2) for f in (np.cos, np.sin)]
    spectrum = spectrum_of([1, 1.1, 2, 2, 8, 8], *strip, *circle)
    columns = selection(spectrum, [1, 2] if turns else [1])
    others = selection(spectrum, [3, 4, 5, 6])
    chart, _ = make_chart(spectrum, columns, others)
    assert chart.modulation(spectrum, 4000) == pytest.approx(expected, abs=0.15)


def test_angles_stay_below_a_whole_turn():
    np.testing.assert_allclose(angle_of(np.array([[1.0, -1e-20], [0.0, 1.0]])), [0, np.pi / 2])


def test_the_widest_gap_may_reach_across_0():
    np.testing.assert_allclose(widest_gap(np.array([3.0, 0.0, 1.0])), (3, 2 * np.pi - 3))


def test_a_cloud_is_pulled_as_its_places_are_among_others(rng):
    places = sphere(rng, 500) + rng.normal(scale=0.05, size=(500, 3))
    cloud = make_cloud(places, 2)
    among_others = cloud.pull(np.vstack([places, 2 * places]))
    np.testing.assert_allclose(cloud.pull(places), among_others[:500], atol=1e-12)
