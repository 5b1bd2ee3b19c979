"""Products of functions of different factors: are they eigenfunctions?"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from manifactor.factoring.gradients.geometry import Geometry


@dataclass(frozen=True)
class ProductSettings:
    """Settings of `product_share`, and of the limit that peeling sets to it."""

    # Distance from the sum of the eigenvalues within which a product counts, as a share of the sum.
    window: float = 0.2
    # Least share of the product of two functions there, its noise taken off: 0.97 and more on
    # products, 0.7 and less on irreducible shapes.
    min_share: float = 0.7
    # Most that is added to a share for its noise, so that poor halves cannot excuse any product.
    max_noise: float = 0.15


def product_share(
    geometry: Geometry,
    blocks: Sequence[np.ndarray],
    *,
    settings: ProductSettings = ProductSettings(),
) -> float:
    """Return how far products of the factors' lowest functions are eigenfunctions.

    On a product manifold the product of functions of two factors is an eigenfunction whose
    eigenvalue is the sum of theirs. The smallest share, over pairs of factors, of the product of
    their lowest functions near that sum is returned: 1 for a single block, 0 for none.
    """
    if not blocks:
        return 0.0
    # The lowest function of a block is the most accurate, and its products are the first to lie
    # inside the spectrum.
    lowest = np.column_stack([block[:, 0] for block in blocks])
    a, b = np.triu_indices(len(blocks), 1)
    own = geometry.rayleigh(lowest)
    total = own[a] + own[b]
    coefficients, _ = geometry.products(lowest[:, a], lowest[:, b])
    found = coefficients[1:] ** 2
    distance = np.abs(geometry.eigenvalues[:, None] - total)
    near = distance < settings.window * total
    found_near = (found * near).sum(axis=0)
    shares = found_near / found.sum(axis=0)
    return float(shares.min(initial=1.0))
