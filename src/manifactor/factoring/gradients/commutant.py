"""The commutant of the carre du champ: how many blocks of functions are orthogonal.

A carre du champ is a symmetric matrix of inner products of gradients at every sample. If the
gradients of two blocks of functions are orthogonal everywhere, one rotation of the functions makes
all these matrices block-diagonal.
"""

import numpy as np


def commutant(champ: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Compute the symmetric matrices that nearly commute with a carre du champ.

    Q(X) = mean |[X, G]|^2 over its mean on traceless X: near 0 where blocks of functions have
    orthogonal gradients everywhere, 1 for a sphere of any dimension and for structureless noise.

    Shapes: champ (n_rows, r, r), weights (n_rows,) -> q (r (r + 1), elements (r (r + 1).
    """
    n_rows, r, _ = champ.shape
    basis = _symmetric_basis(r)
    flat = champ.reshape(n_rows, -1)
    # Q needs G only through its second moments, so its cost does not grow with the rows.
    weighted = flat * weights[:, None]
    moments = (weighted.T @ flat).reshape(r, r, r, r)
    q, vectors = np.linalg.eigh(_commutator_form(basis, moments))
    # A unit matrix of trace sqrt(r) is the identity; rounding may hide it among other elements with
    # Q near 0.
    traces = np.abs(np.einsum("pq,paa->q", vectors, basis))
    identity_first = np.argsort(traces < 0.99 * np.sqrt(r), kind="stable")
    q, vectors = q[identity_first], vectors[:, identity_first]
    elements = np.einsum("pq,pab->qab", vectors, basis)
    return q / q[1:].mean(), elements


def _commutator_form(basis: np.ndarray, moments: np.ndarray) -> np.ndarray:
    """Return the matrix of mean |[X, G]|^2 = 2 tr(X X G G) - 2 tr(X G X G)."""
    square = np.einsum("abbc->ac", moments)
    form = 2 * np.einsum("pab,qbc,ca->pq", basis, basis, square, optimize=True)
    sandwich = np.einsum("pab,bcda->pcd", basis, moments, optimize=True)
    flat = basis.reshape(len(basis), -1)
    form -= 2 * sandwich.reshape(len(basis), -1) @ flat.T
    return (form + form.T) / 2


def _symmetric_basis(r: int) -> np.ndarray:
    """Return an orthonormal basis of the symmetric matrices, (r (r + 1) / 2, r, r)."""
    i, j = np.triu_indices(r)
    element = np.arange(len(i))
    basis = np.zeros((len(i), r, r))
    size = np.where(i == j, 1.0, 0.5**0.5)
    basis[element, i, j] = size
    basis[element, j, i] = size
    return basis


def squared_cosine(champ: np.ndarray, weights: np.ndarray, labels: np.ndarray) -> float:
    """Return the largest mean squared cosine between the gradients of two blocks.

    Shapes: champ (n_rows, r, r), weights (n_rows,), labels (r,).
    """
    n_blocks = labels.max() + 1
    inside = [champ[:, labels == a][:, :, labels == a] for a in range(n_blocks)]
    longest = [np.linalg.eigvalsh(block)[:, -1] for block in inside]
    largest = 0.0
    for a in range(n_blocks):
        for b in range(a):
            between = champ[:, labels == a][:, :, labels == b]
            across = (between**2).sum(axis=(1, 2))
            lengths = weights @ (longest[a] * longest[b])
            largest = max(largest, float(weights @ across / lengths))
    return largest


def unit_energy(
    champ: np.ndarray, weights: np.ndarray, *, least_energy: float = 1e-9
) -> np.ndarray:
    """Return the carre du champ scaled to mean energy 1 of every function.

    Shapes: champ (n_rows, r, r), weights (n_rows,).
    """
    energy = np.einsum("x,xaa->a", weights, champ)
    floor = least_energy * np.abs(energy).max()
    scale = np.maximum(energy, floor) ** -0.5
    return champ * scale[:, None] * scale
