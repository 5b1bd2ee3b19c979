"""Gradients of the functions at some of the samples, and their inner products."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp
from scipy.spatial import KDTree
from sklearn.utils import gen_batches

from manifactor._support.values import quotient
from manifactor.operators.engines.gpu import sparse_rows
from manifactor.operators.kernel import Affinity
from manifactor.operators.laplacian import Spectrum
from manifactor.operators.metric import LocalMetric
from manifactor.operators.operator import LaggedPart

# Samples at which gradients are taken: the mean over 1,000 is accurate to a few percent.
N_ROWS = 1000
# Gradients may point in as many directions of the smoothed samples as hold this share of their
# variance, up to a number that bounds the cost of a local regression.
KEPT_VARIANCE = 0.999
MAX_COORDINATES = 20
# Ridge of the local regression, of the local spread: directions across the manifold are noise and
# get no gradient.
RIDGE = 0.1
# Least share of a block's energy in one of the directions that it points in.
MIN_DIRECTION_SHARE = 0.12
# A product of two functions has at least twice the lowest eigenvalue; 1.9 leaves room for error.
BATCH_RATIO = 1.9
# Pairs that start nearest to a sample, which tell the covariance of what follows it.
N_PAIRS = 100


@dataclass(frozen=True)
class Geometry:
    """A spectrum with the gradients of its functions at some of the samples.

    Functions are given by coefficients, (n_functions - 1, r), without the constant one.
    """

    spectrum: Spectrum  # on the distinct samples
    coordinates: np.ndarray  # (n_distinct, n_coordinates): those that gradients are taken in
    rows: np.ndarray  # (n_rows,): the samples at which gradients were taken
    # (n_rows, n_coordinates, n_functions - 1): scaled so that the mean square of each is the
    # function's eigenvalue
    gradients: np.ndarray
    average: sp.csr_array  # (n_rows, n_rows): mean over neighbouring rows
    # Energies along blocks that were measured, by the bytes of the block: `peel` asks for each
    # several times, and they cost more than all else there
    measured: dict[bytes, np.ndarray] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @property
    def eigenvalues(self) -> np.ndarray:
        """Eigenvalues of the functions, the constant left out; all are positive."""
        eigenvalues = self.spectrum.eigenvalues
        # Weak links between pieces of the data make eigenvalues 0 to rounding.
        return np.maximum(eigenvalues[1:], 1e-9 * eigenvalues[-1])

    @property
    def row_weights(self) -> np.ndarray:
        """Weights of the rows; they sum to 1."""
        return _shares(self.spectrum, self.rows)

    def rayleigh(self, coefficients: np.ndarray) -> np.ndarray:
        """Return the eigenvalues of unit combinations of functions, (r,)."""
        return self.eigenvalues @ coefficients**2

    def values(self, coefficients: np.ndarray) -> np.ndarray:
        """Return combinations of functions at the samples, (n_samples, r)."""
        return self.spectrum.combined(beside_constant(coefficients))

    def captured(self, coefficients: np.ndarray) -> float:
        """Return the smallest share of a product of two of them in the spectrum."""
        i, j = np.triu_indices(coefficients.shape[1])
        found, squares = self.products(coefficients[:, i], coefficients[:, j])
        inside = (found**2).sum(axis=0)
        return float((inside / squares).min())

    def products(self, left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """As `Spectrum.triple_products`."""
        return self.spectrum.triple_products(beside_constant(left), beside_constant(right))


def beside_constant(coefficients: np.ndarray) -> np.ndarray:
    """Return coefficients in the whole spectrum, with none of the constant function."""
    constant = np.zeros((1, coefficients.shape[1]))
    return np.vstack([constant, coefficients])


def measure_geometry(
    spectrum: Spectrum,
    affinity: Affinity,
    samples: np.ndarray | None,
    *,
    metric: LocalMetric | None = None,
    n_rows: int = N_ROWS,
    rng: np.random.Generator,
) -> Geometry:
    """Compute gradients by local regression of the functions on the smoothed distinct samples.

    With a metric of the samples, gradients are those in units of local moves.
    """
    rows = _draw_rows(spectrum, n_rows, rng)
    steps = _steps(affinity, rows)
    if metric is None or samples is None:
        coordinates = _coordinates(spectrum, samples)
        gradients = _regression(coordinates, spectrum, steps)
    else:
        # Functions tell which rows are neighbours: samples may be folded.
        coordinates = _coordinates(spectrum, None)
        axes = _main_axes(spectrum, samples)
        smooth = spectrum.combined(beside_constant(_projected(spectrum, samples) @ axes))
        own = metric.chosen(rows).mapped(axes)
        gradients = _regression(smooth, spectrum, steps, whiten=own.whitened)
    weights = _shares(spectrum, rows)
    energy = np.einsum("x,xpa,xpa->a", weights, gradients, gradients, optimize=True)
    # The ridge shortens gradients; their true mean square is known, the eigenvalue.
    gradients *= np.sqrt(quotient(spectrum.eigenvalues[1:], energy))
    return Geometry(spectrum, coordinates, rows, gradients, _average(coordinates[rows]))


def geometry_of_pairs(part: LaggedPart, dimension: float, *, rng: np.random.Generator) -> Geometry:
    """Return gradients by the covariance of what follows each sample, a lag later.

    If f and g belong to factors that are independent of each other, f(x') and g(x') are independent
    given x, at any lag. Mean products of moves, f(x') - f(x), are 0 at short lags only.
    """
    spectrum = part.spectrum
    rows = _draw_rows(spectrum, N_ROWS, rng)
    # The frame: as many of the lowest functions as point along all factors everywhere. With 6 or
    # 10 of two intervals, products of functions were taken for directions.
    count = 2 * max(1, round(dimension))
    lowest = slice(1, 1 + count)
    scale = np.sqrt(np.maximum(spectrum.eigenvalues[lowest], 1e-9 * spectrum.eigenvalues[-1]))
    places = spectrum.functions[:, lowest] / scale
    near = KDTree(part.before[:, lowest] / scale).query(
        places[rows], min(N_PAIRS, len(part.before))
    )[1]
    after = part.innovation[near][:, :, 1:]
    joint = (after[:, :, :count] / scale).transpose(0, 2, 1) @ after / near.shape[1]
    variances, axes = np.linalg.eigh(joint[:, :, :count] / scale)
    floor = np.maximum(RIDGE * variances[:, -1:], np.finfo(float).tiny)
    # The symmetric root, since gradients of neighbouring rows are averaged.
    root = (axes / np.sqrt(np.maximum(variances, 0) + floor)[:, None]) @ axes.transpose(0, 2, 1)
    gradients = root @ joint
    energy = np.einsum("x,xpa,xpa->a", _shares(spectrum, rows), gradients, gradients)
    gradients *= np.sqrt(quotient(spectrum.eigenvalues[1:], energy))
    return Geometry(spectrum, places, rows, gradients, _average(places[rows]))


def carre_du_champ(
    spectrum: Spectrum, coefficients: np.ndarray, rows: np.ndarray | None = None
) -> np.ndarray:
    """Return inner products of the gradients of r functions, (n_rows, r, r), without derivatives.

    Gamma(f, g) = (f Lg + g Lf - L(fg)) / 2 taken at a small positive time: zero where the product
    of f and g is an eigenfunction whose eigenvalue is the sum of theirs. It is less noisy than
    gradients for low functions, and needs a spectrum that reaches to the products.
    """
    inner, pair = champ_of_pairs(spectrum, coefficients, rows)
    return inner[:, pair]


def champ_of_pairs(
    spectrum: Spectrum, coefficients: np.ndarray, rows: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return `carre_du_champ` of each pair of functions, and the column of each."""
    i, j = np.triu_indices(coefficients.shape[1])
    eigenvalues = spectrum.eigenvalues @ coefficients**2
    total = eigenvalues[i] + eigenvalues[j]
    # A short time, of the highest function's own, has little bias; at time 0 the highest functions
    # of the spectrum, which are the least accurate, would count the most.
    time = 0.1 / eigenvalues.max()
    found, _ = spectrum.triple_products(coefficients[:, i], coefficients[:, j])
    decay = np.exp(-time * spectrum.eigenvalues)
    difference = decay[:, None] - np.exp(-time * total)
    combination = difference * found / (2 * time)
    pair = np.empty((len(eigenvalues),) * 2, dtype=int)
    pair[i, j] = pair[j, i] = np.arange(len(i))
    if rows is None:
        return spectrum.combined(combination), pair
    return spectrum.functions[rows] @ combination, pair


def _draw_rows(spectrum: Spectrum, count: int, rng: np.random.Generator) -> np.ndarray:
    n = len(spectrum.weights)
    return np.arange(n) if n <= count else np.sort(rng.choice(n, count, replace=False))


def _shares(spectrum: Spectrum, rows: np.ndarray) -> np.ndarray:
    """Return the weights of some samples; they sum to 1."""
    weights = spectrum.weights[rows]
    return weights / weights.sum()


def _coordinates(spectrum: Spectrum, samples: np.ndarray | None) -> np.ndarray:
    """Return smooth coordinates in which gradients are taken, (n, n_coordinates)."""
    if samples is None:
        # Functions, damped by diffusion until the 40th one has fallen to 1/e.
        eigenvalues = spectrum.eigenvalues[1:]
        decay = np.exp(-eigenvalues[:MAX_COORDINATES] / eigenvalues[:40][-1])
        return spectrum.functions[:, 1 : 1 + MAX_COORDINATES] * decay
    left, strength, _ = np.linalg.svd(_projected(spectrum, samples), full_matrices=False)
    variance = strength**2
    short = np.cumsum(variance) < KEPT_VARIANCE * variance.sum()
    count = min(int(short.sum()) + 1, MAX_COORDINATES)
    return spectrum.combined(beside_constant(left[:, :count] * strength[:count]))


def _main_axes(spectrum: Spectrum, samples: np.ndarray) -> np.ndarray:
    """Return the axes that samples of many columns vary along, (n_features, at most 20)."""
    n_columns = samples.shape[1]
    if n_columns <= MAX_COORDINATES:
        return np.eye(n_columns)
    right = np.linalg.svd(_projected(spectrum, samples), full_matrices=False)[2]
    return right[:MAX_COORDINATES].T


def _projected(spectrum: Spectrum, samples: np.ndarray) -> np.ndarray:
    """Return coefficients of samples in functions, (n_functions - 1, n_features), by blocks."""
    functions = spectrum.functions[:, 1:]
    mean = samples.mean(axis=0, dtype=np.float64)
    n_samples, n_features = samples.shape
    coefficients = np.zeros((functions.shape[1], n_features))
    for rows in gen_batches(n_samples, max(1, 2**20 // n_features)):
        centred = samples[rows] - mean
        weighted = spectrum.weights[rows, None] * centred
        coefficients += functions[rows].T @ weighted
    return coefficients


def _steps(affinity: Affinity, rows: np.ndarray) -> sp.csr_array:
    """Return the walk's probabilities from some samples to all."""
    steps = sp.csr_array(affinity.kernel[rows]) @ sp.diags_array(affinity.pull)
    scale = sp.diags_array(1 / steps.sum(axis=1))
    return sp.csr_array(scale @ steps)


def _regression(
    coordinates: np.ndarray,
    spectrum: Spectrum,
    steps: sp.csr_array,
    *,
    whiten: Callable[[np.ndarray], np.ndarray] = lambda around: around,
) -> np.ndarray:
    """Return slopes along the coordinates, (n_rows, n_coordinates, n_functions - 1)."""
    near, weight = _padded(steps)
    around = whiten(coordinates[near])
    around -= np.einsum("xk,xkp->xp", weight, around)[:, None]
    weighted = (around * weight[:, :, None]).transpose(0, 2, 1)
    spread = weighted @ around
    joint = spectrum.local_products(near, weighted)[:, :, 1:]
    extent = np.linalg.eigvalsh(spread)[:, -1]
    # A sample that has no neighbours but copies has no extent.
    penalty = RIDGE * np.maximum(extent, 1e-6 * extent.max())
    regular = spread + penalty[:, None, None] * np.eye(spread.shape[1])
    # Inverses first: each of these small matrices has many right-hand sides.
    return np.linalg.inv(regular) @ joint


def _padded(steps: sp.csr_array) -> tuple[np.ndarray, np.ndarray]:
    """Return neighbours and probabilities of steps from each row, (n_rows, k), padded with 0."""
    count = np.diff(steps.indptr)
    there = np.arange(count.max()) < count[:, None]
    near, weight = np.zeros(there.shape, dtype=int), np.zeros(there.shape)
    near[there], weight[there] = steps.indices, steps.data
    return near, weight


def _average(coordinates: np.ndarray) -> sp.csr_array:
    """Return the matrix of means over 12 nearest rows, which show which way a block points."""
    n_rows = len(coordinates)
    k = min(12, n_rows)
    near = KDTree(coordinates).query(coordinates, k)[1].reshape(n_rows, k)
    return sparse_rows(np.full(near.shape, 1 / k), near, n_rows)


def count_directions(geometry: Geometry, block: np.ndarray) -> int:
    """Return how many directions a block's gradients span: the factor's dimension."""
    return directions(geometry, block)[0].shape[1]


def directions(geometry: Geometry, block: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return strength (n_rows, d) and axes (n_rows, n_coordinates, d) of a block's gradients."""
    # Every function of the block counts the same, also one with a high eigenvalue.
    scaled = block / np.sqrt(geometry.rayleigh(block))
    spanned = geometry.gradients @ scaled
    outer = spanned @ spanned.transpose(0, 2, 1)
    averaged = geometry.average @ outer.reshape(len(outer), -1)
    strength, axes = np.linalg.eigh(averaged.reshape(outer.shape))
    mean = strength.mean(axis=0)
    count = max(1, int((mean > MIN_DIRECTION_SHARE * mean.sum()).sum()))
    strongest = np.maximum(strength[:, -count:], 0)
    return strongest, axes[:, :, -count:]


def batch_size(eigenvalues: np.ndarray) -> int:
    """Return how many of the lowest functions are surely not products.

    They come before the widest gap below twice the lowest eigenvalue, the least of a product.
    """
    if not len(eigenvalues):
        return 0
    low = int((eigenvalues <= BATCH_RATIO * eigenvalues[:1]).sum())
    if low == len(eigenvalues):
        return low
    gaps = eigenvalues[1 : low + 1] / eigenvalues[:low]
    return int(np.argmax(gaps)) + 1
