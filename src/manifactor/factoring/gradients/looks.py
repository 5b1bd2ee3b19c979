"""Dimensions of the data, and of the blocks of functions found in them."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from scipy.sparse.csgraph import connected_components

from manifactor._support.regression import neighbour_means
from manifactor._support.threads import map_threads
from manifactor.factoring.gradients.geometry import GradientSettings, measure_geometry
from manifactor.factoring.gradients.peeling import Look, Peeling
from manifactor.factoring.prediction import EdgeSettings, PredictionSettings, has_edge, thinned
from manifactor.spectral.diffusion import Diffusion
from manifactor.spectral.laplacian import laplacian_spectrum
from manifactor.spectral.neighbors import chosen
from manifactor.spectral.parts import ROUGH_ACCURACY, Part

MORE = "more dimensions than the data, so they overlap"
FEWER = "fewer dimensions than the data, so a small one may be missing"


@dataclass(frozen=True)
class Misfit:
    """How far the factors' dimensions miss the data's."""

    dimensions: float
    difference: str = ""  # in which way, as a phrase; "" where they fit


@dataclass(frozen=True)
class Dimensions:
    """Dimensions of the data, and of the blocks of functions that were found."""

    data: float  # as the kernel's bandwidth curve has it
    found: int  # directions that the gradients of the blocks span together
    missing: bool  # whether the blocks lack a dimension that is no noise

    def misfit(self, of_factors: int, limit: float) -> Misfit:
        """Return how far the dimensions of all factors together miss the data's.

        A surplus of dimensions up to `limit` is not reported.
        """
        surplus = of_factors - self.data
        if surplus > limit:
            return Misfit(surplus, MORE)
        if self.missing:
            return Misfit(self.data - self.found, FEWER)
        # Dimensions that only noise fills are not missing.
        return Misfit(max(0.0, surplus))


@dataclass(frozen=True)
class Peeled:
    """A peeling with what it was made of."""

    diffusion: Diffusion  # whose functions were peeled; it may have more of them than the one given
    peeling: Peeling
    dimensions: Dimensions  # of the data and of the blocks that were found


# Looks at all samples and at parts of them, which tell structure from noise.


@dataclass(frozen=True)
class LookSettings:
    """Settings of `take_looks`."""

    # A half with fewer functions than these has no two factors to show.
    fewest_functions: int = 4
    # With more samples for each function than this, the block solver is faster than the dense one
    # at the low accuracy that halves need.
    samples_per_function: int = 6


def take_looks(
    diffusion: Diffusion,
    *,
    settings: LookSettings = LookSettings(),
    gradients: GradientSettings = GradientSettings(),
    rng: np.random.Generator,
) -> list[Look]:
    """Return looks at all distinct samples and at two parts or halves of them.

    Each has its own spectrum and gradients, and no blocks yet.
    """
    count = len(diffusion.distinct.eigenvalues)
    everything = np.arange(len(diffusion.distinct.weights))
    whole = Part(everything, diffusion.affinity, diffusion.distinct)
    halves = diffusion.parts or _halves(diffusion, count, settings, rng)
    parts = [whole, *halves]
    samples = diffusion.points
    if samples is not None:
        samples = chosen(samples, diffusion.graph.distinct)

    def look(part: Part, rng: np.random.Generator) -> Look:
        some = None if samples is None else chosen(samples, part.rows)
        spectrum = part.spectrum.lowest(count)
        geometry = measure_geometry(spectrum, part.affinity, some, settings=gradients, rng=rng)
        return Look(part.rows, geometry)

    # A generator for each, so that results do not depend on the order of threads.
    return map_threads(look, parts, rng.spawn(len(parts)))


def _halves(
    diffusion: Diffusion, n_functions: int, settings: LookSettings, rng: np.random.Generator
) -> Iterator[Part]:
    """Random halves with their spectra under the same kernel.

    A half that falls apart, or has few functions, says nothing and is left out.
    """
    affinity = diffusion.affinity
    for rows in np.array_split(rng.permutation(len(affinity.degree)), 2):
        # Ascending rows keep the kernel's rows in the order of memory.
        rows.sort()
        walk = affinity.restricted(rows)
        count = min(n_functions, len(rows) // 2)
        if count < settings.fewest_functions:
            continue
        # Its lowest functions would tell its pieces apart, and nothing else.
        if connected_components(walk.kernel, directed=False)[0] > 1:
            continue
        many = len(rows) > settings.samples_per_function * count
        solver = "chebyshev" if many else "auto"
        spectrum = laplacian_spectrum(walk, count, solver=solver, accuracy=ROUGH_ACCURACY, rng=rng)
        if len(spectrum.eigenvalues) < settings.fewest_functions:
            continue
        yield Part(rows, walk, spectrum)


# Whether what factors leave of the samples is noise, or a factor that was missed.


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
