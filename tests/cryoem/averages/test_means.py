"""Weighted means of images in bins, and their correction for the CTF."""

from pathlib import Path

import numpy as np
import pytest
from scipy import fft

from manifactor.cryoem.averages import correction, restored, weighted_means
from manifactor.cryoem.files.particles import Particles
from manifactor.cryoem.files.stacks import ImageArray
from manifactor.cryoem.one_view import View, can_weigh, particle_ctf


def blocks_of(images, size):
    return View(ImageArray(images, block_bytes=size * images[0].nbytes))


@pytest.fixture
def stack(rng):
    images = rng.normal(100, 1, size=(50, 6, 5)).astype(np.float32)
    return images, rng.integers(-1, 4, size=50), rng.uniform(size=50)


@pytest.mark.parametrize("size", [1, 7, 50, 1000])
def test_any_block_size_gives_the_direct_means(stack, size):
    images, labels, weights = stack
    means = weighted_means(blocks_of(images, size), labels, weights=weights, n_bins=4)
    direct = [
        np.average(images[labels == k], axis=0, weights=weights[labels == k]) for k in range(4)
    ]
    assert means.shape == (4, 6, 5)
    assert means.dtype == np.float32
    assert np.allclose(means, direct, rtol=1e-6)


def test_volumes_and_whole_numbers_are_averaged_too(rng):
    volumes = rng.integers(0, 200, size=(9, 3, 4, 5), dtype=np.uint8)
    means = weighted_means(
        blocks_of(volumes, 4), np.zeros(9, dtype=int), weights=np.ones(9), n_bins=1
    )
    assert np.allclose(means[0], volumes.mean(axis=0))


def test_a_bin_without_weight_is_zero(stack):
    images, labels, weights = stack
    means = weighted_means(
        blocks_of(images, 8), labels, weights=np.where(labels == 2, 0, weights), n_bins=6
    )
    assert (means[[2, 4, 5]] == 0).all()
    assert (means[[0, 1, 3]] > 90).all()


def test_a_sample_without_weight_or_bin_cannot_spoil_a_mean(stack):
    images, labels, weights = stack
    spoilt = np.where((labels == -1)[:, None, None], np.nan, images)
    means = weighted_means(blocks_of(spoilt, 8), labels, weights=weights, n_bins=4)
    assert np.isfinite(means).all()


def test_small_changes_on_a_large_offset_survive_many_samples():
    images = 1e4 + np.tile([0.0, 0.01], 5000).astype(np.float64)[:, None]
    means = weighted_means(
        blocks_of(images, 100), np.tile([0, 1], 5000), weights=np.ones(10_000), n_bins=2
    )
    assert means[1, 0] - means[0, 0] == pytest.approx(0.01, abs=1e-3)


SIZE, PIXEL = 48, 4.0
N = 60


def truth():
    """A disc and a dot."""
    y, x = np.mgrid[:SIZE, :SIZE] - SIZE // 2
    return 1.0 * (np.hypot(x + 4, y) < 8) + 2.0 * (np.hypot(x - 9, y - 5) < 3)


def particles(**known):
    rng = np.random.default_rng(1)
    defocus = {"defocus_u": rng.uniform(8000, 25000, N)}
    columns = {name: np.full(N, value) for name, value in known.items()}
    return Particles(Path("a.star"), np.arange(N), microscope={**defocus, **columns})


def images(found, *, times=lambda ctf: ctf, noise=1.0):
    ctf = particle_ctf(found, SIZE, PIXEL)
    seen = fft.irfft2(fft.rfft2(truth()) * times(ctf), s=(SIZE, SIZE))
    return seen + noise * np.random.default_rng(2).standard_normal(seen.shape)


def corrected(stack, found, **options):
    view = View(ImageArray(stack, PIXEL), found, weigh=True, **options)
    labels, weights = np.zeros(N, int), np.ones(N)
    mean = np.zeros((1, SIZE, SIZE))
    for _, block in view.blocks():
        mean += block.sum(axis=0) / N
    return correction(view, labels, weights=weights, n_bins=1)(mean)[0]


def likeness(image):
    return np.corrcoef(image.ravel(), truth().ravel())[0, 1]


def test_the_correction_brings_the_picture_back():
    found = particles()
    stack = images(found)
    plain = likeness(stack.mean(axis=0))
    flipped = View(ImageArray(stack, PIXEL), found, flip=True)
    phases = likeness(np.mean([block.mean(axis=0) for _, block in flipped.blocks()], 0))
    assert likeness(corrected(stack, found)) > max(plain, phases) + 0.05
    assert likeness(corrected(stack, found)) > 0.9


@pytest.mark.parametrize(("column", "times"), [("flipped", np.abs), ("premultiplied", np.square)])
def test_images_whose_ctf_was_treated_before_are_not_treated_again(column, times):
    found = particles(**{column: 1})
    stack = images(found, times=times, noise=0.3)
    assert likeness(corrected(stack, found)) > 0.9


def test_a_bin_without_images_stays_empty():
    means = np.stack([truth(), np.zeros((SIZE, SIZE))])
    powers = np.stack([np.full(35, 0.5), np.zeros(35)])
    found = restored(means, powers)
    assert np.ptp(found[0]) > 1
    assert not found[1].any()


def test_without_a_defocus_nothing_is_corrected():
    found = Particles(Path("a.star"), np.arange(N))
    source = ImageArray(np.zeros((N, SIZE, SIZE)), PIXEL)
    assert not can_weigh(source, found)
    same = correction(View(source, found), np.zeros(N, int), weights=np.ones(N), n_bins=1)
    mean = truth()[None]
    assert same(mean) is mean
