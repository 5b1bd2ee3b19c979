"""Coordinates of intervals that are more accurate than those read from functions.

Functions of an interval are flat at its ends. Where samples have a metric, the coordinate u is
integrated from the direction g of the factor: neighbours have u_j - u_i = g . C^-1/2 (x_j - x_i).
In equilibrium, the share of samples below a place, among samples at the same place on the other
factors, is a function of that place alone, which small errors of a coordinate do not change.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import cg
from scipy.spatial import KDTree

from manifactor._support.threads import map_panels, row_slices
from manifactor.factors.factor import Factor, Reading
from manifactor.factors.placing import ByFunctions, Locate, Placer
from manifactor.factors.shapes import Places
from manifactor.operators.engines.gpu import with_data
from manifactor.operators.metric import STRAY, LocalMetric
from manifactor.operators.neighbors import chosen, row_of
from manifactor.operators.operator import Operator
from manifactor.statistics import random_rows

# Share of an interval at either end where a coordinate that was read off functions is not trusted,
# and what such samples count at least.
UNTRUSTED, LEAST_TRUST = 0.15, 0.02
# Ridge of the local regression: directions across the manifold get no gradient.
SLOPE_RIDGE = 0.05
# The part of the samples, one in so many, that are next to a place on the other factors. Of wells,
# fewer make places rough, and leave more of the others. Samples that others are compared with.
ALIKE, MOST_COMPARED = 3, 3000


@dataclass(frozen=True)
class Integrated(ByFunctions):
    """Places of which those on some intervals were corrected after they were read."""

    # Slopes of a coordinate along the prepared samples, (n_samples, n_features), or what was added
    # to it, (n_samples,); None where places are as they were read
    lines: tuple[np.ndarray | None, ...] = ()

    def places(self, factors: Sequence[Factor], diffusion: Operator, X: np.ndarray) -> list[Places]:
        """Return embedding and coordinate of prepared samples on each factor."""
        weights, nearest = diffusion.steps_from(X)
        functions = diffusion.extended_by(weights, nearest)
        places = [reading.place(functions) for reading in self.readings]
        rows, weights = diffusion.graph.distinct, sp.csr_array(weights)
        for number, (factor, line) in enumerate(zip(factors, self.lines, strict=True)):
            if line is None:
                continue
            line, known = chosen(line, rows), factor.coordinate
            if line.ndim == 1:
                along = places[number][0][:, 0] + _mean(weights, line)
            else:
                assert known is not None
                samples = chosen(diffusion.samples, rows)
                along = _along_slopes(X, samples, known[rows], line, weights)
                along[nearest >= 0] = known[rows][nearest[nearest >= 0]]
            along = np.clip(along, 0, 1)
            places[number] = along[:, None], along
        return places

    def locator(self, factors: Sequence[Factor], diffusion: Operator, n_new: int) -> Locate:
        """Return a function that places prepared samples, whatever the kernel."""
        return Placer.locator(self, factors, diffusion, n_new)


def _mean(weights: sp.csr_array, values: np.ndarray) -> np.ndarray:
    sums = weights.sum(axis=1)
    return weights @ values / np.where(sums > 0, sums, 1)


def _along_slopes(
    X: np.ndarray,
    samples: np.ndarray,
    coordinate: np.ndarray,
    slopes: np.ndarray,
    weights: sp.csr_array,
) -> np.ndarray:
    """Return the coordinate at new samples: the mean of what neighbours and slopes say."""
    sums = weights.sum(axis=1)
    mean = sp.csr_array(sp.diags_array(1 / np.where(sums > 0, sums, 1)) @ weights)
    # The slope of a new sample is that of its nearest neighbour.
    here = slopes[np.asarray(mean.argmax(axis=1)).ravel()]
    # Each neighbour j says u_j + (s_j + s) . (x - x_j) / 2.
    along = mean @ (coordinate - np.einsum("np,np->n", samples, slopes) / 2)
    along += np.einsum("np,np->n", X, mean @ slopes + here) / 2
    return along - np.einsum("np,np->n", mean @ samples, here) / 2


def integrated(
    factors: Sequence[Factor], readings: Sequence[Reading], diffusion: Operator
) -> tuple[tuple[Factor, ...], ByFunctions]:
    """Return factors with integrated coordinates of intervals, as they are without a metric."""
    if diffusion.metric is None:
        return tuple(factors), ByFunctions(tuple(readings))
    out, lines = [], []
    for factor in factors:
        line = None
        if factor.coordinate is not None and factor.topology == "interval":
            coordinate, line = _integrated(factor.coordinate, diffusion, diffusion.metric)
            factor = replace(factor, coordinate=coordinate, embedding=coordinate[:, None])
        out.append(factor)
        lines.append(line)
    return tuple(out), Integrated(tuple(readings), tuple(lines))


def unmixed(
    factors: Sequence[Factor], readings: Sequence[Reading], diffusion: Operator
) -> tuple[tuple[Factor, ...], Integrated]:
    """Return factors with coordinates of intervals that are independent of the others'."""
    rows, inverse = diffusion.graph.distinct, diffusion.graph.inverse
    places, shifts = [factor.embedding for factor in factors], []
    # Twice: what a coordinate is freed from must be free itself.
    for _ in range(2):
        shifts = [
            _shift(factor.embedding[:, 0], np.hstack([*places[:k], *places[k + 1 :]]))
            if factor.topology == "interval"
            else None
            for k, factor in enumerate(factors)
        ]
        places = [
            factor.embedding if shift is None else factor.embedding + shift[:, None]
            for factor, shift in zip(factors, shifts, strict=True)
        ]
    weights = sp.csr_array(diffusion.steps_from(diffusion.distinct_points)[0])
    out = list(factors)
    for k, shift in enumerate(shifts):
        if shift is not None:
            # The mean of neighbours, as for new samples: a share of a few hundred is rough.
            smooth = _mean(weights, shift[rows])[inverse]
            embedding = np.clip(out[k].embedding + smooth[:, None], 0, 1)
            out[k] = replace(out[k], coordinate=embedding[:, 0], embedding=embedding)
    return tuple(out), Integrated(tuple(readings), tuple(shifts))


def _shift(along: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return how samples move along an interval to be independent of places on other factors."""
    some = random_rows(len(along), MOST_COMPARED)
    known, tree = along[some], KDTree(others[some])
    shares = []
    for rows in row_slices(len(along), 5000):
        near = known[tree.query(others[rows], len(some) // ALIKE)[1]]
        own = along[rows, None]
        shares.append(((near < own).mean(axis=1) + (near <= own).mean(axis=1)) / 2)
    return np.quantile(along, np.concatenate(shares)) - along


def _integrated(
    rough: np.ndarray, diffusion: Operator, metric: LocalMetric
) -> tuple[np.ndarray, np.ndarray]:
    """Return the coordinate of an interval, (n_samples,), and its slopes."""
    rows, inverse = diffusion.graph.distinct, diffusion.graph.inverse
    samples, rough, metric = chosen(diffusion.samples, rows), rough[rows], metric.chosen(rows)
    flat = metric.flat
    if flat is not None and flat.n_lines:
        # These are along the factors already.
        lines = flat.places[:, : flat.n_lines]
        own = int(np.abs(np.corrcoef(lines.T, rough)[-1, :-1]).argmax())
        along, slopes = lines[:, own], flat.frames[:, own]
    else:
        affinity = diffusion.affinity
        # The kernel between different samples, whatever their density.
        pull = sp.diags_array(affinity.pull / affinity.pull.mean())
        near = sp.csr_array(pull @ affinity.kernel @ pull)
        near.setdiag(0)
        near.eliminate_zeros()
        slopes = _unit_slopes(rough, samples, metric, near)
        along = _integral(samples, slopes, near)
    low, high = np.quantile(along, [STRAY, 1 - STRAY])
    coordinate = np.clip((along - low) / (high - low), 0, 1)[inverse]
    return coordinate, (slopes / (high - low))[inverse]


def _unit_slopes(
    rough: np.ndarray, samples: np.ndarray, metric: LocalMetric, near: sp.csr_array
) -> np.ndarray:
    """Return the slopes of the coordinate along the samples, (n, p): unit ones in the metric."""
    trust = np.clip(np.minimum(rough, 1 - rough) / UNTRUSTED, LEAST_TRUST, 1)
    trusted = with_data(near, near.data * trust[row_of(near)] * trust[near.indices])
    # Symmetric frames of neighbours can be averaged, those of axes cannot.
    slopes = partial(_slopes, rough, samples, metric, trusted)
    local = np.concatenate(map_panels(slopes, len(samples), smallest=256, largest=512))
    mean = trusted @ local + trust[:, None] * local
    inside = np.einsum("np,npq->nq", mean, metric.axes)
    length = np.linalg.norm(inside, axis=1, keepdims=True)
    inside /= np.maximum(length, np.finfo(float).tiny) * metric.scales
    return np.einsum("npq,nq->np", metric.axes, inside)


def _slopes(
    rough: np.ndarray, samples: np.ndarray, metric: LocalMetric, trusted: sp.csr_array, rows: slice
) -> np.ndarray:
    """Return the gradients of a coordinate at some samples, (n_rows, p), in units of moves."""
    some = trusted[rows]
    row, column, own = row_of(some), some.indices, metric.chosen(np.r_[rows])
    moves = samples[column] - samples[rows][row]
    inside = np.einsum("ep,epq->eq", moves, own.axes[row]) / own.scales[row]
    weighted = some.data[:, None] * inside
    pick = sp.csr_array((np.ones(len(row)), np.arange(len(row)), some.indptr))
    q = inside.shape[1]
    gram = (pick @ (weighted[:, :, None] * inside[:, None]).reshape(-1, q * q)).reshape(-1, q, q)
    right = pick @ (weighted * (rough[column] - rough[rows][row])[:, None])
    extent = np.einsum("naa->n", gram)
    ridge = SLOPE_RIDGE * np.maximum(extent, 1e-9 * extent.max())
    inside = np.linalg.solve(gram + ridge[:, None, None] * np.eye(q), right[:, :, None])
    return (own.axes @ inside)[:, :, 0]


def _integral(samples: np.ndarray, slopes: np.ndarray, near: sp.csr_array) -> np.ndarray:
    """Return the function on the samples whose differences are nearest to those of the slopes."""
    own = np.einsum("np,np->n", samples, slopes)
    # Step from i to j: (s_i + s_j) . (x_j - x_i) / 2, summed over i with the weights.
    incoming = near.T
    degree = incoming.sum(axis=1)
    target = np.einsum("np,np->n", incoming @ slopes, samples) - incoming @ own
    target += degree * own - np.einsum("np,np->n", incoming @ samples, slopes)
    laplacian = sp.diags_array(degree) - near
    # A little of the identity: the coordinate is known up to a constant.
    regular = laplacian + 1e-9 * degree.mean() * sp.eye_array(len(own))
    scale = sp.diags_array(1 / np.maximum(degree, np.finfo(float).tiny))
    return cg(regular, (target - target.mean()) / 2, rtol=1e-6, maxiter=3000, M=scale)[0]
