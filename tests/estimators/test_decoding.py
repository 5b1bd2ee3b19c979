"""Derivatives of decoders."""

import numpy as np
import pytest

from manifactor import jacobian

from ..moving import jacobian as exact_jacobian
from ..moving import seen


@pytest.fixture(scope="module")
def latents():
    return np.random.default_rng(0).random((1500, 2))


def test_differences_are_exact_but_for_rounding(latents):
    found = jacobian(seen, latents)
    np.testing.assert_allclose(found, exact_jacobian(latents), atol=1e-8)
    single = jacobian(lambda z: seen(z).astype(np.float32), latents)
    np.testing.assert_allclose(single, exact_jacobian(latents), atol=2e-3)


def test_images_are_flattened(latents):
    images = jacobian(lambda z: np.repeat(seen(z)[:, None], 2, axis=1), latents)
    np.testing.assert_allclose(images, np.tile(jacobian(seen, latents), (1, 2, 1)))


@pytest.mark.parametrize(
    ("decoder", "z", "message"),
    [(seen, np.zeros(3), "one latent a row"), (seen, [[np.inf, 0.0]], "`z` must be finite")],
)
def test_bad_input_is_refused(decoder, z, message):
    with pytest.raises(ValueError, match=message):
        jacobian(decoder, z)


@pytest.mark.torch
def test_modules_of_torch_are_differentiated_exactly(latents):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    hidden, last = torch.nn.Linear(2, 8).double(), torch.nn.Linear(8, 5).double()
    decoder = torch.nn.Sequential(hidden, torch.nn.Tanh(), last)
    first, second = (layer.weight.detach().numpy() for layer in (hidden, last))
    slopes = 1 - np.tanh(latents @ first.T + hidden.bias.detach().numpy()) ** 2
    exact = np.einsum("ph,nh,hd->npd", second, slopes, first)
    np.testing.assert_allclose(jacobian(decoder, latents), exact, atol=1e-12)
    # A function of tensors, and a module in single precision.
    tensor = torch.as_tensor(latents, dtype=torch.float32)
    found = jacobian(lambda z: z**2, tensor)
    np.testing.assert_allclose(found, 2 * latents[:, :, None] * np.eye(2), rtol=1e-6)
    np.testing.assert_allclose(jacobian(decoder.float(), latents), exact, atol=1e-5)


@pytest.mark.torch
def test_modules_that_mix_rows_must_not_be_in_training(latents):
    torch = pytest.importorskip("torch")
    decoder = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Dropout())
    with pytest.raises(ValueError, match=r"it is in training. Call decoder.eval\(\)"):
        jacobian(decoder, latents)
    assert jacobian(decoder.eval(), latents).shape == (1500, 3, 2)
