"""Affinity to spectrum: eigenvalues and functions of the manifold's Laplacian, and their values at new points."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import pairwise_distances
from sklearn.utils import gen_batches

from manifactor._support.threads import in_panels
from manifactor.spectral.kernel import LEAST_COMPANY, Affinity, kernel_rows
from manifactor.spectral.neighbors import NeighborGraph
from manifactor.spectral.resident import (
    combined,
    from_tensor,
    functions_there,
    is_tensor,
    local_products,
    triple_products,
)
from manifactor.spectral.solvers import (
    SOLVERS,
    EigenpairWarning,
    Pairs,
    Start,
    choose_solver,
    required,
)

ACCURACY = (
    0.01  # error of eigenvalues and functions, as a share of their sampling error
)
NEIGHBORS = 2**13  # whose functions are gathered at a time
NEARLY = 1e-3  # share of the constant function in others that is the solver's error, and taken out
SAMPLING_ERROR = (
    4.0  # of an eigenvalue, relative to it, times the root of the number of samples
)
SMALLEST_RESOLVED = 1e-6  # a walk cannot see functions of smaller eigenvalues: at new points they are all residual


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues and eigenfunctions of the Laplacian, lowest first, the constant function at index 0.

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
    solver : str
        The solver that was used.
    resident : Tensor of shape (n_samples, n_functions) or None
        The functions on the device that they were computed on.

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
    solver: str
    resident: Any = field(default=None, repr=False, compare=False)

    def triple_products(
        self, left: np.ndarray, right: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Inner products of all functions with products of combinations of functions, and those products' own.

        Parameters
        ----------
        left, right : ndarray of shape (n_functions, p)
            Coefficients of the combinations.

        Returns
        -------
        found : ndarray of shape (n_functions, p)
        squares : ndarray of shape (p,)
        """
        if self.resident is not None:
            return triple_products(self.resident, self.weights, left, right)

        def work(rows: slice) -> tuple[np.ndarray, np.ndarray]:
            functions, weights = self.functions[rows], self.weights[rows]
            product = (functions @ left) * (functions @ right)
            weighted = weights[:, None] * product
            return functions.T @ weighted, np.einsum("xp,xp->p", weighted, product)

        found, squares = zip(*in_panels(work, len(self.weights)), strict=True)
        return sum(found), sum(squares)  # type: ignore[return-value]

    def combined(self, coefficients: np.ndarray) -> np.ndarray:
        """Combinations of functions at the samples, (n_samples, p)."""
        if self.resident is not None:
            return combined(self.resident, coefficients)
        return np.concatenate(
            in_panels(
                lambda rows: self.functions[rows] @ coefficients, len(self.weights)
            )
        )

    def local_products(self, near: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Weighted sums of all functions over neighbourhoods, (n_rows, p, n_functions).

        Parameters
        ----------
        near : ndarray of int of shape (n_rows, k)
            The samples of each neighbourhood.
        weights : ndarray of shape (n_rows, p, k)
        """
        if self.resident is not None:
            return local_products(self.resident, near, weights)
        some = gen_batches(len(near), max(1, NEIGHBORS // near.shape[1]))
        return np.concatenate(
            [weights[rows] @ self.functions[near[rows]] for rows in some]
        )

    def with_copies(self, graph: NeighborGraph) -> "Spectrum":
        """The spectrum on the given samples, from that on the distinct ones."""
        weights = np.where(
            graph.outliers, 0.0, (self.weights / graph.multiplicity)[graph.inverse]
        )
        there = None if self.resident is None else self.resident[graph.inverse]
        functions = (
            _gathered(self.functions, graph.inverse)
            if there is None
            else from_tensor(there)
        )
        return replace(self, functions=functions, weights=weights, resident=None)

    def on_device_of(self, distinct: "Spectrum", graph: NeighborGraph) -> "Spectrum":
        """The spectrum on the given samples with functions on a device, where those of the distinct ones are."""
        return (
            self
            if distinct.resident is None
            else replace(self, resident=distinct.resident[graph.inverse])
        )

    def without_copies(self, graph: NeighborGraph) -> "Spectrum":
        """The spectrum on the distinct samples, from that on the given ones."""
        weights = self.weights[graph.distinct] * graph.multiplicity
        return replace(
            self,
            functions=_gathered(self.functions, graph.distinct),
            weights=weights,
            resident=None,
        )

    def lowest(self, count: int) -> "Spectrum":
        """The spectrum of the lowest functions only."""
        if count >= len(self.eigenvalues):
            return self
        few = slice(count)
        return replace(
            self,
            eigenvalues=self.eigenvalues[few],
            functions=self.functions[:, few],
            residuals=self.residuals[few],
            resident=None if self.resident is None else self.resident[:, few],
        )

    def settled(self) -> "Spectrum":
        """The same without what it has on a device."""
        return replace(self, resident=None)

    @property
    def clusters(self) -> tuple[np.ndarray, ...]:
        """Indices of eigenvalues that cannot be told apart, cluster by cluster.

        Neighbours belong together when their gap is below their sampling error, 4/sqrt(n_samples) of the eigenvalue,
        or below their residuals. Inside a cluster the functions are known up to a rotation only.
        """
        gap = np.diff(self.eigenvalues)
        sampling = SAMPLING_ERROR / np.sqrt(len(self.weights)) * self.eigenvalues[1:]
        solver = (
            (self.residuals[1:] + self.residuals[:-1])
            * np.exp(self.step * self.eigenvalues[1:])
            / self.step
        )
        apart = gap > np.maximum(sampling, solver)
        apart[0] = True
        return tuple(
            np.split(np.arange(len(self.eigenvalues)), np.flatnonzero(apart) + 1)
        )


def laplacian_spectrum(
    affinity: Affinity,
    n_functions: int,
    *,
    solver: str = "auto",
    accuracy: float = ACCURACY,
    start: "tuple[np.ndarray, Spectrum] | None" = None,
    spare: bool = False,
    progress: Callable[[float], None] | None = None,
    rng: np.random.Generator,
) -> Spectrum:
    """The `n_functions` lowest eigenvalues and functions on the distinct samples, or as many as the walk resolves.

    Parameters
    ----------
    accuracy : float
        Error of the solver as a share of the error that finitely many samples make anyway.
    start : pair of ndarray and Spectrum, or None
        Some of the distinct samples, and the spectrum of those alone: an iterative solver starts from it.
    spare : bool
        Keep the functions that an iterative solver has beyond those asked for, whose residuals are infinite.
    progress : callable or None
        Told the share of the work that is done.
    """
    matrix = affinity.normalized()
    name = choose_solver(matrix, n_functions) if solver == "auto" else solver
    tolerance = accuracy * SAMPLING_ERROR / np.sqrt(len(affinity.degree))
    known = None if start is None else _vectors(*start, affinity)
    pairs = SOLVERS[name](
        matrix,
        n_functions,
        tolerance=tolerance,
        start=known,
        spare=spare,
        progress=progress,
        rng=rng,
    )
    resolved = int((pairs.values > SMALLEST_RESOLVED).sum())
    values, residuals = pairs.values[:resolved], pairs.residuals[:resolved]
    _warn_of_residuals(
        residuals[:n_functions], required(values[:n_functions], tolerance), name
    )
    if len(pairs.values) < n_functions:
        _warn_of_budget(pairs, n_functions)
    weights = affinity.degree / affinity.degree.sum()
    functions, resident = _functions(pairs.vectors[:, :resolved], weights)
    return Spectrum(
        eigenvalues=np.maximum(0.0, -np.log(np.minimum(values / values[0], 1.0)))
        / affinity.step,
        functions=functions,
        resident=resident,
        weights=weights,
        residuals=residuals,
        step=affinity.step,
        solver=name,
    )


def _vectors(rows: np.ndarray, spectrum: "Spectrum", affinity: Affinity) -> Start:
    """Functions of some samples as vectors of the walk on all."""
    weights = affinity.degree[rows] / affinity.degree.sum()
    return Start(
        rows,
        spectrum.functions * np.sqrt(weights)[:, None],
        np.exp(-affinity.step * spectrum.eigenvalues),
    )


def extend(
    X,
    spectrum: Spectrum,
    affinity: Affinity,
    graph: NeighborGraph,
    samples: np.ndarray | None,
) -> np.ndarray:
    """The functions at new samples, (n_new, n_functions): one step of the walk over its eigenvalues.

    Parameters
    ----------
    X : ndarray or sparse of shape (n_new, n_features)
    spectrum, affinity, graph
        Of the training samples.
    samples : ndarray of shape (n_samples, n_features) or None
        The training samples; needed for a dense kernel only.
    """
    functions = spectrum.functions[graph.distinct]
    if isinstance(affinity.kernel, np.ndarray):
        known = samples[graph.distinct]  # type: ignore[index]
        rows = (
            np.exp(
                pairwise_distances(X, known, metric="sqeuclidean")
                / -affinity.bandwidth.value
            )
            * affinity.pull
        )
        reach, alone = rows.sum(axis=1), np.zeros(len(rows), dtype=bool)
    else:
        distances = graph.distances_to(X)
        kernel = kernel_rows(distances, affinity)
        alone = _like_outliers(distances, kernel, graph, samples)
        rows = sp.csr_array(kernel @ sp.diags_array(affinity.pull))
        reach = rows.sum(axis=1)
    far = np.flatnonzero(~(reach > 0))
    far = far[~alone[far]]
    if len(far):
        raise ValueError(
            f"new samples must lie near the training samples; {len(far)} of {len(reach)} have none within reach of the "
            f"bandwidth {affinity.bandwidth.value:.3g}, the first in row {far[0]}. Check that they are in the same "
            "units, or leave them out."
        )
    step = (
        (rows @ functions)
        / np.where(reach > 0, reach, 1)[:, None]
        * np.exp(spectrum.step * spectrum.eigenvalues)
    )
    for row in np.flatnonzero(
        alone
    ):  # as in the fit, an outlier lies where its nearest neighbour lies
        near = slice(distances.indptr[row], distances.indptr[row + 1])
        step[row] = functions[distances.indices[near][distances.data[near].argmin()]]
    return step


def _like_outliers(
    distances, kernel, graph: NeighborGraph, samples: np.ndarray | None
) -> np.ndarray:
    """New samples without company that lie no farther off than the outliers of the fit, (n_new,)."""
    if samples is None or not graph.outliers.any():
        return np.zeros(kernel.shape[0], dtype=bool)
    farthest = (
        graph.distances_to(samples[graph.outliers])
        .min(axis=1, explicit=True)
        .toarray()
        .max()
    )
    nearest = distances.min(axis=1, explicit=True).toarray().ravel()
    return (kernel.sum(axis=1) < LEAST_COMPANY) & (nearest <= farthest)


def _beside_constant(vectors: np.ndarray, constant: np.ndarray) -> np.ndarray:
    """Eigenvectors with the known first one in its place and taken out of the others.

    Where weak bridges make the eigenvalue 1 double to rounding, solvers return a mixture.
    """
    beside = np.column_stack([constant, vectors])
    superfluous = 1 + int(np.abs(np.diag(np.linalg.qr(beside, mode="r")))[1:].argmin())
    basis, triangle = np.linalg.qr(np.delete(beside, superfluous, axis=1))
    return basis * np.sign(triangle[0, 0])


def _functions(vectors, weights: np.ndarray) -> tuple[np.ndarray, Any]:
    """Vectors of the walk as functions without a constant part whose largest value is positive, the constant first.

    The second is the same on a device, where the vectors are there; None elsewhere.
    """
    if is_tensor(vectors):
        functions = functions_there(vectors, weights, NEARLY)
        if functions is not None:
            return from_tensor(functions), functions
        vectors = from_tensor(vectors)
    root = np.sqrt(weights)
    mixed = root @ vectors
    if np.abs(mixed[1:]).max(initial=0) > NEARLY:
        vectors = _beside_constant(vectors, root)
        mixed = np.zeros(vectors.shape[1])
    functions = np.empty_like(vectors)

    def work(rows: slice) -> tuple[np.ndarray, np.ndarray]:
        some = np.divide(vectors[rows], root[rows, None], out=functions[rows])
        some -= mixed
        return some.max(axis=0), some.min(axis=0)

    highest, lowest = zip(*in_panels(work, len(vectors)), strict=True)
    functions *= np.where(np.max(highest, axis=0) < -np.min(lowest, axis=0), -1.0, 1.0)
    functions[:, 0] = 1.0
    return functions, None


def _gathered(functions: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Functions at some samples."""
    return np.concatenate(in_panels(lambda some: functions[rows[some]], len(rows)))


def _warn_of_residuals(residuals: np.ndarray, asked: np.ndarray, solver: str) -> None:
    poor = residuals > 10 * asked
    if poor.any():
        warnings.warn(
            f"{poor.sum()} of {len(residuals)} eigenpairs have residuals more than ten times as large as asked for, "
            f"the largest {residuals[poor].max():.1e} (solver {solver!r}). Try another `solver` or fewer functions.",
            EigenpairWarning,
            stacklevel=3,
        )


def _warn_of_budget(pairs: Pairs, asked: int) -> None:
    warnings.warn(
        f"{len(pairs.values)} of {asked} eigenpairs are accurate after {pairs.products} products of the matrix with "
        "all vectors, and no more were made; the others were left out. Ask for fewer functions, or raise "
        "`n_neighbors`.",
        EigenpairWarning,
        stacklevel=3,
    )
