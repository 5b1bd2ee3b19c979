"""The record Diffusion: samples, neighbour graph, random walk and its spectrum."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import gen_batches

from manifactor._support.choices import Choice
from manifactor._support.memory import available_memory, held_memory
from manifactor.spectral.extension import ExtensionSettings, extend
from manifactor.spectral.forecast import forecast
from manifactor.spectral.kernel import Affinity
from manifactor.spectral.laplacian import laplacian_spectrum
from manifactor.spectral.neighbors import NeighborGraph
from manifactor.spectral.parts import Part
from manifactor.spectral.preparation import Preparation
from manifactor.spectral.resident import ResidentMatrix
from manifactor.spectral.settings import DiffusionSettings
from manifactor.spectral.spectrum import Spectrum

log = logging.getLogger("manifactor")

# Samples that functions are extended to at a time; it steers no result.
EXTENDED_AT_ONCE = 20_000


@dataclass(frozen=True)
class Diffusion:
    """Samples, their neighbour graph, the random walk on it, and its spectrum."""

    # (n_samples, n_features): after preparation; the distances where only those are known
    samples: Any
    graph: NeighborGraph
    affinity: Affinity
    distinct: Spectrum  # on the distinct samples
    # Random parts with spectra of their own, where there are many samples
    parts: tuple[Part, ...] = ()
    # What was chosen on the way, and why; "preparation" among them
    choices: Mapping[str, Choice] = field(default_factory=dict)
    # Keys of the stages, for a later computation that starts from this one
    keys: Mapping[str, str] = field(default_factory=dict)
    # Settings of the computation; they serve further spectra and new samples
    settings: DiffusionSettings = field(default_factory=DiffusionSettings)
    max_functions: int = 0  # the number of functions up to which a method may ask for more
    n_requested: int = 0  # functions computed at first, before a method asked for more

    def __repr__(self) -> str:
        n_samples, n_functions = len(self.graph.inverse), len(self.distinct.eigenvalues)
        return f"Diffusion({n_samples} samples, {n_functions} functions)"

    @cached_property
    def spectrum(self) -> Spectrum:
        """Spectrum on the given samples.

        Copies share the values of their original, and functions are extended to samples that were
        not drawn.
        """
        given = self.distinct.with_copies(self.graph)
        undrawn = np.flatnonzero(self.graph.undrawn)
        if not len(undrawn):
            return given.on_device_of(self.distinct, self.graph)
        functions = given.functions.copy()
        for rows in gen_batches(len(undrawn), EXTENDED_AT_ONCE):
            some = undrawn[rows]
            functions[some] = self.extended(self.samples[some])
        return replace(given, functions=functions)

    @property
    def preparation(self) -> Preparation | None:
        """The principal components that were kept; None for samples as they are."""
        choice = self.choices.get("preparation")
        return None if choice is None else choice.value

    @property
    def points(self) -> np.ndarray | None:
        """Samples as points, (n_samples, n_features); None for distances."""
        return None if sp.issparse(self.samples) else self.samples

    @property
    def dimension(self) -> float:
        """Intrinsic dimension of the data, as measured: not a whole number."""
        return self.affinity.bandwidth.dimension

    @property
    def n_neighbors(self) -> int:
        """Neighbours of each sample; the usual number for a search of the caller's."""
        return self.graph.n_neighbors or self.settings.searching.n_neighbors

    def prepared(self, X):
        """Return new samples prepared as those of the fit were."""
        return X if self.preparation is None else self.preparation(X)

    def extended(self, X_prepared) -> np.ndarray:
        """Return the functions at new, prepared samples, (n_new, n_functions)."""
        return extend(
            X_prepared,
            self.distinct,
            self.affinity,
            self.graph,
            self.samples,
            settings=ExtensionSettings(self.settings.kernel, self.settings.outliers),
        )

    def grown(self, rng: np.random.Generator) -> "Diffusion | None":
        """Return the same with twice as many functions.

        None where the caller fixed their number, where the samples resolve no more, or where they
        do not fit into memory.
        """
        count = len(self.distinct.eigenvalues)
        if count >= self.max_functions:
            return None
        more = min(2 * count, self.max_functions)
        if not self._affordable(more):
            return None
        parts = tuple(
            part.with_functions(more, settings=self.settings.parts, rng=rng) for part in self.parts
        )
        spectrum = laplacian_spectrum(
            self.affinity,
            more,
            solver=self.settings.solver,
            start=first_look(parts),
            settings=self.settings.spectrum,
            rng=rng,
        )
        if len(spectrum.eigenvalues) <= count:
            return None
        return replace(self, distinct=spectrum, parts=parts)

    def _affordable(self, n_functions: int) -> bool:
        """Whether so many functions fit into memory; logs a warning where not."""
        if isinstance(self.affinity.kernel, ResidentMatrix):
            return True  # the forecast is of the host's memory, not of the device's
        n_columns = 0 if self.points is None else self.samples.shape[1]
        cost = forecast(
            len(self.graph.distinct),
            n_columns,
            n_neighbors=self.n_neighbors,
            n_functions=n_functions,
        )
        # The forecast is of the whole fit, a part of which is in memory by now.
        fits = cost.memory <= available_memory() + held_memory()
        if not fits:
            log.warning(
                "%d functions would help and were not computed: they need %s, which "
                "does not fit into memory",
                n_functions,
                cost,
            )
        return fits

    def settled(self) -> "Diffusion":
        """Return the same with everything in the host's memory."""
        return replace(
            self,
            graph=self.graph.settled(),
            affinity=self.affinity.settled(),
            distinct=self.distinct.settled(),
            parts=tuple(part.settled() for part in self.parts),
        )

    def as_requested(self) -> "Diffusion":
        """Return the same with the functions computed at first only."""
        return replace(self, distinct=self.distinct.lowest(self.n_requested))

    def searchable(self, n_jobs: int | None) -> "Diffusion":
        """Return the same with a neighbour search, which archives do not hold."""
        return replace(self, graph=self.graph.with_search(self.samples, n_jobs))


def first_look(parts: tuple[Part, ...]) -> tuple[np.ndarray, Spectrum] | None:
    """Return the first part's rows and spectrum, from which a solver starts."""
    return (parts[0].rows, parts[0].spectrum) if parts else None
