"""Means of images, corrected for their CTF."""

from pathlib import Path

import numpy as np
import pytest
from scipy import fft

from manifactor.cryoem.averages.means import correction, restored
from manifactor.cryoem.files.particles import Particles
from manifactor.cryoem.files.stacks import ImageArray
from manifactor.cryoem.one_view.views import View, can_weigh, particle_ctf

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
