"""Coordinates of intervals by integration of unit gradients, where samples have a metric.

Functions of an interval are flat at its ends, so that small errors of them move samples there by
their root. With the direction g of the factor at every sample, in units of local moves, neighbours
have u_j - u_i = g . C^-1/2 (x_j - x_i): a sparse least-squares problem for the coordinate u.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import cg

from manifactor._support.threads import map_panels
from manifactor.factors.factor import Factor, Reading
from manifactor.factors.placing import ByFunctions, Locate, general_locator
from manifactor.factors.shapes import Places
from manifactor.operators.kernel import Affinity
from manifactor.operators.metric import STRAY, LocalMetric
from manifactor.operators.neighbors import chosen, row_of, with_data
from manifactor.operators.operator import Operator

# Share of an interval at either end where a coordinate that was read off functions is not trusted.
UNTRUSTED = 0.15
# What such samples count at least.
LEAST_TRUST = 0.02
# Ridge of the local regression: directions across the manifold get no gradient.
SLOPE_RIDGE = 0.05


class Step(NamedTuple):
    """New samples, and one step of the walk from them, as `Operator.steps_from` returns it."""

    diffusion: Operator
    X: np.ndarray
    weights: sp.csr_array | np.ndarray
    nearest: np.ndarray


@dataclass(frozen=True)
class Integrated(ByFunctions):
    """Places of which those on some intervals were integrated from slopes of the coordinate.

    These are its changes along the prepared samples, (n_samples, n_features).
    """

    lines: tuple[np.ndarray | None, ...] = ()  # None where places are read from functions

    def places(self, factors: Sequence[Factor], diffusion: Operator, X: np.ndarray) -> list[Places]:
        """Return embedding and coordinate of prepared samples on each factor."""
        step = Step(diffusion, X, *diffusion.steps_from(X))
        functions = diffusion.extended_by(step.weights, step.nearest)
        places = [reading.place(functions) for reading in self.readings]
        for number, (factor, line) in enumerate(zip(factors, self.lines, strict=True)):
            if line is not None:
                along = self.along(line, factor, places[number][0][:, 0], step)
                places[number] = along[:, None], along
        return places

    def locator(self, factors: Sequence[Factor], diffusion: Operator, n_new: int) -> Locate:
        """Return a function that places prepared samples."""
        return general_locator(self, factors, diffusion)

    def along(self, line: np.ndarray, factor: Factor, rough: np.ndarray, step: Step) -> np.ndarray:
        """Return the coordinate at new samples: the mean of what neighbours and slopes say.

        The slope of a new sample is that of its nearest neighbour.
        """
        assert factor.coordinate is not None
        rows = step.diffusion.graph.distinct
        coordinate, slopes = factor.coordinate[rows], chosen(line, rows)
        samples = chosen(step.diffusion.samples, rows)
        weights = sp.csr_array(step.weights)
        sums = weights.sum(axis=1)
        mean = sp.csr_array(sp.diags_array(1 / np.where(sums > 0, sums, 1)) @ weights)
        here = slopes[np.asarray(mean.argmax(axis=1)).ravel()]
        # Each neighbour j says u_j + (s_j + s) . (x - x_j) / 2.
        along = mean @ (coordinate - np.einsum("np,np->n", samples, slopes) / 2)
        along += np.einsum("np,np->n", step.X, mean @ slopes + here) / 2
        along -= np.einsum("np,np->n", mean @ samples, here) / 2
        along[step.nearest >= 0] = coordinate[step.nearest[step.nearest >= 0]]
        return np.clip(along, 0, 1)


def integrated(
    factors: Sequence[Factor], readings: Sequence[Reading], diffusion: Operator
) -> tuple[tuple[Factor, ...], ByFunctions]:
    """Return factors with coordinates of intervals as accurate at their ends as elsewhere.

    All of them are returned as they are where samples have no metric.
    """
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
        near = _weights(diffusion.affinity)
        slopes = _unit_slopes(rough, samples, metric, near)
        along = _integral(samples, slopes, near)
    low, high = np.quantile(along, [STRAY, 1 - STRAY])
    coordinate = np.clip((along - low) / (high - low), 0, 1)[inverse]
    return coordinate, (slopes / (high - low))[inverse]


def _weights(affinity: Affinity) -> sp.csr_array:
    """Return the kernel between different samples, whatever their density."""
    pull = sp.diags_array(affinity.pull / affinity.pull.mean())
    weights = sp.csr_array(pull @ affinity.kernel @ pull)
    weights.setdiag(0)
    weights.eliminate_zeros()
    return weights


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
