"""Diffusion in other senses of a product than the geometry of the samples.

With p the density of the samples, g the metric of the manifold and d its dimension, three spaces
may be a product: the manifold itself (geometry: g), the manifold weighted by the density (density:
g and p), and the manifold with lengths in units of the local distance between samples (volume:
p^(2/d) g). Each has a diffusion of its own, whose functions are products if the space is one.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import NearestNeighbors

from manifactor._support.parameters import Choice
from manifactor.spectral.diffusion import Diffusion
from manifactor.spectral.kernel import Affinity, affinity, local_scale
from manifactor.spectral.laplacian import laplacian_spectrum, outlier_choice, without_outliers
from manifactor.spectral.neighbors import NeighborGraph, neighbor_graph


@dataclass(frozen=True)
class SenseSettings:
    """Settings of `in_volume` and `in_density`."""

    # Samples that are drawn at most; functions are extended to all others. Time and memory of a
    # kernel that is not cut are then bounded, whatever the number of samples.
    drawn_in_volume: int = 6000
    drawn_in_density: int = 3000
    # "density": eps of the kernel over the squared distance to the 8th neighbour that 95 % of the
    # samples have. Where squared distances of the factors add up, as in boxes and tori, a Gaussian
    # kernel is a product at any width, and a wider one reaches more of the tails.
    widening: float = 2.0
    # The kernel is cut where its weight is below this, for all but a share of the samples.
    cut_weight: float = 0.01
    cut_share: float = 0.01
    # Most neighbours of a sample, as a share of the samples drawn: it bounds memory.
    most_neighbors: float = 0.25
    # Samples on which the number of neighbours above that weight is measured.
    counted: int = 500
    # With alpha = 1/2 the walk's generator is the Laplacian plus the drift along grad log p
    # (Coifman and Lafon, 2006).
    alpha: float = 0.5


def in_volume(
    diffusion: Diffusion, *, settings: SenseSettings = SenseSettings(), rng: np.random.Generator
) -> Diffusion:
    """Return the diffusion with lengths in units of the distance between samples.

    The unit of length at a sample is the distance to its 8th neighbour. A metric that is a product
    up to a common stretch then becomes a product, if places on the factors are independent.
    """
    rows = _drawn(diffusion, settings.drawn_in_volume, rng)
    samples = diffusion.samples[rows]
    graph = _graph(samples, diffusion.n_neighbors, diffusion)
    walk_of = partial(affinity, bandwidth="local", settings=diffusion.settings.kernel)
    why = "lengths are in units of the distance to each sample's 8th neighbour"
    return _diffuse(diffusion, rows, graph, walk_of, Choice(1.0, why), rng)


def in_density(
    diffusion: Diffusion, *, settings: SenseSettings = SenseSettings(), rng: np.random.Generator
) -> Diffusion:
    """Return the diffusion whose drift is the gradient of the log density.

    If the factors are orthogonal and places on them are independent, its generator is a sum over
    the factors, for any density. The kernel must not be cut: a walk between nearest neighbours has
    another generator, whatever alpha is. Samples that the kernel hardly reaches are left out, since
    functions would be peaks on them.
    """
    rows = _drawn(diffusion, settings.drawn_in_density, rng)
    samples = diffusion.samples[rows]
    bandwidths = diffusion.settings.kernel.bandwidth
    near = _graph(samples, bandwidths.scale_neighbor, diffusion)
    scales = local_scale(near.distances, neighbor=bandwidths.scale_neighbor)
    reach = np.quantile(scales, bandwidths.reached_share)
    eps = settings.widening * float(reach) ** 2
    core = near.distinct[scales**2 <= eps]
    rows, samples = rows[core], samples[core]
    graph = _graph(samples, _neighbors_within(samples, eps, settings), diffusion)
    walk_of = partial(
        affinity,
        bandwidth=eps,
        density_correction=settings.alpha,
        settings=diffusion.settings.kernel,
    )
    why = "the density of the samples is a part of the product"
    return _diffuse(diffusion, rows, graph, walk_of, Choice(settings.alpha, why), rng)


def _drawn(diffusion: Diffusion, most: int, rng: np.random.Generator) -> np.ndarray:
    """Return ascending rows of distinct samples, at most so many, drawn at random."""
    rows = diffusion.graph.distinct
    if len(rows) > most:
        rows = rng.choice(rows, most, replace=False)
    return np.sort(rows)


def _graph(samples: np.ndarray, n_neighbors: int, diffusion: Diffusion) -> NeighborGraph:
    return neighbor_graph(
        samples,
        min(n_neighbors, len(samples) - 1),
        n_jobs=diffusion.settings.n_jobs,
        settings=diffusion.settings.searching,
    )


def _neighbors_within(samples: np.ndarray, eps: float, settings: SenseSettings) -> int:
    """Return how many neighbours the kernel reaches for nearly all samples.

    The number is bounded, so that the kernel fits into memory.
    """
    rows = np.linspace(0, len(samples) - 1, min(settings.counted, len(samples)))
    squared = pairwise_distances(samples[rows.astype(int)], samples, "sqeuclidean")
    near = squared < -np.log(settings.cut_weight) * eps
    needed = np.quantile(near.sum(axis=1), 1 - settings.cut_share)
    return int(min(needed, settings.most_neighbors * len(samples)))


def _diffuse(
    diffusion: Diffusion,
    rows: np.ndarray,
    graph: NeighborGraph,
    walk_of: Callable[[NeighborGraph], Affinity],
    correction: Choice,
    rng: np.random.Generator,
) -> Diffusion:
    """Return the diffusion of drawn samples by another random walk."""
    given = diffusion.settings
    graph, walk = without_outliers(
        diffusion.samples[rows], graph, walk_of(graph), walk_of=walk_of, settings=given.outliers
    )
    count = given.counts.automatic(len(graph.distinct))
    spectrum = laplacian_spectrum(walk, count, settings=given.spectrum, rng=rng)
    whole = _graph_of_all(diffusion, graph, rows)
    choices = {
        "outliers": outlier_choice(whole, settings=given.outliers),
        "neighbours": Choice(graph.n_neighbors, "as many as the kernel reaches"),
        "neighbour search": graph.method,
        "bandwidth": walk.bandwidth.choice,
        "density correction": correction,
        "functions": Choice(count, given.counts.why),
        "eigensolver": spectrum.solver,
    }
    return replace(
        diffusion,
        graph=whole,
        affinity=walk,
        distinct=spectrum,
        parts=(),
        choices={**diffusion.choices, **choices},
        # No later fit can start from the stages of some of the samples.
        keys={},
        max_functions=0,
        n_requested=len(spectrum.eigenvalues),
    )


def _graph_of_all(diffusion: Diffusion, graph: NeighborGraph, rows: np.ndarray) -> NeighborGraph:
    """Return the graph of drawn samples as one of all samples.

    `inverse` maps samples that were not drawn to the nearest of those that were.
    """
    n_samples = len(diffusion.samples)
    distinct = rows[graph.distinct]
    undrawn = np.ones(n_samples, dtype=bool)
    undrawn[rows] = False
    place = np.empty(n_samples, dtype=int)
    place[rows] = graph.inverse
    if undrawn.any():
        search = NearestNeighbors(n_neighbors=1).fit(diffusion.samples[distinct])
        nearest = search.kneighbors(diffusion.samples[undrawn], return_distance=False)
        place[undrawn] = nearest[:, 0]
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
