"""Neighbour distances to the kernel's bandwidth and the data's intrinsic dimension."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import gammainc, gammaln

from manifactor._support.arithmetic import quotient
from manifactor._support.choices import Choice, given
from manifactor.spectral.copies import row_of
from manifactor.spectral.resident import ResidentMatrix


@dataclass(frozen=True)
class BandwidthSettings:
    """Settings of `choose_bandwidth` and of local bandwidths."""

    # Samples, evenly spread, whose distances draw the curve: the cost does not grow with the number
    # of samples.
    curve_samples: int = 2000

    # Candidates for the bandwidth: powers of 2 times the median squared distance, from the lowest
    # to the highest exponent.
    lowest_octave: float = -10.0
    highest_octave: float = 4.0
    octave_step: float = 0.125

    # Bins for each factor of 2 in the squared distances that draw the curve.
    bins_per_octave: int = 64

    # A sample's own scale is its distance to this neighbour.
    scale_neighbor: int = 8

    # Share of the samples whose own scale lies within the bandwidth.
    reached_share: float = 0.95

    # Squares of smaller distances, and eigenvalues in units of them, lose digits.
    least_distance: float = 1e-152

    @property
    def octaves(self) -> np.ndarray:
        """Exponents of the candidates, ascending."""
        # The end is included; a hundredth beyond it makes up for rounding.
        return np.arange(self.lowest_octave, self.highest_octave + 0.01, self.octave_step)


@dataclass(frozen=True)
class Bandwidth:
    """Bandwidth eps of exp(-d^2/eps), intrinsic dimension, and the curve of both.

    S(eps) is the sum of the kernel over all pairs. For samples of a d-dimensional manifold its
    slope on log-log axes tends to d/2, so the steepest point is where the kernel sees the manifold
    best (Coifman et al., 2008). Uneven sampling puts that point at the scale of the densest part,
    so the bandwidth also has to reach the neighbours of all but a few samples: too small a
    bandwidth is the one fatal choice.
    """

    choice: Choice  # the bandwidth eps, in squared units of the data, and the reason for it
    dimension: float  # intrinsic dimension, corrected for the cut at a finite number of neighbours
    candidates: np.ndarray  # (n_candidates,): the curve: slope of log S over log eps
    slopes: np.ndarray  # (n_candidates,): the curve: slope of log S over log eps

    def __repr__(self) -> str:
        return f"Bandwidth({self.value:.4g}, dimension={self.dimension:.2f})"

    @property
    def value(self) -> float:
        """The bandwidth eps."""
        return self.choice.value


def choose_bandwidth(
    distances: sp.csr_array | ResidentMatrix,
    *,
    bandwidth: float | str = "auto",
    order: np.ndarray | None = None,
    settings: BandwidthSettings = BandwidthSettings(),
) -> Bandwidth:
    """Choose the bandwidth and estimate the dimension.

    The bandwidth is at the steepest point of log S(eps), or wider where that would leave samples
    without neighbours.
    """
    n_all = distances.shape[0]
    n = min(n_all, settings.curve_samples)
    rows = np.linspace(0, n_all - 1, n).astype(int)
    if order is not None:
        rows = order[rows]
    distances = rows_of(distances, rows)
    squared = distances.data**2
    _require_squares(distances.data, settings)
    candidates = np.median(squared) * 2.0**settings.octaves
    slopes = kernel_slopes(squared, candidates, n, bins_per_octave=settings.bins_per_octave)
    best = int(np.argmax(slopes))
    dimension = dimension_from_slope(slopes[best], len(squared) / n)
    if isinstance(bandwidth, str):
        choice = _automatic(distances, candidates[best], bandwidth == "local", settings)
    else:
        choice = given(float(bandwidth))
    return Bandwidth(choice, dimension, candidates, slopes)


def _require_squares(distances: np.ndarray, settings: BandwidthSettings) -> None:
    """Refuse distances of neighbours whose squares vanish, beside far outliers."""
    middle = float(np.median(distances))
    if middle < settings.least_distance:
        raise ValueError(
            f"neighbours must lie more than {settings.least_distance:.0e} apart, so "
            f"that squares of distances are not 0; got {middle:.1e} in the median. "
            "Multiply all columns by a common number, and remove samples far from all "
            "others."
        )


def _automatic(
    distances: sp.csr_array, steepest: float, local: bool, settings: BandwidthSettings
) -> Choice:
    """Return the steepest point of the curve, or what reaches enough neighbours."""
    neighbor, share = settings.scale_neighbor, settings.reached_share
    scales = local_scale(distances, neighbor=neighbor)
    reach = np.quantile(scales, share) ** 2
    value = float(max(steepest, reach))
    if local:
        why = f"distances are scaled by those to the {neighbor}th neighbours, as set by the caller"
    elif value > steepest:
        why = (
            "wider than the steepest point of the curve, to reach the "
            f"{neighbor}th neighbour of {share:.0%} of the samples"
        )
    else:
        why = "the steepest point of the curve, where the kernel sees the manifold best"
    return Choice(value, why)


def kernel_slopes(
    squared: np.ndarray,
    candidates: np.ndarray,
    n_samples: int,
    *,
    bins_per_octave: int = BandwidthSettings.bins_per_octave,
) -> np.ndarray:
    """Return the slopes of log S over log eps, (n_candidates,).

    A slope is the mean of d^2/eps under the kernel, every sample being its own neighbour at
    distance 0. Squared distances are counted in narrow bins of their logarithm, whose means stand
    for them.
    """
    # Copies have no logarithm of their distance; any so small one has their weight.
    relative = np.maximum(squared / squared.max(), np.finfo(float).tiny)
    octaves = -np.log2(relative)
    bins = np.floor(octaves * bins_per_octave).astype(int)
    count = np.bincount(bins)
    total = np.bincount(bins, weights=squared)
    filled = count > 0
    count, total = count[filled], total[filled]
    u = total / count / candidates[:, None]
    weight = count * np.exp(-u)
    moment = (u * weight).sum(axis=1)
    return moment / (n_samples + weight.sum(axis=1))


def dimension_from_slope(slope: float, n_neighbors: float) -> float:
    """Return the dimension whose steepest slope is the one measured.

    Without a cut the answer would be twice the slope. With the kernel cut at `n_neighbors`
    neighbours inside a ball, u = r^2/eps at its edge, the two sums over neighbours are incomplete
    gamma functions of u.
    """
    dimensions, weight, moment = _sums_over_balls()
    slopes = moment * n_neighbors / (1 + weight * n_neighbors)
    steepest = slopes.max(axis=1)
    return float(np.interp(slope, steepest, dimensions))


@cache
def _sums_over_balls() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return dimensions, and the means of exp(-u) and u exp(-u) over balls of each.

    The edges of the balls are at several u; the steepest slope lies within them.
    """
    dimensions = np.geomspace(0.25, 64, 120)
    edge = np.geomspace(0.2, 60, 60)
    a = dimensions[:, None] / 2
    # In logarithms: the gamma functions of 64 dimensions overflow beside small edges.
    scale = np.log(a) - a * np.log(edge)
    weight = np.exp(scale + gammaln(a)) * gammainc(a, edge)
    moment = np.exp(scale + gammaln(a + 1)) * gammainc(a + 1, edge)
    return dimensions, weight, moment


def local_scale(
    distances: sp.csr_array, *, neighbor: int = BandwidthSettings.scale_neighbor
) -> np.ndarray:
    """Return the distance of each row's sample to its `neighbor`-th neighbour.

    A sample with fewer neighbours takes its farthest one.
    """
    count = np.diff(distances.indptr)
    if not count.all():
        raise ValueError(
            "each sample must have a neighbour to have a scale of its own; "
            f"{(count == 0).sum()} have none."
        )
    # One sort for all rows: the row, and the distance as a fraction below one half.
    key = row_of(distances) + 0.5 * quotient(distances.data, distances.data.max())
    ordered = distances.data[np.argsort(key)]
    starts = distances.indptr[:-1]
    return ordered[starts + np.minimum(neighbor, count) - 1]


def rescale(
    distances: sp.csr_array, row_scale: np.ndarray, column_scale: np.ndarray
) -> sp.csr_array:
    """Return distances over the geometric mean of both ends' scales.

    They are in units of the columns' median scale, so that a bandwidth keeps its size.
    """
    one_end = row_scale[row_of(distances)]
    other_end = column_scale[distances.indices]
    mean = np.sqrt(one_end * other_end)
    out = distances.copy()
    out.data = distances.data * np.median(column_scale) / mean
    return out


def rows_of(matrix: Any, which: np.ndarray) -> Any:
    """Return some rows of a matrix, on the host."""
    if isinstance(matrix, ResidentMatrix):
        return matrix.take(which)
    return matrix[which]
