import numpy as np
import pytest

from manifactor.runs.places import Place
from manifactor.views.explorer.neighbourhoods import reach, strata

N = 4000


@pytest.fixture
def dependent(rng):
    """An interval and a circle that depends on it."""
    line = rng.uniform(size=N)
    angle = (2 * np.pi * line + np.pi / 2 * rng.normal(size=N)) % (2 * np.pi)
    return Place(line, "interval"), Place(angle, "circle")


def spread(place, rows, weights):
    """Weighted mean of a circle's cosine and sine."""
    return weights @ place.features[rows]


def test_matched_samples_are_spread_over_the_other_factor_as_all_samples_are(dependent):
    found = strata(dependent, 0, count=240)
    everywhere = dependent[1].features.mean(axis=0)
    for where in (0.1, 0.5, 0.9):
        rows, weights, _ = found.near([[where], [0]], 240)
        nearest = np.argsort(np.abs(dependent[0].coordinate - where))[:240]
        even = np.linalg.norm(spread(dependent[1], rows, weights) - everywhere)
        uneven = np.linalg.norm(spread(dependent[1], nearest, np.full(240, 1 / 240)) - everywhere)
        assert even < 0.1 < 0.2 < uneven
        assert weights.sum() == pytest.approx(1)
        assert len(set(rows.tolist())) == len(rows)


def test_held_samples_are_near_on_all_factors_across_0_too(dependent):
    at = [[0.5], [359.0]]
    rows, weights, reached = strata(dependent, None, count=50).near(at, 50)
    assert len(rows) == 50
    assert np.allclose(weights, 1 / 50)
    assert reached[0] < 0.12
    assert reached[1] < 40
    assert (dependent[1].displayed[rows] < 180).any()
    assert (dependent[1].displayed[rows] > 180).any()


def test_the_nearest_sample_comes_first(dependent):
    rows, *_ = strata(dependent, 0, count=100).near([[0.3], [0]], 100)
    away = np.abs(dependent[0].coordinate - 0.3)
    assert away[rows[0]] == away.min()
    assert (np.diff(away[rows]) >= 0).all()


def test_one_factor_alone_is_matched_with_nothing(rng):
    line = (Place(rng.uniform(size=300), "interval"),)
    rows, weights, *_ = strata(line, 0, count=20).near([[0.5]], 20)
    assert set(rows) == set(np.argsort(np.abs(line[0].coordinate - 0.5))[:20])
    assert np.allclose(weights, 1 / 20)


def test_a_surface_is_searched_in_all_its_dimensions(rng):
    surface = (Place(rng.normal(size=(500, 3)), "other"), Place(rng.uniform(size=500), "interval"))
    at = [surface[0].coordinate[7].tolist(), [0.5]]
    rows, *_ = strata(surface, 0, count=10).near(at, 10)
    assert rows[0] == 7


def test_more_samples_than_there_are_gives_all_of_them(rng):
    line = (Place(rng.uniform(size=30), "interval"), Place(rng.uniform(size=30), "interval"))
    rows, weights, *_ = strata(line, 0, count=400).near([[0.5], [0.5]], 400)
    assert sorted(rows) == list(range(30))
    assert weights.sum() == pytest.approx(1)


def test_unequal_parts_of_the_other_factors_count_by_their_size(rng):
    line = rng.uniform(size=20_000)
    close = np.clip(line + 0.1 * rng.normal(size=len(line)), 0, 1)
    places = (
        Place(rng.uniform(size=len(line)), "interval"),
        Place(line, "interval"),
        Place(close, "interval"),
    )
    rows, weights, *_ = strata(places, 0, count=2000).near([[0.5]] * 3, 2000)
    apart = np.abs(line - close)
    assert weights.sum() == pytest.approx(1)
    assert weights @ apart[rows] == pytest.approx(apart.mean(), rel=0.05)


def test_nine_in_ten_samples_lie_within_reach():
    line = Place(np.arange(101) / 100, "interval")
    assert reach(line, [0.0], np.arange(101)) == pytest.approx(0.9)
    ring = Place(np.radians(np.arange(0.0, 360.0)), "circle")
    assert reach(ring, [350.0], np.array([340, 0, 10])) == pytest.approx(18)


def test_a_place_asked_for_in_degrees_is_found_in_radians():
    ring = Place(np.radians(np.arange(0.0, 360.0)), "circle")
    rows, *_ = strata([ring], None, count=1).near([[271.0]], 1)
    assert rows.tolist() == [271]
