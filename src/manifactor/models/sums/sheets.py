"""A curve or surface through samples, by local linear regression on rough places."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial import KDTree
from scipy.spatial.distance import cdist

from manifactor._support.values import ceil_div, quotient
from manifactor.factors.charts import cloud_dimension
from manifactor.factors.shapes import on_circle, signed_angle
from manifactor.statistics import local_weights, neighbour_sums, random_rows, squares_left

# Neighbours that a conditional mean may be taken over: few where a factor bends the samples, many
# where noise or other factors are to be averaged. Near its minimum the error hardly depends on
# their number, so that a ratio of 3 will do.
LADDER = (15, 45, 135)
# Least slope of a surface, of the largest: directions in which a fit is flat would move places
# without end.
LEAST_SLOPE = 1e-6


def local_fit(
    places: np.ndarray, values: np.ndarray, at: np.ndarray, n_neighbors: int
) -> tuple[np.ndarray, np.ndarray]:
    """Fit values, (n, q), by linear functions of their places, (n, c), around m others.

    Linear and not constant: the slope of a strong factor across a neighbourhood would outweigh a
    weak factor.

    Returns the values there, (m, q), and the slopes, (m, c, q).
    """
    near = _neighbors(places, at, n_neighbors)
    weights, moves, spread = _weights(places, near, at)
    means = neighbour_sums(weights, near, values)[:, 0]
    return means, np.linalg.solve(spread, neighbour_sums(moves, near, values))


def choose_neighbors(places: np.ndarray, values: np.ndarray) -> tuple[int, float]:
    """Choose the number of neighbours that predicts samples left out best.

    Returns it and the share of the samples' variance that it explains.
    """
    n = len(places)
    # An eighth of a circle is still nearly straight. The smallest number is taken in any case.
    most = max(LADDER[0], n // 8)
    left, total = squares_left(
        values,
        [min(k, n - 1) for k in LADDER if k <= most],
        lambda some, count: _neighbors(places, places[some], count),
        lambda some, near: _weights(places, near, places[some])[0],
    )
    best = min(left, key=left.__getitem__)
    # The mean of k neighbours has a k-th of the noise itself.
    return best, 1 - quotient(left[best] / (1 + 1 / best), total)


def _neighbors(places: np.ndarray, at: np.ndarray, n_neighbors: int) -> np.ndarray:
    """Indices of the nearest places, nearest first, (m, k)."""
    k = min(n_neighbors, len(places))
    return KDTree(places).query(at, k)[1].reshape(len(at), k)


def _weights(places: np.ndarray, near: np.ndarray, at: np.ndarray) -> tuple[np.ndarray, ...]:
    """`local_weights` of neighbourhoods, (m, k), at places, (m, c); all neighbours count alike."""
    # One column after the other: sums over neighbours then run along memory.
    around = places.T.take(near, axis=1).transpose(1, 0, 2)
    # Near copies must not extrapolate.
    floor = 1e-12 * places.var() + np.finfo(float).tiny
    return local_weights(around, at[:, :, None], ridge=0.02, floor=floor)


@dataclass(frozen=True)
class Sheet:
    """Nodes of a curve or surface, each with the flat piece around it."""

    topology: str
    # (m, c): arc length from 0 to 1, cosine and sine, or the coordinates of a surface
    places: np.ndarray
    means: np.ndarray  # (m, q): the nodes among the samples
    tangents: np.ndarray  # (m, d, q): orthonormal directions in which samples move along the sheet
    # (m, d, c): change of the place for a unit move along each tangent; of an angle for a circle
    steps: np.ndarray
    explained: float = np.nan  # share of the samples' variance that places on the sheet explain

    @property
    def dimension(self) -> int:
        """Intrinsic dimension."""
        return self.tangents.shape[1]

    def tangled(self) -> bool:
        """Return whether a curve's nodes are out of order, or cover a piece twice.

        A long link is a jump if other nodes lie near its ends, beside the neighbours along the
        curve; else it spans a gap between samples. A surface has no order.
        """
        if self.topology == "other":
            return False
        m = len(self.means)
        far = cdist(self.means, self.means)
        apart = np.abs(np.arange(m)[:, None] - np.arange(m))
        if self.topology == "circle":
            apart = np.minimum(apart, m - apart)
        others = np.where(apart > m / 16, far, np.inf).min(axis=1)
        links = np.diagonal(far, 1)
        usual = np.median(links)
        # Where a curve is slow, nodes lie nearer to each other.
        shorter = np.minimum(np.append(links, usual), np.insert(links, 0, usual))
        near = others < np.minimum(shorter, usual)
        # Links differ by the density of the samples, by a factor of two.
        long = np.flatnonzero(links > 4.0 * usual)
        ends = np.union1d(long, long + 1)
        jumps = others[ends] < 2 * np.minimum(shorter, usual)[ends]
        # Others may lie on a few nodes, where a curve crosses itself.
        return bool(jumps.any() or near.mean() > 0.1)

    def project(self, samples: np.ndarray) -> "Projection":
        """Return the nearest places to samples, (n, q)."""
        count = ceil_div(max(1, len(samples)), 4000)
        blocks = [self._project(block) for block in np.array_split(samples, count)]
        return Projection(*map(np.concatenate, zip(*blocks, strict=True)))

    def _project(self, samples: np.ndarray) -> tuple[np.ndarray, ...]:
        """Places, means and tangents of a `Projection`, for a block of samples."""
        # The nearest node: half the squared distance, less what all nodes share.
        squares = (self.means**2).sum(axis=1)
        node = (squares / 2 - samples @ self.means.T).argmin(axis=1)
        tangents = self.tangents[node]
        off = samples - self.means[node]
        along = np.einsum("ndq,nq->nd", tangents, off)
        moved = np.einsum("nd,ndc->nc", along, self.steps[node])
        if self.topology == "circle":
            places = on_circle(signed_angle(self.places[node]) + moved[:, 0])
        else:
            places = self.places[node] + moved
        means = self.means[node] + np.einsum("nd,ndq->nq", along, tangents)
        return places, means, tangents


@dataclass(frozen=True)
class Projection:
    """Where samples lie on a sheet."""

    places: np.ndarray  # (n, c)
    means: np.ndarray  # (n, q): the points of the sheet
    tangents: np.ndarray  # (n, d, q)


def lay_sheet(places: np.ndarray, topology: str, samples: np.ndarray) -> Sheet:
    """Lay a sheet through samples, (n, q), whose places, (n, c), are known roughly."""
    k, explained = choose_neighbors(places, samples)
    if topology == "other":
        return replace(_lay_surface(places, samples, k), explained=explained)
    sheet = _lay_curve(places, topology, samples, k)
    slender = _slender_neighbors(sheet, samples, explained)
    if slender > k:
        sheet = _lay_curve(places, topology, samples, slender)
    return replace(sheet, explained=explained)


def _slender_neighbors(sheet: Sheet, samples: np.ndarray, explained: float) -> int:
    """Fewest neighbours that extend four times as far along a curve as across it."""
    length = 1 / sheet.steps[0, 0, 0]
    if sheet.topology == "circle":
        length *= 2 * np.pi
    across = np.sqrt(max(0.0, 1 - explained) * samples.var(axis=0).sum())
    return int(min(quotient(4.0 * across, length), 0.25) * len(samples))


def _lay_curve(places: np.ndarray, topology: str, samples: np.ndarray, n_neighbors: int) -> Sheet:
    """A chain of nodes, with places by the length of the chain."""
    at = _curve_nodes(places, topology, n_neighbors)
    means, _ = local_fit(places, samples, at, n_neighbors)
    closed = topology == "circle"
    beyond = np.pad(means, [(1, 1), (0, 0)], mode="wrap" if closed else "edge")
    along = beyond[2:] - beyond[:-2]
    tangents = quotient(along, np.linalg.norm(along, axis=1, keepdims=True))
    gaps = np.linalg.norm(np.diff(means, axis=0), axis=1)
    arc = np.concatenate([[0.0], np.cumsum(gaps)])
    if closed:
        total = arc[-1] + np.linalg.norm(means[0] - means[-1])
        nodes, step = on_circle(2 * np.pi * arc / total), 2 * np.pi / total
    else:
        nodes, step = arc[:, None] / arc[-1], 1 / arc[-1]
    steps = np.full((len(means), 1, 1), step)
    return Sheet(topology, nodes, means, tangents[:, None], steps)


def _curve_nodes(places: np.ndarray, topology: str, n_neighbors: int) -> np.ndarray:
    """Places of nodes: halfway between even in length and even in samples."""
    # More than two nodes in each neighbourhood would follow the noise of the regression. Between
    # neighbours among 128 nodes a circle deviates from its chord by 3e-4 of the radius.
    count = int(np.clip(int(2.0 * len(places) / n_neighbors), 12, 128))
    if topology == "circle":
        angle = np.sort(signed_angle(places) % (2 * np.pi))
        share = np.arange(count) / count
        even = angle[0] + 2 * np.pi * share
        return on_circle((even + np.quantile(angle, share)) / 2)
    # Few samples are stray, beyond either end of the interval.
    filled = np.quantile(places[:, 0], np.linspace(0.002, 1 - 0.002, count))
    even = np.linspace(filled[0], filled[-1], count)
    return ((even + filled) / 2)[:, None]


def _lay_surface(places: np.ndarray, samples: np.ndarray, n_neighbors: int) -> Sheet:
    """Nodes at some of the places, with tangents by the slopes of the regression."""
    # Between 400 nodes a sphere deviates from its tangent planes by 1 %.
    at = places[random_rows(len(places), 400)]
    means, slopes = local_fit(places, samples, at, n_neighbors)
    d = min(cloud_dimension(places), places.shape[1])
    left, strength, right = np.linalg.svd(slopes, full_matrices=False)
    # Among near copies all slopes of a node vanish: those of other nodes count, too.
    floor = np.maximum(LEAST_SLOPE * strength[:, :1], LEAST_SLOPE**2 * strength.max())
    inverse = quotient(1.0, np.maximum(strength[:, :d], floor))
    steps = inverse[:, :, None] * left[:, :, :d].transpose(0, 2, 1)
    return Sheet("other", at, means, right[:, :d], steps)
