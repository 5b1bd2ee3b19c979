from functools import partial
from pathlib import Path
from types import SimpleNamespace

import mrcfile
import numpy as np
import pytest

from manifactor.cryoem import averages as averaging
from manifactor.cryoem.averages import average, half_averages, half_sets, write_averages
from manifactor.cryoem.files.particles import Particles
from manifactor.cryoem.files.stacks import ImageArray
from manifactor.cryoem.movies import can_write_mp4
from manifactor.cryoem.one_view import View
from manifactor.runs.places import Place

from ...conftest import PickledWorkers

N, SIDE = 240, 16


@pytest.fixture
def latents(rng):
    """Two independent latents in [0, 1]."""
    return rng.uniform(size=(2, N))


def run_of(places, images):
    return SimpleNamespace(
        place=lambda factor: places[factor - 1],
        places=tuple(places),
        images=lambda: View(ImageArray(images, 2.0)),
        rows=np.arange(N),
    )


@pytest.fixture
def run(latents):
    """Images whose first pixels are the latents themselves."""
    images = np.zeros((N, SIDE, SIDE), dtype=np.float32)
    images[:, 0, :2] = latents.T
    return run_of([Place(each, "interval") for each in latents], images)


def test_averages_along_a_factor_follow_it(run):
    found = average(run, [1], n_bins=5, matched=False)
    assert found.shape == (5,)
    assert found.pixel_size == 2
    assert found.means[:, 0, 0] == pytest.approx(found.centres[0], abs=0.03)
    assert found.captions == [["0.10", "0.30", "0.50", "0.70", "0.90"]]


def test_averages_do_not_depend_on_who_reads_the_images(latents, rng):
    images = rng.standard_normal((N, SIDE, SIDE)).astype(np.float32)
    # Turned relative to the first, which only one of the workers sees.
    angles = np.column_stack([np.zeros((N, 2)), rng.uniform(0, 360, N)])
    particles = Particles(Path("a.star"), np.arange(N), angles=angles)
    run = run_of([Place(latents[0], "interval")], images)
    view = View(ImageArray(images, block_bytes=10 * 4 * SIDE**2), particles)
    run.images = lambda: view
    mean = partial(average, run, [1], n_bins=3, matched=False)
    here = mean().means
    workers = PickledWorkers()
    assert mean(workers=workers).means.tobytes() == here.tobytes()
    assert workers.done == 3 * ["_piece_sums"]


def test_matched_averages_hold_the_other_factor_still(latents):
    follows = 0.5 * latents.sum(axis=0)
    images = np.zeros((N, SIDE, SIDE), dtype=np.float32)
    images[:, 0, 0] = follows
    run = run_of([Place(latents[0], "interval"), Place(follows, "interval")], images)
    plain = average(run, [1], n_bins=2, matched=False).means[:, 0, 0]
    matched = average(run, [1], n_bins=2, matched=True)
    assert np.ptp(plain) > 0.2
    assert np.ptp(matched.means[:, 0, 0]) < 0.05
    assert "matched over the other factors" in str(matched)


def test_the_grid_of_two_factors_has_its_rows_along_the_first(run):
    found = average(run, [1, 2], n_bins=3, matched=False)
    means = found.means.reshape(3, 3, SIDE, SIDE)
    assert (np.diff(means[..., 0, 0], axis=0) > 0.2).all()
    assert (np.diff(means[..., 0, 1], axis=1) > 0.2).all()


def test_at_most_so_many_samples_are_averaged_the_same_ones_every_time(run):
    found = average(run, [1], n_bins=2, matched=False, most=50)
    again = average(run, [1], n_bins=2, matched=False, most=50)
    assert found.matching.counts.sum() == 50
    assert np.array_equal(found.means, again.means)


@pytest.mark.parametrize(
    ("factors", "message"),
    [
        ([1, 1], r"along one factor or two different ones; got \[1, 1\]"),
        ([], "along one factor or two"),
        ([2], "along intervals and circles; factor 2 has more dimensions"),
    ],
)
def test_what_cannot_be_averaged_along_is_refused(latents, factors, message):
    places = [Place(latents[0], "interval"), Place(latents.T, "other")]
    run = run_of(places, np.zeros((N, SIDE, SIDE)))
    with pytest.raises(ValueError, match=message):
        average(run, factors, n_bins=3, matched=False)


def test_matching_without_another_factor_is_refused(latents):
    run = run_of([Place(latents[0], "interval")], np.zeros((N, SIDE, SIDE)))
    with pytest.raises(ValueError, match="this run has no other factors"):
        average(run, [1], n_bins=3, matched=True)


def test_more_bins_than_fit_into_memory_are_refused(run, monkeypatch):
    monkeypatch.setattr(averaging, "MAX_GIGABYTES", 1e-5)
    with pytest.raises(ValueError, match=r"must fit into 1e-05 GB .* 20 bins would"):
        average(run, [1], n_bins=20, matched=False)


def test_another_number_of_images_than_fitted_is_refused(latents):
    run = run_of([Place(latents[0], "interval")], np.zeros((N - 1, SIDE, SIDE)))
    with pytest.raises(ValueError, match="239 images now and had 240 when fitted"):
        average(run, [1], n_bins=2, matched=False)


def test_files_are_named_and_bins_are_listed(run, tmp_path):
    found = average(run, [1], n_bins=2, matched=False)
    names = write_averages(found, tmp_path)
    movies = ["averages.gif", "averages.mp4"] if can_write_mp4() else ["averages.gif"]
    assert names == [*movies, "averages.png", "averages.mrcs", "bins.csv"]
    assert {path.name for path in tmp_path.iterdir()} == set(names)
    header, first, _ = (tmp_path / "bins.csv").read_text().splitlines()
    assert header == "bin,samples,effective_size,centre1"
    count = found.matching.counts[0]
    assert first == f"1,{count},{count:.1f},0.25"


def test_the_halves_of_a_bin_average_to_its_mean(run, tmp_path):
    run.record = {}
    plain = average(run, [1], n_bins=3, matched=True)
    found = average(run, [1], n_bins=3, matched=True, halves=True)
    np.testing.assert_allclose(found.means, plain.means, atol=1e-6)
    one, two = found.halves.means
    assert not np.allclose(one, two)
    # The halves of a bin have about equal weight.
    np.testing.assert_allclose((one + two)[:, 0, 0] / 2, found.means[:, 0, 0], atol=0.02)
    assert (found.halves.correlations > 0.9).all()
    assert "the averages of half sets correlate by" in str(found)
    names = write_averages(found, tmp_path)
    assert {"averages_half1.mrcs", "averages_half2.mrcs"} < set(names)
    with mrcfile.open(tmp_path / "averages_half2.mrcs") as stack:
        np.testing.assert_array_equal(stack.data, two)
    header, first, *_ = (tmp_path / "bins.csv").read_text().splitlines()
    assert header.endswith(",centre1,half_correlation")
    assert float(first.split(",")[-1]) > 0.9


def test_half_sets_are_those_of_the_particles(run):
    half = np.arange(N) % 3 == 0
    run.record = {"particles": "a.star"}
    run.particles = SimpleNamespace(microscope={"half set": 1 + half})
    assert half_sets(run).tolist() == half.astype(int).tolist()
    run.particles.microscope["half set"] = np.ones(N, dtype=int)
    drawn = half_sets(run)
    assert drawn.sum() == N // 2
    assert np.array_equal(drawn, half_sets(run))


def test_a_bin_that_lacks_a_half_has_no_correlation():
    parts = np.zeros((4, 2, 2), np.float32)
    parts[[0, 3]] = np.arange(8.0).reshape(2, 2, 2)
    _, found = half_averages(parts, np.array([0, 3]), np.ones(2))
    assert np.isnan(found.correlations).all()
    assert str(found) == "no bin has samples of both half sets"


def test_volumes_have_a_map_for_each_half(latents, tmp_path):
    volumes = np.zeros((N, 6, 6, 6), dtype=np.float32)
    volumes[:, 0, 0, 0] = latents[0]
    run = run_of([Place(latents[0], "interval")], volumes)
    run.record = {}
    names = write_averages(average(run, [1], n_bins=2, matched=False, halves=True), tmp_path)
    assert {"average_001_half1.mrc", "average_002_half2.mrc"} < set(names)
