"""Samples in pieces that are copies of each other: levels of a factor, or classes.

Pieces that coincide once they are moved onto each other are a product of one piece and of the
places of the pieces. These have an axis of their own, along which samples are spread evenly around
each level: what was a gap is then a factor like all others.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

from manifactor.factors.factor import Factor
from manifactor.factors.levels import LEAST_LEVELS, MOST_LEVELS
from manifactor.factors.placing import ByFunctions, Locate, Placed, Placer, place_blocks
from manifactor.factors.shapes import Places, on_circle
from manifactor.models.sums.summands import ByTerms
from manifactor.operators.neighbors import nearest_point
from manifactor.operators.operator import Operator
from manifactor.statistics import predictability, random_rows, split_at_gaps

# Of more samples, a tree takes more than a second.
MOST_SAMPLES = 50_000


@dataclass(frozen=True)
class Pieces:
    """Pieces of samples, where they lie, and the axis that is given to them."""

    label: np.ndarray  # (n,): the piece of each sample of the fit
    offsets: np.ndarray  # (k, p): what is to be taken off the samples of each piece
    level: np.ndarray  # (k,): the place of each piece in their order
    closed: bool  # whether the order is around a circle
    size: float  # length of the axis

    def unfolded(self, X: np.ndarray, label: np.ndarray, shift: np.ndarray | float) -> np.ndarray:
        """Return samples of known pieces moved onto each other, and beside them on the axis.

        Shapes: X (n, p), label (n,) -> (n, p + 1), or (n, p + 2) around a circle.
        """
        share = (self.level[label] + 0.5 + shift) / len(self.level)
        turned = on_circle(2 * np.pi * share) / (2 * np.pi) if self.closed else share[:, None]
        return np.hstack([X - self.offsets[label], self.size * turned])

    def places(self, label: np.ndarray) -> Places:
        """Return the places of samples of known pieces on their axis."""
        if self.closed:
            angle = 2 * np.pi * self.level[label] / len(self.level)
            return on_circle(angle), angle
        share = self.level[label] / (len(self.level) - 1)
        return share[:, None], share

    def is_axis(self, factor: Factor) -> bool:
        """Return whether a factor of the unfolded samples is the axis."""
        if factor.topology != ("circle" if self.closed else "interval"):
            return False
        return bool(predictability(self.places(self.label)[0], factor.embedding).min() > 0.5)


@dataclass(frozen=True)
class ByPieces(Placer):
    """Places on the factors of unfolded pieces; a new sample is of the piece of its nearest one."""

    pieces: Pieces
    diffusion: Operator  # of the unfolded samples
    placer: ByFunctions | ByTerms
    axis: int  # index of the factor that is the axis

    def located(self, factors: Sequence[Factor], diffusion: Operator) -> tuple[Factor, ...]:
        """Return factors of unfolded samples with the places of the samples themselves."""
        samples, label = diffusion.samples, self.pieces.label
        placed = place_blocks(samples, self.locator(factors, diffusion, len(samples)))
        at = zip(factors, placed, strict=True)
        out = [replace(f, embedding=p.embedding, coordinate=p.coordinate) for f, p in at]
        axis = out[self.axis]
        # Functions of levels are as many as there are further levels.
        few = slice(len(self.pieces.level) - 1)
        member = np.eye(len(self.pieces.level))[label]
        functions = member @ (member.T @ axis.functions[:, few] / member.sum(axis=0)[:, None])
        functions /= np.sqrt((functions**2).mean(axis=0))
        out[self.axis] = replace(axis, functions=functions, eigenvalues=axis.eigenvalues[few])
        return tuple(out)

    def locator(self, factors: Sequence[Factor], diffusion: Operator, n_new: int) -> Locate:
        """Return a function that places prepared samples, about `n_new` in all."""
        inner = self.placer.locator(factors, self.diffusion, n_new)
        return partial(_place, self, nearest_point(diffusion.samples), inner)

    def searchable(self, n_jobs: int | None) -> Self:
        """Return the same with neighbour searches of the unfolded samples."""
        placer = self.placer.searchable(n_jobs)
        return replace(self, diffusion=self.diffusion.searchable(n_jobs), placer=placer)

    def with_copies(self, rows: np.ndarray, copy_of: np.ndarray) -> Self:
        """Return the same for samples with copies, as an `Operator` does."""
        return replace(
            self,
            pieces=replace(self.pieces, label=self.pieces.label[copy_of]),
            diffusion=self.diffusion.with_copies(rows, copy_of),
            placer=self.placer.with_copies(rows, copy_of),
        )


def _place(
    placer: ByPieces,
    nearest: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    inner: Locate,
    X: np.ndarray,
) -> list[Placed]:
    pieces, axis = placer.pieces, placer.axis
    label = pieces.label[nearest(X)[1]]
    placed = inner(pieces.unfolded(X, label, 0.0))
    placed[axis] = Placed(*pieces.places(label), placed[axis].confidence)
    return placed


def find_pieces(operator: Operator) -> Pieces | None:
    """Return pieces of samples that are copies of each other, moved; None if there are none."""
    samples, label = operator.points, None
    few = len(operator.graph.distinct) <= MOST_SAMPLES
    if samples is not None and few and sp.issparse(operator.graph.distances):
        label = _linked(operator)
    if samples is None or label is None:
        return None
    offsets = _aligned(samples, label)
    order, closed = _order(offsets)
    level = np.empty(len(order))
    level[order] = np.arange(len(order))
    rest = samples - offsets[label]
    # Of the size of a piece: the functions of a factor much smaller than others lie far up.
    size = 3 * np.sqrt(rest.var(axis=0).sum())
    return Pieces(label, offsets, level, closed, float(size))


def _linked(operator: Operator) -> np.ndarray | None:
    """Return the piece of each sample, (n,), as gaps between samples tell them."""
    graph, points = operator.graph, np.asarray(operator.distinct_points)
    tree = minimum_spanning_tree(graph.distances).tocoo()
    ends = np.vstack([np.column_stack([tree.row, tree.col]), graph.bridges]).astype(int)
    lengths = np.linalg.norm(points[ends[:, 0]] - points[ends[:, 1]], axis=1)
    order = np.argsort(-lengths)

    def labels(count: int) -> np.ndarray:
        kept = ends[order[count - 1 :]]
        links = sp.csr_array(
            (np.ones(len(kept)), (kept[:, 0], kept[:, 1])), shape=(len(points),) * 2
        )
        return connected_components(links, directed=False)[1]

    found = split_at_gaps(lengths[order], labels, most=MOST_LEVELS)
    return None if found is None else found[graph.inverse]


def _aligned(samples: np.ndarray, label: np.ndarray) -> np.ndarray:
    """Return the offsets of pieces, (k, p), with which they coincide best."""
    count = int(label.max()) + 1
    offsets = np.array([samples[label == each].mean(axis=0) for each in range(count)])
    some = random_rows(len(samples), 5000)
    own = label[some]
    # Means differ by chance. To the nearest samples of all pieces, a circle that is off by d has
    # d / 2 on the average.
    for _ in range(8):
        rest = samples[some] - offsets[own]
        moved = np.zeros_like(offsets)
        for each in range(count):
            inside = own == each
            others = rest[~inside]
            moved[each] = (others[nearest_point(others)(rest[inside])[1]] - rest[inside]).mean(
                axis=0
            )
        offsets = offsets - moved
    return offsets


def _order(offsets: np.ndarray) -> tuple[np.ndarray, bool]:
    """Return the order of pieces along a line or around a circle, and whether it is a circle."""
    apart = np.linalg.norm(offsets[:, None] - offsets, axis=2)
    count = len(offsets)
    other = ~np.eye(count, dtype=bool)
    # Neighbours: no third piece is nearer to both.
    third = other[:, None] & other[None]
    nearer = np.maximum(apart[:, None], apart[None]).min(axis=2, initial=np.inf, where=third)
    degree = ((apart <= nearer) & other).sum(axis=1)
    # From an end. Where pieces lie on no curve, any order will do.
    path = [int(degree.argmin())]
    while len(path) < count:
        left = np.setdiff1d(np.arange(count), path)
        path.append(int(left[apart[path[-1], left].argmin()]))
    return np.array(path), count >= LEAST_LEVELS and bool((degree == 2).all())
