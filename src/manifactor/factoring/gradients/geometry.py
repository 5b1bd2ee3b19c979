"""Gradients of the functions at some of the samples, and their inner products."""

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp
from scipy.spatial import KDTree
from sklearn.utils import gen_batches

from manifactor._support.values import quotient
from manifactor.spectral.kernel import Affinity
from manifactor.spectral.spectrum import Spectrum


@dataclass(frozen=True)
class GradientSettings:
    """Settings of `measure_geometry`, and of what is read from a `Geometry`."""

    # Samples at which gradients are taken: the mean over 1,000 is accurate to a few percent,
    # whatever the number of samples.
    n_rows: int = 1000
    # Directions of the smoothed data that gradients may point in: as many as hold this share of its
    # variance, up to a limit that bounds the cost of a local regression.
    kept_variance: float = 0.999
    max_coordinates: int = 20
    # Where only distances are known, functions are the coordinates. They are damped by diffusion
    # over the time after which this one has fallen to 1/e.
    damping_function: int = 40
    # Of the local spread: directions across the manifold are noise and get no gradient.
    ridge: float = 0.1
    # Neighbouring gradients that say together which way a block of functions points.
    n_averaged: int = 12
    # Least share of a block's energy in one of the directions that it points in.
    min_direction_share: float = 0.12
    # Of a direction's mean strength: where the gradients of a block vanish it points nowhere, and
    # energy along it counts less.
    vanishing_strength: float = 0.05
    # Of the highest function's own time, at which the carre du champ is taken. A short time has
    # little bias; at time 0 the highest functions of the spectrum, which are the least accurate,
    # would count the most.
    heat_time: float = 0.1
    # Largest exponent eigenvalue * step of the walk that the kernel resolves.
    max_exponent: float = 0.5
    # Least eigenvalue, of the largest: weak links between pieces of the data make eigenvalues 0 to
    # rounding.
    least_eigenvalue: float = 1e-9
    # Numbers of the samples that are worked on at a time: 8 MiB in double precision.
    block_size: int = 2**20


@dataclass(frozen=True)
class Geometry:
    """A spectrum with the gradients of its functions at some of the samples.

    Functions are given by their coefficients, (n_functions - 1, r): the constant function has no
    gradient.
    """

    spectrum: Spectrum  # on the distinct samples
    rows: np.ndarray  # (n_rows,): the samples at which gradients were taken
    # (n_rows, n_coordinates, n_functions - 1): scaled so that the mean square of each is the
    # function's eigenvalue
    gradients: np.ndarray
    average: sp.csr_array  # (n_rows, n_rows): mean over neighbouring rows
    settings: GradientSettings = GradientSettings()
    # Energies along blocks that were measured, by the bytes of the block: `peel` asks for each
    # several times, and they cost more than all else there
    measured: dict[bytes, np.ndarray] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @property
    def eigenvalues(self) -> np.ndarray:
        """Eigenvalues of the functions, the constant left out; all are positive."""
        eigenvalues = self.spectrum.eigenvalues
        return np.maximum(eigenvalues[1:], self.settings.least_eigenvalue * eigenvalues[-1])

    @property
    def resolution(self) -> float:
        """Largest eigenvalue that the kernel resolves."""
        return self.settings.max_exponent / self.spectrum.step

    @property
    def row_weights(self) -> np.ndarray:
        """Weights of the rows; they sum to 1."""
        return _share(self.spectrum.weights[self.rows])

    def rayleigh(self, coefficients: np.ndarray) -> np.ndarray:
        """Return the eigenvalues of unit combinations of functions, (r,)."""
        return self.eigenvalues @ coefficients**2

    def values(self, coefficients: np.ndarray) -> np.ndarray:
        """Return combinations of functions at the samples, (n_samples, r)."""
        return self.spectrum.combined(beside_constant(coefficients))

    def champ(self, coefficients: np.ndarray) -> np.ndarray:
        """Return their carre du champ at the rows, (n_rows, r, r)."""
        combinations = beside_constant(coefficients)
        return carre_du_champ(self.spectrum, combinations, self.rows, settings=self.settings)

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
    settings: GradientSettings = GradientSettings(),
    rng: np.random.Generator,
) -> Geometry:
    """Compute gradients by local regression of the functions on the smoothed samples.

    Shapes: samples (n_distinct, n_features).
    """
    rows = _drawn_rows(len(spectrum.weights), settings.n_rows, rng)
    coordinates = _coordinates(spectrum, samples, settings)
    steps = _steps(affinity, rows)
    gradients = _regression(coordinates, spectrum, steps, ridge=settings.ridge)
    weights = _share(spectrum.weights[rows])
    energy = np.einsum("x,xpa,xpa->a", weights, gradients, gradients, optimize=True)
    # The ridge shortens gradients; their true mean square is known, the eigenvalue.
    gradients *= np.sqrt(quotient(spectrum.eigenvalues[1:], energy))
    average = _average(coordinates[rows], settings.n_averaged)
    return Geometry(spectrum, rows, gradients, average, settings)


def carre_du_champ(
    spectrum: Spectrum,
    coefficients: np.ndarray,
    rows: np.ndarray | None = None,
    *,
    settings: GradientSettings = GradientSettings(),
) -> np.ndarray:
    """Compute inner products of the gradients of functions without derivatives.

    Gamma(f, g) = (f Lg + g Lf - L(fg)) / 2 taken at a small positive time: zero where the product
    of f and g is an eigenfunction whose eigenvalue is the sum of theirs. No derivative is taken, so
    it is less noisy than gradients for low functions; it needs a spectrum that reaches to the
    products.

    Shapes: coefficients (n_functions, r) -> (n_rows, r, r).
    """
    inner, pair = champ_of_pairs(spectrum, coefficients, rows, settings=settings)
    return inner[:, pair]


def champ_of_pairs(
    spectrum: Spectrum,
    coefficients: np.ndarray,
    rows: np.ndarray | None = None,
    *,
    settings: GradientSettings = GradientSettings(),
) -> tuple[np.ndarray, np.ndarray]:
    """Compute `carre_du_champ` for each pair of functions once.

    Returns inner (n_rows, r * (r + 1), pair (r, r).
    """
    i, j = np.triu_indices(coefficients.shape[1])
    eigenvalues = spectrum.eigenvalues @ coefficients**2
    total = eigenvalues[i] + eigenvalues[j]
    time = settings.heat_time / eigenvalues.max()
    found, _ = spectrum.triple_products(coefficients[:, i], coefficients[:, j])
    decay = np.exp(-time * spectrum.eigenvalues)
    difference = decay[:, None] - np.exp(-time * total)
    combination = difference * found / (2 * time)
    if rows is None:
        inner = spectrum.combined(combination)
    else:
        inner = spectrum.functions[rows] @ combination
    pair = np.empty((len(eigenvalues), len(eigenvalues)), dtype=int)
    pair[i, j] = pair[j, i] = np.arange(len(i))
    return inner, pair


def _drawn_rows(n_samples: int, n_rows: int, rng: np.random.Generator) -> np.ndarray:
    if n_samples <= n_rows:
        return np.arange(n_samples)
    return np.sort(rng.choice(n_samples, n_rows, replace=False))


def _share(weights: np.ndarray) -> np.ndarray:
    return weights / weights.sum()


def _coordinates(
    spectrum: Spectrum, samples: np.ndarray | None, settings: GradientSettings
) -> np.ndarray:
    """Return smooth coordinates in which gradients are taken, (n, n_coordinates)."""
    if samples is None:
        return _damped_functions(spectrum, settings)
    coefficients = _projected(spectrum, samples, settings.block_size)
    left, strength, _ = np.linalg.svd(coefficients, full_matrices=False)
    variance = strength**2
    short = np.cumsum(variance) < settings.kept_variance * variance.sum()
    count = min(int(short.sum()) + 1, settings.max_coordinates)
    main = left[:, :count] * strength[:count]
    return spectrum.combined(beside_constant(main))


def _damped_functions(spectrum: Spectrum, settings: GradientSettings) -> np.ndarray:
    count = settings.max_coordinates
    functions = spectrum.functions[:, 1 : 1 + count]
    eigenvalues = spectrum.eigenvalues[1:]
    reference = eigenvalues[: settings.damping_function][-1]
    return functions * np.exp(-eigenvalues[:count] / reference)


def _projected(spectrum: Spectrum, samples: np.ndarray, block_size: int) -> np.ndarray:
    """Return the samples' coefficients in the functions, (n_functions - 1, n_features).

    A block of rows at a time: images are never copied whole.
    """
    functions = spectrum.functions[:, 1:]
    mean = samples.mean(axis=0, dtype=np.float64)
    n_samples, n_features = samples.shape
    coefficients = np.zeros((functions.shape[1], n_features))
    for rows in gen_batches(n_samples, max(1, block_size // n_features)):
        centred = samples[rows] - mean
        weighted = spectrum.weights[rows, None] * centred
        coefficients += functions[rows].T @ weighted
    return coefficients


def _steps(affinity: Affinity, rows: np.ndarray) -> sp.csr_array:
    """Return the walk's probabilities from some samples to all."""
    steps = affinity.rows(rows) @ sp.diags_array(affinity.pull)
    scale = sp.diags_array(1 / steps.sum(axis=1))
    return sp.csr_array(scale @ steps)


def _regression(
    coordinates: np.ndarray, spectrum: Spectrum, steps: sp.csr_array, *, ridge: float
) -> np.ndarray:
    """Return slopes along the coordinates, (n_rows, n_coordinates, n_functions - 1)."""
    near, weight = _padded(steps)
    around = coordinates[near]
    around -= np.einsum("xk,xkp->xp", weight, around)[:, None]
    weighted = around * weight[:, :, None]
    weighted = weighted.transpose(0, 2, 1)
    spread = weighted @ around
    joint = spectrum.local_products(near, weighted)[:, :, 1:]
    extent = np.linalg.eigvalsh(spread)[:, -1]
    # A sample that has no neighbours but copies has no extent.
    penalty = ridge * np.maximum(extent, 1e-6 * extent.max())
    regular = spread + penalty[:, None, None] * np.eye(spread.shape[1])
    # Inverses first: each of these small matrices has many right-hand sides.
    return np.linalg.inv(regular) @ joint


def _padded(steps: sp.csr_array) -> tuple[np.ndarray, np.ndarray]:
    """Return neighbours of each row and the probabilities of steps there, (n_rows, k).

    Rows with fewer neighbours are padded with steps of probability 0.
    """
    count = np.diff(steps.indptr)
    there = np.arange(count.max()) < count[:, None]
    near = np.zeros(there.shape, dtype=int)
    weight = np.zeros(there.shape)
    near[there] = steps.indices
    weight[there] = steps.data
    return near, weight


def _average(coordinates: np.ndarray, n_averaged: int) -> sp.csr_array:
    """Return the matrix of the mean over nearest rows."""
    n_rows = len(coordinates)
    k = min(n_averaged, n_rows)
    near = KDTree(coordinates).query(coordinates, k)[1]
    shares = np.full(near.size, 1 / k)
    pointers = np.arange(0, near.size + 1, k)
    entries = (shares, near.ravel(), pointers)
    return sp.csr_array(entries, shape=(n_rows, n_rows))
