"""Operators that commute with the Laplacian: Killing tensors and Killing fields, from samples.

A symmetric tensor K gives the operator -div(K grad), a vector field v the operator v . grad. Where
they commute with the Laplacian, K is a Killing tensor, whose eigenvectors are the directions of
coordinates that separate (Staeckel, 1891; Eisenhart, 1934), and v is a continuous symmetry. Both
are sought among polynomial fields, by their matrix elements between the lowest eigenfunctions: with
eigenvalues l, [K, L]_kl = (l_l - l_k) K_kl. The least relative sizes mu of this commutator are a
small eigenproblem.
"""

from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np

from manifactor.factoring.gradients.geometry import Geometry

# Columns of smoothed samples up to which fields are polynomials in them; with more, in functions.
MOST_COLUMNS = 4
# Functions that fields are polynomials in where the columns are too many.
FIELD_FUNCTIONS = 4
# Combinations of fields whose matrix elements are smaller than this share, squared, of the largest
# do not act on functions: fields across the manifold.
LEAST_SIZE = 1e-4


@dataclass(frozen=True)
class Fields:
    """Fields of one kind on the rows of a geometry, by how little they fail to commute."""

    mu: np.ndarray  # (r,): ascending squared sizes of commutators, relative to the operators'
    coefficients: np.ndarray  # (r, n_polynomials, ...): of each field in the polynomials
    polynomials: np.ndarray  # (n_rows, n_polynomials)

    def at_rows(self, number: int) -> np.ndarray:
        """Return one of the fields at the rows."""
        return np.tensordot(self.polynomials, self.coefficients[number], axes=1)


def killing_tensors(geometry: Geometry, coordinates: np.ndarray) -> Fields:
    """Return the tensors that nearly commute with the Laplacian; the first is the metric.

    Shapes: coordinates (n_distinct, n_coordinates) -> a tensor at rows (n_rows, p, p).
    """
    axes, columns = _frame(geometry, coordinates)
    p = columns.shape[1]
    n_low = 18 if p < MOST_COLUMNS else 30
    eigenvalues = geometry.eigenvalues[:n_low]
    slopes = axes[:, :, : len(eigenvalues)]
    polynomials = _polynomials(columns, 2)
    pairs = list(combinations_with_replacement(range(p), 2))
    weighted = geometry.row_weights[:, None] * polynomials
    elements = np.array(
        [
            (slopes[:, a] * weight[:, None]).T @ slopes[:, b]
            for weight in weighted.T
            for a, b in pairs
        ]
    )
    elements = (elements + elements.transpose(0, 2, 1)) / 2
    mu, mixed = _least_commutators(elements, eigenvalues, 0.5)
    tensors = np.zeros((len(mu), polynomials.shape[1], p, p))
    of_pair = mixed.T.reshape(len(mu), polynomials.shape[1], len(pairs))
    for pair, (a, b) in enumerate(pairs):
        tensors[:, :, a, b] += of_pair[:, :, pair] / 2
        tensors[:, :, b, a] += of_pair[:, :, pair] / 2
    return Fields(mu, tensors, polynomials)


def killing_fields(geometry: Geometry, coordinates: np.ndarray) -> Fields:
    """Return the vector fields that nearly commute with the Laplacian.

    Shapes: coordinates (n_distinct, n_coordinates) -> a field at rows (n_rows, p).
    """
    axes, columns = _frame(geometry, coordinates)
    p = columns.shape[1]
    eigenvalues = geometry.eigenvalues[:18]
    n_low = len(eigenvalues)
    slopes = axes[:, :, :n_low]
    functions = geometry.spectrum.functions[geometry.rows, 1 : 1 + n_low]
    polynomials = _polynomials(columns, 1)
    weighted = geometry.row_weights[:, None] * polynomials
    elements = np.array(
        [(functions * weight[:, None]).T @ slopes[:, a] for weight in weighted.T for a in range(p)]
    )
    mu, mixed = _least_commutators(elements, eigenvalues, 0.25)
    return Fields(mu, mixed.T.reshape(len(mu), polynomials.shape[1], p), polynomials)


def _frame(geometry: Geometry, coordinates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Gradients along the axes of fields, (n_rows, p, r), and columns, (n_rows, p).

    Axes and columns are smooth coordinates where they are few. A shape with a boundary has
    coordinates that are long series of eigenfunctions.
    """
    gradients = geometry.gradients
    if gradients.shape[1] <= MOST_COLUMNS:
        columns = coordinates[geometry.rows]
        return gradients, columns / np.sqrt((columns**2).mean(axis=0).max())
    lowest = gradients[:, :, :FIELD_FUNCTIONS]
    functions = geometry.spectrum.functions[geometry.rows, 1 : 1 + FIELD_FUNCTIONS]
    return np.einsum("xpi,xpk->xik", lowest, gradients, optimize=True), functions


def _polynomials(columns: np.ndarray, degree: int) -> np.ndarray:
    """Products of at most `degree` columns, the constant first, (n_rows, n_polynomials)."""
    out = [np.ones(len(columns))]
    for size in range(1, degree + 1):
        chosen = combinations_with_replacement(columns.T, size)
        out += [np.prod(factors, axis=0) for factors in chosen]
    return np.column_stack(out)


def _least_commutators(
    elements: np.ndarray, eigenvalues: np.ndarray, power: float
) -> tuple[np.ndarray, np.ndarray]:
    """Combinations of operators whose commutators with the Laplacian are least.

    Elements, (n_basis, N, N), count in units of the eigenvalues to `power`, so that high functions
    do not outweigh the low ones, which are more accurate. Returns mu, (r,), and combinations,
    (n_basis, r).
    """
    row, column = eigenvalues[:, None], eigenvalues
    size = (elements / (row * column) ** power).reshape(len(elements), -1)
    commutator = size * ((row - column) / (row + column)).ravel()
    strength, axes = np.linalg.eigh(size @ size.T)
    acts = strength > LEAST_SIZE * strength[-1]
    white = axes[:, acts] / np.sqrt(strength[acts])
    mu, mixed = np.linalg.eigh(white.T @ (commutator @ commutator.T) @ white)
    return mu, white @ mixed
