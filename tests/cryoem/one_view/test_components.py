"""Samples made of images of one view, and the spectra behind their low-pass; and of volumes."""

import warnings

import numpy as np
import pytest

from manifactor import datasets
from manifactor.cryoem import components as module
from manifactor.cryoem.components import (
    ShellSpectra,
    circular_mask,
    component_weights,
    image_components,
    low_pass_shell,
    shells,
    spikes,
    survey,
    volume_components,
)
from manifactor.cryoem.files.stacks import (
    ImageArray,
    stack_images,
    volume_series,
    write_stack,
    write_volume,
)
from manifactor.cryoem.one_view import View
from manifactor.runs.options import FitOptions

N, SIZE, PIXEL = 400, 54, 4.0
SIDE = 32


def simulated(signal_to_noise):
    how = {"size": SIZE, "pixel_size": PIXEL, "random_state": 0}
    return datasets.simulate_particles(N, signal_to_noise=signal_to_noise, **how)


def components(images, **settings):
    view = images if isinstance(images, View) else View(ImageArray(images, PIXEL))
    return image_components(view, FitOptions(**settings), rng=np.random.default_rng(0))


@pytest.fixture(scope="module")
def simulation():
    return simulated(100)


@pytest.fixture(scope="module")
def plain(simulation):
    return components(simulation.images)


def likeness(found, expected, column):
    return abs(np.corrcoef(found.samples[:, column], expected.samples[:, column])[0, 1])


@pytest.mark.medium
def test_components_have_the_signal_to_noise_of_the_simulation(simulation, plain):
    clean = simulated(None).images.reshape(N, -1)
    clean = clean - clean.mean(axis=0)
    strength = np.linalg.eigvalsh(clean @ clean.T)[:-5:-1]
    np.testing.assert_allclose(
        plain.signal_to_noise[:4], strength / N / simulation.noise**2, rtol=0.1
    )
    assert (np.diff(plain.weights) <= 0).all()


@pytest.mark.medium
def test_an_offset_of_each_image_and_the_scale_of_all_change_nothing(simulation, plain, rng):
    offset = 100 * rng.normal(size=(N, 1, 1)).astype(np.float32)
    shifted = components(1000 * (simulation.images + offset))
    np.testing.assert_allclose(*np.abs([shifted.samples[:, 0], plain.samples[:, 0]]), atol=0.05)


@pytest.mark.medium
def test_many_images_are_projected_a_block_at_a_time(simulation, plain, monkeypatch):
    monkeypatch.setattr(module, "LEARNING_BYTES", 4 * plain.how["n_coefficients"] * (N - 1))
    source = ImageArray(simulation.images, PIXEL, block_bytes=100 * 4 * SIZE**2)
    found = components(View(source))
    assert all(likeness(found, plain, j) > 0.999 for j in range(3))


def test_noise_alone_is_refused(rng):
    with pytest.raises(ValueError, match=r"must (differ by|show) more than noise"):
        components(rng.normal(size=(400, SIDE, SIDE)).astype(np.float32))


@pytest.mark.parametrize(
    ("shape", "settings", "message"),
    [
        ((32, 34), {}, "square with a side of at least 16 pixels"),
        ((8, 8), {}, "square with a side of at least 16 pixels"),
        ((54, 54), {"mask_radius": -1.0}, "--mask-radius"),
        ((54, 54), {"low_pass": 1.0}, "two pixels and half the box, 8 to 108 A; got 1"),
        ((54, 54), {"low_pass": 40.0, "components": 0}, "components"),
    ],
)
def test_images_and_settings_that_do_not_suit_are_refused(rng, shape, settings, message):
    with pytest.raises(ValueError, match=message):
        components(rng.normal(size=(20, *shape)).astype(np.float32), **settings)


@pytest.mark.parametrize(
    ("value", "message"), [(np.nan, "has NaN"), (3.4e38, r"has a value of 3.4e\+38")]
)
def test_an_image_with_bad_pixels_is_named(tmp_path, value, message):
    spoilt = np.random.default_rng(0).normal(size=(20, 16, 16)).astype(np.float32)
    spoilt[7, 3, 3] = value
    with warnings.catch_warnings(action="ignore"):  # of what writes the stack
        write_stack(tmp_path / "a.mrcs", spoilt, pixel_size=PIXEL)
    with pytest.raises(ValueError, match=f"number 8 of a.mrcs {message}"):
        components(View(stack_images(tmp_path / "a.mrcs")))


def test_a_signal_in_noise_is_found_with_its_strength(rng):
    n, p, signal = 2000, 200, 5.0
    values = rng.normal(size=(n, p))
    values[:, 0] *= np.sqrt(1 + signal)
    found = spikes(np.linalg.eigvalsh(values.T @ values / n)[::-1], p / n)
    assert found[0] == pytest.approx(signal, rel=0.15)
    # Noise alone may exceed its edge by a little, as its largest eigenvalue fluctuates.
    assert (found[5:] == 0).all()


def test_the_mask_is_one_inside_and_zero_outside():
    mask = circular_mask(64, 20.0)
    assert mask[32, 32] == 1
    assert mask[32, 32 + 20] == mask[0, 0] == 0
    assert 0 < mask[32, 32 + 18] < 1


def test_every_coefficient_of_the_full_transform_is_counted_once():
    shell, multiplicity = shells(SIDE)
    assert shell.shape == multiplicity.shape == (SIDE, SIDE // 2 + 1)
    assert multiplicity.sum() == SIDE**2
    assert shell[0, 0] == 0
    assert shell[3, 4] == shell[-3, 4] == 5


def surveyed(images):
    view = View(ImageArray(np.asarray(images, dtype=np.float32)))
    return survey(view, circular_mask(SIDE, SIDE / 2), np.random.default_rng(0))


def test_the_noise_of_white_noise_is_its_variance_in_every_shell(rng):
    found = surveyed(3 * rng.normal(size=(1500, SIDE, SIDE)))
    np.testing.assert_allclose(found.noise, 9, rtol=0.1)
    # The mean of an image is subtracted, so its own shell has no variance left.
    assert (np.abs(found.signal) < 5 * found.error)[1:].all()


def spectra_of(signal, error=1e-6):
    """ShellSpectra of unit noise with this signal."""
    ones = np.ones(len(signal))
    return ShellSpectra(np.array(signal, dtype=float), ones, error * ones, ones, 100)


@pytest.mark.parametrize(
    ("signal", "error", "shell"),
    [
        ([0, 0, 60, 25, 10, 5, 0, 0, 0, 0], 1e-6, 6),
        ([0, 0, 990, 9, 1, 0, 0, 0, 0, 0], 1e-6, 3),
        # A shell whose signal is not certain has none.
        ([0, 0, 60, 25, 0, 0, 0, 0.1, 0, 0], 1.0, 4),
    ],
)
def test_the_low_pass_keeps_nearly_all_of_the_signal(signal, error, shell):
    assert low_pass_shell(spectra_of(signal, error), None, 20, 1.0) == shell


N_VOLUMES = 60


def spots(folder, turn, rng, *, side):
    """Volumes in which a spot goes round a circle, with a little noise."""
    axis = np.linspace(-1, 1, side)
    z, y, x = axis[:, None, None], axis[:, None], axis
    for i, angle in enumerate(turn):
        centre = 0.4 * np.cos(angle), 0.4 * np.sin(angle)
        spot = np.exp(-8 * (x - centre[0]) ** 2 - 8 * (y - centre[1]) ** 2 - 8 * z**2)
        noise = 0.02 * rng.normal(size=spot.shape)
        write_volume(folder / f"v{i}.mrc", spot + noise, pixel_size=2)
    return volume_series(folder)


def explained(samples, target):
    """Share of the target's variance that a linear map of the samples explains."""
    columns = np.column_stack([np.ones(len(samples)), samples])
    left = target - columns @ np.linalg.lstsq(columns, target, rcond=None)[0]
    return 1 - left.var() / target.var()


@pytest.mark.parametrize(("side", "max_side"), [(12, 32), (12, 8), (13, 32), (13, 8)])
def test_components_tell_where_the_spot_is(tmp_path, rng, side, max_side, monkeypatch):
    monkeypatch.setattr(module, "MAX_SIDE", max_side)
    turn = rng.uniform(0, 2 * np.pi, size=N_VOLUMES)
    found = volume_components(spots(tmp_path, turn, rng, side=side))
    for target in (np.cos(turn), np.sin(turn)):
        assert explained(found.samples, target) > 0.99
    assert found.how["variance"] > 0.9
    assert (np.diff(found.signal_to_noise) < 0).all()
    assert found.how["files"] == [f"v{i}.mrc" for i in range(N_VOLUMES)]


def test_weak_components_have_the_third_power_of_wiener_s_weight():
    assert component_weights(np.array([3.0, 1.0])).tolist() == [0.75**3, 0.5**3]
