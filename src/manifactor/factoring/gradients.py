"""Gradients of the functions: where they point, which of them are orthogonal, and how they fall into blocks."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.spatial import KDTree
from sklearn.utils import gen_batches

from manifactor.spectral.kernel import Affinity
from manifactor.spectral.spectrum import Spectrum

ROWS = 1000  # samples at which gradients are taken
COORDINATES = 20  # most directions of the data that gradients may point in
KEPT = 0.999  # share of the smoothed data's variance in those directions
RIDGE = 0.1  # of the local spread: directions across the manifold are noise and get no gradient
AVERAGED = 12  # neighbouring gradients that say together which way a block points
DIRECTION = 0.12  # least share of a block's energy in one of its directions
BLOCK = 2**20  # numbers of the samples that are worked on at a time
HEAT_TIME = (
    0.1  # of the highest function's own time, at which the carre du champ is taken
)


@dataclass(frozen=True)
class Geometry:
    """A spectrum with the gradients of its functions at some of the samples.

    Functions are given by their coefficients, (n_functions - 1, r): the constant function has no gradient.

    Attributes
    ----------
    spectrum : Spectrum
        On the distinct samples.
    rows : ndarray of shape (n_rows,)
        The samples at which gradients were taken.
    gradients : ndarray of shape (n_rows, n_coordinates, n_functions - 1)
        Scaled so that the mean square of each is the function's eigenvalue.
    average : csr_array of shape (n_rows, n_rows)
        Mean over neighbouring rows.
    """

    spectrum: Spectrum
    rows: np.ndarray
    gradients: np.ndarray
    average: sp.csr_array

    @property
    def eigenvalues(self) -> np.ndarray:
        """Of the functions, the constant left out; positive also where weak links make them 0 to rounding."""
        return np.maximum(
            self.spectrum.eigenvalues[1:], 1e-9 * self.spectrum.eigenvalues[-1]
        )

    @property
    def resolution(self) -> float:
        """Largest eigenvalue that the kernel resolves."""
        return 0.5 / self.spectrum.step

    @property
    def row_weights(self) -> np.ndarray:
        """Weights of the rows; they sum to 1."""
        return self.spectrum.weights[self.rows] / self.spectrum.weights[self.rows].sum()

    def rayleigh(self, coefficients: np.ndarray) -> np.ndarray:
        """Eigenvalues of unit combinations of functions, (r,)."""
        return self.eigenvalues @ coefficients**2

    def values(self, coefficients: np.ndarray) -> np.ndarray:
        """Combinations of functions at the samples, (n_samples, r)."""
        return self.spectrum.combined(beside_constant(coefficients))

    def champ(self, coefficients: np.ndarray) -> np.ndarray:
        """Their carre du champ at the rows, (n_rows, r, r)."""
        return carre_du_champ(self.spectrum, beside_constant(coefficients), self.rows)

    def captured(self, coefficients: np.ndarray) -> float:
        """Smallest share of the product of two combinations of functions that lies inside the spectrum."""
        i, j = np.triu_indices(coefficients.shape[1])
        found, squares = self.products(coefficients[:, i], coefficients[:, j])
        return float(((found**2).sum(axis=0) / squares).min())

    def products(
        self, left: np.ndarray, right: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """As `Spectrum.triple_products`."""
        return self.spectrum.triple_products(
            beside_constant(left), beside_constant(right)
        )


def beside_constant(coefficients: np.ndarray) -> np.ndarray:
    """Coefficients in the whole spectrum, of functions that have no constant part."""
    return np.vstack([np.zeros((1, coefficients.shape[1])), coefficients])


def measure_geometry(
    spectrum: Spectrum,
    affinity: Affinity,
    samples: np.ndarray | None,
    *,
    rng: np.random.Generator,
) -> Geometry:
    """Gradients by local regression of the functions on the smoothed samples.

    Parameters
    ----------
    spectrum : Spectrum
        On the distinct samples.
    affinity : Affinity
        The walk whose steps are the neighbourhoods.
    samples : ndarray of shape (n_distinct, n_features) or None
        None where only distances are known: the functions themselves, damped by diffusion, then serve as coordinates.
    """
    n = len(spectrum.weights)
    rows = np.sort(rng.choice(n, ROWS, replace=False)) if n > ROWS else np.arange(n)
    coordinates = _coordinates(spectrum, samples)
    weights = spectrum.weights[rows] / spectrum.weights[rows].sum()
    gradients = _regression(coordinates, spectrum, _steps(affinity, rows))
    energy = np.einsum("x,xpa,xpa->a", weights, gradients, gradients, optimize=True)
    gradients *= np.sqrt(spectrum.eigenvalues[1:] / np.maximum(energy, 1e-300))
    return Geometry(spectrum, rows, gradients, _average(coordinates[rows]))


def carre_du_champ(
    spectrum: Spectrum, coefficients: np.ndarray, rows: np.ndarray | None = None
) -> np.ndarray:
    """Inner products of the gradients of combinations of functions at some samples or all, (n_rows, r, r).

    Gamma(f, g) = (f Lg + g Lf - L(fg)) / 2 taken at a small positive time: zero where the product of f and g is an
    eigenfunction whose eigenvalue is the sum of theirs. No derivative is taken, so it is less noisy than gradients for
    low functions; it needs a spectrum that reaches to the products.
    """
    i, j = np.triu_indices(coefficients.shape[1])
    eigenvalues = spectrum.eigenvalues @ coefficients**2
    total, time = eigenvalues[i] + eigenvalues[j], HEAT_TIME / eigenvalues.max()
    found, _ = spectrum.triple_products(coefficients[:, i], coefficients[:, j])
    decay = np.exp(-time * spectrum.eigenvalues)[:, None] - np.exp(-time * total)
    combination = decay * found / (2 * time)
    inner = (
        spectrum.combined(combination)
        if rows is None
        else spectrum.functions[rows] @ combination
    )
    champ = np.empty((len(inner), len(eigenvalues), len(eigenvalues)))
    champ[:, i, j] = champ[:, j, i] = inner
    return champ


def commutant(champ: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Symmetric matrices X in order of how well they commute with all of `champ`, (n, r, r), the identity first.

    Q(X) = mean |[X, G]|^2 over its mean on traceless X: near 0 where blocks of functions have orthogonal gradients
    everywhere, 1 for a sphere of any dimension and for structureless noise.

    Returns
    -------
    q : ndarray of shape (r (r + 1) / 2,)
    elements : ndarray of shape (r (r + 1) / 2, r, r)
    """
    n, r, _ = champ.shape
    champ = champ.reshape(n, -1)
    moments = ((champ * weights[:, None]).T @ champ).reshape(r, r, r, r)
    basis = _symmetric_basis(r)
    square = np.einsum("abbc->ac", moments)
    form = 2 * np.einsum("pab,qbc,ca->pq", basis, basis, square, optimize=True)
    sandwich = np.einsum("pab,bcda->pcd", basis, moments, optimize=True)
    form -= 2 * sandwich.reshape(len(basis), -1) @ basis.reshape(len(basis), -1).T
    q, vectors = np.linalg.eigh((form + form.T) / 2)
    traces = np.abs(np.einsum("pq,paa->q", vectors, basis))
    identity_first = np.argsort(traces < 0.99 * np.sqrt(r), kind="stable")
    q, vectors = q[identity_first], vectors[:, identity_first]
    return q / q[1:].mean(), np.einsum("pq,pab->qab", vectors, basis)


def energy_along(geometry: Geometry, block: np.ndarray) -> np.ndarray:
    """Energy of all functions along the gradients of a block, (n_functions - 1, n_functions - 1).

    The block's gradients span its directions at every row; the matrix is the mean inner product of the functions'
    gradients after projection on them. It is the factor's own Laplacian if the block is pure.
    """
    strength, axes = _directions(geometry, block)
    trust = np.sqrt(
        strength / (strength + 0.05 * strength.mean())
    )  # a block points nowhere where its gradients vanish
    along = (axes * trust[:, None]).transpose(0, 2, 1) @ geometry.gradients
    along *= np.sqrt(geometry.row_weights)[:, None, None]
    along = along.reshape(-1, along.shape[2])
    return along.T @ along


def count_directions(geometry: Geometry, block: np.ndarray) -> int:
    """How many directions the gradients of a block span at a sample: the factor's dimension."""
    return _directions(geometry, block)[0].shape[1]


def _directions(geometry: Geometry, block: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Strength, (n_rows, d), and orthonormal axes, (n_rows, p, d), of what the block's gradients span at every row."""
    spanned = geometry.gradients @ (block / np.sqrt(geometry.rayleigh(block)))
    outer = spanned @ spanned.transpose(0, 2, 1)
    outer = (geometry.average @ outer.reshape(len(outer), -1)).reshape(outer.shape)
    strength, axes = np.linalg.eigh(outer)
    share = strength.mean(axis=0)
    count = max(1, int((share > DIRECTION * share.sum()).sum()))
    return np.maximum(strength[:, -count:], 0), axes[:, :, -count:]


def cosines(champ: np.ndarray, weights: np.ndarray, labels: np.ndarray) -> float:
    """Largest mean squared cosine between the gradients of two blocks of functions, from their carre du champ."""
    n_blocks = labels.max() + 1
    top = [
        np.linalg.eigvalsh(champ[:, labels == a][:, :, labels == a])[:, -1]
        for a in range(n_blocks)
    ]
    largest = 0.0
    for a in range(n_blocks):
        for b in range(a):
            across = (champ[:, labels == a][:, :, labels == b] ** 2).sum(axis=(1, 2))
            largest = max(
                largest, float(weights @ across / (weights @ (top[a] * top[b])))
            )
    return largest


def normalised(champ: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The same with mean energy 1 of every function."""
    energy = np.einsum("x,xaa->a", weights, champ)
    scale = (
        np.maximum(energy, 1e-9 * np.abs(energy).max()) ** -0.5
    )  # a positive time may leave a high function none
    return champ * scale[:, None] * scale


def _symmetric_basis(r: int) -> np.ndarray:
    i, j = np.triu_indices(r)
    basis = np.zeros((len(i), r, r))
    basis[np.arange(len(i)), i, j] = basis[np.arange(len(i)), j, i] = np.where(
        i == j, 1.0, 0.5**0.5
    )
    return basis


def _coordinates(spectrum: Spectrum, samples: np.ndarray | None) -> np.ndarray:
    """Smooth coordinates in which gradients are taken, (n, n_coordinates)."""
    functions, eigenvalues = spectrum.functions[:, 1:], spectrum.eigenvalues[1:]
    if samples is None:
        return functions[:, :COORDINATES] * np.exp(
            -eigenvalues[:COORDINATES] / eigenvalues[: 2 * COORDINATES][-1]
        )
    mean, coefficients = (
        samples.mean(axis=0, dtype=np.float64),
        np.zeros((functions.shape[1], samples.shape[1])),
    )
    for rows in gen_batches(len(samples), max(1, BLOCK // samples.shape[1])):
        coefficients += functions[rows].T @ (
            spectrum.weights[rows, None] * (samples[rows] - mean)
        )
    left, strength, _ = np.linalg.svd(coefficients, full_matrices=False)
    enough = int((np.cumsum(strength**2) < KEPT * (strength**2).sum()).sum()) + 1
    count = min(enough, COORDINATES)
    return spectrum.combined(beside_constant(left[:, :count] * strength[:count]))


def _steps(affinity: Affinity, rows: np.ndarray) -> sp.csr_array:
    """The walk's probabilities from some samples to all."""
    steps = affinity.rows(rows) @ sp.diags_array(affinity.pull)
    return sp.csr_array(sp.diags_array(1 / steps.sum(axis=1)) @ steps)


def _regression(
    coordinates: np.ndarray, spectrum: Spectrum, steps: sp.csr_array
) -> np.ndarray:
    """Slopes of the functions along the coordinates in the neighbourhood of each row, (n_rows, p, n_functions - 1)."""
    near, weight = _padded(steps)
    around = coordinates[near]
    around -= np.einsum("xk,xkp->xp", weight, around)[:, None]
    weighted = (around * weight[:, :, None]).transpose(0, 2, 1)
    spread, joint = weighted @ around, spectrum.local_products(near, weighted)[:, :, 1:]
    extent = np.linalg.eigvalsh(spread)[:, -1]
    ridge = RIDGE * np.maximum(
        extent, 1e-6 * extent.max()
    )  # a sample with no neighbours but copies has no extent
    return np.linalg.solve(
        spread + ridge[:, None, None] * np.eye(spread.shape[1]), joint
    )


def _padded(steps: sp.csr_array) -> tuple[np.ndarray, np.ndarray]:
    """Neighbours of each row and the probabilities of steps to them, (n_rows, k), padded with improbable ones."""
    count = np.diff(steps.indptr)
    there = np.arange(count.max()) < count[:, None]
    near, weight = np.zeros(there.shape, dtype=int), np.zeros(there.shape)
    near[there], weight[there] = steps.indices, steps.data
    return near, weight


def _average(coordinates: np.ndarray) -> sp.csr_array:
    k = min(AVERAGED, len(coordinates))
    near = KDTree(coordinates).query(coordinates, k)[1]
    indptr = np.arange(0, near.size + 1, k)
    return sp.csr_array(
        (np.full(near.size, 1 / k), near.ravel(), indptr), shape=(len(near), len(near))
    )
