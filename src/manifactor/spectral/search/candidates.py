"""Candidate neighbours of queries: the nearest samples of the cells within reach.

Queries of one cell are searched together, in blocks; blocks of like size that have about as many
candidates form a batch, which is padded to its largest block.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from manifactor._support.extras import extra
from manifactor.spectral.search.cells import Cells, squared_distances
from manifactor.spectral.search.memory import StepMemory

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class SearchPass:
    """A search for neighbours of samples within a reach."""

    cells: Cells
    n_neighbors: int
    reach: "Tensor"  # (n,): A sample is compared with all cells that come nearer to its landmark
    # Whether distances are computed from differences of coordinates, slow and exact, or from matrix
    # products, which round
    by_differences: bool = False

    @property
    def n_chosen(self) -> int:
        """Candidates chosen by rounded distances, the query itself among them."""
        settings = self.cells.settings
        spare = self.n_neighbors // settings.neighbors_per_spare
        return self.n_neighbors + spare + settings.least_spare

    def block_bytes(self, n_queries: int, n_candidates: int) -> int:
        """Return the memory that one block of queries takes."""
        # Estimates in numbers of 4 bytes, indices being of 8; up to three arrays of differences
        # exist at once.
        copies = 3 if self.by_differences else 1
        distances = copies * n_queries * n_candidates
        n_features = self.cells.samples.shape[1]
        samples = (2 * n_features + 16) * n_candidates
        chosen = 12 * n_queries * self.n_chosen
        counts = 12 * len(self.cells.count)
        return 4 * (distances + samples + chosen + counts)


@dataclass(frozen=True)
class QueryBlocks:
    """Queries in blocks, each of one cell."""

    cell: "Tensor"  # (p,)
    reach: "Tensor"  # (p,): the largest of a block's queries
    first: "Tensor"  # (p,): where a block's queries begin among all, and how many there are
    size: "Tensor"  # (p,): where a block's queries begin among all, and how many there are
    load: list[tuple[int, int]]  # numbers of queries and of candidates of each block, on the host


@dataclass(frozen=True)
class Batch:
    """Blocks of queries that are searched together."""

    cell: "Tensor"  # (b,)
    queries: "Tensor"  # (b, q)
    present: "Tensor"  # (b, q): false for padding
    counts: "Tensor"  # (b, c): candidates of each block in each cell

    def candidates(self, cells: Cells, start: int, stop: int) -> tuple["Tensor", "Tensor"]:
        """Return the candidates `start` to `stop` of each block, and which are real.

        Both have shape (b, stop - start); where a block has fewer candidates, the rest is padding.
        """
        torch = extra("torch")
        # The candidates of a block are those of its cells one after the other, so that the
        # cumulated counts tell in which cell the nth one lies.
        ends = self.counts.cumsum(1)
        total = ends[:, -1:]
        position = torch.arange(start, stop, device=ends.device)
        position = position.repeat(len(ends), 1)
        cell = torch.searchsorted(ends, position, right=True)
        cell.clamp_(max=ends.shape[1] - 1)
        real = position < total
        shift = cells.start + self.counts - ends
        position += shift.gather(1, cell)
        return torch.where(real, position, 0), real


def query_blocks(search: SearchPass, rows: "Tensor", memory: StepMemory) -> QueryBlocks:
    """Return the queries in blocks, sorted by size and by number of candidates."""
    torch = extra("torch")
    cells = search.cells
    cell, size = torch.unique_consecutive(cells.home[rows], return_counts=True)
    cell, size = _split(cell, size, cells.settings.queries_per_block)
    block = torch.arange(len(cell), device=cell.device)
    block = block.repeat_interleave(size)
    reach = search.reach.new_zeros(len(cell))
    reach.scatter_reduce_(0, block, search.reach[rows], "amax", include_self=False)

    def count_candidates(some: slice) -> "Tensor":
        counts = cells.candidate_counts(cell[some], reach[some])
        return counts.sum(1)

    row_bytes = 32 * len(cells.count)
    n_candidates = memory.in_blocks(count_candidates, len(cell), row_bytes)
    # Sizes alike up to a factor of two share a batch, and padding at most doubles it.
    doublings = size.float().log2().ceil().long()
    order = doublings * (len(cells.home) + 1) + n_candidates
    order = order.argsort(stable=True)
    first = size.cumsum(0) - size
    size = size[order]
    n_candidates = n_candidates[order]
    return QueryBlocks(
        cell=cell[order],
        reach=reach[order],
        first=first[order],
        size=size,
        # On the host: the loop that forms batches would wait for the device each time.
        load=list(zip(size.tolist(), n_candidates.tolist(), strict=True)),
    )


def end_of_batch(search: SearchPass, blocks: QueryBlocks, start: int, step_bytes: int) -> int:
    """Return the end of the batch that begins at `start`: as many blocks as fit."""
    stop, n_queries, n_candidates = start, 0, 0
    while stop < len(blocks.load):
        load = blocks.load[stop]
        n_queries = max(n_queries, load[0])
        n_candidates = max(n_candidates, load[1])
        n_blocks = stop + 1 - start
        needed = n_blocks * search.block_bytes(n_queries, n_candidates)
        # One block is searched in any case; its candidates then come in steps.
        if n_blocks > 1 and needed > step_bytes:
            break
        stop += 1
    return stop


def make_batch(search: SearchPass, rows: "Tensor", blocks: QueryBlocks, some: slice) -> Batch:
    """Return some blocks as a batch."""
    torch = extra("torch")
    largest = max(n_queries for n_queries, _ in blocks.load[some])
    position = torch.arange(largest, device=rows.device)
    present = position < blocks.size[some, None]
    place = torch.where(present, blocks.first[some, None] + position, 0)
    cell = blocks.cell[some]
    counts = search.cells.candidate_counts(cell, blocks.reach[some])
    return Batch(cell, rows[place], present, counts)


def choose_candidates(
    search: SearchPass, batch: Batch, step_bytes: int
) -> tuple["Tensor", "Tensor"]:
    """Return the nearest candidates of each query.

    Returns value (b, q, n_chosen), columns (b, q, n_chosen).
    """
    torch = extra("torch")
    shape = batch.queries.shape
    measure = _by_differences if search.by_differences else _by_products
    largest = int(batch.counts.sum(1).max())
    total = max(search.n_chosen, largest)
    batch_bytes = shape[0] * search.block_bytes(shape[1], total)
    step = max(search.n_chosen, step_bytes * total // batch_bytes)
    value = search.cells.samples.new_empty((*shape, 0))
    columns = batch.queries.new_empty((*shape, 0))
    for start in range(0, total, step):
        stop = min(start + step, total)
        candidates, real = batch.candidates(search.cells, start, stop)
        distances = measure(search.cells, batch, candidates, real)
        count = min(search.n_chosen, distances.shape[2])
        nearer, nth = distances.topk(count, dim=2, largest=False, sorted=False)
        candidates = candidates[:, None].expand(-1, shape[1], -1)
        candidates = candidates.gather(2, nth)
        value = torch.cat([value, nearer], 2)
        columns = torch.cat([columns, candidates], 2)
        # Of this step and of those before, only the nearest are kept.
        if start:
            value, nth = value.topk(search.n_chosen, dim=2, largest=False, sorted=False)
            columns = columns.gather(2, nth)
    return value, columns


def _split(cell: "Tensor", size: "Tensor", most: int) -> tuple["Tensor", "Tensor"]:
    """Return cells and sizes of even blocks of at most `most` queries."""
    torch = extra("torch")
    n_blocks = (size + most - 1) // most
    of = torch.arange(len(cell), device=cell.device)
    of = of.repeat_interleave(n_blocks)
    first = n_blocks.cumsum(0) - n_blocks
    nth = torch.arange(len(of), device=cell.device)
    nth = nth - first[of]
    # The ends are rounded down alike for all blocks of a cell: sizes differ by one at most, and add
    # up to that of the cell.
    size, n_blocks = size[of], n_blocks[of]
    ends = size * (nth + 1) // n_blocks
    starts = size * nth // n_blocks
    return cell[of], ends - starts


def _by_products(cells: Cells, batch: Batch, columns: "Tensor", real: "Tensor") -> "Tensor":
    """Return squared distances less the square of the query, (b, q, m).

    Coordinates are relative to the landmark, which is near: products lose few digits.
    """
    torch = extra("torch")
    origin = cells.landmarks[batch.cell]
    origin = origin[:, None]
    samples = cells.samples[columns] - origin
    queries = cells.samples[batch.queries] - origin
    squares = samples.square().sum(2)
    squares.masked_fill_(~real, math.inf)
    samples = samples.transpose(1, 2)
    # |y|^2 - 2 x.y in one pass; |x|^2 is the same for all candidates of a query.
    return torch.baddbmm(squares[:, None], queries, samples, alpha=-2)


def _by_differences(cells: Cells, batch: Batch, columns: "Tensor", real: "Tensor") -> "Tensor":
    """Return squared distances with all their digits, (b, q, m)."""
    squares = squared_distances(cells.samples[batch.queries], cells.samples[columns])
    return squares.masked_fill_(~real[:, None], math.inf)
