"""Where a sample lies on a factor: functions freed from the other factors' effects."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial import KDTree

from manifactor._support.threads import cores, map_panels
from manifactor._support.values import ceil_div, quotient
from manifactor.factoring.prediction import thinned
from manifactor.spectral.spectrum import Spectrum


@dataclass(frozen=True)
class ChartSettings:
    """Settings of `make_chart`, `make_cloud` and `cloud_dimension`."""

    # Standard errors that a coefficient must stand out by to be corrected for. With 5 the thin side
    # of 1:5 strips leaks (R^2 .05 instead of 0 at 3,000 samples).
    certain: float = 3.0
    # Floor of the conditional variance, relative to its mean: where a fit of the variance comes
    # near 0, places would be thrown far off.
    least_spread: float = 0.15
    # Radius of a neighbourhood, relative to the cloud's: wide enough to average noise, and small
    # enough for a surface to be flat in it.
    ball_radius: float = 0.3
    # Neighbourhoods whose size or dimension the median is taken of.
    balls: int = 300
    # Bounds of the samples in a neighbourhood: the least from which a plane is read, and a twelfth
    # of the cloud, but never fewer than 30.
    least_in_ball: int = 20
    most_in_ball: int = 30
    clouds_per_ball: int = 12
    # A ball extends in a direction that has at least this share of its variance.
    extent: float = 0.1
    # Projections onto the local planes, each of which sees a thinner cloud.
    pulls: int = 3
    # Places that a surface is read from.
    cloud_places: int = 4000


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
        """Coefficients of all functions that a place is read from.

        Shape (n_spectrum_functions, m + p).
        """
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

        def at(rows: slice) -> np.ndarray:
            # As below, not by BLAS.
            functions = spectrum_functions[rows]
            return self._at(np.einsum("xf,fp->xp", functions, coefficients))

        return np.concatenate(map_panels(at, len(spectrum_functions)))

    def read(self, values: np.ndarray) -> np.ndarray:
        """Return coordinates, (n, m), given the values of `combinations` at samples."""
        panels = map_panels(lambda rows: self._at(values[rows]), len(values))
        return np.concatenate(panels)

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
        thin = thinned(len(spectrum.weights), samples)
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
    """Pairs of values, (n, 2), times the inverse roots of their covariances.

    A function of a symmetric matrix of two rows is a combination of the matrix and the identity:
    much faster than eigenvectors of many small matrices.
    """
    first, second, across = spread[:, 0, 0], spread[:, 1, 1], spread[:, 0, 1]
    mean = (first + second) / 2
    half = (first - second) / 2
    length = np.sqrt(half**2 + across**2)
    low = 1 / np.sqrt(np.maximum(mean - length, floor))
    high = 1 / np.sqrt(np.maximum(mean + length, floor))
    level = (high + low) / 2
    slope = quotient(high - low, 2 * length)
    x, y = centred.T
    whitened = np.empty_like(centred)
    whitened[:, 0] = level * x + slope * (half * x + across * y)
    whitened[:, 1] = level * y + slope * (across * x - half * y)
    return whitened


def plain_chart(coefficients: np.ndarray) -> Chart:
    """Return the chart that leaves the functions as they are."""
    size, m = coefficients.shape
    return Chart(
        functions=coefficients,
        others=np.empty((size, 0)),
        mean=np.empty((0, m)),
        spread=np.empty((0, m, m)),
        floor=0.0,
    )


def make_chart(
    spectrum: Spectrum,
    functions: np.ndarray,
    others: np.ndarray,
    *,
    settings: ChartSettings = ChartSettings(),
) -> tuple[Chart, np.ndarray]:
    """Return the chart of functions freed from others, and the samples' places on it.

    Shapes: functions (n_spectrum_functions, m), others (n_spectrum_functions, p) -> places
    (n_samples, m).
    """
    if not others.shape[1]:
        return plain_chart(functions), spectrum.combined(functions)
    # The constant stands for the mean over all samples.
    constant = np.zeros((len(others), 1))
    constant[0] = 1.0
    others = np.hstack([constant, others])
    both = spectrum.combined(np.hstack([functions, others]))
    m = functions.shape[1]
    weights, certain = spectrum.weights, settings.certain

    def values(rows: slice) -> np.ndarray:
        return both[rows, :m]

    basis = both[:, m:]
    mean = _shrunk_regression(basis, values, weights, certain)

    def squares(rows: slice) -> np.ndarray:
        centred = both[rows, :m] - basis[rows] @ mean
        products = centred[:, :, None] * centred[:, None]
        return products.reshape(len(centred), -1)

    spread = _shrunk_regression(basis, squares, weights, certain).reshape(-1, m, m)
    average = np.trace(np.tensordot(weights @ basis, spread, axes=1)) / m
    floor = float(settings.least_spread * average)
    chart = Chart(functions, others, mean, spread, floor)
    return chart, chart.read(both)


def _shrunk_regression(
    basis: np.ndarray, values: Callable[[slice], np.ndarray], weights: np.ndarray, certain: float
) -> np.ndarray:
    """Weighted least squares; coefficients within their errors are shrunk to 0.

    Unshrunk, a correction adds as much error as it removes where a function is flat, at an
    interval's ends. `values` returns those of some samples, so that they are never all in memory.
    """

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
    doubt = np.minimum(1, quotient(certain * error, np.abs(coefficients)))
    shrink = 1 - doubt**2
    # The mean over all samples is no correction.
    shrink[0] = 1.0
    return coefficients * shrink


# Clouds of places on a factor of several dimensions, and the surfaces they show.

# Numbers of the neighbours' places in memory at a time; it steers no result.
NEIGHBORS_AT_ONCE = 2**20


@dataclass(frozen=True)
class Cloud:
    """Places of some samples, from which a surface is read that others are pulled onto."""

    # (n_places, m): the cloud, and what is left of it after each pull but the last
    stages: tuple[np.ndarray, ...]
    dimension: int
    n_neighbors: int  # places that a local plane is laid through

    def pull(self, places: np.ndarray) -> np.ndarray:
        """Return places moved into the cloud's local planes, (n, m)."""
        for stage in self.stages:
            places = _flattened(places, stage, self.dimension, self.n_neighbors)
        return places


def make_cloud(
    places: np.ndarray, dimension: int, *, settings: ChartSettings = ChartSettings()
) -> Cloud:
    """Return the cloud of places, (n, m), thinned where there are many."""
    # Stages are kept, so that new samples are pulled exactly as those of the fit.
    stages = [places[thinned(len(places), settings.cloud_places)]]
    k = ball_size(stages[0], settings=settings)
    for _ in range(settings.pulls - 1):
        stages.append(_flattened(stages[-1], stages[-1], dimension, k))
    return Cloud(tuple(stages), dimension, k)


def _flattened(places: np.ndarray, cloud: np.ndarray, dimension: int, k: int) -> np.ndarray:
    """Places projected onto the local planes through the k nearest of the cloud."""
    tree = KDTree(cloud)
    n_blocks = max(1, ceil_div(len(places) * k, NEIGHBORS_AT_ONCE))
    flattened = []
    for block in np.array_split(places, n_blocks):
        nearest = tree.query(block, k, workers=cores())[1]
        flattened.append(_projected(block, cloud[nearest], dimension))
    return np.vstack(flattened)


def _projected(places: np.ndarray, around: np.ndarray, dimension: int) -> np.ndarray:
    """Places projected onto the main plane of the places around each."""
    centre = around.mean(axis=1)
    around = around - centre[:, None]
    plane = np.linalg.eigh(around.transpose(0, 2, 1) @ around)[1][:, :, -dimension:]
    inside = np.einsum("xad,xa->xd", plane, places - centre)
    return centre + np.einsum("xad,xd->xa", plane, inside)


def ball_size(cloud: np.ndarray, *, settings: ChartSettings = ChartSettings()) -> int:
    """Return the number of samples in a ball of .3 of the cloud's radius.

    The median over the cloud, within bounds.
    """
    n = len(cloud)
    radius = settings.ball_radius * np.sqrt(cloud.var(axis=0).sum())
    centres = cloud[thinned(n, settings.balls)]
    inside = KDTree(cloud).query_ball_point(centres, radius, return_length=True)
    least = min(settings.least_in_ball, n)
    most = max(min(settings.most_in_ball, n), n // settings.clouds_per_ball)
    return int(np.clip(np.median(inside), least, most))


def cloud_dimension(cloud: np.ndarray, *, settings: ChartSettings = ChartSettings()) -> int:
    """Return the number of directions in which a ball of the cloud extends.

    Those with a tenth of the variance of a ball of .3 of the cloud's radius or more.
    """
    if cloud.shape[1] == 1:
        return 1
    centres = cloud[thinned(len(cloud), settings.balls)]
    near = KDTree(cloud).query(centres, ball_size(cloud, settings=settings))[1]
    around = cloud[near] - cloud[near].mean(axis=1, keepdims=True)
    spread = np.linalg.eigvalsh(around.transpose(0, 2, 1) @ around)
    total = spread.sum(axis=1, keepdims=True)
    # A ball of copies has no extent at all.
    share = np.median(spread / np.where(total > 0, total, 1), axis=0)
    return max(1, int((share > settings.extent).sum()))
