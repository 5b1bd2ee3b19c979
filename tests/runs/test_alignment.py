"""Factors that two fits share: pairs, what is private, maps, and which samples are compared."""

from pathlib import Path

import numpy as np
import pytest

from manifactor import ManifoldFactorizer, align, datasets
from manifactor.cryoem.files.particles import Particles
from manifactor.cryoem.runs import ParticleRun
from manifactor.runs.alignment import align_runs
from manifactor.runs.places import Place
from manifactor.runs.run import Run

pytestmark = pytest.mark.medium

N = 1500


def run_of(name, *places, rows=None, particles=None):
    """A run with places that are known, as lines of coordinates.csv would be."""
    places = tuple(Place(k, t, np.ones(len(k))) for k, t in places)
    record = {"input": f"{name}.npy"}
    rows = np.arange(len(places[0])) if rows is None else rows
    if particles is None:
        return Run(Path(name), record, rows, places)
    run = ParticleRun(Path(name), record | {"particles": f"{name}.star"}, rows, places)
    run.__dict__["particles"] = particles
    return run


def turn(angles):
    return np.angle(np.exp(1j * angles))


def test_shared_factors_are_mapped_and_others_are_private(rng):
    angle, (line, own, other) = rng.uniform(0, 2 * np.pi, N), rng.uniform(size=(3, N))
    first = run_of("a", (angle, "circle"), (line, "interval"), (own, "interval"))
    # Turned by 40 degrees, mirrored and stretched; reversed and stretched.
    mirrored = (np.radians(40) - angle) % (2 * np.pi)
    warped = (mirrored + 0.3 * np.sin(mirrored)) % (2 * np.pi)
    second = run_of("b", ((1 - line) ** 2, "interval"), (other, "interval"), (warped, "circle"))
    found = align_runs(first, second)
    assert [(i, j) for i, j, _ in found.pairs] == [(0, 2), (1, 0)]
    assert min(r2 for *_, r2 in found.pairs) > 0.99
    assert found.private == ((2,), (1,))
    assert found.r2[2].max() < 0.05
    assert found.how[0].startswith("mirrored, turned by ")
    assert found.how[1] == "mirrored"
    given = np.column_stack([(1 - line) ** 2, other, warped])
    mapped = found.map(given)
    assert abs(turn(mapped[:, 0] - angle)).max() < 0.01
    assert abs(mapped[:, 1] - line).max() < 0.01
    assert np.isnan(mapped[:, 2]).all()
    # The same in the columns of `transform`.
    wide = found.map(np.column_stack([*given.T[:2], np.cos(warped), np.sin(warped)]))
    np.testing.assert_allclose(wide[:, 0] + 1j * wide[:, 1], np.exp(1j * mapped[:, 0]))
    np.testing.assert_array_equal(wide[:, 2], mapped[:, 1])
    with pytest.raises(ValueError, match=r"must have 3 columns.* or 4"):
        found.map(given[:, :2])


def test_a_turn_is_told_and_maps_are_monotone(rng):
    angle, line = rng.uniform(0, 2 * np.pi, N), rng.uniform(size=N)
    noise = rng.normal(scale=0.02, size=(2, N))
    first = run_of("a", (angle, "circle"), (line, "interval"))
    second = run_of(
        "b",
        ((angle - np.radians(30) + noise[0]) % (2 * np.pi), "circle"),
        ((np.sqrt(line) + noise[1]).clip(0, 1), "interval"),
    )
    found = align_runs(first, second)
    assert found.how == ("turned by 30 degrees", "same direction")
    assert align_runs(first, first).how == ("same direction", "same direction")
    steps = np.linspace(0, 1, 500)[:-1]
    mapped = found.map(np.column_stack([2 * np.pi * steps, steps]))
    assert (turn(np.diff(mapped[:, 0], append=mapped[0, 0])) >= 0).all()
    assert (np.diff(mapped[:, 1]) >= 0).all()


def test_particles_are_compared_by_their_names(rng):
    line = rng.uniform(size=N)
    order = rng.permutation(N)[: N // 2]

    def particles(some):
        stack = np.array(["x.mrcs", "y.mrcs"])[some % 2]
        return Particles(Path("p.star"), np.arange(len(some)), stack=stack, slice=some // 2)

    first = run_of("a", (line, "interval"), particles=particles(np.arange(N)))
    second = run_of("b", (line[order], "interval"), particles=particles(order))
    found = align_runs(first, second)
    assert found.pairs[0][2] > 0.99
    assert str(N // 2) in found.samples.why
    # Other halves of the particles have none in common, though as many rows.
    rest = np.setdiff1d(np.arange(N), order)
    other = run_of("c", (line[rest], "interval"), particles=particles(rest))
    with pytest.raises(ValueError, match="got 0 in common"):
        align_runs(second, other)


@pytest.fixture(scope="module")
def cylinder():
    return datasets.sample("cylinder", 1600, random_state=1)[0]


def fitted(X, **how):
    return ManifoldFactorizer(sense="geometry", random_state=0).fit(X, **how)


@pytest.fixture(scope="module")
def halves(cylinder):
    return fitted(cylinder[::2]), fitted(cylinder[1::2])


def test_half_sets_are_aligned_by_locating_samples(cylinder, halves):
    found = align(*halves)
    assert found.samples.value == "located"
    assert found.private == ((), ())
    assert min(r2 for *_, r2 in found.pairs) > 0.95
    mapped, right = found.map(halves[1].coordinates()), halves[0].coordinates(cylinder[1::2])
    circle = [factor.topology for factor in halves[0].factors_].index("circle")
    off = mapped - right
    off[:, circle] = turn(off[:, circle])
    assert np.median(abs(off), axis=0).max() < 0.05
    # The same with the samples given, or with others that both locate.
    for X in (cylinder[1::2], cylinder):
        assert [pair[:2] for pair in align(*halves, X).pairs] == [pair[:2] for pair in found.pairs]


def test_too_few_samples_of_the_callers_are_refused(cylinder, halves):
    with pytest.raises(ValueError, match="100 samples or more; got 5"):
        align(*halves, cylinder[:5])


def test_fits_of_other_samples_are_not_aligned(cylinder, halves):
    few = datasets.sample("rectangle", 500, random_state=0)[0]
    elsewhere = fitted(np.c_[few, np.zeros(500)] + 50)
    with pytest.raises(ValueError, match="cannot locate"):
        align(halves[0], elsewhere)
    with pytest.raises(ValueError, match="got 0 in common"):
        align(halves[0], fitted(few))
    # As many samples, but nothing in common.
    unlike = fitted(datasets.sample("rectangle", 800, random_state=2)[0])
    found = align(halves[0], unlike)
    assert found.pairs == ()
    assert found.r2.max() < 0.1
