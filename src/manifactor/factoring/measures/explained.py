"""How much of the samples the factors explain."""

from collections.abc import Sequence

import numpy as np
from sklearn.decomposition import PCA

from manifactor.factoring.factors.factor import Factor
from manifactor.factoring.measures.settings import MeasureSettings
from manifactor.factoring.prediction import predictability, thinned
from manifactor.factoring.sums.independence import independent_parts, principal_coordinates


def explained(
    factors: Sequence[Factor],
    samples: np.ndarray | None,
    inliers: np.ndarray,
    *,
    settings: MeasureSettings = MeasureSettings(),
) -> float:
    """Return the smallest R^2 with which all factors predict a main direction.

    Shapes: samples (n_samples, n_features), inliers (n_samples,).
    """
    if samples is None:
        return 1.0
    rows = thinned(np.flatnonzero(inliers), settings.samples)
    # Places in units of length: a function's gradient is the root of its eigenvalue.
    places = np.hstack(
        [f.embedding[rows] / (f.embedding.std() * np.sqrt(f.eigenvalues[0])) for f in factors]
    )
    samples = samples[rows]
    count = min(settings.most_components, *samples.shape)
    pca = PCA(count, svd_solver="auto", random_state=0)
    scores = pca.fit_transform(samples)
    main = scores[:, pca.explained_variance_ratio_ > settings.main_variance]
    r2 = predictability(places, main, settings=settings.prediction)
    return float(r2.min(initial=1.0))


def least_explained_part(
    factors: Sequence[Factor],
    samples: np.ndarray | None,
    inliers: np.ndarray,
    *,
    settings: MeasureSettings = MeasureSettings(),
) -> float:
    """Return the smallest R^2 with which all factors predict an independent part.

    A factor much smaller than the others has its functions beyond the computed spectrum and adds
    little to any distance. Where distances of the factors add up it is still a linear part of the
    samples that is independent of all others and no Gaussian noise. 1 where there is no such part.

    Shapes: samples (n_samples, n_features), inliers (n_samples,).
    """
    if samples is None:
        return 1.0
    prediction = settings.prediction
    rows = thinned(np.flatnonzero(inliers), prediction.samples)
    centred = samples[rows] - samples[rows].mean(axis=0)
    coordinates, _ = principal_coordinates(centred, settings=settings.parts)
    places = np.hstack([factor.embedding[rows] / factor.embedding.std() for factor in factors])
    parts = [
        coordinates @ part.reading
        for part in independent_parts(coordinates, settings=settings.parts)
        if not part.gaussian
    ]
    if not parts:
        return 1.0
    # All parts at once, since the search for neighbours is what takes time.
    r2 = predictability(places, np.hstack(parts), settings=prediction)
    ends = np.cumsum([part.shape[1] for part in parts])[:-1]
    return float(min(share.mean() for share in np.split(r2, ends)))
