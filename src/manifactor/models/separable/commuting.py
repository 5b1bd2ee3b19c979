"""Operators that commute with the Laplacian: Killing tensors and Killing fields, from samples.

A symmetric tensor K gives the operator -div(K grad), a vector field v the operator v . grad. Where
they commute with the Laplacian, the eigenvectors of K are the directions of coordinates that
separate (Staeckel, 1891; Eisenhart, 1934), and v is a continuous symmetry. Between eigenfunctions
with eigenvalues l, [K, L]_kl = (l_l - l_k) K_kl; the least relative sizes mu of this are sought.
"""

from dataclasses import dataclass
from itertools import combinations_with_replacement, product

import numpy as np

from manifactor.operators.geometry import Geometry
from manifactor.statistics import inverse_root

# Columns of smoothed samples up to which fields are polynomials in them; with more, in functions.
POLYNOMIAL_COLUMNS = 4
# Combinations of fields whose matrix elements are smaller than this share, squared, of the largest
# do not act on functions: tensors across the manifold, or fields that hardly turn the lowest.
LEAST_SIZE, LEAST_TURN = 1e-4, 1e-3


@dataclass(frozen=True)
class Fields:
    """Fields of one kind on the rows of a geometry, by how little they fail to commute."""

    mu: np.ndarray  # (r,): ascending squared sizes of commutators, relative to the operators'
    coefficients: np.ndarray  # (r, n_polynomials, ...): of each field in the polynomials
    polynomials: np.ndarray  # (n_rows, n_polynomials)

    def at_rows(self, number: int) -> np.ndarray:
        """Return one of the fields at the rows."""
        return np.tensordot(self.polynomials, self.coefficients[number], axes=1)


def killing_tensors(geometry: Geometry, dimension: int) -> Fields:
    """Return the tensors that nearly commute with the Laplacian; the first is the metric.

    Shapes: a tensor at rows (n_rows, p, p).
    """
    axes, columns = _frame(geometry)
    p = columns.shape[1]
    # The lowest 18 of a shell do not vary along its radius.
    n_low = 35 if dimension > 2 else 18 if p < POLYNOMIAL_COLUMNS else 30
    eigenvalues = geometry.eigenvalues[:n_low]
    slopes = axes[:, :, : len(eigenvalues)]
    polynomials = _polynomials(columns, 2)
    pairs = list(combinations_with_replacement(range(p), 2))
    weighted = geometry.row_weights[:, None] * polynomials
    products = product(weighted.T[:, :, None], pairs)
    elements = np.array([(slopes[:, a] * weight).T @ slopes[:, b] for weight, (a, b) in products])
    elements = (elements + elements.transpose(0, 2, 1)) / 2
    mu, mixed = _least_commutators(elements, eigenvalues, 0.5, LEAST_SIZE)
    tensors = np.zeros((len(mu), polynomials.shape[1], p, p))
    row, column = np.array(pairs).T
    tensors[:, :, row, column] = mixed.T.reshape(len(mu), -1, len(pairs)) / 2
    return Fields(mu, tensors + tensors.transpose(0, 1, 3, 2), polynomials)


def killing_fields(geometry: Geometry, n_lowest: int, n_moved: int = 18) -> Fields:
    """Return the vector fields that nearly commute with the Laplacian on `n_moved` functions.

    They are sums of phi_i grad phi_j - phi_j grad phi_i over pairs of the lowest functions: along
    the manifold and along its boundary everywhere, and free of divergence where both eigenvalues
    are one. Fields at rows, (n_rows, n_lowest), are combinations of the gradients of the lowest
    functions.
    """
    eigenvalues = geometry.eigenvalues[:n_moved]
    n_low = len(eigenvalues)
    functions = geometry.spectrum.functions[geometry.rows, 1 : 1 + n_low]
    gradients = geometry.gradients[:, :, :n_low]
    weighted = (geometry.row_weights[:, None] * functions).T
    lowest = functions[:, :n_lowest]
    elements = np.empty((n_lowest, n_lowest, n_low, n_low))
    for second in range(n_lowest):
        slopes = (gradients[:, :, second, None] * gradients).sum(axis=1)
        for first in range(n_lowest):
            elements[first, second] = (weighted * lowest[:, first]) @ slopes
    i, j = np.triu_indices(n_lowest, 1)
    scale = 1 / np.sqrt(eigenvalues[i] * eigenvalues[j])
    turning = (elements[i, j] - elements[j, i]) * scale[:, None, None]
    mu, mixed = _least_commutators(turning, eigenvalues, 0.25, LEAST_TURN)
    coefficients = np.zeros((len(mu), n_lowest, n_lowest))
    coefficients[:, i, j] = (mixed * scale[:, None]).T
    return Fields(mu, coefficients - coefficients.transpose(0, 2, 1), lowest)


def killing_motions(geometry: Geometry, n_moved: int) -> Fields:
    """Return the motions of the space of the samples that nearly commute with the Laplacian.

    Where the symmetries are motions, these few fields tell them better than those of functions do.

    Shapes: a field at rows (n_rows, p).
    """
    eigenvalues = geometry.eigenvalues[:n_moved]
    n_low = len(eigenvalues)
    columns = geometry.coordinates[geometry.rows]
    p = columns.shape[1]
    # Those of the constant are shifts, those of a column turns.
    polynomials = _polynomials(columns / np.sqrt((columns**2).mean()), 1)
    first, second = np.triu_indices(1 + p, 1)
    motions = np.zeros((len(first), 1 + p, 1 + p))
    motions[range(len(first)), first, second] = 1
    motions -= motions.transpose(0, 2, 1)
    functions = geometry.spectrum.functions[geometry.rows, 1 : 1 + n_low]
    weighted = (geometry.row_weights[:, None] * functions).T
    slopes = geometry.gradients[:, :, :n_low].transpose(1, 0, 2)
    elements = np.array([[(weighted * each) @ along for along in slopes] for each in polynomials.T])
    moving = np.tensordot(motions[:, :, 1:], elements, axes=2)
    moving = (moving - moving.transpose(0, 2, 1)) / 2
    mu, mixed = _least_commutators(moving, eigenvalues, 0.25, LEAST_TURN)
    return Fields(mu, np.tensordot(mixed.T, motions[:, :, 1:], axes=1), polynomials)


def commutator_of(geometry: Geometry, vectors: np.ndarray) -> float:
    """Return mu of all products of fields, (n_rows, p, r), without their shares of the metric."""
    eigenvalues = geometry.eigenvalues[:18]
    slopes = geometry.gradients[:, :, : len(eigenvalues)] / np.sqrt(eigenvalues)
    weights = geometry.row_weights[:, None]
    along = np.einsum("xpk,xpr->rxk", slopes, vectors)
    metric = np.einsum("xpk,xpl->kl", weights[:, :, None] * slopes, slopes, optimize=True)
    row, column = eigenvalues[:, None], eigenvalues
    size = commutator = 0.0
    for i, j in np.ndindex(len(along), len(along)):
        elements = (weights * along[i]).T @ along[j]
        elements = (elements + elements.T) / 2
        elements -= (elements * metric).sum() / (metric**2).sum() * metric
        size += (elements**2).sum()
        commutator += ((elements * (row - column) / (row + column)) ** 2).sum()
    return float(commutator / size)


def _frame(geometry: Geometry) -> tuple[np.ndarray, np.ndarray]:
    """Gradients along the axes that tensors are written in, and columns, (n_rows, p).

    The gradients are (n_rows, p, r). Axes and columns are smooth coordinates where they are few. A
    shape with a boundary has coordinates that are long series of eigenfunctions.
    """
    gradients = geometry.gradients
    if gradients.shape[1] <= POLYNOMIAL_COLUMNS:
        columns = geometry.coordinates[geometry.rows]
        return gradients, columns / np.sqrt((columns**2).mean(axis=0).max())
    lowest = gradients[:, :, :4]
    functions = geometry.spectrum.functions[geometry.rows, 1:5]
    return np.einsum("xpi,xpk->xik", lowest, gradients, optimize=True), functions


def _polynomials(columns: np.ndarray, degree: int) -> np.ndarray:
    """Products of at most `degree` columns, the constant first, (n_rows, n_polynomials)."""
    out = [np.ones(len(columns))]
    for size in range(1, degree + 1):
        chosen = combinations_with_replacement(columns.T, size)
        out += [np.prod(factors, axis=0) for factors in chosen]
    return np.column_stack(out)


def _least_commutators(
    elements: np.ndarray, eigenvalues: np.ndarray, power: float, least: float
) -> tuple[np.ndarray, np.ndarray]:
    """Combinations of operators whose commutators with the Laplacian are least.

    Elements, (n_basis, N, N), count in units of the eigenvalues to `power`, so that high functions
    do not outweigh the low ones, which are more accurate. Combinations whose squared size is less
    than the share `least` of the largest are left out. Returns mu, (r,), and combinations,
    (n_basis, r).
    """
    row, column = eigenvalues[:, None], eigenvalues
    size = (elements / (row * column) ** power).reshape(len(elements), -1)
    commutator = size * ((row - column) / (row + column)).ravel()
    white = inverse_root(size @ size.T, least)
    mu, mixed = np.linalg.eigh(white.T @ (commutator @ commutator.T) @ white)
    return mu, white @ mixed
