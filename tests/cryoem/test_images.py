import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from manifactor import datasets
from manifactor.cryoem.files.mrc import write_stack
from manifactor.cryoem.files.particles import Particles
from manifactor.cryoem.files.stacks import stack_images
from manifactor.cryoem.one_view.images import (
    ImageSettings,
    WeightingSettings,
    circular_mask,
    image_components,
)
from manifactor.cryoem.one_view.spectra import SurveySettings
from manifactor.cryoem.one_view.views import View

SIZE, PIXEL = 54, 4.0


def view_of(path, images, particles=None, **settings):
    write_stack(path, images, pixel_size=PIXEL)
    return View(stack_images(path), particles, **settings)


@pytest.fixture(scope="module")
def simulation():
    return datasets.simulate_particles(
        600, size=SIZE, pixel_size=PIXEL, signal_to_noise=100, random_state=0
    )


def components(view, **settings):
    return image_components(view, rng=np.random.default_rng(0), **settings)


def test_the_mask_is_one_inside_and_zero_outside():
    mask = circular_mask(64, 20.0)
    assert mask[32, 32] == 1
    assert mask[32, 32 + 20] == mask[0, 0] == 0
    assert 0 < mask[32, 32 + 18] < 1


@pytest.mark.slow
def test_components_have_the_signal_to_noise_of_the_simulation(tmp_path, simulation):
    clean = datasets.simulate_particles(
        600, size=SIZE, pixel_size=PIXEL, signal_to_noise=None, random_state=0
    )
    centred = clean.images.reshape(600, -1) - clean.images.reshape(600, -1).mean(axis=0)
    true = np.linalg.svd(centred, compute_uv=False)[:4] ** 2 / 600 / simulation.noise**2
    found = components(view_of(tmp_path / "a.mrcs", simulation.images))
    np.testing.assert_allclose(found.signal_to_noise[:4], true, rtol=0.1)
    assert (np.diff(found.weights) <= 0).all()
    assert "low-pass" in str(found)


def test_an_offset_of_each_image_changes_nothing(tmp_path, simulation, rng):
    offset = 100 * rng.normal(size=(600, 1, 1)).astype(np.float32)
    plain = components(view_of(tmp_path / "a.mrcs", simulation.images))
    shifted = components(view_of(tmp_path / "b.mrcs", simulation.images + offset))
    np.testing.assert_allclose(
        np.abs(shifted.samples[:, 0]), np.abs(plain.samples[:, 0]), atol=0.05
    )


def test_the_scale_of_the_images_changes_nothing(tmp_path, simulation):
    plain = components(view_of(tmp_path / "a.mrcs", simulation.images))
    scaled = components(view_of(tmp_path / "b.mrcs", 1000 * simulation.images))
    np.testing.assert_allclose(scaled.signal_to_noise, plain.signal_to_noise, rtol=1e-3)


def test_a_stack_masked_before_is_no_less_noisy(tmp_path, simulation):
    masked = simulation.images * circular_mask(SIZE, SIZE / 2).astype(np.float32)
    found = components(view_of(tmp_path / "a.mrcs", masked))
    plain = components(view_of(tmp_path / "b.mrcs", simulation.images))
    np.testing.assert_allclose(found.signal_to_noise[:4], plain.signal_to_noise[:4], rtol=0.2)


def test_the_papers_preparation_is_four_components_of_unit_variance(tmp_path, simulation):
    found = components(
        view_of(tmp_path / "a.mrcs", simulation.images), n_components=4, standardise=True
    )
    np.testing.assert_allclose(found.samples.std(axis=0), np.ones(4), rtol=1e-5)
    np.testing.assert_allclose(
        found.weights, 1 / np.sqrt(1 + found.signal_to_noise), rtol=0.05
    )  # noise has variance 1


@pytest.mark.slow
def test_many_images_are_projected_a_block_at_a_time(tmp_path, simulation):
    view = view_of(tmp_path / "a.mrcs", simulation.images)
    whole = components(view)
    few = ImageSettings(learning_bytes=4 * whole.n_coefficients * 599)
    source = replace(view.source, block_bytes=100 * 4 * SIZE**2)
    assert len(list(source.blocks())) == 6
    blocks = components(View(source), settings=few)
    for j in range(3):
        assert abs(np.corrcoef(blocks.samples[:, j], whole.samples[:, j])[0, 1]) > 0.999


def test_noise_alone_is_refused(tmp_path, rng):
    with pytest.raises(ValueError, match=r"must (differ by|show) more than noise"):
        components(view_of(tmp_path / "a.mrcs", rng.normal(size=(400, 32, 32)).astype(np.float32)))


@pytest.mark.parametrize("shape", [(20, 32, 34), (20, 8, 8)])
def test_oblong_and_tiny_images_are_refused(tmp_path, shape):
    with pytest.raises(ValueError, match="square with a side of at least 16 pixels"):
        components(view_of(tmp_path / "a.mrcs", np.zeros(shape, dtype=np.float32)))


def test_an_odd_box_has_the_components_of_an_even_one(tmp_path, simulation):
    # Two crops of the same images.
    even, odd = simulation.images[:, :-2, :-2], simulation.images[:, 1:, 1:]
    assert odd.shape[1:] == (53, 53)
    expected = components(view_of(tmp_path / "a.mrcs", even))
    found = components(view_of(tmp_path / "b.mrcs", odd))
    for j in range(3):
        same = np.corrcoef(found.samples[:, j], expected.samples[:, j])[0, 1]
        assert abs(same) > 0.99
    coarse = components(view_of(tmp_path / "c.mrcs", odd), low_pass=53 * PIXEL / 5)
    assert coarse.low_pass == pytest.approx(53 * PIXEL / 5)


def test_phases_of_an_odd_box_are_flipped_back(tmp_path, rng):
    images = rng.normal(size=(4, 33, 33)).astype(np.float32)
    defocus = np.full(4, 15_000.0)
    particles = Particles(tmp_path / "a.star", np.arange(4), microscope={"defocus_u": defocus})
    once = view_of(tmp_path / "a.mrcs", images, particles, flip=True)
    flipped = next(once.blocks())[1]
    assert not np.allclose(flipped, images, atol=0.1)
    twice = view_of(tmp_path / "b.mrcs", flipped, particles, flip=True)
    np.testing.assert_allclose(next(twice.blocks())[1], images, atol=1e-4)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mask_radius": -1.0}, "`--mask-radius` must be a number in"),
        ({"low_pass": 0.0}, "`--low-pass` must be a number above 0"),
        (
            {"low_pass": 1.0},
            "`--low-pass` must lie between two pixels and half the box, 8 to 108 A; got 1",
        ),
        ({"n_components": 0}, "`n_components` must be a whole number in"),
    ],
)
def test_settings_out_of_bounds_are_refused(tmp_path, simulation, settings, message):
    with pytest.raises(ValueError, match=message):
        components(view_of(tmp_path / "a.mrcs", simulation.images), **settings)


@pytest.mark.slow
def test_images_turned_and_shifted_at_random_give_the_same_components(tmp_path):
    settings = {"size": SIZE, "pixel_size": PIXEL, "signal_to_noise": 30, "random_state": 0}
    still = datasets.simulate_particles(500, **settings)
    moved = datasets.simulate_particles(500, in_plane=True, **settings)
    angles = np.column_stack([np.zeros((500, 2)), moved.psi])
    particles = Particles(Path("a.star"), np.arange(500), angles=angles, shift=moved.shift)
    expected = components(view_of(tmp_path / "a.mrcs", still.images))
    found = components(view_of(tmp_path / "b.mrcs", moved.images, particles))
    np.testing.assert_allclose(
        found.signal_to_noise[:3], expected.signal_to_noise[:3], rtol=0.45
    )  # edges are cut off
    assert len(found.weights) < 20
    assert abs(np.corrcoef(found.samples[:, 0], moved.stretch[:, 0])[0, 1]) > 0.9


def test_an_image_with_nan_is_named(tmp_path, simulation):
    spoilt = simulation.images.copy()
    spoilt[7, 3, 3] = np.nan
    with warnings.catch_warnings(action="ignore"):  # of what writes the stack
        view = view_of(tmp_path / "a.mrcs", spoilt)
    with pytest.raises(ValueError, match=r"images must be finite; number 8 of a.mrcs has NaN"):
        components(view)


def test_an_image_with_a_mark_for_missing_pixels_is_named(tmp_path, simulation):
    spoilt = simulation.images.copy()
    spoilt[7, 3, 3] = np.finfo(np.float32).max
    with warnings.catch_warnings(action="ignore"):  # of what writes the stack
        view = view_of(tmp_path / "a.mrcs", spoilt)
    with pytest.raises(ValueError, match=r"number 8 of a.mrcs has a value of 3.4e\+38"):
        components(view)


def test_the_low_pass_may_be_bounded_by_a_number_of_coefficients(simulation, tmp_path):
    view = view_of(tmp_path / "a.mrcs", simulation.images)
    settings = ImageSettings(survey=SurveySettings(max_coefficients=100))
    few = components(view, settings=settings)
    assert few.n_coefficients < 130 < components(view).n_coefficients
    assert few.low_pass == pytest.approx(SIZE * PIXEL / 5)


def test_wieners_weights_are_the_cube_roots_of_ours(simulation, tmp_path):
    view = view_of(tmp_path / "a.mrcs", simulation.images)
    settings = ImageSettings(weighting=WeightingSettings(max_components=3, exponent=1))
    wiener = components(view, settings=settings)
    assert wiener.samples.shape == (600, 3)
    np.testing.assert_allclose(wiener.weights**3, components(view).weights[:3])


def test_the_edge_of_the_mask_can_be_set():
    hard = circular_mask(64, 20.0, settings=ImageSettings(mask_edge=1e-9))
    assert set(np.unique(hard).round(6)) == {0, 1}
