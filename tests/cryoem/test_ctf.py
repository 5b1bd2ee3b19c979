"""Facts about the contrast transfer function."""

import numpy as np
import pytest

from manifactor.cryoem.ctf import Optics, contrast_transfer


def wavelength(volt):
    """From the constants of nature: mass of the electron, charge, Planck, light; in A."""
    m, e, h, c = 9.1093837e-31, 1.602176634e-19, 6.62607015e-34, 299792458.0
    return 1e10 * h / np.sqrt(2 * m * e * volt * (1 + e * volt / (2 * m * c**2)))


@pytest.mark.parametrize("volt", [120e3, 200e3, 300e3])
def test_the_wavelength_follows_from_the_constants_of_nature(volt):
    assert Optics(voltage=volt / 1e3).wavelength == pytest.approx(wavelength(volt), rel=1e-5)


def test_the_ctf_has_the_value_of_the_formula():
    ctf = contrast_transfer(64, 1.5, 12000.0, phase_shift=30.0, optics=Optics(200.0, 1.4, 0.07))
    k = 7 / (64 * 1.5)
    length = wavelength(200e3)
    chi = np.pi * length * 12000 * k**2 - np.pi / 2 * 1.4e7 * length**3 * k**4 + np.radians(30)
    expected = np.sqrt(1 - 0.07**2) * np.sin(chi) + 0.07 * np.cos(chi)
    assert ctf.shape == (1, 64, 33)
    assert ctf[0, 0, 7] == pytest.approx(expected, abs=1e-4)
    assert ctf[0, 7, 0] == pytest.approx(expected, abs=1e-4)


@pytest.mark.slow
def test_the_first_zero_at_one_micrometre_and_300_kilovolts_lies_at_fourteen_angstrom():
    optics = Optics(300.0, 2.7, 0.0)
    size = 4096
    ctf = contrast_transfer(size, 1.0, 10000.0, optics=optics)[0, 0]
    zero = 1 + np.flatnonzero(np.diff(np.sign(ctf[1:])))[0]
    assert size / zero == pytest.approx(
        np.sqrt(wavelength(300e3) * 10000), rel=0.01
    )  # 14.03 A, Cs counts for little


def test_at_zero_defocus_and_zero_frequency_the_ctf_is_the_amplitude_contrast():
    np.testing.assert_allclose(
        contrast_transfer(16, 2.0, [0.0, 1e4, -1e4])[:, 0, 0], 0.1, rtol=1e-6
    )
    flat = contrast_transfer(16, 2.0, 0.0, optics=Optics(300.0, 0.0, 0.2))
    np.testing.assert_allclose(flat, 0.2, rtol=1e-6)


def test_an_astigmatic_ctf_has_the_two_defoci_along_and_across_its_angle():
    both = contrast_transfer(64, 2.0, [10000.0] * 2, [15000.0] * 2, angle=[0.0, 90.0])
    u, v = contrast_transfer(64, 2.0, [10000.0, 15000.0])
    np.testing.assert_allclose(both[0, 0], u[0], atol=1e-5)  # along columns, x
    np.testing.assert_allclose(both[0, :, 0], v[:, 0], atol=1e-5)
    np.testing.assert_allclose(both[1, 0], v[0], atol=1e-5)
    np.testing.assert_allclose(both[1, :, 0], u[:, 0], atol=1e-5)
    diagonal = contrast_transfer(64, 2.0, 10000.0, 15000.0, angle=45.0)[0]
    np.testing.assert_allclose(diagonal[range(32), range(32)], u[range(32), range(32)], atol=1e-5)


def test_each_image_may_have_its_own_microscope():
    optics = Optics(np.array([200.0, 300.0]), np.array([2.0, 2.7]), np.array([0.07, 0.1]))
    both = contrast_transfer(32, 2.0, [10000.0, 12000.0], phase_shift=[0.0, 20.0], optics=optics)
    first = contrast_transfer(32, 2.0, 10000.0, optics=Optics(200.0, 2.0, 0.07))
    second = contrast_transfer(32, 2.0, 12000.0, phase_shift=20.0, optics=Optics(300.0, 2.7, 0.1))
    np.testing.assert_array_equal(both, np.concatenate([first, second]))


def test_ctf_parameters_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match=r"`voltage` must lie in \[1, 5000\] kV; got 300000"):
        Optics(voltage=300000)
    with pytest.raises(ValueError, match=r"`amplitude_contrast` must lie in \[0, 1\]; got 7"):
        Optics(amplitude_contrast=7)
    with pytest.raises(
        ValueError, match=r"`spherical_aberration` must lie in \[0, 100\] mm; got -1"
    ):
        Optics(spherical_aberration=-1)


def test_of_many_values_the_wrong_one_is_named():
    voltages = np.full(100, 300.0)
    voltages[7] = -1
    with pytest.raises(ValueError, match=r"`voltage` must lie in \[1, 5000\] kV; got -1.0.$"):
        Optics(voltage=voltages)
