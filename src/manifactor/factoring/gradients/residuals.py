"""Whether what factors leave of the samples is noise, or a factor that was missed."""

from dataclasses import dataclass, field

import numpy as np

from manifactor._support.regression import neighbour_means
from manifactor.factoring.edges import EdgeSettings, has_edge
from manifactor.factoring.prediction import PredictionSettings, thinned


@dataclass(frozen=True)
class ResidualSettings:
    """Settings of `leaves_noise`."""

    # Length of what is left, relative to the samples', up to which it is rounding.
    rounding: float = 1e-9
    # What an edge or a hole of it is.
    edges: EdgeSettings = field(default_factory=EdgeSettings)


def leaves_noise(
    places: np.ndarray,
    samples: np.ndarray,
    *,
    settings: ResidualSettings = ResidualSettings(),
    prediction: PredictionSettings = PredictionSettings(),
) -> bool:
    """Return whether what places leave of the samples has no edge and no hole.

    Noise has none. Samples, (n, d), are predicted from their neighbours on the factors, (n, c). A
    small factor that was missed, an interval or a circle, shows in the rest as a direction of low
    kurtosis, which `has_edge` finds. At 4,000 samples an interval blurred by noise of a quarter of
    its width looks like noise.

    >>> rng = np.random.default_rng(0)
    >>> line = rng.uniform(size=(2000, 1))
    >>> noise = 0.1 * rng.normal(size=(2000, 1))
    >>> strip = 0.3 * rng.uniform(size=(2000, 1))
    >>> leaves_noise(line, np.hstack([line, noise]))
    True
    >>> leaves_noise(line, np.hstack([line, strip]))
    False
    """
    thin = thinned(len(samples), prediction.samples)
    places, samples = places[thin], samples[thin]
    k = min(prediction.n_neighbors, len(places) - 1)
    rest = samples - neighbour_means(places, k)(samples)
    size = np.linalg.norm(samples - samples.mean(axis=0))
    if np.linalg.norm(rest - rest.mean(axis=0)) <= settings.rounding * size:
        return True
    return not has_edge(rest, settings=settings.edges)
