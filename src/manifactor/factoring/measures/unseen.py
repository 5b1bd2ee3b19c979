"""Whether factors miss a part of the samples that is independent of all else."""

from collections.abc import Sequence

import numpy as np

from manifactor.factoring.factors.factor import Factor
from manifactor.factoring.prediction import PredictionSettings, predictability, thinned
from manifactor.factoring.sums.independence import (
    IndependenceSettings,
    independent_parts,
)


def least_explained_part(
    factors: Sequence[Factor],
    samples: np.ndarray | None,
    inliers: np.ndarray,
    *,
    settings: IndependenceSettings = IndependenceSettings(),
    prediction: PredictionSettings = PredictionSettings(),
) -> float:
    """Return the smallest R^2 with which all factors predict an independent part.

    A factor much smaller than the others has its functions beyond the computed
    spectrum and adds little to any distance. Where distances of the factors add up it
    is still a linear part of the samples that is independent of all others and no
    Gaussian noise. 1 where there is no such part.

    Parameters
    ----------
    factors : sequence of Factor
    samples : ndarray of shape (n, p) or None
        Where only distances are known, None, the R^2 is 1.
    inliers : ndarray of bool of shape (n,)
        Samples that are no outliers.
    """
    if samples is None:
        return 1.0
    rows = np.flatnonzero(inliers)
    rows = rows[thinned(len(rows), prediction.samples)]
    centred = samples[rows] - samples[rows].mean(axis=0)
    _, strength, axes = np.linalg.svd(centred, full_matrices=False)
    # Directions far thinner than the thickest are rounding.
    turned = centred @ axes[strength > 1e-6 * strength[0]].T
    places = np.hstack(
        [factor.embedding[rows] / factor.embedding.std() for factor in factors]
    )
    shares = [
        predictability(places, turned @ part.reading, settings=prediction).mean()
        for part in independent_parts(turned, settings=settings)
        if not part.gaussian
    ]
    return float(min(shares, default=1.0))
