import numpy as np
import pytest

from manifactor.cryoem.files.stacks import ImageArray
from manifactor.cryoem.one_view.images import circular_mask
from manifactor.cryoem.one_view.spectra import (
    Spectra,
    SurveySettings,
    low_pass_shell,
    shells,
    survey,
    windowed,
)
from manifactor.cryoem.one_view.views import View

SIZE = 32


def spectra_of(signal):
    """Spectra of unit noise, known exactly, with this signal."""
    signal = np.array(signal, dtype=float)
    ones = np.ones(len(signal))
    return Spectra(signal, ones, 1e-6 * ones, ones)


def test_every_coefficient_of_the_full_transform_is_counted_once():
    shell, multiplicity = shells(SIZE)
    assert shell.shape == multiplicity.shape == (SIZE, SIZE // 2 + 1)
    assert multiplicity.sum() == SIZE**2
    assert shell[0, 0] == 0
    assert shell[3, 4] == shell[-3, 4] == 5


def test_the_noise_of_white_noise_is_its_variance_in_every_shell(rng):
    images = 3 * rng.normal(size=(1500, SIZE, SIZE)).astype(np.float32)
    view = View(ImageArray(images))
    found = survey(view, circular_mask(SIZE, SIZE / 2), np.arange(1500))
    np.testing.assert_allclose(found.noise, 9, rtol=0.1)
    # The mean of an image is subtracted, so its own shell has no variance left.
    assert (np.abs(found.signal) < 5 * found.error)[1:].all()


def test_a_wave_has_its_variance_in_its_own_shell(rng):
    wave = 2 * np.cos(2 * np.pi * 5 * np.arange(SIZE) / SIZE)
    images = rng.normal(size=(800, 1, 1)) * wave + rng.normal(size=(800, SIZE, SIZE))
    view = View(ImageArray(images.astype(np.float32)))
    found = survey(view, circular_mask(SIZE, SIZE / 2), np.arange(800))
    assert np.argmax(found.signal + found.noise) == 5


def test_a_stack_without_noise_is_assigned_a_little():
    mask = circular_mask(SIZE, SIZE / 2)
    spots = np.stack([i * mask**4 for i in range(20)]).astype(np.float32)
    view = View(ImageArray(spots))
    found = survey(view, mask, np.arange(20), settings=SurveySettings(noise_floor=1e-2))
    variance = (found.signal + found.noise) @ found.count / found.count.sum()
    assert found.noise.min() >= 0.99e-2 * variance > 0


def test_the_offset_of_an_image_is_removed_in_its_window(rng):
    mask = circular_mask(SIZE, SIZE / 3)
    images = rng.normal(size=(4, SIZE, SIZE)).astype(np.float32)
    offset = np.arange(4, dtype=np.float32)[:, None, None]
    np.testing.assert_allclose(windowed(images + offset, mask), windowed(images, mask), atol=1e-5)


@pytest.mark.parametrize(("kept", "shell"), [(0.5, 3), (0.84, 4), (0.99, 6)])
def test_the_low_pass_keeps_its_share_of_the_signal(kept, shell):
    spectra = spectra_of([0, 0, 60, 25, 10, 5, 0, 0, 0, 0])
    settings = SurveySettings(kept_signal=kept)
    assert low_pass_shell(spectra, None, 1.0, settings=settings) == shell


def test_a_shell_whose_signal_is_not_certain_is_no_signal():
    spectra = spectra_of([0, 0, 60, 25, 0, 0, 0, 0.1, 0, 0])
    doubtful = Spectra(spectra.signal, spectra.noise, np.ones(10), spectra.count)
    assert low_pass_shell(doubtful, None, 1.0) == 4


def test_a_given_low_pass_is_the_nearest_shell():
    spectra = spectra_of(np.ones(16))  # a box of 32 pixels of 2 A
    assert low_pass_shell(spectra, 64 / 7.2, 2.0) == 7
    with pytest.raises(ValueError, match="two pixels and half the box, 4 to 32 A"):
        low_pass_shell(spectra, 33.0, 2.0)


def test_images_without_signal_have_no_low_pass():
    with pytest.raises(ValueError, match="must differ by more than noise"):
        low_pass_shell(spectra_of(np.zeros(10)), None, 1.0)
