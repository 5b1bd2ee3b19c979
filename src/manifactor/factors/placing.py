"""Where new samples lie on the factors: the usual placer, by functions, and blocks of samples."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.spatial import KDTree

from manifactor._support.threads import cores
from manifactor.factors.factor import Factor, Reading
from manifactor.factors.shapes import Places
from manifactor.operators.extension import CombinedFunctions, is_combinable
from manifactor.operators.laplacian import LEAST_COMPANY
from manifactor.operators.neighbors import nearest_point
from manifactor.operators.operator import Operator


class Placed(NamedTuple):
    """Where samples lie on one factor.

    Attributes
    ----------
    embedding : ndarray of shape (n, n_coordinates)
    coordinate : ndarray of shape (n,) or None
        None where the factor is neither an interval nor a circle.
    confidence : ndarray of shape (n,)
    """

    embedding: np.ndarray
    coordinate: np.ndarray | None
    confidence: np.ndarray


# From prepared samples, (n, n_features), to their places on each factor.
Locate = Callable[[np.ndarray], list[Placed]]


class Placer:
    """What new samples are placed by on the factors of a diffusion: one class for each way."""

    @property
    def coefficients(self) -> tuple[np.ndarray, ...]:
        """The functions of each factor as combinations of the spectrum's, if they are such."""
        return ()

    def places(self, factors: Sequence[Factor], diffusion: Operator, X: np.ndarray) -> list[Places]:
        """Return embedding and coordinate of prepared samples on each factor.

        Where functions place them, samples far from all of those of the fit are refused.
        """
        return [placed[:2] for placed in place_blocks(X, self.locator(factors, diffusion, len(X)))]

    def locator(self, factors: Sequence[Factor], diffusion: Operator, n_new: int) -> Locate:
        """Return a function that places prepared samples, about `n_new` in all.

        The confidence of a new sample is that of the nearest training sample. A sample far from all
        of them lies where the nearest one lies, with confidence 0.
        """
        return partial(_place_block, self, factors, diffusion, _nearest(diffusion))

    def searchable(self, n_jobs: int | None) -> Self:
        """Return the same with neighbour searches, which archives do not hold."""
        return self

    def with_copies(self, rows: np.ndarray, copy_of: np.ndarray) -> Self:
        """Return the same for samples with copies, as an `Operator` does."""
        return self


@dataclass(frozen=True)
class ByFunctions(Placer):
    """Places that are read from the functions of a diffusion."""

    readings: tuple[Reading, ...] = ()

    @property
    def coefficients(self) -> tuple[np.ndarray, ...]:
        """The functions of each factor as combinations of the spectrum's."""
        return tuple(reading.coefficients for reading in self.readings)

    def places(self, factors: Sequence[Factor], diffusion: Operator, X: np.ndarray) -> list[Places]:
        """Return embedding and coordinate of prepared samples by all functions."""
        functions = diffusion.extended(X)
        return [reading.place(functions) for reading in self.readings]

    def locator(self, factors: Sequence[Factor], diffusion: Operator, n_new: int) -> Locate:
        """Return a function that places prepared samples, by few combinations if possible."""
        if not is_combinable(diffusion):
            return super().locator(factors, diffusion, n_new)
        outliers, distinct = diffusion.graph.outliers, diffusion.graph.distinct
        stray = None
        if outliers.any():
            general = super().locator(factors, diffusion, n_new)
            stray = KDTree(diffusion.samples[outliers]), general
        readings = [replace(each, chart=each.chart.effective()) for each in self.readings]
        blocks = [reading.chart.combinations for reading in readings]
        combined = np.hstack(blocks)
        functions = CombinedFunctions(diffusion, combined, reach=diffusion.reach, n_new=n_new)
        ends = np.cumsum([block.shape[1] for block in blocks])
        confidences = [factor.confidence[distinct] for factor in factors]
        return partial(_place_combined, readings, functions, ends, confidences, stray)


def _place_block(
    placer: Placer,
    factors: Sequence[Factor],
    diffusion: Operator,
    nearest: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    X: np.ndarray,
) -> list[Placed]:
    """Places of prepared samples, given a function to the nearest sample of the fit."""
    distance, index = nearest(X)
    far = distance > diffusion.reach
    # Far samples have no kernel to be placed by, and would be refused by `steps_from`, as those
    # behind outliers would be. All of them lie where the nearest one lies.
    off = far | diffusion.graph.outliers[index]
    inside = np.where(off[:, None], diffusion.samples[index], X)
    return [
        Placed(*places, np.where(far, 0.0, factor.confidence[index]))
        for factor, places in zip(factors, placer.places(factors, diffusion, inside), strict=True)
    ]


def _nearest(diffusion: Operator) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Return a function from samples to distance and index of the nearest sample of the fit."""
    metric, samples = diffusion.metric, diffusion.samples
    plain = nearest_point(samples)
    if metric is None:
        return plain

    def in_metric(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        _, index = plain(X)
        if metric.flat is not None:
            steps = metric.flat.steps(index, X - samples[index])
            return np.linalg.norm(steps, axis=1), index
        moves = metric.along(index, X - samples[index])
        return np.sqrt(metric.squared_lengths(index, index, moves)), index

    return in_metric


def _place_combined(
    readings: Sequence[Reading],
    functions: CombinedFunctions,
    ends: np.ndarray,
    confidences: Sequence[np.ndarray],
    stray: tuple[KDTree, Locate] | None,
    X: np.ndarray,
) -> list[Placed]:
    """Places of prepared samples; near outliers, which are `stray`, by another locator."""
    at = functions(X)
    far = at.distance > functions.reach
    values = np.split(at.combined, ends[:-1], axis=1)
    out = [
        Placed(*reading.on_shape(reading.chart.read(own)), np.where(far, 0.0, sure[at.nearest]))
        for reading, own, sure in zip(readings, values, confidences, strict=True)
    ]
    if stray is None:
        return out
    outliers, locate = stray
    off, _ = outliers.query(X, workers=cores())
    rows = np.flatnonzero((off < at.distance) | (at.company < LEAST_COMPANY))
    if len(rows):
        for placed, general in zip(out, locate(X[rows]), strict=True):
            for column, values_there in zip(placed, general, strict=True):
                if column is not None:
                    column[rows] = values_there
    return out


def place_blocks(
    X: Any,
    locate: Locate,
    *,
    prepare: Callable[[Any, int], np.ndarray] = lambda some, first_row: some,
    block: int = 20_000,
) -> list[Placed]:
    """Return where samples lie on each factor, placed block by block to save memory.

    Shapes: X (n, n_features).
    """
    X = X if hasattr(X, "shape") else np.asarray(X)
    rows = getattr(X, "iloc", X)
    # Block by block: samples on disk are never in memory as a whole.
    starts = range(0, max(1, X.shape[0]), block)
    blocks = [locate(prepare(rows[start : start + block], start)) for start in starts]
    return [_joined(parts) for parts in zip(*blocks, strict=True)]


def _joined(parts: Sequence[Placed]) -> Placed:
    """Places of blocks of samples, one block after the other."""
    columns = zip(*parts, strict=True)
    return Placed(*(None if each[0] is None else np.concatenate(each) for each in columns))  # type: ignore[arg-type]
