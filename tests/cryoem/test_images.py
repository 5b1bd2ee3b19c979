import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy import fft

from manifactor import datasets
from manifactor.cryoem.ctf import contrast_transfer
from manifactor.cryoem.images import circular_mask, image_components
from manifactor.cryoem.particles import Particles
from manifactor.cryoem.mrc import write_stack
from manifactor.cryoem.stacks import stack_images
from manifactor.cryoem.views import View, aligned, particle_ctf

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


def blob(x, y, size=64):
    """A bright spot x columns to the right of the middle and y rows below it."""
    axis = np.arange(size) - size // 2
    return np.exp(-((axis - x) ** 2 + (axis[:, None] - y) ** 2) / 8).astype(np.float32)


def test_an_image_is_turned_back_by_psi_and_moved_by_its_shift():
    # psi takes the point (x, y) of the upright image to (x cos + y sin, -x sin + y cos), as RELION's matrix does
    angle, (x, y), shift = np.radians(35.0), (10.0, -4.0), np.array([3.0, -2.0])
    at = (
        np.array(
            [
                x * np.cos(angle) + y * np.sin(angle),
                -x * np.sin(angle) + y * np.cos(angle),
            ]
        )
        - shift
    )
    found = aligned(blob(*at)[None], np.array([35.0]), shift[None])[0]
    assert np.abs(found - blob(x, y)).max() < 0.05


def test_images_that_need_no_turn_are_the_same_array():
    images = blob(3, 4)[None]
    assert aligned(images, np.zeros(1), np.zeros((1, 2))) is images


def test_the_frame_is_that_of_the_first_particle(tmp_path):
    images = np.stack(
        [blob(10, 0), blob(0, -10)]
    )  # turned by psi = 90: (10, 0) goes to (0, -10)
    particles = Particles(
        Path("a.star"), np.arange(2), angles=np.array([[0, 0, 20.0], [0, 0, 110.0]])
    )
    _, seen = next(iter(view_of(tmp_path / "a.mrcs", images, particles).blocks()))
    np.testing.assert_allclose(seen[1], seen[0], atol=0.05)


def test_flipped_phases_undo_the_signs_of_the_ctf(tmp_path):
    defocus = np.array([12_000.0, 21_000.0])
    ctf = contrast_transfer(64, PIXEL, defocus)
    images = fft.irfft2(fft.rfft2(np.stack([blob(0, 0)] * 2)) * ctf, s=(64, 64)).astype(
        np.float32
    )
    particles = Particles(
        Path("a.star"), np.arange(2), microscope={"defocus_u": defocus}
    )
    _, flipped = next(
        iter(view_of(tmp_path / "a.mrcs", images, particles, flip=True).blocks())
    )
    np.testing.assert_allclose(
        flipped,
        fft.irfft2(fft.rfft2(np.stack([blob(0, 0)] * 2)) * np.abs(ctf)),
        atol=1e-4,
    )
    np.testing.assert_allclose(particle_ctf(particles, 64, PIXEL), ctf)


def test_phases_cannot_be_flipped_without_defocus(tmp_path):
    with pytest.raises(ValueError, match="where the defocus is known"):
        view_of(tmp_path / "a.mrcs", blob(0, 0)[None], flip=True)


def test_the_mask_is_one_inside_and_zero_outside():
    mask = circular_mask(64, 20.0)
    assert mask[32, 32] == 1
    assert mask[32, 32 + 20] == mask[0, 0] == 0
    assert 0 < mask[32, 32 + 18] < 1


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
    np.testing.assert_allclose(
        found.signal_to_noise[:4], plain.signal_to_noise[:4], rtol=0.2
    )


def test_the_papers_preparation_is_four_components_of_unit_variance(
    tmp_path, simulation
):
    found = components(
        view_of(tmp_path / "a.mrcs", simulation.images),
        n_components=4,
        standardise=True,
    )
    np.testing.assert_allclose(found.samples.std(axis=0), np.ones(4), rtol=1e-5)
    np.testing.assert_allclose(
        found.weights, 1 / np.sqrt(1 + found.signal_to_noise), rtol=0.05
    )  # noise has variance 1


def test_many_images_are_projected_a_block_at_a_time(tmp_path, simulation, monkeypatch):
    view = view_of(tmp_path / "a.mrcs", simulation.images)
    whole = components(view)
    monkeypatch.setattr(
        "manifactor.cryoem.images.LEARNED_BYTES", 4 * whole.n_coefficients * 599
    )
    monkeypatch.setattr("manifactor.cryoem.stacks.BLOCK_BYTES", 100 * 4 * SIZE**2)
    blocks = components(view)
    for j in range(3):
        assert abs(np.corrcoef(blocks.samples[:, j], whole.samples[:, j])[0, 1]) > 0.999


def test_noise_alone_is_refused(tmp_path, rng):
    with pytest.raises(ValueError, match=r"must (differ by|show) more than noise"):
        components(
            view_of(
                tmp_path / "a.mrcs", rng.normal(size=(400, 32, 32)).astype(np.float32)
            )
        )


@pytest.mark.parametrize("shape", [(20, 32, 34), (20, 33, 33), (20, 8, 8)])
def test_odd_and_tiny_images_are_refused(tmp_path, shape):
    with pytest.raises(
        ValueError, match="square with an even side of at least 16 pixels"
    ):
        components(view_of(tmp_path / "a.mrcs", np.zeros(shape, dtype=np.float32)))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mask_radius": -1.0}, "`mask_radius` must be a number in"),
        ({"low_pass": 0.0}, "`low_pass` must be a number above 0"),
        (
            {"low_pass": 1.0},
            "`low_pass` must lie between two pixels and half the box, 8 to 108 A; got 1",
        ),
        ({"n_components": 0}, "`n_components` must be a whole number in"),
    ],
)
def test_settings_out_of_bounds_are_refused(tmp_path, simulation, settings, message):
    with pytest.raises(ValueError, match=message):
        components(view_of(tmp_path / "a.mrcs", simulation.images), **settings)


def test_a_bare_stack_has_no_frame(tmp_path, simulation):
    view = view_of(tmp_path / "a.mrcs", simulation.images)
    rows, images = next(iter(view.blocks(np.array([5, 2]))))
    np.testing.assert_array_equal(images, simulation.images[rows])


def test_images_turned_and_shifted_at_random_give_the_same_components(tmp_path):
    settings = {
        "size": SIZE,
        "pixel_size": PIXEL,
        "signal_to_noise": 30,
        "random_state": 0,
    }
    still = datasets.simulate_particles(800, **settings)
    moved = datasets.simulate_particles(800, in_plane=True, **settings)
    angles = np.column_stack([np.zeros((800, 2)), moved.psi])
    particles = Particles(
        Path("a.star"), np.arange(800), angles=angles, shift=moved.shift
    )
    expected = components(view_of(tmp_path / "a.mrcs", still.images))
    found = components(view_of(tmp_path / "b.mrcs", moved.images, particles))
    np.testing.assert_allclose(
        found.signal_to_noise[:3], expected.signal_to_noise[:3], rtol=0.45
    )  # edges are cut off
    assert len(found.weights) < 20
    assert abs(np.corrcoef(found.samples[:, 0], moved.stretch[:, 0])[0, 1]) > 0.9


def test_images_that_were_flipped_before_are_not_flipped_again(tmp_path):
    microscope = {"defocus_u": np.ones(1), "flipped": np.ones(1)}
    particles = Particles(Path("a.star"), np.arange(1), microscope=microscope)
    with pytest.raises(ValueError, match="corrected already"):
        view_of(tmp_path / "a.mrcs", blob(0, 0)[None], particles, flip=True)


def test_an_image_with_nan_is_named(tmp_path, simulation):
    spoilt = simulation.images.copy()
    spoilt[7, 3, 3] = np.nan
    with warnings.catch_warnings(action="ignore"):  # of what writes the stack
        view = view_of(tmp_path / "a.mrcs", spoilt)
    with pytest.raises(
        ValueError, match=r"images must be finite; number 8 of a.mrcs has NaN"
    ):
        components(view)
