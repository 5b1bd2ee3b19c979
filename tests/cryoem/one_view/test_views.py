from pathlib import Path

import numpy as np
import pytest
from scipy import fft

from manifactor.cryoem.ctf import contrast_transfer
from manifactor.cryoem.files.particles import Particles
from manifactor.cryoem.files.stacks import ImageArray
from manifactor.cryoem.one_view import View, aligned, particle_ctf

PIXEL = 4.0


def view_of(images, particles=None, *, flip=False):
    return View(ImageArray(images, PIXEL), particles, flip)


def blob(x, y, size=64):
    """A bright spot x columns to the right of the middle and y rows below it."""
    axis = np.arange(size) - size // 2
    return np.exp(-((axis - x) ** 2 + (axis[:, None] - y) ** 2) / 8).astype(np.float32)


def test_an_image_is_turned_back_by_psi_and_moved_by_its_shift():
    # psi takes the point (x, y) of the upright image to (x cos + y sin, -x sin + y cos), as RELION's matrix does
    angle, (x, y), shift = np.radians(35.0), (10.0, -4.0), np.array([3.0, -2.0])
    at = (
        np.array([x * np.cos(angle) + y * np.sin(angle), -x * np.sin(angle) + y * np.cos(angle)])
        - shift
    )
    found = aligned(blob(*at)[None], np.array([35.0]), shift[None])[0]
    assert np.abs(found - blob(x, y)).max() < 0.05


def test_images_that_need_no_turn_are_the_same_array():
    images = blob(3, 4)[None]
    assert aligned(images, np.zeros(1), np.zeros((1, 2))) is images


def test_the_frame_is_that_of_the_first_particle():
    images = np.stack([blob(10, 0), blob(0, -10)])  # turned by psi = 90: (10, 0) goes to (0, -10)
    particles = Particles(
        Path("a.star"), np.arange(2), angles=np.array([[0, 0, 20.0], [0, 0, 110.0]])
    )
    _, seen = next(iter(view_of(images, particles).blocks()))
    np.testing.assert_allclose(seen[1], seen[0], atol=0.05)


def test_flipped_phases_undo_the_signs_of_the_ctf():
    defocus = np.array([12_000.0, 21_000.0])
    ctf = contrast_transfer(64, PIXEL, defocus)
    images = fft.irfft2(fft.rfft2(np.stack([blob(0, 0)] * 2)) * ctf, s=(64, 64)).astype(np.float32)
    particles = Particles(Path("a.star"), np.arange(2), microscope={"defocus_u": defocus})
    _, flipped = next(iter(view_of(images, particles, flip=True).blocks()))
    np.testing.assert_allclose(
        flipped, fft.irfft2(fft.rfft2(np.stack([blob(0, 0)] * 2)) * np.abs(ctf)), atol=1e-4
    )
    np.testing.assert_allclose(particle_ctf(particles, 64, PIXEL), ctf)


def test_phases_of_an_odd_box_are_flipped_back(rng):
    images = rng.normal(size=(4, 33, 33)).astype(np.float32)
    microscope = {"defocus_u": np.full(4, 15_000.0)}
    particles = Particles(Path("a.star"), np.arange(4), microscope=microscope)
    _, flipped = next(view_of(images, particles, flip=True).blocks())
    assert not np.allclose(flipped, images, atol=0.1)
    _, twice = next(view_of(flipped, particles, flip=True).blocks())
    np.testing.assert_allclose(twice, images, atol=1e-4)


def test_phases_cannot_be_flipped_without_defocus():
    with pytest.raises(ValueError, match="where the defocus is known"):
        view_of(blob(0, 0)[None], flip=True)


def test_images_that_were_flipped_before_are_not_flipped_again():
    microscope = {"defocus_u": np.ones(1), "flipped": np.ones(1)}
    particles = Particles(Path("a.star"), np.arange(1), microscope=microscope)
    with pytest.raises(ValueError, match="corrected already"):
        view_of(blob(0, 0)[None], particles, flip=True)


def test_a_bare_stack_has_no_frame():
    images = np.stack([blob(x, 0) for x in range(6)])
    rows, seen = next(iter(View(ImageArray(images)).blocks(np.array([5, 2]))))
    assert rows.tolist() == [5, 2]
    np.testing.assert_array_equal(seen, images[rows])
