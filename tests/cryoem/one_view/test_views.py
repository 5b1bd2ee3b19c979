"""Images of one view in one frame, and facts about the contrast transfer function."""

from pathlib import Path

import numpy as np
import pytest
from scipy import fft

from manifactor.cryoem.files.particles import Particles
from manifactor.cryoem.files.stacks import ImageArray
from manifactor.cryoem.one_view import (
    Optics,
    View,
    aligned,
    contrast_transfer,
    image_frequencies,
    particle_ctf,
)

PIXEL = 4.0


def view_of(images, *, flip=False, count=0, **known):
    particles = Particles(Path("a.star"), np.arange(count), **known) if count else None
    return View(ImageArray(images, PIXEL), particles, flip)


def blob(x, y, size=64):
    """A bright spot x columns to the right of the middle and y rows below it."""
    axis = np.arange(size) - size // 2
    return np.exp(-((axis - x) ** 2 + (axis[:, None] - y) ** 2) / 8).astype(np.float32)


def test_an_image_is_turned_back_by_psi_and_moved_by_its_shift():
    # psi takes the point (x, y) of the upright image to (x cos + y sin, -x sin + y cos), as RELION's matrix does
    angle, (x, y), shift = np.radians(35.0), (10.0, -4.0), np.array([3.0, -2.0])
    cosine, sine = np.cos(angle), np.sin(angle)
    at = np.array([x * cosine + y * sine, -x * sine + y * cosine]) - shift
    found = aligned(blob(*at)[None], np.array([35.0]), shift[None])[0]
    assert np.abs(found - blob(x, y)).max() < 0.05


def test_the_frame_is_that_of_the_first_particle():
    images = np.stack([blob(10, 0), blob(0, -10)])  # turned by psi = 90: (10, 0) goes to (0, -10)
    angles = np.array([[0, 0, 20.0], [0, 0, 110.0]])
    ((_, seen),) = view_of(images, count=2, angles=angles).blocks()
    np.testing.assert_allclose(seen[1], seen[0], atol=0.05)


def test_flipped_phases_undo_the_signs_of_the_ctf():
    microscope = {"defocus_u": np.array([12_000.0, 21_000.0])}
    ctf = contrast_transfer(image_frequencies(64, PIXEL), microscope["defocus_u"])
    truth = fft.rfft2(np.stack([blob(0, 0)] * 2))
    images = fft.irfft2(truth * ctf, s=(64, 64)).astype(np.float32)
    view = view_of(images, flip=True, count=2, microscope=microscope)
    ((_, flipped),) = view.blocks()
    np.testing.assert_allclose(flipped, fft.irfft2(truth * np.abs(ctf)), atol=1e-4)
    np.testing.assert_allclose(particle_ctf(view.particles, image_frequencies(64, PIXEL)), ctf)


def test_phases_are_flipped_where_the_defocus_is_known_and_once():
    flipped = {"defocus_u": np.ones(1), "flipped": np.ones(1)}
    for known, message in (({}, "where the defocus is known"), (flipped, "corrected already")):
        with pytest.raises(ValueError, match=message):
            view_of(blob(0, 0)[None], flip=True, count=1, microscope=known)


def wavelength(volt):
    """From the constants of nature: mass of the electron, charge, Planck, light; in A."""
    m, e, h, c = 9.1093837e-31, 1.602176634e-19, 6.62607015e-34, 299792458.0
    return 1e10 * h / np.sqrt(2 * m * e * volt * (1 + e * volt / (2 * m * c**2)))


@pytest.mark.parametrize("volt", [120e3, 200e3, 300e3])
def test_the_ctf_has_the_value_of_the_formula(volt):
    optics, length = Optics(volt / 1e3, 1.4, 0.07), wavelength(volt)
    assert optics.wavelength == pytest.approx(length, rel=1e-5)
    ctf = contrast_transfer(image_frequencies(64, 1.5), 12000.0, phase_shift=30.0, optics=optics)
    k = 7 / (64 * 1.5)
    chi = np.pi * length * 12000 * k**2 - np.pi / 2 * 1.4e7 * length**3 * k**4 + np.radians(30)
    expected = np.sqrt(1 - 0.07**2) * np.sin(chi) + 0.07 * np.cos(chi)
    assert ctf.shape == (1, 64, 33)
    assert ctf[0, 0, 7] == pytest.approx(expected, abs=1e-4)
    assert ctf[0, 7, 0] == pytest.approx(expected, abs=1e-4)


def test_an_astigmatic_ctf_has_the_two_defoci_along_and_across_its_angle():
    both = contrast_transfer(
        image_frequencies(64, 2.0), [10000.0] * 2, [15000.0] * 2, angle=[0.0, 90.0]
    )
    u, v = contrast_transfer(image_frequencies(64, 2.0), [10000.0, 15000.0])
    for turned, (along, across) in zip(both, ((u, v), (v, u)), strict=True):
        np.testing.assert_allclose(turned[0], along[0], atol=1e-5)  # along columns, x
        np.testing.assert_allclose(turned[:, 0], across[:, 0], atol=1e-5)
    diagonal = contrast_transfer(image_frequencies(64, 2.0), 10000.0, 15000.0, angle=45.0)[0]
    np.testing.assert_allclose(diagonal[range(32), range(32)], u[range(32), range(32)], atol=1e-5)


def test_each_image_may_have_its_own_microscope():
    optics = Optics(np.array([200.0, 300.0]), np.array([2.0, 2.7]), np.array([0.07, 0.1]))
    both = contrast_transfer(
        image_frequencies(32, 2.0), [10000.0, 12000.0], phase_shift=[0.0, 20.0], optics=optics
    )
    first = contrast_transfer(image_frequencies(32, 2.0), 10000.0, optics=Optics(200.0, 2.0, 0.07))
    second = contrast_transfer(
        image_frequencies(32, 2.0), 12000.0, phase_shift=20.0, optics=Optics(300.0, 2.7, 0.1)
    )
    np.testing.assert_array_equal(both, np.concatenate([first, second]))
