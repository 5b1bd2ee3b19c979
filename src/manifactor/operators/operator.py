"""The record Operator: samples, neighbour graph, random walk and its spectrum."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import pairwise_distances
from sklearn.utils import gen_batches

from manifactor._support.errors import Warned
from manifactor._support.memory import available_memory, held_memory
from manifactor._support.parameters import (
    Choice,
    given,
    require_choice,
    require_count,
    require_number,
)
from manifactor.operators.engines.gpu import ResidentMatrix, require_device, settled
from manifactor.operators.engines.solvers import SOLVERS
from manifactor.operators.forecast import forecast
from manifactor.operators.kernel import Affinity, kernel_rows
from manifactor.operators.laplacian import LEAST_COMPANY, Part, Spectrum, laplacian_spectrum
from manifactor.operators.metric import LocalMetric
from manifactor.operators.neighbors import N_NEIGHBORS, SEARCHES, NeighborGraph, chosen
from manifactor.samples.preparation import (
    PREPARATIONS,
    TRANSFORMATIONS,
    Preparation,
    Transformation,
)

log = logging.getLogger("manifactor")

# Samples needed to resolve one function.
SAMPLES_PER_FUNCTION = 8

# Functions at most, where a dimension of the data is missing among the usual number.
MOST_FUNCTIONS = 400


@dataclass(frozen=True)
class DiffusionSettings:
    """The caller's parameters of `diffuse`, which are documented in `DiffusionMap`."""

    n_functions: int | str = "auto"
    n_neighbors: int | str = "auto"
    bandwidth: float | str = "auto"
    density_correction: float = 1.0
    neighbors: Any = "auto"
    preparation: str = "auto"
    transformation: str = "auto"
    solver: str = "auto"
    device: str = "cpu"
    n_jobs: int | None = -1

    @property
    def precomputed(self) -> bool:
        """Whether `X` is a matrix of distances."""
        return isinstance(self.neighbors, str) and self.neighbors == "precomputed"

    @property
    def own_search(self) -> bool:
        """Whether the caller's own object searches for neighbours."""
        return not isinstance(self.neighbors, str)

    @property
    def dense(self) -> bool:
        """Whether the kernel holds all pairs of samples."""
        return isinstance(self.n_neighbors, str) and self.n_neighbors == "all"


def number_of_neighbors(settings: DiffusionSettings, n_samples: int) -> Choice:
    """Return the number of neighbours of each sample, "all" for the dense kernel."""
    if settings.n_neighbors != "auto":
        return given(settings.n_neighbors)
    if n_samples > N_NEIGHBORS:
        why = "low eigenfunctions are most accurate with 64 to 128 neighbours"
        return Choice(N_NEIGHBORS, why)
    return Choice(n_samples - 1, "there are no more samples")


def number_of_functions(
    settings: DiffusionSettings, n_distinct: int, chosen: Choice | None = None
) -> Choice:
    """Return the number of functions to compute; `chosen` by a method, it may be too many."""
    if chosen is not None:
        return replace(chosen, value=min(chosen.value, n_distinct - 1))
    asked = settings.n_functions
    return automatic_functions(n_distinct) if asked == "auto" else given(asked)


def automatic_functions(n_samples: int) -> Choice:
    """Return the number of functions to compute unless the caller says so."""
    # Less than two beside the constant one show nothing; 100 show the products of all factors of
    # the built-in shapes.
    count = min(100, max(3, n_samples // SAMPLES_PER_FUNCTION), n_samples - 1)
    return Choice(
        count,
        f"one for every {SAMPLES_PER_FUNCTION} samples, 100 at most; more only where a dimension "
        "of the data is missing",
    )


def require_diffusion(settings: DiffusionSettings, n_samples: int) -> None:
    """Raise ValueError for a parameter that is wrong for this number of samples."""
    require_choice("preparation", settings.preparation, PREPARATIONS)
    _require_transformation(settings)
    require_choice("solver", settings.solver, ["auto", *SOLVERS])
    if settings.device != "cpu":
        require_device(settings.device)
        require_choice("solver", settings.solver, ["auto", "chebyshev"], "on a device")
    search, n_jobs = settings.neighbors, settings.n_jobs
    if isinstance(search, str):
        require_choice("neighbors", search, ["auto", "precomputed", *SEARCHES])
    elif not (hasattr(search, "fit") and hasattr(search, "transform")):
        raise ValueError(
            "`neighbors` must be a name or an object with fit and transform, such as "
            f"sklearn.neighbors.KNeighborsTransformer; got {search!r}."
        )
    _require_bandwidth(settings)
    require_number("density_correction", settings.density_correction, low=0, high=1)
    _require_neighbors(settings, n_samples)
    # More than any machine has cores: the threads could not be started.
    is_count = isinstance(n_jobs, Integral) and 0 < abs(n_jobs) <= 2**15
    if n_jobs is not None and (isinstance(n_jobs, bool) or not is_count):
        raise ValueError(
            "`n_jobs` must be None or a whole number other than 0, -1 for all cores; "
            f"got {n_jobs!r}."
        )
    count = settings.n_functions
    if isinstance(count, str):
        require_choice("n_functions", count, ["auto"], "or a number")
    else:
        require_count("n_functions", count, low=2, high=n_samples - 1, n_samples=n_samples)


def _require_transformation(settings: DiffusionSettings) -> None:
    asked = settings.transformation
    require_choice("transformation", asked, TRANSFORMATIONS)
    if settings.precomputed and asked not in ("auto", "none"):
        raise ValueError(
            f"precomputed distances have no columns to transform; got `transformation`={asked!r}. "
            "Transform the samples before their distances are computed."
        )


def _require_bandwidth(settings: DiffusionSettings) -> None:
    if not isinstance(settings.bandwidth, str):
        require_number("bandwidth", settings.bandwidth, above=0)
        return
    require_choice("bandwidth", settings.bandwidth, ["auto", "local"], "or a positive number")
    if settings.bandwidth == "local" and settings.dense:
        raise ValueError(
            "`bandwidth='local'` needs a neighbour graph; got `n_neighbors='all'`. "
            "Set `n_neighbors` to a number."
        )


def _require_neighbors(settings: DiffusionSettings, n_samples: int) -> None:
    count = settings.n_neighbors
    if not isinstance(count, str):
        require_count("n_neighbors", count, low=1, high=n_samples - 1, n_samples=n_samples)
        if settings.precomputed or settings.own_search:
            decides, where = "the search given as `neighbors` decides", "in the search"
            if settings.precomputed:
                decides, where = "precomputed distances decide", "by the distances of each sample"
            raise ValueError(
                f"{decides} the number of neighbours; got `n_neighbors`={count}. Leave it at "
                f"'auto', and set the number {where}."
            )
        return
    require_choice("n_neighbors", count, ["auto", "all"], "or a number")
    if settings.dense and (settings.own_search or settings.precomputed):
        raise ValueError(
            "`n_neighbors='all'` measures Euclidean distances; got "
            f"`neighbors`={settings.neighbors!r}. Leave `neighbors` at 'auto'."
        )


# The record that a fit remembers.


@dataclass(frozen=True)
class Basis:
    """Functions of a walk, and the combinations of them that are the functions of a diffusion."""

    spectrum: Spectrum  # on the distinct samples
    coefficients: np.ndarray  # (n_walk_functions, n_functions)


@dataclass(frozen=True)
class LaggedPart:
    """The functions that some pairs of samples show, at some of the samples and of the pairs."""

    rows: np.ndarray  # (n,): the samples, of the distinct ones
    spectrum: Spectrum  # on these
    before: np.ndarray  # (m, n_functions): at the starts of the pairs
    innovation: np.ndarray  # (m, n_functions): at their ends, less what is expected there


@dataclass(frozen=True)
class Operator:
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
    # Parameters of the computation; they serve further spectra
    settings: DiffusionSettings = field(default_factory=DiffusionSettings)
    # Lengths at every sample in units of its moves, where these are known
    metric: LocalMetric | None = None
    # Moves that factors are tested by, until the end of a fit
    path: Any = None
    # What the functions are combinations of, where they are those of the operator of pairs
    basis: Basis | None = None
    # The functions of all pairs and of halves of them, until the end of a fit
    lagged: tuple[LaggedPart, ...] = ()
    # In the caller's units, the time of a step, burst or lag; nan where no moves are known
    time: float = float("nan")
    # What was noticed when the operator was made
    warned: tuple[Warned, ...] = ()

    def __repr__(self) -> str:
        n_samples, n_functions = len(self.graph.inverse), len(self.distinct.eigenvalues)
        return f"Operator({n_samples} samples, {n_functions} functions)"

    @cached_property
    def spectrum(self) -> Spectrum:
        """Spectrum on the given samples, extended to those that were not drawn."""
        spectrum = self.distinct.with_copies(self.graph)
        undrawn = np.flatnonzero(self.graph.undrawn)
        if not len(undrawn):
            return spectrum
        functions = spectrum.functions.copy()
        # In steps, to save memory.
        for rows in gen_batches(len(undrawn), 20_000):
            some = undrawn[rows]
            functions[some] = self.extended(self.samples[some])
        return replace(spectrum, functions=functions, resident=None)

    def with_copies(self, rows: np.ndarray, copy_of: np.ndarray) -> "Operator":
        """Return the operator of samples of which these are some `rows`, others copies of them."""
        graph = self.graph.with_copies(rows, copy_of)
        return replace(self, samples=self.samples[copy_of], graph=graph)

    @property
    def preparation(self) -> Preparation | None:
        """The principal components that were kept; None for samples as they are."""
        return self.choices.get("preparation", given(None)).value

    @property
    def points(self) -> np.ndarray | None:
        """Samples as points, (n_samples, n_features); None for distances."""
        return None if sp.issparse(self.samples) else self.samples

    @property
    def distinct_points(self) -> np.ndarray | None:
        """Distinct samples as points, (n_distinct, n_features); None for distances."""
        return None if self.points is None else chosen(self.points, self.graph.distinct)

    @property
    def distinct_metric(self) -> LocalMetric | None:
        """The metric at the distinct samples."""
        return None if self.metric is None else self.metric.chosen(self.graph.distinct)

    @property
    def dimension(self) -> float:
        """Intrinsic dimension of the data, as measured: not a whole number."""
        return self.affinity.bandwidth.dimension

    @property
    def reach(self) -> float:
        """Four bandwidths, as a length: beyond, a kernel of exp(-16) is nothing but rounding."""
        return 4.0 * float(np.sqrt(self.affinity.bandwidth.value))

    @property
    def n_neighbors(self) -> int:
        """Neighbours of each sample; the usual number for a search of the caller's."""
        return self.graph.n_neighbors or N_NEIGHBORS

    @property
    def transformation(self) -> Transformation | None:
        """The function of every column that was taken first; None for columns as they are."""
        return self.choices.get("transformation", given(None)).value

    def transformed(self, X):
        """Return new samples with the function of every column that those of the fit have."""
        return X if self.transformation is None else self.transformation(X)

    def prepared(self, X):
        """Return new samples prepared as those of the fit were."""
        X = self.transformed(X)
        return X if self.preparation is None else self.preparation(X)

    def unprepared(self, X: np.ndarray) -> np.ndarray:
        """Return samples from prepared ones, without the components that were dropped."""
        if self.preparation is not None:
            X = X @ self.preparation.components.T + self.preparation.mean
        return X if self.transformation is None else self.transformation.inverse(X)

    def extended(self, X_prepared) -> np.ndarray:
        """Return the functions at new, prepared samples, (n_new, n_functions), after Nyström.

        The mean of a function over a step of the walk is the function times its eigenvalue.
        """
        return self.extended_by(*self.steps_from(X_prepared))

    def steps_from(self, X_prepared) -> tuple[sp.csr_array | np.ndarray, np.ndarray]:
        """Return the weights of steps from new samples, (n_new, n_distinct), not normalised.

        Also the distinct sample on which an outlier is put; -1 for all others.
        """
        affinity, graph = self.affinity, self.graph
        nearest = np.full(X_prepared.shape[0], -1)
        if isinstance(affinity.kernel, np.ndarray):
            # A full kernel knows no outliers.
            squared = pairwise_distances(X_prepared, self.distinct_points, metric="sqeuclidean")
            weights = np.exp(squared / -affinity.bandwidth.value) * affinity.pull
        else:
            distances = graph.distances_to(X_prepared)
            kernel = kernel_rows(distances, affinity)
            weights = sp.csr_array(kernel @ sp.diags_array(affinity.pull))
            if graph.outliers.any():
                of_outliers = graph.distances_to(self.samples[graph.outliers])
                # Explicit: what is not stored is not a neighbour, rather than one at distance 0.
                limit = of_outliers.min(axis=1, explicit=True).toarray().max()
                alone = kernel.sum(axis=1) < LEAST_COMPANY
                # Those farther off than the fit's outliers are refused.
                alone &= distances.min(axis=1, explicit=True).toarray().ravel() <= limit
                nearest[alone] = distances[alone].argmin(axis=1, explicit=True)
        reached = weights.sum(axis=1) > 0
        far = np.flatnonzero(~(reached | (nearest >= 0)))
        if len(far):
            raise ValueError(
                f"new samples must lie near the training samples; {len(far)} of {len(reached)} "
                f"have none within reach of the bandwidth {affinity.bandwidth.value:.3g}, the "
                f"first in row {far[0]}. Check that they are in the same units, or leave them out."
            )
        return weights, nearest

    def extended_by(self, weights: sp.csr_array | np.ndarray, nearest: np.ndarray) -> np.ndarray:
        """Return the functions at new samples, given what `steps_from` returns."""
        spectrum = self.distinct if self.basis is None else self.basis.spectrum
        outlier = nearest >= 0
        reach = weights.sum(axis=1)
        mean = (weights @ spectrum.functions) / np.where(reach > 0, reach, 1)[:, None]
        values = mean * np.exp(spectrum.step * spectrum.eigenvalues)
        # As in the fit, an outlier lies where its nearest neighbour lies.
        values[outlier] = spectrum.functions[nearest[outlier]]
        return values if self.basis is None else values @ self.basis.coefficients

    def grown(self, rng: np.random.Generator) -> "Operator | None":
        """Return the same with twice as many functions; None if there cannot be more."""
        if self.settings.n_functions != "auto":
            return None
        count = len(self.distinct.eigenvalues)
        more = min(2 * count, MOST_FUNCTIONS, len(self.graph.distinct) // SAMPLES_PER_FUNCTION)
        if more <= count or not self._affordable(more):
            return None
        parts = tuple(part.with_functions(more, rng=rng) for part in self.parts)
        spectrum = laplacian_spectrum(
            self.affinity, more, solver=self.settings.solver, start=next(iter(parts), None), rng=rng
        )
        if len(spectrum.eigenvalues) <= count:
            return None
        return replace(self, distinct=spectrum, parts=parts, warned=spectrum.warned)

    def _affordable(self, n_functions: int) -> bool:
        """Return whether this number of functions fits into memory; log a warning where not."""
        if isinstance(self.affinity.kernel, ResidentMatrix):
            return True  # the forecast is of the host's memory, not of the device's
        n_columns = 0 if self.points is None else self.samples.shape[1]
        n_samples, n_neighbors = len(self.graph.distinct), self.n_neighbors
        cost = forecast(n_samples, n_columns, n_neighbors=n_neighbors, n_functions=n_functions)
        # The forecast is of the whole fit, a part of which is in memory by now.
        if cost.memory <= available_memory() + held_memory():
            return True
        message = (
            "%d functions would help and were not computed: they need %s, which does not fit into "
            "memory"
        )
        log.warning(message, n_functions, cost)
        return False

    def settled(self) -> "Operator":
        """Return the same with everything in the host's memory."""
        return settled(self)

    def searchable(self, n_jobs: int | None) -> "Operator":
        """Return the same with a neighbour search, which archives do not hold."""
        graph = self.graph.with_search(self.samples, n_jobs, self.metric)
        return replace(self, graph=graph)
