"""Energy of the functions along the gradients of a block of them."""

import numpy as np

from manifactor.factoring.gradients.geometry import Geometry


def energy_along(geometry: Geometry, block: np.ndarray) -> np.ndarray:
    """Compute the energy of all functions along the gradients of a block.

    The block's gradients span its directions at every row; the matrix is the mean inner product of
    the functions' gradients after projection on them. It is the factor's own Laplacian if the block
    is pure.

    Shapes: block (n_functions - 1, r) -> (n_functions - 1, n_functions - 1).
    """
    key = block.tobytes()
    if key not in geometry.measured:
        geometry.measured[key] = _energy_along(geometry, block)
    return geometry.measured[key]


def _energy_along(geometry: Geometry, block: np.ndarray) -> np.ndarray:
    strength, axes = _directions(geometry, block)
    weak = geometry.settings.vanishing_strength * strength.mean()
    trust = np.sqrt(strength / (strength + weak))
    trusted = axes * trust[:, None]
    along = trusted.transpose(0, 2, 1) @ geometry.gradients
    along *= np.sqrt(geometry.row_weights)[:, None, None]
    along = along.reshape(-1, along.shape[2])
    return along.T @ along


def count_directions(geometry: Geometry, block: np.ndarray) -> int:
    """Return how many directions a block's gradients span: the factor's dimension."""
    strength, _ = _directions(geometry, block)
    return strength.shape[1]


def _directions(geometry: Geometry, block: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return what the block's gradients span at every row.

    Returns strength (n_rows, d), axes (n_rows, n_coordinates, d).
    """
    # Every function of the block counts the same, whatever its eigenvalue.
    scaled = block / np.sqrt(geometry.rayleigh(block))
    spanned = geometry.gradients @ scaled
    outer = spanned @ spanned.transpose(0, 2, 1)
    averaged = geometry.average @ outer.reshape(len(outer), -1)
    strength, axes = np.linalg.eigh(averaged.reshape(outer.shape))
    mean = strength.mean(axis=0)
    strong = mean > geometry.settings.min_direction_share * mean.sum()
    count = max(1, int(strong.sum()))
    strongest = np.maximum(strength[:, -count:], 0)
    return strongest, axes[:, :, -count:]
