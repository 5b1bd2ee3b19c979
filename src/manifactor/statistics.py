"""Local statistics: draws of samples, whitening, regression on nearest neighbours, edges."""

from collections.abc import Callable, Mapping, Sequence
from math import isnan
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment
from scipy.spatial import KDTree
from scipy.stats import chi2

from manifactor._support.values import quotient

# Independent arrays of 3,000 samples predict each other with an R^2 below .02, so that more samples
# are thinned: neighbours are sought in n log n.
PREDICTED_SAMPLES = 4000
# The mean of 20 neighbours has a twentieth of the noise of one value, and they still lie near each
# other among 4,000.
PREDICTION_NEIGHBORS = 20
# How far the kurtosis of a direction with an edge or a hole lies below that of Gaussian noise at
# least; an interval's lies 1.2 below, a circle's or a sphere's 2.
EDGE_DEPTH = 0.4
NOT_MEASURED = float("nan")


class Measurement(NamedTuple):
    """A number, and the part of it that is noise.

    >>> Measurement(0.5, 0.2).net, Measurement(0.5).net
    (0.3, 0.5)
    >>> str(Measurement(0.1234, 0.031)), str(Measurement(0.5))
    ('0.123 +- 0.031', '0.5')
    """

    value: float
    noise: float = NOT_MEASURED  # nan where none is measured
    words: Mapping[str, Any] | None = None  # for what is said if a test of it fails
    n_samples: int | None = None  # that it is the number of, where it is not that of all

    @property
    def net(self) -> float:
        """The value less its noise; the value itself where no noise is measured."""
        return self.value if isnan(self.noise) else self.value - self.noise

    def __str__(self) -> str:
        if isnan(self.noise):
            return f"{self.value:.3g}"
        return f"{self.value:.3f} +- {self.noise:.3f}"


def distinct_rows(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first of all equal rows, ascending, and which of these each row is a copy of.

    Shapes: X (n, p) -> rows (m,), copy_of (n,).
    """
    # Equal rows have equal sums, whatever their place, if not by BLAS: told in a tenth of the time
    # that sorting rows takes.
    sums = np.einsum("xp,p->x", X, np.random.default_rng(0).normal(size=X.shape[1]))
    _, first, group = np.unique(sums, return_index=True, return_inverse=True)
    same = (X[first[group]] == X).all(axis=1) if len(first) < len(X) else True
    return np.unique(np.where(same, first[group], np.arange(len(X))), return_inverse=True)


def random_rows(samples: int | np.ndarray, at_most: int) -> np.ndarray:
    """Return the indices of randomly drawn samples, ascending; of all if they are few.

    Random, since samples may come in order, and a fixed stride would then miss what repeats along
    it. The same arguments give the same samples.
    """
    rows = np.arange(samples) if isinstance(samples, int) else samples
    if len(rows) <= at_most:
        return rows
    rng = np.random.default_rng(1)
    return np.sort(rng.choice(rows, at_most, replace=False))


def even_rows(n_samples: int, at_most: int) -> np.ndarray:
    """Return the indices of evenly spread samples; of all if they are few."""
    return np.linspace(0, n_samples - 1, min(n_samples, at_most)).astype(int)


def split_at_gaps(
    lengths: np.ndarray, labels: Callable[[int], np.ndarray], most: int
) -> np.ndarray | None:
    """Return the piece of each sample, (n,), where gaps between samples are no chance; else None.

    `lengths` are those of the edges that join samples to a tree, descending; `labels` returns the
    pieces that are left without the longest edges, given their number.
    """
    longest = lengths[: most + 1]
    ratio = np.r_[1.0, quotient(longest[:-1], np.maximum(longest[1:], 1e-9 * lengths.max()))]
    counts = np.arange(1, len(ratio) + 1)
    # Of even samples the longest edges are hardly longer than the next: of each j the excess, times
    # j, is above 1 in one table of a thousand.
    excess = (ratio - 1) * (counts - 1)
    for at in np.argsort(-excess, kind="stable"):
        if excess[at] < 1 or ratio[at] < 1.15:
            continue
        found, n = labels(int(counts[at])), len(lengths) + 1
        if np.bincount(found).min() >= max(5, n / (3 * counts[at])):
            return found
    return None


def random_shifts(n_samples: int, count: int) -> np.ndarray:
    """Return by how many samples to roll one of two time series, so that they are independent."""
    # What is less than a twentieth of the series away may be remembered.
    margin = n_samples // 20
    return np.random.default_rng(0).integers(margin, n_samples - margin, size=count)


def whiten(samples: np.ndarray, least: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Return coordinates of variance 1 along the principal axes, (n, r), and singular values.

    Axes with less than the share `least` of the largest singular value are left out.
    """
    left, strength, _ = np.linalg.svd(samples - samples.mean(axis=0), full_matrices=False)
    if least:
        kept = strength > least * strength[0]
        left, strength = left[:, kept], strength[kept]
    return left * np.sqrt(len(left)), strength


def inverse_root(matrix: np.ndarray, least: float) -> np.ndarray:
    """Return R, (p, r), with ``R.T @ matrix @ R`` the identity.

    Eigenvalues below the share `least` of the largest are left out.
    """
    values, axes = np.linalg.eigh(matrix)
    kept = values > least * values[-1]
    return axes[:, kept] / np.sqrt(values[kept])


def neighbour_means(source: np.ndarray, n_neighbors: int) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function that averages values over each sample's nearest neighbours.

    Shapes: source (n, d).
    """
    n = len(source)
    if source.shape[1] == 1:
        near = nearest_on_line(source[:, 0], n_neighbors + 1)
        near = without_itself(near, np.arange(n))
    else:
        near = nearest_others(source, np.arange(n), n_neighbors)
    ones = np.ones((n, 1, n_neighbors))
    return lambda values: neighbour_sums(ones, near, values)[:, 0] / n_neighbors


def nearest_others(places: np.ndarray, some: np.ndarray, count: int) -> np.ndarray:
    """Return the nearest others of some samples by their places, (n, c), as (m, count) indices."""
    count = min(count + 1, len(places))
    # Threads do not pay for few samples.
    workers = 1 if len(some) <= 2000 else -1
    return without_itself(KDTree(places).query(places[some], count, workers=workers)[1], some)


def without_itself(near: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Return the neighbours of samples without the samples themselves, (m, k - 1).

    A sample with k copies or more may be missing among its neighbours. These are all copies then,
    and the last one is left out.

    Shapes: near (m, k), own (m,).
    """
    itself = near == own[:, None]
    itself[~itself.any(axis=1), -1] = True
    return near[~itself].reshape(len(near), near.shape[1] - 1)


def nearest_on_line(places: np.ndarray, count: int) -> np.ndarray:
    """Return which of places, (n,), are nearest to each, itself among them, in ascending order.

    They are a run of the ordered places: it begins with the first one that is not farther away than
    the one `count` places after it.

    Returns (n, count).
    """
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    first = np.searchsorted((ordered[:-count] + ordered[count:]) / 2, places)
    return order[first[:, None] + np.arange(count)]


def neighbour_sums(weights: np.ndarray, near: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return weighted sums of values over neighbours, (m, c, q).

    As a sparse product, so that values are not copied for each neighbourhood.

    Shapes: weights (m, c, k), near (m, k), values (n, q).
    """
    m, c, k = weights.shape
    columns = np.repeat(near, c, axis=0).ravel()
    pointers = np.arange(0, weights.size + 1, k)
    entries = (weights.ravel(), columns, pointers)
    matrix = sp.csr_array(entries, shape=(m * c, len(values)))
    return (matrix @ values).reshape(m, c, -1)


def predictability(
    source: np.ndarray, target: np.ndarray, *, samples_per_neighbor: int = 1
) -> np.ndarray:
    """Return the R^2 with which coordinates predict each column of a target, at least 0.

    Leave-one-out regression on the nearest neighbours. The mean of k neighbours has a k-th of the
    noise itself, which is taken into account: two independent arrays give 0, not -1/k.

    Shapes: source (n, d), target (n, m) -> (m,).
    """
    thin = random_rows(len(source), PREDICTED_SAMPLES)
    source, target = source[thin], target[thin]
    # Few samples have fewer neighbours, which lie near each other, but at least 4.
    near = max(len(source) // samples_per_neighbor, 4)
    k = min(PREDICTION_NEIGHBORS, near, len(source) - 1)
    # The sample itself is not a neighbour: a function would predict its own noise.
    rest = target - neighbour_means(source, k)(target)
    left = (rest**2).mean(axis=0) / (1 + 1 / k)
    return np.clip(1 - quotient(left, target.var(axis=0)), 0, 1)


def matched_r2(ones: Sequence[np.ndarray], others: Sequence[np.ndarray]) -> float:
    """Return the least R^2 between coordinates of two sets, matched one to one.

    It is that by which either predicts the other, and 0 if there are not as many.

    Shapes: ones, others (n, d) each.
    """
    return nested_r2(ones, others) if len(ones) == len(others) else 0.0


def nested_r2(ones: Sequence[np.ndarray], others: Sequence[np.ndarray]) -> float:
    """Return the same, of as many coordinates as the smaller set has; the others do not count."""
    r2 = mutual_r2(ones, others)
    return float(r2[linear_sum_assignment(-r2)].min())


def mutual_r2(ones: Sequence[np.ndarray], others: Sequence[np.ndarray]) -> np.ndarray:
    """Return the R^2 by which either of two coordinates predicts the other, (n_ones, n_others)."""

    def either(a: np.ndarray, b: np.ndarray) -> float:
        return min(predictability(a, b).mean(), predictability(b, a).mean())

    return np.array([[either(a, b) for b in others] for a in ones])


def of_unit_spread(places: np.ndarray) -> np.ndarray:
    """Return places, (n, d), with a root mean square distance of 1 from their mean."""
    return places / (np.sqrt(places.var(axis=0).sum()) or 1.0)


def blurred(places: np.ndarray) -> np.ndarray:
    """Return places, (n, d), moved at random by up to a two-hundredth of their range.

    Samples of a factor with few levels share a place; what their places differ by is an error.
    """
    noise = np.random.default_rng(0).uniform(-1, 1, size=places.shape)
    return places + noise * np.ptp(places, axis=0).max(initial=0.0) / 200


def leaves_noise(places: np.ndarray, samples: np.ndarray) -> bool:
    """Return whether what places leave of the samples has no edge and no hole.

    Noise has none. Samples, (n, d), are predicted from their neighbours on the factors, (n, c). A
    small factor that was missed, an interval or a circle, shows in the rest as a direction of low
    kurtosis, which `has_edge` finds. At 4,000 samples an interval blurred by noise of a quarter of
    its width looks like noise.
    """
    thin = random_rows(len(samples), PREDICTED_SAMPLES)
    places, samples = places[thin], samples[thin]
    k = min(PREDICTION_NEIGHBORS, len(places) - 1)
    rest = samples - neighbour_means(places, k)(samples)
    size = np.linalg.norm(samples - samples.mean(axis=0))
    # A rest below 1e-9 of the samples is rounding.
    if np.linalg.norm(rest - rest.mean(axis=0)) <= 1e-9 * size:
        return True
    return not has_edge(rest)


def has_edge(
    samples: np.ndarray, *, thick: float = 0.01, most_directions: int | None = None
) -> bool:
    """Return whether samples, (n, p), have an edge or a hole in a main direction.

    There the kurtosis is low, which is a low eigenvalue of the matrix of fourth moments of white
    samples (Cardoso, 1989). Directions with less than `thick` of the largest variance do not count:
    they are rounding, or noise of the regression that left the samples. Only the first
    `most_directions` count, since the lowest of many kurtoses is low by chance.
    """
    white, strength = whiten(samples)
    white = white[:, strength**2 >= thick * strength[0] ** 2][:, :most_directions]
    lowest = _lowest_kurtosis(white)
    if lowest > white.shape[1] + 2 - EDGE_DEPTH:
        return False
    # In many directions the lowest kurtosis of noise is low by chance.
    rng = np.random.default_rng(0)
    noise, _ = whiten(rng.normal(size=white.shape))
    return lowest < _lowest_kurtosis(noise) - EDGE_DEPTH


def _lowest_kurtosis(white: np.ndarray) -> float:
    """Least eigenvalue of the fourth moments; p + 2 for a Gaussian of p directions."""
    fourth = (white * (white**2).sum(axis=1, keepdims=True)).T @ white / len(white)
    return float(np.linalg.eigvalsh(fourth)[0])


# Linear fits to the neighbourhoods of places.


def local_weights(
    around: np.ndarray,
    at: np.ndarray | float,
    kernel: np.ndarray | None = None,
    *,
    ridge: float,
    floor: float = np.finfo(float).tiny,
    reach: float = np.inf,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the weights with which neighbours' values add up to a linear fit at a place.

    Neighbours lie around m places, (m, d, 1), at (m, d, k), and count by a kernel, (m, 1, k), that
    adds up to 1, or all alike. The weights, (m, 1, k), depend on the places alone, so that no
    slopes of many values need be solved for. Also returned: how neighbours lie from their mean,
    times the kernel, (m, d, k), and the spread of that, with a ridge, (m, d, d). Slopes are the
    inverse of the latter times sums of values over the former.
    """
    if kernel is None:
        centre = around.mean(axis=2, keepdims=True)
        moves = off = around - centre
    else:
        centre = (around * kernel).sum(axis=2, keepdims=True)
        off = around - centre
        moves = off * kernel
    spread = moves @ off.transpose(0, 2, 1)
    n_slopes = spread.shape[1]
    # Places on a surface extend in fewer directions than they have columns, and have no slope
    # along the others. Copies have no spread at all.
    added = ridge * np.trace(spread, axis1=1, axis2=2) / n_slopes + floor
    spread = spread + added[:, None, None] * np.eye(n_slopes)
    shift = np.linalg.solve(spread, at - centre)
    # The squared distance from the mean place, in variances for each direction: 3 at the end of an
    # interval, or in a corner. Beyond `reach`, where there are no samples, slopes would be
    # extrapolated.
    far = ((at - centre) * shift).sum(axis=1, keepdims=True) / n_slopes
    shift = shift * np.sqrt(np.minimum(1, reach / np.maximum(far, np.finfo(float).eps)))
    along = shift.transpose(0, 2, 1) @ off
    weights = 1 / around.shape[2] + along if kernel is None else kernel * (1 + along)
    return weights, moves, spread


def squares_left(
    values: np.ndarray,
    ladder: Sequence[int],
    nearest: Callable[[np.ndarray, int], np.ndarray],
    weights: Callable[[np.ndarray, np.ndarray], np.ndarray],
) -> tuple[dict[int, float], float]:
    """Return the squares of values, (n, q), that fits around them leave, and all of them.

    The former by the number of neighbours of a fit. `nearest` takes samples and a number to their
    neighbours, `weights` takes samples and neighbours to the weights of fits at the samples.
    """
    # The mean square of 300 samples that are left out, one at a time, is accurate to 8 %.
    some = random_rows(len(values), 300)
    near = without_itself(nearest(some, ladder[-1] + 1), some)
    total = float(((values[some] - values.mean(axis=0)) ** 2).sum())
    left = {}
    for count in ladder:
        around = near[:, :count]
        predicted = neighbour_sums(weights(some, around), around, values)[:, 0]
        left[count] = float(((values[some] - predicted) ** 2).sum())
    return left, total


def fourth_moment(part: np.ndarray) -> float:
    """Return that of white samples, relative to a Gaussian's, less 1; -1/3 on an even disc.

    Shapes: part (n, d), which need not be white.
    """
    white, _ = whiten(part)
    dimension = white.shape[1]
    return float(((white**2).sum(axis=1) ** 2).mean()) / (dimension * (dimension + 2)) - 1


def is_gaussian(part: np.ndarray) -> bool:
    """Return whether samples, (n, d), have a Gaussian's moments and distances."""
    white, _ = whiten(part)
    n, dimension = white.shape
    squares = (white**2).sum(axis=1)
    fourth = fourth_moment(part)
    # One standard error of each number is added to what is allowed.
    error = np.sqrt(8 / (dimension * (dimension + 2) * n))
    ranks = (np.arange(n) + 0.5) / n
    off = np.abs(chi2.cdf(np.sort(squares), dimension) - ranks).max()
    skewness = np.abs((white**3).mean(axis=0)).max()
    return bool(
        # Relative to the Gaussian's: -.40 for an even interval, -.28 for beta(2, 2), 1 for
        # Laplace's law, -.2 for an interval whose density falls to a fifth, and for a Gaussian
        # without its tails beyond 2 standard deviations.
        abs(fourth) < 0.1 + error
        # .12 for an even interval, .06 for beta(2, 2), .12 for Laplace's law.
        and off < 0.025 + 0.5 / np.sqrt(n)
        # .6 for beta(2, 5), 2 for the exponential law.
        and skewness < 0.4 + np.sqrt(6 / n)
    )
