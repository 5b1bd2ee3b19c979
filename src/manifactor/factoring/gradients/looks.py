"""Looks at all samples and at parts of them, which tell structure from noise."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.sparse.csgraph import connected_components

from manifactor._support.threads import map_threads
from manifactor.factoring.gradients.geometry import GradientSettings, measure_geometry
from manifactor.factoring.gradients.proposals import Look
from manifactor.spectral.diffusion import Diffusion
from manifactor.spectral.laplacian import laplacian_spectrum
from manifactor.spectral.neighbors import chosen
from manifactor.spectral.parts import Part


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
    affinity, rough = diffusion.affinity, diffusion.settings.parts.spectrum
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
        spectrum = laplacian_spectrum(walk, count, solver=solver, settings=rough, rng=rng)
        if len(spectrum.eigenvalues) < settings.fewest_functions:
            continue
        yield Part(rows, walk, spectrum)
