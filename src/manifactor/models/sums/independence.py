"""Main directions of samples, and linear parts of them that are independent of each other."""

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform
from sklearn.utils.extmath import randomized_svd

from manifactor._support.values import quotient
from manifactor.statistics import random_rows

# Main directions that are kept at most. The curve of a moving object in an image winds through some
# 30; a distance in more is mostly noise.
MOST_DIRECTIONS = 40
# Main directions that are searched for independent parts: their fourth cumulants number a twelfth
# of the fourth power of this, and every one of them has its noise.
SEARCHED_DIRECTIONS = 12
# Largest cumulant between components of different parts, its noise taken off. It is .25 and more
# between two directions of a ball or sphere of up to three dimensions, .33 of a disk, .5 of a
# circle; .05 and less between independent ones at 3,000 samples. A rectangle whose corner is cut
# off has .13.
MAX_CUMULANT = 0.15


@dataclass(frozen=True)
class Directions:
    """The mean of samples and their principal axes."""

    mean: np.ndarray  # (n_features,)
    axes: np.ndarray  # (n_features, q): orthonormal columns, the one of the largest variance first

    def __call__(self, samples: np.ndarray) -> np.ndarray:
        """Return samples in their main directions, (n, q)."""
        return (samples - self.mean) @ self.axes


def main_directions(samples: np.ndarray, *, rng: np.random.Generator) -> Directions:
    """Return the main directions of samples, (n, n_features)."""
    some = samples[random_rows(len(samples), 3000)]
    # The mean of equal numbers is off by rounding, which those of 1e20 would make the main
    # direction.
    constant = (some == some[0]).all(axis=0)
    mean = np.where(constant, some[0], some.mean(axis=0))
    centred = some - mean
    if centred.shape[1] <= 600:
        variance, axes = principal_axes(centred)
    else:
        count, seed = min(MOST_DIRECTIONS, len(centred)), int(rng.integers(2**31))
        _, strength, rows = randomized_svd(centred, count, random_state=seed)
        variance, axes = strength**2, rows.T
    # A factor thirty times smaller than another has a thousandth of its variance.
    kept = variance[:MOST_DIRECTIONS] > 1e-4 * variance[0]
    return Directions(mean, axes[:, :MOST_DIRECTIONS][:, kept])


def principal_axes(centred: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return sums of squares along the principal axes, descending, and the axes as columns."""
    squares, axes = np.linalg.eigh(centred.T @ centred)
    return squares[::-1], axes[:, ::-1]


def far_off(samples: np.ndarray) -> np.ndarray:
    """Return which samples, (n, n_features), lie far from all others in a column.

    Measured by the median and the median absolute deviation, which no outlier moves.
    """
    off = np.abs(samples - np.median(samples, axis=0))
    # 1.4826 median absolute deviations are a Gaussian's standard deviation. Among 10^8 Gaussian
    # samples none is beyond 6 of these.
    deviation = 1.4826 * np.median(off, axis=0)
    return (off > 6.0 * deviation).any(axis=1)


@dataclass(frozen=True)
class IndependentPart:
    """Some components of samples that are independent of all others."""

    reading: np.ndarray  # (q, r): from samples to components of variance 1
    writing: np.ndarray  # (r, q): from components to what they add to the samples
    gaussian: bool  # whether all components have a Gaussian's cumulants

    @property
    def variance(self) -> float:
        """Variance of the samples that lies in the part."""
        return float((self.writing**2).sum())

    def __call__(self, samples: np.ndarray) -> np.ndarray:
        """Return what the part adds to samples, (n, q)."""
        return samples @ self.reading @ self.writing


def principal_coordinates(samples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return samples, (n, q) of mean 0, along principal axes, (n, r), and the axes, (r, q)."""
    _, strength, axes = np.linalg.svd(samples, full_matrices=False)
    axes = axes[strength > 1e-6 * strength[0]]
    return samples @ axes.T, axes


def independent_parts(samples: np.ndarray) -> list[IndependentPart]:
    """Return the independent parts of samples, (n, q), the strongest first.

    Samples must have mean 0 and be given in their principal axes. Components of equal variance are
    turned until their third and fourth cumulants are as diagonal as they can be (Cardoso and
    Souloumiac, 1993); components that still depend on each other are one part (Cardoso, 1998).
    Whitening makes all scales equal, so that a weak factor shows as well as a strong one, and the
    cumulants ask for no neighbours, so that density, gaps and wells do not matter.
    """
    q = min(SEARCHED_DIRECTIONS, samples.shape[1])
    deviation = samples[:, :q].std(axis=0)
    white = samples[:, :q] / deviation
    rotation, gaussian = _with_principal_axes(white, deviation, _diagonalizer(white))
    variance = ((deviation[:, None] * rotation) ** 2).sum(axis=0)
    # Two Gaussian components are one part if the standard error of their axes is larger: then more
    # than a fiftieth of one leaks into the other. It is smaller in 1 of 500 draws of equal
    # variances.
    alike = gaussian[:, None] & gaussian & (axes_errors(variance, len(samples)) > 0.14)
    labels = _group(np.where(alike, np.inf, dependence(white @ rotation)))
    none = np.zeros((samples.shape[1] - q, q))
    reading = np.vstack([rotation / deviation[:, None], none])
    writing = np.hstack([rotation.T * deviation, none.T])
    parts = [
        IndependentPart(reading[:, own], writing[own], bool(gaussian[own].all()))
        for own in (labels == label for label in np.unique(labels))
    ]
    return sorted(parts, key=lambda part: -part.variance)


def cumulants(components: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the third and fourth cumulants of white components, (n, r)."""
    n, r = components.shape
    pairs = (components[:, :, None] * components[:, None]).reshape(n, r * r)
    third = (components.T @ pairs / n).reshape(r, r, r)
    fourth = (pairs.T @ pairs / n).reshape(r, r, r, r)
    one = np.eye(r)
    gaussian = np.einsum("ab,cd->abcd", one, one)
    swapped = gaussian.transpose(0, 2, 1, 3) + gaussian.transpose(0, 3, 2, 1)
    return third, fourth - gaussian - swapped


def dependence(components: np.ndarray) -> np.ndarray:
    """Return the largest cumulant that each two white components occur in, (r, r).

    Its noise is taken off: what independent components of the same densities show.
    """
    # A fixed seed, so that parts are a function of the samples. The noise is large where components
    # have tails; the mean over 4 shuffles is accurate to a tenth.
    rng = np.random.default_rng(0)
    shuffled = [_largest_cumulants(rng.permuted(components, axis=0)) for _ in range(4)]
    return np.maximum(_largest_cumulants(components) - np.mean(shuffled, axis=0), 0)


def _largest_cumulants(components: np.ndarray) -> np.ndarray:
    third, fourth = cumulants(components)
    largest = np.maximum(np.abs(third).max(axis=2), np.abs(fourth).max(axis=(2, 3)))
    np.fill_diagonal(largest, 0.0)
    return largest


def _diagonalizer(white: np.ndarray) -> np.ndarray:
    """Rotation that makes the cumulants of white samples diagonal, by Jacobi sweeps."""
    third, fourth = cumulants(white)
    r = white.shape[1]
    i, j = np.triu_indices(r)
    # Cumulants of two different components occur twice among all.
    twice = np.where(i == j, 1.0, np.sqrt(2))[:, None, None]
    return diagonalizing_rotation(np.concatenate([twice * fourth[i, j], third]))


def diagonalizing_rotation(given: np.ndarray) -> np.ndarray:
    """Return the rotation that makes symmetric matrices, (m, r, r), as diagonal as they can be."""
    matrices, r = given.copy(), given.shape[1]
    rotation = np.eye(r)
    for _ in range(30):
        widest = 0.0
        for a, b in combinations(range(r), 2):
            angle = _angle(matrices, a, b)
            widest = max(widest, abs(angle))
            plane = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
            pair = [a, b]
            matrices[:, :, pair] = matrices[:, :, pair] @ plane
            matrices[:, pair] = plane.T @ matrices[:, pair]
            rotation[:, pair] = rotation[:, pair] @ plane
        if widest < 1e-3:
            break
    return rotation


def _angle(matrices: np.ndarray, a: int, b: int) -> float:
    """Angle in a plane that makes matrices most diagonal (Cardoso and Souloumiac)."""
    difference = matrices[:, a, a] - matrices[:, b, b]
    between = 2 * matrices[:, a, b]
    on = difference @ difference - between @ between
    off = 2 * difference @ between
    return float(np.arctan2(off, on + np.hypot(on, off)) / 2)


def _with_principal_axes(
    white: np.ndarray, deviation: np.ndarray, rotation: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The rotation with Gaussian components along their principal axes, and which these are."""
    # Rotating components until their cumulants are diagonal makes those of Gaussian noise large,
    # in 12 directions up to 8 errors. Low kurtosis, the last of the three, has no tail.
    limits = np.maximum([5.0, 5.0, 3.5], 1.7 * np.array(_errors_by_chance(*white.shape)))
    gaussian = np.all(_standard_errors(white @ rotation) < limits[:, None], axis=0)
    spread = rotation[:, gaussian].T * deviation
    turn = np.linalg.svd(spread, full_matrices=False)[0]
    turned = rotation.copy()
    turned[:, gaussian] = rotation[:, gaussian] @ turn
    return turned, gaussian


@lru_cache(maxsize=64)
def _errors_by_chance(n: int, r: int) -> tuple[float, ...]:
    """Largest `_standard_errors` of n x r Gaussian noise, the mean over three draws."""
    rng = np.random.default_rng(0)
    largest = []
    for _ in range(3):
        noise = rng.normal(size=(n, r))
        white = np.linalg.qr(noise - noise.mean(axis=0))[0] * np.sqrt(n)
        errors = _standard_errors(white @ _diagonalizer(white))
        largest.append(errors.max(axis=1))
    return tuple(np.mean(largest, axis=0))


def is_gaussian(values: np.ndarray) -> np.ndarray:
    """Return which columns of values, (n, r), have a Gaussian's cumulants, (r,).

    They may differ by up to 4 standard errors of the estimates from Gaussian samples.
    """
    white = quotient(values - values.mean(axis=0), values.std(axis=0))
    return np.all(_standard_errors(white) < 4.0, axis=0)


def is_bell(values: np.ndarray) -> bool:
    """Return whether all columns of values, (n, r), are bell-shaped, whatever their tails.

    Values beyond two deviations, as the median tells them, are moved there. Skewness is then 0 and
    kurtosis 2.45 to 2.5 for Gaussians, Laplace's and Student's distributions; uniform values have
    1.8, and values of a circle's cosine 1.5.
    """
    off = values - np.median(values, axis=0)
    within = np.clip(quotient(off, 1.4826 * np.median(np.abs(off), axis=0)), -2, 2)
    white = quotient(within - within.mean(axis=0), within.std(axis=0))
    skewness, kurtosis = (white**3).mean(axis=0), (white**4).mean(axis=0)
    return bool((np.abs(skewness) < 0.25).all() and (kurtosis > 2.3).all())


def _standard_errors(white: np.ndarray) -> np.ndarray:
    """Cumulants in units of their errors for a Gaussian, (3, r)."""
    n = len(white)
    skewness, kurtosis = (white**3).mean(axis=0), (white**4).mean(axis=0) - 3
    kurtosis *= np.sqrt(n / 24)
    return np.array([np.abs(skewness) * np.sqrt(n / 6), kurtosis, -kurtosis])


def axes_errors(variances: np.ndarray, n_samples: int) -> np.ndarray:
    """Return standard errors of the angles of principal axes, in radians, (r, r).

    For two variances a and b it is sqrt(a b / n) / |a - b| (Anderson, 1963), and 0 on the diagonal.
    Gaussians of equal variance have no preferred axes; all other independent components are unique
    (Darmois, Skitovich).
    """
    mean = np.sqrt(np.multiply.outer(variances, variances))
    apart = np.abs(np.subtract.outer(variances, variances))
    # Variances that differ by less are equal but for rounding. Their axes are not known, even with
    # many samples.
    apart = np.maximum(apart, 1e-12 * mean)
    error = quotient(mean / np.sqrt(n_samples), apart)
    np.fill_diagonal(error, 0.0)
    return np.minimum(error, np.pi / 4)


def _group(depends: np.ndarray) -> np.ndarray:
    """Labels of components; the mean dependence between two groups is below the limit."""
    if len(depends) == 1:
        return np.zeros(1, dtype=int)
    # A mean over pairs of components does not join groups by one chance link.
    closeness = 1 / (1 + np.maximum(depends, depends.T))
    np.fill_diagonal(closeness, 0.0)
    tree = linkage(squareform(closeness, checks=False), "average")
    return fcluster(tree, 1 / (1 + MAX_CUMULANT), "distance")
