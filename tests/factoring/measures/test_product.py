from dataclasses import replace

import numpy as np
import pytest

from manifactor.factors.factor import make_factors, selection
from manifactor.judging.measures import product
from manifactor.judging.measures.places import place_samples
from manifactor.judging.measures.product import (
    completeness,
    dependence,
    distance_correlation,
    explained,
    leakage,
    least_explained_part,
    undivided,
    untold,
)
from manifactor.models.peeling.division import Split
from manifactor.statistics import Measurement

from ...conftest import box_spectrum
from ..places import interval, pure, ring


@pytest.mark.medium
def test_dependent_places_are_found_dependent_by_their_squares_or_by_their_ranks(rng):
    t, u = rng.uniform(size=(2, 1000))
    # No linear correlation, yet dependent; ranks see quick waves, too.
    folded, wave = np.abs(2 * t - 1), np.cos(5 * np.pi * t)
    for places, by_squares, by_ranks in [
        (u, False, False),
        ((t + 0.3 * u) / 1.3, True, True),
        (folded, True, True),
        (wave, False, True),
    ]:
        both = [t[:, None], places[:, None]]
        assert (dependence(both, by_ranks=False, rng=rng) < 0.01) == by_squares
        assert (dependence(both, rng=rng) < 0.01) == by_ranks


def test_distance_correlation_is_0_without_dependence_and_1_of_the_same_at_any_number(rng):
    for n in (200, 600):
        t, u = rng.uniform(size=(2, n, 1))
        assert abs(distance_correlation([t, u])) < 0.03
        # Ranks of intervals: no monotone function of a coordinate changes anything.
        assert distance_correlation([t, np.exp(3 * t)]) == pytest.approx(1)
        # Neither predicts the mean of the other.
        angle = 2 * np.pi * t
        assert distance_correlation([np.cos(angle), np.sin(angle)]) > 0.03
        assert distance_correlation([u, t, u + 0.2 * t]) > 0.7


def test_leakage_says_which_factor_predicts_which():
    spectrum, _ = box_spectrum([1.0], 5, n_samples=800)
    (whole,) = make_factors(spectrum, [selection(spectrum, [1])])[0]
    # The same at t and 1 - t.
    (folded,) = make_factors(spectrum, [selection(spectrum, [2])])[0]
    found = leakage([whole.embedding, folded.embedding])
    assert found[0, 1] > 0.99
    assert found[1, 0] < 0.1


def test_the_smallest_p_value_is_one_over_the_number_of_orders(rng, monkeypatch):
    monkeypatch.setattr(product, "PERMUTATIONS", 19)
    t = rng.uniform(size=500)
    assert dependence([t[:, None], t[:, None]], rng=rng) == 1 / 20


def left_by(factors, samples, dropped=0.0):
    """What factors that are curves do not tell of samples."""
    places = [factor.embedding for factor in factors]
    return untold(place_samples(places, [1] * len(places), samples), dropped)


def test_a_direction_that_no_factor_tells_is_measured_and_noise_is_not(rng):
    a, b, s = rng.uniform(size=(3, 1000, 1))
    factors = [interval(a[:, 0]), interval(b[:, 0])]
    flat = np.c_[a, b, np.zeros((1000, 4))]
    noisy = flat + 0.02 * rng.normal(size=flat.shape)
    # A quarter of the size of the others.
    third = np.c_[a, b, 0.25 * s]
    assert left_by(factors, flat).direction < 0.01
    assert left_by(factors, noisy).direction < 0.03
    assert left_by(factors, third).direction == pytest.approx(0.25, abs=0.05)
    assert left_by(factors[:1], flat).smallest == 1
    # A mean of 20 neighbours has a twentieth of the other factor's variance.
    assert left_by(factors, np.c_[3 * a, b]).smallest == pytest.approx(1 / 3, abs=0.06)
    assert untold(None).direction == 0
    assert left_by(factors, flat[:20]).direction == 0


@pytest.mark.medium
@pytest.mark.parametrize("by_column", [np.ones(10), np.linspace(0.2, 1, 10)])
@pytest.mark.parametrize("n", [400, 3000])
def test_noise_hides_no_direction_and_is_none(rng, n, by_column):
    a, b = rng.uniform(0, 2 * np.pi, size=(2, n))
    factors = [replace(interval(a), embedding=ring(a)), replace(interval(b), embedding=ring(b))]
    axes = np.linalg.qr(rng.normal(size=(10, 10)))[0]
    samples = np.hstack([1.5 * ring(a), ring(b)]) @ axes[:4]
    noisy = samples + 0.2 * by_column * rng.normal(size=samples.shape)
    further = np.outer(np.sqrt(12) * rng.uniform(size=n), axes[4])
    # The difference of two variances by chance was .19 to .23 of the smaller circle.
    assert left_by(factors, noisy).direction < 0.1
    assert left_by(factors, noisy + 0.5 * further).direction > 0.25


@pytest.mark.medium
@pytest.mark.parametrize("columns", [3, 10, 30])
def test_the_width_of_a_noisy_circle_is_no_factor_and_a_small_interval_is_one(rng, columns):
    angle = rng.uniform(0, 2 * np.pi, size=2000)
    noisy = 0.15 * rng.normal(size=(2000, columns))
    noisy[:, :2] += ring(angle)
    circle = replace(interval(angle), embedding=ring(angle))
    width = interval(np.hypot(*noisy[:, :2].T))
    assert left_by([circle, width], noisy).above_noise < 1.25
    # Components that were dropped tell of noise where none is left.
    assert left_by([circle, width], noisy[:, :2]).above_noise > 2
    assert left_by([circle, width], noisy[:, :2], 0.15**2).above_noise < 1.25
    height = rng.uniform(size=2000)
    noisy[:, 2] += 2 * 0.15 * np.sqrt(12) * height
    found = left_by([circle, interval(height)], noisy).above_noise
    assert found == pytest.approx(2, rel=0.2)


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.3])
def test_noise_in_all_directions_is_no_main_direction(rng, noise):
    t, u = rng.uniform(size=(2, 2000))
    factors, everyone = [interval(t), interval(u)], np.ones(2000, dtype=bool)
    samples = np.c_[t, u, np.zeros((2000, 6))] + noise * rng.normal(size=(2000, 8)) / np.sqrt(12)
    # The least R^2 of a direction with a hundredth of the variance was 0.
    assert explained(factors, samples, everyone) > 0.95
    assert explained(factors[:1], samples, everyone) < 0.1


def test_a_direction_of_the_data_that_no_factor_explains_is_noticed(rng):
    spectrum, waves = box_spectrum([1.3, 1.0], 20, n_samples=1000)
    x, y = (waves.tolist().index(w) for w in ([1, 0], [0, 1]))
    factors, _ = make_factors(spectrum, [selection(spectrum, [x]), selection(spectrum, [y])])
    places = np.hstack([factor.embedding for factor in factors])
    all_of_them = np.ones(len(places), dtype=bool)
    unknown = np.c_[places, 2 * rng.uniform(size=len(places))]
    assert explained(factors, places, all_of_them) > 0.9
    assert explained(factors, unknown, all_of_them) < 0.2
    assert explained(factors, None, all_of_them) == 1


def test_a_small_independent_part_that_no_factor_explains_is_noticed(rng):
    t, u, v = rng.uniform(size=(3, 2000))
    factors = [interval(t), interval(u)]
    everyone = np.ones(2000, dtype=bool)
    both, thin = np.column_stack([5 * t, u]), 0.05 * v[:, None]
    noise = 0.05 * rng.normal(size=(2000, 1))
    assert least_explained_part(factors, both, everyone) > 0.9
    assert least_explained_part(factors, np.hstack([both, thin]), everyone) < 0.05
    # Gaussian noise is no part that factors must explain.
    assert least_explained_part(factors, np.hstack([both, noise]), everyone) > 0.9
    assert least_explained_part(factors, None, everyone) == 1


def test_missing_functions_and_products_that_are_too_many_lower_the_completeness():
    spectrum, waves = box_spectrum([1.3, 1.0], 30, n_samples=1000)
    x, y = (sorted(pure(waves, side)) for side in (0, 1))
    for groups, low, high in [
        ((x, y), 0.99, 1.0),
        ((x[1:], y), 0.0, 0.9),
        ((x, sorted([*y, *y])), 0.0, 0.75),
    ]:
        factors, _ = make_factors(spectrum, [selection(spectrum, group) for group in groups])
        assert low <= completeness(spectrum, factors) <= high


def test_a_block_that_might_be_divided_once_more_is_found_by_its_q_less_its_noise():
    sure = Split(2, np.array([0.0, 0.9]), np.array([0.0, 0.1]))
    doubtful = Split(1, np.array([0.7]), np.array([0.2]))
    single = Split(1, np.empty(0), np.empty(0))
    assert undivided([sure, single, doubtful]) == Measurement(0.7, 0.2)
    assert undivided([sure]) == Measurement(0.9, 0.1)
    assert undivided([single]).value == 1
