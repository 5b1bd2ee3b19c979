"""Means of images along factors: weighted, of half sets, corrected for the CTF, as files."""

from functools import partial
from pathlib import Path
from types import SimpleNamespace

import mrcfile
import numpy as np
import pytest
from scipy import fft

from manifactor.cryoem import averages as averaging
from manifactor.cryoem.averages import (
    average,
    correction,
    half_sets,
    weighted_means,
    write_averages,
)
from manifactor.cryoem.files.particles import Particles
from manifactor.cryoem.files.stacks import ImageArray
from manifactor.cryoem.one_view import View, image_frequencies, particle_ctf
from manifactor.runs.places import Place
from manifactor.views.pictures import can_write_mp4

N, SIDE = 240, 16


@pytest.fixture
def latents(rng):
    """Two independent latents in [0, 1]."""
    return rng.uniform(size=(2, N))


def run_of(latents, images):
    places = tuple(Place(each, "interval") for each in latents)
    return SimpleNamespace(
        place=lambda factor: places[factor - 1],
        places=places,
        images=lambda: View(ImageArray(images, 2.0)),
        rows=np.arange(N),
        record={},
    )


@pytest.fixture
def run(latents):
    """Images whose first pixels are the latents themselves."""
    images = np.zeros((N, SIDE, SIDE), dtype=np.float32)
    images[:, 0, :2] = latents.T
    return run_of(latents, images)


averaged = partial(average, matched=False)


def test_averages_along_a_factor_follow_it(run):
    found = averaged(run, [1], n_bins=5)
    assert list(map(len, found.centres)) == [5]
    assert found.pixel_size == 2
    assert found.means[:, 0, 0] == pytest.approx(found.centres[0], abs=0.03)
    assert found.captions == [["0.10", "0.30", "0.50", "0.70", "0.90"]]


def test_matched_averages_hold_the_other_factor_still(latents):
    follows = 0.5 * latents.sum(axis=0)
    images = np.zeros((N, SIDE, SIDE), dtype=np.float32)
    images[:, 0, 0] = follows
    run = run_of([latents[0], follows], images)
    plain = averaged(run, [1], n_bins=2).means[:, 0, 0]
    matched = average(run, [1], n_bins=2, matched=True)
    assert np.ptp(plain) > 0.2
    assert np.ptp(matched.means[:, 0, 0]) < 0.05


def test_the_grid_of_two_factors_has_its_rows_along_the_first(run):
    means = averaged(run, [1, 2], n_bins=3).means.reshape(3, 3, SIDE, SIDE)
    assert (np.diff(means[..., 0, 0], axis=0) > 0.2).all()
    assert (np.diff(means[..., 0, 1], axis=1) > 0.2).all()


def test_what_cannot_be_averaged_is_refused(run, latents, monkeypatch):
    for factors in ([1, 1], []):
        with pytest.raises(ValueError, match="along one factor or two different ones"):
            averaged(run, factors, n_bins=3)
    alone = run_of(latents[:1], np.zeros((N - 1, SIDE, SIDE)))
    with pytest.raises(ValueError, match="this run has no other factors"):
        average(alone, [1], n_bins=3, matched=True)
    with pytest.raises(ValueError, match="239 images now and had 240 when fitted"):
        averaged(alone, [1], n_bins=2)
    monkeypatch.setattr(averaging, "MAX_GIGABYTES", 1e-5)
    with pytest.raises(ValueError, match=r"must fit into 1e-05 GB .* 20 bins would"):
        averaged(run, [1], n_bins=20)


def test_files_are_named_and_bins_are_listed(run, tmp_path):
    found = averaged(run, [1], n_bins=2)
    names = write_averages(found, tmp_path)
    movies = ["averages.gif", "averages.mp4"] if can_write_mp4() else ["averages.gif"]
    assert names == [*movies, "averages.png", "averages.mrcs", "bins.csv"]
    assert {path.name for path in tmp_path.iterdir()} == set(names)
    header, first, _ = (tmp_path / "bins.csv").read_text().splitlines()
    assert header == "bin,samples,effective_size,centre1"
    count = found.matching.counts[0]
    assert first == f"1,{count},{count:.1f},0.25"


def test_the_halves_of_a_bin_average_to_its_mean(run, tmp_path):
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


def test_volumes_have_a_map_for_each_half(latents, tmp_path):
    volumes = np.zeros((N, 6, 6, 6), dtype=np.float32)
    volumes[:, 0, 0, 0] = latents[0]
    run = run_of(latents[:1], volumes)
    names = write_averages(averaged(run, [1], n_bins=2, halves=True), tmp_path)
    assert {"average_001_half1.mrc", "average_002_half2.mrc"} < set(names)


def means_of(images, labels, weights, *, n_bins, size=8):
    """Means of images that are read in blocks of this size."""
    view = View(ImageArray(images, block_bytes=size * images[0].nbytes))
    return weighted_means(view, labels, weights=weights, n_bins=n_bins)


@pytest.fixture
def stack(rng):
    images = rng.normal(100, 1, size=(50, 6, 5)).astype(np.float32)
    return images, rng.integers(-1, 4, size=50), rng.uniform(size=50)


@pytest.mark.parametrize("size", [1, 7, 50, 1000])
def test_any_block_size_gives_the_direct_means(stack, size):
    images, labels, weights = stack
    means = means_of(*stack, n_bins=4, size=size)
    bins = [labels == k for k in range(4)]
    direct = [np.average(images[own], axis=0, weights=weights[own]) for own in bins]
    assert means.shape == (4, 6, 5)
    assert means.dtype == np.float32
    assert np.allclose(means, direct, rtol=1e-6)


def test_a_sample_without_weight_or_bin_cannot_spoil_a_mean(stack):
    images, labels, weights = stack
    spoilt = np.where((labels == -1)[:, None, None], np.nan, images)
    means = means_of(spoilt, labels, np.where(labels == 2, 0, weights), n_bins=6)
    assert (means[[2, 4, 5]] == 0).all()
    assert (means[[0, 1, 3]] > 90).all()


def test_small_changes_on_a_large_offset_survive_many_samples():
    images = 1e4 + np.tile([0.0, 0.01], 5000).astype(np.float64)[:, None]
    means = means_of(images, np.tile([0, 1], 5000), np.ones(10_000), n_bins=2, size=100)
    assert means[1, 0] - means[0, 0] == pytest.approx(0.01, abs=1e-3)


SIZE, PIXEL, SEEN = 48, 4.0, 60


def truth():
    """A disc and a dot."""
    y, x = np.mgrid[:SIZE, :SIZE] - SIZE // 2
    return 1.0 * (np.hypot(x + 4, y) < 8) + 2.0 * (np.hypot(x - 9, y - 5) < 3)


def particles(**known):
    defocus = {"defocus_u": np.random.default_rng(1).uniform(8000, 25000, SEEN)}
    columns = {name: np.full(SEEN, value) for name, value in known.items()}
    return Particles(Path("a.star"), np.arange(SEEN), microscope={**defocus, **columns})


def images(found, *, times=lambda ctf: ctf, noise=1.0):
    ctf = particle_ctf(found, image_frequencies(SIZE, PIXEL))
    seen = fft.irfft2(fft.rfft2(truth()) * times(ctf), s=(SIZE, SIZE))
    return seen + noise * np.random.default_rng(2).standard_normal(seen.shape)


def corrected(view):
    labels, weights = np.zeros(SEEN, int), np.ones(SEEN)
    ((_, block),) = view.blocks()
    return correction(view, labels, weights=weights, n_bins=1)(block.mean(axis=0)[None])[0]


def likeness(image):
    return np.corrcoef(image.ravel(), truth().ravel())[0, 1]


def test_the_correction_brings_the_picture_back():
    found = particles()
    stack = images(found)
    flipped, weighed = (
        likeness(corrected(View(ImageArray(stack, PIXEL), found, **{how: True})))
        for how in ("flip", "weigh")
    )
    assert weighed > max(likeness(stack.mean(axis=0)), flipped) + 0.05
    assert weighed > 0.9


@pytest.mark.parametrize(("column", "times"), [("flipped", np.abs), ("premultiplied", np.square)])
def test_images_whose_ctf_was_treated_before_are_not_treated_again(column, times):
    found = particles(**{column: 1})
    stack = images(found, times=times, noise=0.3)
    assert likeness(corrected(View(ImageArray(stack, PIXEL), found, weigh=True))) > 0.9
