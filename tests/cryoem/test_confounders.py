from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from manifactor.cryoem.confounders import confounder_records
from manifactor.cryoem.files.particles import Particles, view_directions
from manifactor.runs.places import Place

N = 900


@pytest.fixture
def particles(rng):
    defocus = rng.uniform(10_000, 25_000, size=N)
    angles = rng.uniform(0, [360, 180, 360], (N, 3))
    microscope = {"defocus_u": defocus, "defocus_v": defocus, "half set": rng.integers(1, 3, N)}
    microscope["optics group"] = rng.integers(1, 5, N)
    known = {"angles": angles, "shift": rng.normal(size=(N, 2)), "microscope": microscope}
    return Particles(Path("a.star"), np.arange(N), **known)


def found(particles, *places, seed=0, **how):
    records = confounder_records(particles, places, rng=np.random.default_rng(seed), **how)
    return {(each["name"], each["factor"]): SimpleNamespace(**each) for each in records}


@pytest.mark.medium
def test_what_goes_with_a_factor_is_named_and_nothing_else(particles, rng):
    defocus = (particles.microscope["defocus_u"] - 10_000) / 15_000
    state = rng.uniform(size=N)
    particles.microscope["class"] = np.floor(3 * state).astype(int)
    groups = 0.2 * particles.microscope["optics group"] + 0.1 * rng.uniform(size=N)
    expected = {
        ("defocus", 1): "factor 1 is a microscope factor, not a motion: defocus explains 9",
        ("in-plane angle", 2): "factor 2 is a pose factor, not a motion",
        ("optics group", 3): "factor 3 is a microscope factor",
        ("class", 4): "factor 4 follows the classes (R^2 0.8",
        ("defocus", 5): "factor 5 depends on defocus",
    }
    result = found(
        particles,
        Place(np.clip(defocus**2 + 0.05 * rng.normal(size=N), 0, 1), "interval"),
        Place(np.radians((particles.turned() + 40) % 360), "circle"),
        Place(groups, "interval"),
        Place(state, "interval"),
        Place(0.3 * defocus + 0.7 * rng.uniform(size=N), "interval"),
    )
    names = ("view", "in-plane angle", "shift", "defocus", "optics group", "half set", "class")
    assert {name for name, _ in result} == set(names)
    for key, each in result.items():
        assert each.meaning.startswith(expected.get(key, ""))
        assert bool(each.meaning) == (key in expected)
        assert (each.r2 > 0.1) == (key in expected)
    assert result["defocus", 1].p == 0.01
    # The square of defocus, with noise, still tells it; a state tells nothing.
    assert result["defocus", 1].imbalance < 0.25
    assert result["defocus", 4].imbalance > 0.9
    assert result["view", 1].imbalance > 0.9
    assert result["class", 4].imbalance is None
    assert "look further" in result["defocus", 5].meaning


def test_imbalance_is_that_from_the_factor_to_the_quantity(particles):
    folded = abs(particles.microscope["defocus_u"] - 17_500) / 7_500
    # Half of the nearest neighbours lie on the other side; defocus itself tells the factor.
    imbalance = found(particles, Place(folded, "interval"))["defocus", 1].imbalance
    assert imbalance == pytest.approx(2 / 3, abs=0.1)


@pytest.mark.slow
def test_a_quantity_behind_what_no_factor_explains_is_named(particles, rng):
    turn = rng.uniform(0, 360, N)
    defocus = particles.microscope["defocus_u"] / 15_000
    samples = np.column_stack([np.cos(np.radians(turn)), np.sin(np.radians(turn)), defocus])
    result = found(particles, Place(np.radians(turn), "circle"), samples=samples)
    hidden = result["defocus", 0]
    assert hidden.r2 > 0.9
    assert hidden.meaning.endswith(
        "of what no factor explains: a microscope factor hides in the data"
    )
    assert not any(c.meaning for c in result.values() if c is not hidden)


def test_too_few_particles_are_compared_with_nothing(particles, rng):
    few = particles[np.arange(30)]
    samples = rng.normal(size=(30, 2))
    place = Place(rng.uniform(size=30), "interval")
    assert found(few, place, samples=samples) == {}


def of_all_views(particles, place, *, seed=0):
    """What the view explains of places on a factor."""
    few = replace(particles, shift=None, microscope={})
    return found(few, place, seed=seed, all_views=True)["view", 1]


def estimated(state, deviation, rng):
    """Means of normal states after one measurement that deviates."""
    known = 1 / (1 + deviation**2)
    return known * (state + deviation * rng.normal(size=len(state)))


@pytest.mark.medium
def test_states_that_prefer_some_views_are_told_from_those_that_do_not(particles, rng):
    height = np.abs(view_directions(particles.angles)[:, 2])
    score = (height - height.mean()) / height.std()
    for share, depends in ((0.0, False), (0.3, True), (0.8, True)):
        state = share * score + np.sqrt(1 - share**2) * rng.normal(size=N)
        result = of_all_views(particles, Place(state, "interval", None, np.ones(N)))
        assert result.r2 == pytest.approx(share**2, abs=0.05)
        assert ("some states prefer some views" in result.meaning) == depends


@pytest.mark.slow
def test_a_view_that_shows_little_of_a_motion_is_no_confounder(particles):
    height = np.abs(view_directions(particles.angles)[:, 2])
    for seed in range(2):
        rng = np.random.default_rng(seed)
        deviation = 0.1 + 5 * height**4
        place = estimated(rng.normal(size=N), deviation, rng)
        interval = Place(place, "interval", None, deviation)
        assert not of_all_views(particles, interval, seed=seed).meaning
        # Images that show nothing of a turn may have one angle in common.
        blind = height > 0.9
        angle = np.where(blind, 1.0, rng.uniform(0, 2 * np.pi, N))
        circle = Place(angle, "circle", None, np.where(blind, 1.8, 0.1))
        assert not of_all_views(particles, circle, seed=seed).meaning
    sure = Place(angle, "circle", None, np.full(N, 0.1))
    assert of_all_views(particles, sure).meaning
