"""Diffusion in other senses of a product than the geometry of the samples.

With density p, metric g and dimension d, the manifold may be a product as it is (geometry: g),
weighted by the density (g and p), or in units of the local distance of samples (volume: p^(2/d) g).
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from sklearn.metrics import pairwise_distances

from manifactor._support.parameters import Choice
from manifactor.operators import kernel
from manifactor.operators.laplacian import laplacian_spectrum, outlier_choice, without_outliers
from manifactor.operators.neighbors import NeighborGraph, nearest_point, neighbor_graph
from manifactor.operators.operator import Operator, automatic_functions
from manifactor.statistics import even_rows

# Samples that are drawn at most; functions are extended to all others. Time and memory of a kernel
# that is not cut are then bounded, whatever the number of samples.
DRAWN_IN_VOLUME = 6000
DRAWN_IN_DENSITY = 3000


def in_volume(diffusion: Operator, *, rng: np.random.Generator) -> Operator:
    """Return the diffusion with lengths in units of the distance to each 8th neighbour.

    A metric that is a product up to a common stretch then becomes a product, if places on the
    factors are independent.
    """
    rows = _drawn(diffusion, DRAWN_IN_VOLUME, rng)
    graph = _graph(diffusion.samples[rows], diffusion.n_neighbors, diffusion)
    walk_of = partial(kernel.affinity, bandwidth="local")
    why = "lengths are in units of the distance to each sample's 8th neighbour"
    return _diffuse(diffusion, rows, graph, walk_of, Choice(1.0, why), rng)


def in_density(diffusion: Operator, *, rng: np.random.Generator) -> Operator:
    """Return the diffusion whose drift is the gradient of the log density.

    If the factors are orthogonal and places on them are independent, its generator is a sum over
    the factors. The kernel must not be cut: a walk between nearest neighbours has another one.
    Samples that the kernel hardly reaches are left out, since functions would be peaks on them.
    """
    rows = _drawn(diffusion, DRAWN_IN_DENSITY, rng)
    samples = diffusion.samples[rows]
    near = _graph(samples, kernel.SCALE_NEIGHBOR, diffusion)
    scales = kernel.local_scale(near.distances)
    # Where squared distances of the factors add up, as in boxes and tori, a Gaussian kernel is a
    # product at any width, and a wider one reaches more of the tails.
    eps = 2 * float(np.quantile(scales, kernel.REACHED_SHARE)) ** 2
    core = near.distinct[scales**2 <= eps]
    rows, samples = rows[core], samples[core]
    graph = _graph(samples, _neighbors_within(samples, eps), diffusion)
    # With alpha = 1/2 the walk's generator is the Laplacian plus the drift along grad log p
    # (Coifman and Lafon, 2006).
    alpha = 0.5
    walk_of = partial(kernel.affinity, bandwidth=eps, density_correction=alpha)
    why = "the density of the samples is a part of the product"
    return _diffuse(diffusion, rows, graph, walk_of, Choice(alpha, why), rng)


def _drawn(diffusion: Operator, most: int, rng: np.random.Generator) -> np.ndarray:
    """Return ascending rows of at most `most` distinct samples, drawn at random."""
    rows = diffusion.graph.distinct
    if len(rows) > most:
        rows = rng.choice(rows, most, replace=False)
    return np.sort(rows)


def _graph(samples: np.ndarray, n_neighbors: int, diffusion: Operator) -> NeighborGraph:
    count = min(n_neighbors, len(samples) - 1)
    return neighbor_graph(samples, count, n_jobs=diffusion.settings.n_jobs)


def _neighbors_within(samples: np.ndarray, eps: float) -> int:
    """Return how many neighbours the kernel reaches for nearly all samples, bounded for memory."""
    some = samples[even_rows(len(samples), 500)]
    squared = pairwise_distances(some, samples, "sqeuclidean")
    # The kernel is cut where its weight is below 0.01, for all but a hundredth of the samples.
    near = squared < -np.log(0.01) * eps
    needed = np.quantile(near.sum(axis=1), 1 - 0.01)
    return int(min(needed, 0.25 * len(samples)))


def _diffuse(
    diffusion: Operator,
    rows: np.ndarray,
    graph: NeighborGraph,
    walk_of: Callable[[NeighborGraph], kernel.Affinity],
    correction: Choice,
    rng: np.random.Generator,
) -> Operator:
    """Return the diffusion of drawn samples by another random walk."""
    graph, walk = without_outliers(diffusion.samples[rows], graph, walk_of(graph), walk_of=walk_of)
    functions = automatic_functions(len(graph.distinct))
    spectrum = laplacian_spectrum(walk, functions.value, rng=rng)
    whole = _graph_of_all(diffusion, graph, rows)
    choices = {
        "outliers": outlier_choice(whole),
        "neighbours": Choice(graph.n_neighbors, "as many as the kernel reaches"),
        "neighbour search": graph.method,
        "bandwidth": walk.bandwidth.choice,
        "density correction": correction,
        "functions": functions,
        "eigensolver": spectrum.solver,
    }
    return replace(
        diffusion,
        graph=whole,
        affinity=walk,
        distinct=spectrum,
        parts=(),
        choices={**diffusion.choices, **choices},
        settings=replace(diffusion.settings, n_functions=functions.value),
        warned=(*graph.warned, *spectrum.warned),
    )


def _graph_of_all(diffusion: Operator, graph: NeighborGraph, rows: np.ndarray) -> NeighborGraph:
    """Return the graph of drawn samples as one of all, with their nearest drawn ones."""
    n_samples = len(diffusion.samples)
    distinct = rows[graph.distinct]
    undrawn = np.ones(n_samples, dtype=bool)
    undrawn[rows] = False
    place = np.empty(n_samples, dtype=int)
    place[rows] = graph.inverse
    if undrawn.any():
        nearest = nearest_point(diffusion.samples[distinct])
        place[undrawn] = nearest(diffusion.samples[undrawn])[1]
    outliers = diffusion.graph.outliers.copy()
    outliers[rows] |= graph.outliers
    components = np.empty(len(distinct), dtype=int)
    components[graph.inverse] = graph.components
    return replace(
        graph,
        distinct=distinct,
        inverse=place,
        components=components[place],
        outliers=outliers,
        undrawn=undrawn,
    )
