"""Where samples lie on a factor: functions freed from the other factors' effects.

On a factor of several dimensions the values of more functions than dimensions are a noisy surface,
a cloud, and samples are pulled onto it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial import KDTree

from manifactor._support.threads import cores, map_panels
from manifactor._support.values import ceil_div, quotient
from manifactor.operators.laplacian import Spectrum
from manifactor.statistics import random_rows

# Floor of the conditional variance, relative to its mean: where a fit of the variance comes near 0,
# places would be thrown far off.
LEAST_SPREAD = 0.15
# Neighbourhoods that the median of a size or a dimension is taken over.
N_BALLS = 300


def in_panels(work: Callable[[np.ndarray], np.ndarray], values: np.ndarray) -> np.ndarray:
    """Return what `work` makes of each sample, computed on all cores."""
    return np.concatenate(map_panels(lambda rows: work(values[rows]), len(values)))


@dataclass(frozen=True)
class Chart:
    """Functions of one factor as coordinates, independent of the other factors.

    Small errors of pure functions are modulations by the other factors: of the mean, and of the
    spread (a circle whose radius depends on the other factor). Both are regressed on the other
    factors' functions and taken out.
    """

    # (n_spectrum_functions, m): coefficients of the functions that are the coordinates
    functions: np.ndarray
    # (n_spectrum_functions, p): coefficients of the functions of the other factors, the constant
    # first
    others: np.ndarray
    mean: np.ndarray  # (p, m): what the others add to each function
    spread: np.ndarray  # (p, m, m): covariance of the functions as a function of the others
    floor: float  # least variance in any direction

    @property
    def combinations(self) -> np.ndarray:
        """Coefficients, (n_spectrum_functions, m + p), of the functions places are read from."""
        return np.hstack([self.functions, self.others])

    def effective(self) -> "Chart":
        """Return the same without those of the others that change nothing.

        Most coefficients within their errors were shrunk to 0.
        """
        changes = self.mean.any(axis=1) | self.spread.any(axis=(1, 2))
        if changes.all() or not changes.any():
            return self
        return replace(
            self,
            others=self.others[:, changes],
            mean=self.mean[changes],
            spread=self.spread[changes],
        )

    def __call__(self, spectrum_functions: np.ndarray) -> np.ndarray:
        """Return coordinates, (n, m), given the spectrum's functions at samples."""
        coefficients = self.combinations
        # As below, not by BLAS.
        return in_panels(
            lambda functions: self._at(np.einsum("xf,fp->xp", functions, coefficients)),
            spectrum_functions,
        )

    def read(self, values: np.ndarray) -> np.ndarray:
        """Return coordinates, (n, m), given the values of `combinations` at samples."""
        return in_panels(self._at, values)

    def _at(self, values: np.ndarray) -> np.ndarray:
        """Coordinates without the others' effects, given values of `combinations`."""
        functions, others = np.split(values, [self.functions.shape[1]], axis=1)
        if not others.shape[1]:
            return functions
        # Whitened and turned back, so that coordinates keep their directions. Not by BLAS, whose
        # last bit depends on how many samples there are.
        centred = functions - np.einsum("xp,pa->xa", others, self.mean)
        spread = np.einsum("xp,pab->xab", others, self.spread)
        if spread.shape[1] == 2:
            return _whitened_pairs(centred, spread, self.floor)
        variance, axes = np.linalg.eigh(spread)
        deviation = np.sqrt(np.maximum(variance, self.floor))
        scaled = np.einsum("xab,xa->xb", axes, centred) / deviation
        return np.einsum("xab,xb->xa", axes, scaled)

    def modulation(self, spectrum: Spectrum, samples: int) -> float:
        """Return how much the other factors change the functions' covariance.

        At each sample it is the largest deviation of the variance in any direction from its mean,
        as a share of the mean. The root mean square over at most `samples` samples is returned.
        """
        if not self.others.shape[1]:
            return 0.0
        thin = random_rows(len(spectrum.weights), samples)
        weights = spectrum.weights[thin] / spectrum.weights[thin].sum()
        others = spectrum.functions[thin] @ self.others
        spread = np.einsum("xp,pab->xab", others, self.spread, optimize=True)
        mean = np.einsum("x,xab->ab", weights, spread)
        # Where one factor turns the functions of another, as on a Moebius band, their variances are
        # exchanged and the sum of them stays the same.
        variance, axes = np.linalg.eigh(mean)
        scaled = axes / np.sqrt(np.maximum(variance, np.finfo(float).tiny))
        relative = scaled.T @ spread @ scaled
        deviation = np.abs(np.linalg.eigvalsh(relative) - 1).max(axis=1)
        return float(np.sqrt(weights @ deviation**2))


def _whitened_pairs(centred: np.ndarray, spread: np.ndarray, floor: float) -> np.ndarray:
    """Pairs of values, (n, 2), times the inverse roots of their covariances."""
    first, second, across = spread[:, 0, 0], spread[:, 1, 1], spread[:, 0, 1]
    mean = (first + second) / 2
    half = (first - second) / 2
    length = np.sqrt(half**2 + across**2)
    low = 1 / np.sqrt(np.maximum(mean - length, floor))
    high = 1 / np.sqrt(np.maximum(mean + length, floor))
    level = (high + low) / 2
    slope = quotient(high - low, 2 * length)
    x, y = centred.T
    first = level * x + slope * (half * x + across * y)
    second = level * y + slope * (across * x - half * y)
    return np.column_stack([first, second])


def make_chart(
    spectrum: Spectrum,
    functions: np.ndarray,
    others: np.ndarray,
    *,
    least_spread: float = LEAST_SPREAD,
) -> tuple[Chart, np.ndarray]:
    """Return the chart of functions freed from others, and the samples' places on it.

    Shapes: functions (n_spectrum_functions, m), others (n_spectrum_functions, p) -> places
    (n_samples, m).
    """
    m = functions.shape[1]
    if not others.shape[1]:
        plain = Chart(functions, others, np.empty((0, m)), np.empty((0, m, m)), floor=0.0)
        return plain, spectrum.combined(functions)
    # The constant stands for the mean over all samples.
    constant = np.zeros((len(others), 1))
    constant[0] = 1.0
    others = np.hstack([constant, others])
    both = spectrum.combined(np.hstack([functions, others]))
    weights, basis = spectrum.weights, both[:, m:]
    mean = _shrunk_regression(basis, lambda rows: both[rows, :m], weights)

    def squares(rows: slice) -> np.ndarray:
        centred = both[rows, :m] - basis[rows] @ mean
        products = centred[:, :, None] * centred[:, None]
        return products.reshape(len(centred), -1)

    spread = _shrunk_regression(basis, squares, weights).reshape(-1, m, m)
    average = np.trace(np.tensordot(weights @ basis, spread, axes=1)) / m
    chart = Chart(functions, others, mean, spread, floor=float(least_spread * average))
    return chart, chart.read(both)


def _shrunk_regression(
    basis: np.ndarray, values: Callable[[slice], np.ndarray], weights: np.ndarray
) -> np.ndarray:
    """Weighted least squares; coefficients within their errors are shrunk to 0."""

    def products(rows: slice) -> tuple[np.ndarray, np.ndarray]:
        weighted = weights[rows, None] * basis[rows]
        return weighted.T @ basis[rows], weighted.T @ values(rows)

    def variances(rows: slice) -> np.ndarray:
        rest = values(rows) - basis[rows] @ coefficients
        return weights[rows] ** 2 @ rest**2

    gram, joint = map(sum, zip(*map_panels(products, len(basis)), strict=True))
    inverse = np.linalg.pinv(gram)
    coefficients = inverse @ joint
    variance = sum(map_panels(variances, len(basis)))
    error = np.sqrt(np.diag(inverse)[:, None] * variance)
    # A coefficient must stand out by 3 standard errors. With 5 the thin side of 1:5 strips leaks
    # (R^2 .05 instead of 0 at 3,000 samples).
    doubt = np.minimum(1, quotient(3.0 * error, np.abs(coefficients)))
    shrink = 1 - doubt**2
    # The mean over all samples is not a correction.
    shrink[0] = 1.0
    return coefficients * shrink


@dataclass(frozen=True)
class Cloud:
    """Places of some samples, from which a surface is read that others are pulled onto."""

    # (n_places, m): the cloud, and what is left of it after each pull but the last
    stages: tuple[np.ndarray, ...]
    dimension: int
    n_neighbors: int  # places that a local plane is laid through

    def pull(self, places: np.ndarray) -> np.ndarray:
        """Return places moved into the cloud's local planes, (n, m)."""
        stages = self.stages
        if np.array_equal(places, stages[0]):
            # The cloud itself was pulled when it was made.
            places, stages = stages[-1], stages[-1:]
        for stage in stages:
            places = _flattened(places, stage, self.dimension, self.n_neighbors)
        return places


def make_cloud(places: np.ndarray, dimension: int) -> Cloud:
    """Return the cloud of places, (n, m), thinned where there are many."""
    # Stages are kept, so that new samples are pulled exactly as those of the fit. Each of the three
    # pulls sees a thinner cloud.
    stages = [places[random_rows(len(places), 4000)]]
    k = ball_size(stages[0])
    for _ in range(2):
        stages.append(_flattened(stages[-1], stages[-1], dimension, k))
    return Cloud(tuple(stages), dimension, k)


def _flattened(places: np.ndarray, cloud: np.ndarray, dimension: int, k: int) -> np.ndarray:
    """Places projected onto the local planes through the k nearest of the cloud."""
    tree, flattened = KDTree(cloud), []
    # So many neighbours are in memory at a time; their number steers no result.
    for block in np.array_split(places, max(1, ceil_div(len(places) * k, 2**20))):
        around = cloud[tree.query(block, k, workers=cores())[1]]
        centre = around.mean(axis=1)
        around = around - centre[:, None]
        plane = np.linalg.eigh(around.transpose(0, 2, 1) @ around)[1][:, :, -dimension:]
        inside = np.einsum("xad,xa->xd", plane, block - centre)
        flattened.append(centre + np.einsum("xad,xd->xa", plane, inside))
    return np.vstack(flattened)


def ball_size(cloud: np.ndarray) -> int:
    """Return the number of samples in a ball of .3 of the cloud's radius.

    The median over the cloud, within bounds. Such a ball is wide enough to average noise, and small
    enough for a surface to be flat in it.
    """
    n = len(cloud)
    radius = 0.3 * np.sqrt(cloud.var(axis=0).sum())
    centres = cloud[random_rows(n, N_BALLS)]
    inside = KDTree(cloud).query_ball_point(centres, radius, return_length=True)
    # At least as many as a plane is read from; at most a twelfth of the cloud, but never fewer than
    # 30.
    return int(np.clip(np.median(inside), min(20, n), max(min(30, n), n // 12)))


def cloud_dimension(cloud: np.ndarray) -> int:
    """Return the number of directions in which a ball of the cloud extends.

    Those with a tenth of the variance of a ball of .3 of the cloud's radius or more.
    """
    if cloud.shape[1] == 1:
        return 1
    centres = cloud[random_rows(len(cloud), N_BALLS)]
    near = KDTree(cloud).query(centres, ball_size(cloud))[1]
    around = cloud[near] - cloud[near].mean(axis=1, keepdims=True)
    spread = np.linalg.eigvalsh(around.transpose(0, 2, 1) @ around)
    total = spread.sum(axis=1, keepdims=True)
    # A ball of copies has no extent at all.
    share = np.median(spread / np.where(total > 0, total, 1), axis=0)
    return max(1, int((share > 0.1).sum()))
