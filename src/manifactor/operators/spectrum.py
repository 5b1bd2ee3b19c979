"""The record of eigenvalues and eigenfunctions of a manifold's Laplacian."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.utils import gen_batches

from manifactor._support.errors import Warned
from manifactor._support.parameters import Choice
from manifactor._support.threads import map_panels
from manifactor.operators.engines.gpu import from_tensor, local_products, on_device, triple_products
from manifactor.operators.neighbors import NeighborGraph, chosen

# The sampling error of an eigenvalue, relative to it, is about this over the root of the number of
# samples, as was measured on random samples.
SAMPLING_ERROR = 4.0


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues and eigenfunctions of the Laplacian, lowest first.

    The constant function is at index 0.

    Attributes
    ----------
    eigenvalues : ndarray of shape (n_functions,)
        Ascending, in inverse squared units of the data.
    functions : ndarray of shape (n_samples, n_functions)
        Each has mean square 1 under `weights`; any two are orthogonal.
    weights : ndarray of shape (n_samples,)
        Stationary weights of the random walk; they sum to 1.
    residuals : ndarray of shape (n_functions,)
        Norm of S v - s v for the unit eigenvectors of the normalised affinity S.
    step : float
        Diffusion time of one step of the walk: its eigenvalues are exp(-step * eigenvalues).
    solver : Choice
        Name of the solver that was used, and the reason.
    resident : Tensor of shape (n_samples, n_functions) or None
        The functions on the device that they were computed on.
    warned : tuple of Warned
        What the solver did not reach.

    Examples
    --------
    >>> from manifactor import DiffusionMap, datasets
    >>> X, truth = datasets.sample("torus", 1000, random_state=0)
    >>> DiffusionMap(n_functions=10, random_state=0).fit(X).spectrum_.functions.shape
    (1000, 10)
    """

    eigenvalues: np.ndarray
    functions: np.ndarray
    weights: np.ndarray
    residuals: np.ndarray
    step: float
    solver: Choice
    resident: Any = field(default=None, repr=False, compare=False)
    warned: tuple[Warned, ...] = field(default=(), repr=False, compare=False)

    def __repr__(self) -> str:
        n_samples, n_functions = self.functions.shape
        return (
            f"Spectrum({n_functions} functions of {n_samples} samples, eigenvalues up "
            f"to {self.eigenvalues[-1]:.4g})"
        )

    def triple_products(self, left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return inner products of all functions with products of p pairs of combinations.

        Also those of the products with themselves, (p,).

        Shapes: left, right (n_functions, p) -> (n_functions, p).
        """
        if self.resident is not None:
            return triple_products(self.resident, self.weights, left, right)

        def work(rows: slice) -> tuple[np.ndarray, np.ndarray]:
            functions = self.functions[rows]
            product = (functions @ left) * (functions @ right)
            weighted = self.weights[rows, None] * product
            return functions.T @ weighted, np.einsum("xp,xp->p", weighted, product)

        found, squares = zip(*map_panels(work, len(self.weights)), strict=True)
        return sum(found), sum(squares)  # type: ignore[return-value]

    def combined(self, coefficients: np.ndarray) -> np.ndarray:
        """Return combinations of functions at the samples, (n_samples, p)."""
        if self.resident is not None:
            return from_tensor(self.resident @ on_device(self.resident.device, coefficients))

        panels = map_panels(lambda rows: self.functions[rows] @ coefficients, len(self.weights))
        return np.concatenate(panels)

    def local_products(self, near: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return sums of all functions over neighbourhoods, (n_rows, p, n_functions).

        Shapes: near (n_rows, k), weights (n_rows, p, k).
        """
        if self.resident is not None:
            return local_products(self.resident, near, weights)
        # k rows of functions are gathered for each neighbourhood, 8,192 in all at a time.
        batches = gen_batches(len(near), max(1, 2**13 // near.shape[1]))
        return np.concatenate([weights[rows] @ self.functions[near[rows]] for rows in batches])

    def with_copies(self, graph: NeighborGraph) -> "Spectrum":
        """Return the spectrum on the given samples, from that on the distinct ones."""
        # Copies of a sample share its weight; outliers and undrawn samples have none.
        each = self.weights / graph.multiplicity
        weights = np.where(graph.weightless, 0.0, each[graph.inverse])
        if self.resident is None:
            return replace(self, functions=chosen(self.functions, graph.inverse), weights=weights)
        resident = self.resident[graph.inverse]
        return replace(self, functions=from_tensor(resident), weights=weights, resident=resident)

    def lowest(self, count: int) -> "Spectrum":
        """Return the spectrum of the lowest functions only."""
        if count >= len(self.eigenvalues):
            return self
        return replace(
            self,
            eigenvalues=self.eigenvalues[:count],
            functions=self.functions[:, :count],
            residuals=self.residuals[:count],
            resident=None if self.resident is None else self.resident[:, :count],
        )

    @property
    def clusters(self) -> tuple[np.ndarray, ...]:
        """Indices of eigenvalues that cannot be distinguished, cluster by cluster.

        Their gaps are below their sampling error or residuals, so that the functions of a cluster
        are known up to a rotation only.
        """
        upper = self.eigenvalues[1:]
        sampling = SAMPLING_ERROR / np.sqrt(len(self.weights)) * upper
        # The error of exp(-step * eigenvalue), carried over to the eigenvalue.
        residuals = self.residuals[1:] + self.residuals[:-1]
        solver = residuals * np.exp(self.step * upper) / self.step
        apart = np.diff(self.eigenvalues) > np.maximum(sampling, solver)
        # The constant function is known exactly, however small the gap.
        apart[0] = True
        starts = np.flatnonzero(apart) + 1
        return tuple(np.split(np.arange(len(self.eigenvalues)), starts))
