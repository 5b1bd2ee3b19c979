"""Facts about the simulated images and volumes and about the contrast transfer function."""

import numpy as np
import pytest

from manifactor.cryoem.ctf import Optics, contrast_transfer
from manifactor.datasets import particles, projection
from manifactor.datasets.molecule import Molecule, channel
from manifactor.datasets.particles import simulate_particles, simulate_volumes

SMALL = {"size": 54, "pixel_size": 4.0}


def simulate(n_samples, **settings):
    return simulate_particles(n_samples, **{**SMALL, "random_state": 0, **settings})


def painter(route="atoms", size=54):
    """The images of states that the test chooses."""
    reach = np.array([40.0, 40.0])
    frame = projection.Frame(size, 4.0, -30.0).around(channel(), reach)
    return projection.ROUTES[route](channel(), frame, reach, 4.0)


def wavelength(volt):
    """From the constants of nature: mass of the electron, charge, Planck, light; in A."""
    m, e, h, c = 9.1093837e-31, 1.602176634e-19, 6.62607015e-34, 299792458.0
    return 1e10 * h / np.sqrt(2 * m * e * volt * (1 + e * volt / (2 * m * c**2)))


def test_both_routes_lead_to_the_same_images():
    atoms, volumes = (
        simulate(4, motions="xy", signal_to_noise=None, route=route)
        for route in ("atoms", "volumes")
    )
    np.testing.assert_array_equal(atoms.stretch, volumes.stretch)
    for first, second in zip(atoms.images, volumes.images, strict=True):
        assert np.corrcoef(first.ravel(), second.ravel())[0, 1] > 0.995
        assert second.sum() == pytest.approx(first.sum(), rel=1e-3)


@pytest.mark.parametrize("route", ["atoms", "volumes"])
def test_turning_the_rotor_by_a_quarter_gives_the_same_image(route):
    images = painter(route)(
        np.array([0.2, 0.2 + np.pi / 2, 0.2 + np.pi / 4]), np.array([[9.0, 0.0]] * 3)
    )
    np.testing.assert_allclose(images[0], images[1], atol=1e-3 * images[0].max())
    assert np.abs(images[2] - images[0]).max() > 0.05 * images[0].max()


def test_the_rotor_moves_the_upper_part_and_the_stretch_the_lower():
    images = painter()(
        np.array([0.0, 0.6, 0.0]), np.array([[0.0, 0.0], [0.0, 0.0], [0.0, 30.0]])
    )
    change = np.abs(images[1:] - images[0]).sum(axis=2)
    by_turn, by_stretch = change @ np.arange(54) / change.sum(axis=1)
    assert by_turn < 25
    assert by_stretch > 32


def test_a_stretch_along_y_moves_the_mass_to_the_right_and_one_along_x_downwards():
    images = painter(size=64)(
        np.zeros(3), np.array([[0.0, 0.0], [0.0, 40.0], [40.0, 0.0]])
    )
    mass = images.sum(axis=(1, 2))
    rows, columns = (
        images.sum(axis=2) @ np.arange(64) / mass,
        images.sum(axis=1) @ np.arange(64) / mass,
    )
    way = 40 * channel().lift.mean() / 4  # pixels
    np.testing.assert_allclose(columns - columns[0], [0, way, 0], atol=1e-3)
    np.testing.assert_allclose(
        rows - rows[0], [0, 0, way / 2], atol=1e-3
    )  # sin 30 degrees = 1/2


def test_every_image_has_the_mass_of_the_molecule():
    images = simulate(20, motions="xy", signal_to_noise=None).images
    np.testing.assert_allclose(
        images.sum(axis=(1, 2)), channel().weights.sum(), rtol=1e-4
    )
    assert images.dtype == np.float32


def test_the_view_is_the_projection_in_angles_of_relion():
    rot, tilt, psi = np.radians(simulate(1, signal_to_noise=None, tilt=-20.0).view)

    def turn(a):
        return np.array(
            [[np.cos(a), np.sin(a), 0], [-np.sin(a), np.cos(a), 0], [0, 0, 1]]
        )

    about_y = np.array(
        [[np.cos(tilt), 0, -np.sin(tilt)], [0, 1, 0], [np.sin(tilt), 0, np.cos(tilt)]]
    )
    x, y, _ = (
        turn(psi) @ about_y @ turn(rot) @ channel().atoms.T
    )  # RELION: columns are x, rows y
    frame = projection.Frame(54, 4.0, -20.0).around(channel(), np.zeros(2))
    rows, columns = frame.place(channel().atoms)
    np.testing.assert_allclose(columns - columns[0], (x - x[0]) / 4, atol=1e-9)
    np.testing.assert_allclose(rows - rows[0], (y - y[0]) / 4, atol=1e-9)


def test_noise_is_calibrated_by_the_fourth_principal_component():
    clean, noisy = (
        simulate(300, signal_to_noise=None),
        simulate(300, signal_to_noise=5.0),
    )
    noise = noisy.images - clean.images
    X = clean.images.reshape(300, -1).astype(float)
    variance = np.linalg.svd(X - X.mean(axis=0), compute_uv=False)[3] ** 2 / 300
    assert noise.std() == pytest.approx(noisy.noise, rel=5e-3)
    assert variance / noisy.noise**2 == pytest.approx(5.0, rel=0.01)
    assert abs(noise.mean()) < 0.01 * noisy.noise
    assert clean.noise == 0


def test_infinite_signal_to_noise_is_no_noise():
    np.testing.assert_array_equal(
        simulate(3, signal_to_noise=np.inf).images,
        simulate(3, signal_to_noise=None).images,
    )


@pytest.mark.parametrize(
    "settings", [{}, {"defocus": (10000.0, 20000.0), "motions": "xy"}]
)
def test_the_same_seed_gives_the_same_images(settings):
    first, again, other = (
        simulate(30, **settings, random_state=seed) for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(first.images, again.images)
    np.testing.assert_array_equal(first.angle, again.angle)
    assert not np.array_equal(first.images, other.images)


def test_angles_and_stretches_are_uniform():
    angle, stretch = particles._Motion("xy", 0.6, 4, 40.0).draw(
        20000, np.random.default_rng(0)
    )
    quantiles = np.linspace(0.05, 0.95, 10)
    np.testing.assert_allclose(
        np.quantile(angle, quantiles), np.pi / 2 * quantiles, atol=0.02
    )
    np.testing.assert_allclose(
        np.quantile(stretch, quantiles, axis=0)[:, 0],
        40 * (2 * quantiles - 1),
        atol=1.2,
    )
    np.testing.assert_allclose(
        np.quantile(stretch, quantiles, axis=0)[:, 1],
        40 * (2 * quantiles - 1),
        atol=1.2,
    )


@pytest.mark.parametrize("correlation", [-1.0, -0.5, 0.0, 0.6, 1.0])
def test_the_copula_correlates_angle_and_x_stretch_alone(correlation):
    angle, stretch = particles._Motion("xy", correlation, 4, 40.0).draw(
        20000, np.random.default_rng(0)
    )
    found = np.corrcoef(np.c_[angle, stretch].T)
    assert found[0, 1] == pytest.approx(
        6 / np.pi * np.arcsin(correlation / 2), abs=0.02
    )
    np.testing.assert_allclose(found[2, :2], 0, atol=0.02)


def test_the_truth_is_a_circle_and_an_interval_or_a_sheet():
    one, two = simulate(6, motions="x"), simulate(6, motions="xy")
    assert [t.shape for t in one.truth] == [(6, 2), (6, 1)]
    assert [t.shape for t in two.truth] == [(6, 2), (6, 2)]
    np.testing.assert_allclose(
        one.truth[0], np.c_[np.cos(4 * one.angle), np.sin(4 * one.angle)]
    )
    np.testing.assert_array_equal(one.stretch[:, 1], 0)
    np.testing.assert_array_equal(one.stretch[:, 0], two.stretch[:, 0])


def test_images_with_a_ctf_are_the_clean_ones_times_it():
    clean = simulate(5, signal_to_noise=None)
    with_ctf = simulate(5, signal_to_noise=None, defocus=(10000.0, 20000.0))
    assert with_ctf.defocus.min() >= 10000
    assert with_ctf.defocus.max() <= 20000
    transfer = contrast_transfer(54, 4.0, with_ctf.defocus)
    expected = np.fft.irfft2(np.fft.rfft2(clean.images) * transfer, s=(54, 54))
    np.testing.assert_allclose(
        with_ctf.images, expected, atol=1e-4 * clean.images.max()
    )


def test_volumes_hold_the_molecule_and_share_the_motions_of_the_images():
    volumes, angle, stretch = simulate_volumes(4, motions="xy", random_state=0)
    images = simulate(4, motions="xy", signal_to_noise=None)
    np.testing.assert_array_equal(angle, images.angle)
    np.testing.assert_array_equal(stretch, images.stretch)
    np.testing.assert_allclose(
        volumes.sum(axis=(1, 2, 3)), channel().weights.sum(), rtol=1e-4
    )
    mass = (
        volumes.sum(axis=(1, 2)) @ np.arange(32) / volumes.sum(axis=(1, 2, 3))
    )  # along x, the last axis
    lift = channel().lift.mean()
    np.testing.assert_allclose(mass, 16 + lift * stretch[:, 0] / 7, atol=1e-3)
    assert (
        np.corrcoef(volumes[0].sum(axis=2).ravel(), volumes[1].sum(axis=2).ravel())[
            0, 1
        ]
        < 0.999
    )


def test_volumes_take_noise_too():
    clean, noisy = (
        simulate_volumes(8, signal_to_noise=snr, random_state=0)[0]
        for snr in (None, 2.0)
    )
    assert (noisy - clean).std() > 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_samples": 0}, r"`n_samples` must be a whole number in \[1, .*got 0"),
        (
            {"n_samples": 4},
            "`n_samples` must be at least 5 for noise.*got 4.*`signal_to_noise=None`",
        ),
        ({"size": 14}, r"`size` must be a whole number in \[16, .*got 14"),
        ({"size": 55}, "`size` must be even; got 55. Take 56"),
        ({"pixel_size": 0.0}, "`pixel_size` must be a number above 0; got 0.0"),
        ({"motions": "z"}, "`motions` must be one of 'x', 'xy'; got 'z'"),
        ({"route": "boat"}, "`route` must be one of 'atoms', 'volumes'; got 'boat'"),
        ({"correlation": 1.5}, r"`correlation` must be a number in \[-1, 1\]; got 1.5"),
        (
            {"signal_to_noise": 0.0},
            "`signal_to_noise` must be a number above 0; got 0.0",
        ),
        (
            {"defocus": (2.0, 1.0)},
            r"`defocus` must be \(low, high\) in Angstrom with low <= high; got \(2.0, 1.0\)",
        ),
        ({"defocus": 15000.0}, r"`defocus` must be \(low, high\).*got 15000.0"),
        ({"defocus": (1.0, np.inf)}, "`defocus` must be"),
        ({"symmetry": 0}, "`symmetry` must be a whole number"),
        ({"stretch": -1.0}, r"`stretch` must be a number in \[0, inf\]; got -1.0"),
        ({"tilt": np.nan}, "`tilt` must be"),
        ({"blur": -1.0}, "`blur` must be"),
        (
            {"optics": Optics(voltage=np.array([200.0, 300.0]))},
            "`optics.voltage` must be a number",
        ),
    ],
)
def test_a_parameter_that_cannot_be_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        simulate(**{"n_samples": 10, **settings})


def test_a_molecule_that_does_not_fit_is_refused_with_the_size_that_does():
    with pytest.raises(
        ValueError,
        match=r"`size` must be at least 54 pixels of 4 A for every state.*got 32",
    ):
        simulate(10, size=32)
    with pytest.raises(
        ValueError, match=r"`size` must be at least 28 pixels of 7 A.*got 16"
    ):
        simulate_volumes(3, size=16)
    assert simulate_volumes(1, size=28)[0].shape == (1, 28, 28, 28)


def test_a_given_molecule_is_drawn():
    atoms = np.array([[0.0, 0, 20], [0, 0, -20]])
    one = simulate(
        1,
        molecule=Molecule(atoms, np.array([1.0, 3.0]), np.array([0, 1])),
        signal_to_noise=None,
        tilt=0.0,
    )
    rows = one.images[0].sum(axis=1)
    assert rows[:27].sum() == pytest.approx(1, abs=1e-3)
    assert rows[27:].sum() == pytest.approx(3, abs=1e-3)


@pytest.mark.parametrize("volt", [120e3, 200e3, 300e3])
def test_the_wavelength_follows_from_the_constants_of_nature(volt):
    assert Optics(voltage=volt / 1e3).wavelength == pytest.approx(
        wavelength(volt), rel=1e-5
    )


def test_the_ctf_has_the_value_of_the_formula():
    ctf = contrast_transfer(
        64, 1.5, 12000.0, phase_shift=30.0, optics=Optics(200.0, 1.4, 0.07)
    )
    k = 7 / (64 * 1.5)
    length = wavelength(200e3)
    chi = (
        np.pi * length * 12000 * k**2
        - np.pi / 2 * 1.4e7 * length**3 * k**4
        + np.radians(30)
    )
    expected = np.sqrt(1 - 0.07**2) * np.sin(chi) + 0.07 * np.cos(chi)
    assert ctf.shape == (1, 64, 33)
    assert ctf[0, 0, 7] == pytest.approx(expected, abs=1e-4)
    assert ctf[0, 7, 0] == pytest.approx(expected, abs=1e-4)


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
    np.testing.assert_allclose(
        diagonal[range(32), range(32)], u[range(32), range(32)], atol=1e-5
    )


def test_each_image_may_have_its_own_microscope():
    optics = Optics(
        np.array([200.0, 300.0]), np.array([2.0, 2.7]), np.array([0.07, 0.1])
    )
    both = contrast_transfer(
        32, 2.0, [10000.0, 12000.0], phase_shift=[0.0, 20.0], optics=optics
    )
    first = contrast_transfer(32, 2.0, 10000.0, optics=Optics(200.0, 2.0, 0.07))
    second = contrast_transfer(
        32, 2.0, 12000.0, phase_shift=20.0, optics=Optics(300.0, 2.7, 0.1)
    )
    np.testing.assert_array_equal(both, np.concatenate([first, second]))


def test_ctf_parameters_that_cannot_be_are_refused():
    with pytest.raises(
        ValueError, match=r"`angle` must be one number or one for each of the 3.*\(2,\)"
    ):
        contrast_transfer(16, 2.0, [1.0, 2.0, 3.0], angle=[0.0, 1.0])
    with pytest.raises(ValueError, match="`defocus_u` must be finite; got nan"):
        contrast_transfer(16, 2.0, [1.0, np.nan])
    with pytest.raises(ValueError, match="`pixel_size` must be a number above 0"):
        contrast_transfer(16, -2.0, 1.0)
    with pytest.raises(
        ValueError, match=r"`voltage` must lie in \[1, 5000\] kV; got 300000"
    ):
        Optics(voltage=300000)
    with pytest.raises(
        ValueError, match=r"`amplitude_contrast` must lie in \[0, 1\]; got 7"
    ):
        Optics(amplitude_contrast=7)
    with pytest.raises(
        ValueError, match=r"`spherical_aberration` must lie in \[0, 100\] mm; got -1"
    ):
        Optics(spherical_aberration=-1)
