"""Where a sample lies on a factor: a few of its functions, freed from what the other factors do to them."""

from dataclasses import dataclass

import numpy as np
from scipy.spatial import KDTree

from manifactor._support.threads import in_panels
from manifactor.spectral.spectrum import Spectrum

CERTAIN = (
    3.0  # standard errors that a coefficient must stand out by to be corrected for
)
LEAST_SPREAD = 0.15  # of the mean: floor of the conditional spread
BALL = 0.3  # radius of a neighbourhood, of the cloud's own
BALLS = 300  # neighbourhoods that are looked at
PULLS = 3
CLOUD = 4000  # places that a surface is read from
BLOCK = 2**20  # neighbours looked up at a time


@dataclass(frozen=True)
class Chart:
    """Functions of one factor as coordinates, with mean and spread made independent of the other factors.

    Small errors of pure functions are modulations by the other factors: of the mean, and of the spread (a circle whose
    radius depends on the other factor). Both are regressed on the other factors' functions and taken out.

    Attributes
    ----------
    functions : ndarray of shape (n_spectrum_functions, m)
        Coefficients of the functions that are the coordinates.
    others : ndarray of shape (n_spectrum_functions, p)
        Coefficients of the functions of the other factors, the constant first.
    mean : ndarray of shape (p, m)
        What the others add to each function.
    spread : ndarray of shape (p, m, m)
        Covariance of the functions as a function of the others.
    floor : float
        Least variance in any direction.
    """

    functions: np.ndarray
    others: np.ndarray
    mean: np.ndarray
    spread: np.ndarray
    floor: float

    @property
    def combinations(self) -> np.ndarray:
        """Coefficients of all functions that a place is read from, (n_spectrum_functions, m + p)."""
        return np.hstack([self.functions, self.others])

    def __call__(self, spectrum_functions: np.ndarray) -> np.ndarray:
        """Coordinates of samples, given the spectrum's functions at them, (n, m)."""
        coefficients = self.combinations
        panels = in_panels(
            lambda rows: self._at(spectrum_functions[rows] @ coefficients),
            len(spectrum_functions),
        )
        return np.concatenate(panels)

    def read(self, values: np.ndarray) -> np.ndarray:
        """Coordinates of samples, given the values of `combinations` at them, (n, m)."""
        return np.concatenate(
            in_panels(lambda rows: self._at(values[rows]), len(values))
        )

    def _at(self, values: np.ndarray) -> np.ndarray:
        functions, others = np.split(values, [self.functions.shape[1]], axis=1)
        if not others.shape[1]:
            return functions
        centred = functions - others @ self.mean
        variance, axes = _axes(
            np.einsum("xp,pab->xab", others, self.spread, optimize=True)
        )
        scaled = np.einsum("xab,xa->xb", axes, centred) / np.sqrt(
            np.maximum(variance, self.floor)
        )
        return np.einsum("xab,xb->xa", axes, scaled)

    def modulation(self, spectrum: Spectrum) -> float:
        """How much the other factors change the functions' variance: its standard deviation over its mean."""
        if not self.others.shape[1]:
            return 0.0
        variance = spectrum.combined(
            self.others @ np.trace(self.spread, axis1=1, axis2=2)[:, None]
        )
        return float(variance.std() / variance.mean())


def _axes(spread: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and eigenvectors of symmetric matrices, (n, m, m); those of two rows by an angle, which is fast."""
    if spread.shape[1] != 2:
        return np.linalg.eigh(spread)
    mean, half = (
        (spread[:, 0, 0] + spread[:, 1, 1]) / 2,
        (spread[:, 0, 0] - spread[:, 1, 1]) / 2,
    )
    length, angle = (
        np.hypot(half, spread[:, 0, 1]),
        np.arctan2(spread[:, 0, 1], half) / 2,
    )
    cosine, sine = np.cos(angle), np.sin(angle)
    axes = np.stack(
        [np.stack([-sine, cosine], axis=1), np.stack([cosine, sine], axis=1)], axis=2
    )
    return np.stack([mean - length, mean + length], axis=1), axes


def plain_chart(coefficients: np.ndarray) -> Chart:
    """The functions as they are."""
    size, m = coefficients.shape
    return Chart(
        coefficients, np.empty((size, 0)), np.empty((0, m)), np.empty((0, m, m)), 0.0
    )


def make_chart(
    spectrum: Spectrum, functions: np.ndarray, others: np.ndarray
) -> tuple[Chart, np.ndarray]:
    """The chart of functions, (n_spectrum_functions, m), freed from others, (n_spectrum_functions, p), and the places.

    The places are those of the samples, (n_samples, m).
    """
    if not others.shape[1]:
        return plain_chart(functions), spectrum.combined(functions)
    constant = np.zeros((len(others), 1))
    constant[0] = 1.0
    others = np.hstack([constant, others])
    both = spectrum.combined(np.hstack([functions, others]))
    m = functions.shape[1]
    values, basis = both[:, :m], both[:, m:]
    mean = _shrunk_regression(basis, values, spectrum.weights)
    centred = values - basis @ mean
    squares = (centred[:, :, None] * centred[:, None]).reshape(len(centred), -1)
    spread = _shrunk_regression(basis, squares, spectrum.weights).reshape(-1, m, m)
    average = np.trace(np.tensordot(spectrum.weights @ basis, spread, axes=1)) / m
    chart = Chart(functions, others, mean, spread, float(LEAST_SPREAD * average))
    return chart, chart.read(both)


def _shrunk_regression(
    basis: np.ndarray, values: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Weighted least squares with coefficients shrunk to 0 where they do not stand out of their errors.

    Unshrunk, a correction adds as much error as it removes where a function is flat, at an interval's ends.
    """
    weighted = weights[:, None] * basis
    inverse = np.linalg.pinv(weighted.T @ basis)
    coefficients = inverse @ (weighted.T @ values)
    variance = weights**2 @ (values - basis @ coefficients) ** 2
    error = np.sqrt(np.diag(inverse)[:, None] * variance)
    shrink = np.maximum(
        0, 1 - (CERTAIN * error / np.maximum(np.abs(coefficients), 1e-300)) ** 2
    )
    shrink[0] = 1.0
    return coefficients * shrink


@dataclass(frozen=True)
class Cloud:
    """Places of some samples, from which a surface is read that others are pulled onto.

    Attributes
    ----------
    stages : tuple of ndarray of shape (n_places, m)
        The cloud, and what is left of it after each pull but the last.
    dimension : int
    n_neighbors : int
        Places that a local plane is laid through.
    """

    stages: tuple[np.ndarray, ...]
    dimension: int
    n_neighbors: int

    def pull(self, places: np.ndarray) -> np.ndarray:
        """Places moved into the cloud's local planes, (n, m)."""
        for stage in self.stages:
            places = _flattened(places, stage, self.dimension, self.n_neighbors)
        return places


def make_cloud(places: np.ndarray, dimension: int) -> Cloud:
    """The cloud of these places, thinned evenly where there are many."""
    stages = [places[:: -(-len(places) // CLOUD)]]
    k = ball_size(stages[0])
    for _ in range(PULLS - 1):
        stages.append(_flattened(stages[-1], stages[-1], dimension, k))
    return Cloud(tuple(stages), dimension, k)


def _flattened(
    places: np.ndarray, cloud: np.ndarray, dimension: int, k: int
) -> np.ndarray:
    """Places projected onto the local plane through the k nearest of the cloud, a block at a time."""
    tree = KDTree(cloud)
    blocks = np.array_split(places, -(-len(places) * k // BLOCK) or 1)
    return np.vstack(
        [
            _projected(b, cloud[tree.query(b, k, workers=-1)[1]], dimension)
            for b in blocks
        ]
    )


def _projected(places: np.ndarray, around: np.ndarray, dimension: int) -> np.ndarray:
    centre = around.mean(axis=1)
    around = around - centre[:, None]
    plane = np.linalg.eigh(around.transpose(0, 2, 1) @ around)[1][:, :, -dimension:]
    inside = np.einsum("xad,xa->xd", plane, places - centre)
    return centre + np.einsum("xad,xd->xa", plane, inside)


def ball_size(cloud: np.ndarray) -> int:
    """Samples in a ball of `BALL` of the cloud's radius, the median over the cloud."""
    radius = BALL * np.sqrt(cloud.var(axis=0).sum())
    centres = cloud[:: -(-len(cloud) // BALLS)]
    inside = KDTree(cloud).query_ball_point(centres, radius, return_length=True)
    n = len(cloud)
    return int(np.clip(np.median(inside), min(20, n), max(min(30, n), n // 12)))


def cloud_dimension(cloud: np.ndarray) -> int:
    """Directions in which a ball of .3 of the cloud's radius extends: those with a tenth of its variance or more."""
    if cloud.shape[1] == 1:
        return 1
    centres = cloud[:: -(-len(cloud) // BALLS)]
    near = KDTree(cloud).query(centres, ball_size(cloud))[1]
    around = cloud[near] - cloud[near].mean(axis=1, keepdims=True)
    spread = np.linalg.eigvalsh(around.transpose(0, 2, 1) @ around)
    total = spread.sum(axis=1, keepdims=True)
    return max(
        1, int((np.median(spread / np.where(total > 0, total, 1), axis=0) > 0.1).sum())
    )
