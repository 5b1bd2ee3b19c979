"""The functions of a spectrum at new samples, by one step of the walk (Nyström)."""

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import pairwise_distances

from manifactor.spectral.kernel import Affinity, KernelSettings, kernel_rows
from manifactor.spectral.neighbors import NeighborGraph
from manifactor.spectral.outliers import OutlierSettings
from manifactor.spectral.spectrum import Spectrum


@dataclass(frozen=True)
class ExtensionSettings:
    """Settings of `extend`: those that the fit was made with."""

    kernel: KernelSettings = field(default_factory=KernelSettings)
    outliers: OutlierSettings = field(default_factory=OutlierSettings)


@dataclass(frozen=True)
class _Steps:
    """One step of the walk from each new sample."""

    # (n_new, n_distinct): weights of the steps to the distinct samples, not normalised
    weights: sp.csr_array | np.ndarray
    # (n_new,): the distinct sample on which an outlier is put; -1 for all others
    nearest: np.ndarray


def extend(
    X,
    spectrum: Spectrum,
    affinity: Affinity,
    graph: NeighborGraph,
    samples: np.ndarray | None,
    *,
    settings: ExtensionSettings = ExtensionSettings(),
) -> np.ndarray:
    """Return the functions at new samples, (n_new, n_functions).

    One step of the walk multiplies a function by its eigenvalue, so the mean over a step from a new
    sample, over the eigenvalue, is the function there.

    Shapes: X (n_new, n_features), samples (n_samples, n_features).
    """
    if isinstance(affinity.kernel, np.ndarray):
        steps = _dense_steps(X, affinity, samples[graph.distinct])  # type: ignore[index]
    else:
        steps = _sparse_steps(X, affinity, graph, samples, settings)
    outlier = steps.nearest >= 0
    reach = steps.weights.sum(axis=1)
    reached = reach > 0
    _require_reached(reached | outlier, affinity.bandwidth.value)
    functions = spectrum.functions
    total = np.where(reached, reach, 1)
    mean = (steps.weights @ functions) / total[:, None]
    values = mean * np.exp(spectrum.step * spectrum.eigenvalues)
    # As in the fit, an outlier lies where its nearest neighbour lies.
    values[outlier] = functions[steps.nearest[outlier]]
    return values


def _dense_steps(X, affinity: Affinity, known: np.ndarray) -> _Steps:
    """Return steps of the full kernel, which knows no outliers."""
    squared = pairwise_distances(X, known, metric="sqeuclidean")
    weights = np.exp(squared / -affinity.bandwidth.value) * affinity.pull
    return _Steps(weights, np.full(len(weights), -1))


def _sparse_steps(
    X,
    affinity: Affinity,
    graph: NeighborGraph,
    samples: np.ndarray | None,
    settings: ExtensionSettings,
) -> _Steps:
    """Return steps to the neighbours."""
    distances = graph.distances_to(X)
    kernel = kernel_rows(distances, affinity, settings=settings.kernel)
    weights = sp.csr_array(kernel @ sp.diags_array(affinity.pull))
    nearest = np.full(kernel.shape[0], -1)
    if samples is not None and graph.outliers.any():
        alone = kernel.sum(axis=1) < settings.outliers.least_company
        alone &= _within_outliers(distances, graph, samples)
        rows = np.flatnonzero(alone)
        nearest[rows] = [_nearest(distances, row) for row in rows]
    return _Steps(weights, nearest)


def _within_outliers(
    distances: sp.csr_array, graph: NeighborGraph, samples: np.ndarray
) -> np.ndarray:
    """Return which new samples lie no farther off than the fit's outliers, (n_new,)."""
    of_outliers = graph.distances_to(samples[graph.outliers])
    # Explicit: what is not stored is no distance of 0, but no neighbour.
    limit = of_outliers.min(axis=1, explicit=True).toarray().max()
    nearest = distances.min(axis=1, explicit=True)
    return nearest.toarray().ravel() <= limit


def _nearest(distances: sp.csr_array, row) -> int:
    """Return the column of a row's smallest entry."""
    start, stop = distances.indptr[row : row + 2]
    smallest = distances.data[start:stop].argmin()
    return distances.indices[start + smallest]


def _require_reached(reached: np.ndarray, bandwidth: float) -> None:
    far = np.flatnonzero(~reached)
    if len(far):
        raise ValueError(
            f"new samples must lie near the training samples; {len(far)} of "
            f"{len(reached)} have none within reach of the bandwidth {bandwidth:.3g}, "
            f"the first in row {far[0]}. Check that they are in the same units, or "
            "leave them out."
        )
