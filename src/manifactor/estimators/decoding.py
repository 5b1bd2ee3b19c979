"""Derivatives of decoders, which are metrics of what they decode."""

from collections.abc import Callable
from typing import Any

import numpy as np

from manifactor._support.errors import extra
from manifactor._support.threads import row_slices
from manifactor._support.values import require_values
from manifactor.estimators.arrays import numbers
from manifactor.operators.engines.gpu import from_tensor, is_tensor


def jacobian(decoder: Callable[[Any], Any], z: Any) -> np.ndarray:
    """Return the derivatives of a decoder at latents, for ``fit(decoder(z), metric=J)``.

    Parameters
    ----------
    decoder : callable
        From latents (n, d) to samples, (n, p) or images (n, ...), each row by itself. A module of
        torch, or a function of tensors if `z` is one, is differentiated exactly; a function of
        arrays by central differences.
    z : array-like or tensor of shape (n, d)
        Latents. For a module, an array is moved to its device and precision.

    Returns
    -------
    ndarray of shape (n, p, d)
        Images are flattened. Where p = d, pass ``metric=J @ J.transpose(0, 2, 1)``.
    """
    latents = numbers(z, "z")
    if latents.ndim != 2 or not latents.size:
        raise ValueError(f"`z` must have one latent a row, (n, d); got shape {latents.shape}.")
    require_values(latents, argument="z")
    modules = list(decoder.modules()) if hasattr(decoder, "modules") else []
    kinds = [type(module).__name__ for module in modules if module.training]
    if any("BatchNorm" in kind or "Dropout" in kind for kind in kinds):
        raise ValueError(
            "`decoder` must decode each row by itself, without chance; it is in training. Call "
            "decoder.eval() first."
        )
    z = z if is_tensor(z) else extra("torch").as_tensor(latents) if modules else latents
    if modules:
        z = z.to(next(decoder.parameters(), z))  # type: ignore[attr-defined]
    derivatives = _by_torch if is_tensor(z) else _by_differences
    return np.concatenate([derivatives(decoder, z[rows]) for rows in row_slices(len(z), 1000)])


def _by_torch(decoder: Callable[[Any], Any], latents: Any) -> np.ndarray:
    """Return derivatives along one latent after the other."""
    torch = extra("torch")
    columns = []
    for along in torch.eye(latents.shape[1], dtype=latents.dtype, device=latents.device):
        # Not `torch.func.jvp`, which takes ten seconds when it is first called.
        tangent = along.expand_as(latents)
        column = torch.autograd.functional.jvp(decoder, latents.detach(), tangent)[1]
        columns.append(from_tensor(column).reshape(len(latents), -1))
    return np.stack(columns, axis=2)


def _by_differences(decoder: Callable[[Any], Any], latents: np.ndarray) -> np.ndarray:
    """Return central differences of a function of arrays."""
    count = len(latents)
    # Rounding is divided by the step, and the third derivative multiplied by its square.
    step = np.finfo(np.result_type(decoder(latents), np.float32)).eps ** (1 / 3)
    columns = []
    for along in np.eye(latents.shape[1]):
        after, before = (latents + sign * step * along for sign in (1, -1))
        rise = np.asarray(decoder(after)) - np.asarray(decoder(before))
        columns.append(rise.reshape(count, -1) / ((after - before) @ along)[:, None])
    return np.stack(columns, axis=2)
