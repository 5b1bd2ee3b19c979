"""Which functions belong to which factor, and the angles between their gradients."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from manifactor._support.values import quotient
from manifactor.factoring.factors.factor import Factor
from manifactor.factoring.gradients.geometry import carre_du_champ
from manifactor.factoring.prediction import thinned
from manifactor.spectral.spectrum import Spectrum


@dataclass(frozen=True)
class OwnershipSettings:
    """Settings of `owners` and `angle_matrix`."""

    # A function belongs to a factor if more than this share of it lies in the span of the factor's
    # functions. Factors are orthogonal, so that no function has more than half in two of them.
    own: float = 0.5
    # Functions of a factor in the matrix of angles, so that it can be drawn.
    compared_functions: int = 8
    # Mean squared cosines of as many samples are known to better than a hundredth.
    samples: int = 20_000


def owners(
    spectrum: Spectrum,
    factors: Sequence[Factor],
    *,
    settings: OwnershipSettings = OwnershipSettings(),
) -> np.ndarray:
    """Return the factor that each of the spectrum's functions belongs to.

    For the most part; -1 where there is none. Factors of a sum have functions of their own, and own
    none.
    """
    shares = np.zeros((len(factors), len(spectrum.eigenvalues)))
    for share, factor in zip(shares, factors, strict=True):
        # Functions of unit norm: squared coefficients are shares.
        share[: len(factor.coefficients)] = (factor.coefficients**2).sum(axis=1)
    return np.where(shares.max(axis=0) > settings.own, shares.argmax(axis=0), -1)


def angles(
    spectrum: Spectrum,
    blocks: Sequence[np.ndarray],
    *,
    settings: OwnershipSettings = OwnershipSettings(),
) -> np.ndarray:
    """Return mean squared cosines between gradients of combinations of functions.

    0 where two functions belong to different factors of a product, 1 where their gradients are
    parallel.

    Returns (r, r).
    """
    thin = thinned(len(spectrum.weights), settings.samples)
    weights = spectrum.weights[thin] / spectrum.weights[thin].sum()
    # What a device holds belongs to all samples.
    some = replace(spectrum, functions=spectrum.functions[thin], weights=weights, resident=None)
    champ = carre_du_champ(some, np.hstack(blocks))
    energy = np.einsum("xaa->xa", champ)
    across = np.einsum("x,xab->ab", weights, champ**2)
    parallel = (energy * weights[:, None]).T @ energy
    return np.clip(quotient(across, parallel), 0, 1)


def angle_matrix(
    spectrum: Spectrum,
    factors: Sequence[Factor],
    *,
    settings: OwnershipSettings = OwnershipSettings(),
) -> tuple[np.ndarray, list[int]]:
    """Return `angles` of the lowest functions of every factor, and how many of each.

    Both are empty where the factors have no functions of the spectrum.
    """
    most = settings.compared_functions
    coefficients = [f.coefficients for f in factors if len(f.coefficients)]
    blocks = [block[:, :most] for block in coefficients]
    if not blocks:
        return np.zeros((0, 0)), []
    counts = [block.shape[1] for block in blocks]
    return angles(spectrum, blocks, settings=settings), counts
