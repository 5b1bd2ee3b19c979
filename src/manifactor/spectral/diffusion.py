"""The record of samples, neighbour graph, random walk and spectrum."""

import logging
from dataclasses import dataclass, replace

import numpy as np

from manifactor.spectral.forecast import forecast
from manifactor.spectral.kernel import Affinity
from manifactor.spectral.neighbors import NeighborGraph, NeighborSettings
from manifactor.spectral.parts import Part
from manifactor.spectral.resident import ResidentMatrix
from manifactor.spectral.spectrum import Spectrum, laplacian_spectrum

log = logging.getLogger("manifactor")

SAMPLES_PER_FUNCTION = 8  # fewer do not resolve a function
MOST_FUNCTIONS = 400  # that are computed unasked


@dataclass(frozen=True)
class Diffusion:
    """Samples, their neighbour graph, the walk on it, and its spectrum.

    Attributes
    ----------
    samples : ndarray of shape (n_samples, n_features) or None
        None where only distances are known.
    graph : NeighborGraph
    affinity : Affinity
    spectrum : Spectrum
        On the given samples.
    distinct : Spectrum
        On the distinct samples.
    parts : tuple of Part
        Random parts with spectra of their own, where there are many samples.
    solver : str
        Eigensolver for further spectra.
    growing : bool
        Whether a method may compute more functions.
    """

    samples: np.ndarray | None
    graph: NeighborGraph
    affinity: Affinity
    spectrum: Spectrum
    distinct: Spectrum
    parts: tuple[Part, ...] = ()
    solver: str = "auto"
    growing: bool = False

    def grown(self, rng: np.random.Generator) -> "Diffusion | None":
        """The same with twice as many functions, None where that is not allowed or cannot be afforded."""
        count = len(self.spectrum.eigenvalues)
        most = len(self.graph.distinct) // SAMPLES_PER_FUNCTION
        if not self.growing or count >= min(most, MOST_FUNCTIONS):
            return None
        more = min(2 * count, most, MOST_FUNCTIONS)
        columns = 0 if self.samples is None else self.samples.shape[1]
        near = self.graph.n_neighbors or NeighborSettings().n_neighbors
        cost = forecast(
            len(self.graph.distinct), columns, n_neighbors=near, n_functions=more
        )
        if not cost.fits and not isinstance(
            self.affinity.kernel, ResidentMatrix
        ):  # whose memory is another
            log.warning(
                "%d functions were called for and not computed: with %s they do not fit into memory",
                more,
                cost,
            )
            return None
        parts = tuple(part.with_functions(more, rng=rng) for part in self.parts)
        start = (parts[0].rows, parts[0].spectrum) if parts else None
        spectrum = laplacian_spectrum(
            self.affinity, more, solver=self.solver, start=start, rng=rng
        )
        if len(spectrum.eigenvalues) <= count:
            return None
        given = spectrum.with_copies(self.graph).on_device_of(spectrum, self.graph)
        return replace(self, spectrum=given, distinct=spectrum, parts=parts)
