"""Affinity to spectrum: the lowest eigenvalues and functions of a manifold's Laplacian."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.random import Generator
from scipy.sparse.csgraph import connected_components
from sklearn.utils import gen_batches

from manifactor._support.errors import Warned
from manifactor._support.parameters import Choice
from manifactor.operators.engines import gpu
from manifactor.operators.engines.chebyshev import Start, block_width
from manifactor.operators.engines.solvers import lowest
from manifactor.operators.kernel import LEAST_WEIGHT, Affinity, affinity
from manifactor.operators.metric import LocalMetric
from manifactor.operators.neighbors import DisconnectedGraphWarning, NeighborGraph, chosen

# The sampling error of an eigenvalue, relative to it, is about this over the root of the number of
# samples, as was measured on random samples.
SAMPLING_ERROR = 4.0

# Kernel weight of all neighbours, at most 1 each, below which a sample is an outlier.
LEAST_COMPANY = 1.5

# Share of the samples that may be outliers; more are a part of the data.
MOST_OUTLIERS = 0.05

# Share of the constant function in others up to which it is the solver's error, and subtracted.
# More is a mixture of eigenvectors of the eigenvalue 1.
CONSTANT_SHARE = 1e-3


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

    @property
    def _there(self) -> Any:
        """The functions on the device that they were computed on, or on the host."""
        return self.functions if self.resident is None else self.resident

    def triple_products(self, left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return inner products of all functions with products of p pairs of combinations.

        Also those of the products with themselves, (p,).

        Shapes: left, right (n_functions, p) -> (n_functions, p).
        """
        there = self._there
        one, other, weights = (gpu.like(there, each) for each in (left, right, self.weights))

        def work(rows: slice) -> tuple[Any, Any]:
            functions = there[rows]
            product = (functions @ one) * (functions @ other)
            weighted = weights[rows, None] * product
            squares = gpu.namespace(there).einsum("xp,xp->p", weighted, product)
            return functions.T @ weighted, squares

        found, squares = zip(*gpu.map_rows(work, there), strict=True)
        return gpu.from_tensor(sum(found)), gpu.from_tensor(sum(squares))

    def combined(self, coefficients: np.ndarray) -> np.ndarray:
        """Return combinations of functions at the samples, (n_samples, p)."""
        there, factors = self._there, gpu.like(self._there, coefficients)
        panels = gpu.map_rows(lambda rows: there[rows] @ factors, there)
        return gpu.from_tensor(gpu.namespace(there).concatenate(panels))

    def local_products(self, near: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return sums of all functions over neighbourhoods, (n_rows, p, n_functions).

        Shapes: near (n_rows, k), weights (n_rows, p, k).
        """
        there = self._there
        near, weights = gpu.like(there, near), gpu.like(there, weights)
        # k rows of functions are gathered for each neighbourhood, 8,192 in all at a time.
        batches = gen_batches(len(near), max(1, 2**13 // near.shape[1]))
        products = [weights[rows] @ there[near[rows]] for rows in batches]
        return gpu.from_tensor(gpu.namespace(there).concatenate(products))

    def with_copies(self, graph: NeighborGraph) -> "Spectrum":
        """Return the spectrum on the given samples, from that on the distinct ones."""
        # Copies of a sample share its weight; outliers and undrawn samples have none.
        each = self.weights / graph.multiplicity
        weights = np.where(graph.weightless, 0.0, each[graph.inverse])
        if self.resident is None:
            return replace(self, functions=chosen(self.functions, graph.inverse), weights=weights)
        resident = self.resident[graph.inverse]
        return replace(
            self, functions=gpu.from_tensor(resident), weights=weights, resident=resident
        )

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


def without_outliers(
    X: np.ndarray,
    graph: NeighborGraph,
    walk: Affinity,
    *,
    walk_of: Callable[[NeighborGraph], Affinity] = affinity,
) -> tuple[NeighborGraph, Affinity]:
    """Return graph and walk without samples on which functions would be peaks."""
    # Leaving some samples out may leave others alone.
    for _ in range(3):
        # A sample's own weight is 1.
        alone = walk.kernel @ np.ones(len(walk.degree)) < 1 + LEAST_COMPANY
        if not alone.any() or alone.mean() > MOST_OUTLIERS:
            break
        graph = graph.without(alone, X)
        walk = walk_of(graph)
    return graph, walk


def outlier_choice(graph: NeighborGraph) -> Choice:
    """Return the number of outliers that were left out of a graph, and the rule."""
    count = int(graph.outliers.sum())
    if not count:
        return Choice(0, "no sample is isolated")
    return Choice(
        count,
        f"left out: all their neighbours together weigh less than {LEAST_COMPANY:g} in the kernel",
    )


def weak_links(walk: Affinity) -> tuple[Warned, ...]:
    """Return a warning if samples are connected by links of negligible weight only."""
    kernel = walk.kernel
    if isinstance(kernel, np.ndarray):  # a full kernel has a link between any two samples
        return ()
    if kernel.data.min() > LEAST_WEIGHT:
        return ()
    strong = sp.csr_array(gpu.settled(kernel)) > LEAST_WEIGHT
    count, label = connected_components(strong, directed=False)
    if count == 1:
        return ()
    message = (
        f"at this bandwidth the samples fall into {count} components, the largest of "
        f"{np.bincount(label).max()} samples, joined by links of negligible weight only: there are "
        "outliers, or the bandwidth is too small. The lowest eigenfunctions tell the components "
        "apart; remove the outliers or raise `bandwidth`."
    )
    return (Warned(message, DisconnectedGraphWarning),)


def laplacian_spectrum(
    affinity: Affinity,
    n_functions: int,
    *,
    solver: str = "auto",
    start: "Part | None" = None,
    spare: bool = False,
    progress: Callable[[float], None] | None = None,
    accuracy: float = 0.01,
    rng: Generator,
) -> Spectrum:
    """Compute the lowest eigenvalues and functions on the distinct samples.

    `accuracy` is the error of the solver as a share of the sampling error.
    """
    pairs, chosen = lowest(
        affinity.normalized(),
        n_functions,
        solver=solver,
        tolerance=accuracy * SAMPLING_ERROR / np.sqrt(len(affinity.degree)),
        start=None if start is None else _start_vectors(start, affinity),
        spare=spare,
        progress=progress,
        rng=rng,
    )
    weights = affinity.degree / affinity.degree.sum()
    functions, resident = _functions(pairs.vectors, weights)
    # The first is 1 but for rounding, which must not make any eigenvalue negative, nor 0 where weak
    # links join components: only the constant function has no energy.
    relative = np.minimum(pairs.values / pairs.values[0], 1 - np.finfo(float).eps)
    relative[0] = 1.0
    return Spectrum(
        eigenvalues=np.abs(np.log(relative)) / affinity.step,
        functions=functions,
        resident=resident,
        weights=weights,
        residuals=pairs.residuals,
        step=affinity.step,
        solver=chosen,
        warned=pairs.warned,
    )


def _start_vectors(part: "Part", affinity: Affinity) -> Start:
    """Return functions on some samples as vectors of the walk on all."""
    rows, spectrum = part.rows, part.spectrum
    # The first vector is that of the constant function.
    first = np.sqrt(affinity.degree / affinity.degree.sum())
    vectors = spectrum.functions * first[rows, None]
    values = np.exp(-affinity.step * spectrum.eigenvalues)
    # Residuals of spare functions are infinite.
    n_accurate = int(np.isfinite(spectrum.residuals).sum())
    return Start(rows, vectors, values, first, n_accurate)


def _functions(vectors: Any, weights: np.ndarray) -> tuple[np.ndarray, Any]:
    """Return vectors of the walk as functions, the constant first, on the host and on a device."""
    array, root = gpu.namespace(vectors), gpu.like(vectors, np.sqrt(weights))
    constant_parts = root @ vectors
    if abs(gpu.from_tensor(constant_parts[1:])).max(initial=0) > CONSTANT_SHARE:
        vectors, root, array = gpu.from_tensor(vectors), np.sqrt(weights), np
        vectors = _beside_constant(vectors, root)
        constant_parts = np.zeros(vectors.shape[1])
    functions = array.empty_like(vectors)

    def work(rows: slice) -> tuple[Any, Any]:
        functions[rows] = vectors[rows] / root[rows, None] - constant_parts
        return array.amax(functions[rows], 0), array.amin(functions[rows], 0)

    highest, lowest = map(array.stack, zip(*gpu.map_rows(work, functions), strict=True))
    # Eigenvectors have no sign; this makes it the same for every solver and seed.
    functions *= array.where(array.amax(highest, 0) < -array.amin(lowest, 0), -1.0, 1.0)
    functions[:, 0] = 1.0
    return gpu.from_tensor(functions), functions if gpu.is_tensor(functions) else None


def _beside_constant(vectors: np.ndarray, constant: np.ndarray) -> np.ndarray:
    """Return eigenvectors with the constant first and taken out of the others."""
    # Where weak bridges make the eigenvalue 1 double to rounding, solvers return a mixture.
    beside = np.column_stack([constant, vectors])
    # The vector that adds least to those before it is the one that the constant replaces.
    added = np.abs(np.diag(np.linalg.qr(beside, mode="r")))
    superfluous = 1 + int(added[1:].argmin())
    basis, triangle = np.linalg.qr(np.delete(beside, superfluous, axis=1))
    return basis * np.sign(triangle[0, 0])


# Random parts of many samples, with spectra of their own: a rough look at the whole.

# Above this number of samples two parts tell as much about noise as two halves, and cost less.
PARTED_ABOVE = 60_000
SMALLEST_PART = 10_000

# A part of more samples starts from the spectrum of a part of its own, which takes a third of the
# products that random vectors take.
NESTED_ABOVE = 30_000

# Spectra of parts and halves serve as noise estimates and starting vectors only: a tenth of the
# sampling error is accurate enough.
ROUGH_ACCURACY = 0.1


@dataclass(frozen=True)
class Part:
    """Some of the distinct samples, the walk between them, and its spectrum."""

    rows: np.ndarray  # (n_rows,): the samples
    affinity: Affinity
    spectrum: Spectrum

    def with_functions(self, count: int, *, rng: Generator) -> "Part":
        """Return the same with `count` functions and some to spare."""
        more = with_spare(count, len(self.rows))
        return replace(self, spectrum=_rough_spectrum(self.affinity, more, None, rng))


def part_size(n_samples: int) -> int:
    """Return the number of samples of a part: an eighth of them, within limits."""
    return min(max(n_samples // 8, SMALLEST_PART), 100_000)


def draw_parts(
    samples: np.ndarray,
    n_functions: int,
    *,
    search: Callable[[np.ndarray, LocalMetric | None], NeighborGraph],
    metric: LocalMetric | None = None,
    walk_of: Callable[[NeighborGraph], Affinity] = affinity,
    rng: Generator,
) -> tuple[Part, ...]:
    """Draw two disjoint parts of many samples, (n_distinct, n_features), and solve them.

    The first has more functions, since the solver of the whole starts from them.
    """

    def solved(
        samples: np.ndarray, metric: LocalMetric | None, rows: np.ndarray, n_functions: int
    ) -> Part:
        own = None if metric is None else metric.chosen(rows)
        graph = search(samples[rows], own)
        walk, rows, start = walk_of(graph), rows[graph.distinct], None
        if len(rows) > NESTED_ABOVE:
            size = part_size(len(rows))
            some = np.sort(rng.permutation(len(rows))[:size])
            own = None if metric is None else metric.chosen(rows)
            start = solved(samples[rows], own, some, with_spare(n_functions, size))
        return Part(rows, walk, _rough_spectrum(walk, n_functions, start, rng))

    drawn, size = rng.permutation(len(samples)), part_size(len(samples))
    first = solved(samples, metric, np.sort(drawn[:size]), with_spare(n_functions, size))
    second = solved(samples, metric, np.sort(drawn[size : 2 * size]), n_functions)
    return first, second


def with_spare(n_functions: int, n_samples: int) -> int:
    """Return the number of functions of a start: the solver's block is wider."""
    return (n_functions + block_width(n_samples, n_functions)) // 2


def _rough_spectrum(walk: Affinity, count: int, start: Part | None, rng: Generator) -> Spectrum:
    """Compute a spectrum with spare functions, for a solver that starts from them."""
    most = len(walk.degree) // 2
    return laplacian_spectrum(
        walk, min(count, most), start=start, spare=True, accuracy=ROUGH_ACCURACY, rng=rng
    )
