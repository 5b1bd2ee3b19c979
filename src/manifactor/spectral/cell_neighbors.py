"""Exact nearest neighbours by torch, on a GPU or on the CPU: far cells are ruled out.

Samples lie in the cells of landmarks, which are samples chosen at random. A query is compared with
all samples of the cells within its reach: those whose lower bound, the distance of their landmark
from the query's less their radius, is smaller. By the triangle inequality no other sample is nearer
to the query than the reach less the query's distance from its landmark, so a query with all its
neighbours that near is done. At first the reach takes in a fixed number of cells; a query that is
not done then knows which reach is sufficient.

Distances come from matrix products in coordinates relative to the landmark. Their rounding can swap
neighbours, so more candidates than neighbours are chosen, and measured again by differences of
coordinates. Queries for which that is not conclusive, in clusters of samples much smaller than
their cell, are ambiguous: they are searched once more, by differences alone.
"""

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from manifactor._support.errors import extra
from manifactor.spectral.cells import (
    LEAST_STEP_BYTES,
    SAMPLES_PER_CELL,
    SampleCells,
    SearchPass,
    StepMemory,
    choose_candidates,
    end_of_batch,
    make_batch,
    make_cells,
    query_blocks,
    step_memory,
)
from manifactor.spectral.exact import NeighborSearch, neighbor_rows
from manifactor.spectral.gpu import ResidentMatrix

if TYPE_CHECKING:
    from torch import Tensor


# Cells that a query searches first: on a surface, 19 of 20 queries then know their 64 nearest
# neighbours.
FIRST_CELLS = 16

# Distances between new and fitted samples that are computed at a time.
DISTANCES_PER_STEP = 2**28


@dataclass(frozen=True)
class Answers:
    """Neighbours of some queries within their reach."""

    rows: "Tensor"  # (m,): the queries, counted in the order of the cells, as the columns are
    distances: "Tensor"  # (m, n_neighbors): ascending; infinite where there were fewer candidates
    columns: "Tensor"  # (m, n_neighbors): the neighbours
    needed_reach: "Tensor"  # (m,): the reach that proves them the nearest of all
    ambiguous: "Tensor"  # (m,): whether rounding may have hidden nearer samples within reach


def nearest(X: "Tensor", n_neighbors: int) -> tuple["Tensor", "Tensor"]:
    """Return distances and indices of every sample's nearest other samples.

    A sample is never its own neighbour; a copy of it is one, at distance 0.

    >>> X = torch.tensor([[0.0], [1.0], [3.0]])  # doctest: +SKIP
    >>> distances, indices = nearest(X, 1)  # doctest: +SKIP
    >>> distances[:, 0], indices[:, 0]  # doctest: +SKIP
    (tensor([1., 1., 2.]), tensor([1, 0, 1]))

    Shapes: X (n, d) -> distances (n, n_neighbors), indices (n, n_neighbors).
    """
    _require_full_precision(X)
    # The error is suppressed and raised anew outside: its traceback would hold on to the memory of
    # the device.
    with suppress(extra("torch").OutOfMemoryError):
        return _nearest(X.detach(), n_neighbors)
    raise MemoryError(
        f"{n_neighbors} neighbours of {len(X)} samples must fit into the memory of the "
        f"device {str(X.device)!r}; it was full even with steps of "
        f"{LEAST_STEP_BYTES // 2**20} MiB. Free memory there, lower "
        "`n_neighbors` or search on the CPU."
    )


def _nearest(X: "Tensor", n_neighbors: int) -> tuple["Tensor", "Tensor"]:
    """Return the result of `nearest` if memory suffices."""
    torch = extra("torch")
    memory = step_memory(X.device.type)
    cells = make_cells(X, memory)
    shape = len(X), n_neighbors
    distances = torch.empty(shape, dtype=torch.float32, device=X.device)
    indices = torch.empty(shape, dtype=torch.int64, device=X.device)
    # Answers count samples in the order of the cells, the caller in the given order.
    for answers in _answers(cells, n_neighbors, memory):
        given = cells.order[answers.rows]
        distances[given] = answers.distances * cells.scale
        indices[given] = cells.order[answers.columns]
    return distances, indices


def _require_full_precision(X: "Tensor") -> None:
    """Raise ValueError if torch rounds matrix products below single precision."""
    torch = extra("torch")
    single = {"dtype": torch.float32, "device": X.device}
    # 4/3 needs all digits of single precision; with fewer the product differs.
    thirds = torch.full((1, 64, 64), 4 / 3, **single)
    product = torch.bmm(thirds, torch.eye(64, **single)[None])
    if not torch.equal(product, thirds):
        raise ValueError(
            "exact neighbours need matrix products in full single precision; torch is "
            "set to round them to fewer digits. Call "
            "torch.set_float32_matmul_precision('highest') first."
        )


def _answers(cells: SampleCells, n_neighbors: int, memory: StepMemory) -> Iterator[Answers]:
    """Yield answers for all samples; a later answer replaces an earlier one."""
    torch = extra("torch")
    rows = torch.arange(len(cells.home), device=cells.home.device)
    copies = _landmark_copies(cells, n_neighbors)
    yield from _answers_for_copies(cells, rows[copies], n_neighbors, memory)
    rows = rows[~copies]
    reach = _first_reach(cells, n_neighbors, memory)
    search = SearchPass(cells, n_neighbors, reach)
    for final in (False, True):
        needed = torch.empty_like(cells.offset)
        ambiguous = torch.empty_like(copies)
        for answers in _searched(search, rows, memory):
            yield answers
            needed[answers.rows] = answers.needed_reach
            ambiguous[answers.rows] = answers.ambiguous
        # The reach that the first pass computes is always sufficient for the second.
        done = (needed[rows] <= search.reach[rows]) | final
        unclear = rows[done & ambiguous[rows]]
        yield from _searched(replace(search, by_differences=True), unclear, memory)
        # By cell, and those of like reach side by side: they will share a block, whose reach is
        # that of its farthest-reaching query.
        rows = rows[~done]
        rows = rows[needed[rows].argsort(stable=True)]
        rows = rows[cells.home[rows].argsort(stable=True)]
        search = replace(search, reach=needed)


def _landmark_copies(cells: SampleCells, n_neighbors: int) -> "Tensor":
    """Return which samples are copies of their landmark with enough others, (n,).

    They need no search, as nothing is nearer than 0.
    """
    copies = cells.offset == 0
    count = extra("torch").zeros_like(cells.count)
    count.index_add_(0, cells.home, copies.long())
    return copies & (count > n_neighbors)[cells.home]


def _answers_for_copies(
    cells: SampleCells, rows: "Tensor", n_neighbors: int, memory: StepMemory
) -> Iterator[Answers]:
    """Yield answers for copies of their landmark: the copies that follow, in a circle.

    The copies stand side by side at the start of the cell.
    """
    torch = extra("torch")
    ahead = torch.arange(1, n_neighbors + 1, device=rows.device)
    home, size = torch.unique_consecutive(cells.home[rows], return_counts=True)
    start = cells.start[home].repeat_interleave(size)[:, None]
    size = size.repeat_interleave(size)[:, None]
    step = memory.size // (32 * n_neighbors) + 1
    for first in range(0, len(rows), step):
        some = slice(first, first + step)
        place = rows[some, None] - start[some]
        columns = start[some] + (place + ahead) % size[some]
        zeros = torch.zeros_like(columns, dtype=torch.float32)
        zero = zeros[:, 0]
        yield Answers(
            rows=rows[some], distances=zeros, columns=columns, needed_reach=zero, ambiguous=zero > 0
        )


def _first_reach(cells: SampleCells, n_neighbors: int, memory: StepMemory) -> "Tensor":
    """Return the reach, (n,), that takes in the first cells of each query."""
    # They hold at least 4 samples for each neighbour that is sought.
    count = max(FIRST_CELLS, 4 * n_neighbors // SAMPLES_PER_CELL)
    n_cells = len(cells.count)
    # All cells are within an infinite reach, and no second pass is needed.
    if n_cells <= count:
        return cells.offset.new_full(cells.offset.shape, math.inf)

    def reach_of(which: slice) -> "Tensor":
        bounds = cells.lower_bounds(which)
        nearest_cells = bounds.topk(count + 1, dim=1, largest=False)
        return nearest_cells.values[:, -1]

    reach = memory.in_blocks(reach_of, n_cells, 16 * n_cells)
    return reach[cells.home]


def _searched(search: SearchPass, rows: "Tensor", memory: StepMemory) -> Iterator[Answers]:
    """Yield answers for some queries, those of a cell side by side."""
    if not len(rows):
        return
    blocks, start = query_blocks(search, rows, memory), 0

    def of_next_batch(step_bytes: int) -> tuple[Answers, int]:
        """Return answers for as many blocks as fit, and where the next batch begins."""
        stop = end_of_batch(search, blocks, start, step_bytes)
        batch = make_batch(search, rows, blocks, slice(start, stop))
        value, columns = choose_candidates(search, batch, step_bytes)
        some = batch.present
        found = _measured(search, batch.queries[some], columns[some], value[some], step_bytes)
        return found, stop

    while start < len(blocks.load):
        answers, start = memory.fit(of_next_batch)
        yield answers


def _measured(
    search: SearchPass, rows: "Tensor", columns: "Tensor", value: "Tensor", step_bytes: int
) -> Answers:
    """Return the nearest of the candidates of each query, and what they prove."""
    torch = extra("torch")
    cells = search.cells
    squares = _exact_squares(cells.samples, rows, columns, step_bytes)
    # Neither the query itself nor padding is a neighbour.
    itself = columns == rows[:, None]
    squares.masked_fill_(itself | value.isinf(), math.inf)
    squares, nth = squares.sort(dim=1)
    squares = squares[:, : search.n_neighbors]
    nth = nth[:, : search.n_neighbors]
    distances = squares.sqrt()
    columns = columns.gather(1, nth)
    last = distances[:, -1]
    offset = cells.offset[rows]
    needed_reach = (last + offset) * (1 + cells.rounding)
    if search.by_differences:
        ambiguous = torch.zeros_like(rows, dtype=torch.bool)
    else:
        # The query lies `offset` from the landmark, and a sample nearer than the last neighbour at
        # most `offset` + `last`. The square of the sum bounds the error.
        rounding = cells.rounding * (2 * offset + last).square()
        others = value.amax(1) + offset.square() - rounding
        # Squared distances that differ by less, relatively, need not be distinguished.
        ambiguous = (last > 0) & (others < (1 - 1e-5) * last.square())
    return Answers(rows, distances, columns, needed_reach, ambiguous)


def _exact_squares(
    samples: "Tensor", rows: "Tensor", columns: "Tensor", step_bytes: int
) -> "Tensor":
    """Return squared distances of queries to their candidates, (m, n_chosen)."""
    row_bytes = 12 * columns.shape[1] * samples.shape[1]
    step = step_bytes // row_bytes + 1
    squares = []
    for i, j in zip(rows.split(step), columns.split(step), strict=True):
        gap = samples[i][:, None] - samples[j]
        squares.append(gap.square_().sum(2))
    return extra("torch").cat(squares)


# The search behind the interface of the others.


@dataclass(frozen=True)
class NeighborTable:
    """Neighbours of every sample, on the device."""

    distances: "Tensor"  # (n, n_neighbors)
    indices: "Tensor"  # (n, n_neighbors)

    def copies(self) -> sp.csr_array:
        """Return ones for the neighbours at distance 0, on the host, (n, n)."""
        n_samples = len(self.indices)
        zero = self.distances == 0
        row, nth = zero.nonzero(as_tuple=True)
        column = self.indices[row, nth]
        pairs = (row.cpu().numpy(), column.cpu().numpy())
        entries = (np.ones(len(row)), pairs)
        return sp.csr_array(entries, shape=(n_samples, n_samples))

    def symmetric(self) -> ResidentMatrix:
        """Return a matrix with an entry wherever either sample is a neighbour."""
        torch = extra("torch")
        n, k = self.indices.shape
        row = torch.arange(n, device=self.indices.device)
        row = row[:, None].expand(n, k).reshape(-1)
        column = self.indices.reshape(-1)
        # One number for each pair: sorting it brings both directions of an edge together and puts
        # the entries into the order of the rows.
        keys = torch.cat([row * n + column, column * n + row])
        key, order = keys.sort()
        kept = torch.ones_like(key, dtype=torch.bool)
        kept[1:] = key[1:] != key[:-1]
        key = key[kept]
        order = order[kept]
        count = torch.bincount(key // n, minlength=n)
        starts = torch.cat([count.new_zeros(1), count.cumsum(0)])
        distances = self.distances.reshape(-1)
        return ResidentMatrix(
            starts=starts.int(), columns=(key % n).int(), entries=distances[order % (n * k)]
        )


class DeviceSearch(NeighborSearch):
    """Exact search on a torch device.

    Neighbours of the fitted samples are found in cells, those of new samples by comparing all
    pairs.
    """

    def __init__(self, n_neighbors: int = 64, *, device: str = "cuda") -> None:
        """Store the parameters."""
        self.n_neighbors = n_neighbors
        self.device = device

    def fit(self, X, y=None) -> "DeviceSearch":
        """Put the samples on the device."""
        self.samples_ = self._on_device(X)
        self.mean_ = self.samples_.double().mean(dim=0)
        return self

    def fit_transform(self, X, y=None) -> NeighborTable:
        """Put the samples on the device and return the neighbours of each."""
        self.fit(X)
        return NeighborTable(*nearest(self.samples_, self.n_neighbors))

    def sample_order(self, X) -> np.ndarray:
        """Return an order in which neighbours lie close together, (n_samples,)."""
        # Products with the kernel then read memory that is in the cache.
        samples = self._on_device(X)
        return make_cells(samples, step_memory(samples.device.type)).order.cpu().numpy()

    def transform(self, X) -> sp.csr_array:
        """Return distances to `n_neighbors` + 1 samples, (n_queries, n_samples)."""
        torch = extra("torch")
        n_samples = len(self.samples_)
        count = min(self.n_neighbors + 1, n_samples)
        step = max(1, DISTANCES_PER_STEP // n_samples)
        queries = self._on_device(X).double() - self.mean_
        known = self.samples_.double() - self.mean_
        # Matrix products would round, and a sample would not find itself.
        exact = "donot_use_mm_for_euclid_dist"
        found = [
            torch.cdist(block, known, compute_mode=exact).topk(count, largest=False)
            for block in queries.split(step)
        ]
        distances = torch.cat([block.values for block in found])
        indices = torch.cat([block.indices for block in found])
        return neighbor_rows(distances.cpu().numpy(), indices.cpu().numpy(), n_samples)

    def _on_device(self, X) -> "Tensor":
        # A copy, since torch warns about arrays that are read-only.
        return extra("torch").as_tensor(np.array(X)).to(self.device)
