"""Samples that the random walk hardly reaches: left out, or warned of."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.random import Generator
from scipy.sparse.csgraph import connected_components

from manifactor._support.errors import warn_caller
from manifactor._support.parameters import Choice
from manifactor._support.threads import map_panels
from manifactor.spectral.eigenpairs import EigenpairWarning, Pairs, Start, required
from manifactor.spectral.gpu import ResidentMatrix, from_tensor, functions_there, is_tensor
from manifactor.spectral.kernel import Affinity, KernelSettings, affinity
from manifactor.spectral.neighbors import DisconnectedGraphWarning, NeighborGraph
from manifactor.spectral.solvers import SOLVERS, SolverSettings, choose_solver
from manifactor.spectral.spectrum import SAMPLING_ERROR, Spectrum


@dataclass(frozen=True)
class OutlierSettings:
    """Settings of `without_outliers`."""

    # Kernel weight of all neighbours, at most 1 each, below which a sample is an outlier.
    least_company: float = 1.5

    # Share of the samples that may be outliers; more are a part of the data.
    most_outliers: float = 0.05

    # Leaving some samples out may leave others alone.
    rounds: int = 3


def isolated(walk: Affinity, *, settings: OutlierSettings = OutlierSettings()) -> np.ndarray:
    """Return which samples the walk hardly leaves, (n_distinct,)."""
    weight = walk.kernel @ np.ones(len(walk.degree))
    # A sample's own weight is 1.
    return weight < 1 + settings.least_company


def without_outliers(
    X: np.ndarray,
    graph: NeighborGraph,
    walk: Affinity,
    *,
    walk_of: Callable[[NeighborGraph], Affinity] = affinity,
    settings: OutlierSettings = OutlierSettings(),
) -> tuple[NeighborGraph, Affinity]:
    """Return graph and walk without the samples that the walk hardly leaves.

    Functions would be peaks on them.

    Shapes: X (n_samples, n_features).
    """
    for _ in range(settings.rounds):
        alone = isolated(walk, settings=settings)
        if not alone.any() or alone.mean() > settings.most_outliers:
            break
        graph = graph.without(alone, X)
        walk = walk_of(graph)
    return graph, walk


def outlier_choice(
    graph: NeighborGraph, *, settings: OutlierSettings = OutlierSettings()
) -> Choice:
    """Return the number of outliers that were left out of a graph, and the rule."""
    count = int(graph.outliers.sum())
    if not count:
        return Choice(0, "no sample is isolated")
    return Choice(
        count,
        "left out: all their neighbours together weigh less than "
        f"{settings.least_company:g} in the kernel",
    )


def warn_of_weak_links(walk: Affinity, *, settings: KernelSettings = KernelSettings()) -> None:
    """Warn if samples are connected by links of negligible weight only."""
    # A full kernel has a link between any two samples.
    dense = isinstance(walk.kernel, np.ndarray)
    if dense or _entries(walk.kernel).min() > settings.least_weight:
        return
    kernel = sp.csr_array(walk.settled().kernel)
    strong = kernel > settings.least_weight
    count, label = connected_components(strong, directed=False)
    if count > 1:
        warn_caller(
            f"at this bandwidth the samples fall into {count} components, the largest "
            f"of {np.bincount(label).max()} samples, joined by links of negligible "
            "weight only: there are outliers, or the bandwidth is too small. The "
            "lowest eigenfunctions tell the components apart; remove the outliers or "
            "raise `bandwidth`.",
            DisconnectedGraphWarning,
        )


def _entries(kernel: Any) -> Any:
    return kernel.entries if isinstance(kernel, ResidentMatrix) else kernel.data


# Affinity to spectrum: the lowest eigenvalues and functions of the Laplacian.


@dataclass(frozen=True)
class SpectrumSettings:
    """Settings of `laplacian_spectrum`."""

    # Error of the solver as a share of the error that finitely many samples make anyway.
    accuracy: float = 0.01

    # Eigenvalue of the walk below which it cannot see a function: at new samples the function would
    # be all residual.
    smallest_resolved: float = 1e-6

    # Share of the constant function in others up to which it is the solver's error, and subtracted.
    # More is a mixture of eigenvectors of the eigenvalue 1.
    constant_share: float = 1e-3

    # Ratio of residual to tolerance above which a warning is issued.
    poor_residual: float = 10.0

    solvers: SolverSettings = field(default_factory=SolverSettings)


def laplacian_spectrum(
    affinity: Affinity,
    n_functions: int,
    *,
    solver: str = "auto",
    start: tuple[np.ndarray, Spectrum] | None = None,
    spare: bool = False,
    progress: Callable[[float], None] | None = None,
    rng: Generator,
    settings: SpectrumSettings = SpectrumSettings(),
) -> Spectrum:
    """Compute the lowest eigenvalues and functions on the distinct samples."""
    matrix = affinity.normalized()
    chosen = choose_solver(matrix, n_functions, solver=solver, settings=settings.solvers)
    n_samples = len(affinity.degree)
    tolerance = settings.accuracy * SAMPLING_ERROR / np.sqrt(n_samples)
    pairs = SOLVERS[chosen.value](
        matrix,
        n_functions,
        tolerance=tolerance,
        start=None if start is None else _start_vectors(*start, affinity),
        spare=spare,
        progress=progress,
        rng=rng,
        settings=settings.solvers,
    )
    pairs = _checked(pairs, n_functions, tolerance=tolerance, solver=chosen, settings=settings)
    return _spectrum(pairs, affinity, solver=chosen, settings=settings)


def _spectrum(
    pairs: Pairs, affinity: Affinity, *, solver: Choice, settings: SpectrumSettings
) -> Spectrum:
    """Return eigenpairs of the walk as eigenvalues and functions of the Laplacian."""
    weights = affinity.degree / affinity.degree.sum()
    functions, resident = _functions(pairs.vectors, weights, settings.constant_share)
    return Spectrum(
        eigenvalues=_laplacian_eigenvalues(pairs.values, affinity.step),
        functions=functions,
        resident=resident,
        weights=weights,
        residuals=pairs.residuals,
        step=affinity.step,
        solver=solver,
    )


def _start_vectors(rows: np.ndarray, spectrum: Spectrum, affinity: Affinity) -> Start:
    """Return functions on some samples as vectors of the walk on all."""
    # The first vector is that of the constant function.
    first = np.sqrt(affinity.degree / affinity.degree.sum())
    vectors = spectrum.functions * first[rows, None]
    values = np.exp(-affinity.step * spectrum.eigenvalues)
    # Residuals of spare functions are infinite.
    n_accurate = int(np.isfinite(spectrum.residuals).sum())
    return Start(rows, vectors, values, first, n_accurate)


def _checked(
    pairs: Pairs, n_functions: int, *, tolerance: float, solver: Choice, settings: SpectrumSettings
) -> Pairs:
    """Return the pairs that the walk can see; warn of missing and of poor ones."""
    if len(pairs.values) < n_functions:
        _warn_of_budget(pairs, n_functions)
    pairs = _resolved(pairs, settings.smallest_resolved)
    _warn_of_residuals(
        pairs.residuals[:n_functions],
        required(pairs.values[:n_functions], tolerance),
        solver=solver.value,
        poor=settings.poor_residual,
    )
    return pairs


def _resolved(pairs: Pairs, smallest: float) -> Pairs:
    """Return the pairs that the walk can see."""
    count = int((pairs.values > smallest).sum())
    return Pairs(
        pairs.values[:count], pairs.vectors[:, :count], pairs.residuals[:count], pairs.products
    )


def _laplacian_eigenvalues(values: np.ndarray, step: float) -> np.ndarray:
    """Return the Laplacian's eigenvalues, from those of one step of the walk."""
    # The first is 1 but for rounding, which must not make any eigenvalue negative.
    relative = np.minimum(values / values[0], 1.0)
    return np.maximum(0.0, -np.log(relative)) / step


def _functions(vectors: Any, weights: np.ndarray, constant_share: float) -> tuple[np.ndarray, Any]:
    """Return vectors of the walk as functions, the constant first.

    No other function has a constant part, and the largest value of each is positive. The second
    result is the same on a device, where the vectors are there; None elsewhere.
    """
    if is_tensor(vectors):
        functions = functions_there(vectors, weights, constant_share)
        if functions is not None:
            return from_tensor(functions), functions
        vectors = from_tensor(vectors)
    root = np.sqrt(weights)
    constant_parts = root @ vectors
    largest = np.abs(constant_parts[1:]).max(initial=0)
    if largest > constant_share:
        vectors = _beside_constant(vectors, root)
        constant_parts = np.zeros(vectors.shape[1])
    return _divided(vectors, root, constant_parts), None


def _divided(vectors: np.ndarray, root: np.ndarray, constant_parts: np.ndarray) -> np.ndarray:
    """Return vectors over the root of the weights, with signs and constant set."""
    functions = np.empty_like(vectors)

    def work(rows: slice) -> tuple[np.ndarray, np.ndarray]:
        some = np.divide(vectors[rows], root[rows, None], out=functions[rows])
        some -= constant_parts
        return some.max(axis=0), some.min(axis=0)

    extremes = map_panels(work, len(vectors))
    highest, lowest = zip(*extremes, strict=True)
    top, bottom = np.max(highest, axis=0), np.min(lowest, axis=0)
    # Eigenvectors have no sign; this makes it the same for every solver and seed.
    negative = top < -bottom
    functions *= np.where(negative, -1.0, 1.0)
    functions[:, 0] = 1.0
    return functions


def _beside_constant(vectors: np.ndarray, constant: np.ndarray) -> np.ndarray:
    """Return eigenvectors with the constant first and taken out of the others.

    Where weak bridges make the eigenvalue 1 double to rounding, solvers return a mixture.
    """
    beside = np.column_stack([constant, vectors])
    # The vector that adds least to those before it is the one that the constant replaces.
    sizes = np.linalg.qr(beside, mode="r")
    added = np.abs(np.diag(sizes))
    superfluous = 1 + int(added[1:].argmin())
    kept = np.delete(beside, superfluous, axis=1)
    basis, triangle = np.linalg.qr(kept)
    return basis * np.sign(triangle[0, 0])


def _warn_of_residuals(
    residuals: np.ndarray, asked: np.ndarray, *, solver: str, poor: float
) -> None:
    large = residuals > poor * asked
    if large.any():
        warn_caller(
            f"{large.sum()} of {len(residuals)} eigenpairs have residuals more than "
            f"{poor:g} times as large as asked for, the largest "
            f"{residuals[large].max():.1e} (solver {solver!r}). Try another `solver` "
            "or fewer functions.",
            EigenpairWarning,
        )


def _warn_of_budget(pairs: Pairs, asked: int) -> None:
    warn_caller(
        f"{len(pairs.values)} of {asked} eigenpairs are accurate after "
        f"{pairs.products} products of the matrix with all vectors; the others did "
        "not converge and were left out. Ask for fewer functions, or raise "
        "`n_neighbors`.",
        EigenpairWarning,
    )
