"""Samples sorted into cells on a GPU, and the candidates for neighbours that they give."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from manifactor._support.errors import extra

if TYPE_CHECKING:
    from torch import Tensor


# Samples around a landmark, on average.
SAMPLES_PER_CELL = 256

# Queries of one cell that are searched together; the largest such block pads all blocks of its
# batch.
QUERIES_PER_BLOCK = 128

# Memory of a step: what stays in a cache of a CPU, what keeps a GPU busy. A device that has less to
# spare than the least is full.
CPU_STEP_BYTES = 2**25
GPU_STEP_BYTES = 2**31
LEAST_STEP_BYTES = 2**22


# Steps of work that adapt to the memory of a torch device.


@dataclass
class StepMemory:
    """Bytes that a step may allocate, halved whenever the device runs out of memory."""

    size: int

    def fit(self, step: Callable[[int], Any]) -> Any:
        """Return ``step(size)`` for the first size that fits, halving from `size`."""
        while True:
            try:
                return step(self.size)
            # Smaller steps from now on: what did not fit once is not tried again.
            except extra("torch").OutOfMemoryError:
                if self.size // 2 < LEAST_STEP_BYTES:
                    raise
                self.size //= 2

    def in_blocks(self, part: Callable[[slice], "Tensor"], n_rows: int, row_bytes: int) -> "Tensor":
        """Concatenate ``part(rows)`` over blocks of rows that fit."""

        def joined(size: int) -> "Tensor":
            step = max(1, size // row_bytes)
            starts = range(0, n_rows, step)
            parts = [part(slice(start, start + step)) for start in starts]
            return extra("torch").cat(parts)

        return self.fit(joined)


def step_memory(device: str) -> StepMemory:
    """Return the memory of a step on a type of device."""
    return StepMemory(GPU_STEP_BYTES if device == "cuda" else CPU_STEP_BYTES)


# A partition of samples into the cells of landmarks.


@dataclass(frozen=True)
class SampleCells:
    """Samples sorted by cell, and within a cell by distance from its landmark."""

    samples: "Tensor"  # (n, d): in units of `scale`
    order: "Tensor"  # (n,): the given sample that each of them is
    home: "Tensor"  # (n,): the cell of each of them
    offset: "Tensor"  # (n,): the distance of each from its landmark
    landmarks: "Tensor"  # (c, d)
    start: "Tensor"  # (c,): where a cell's samples begin
    count: "Tensor"  # (c,): how many there are; never none
    scale: float

    @property
    def rounding(self) -> float:
        """Bound on the relative error of a sum over the coordinates."""
        # The relative spacing of numbers of single precision is 2**-23.
        return 2**-23 * (4 + math.sqrt(self.samples.shape[1]))

    def lower_bounds(self, which) -> "Tensor":
        """Return how near the samples of all cells may come to some landmarks, (w, c).

        This is the distance of the landmarks less the radius of the cell, by the triangle
        inequality, with an allowance for rounding.
        """
        radius = self.offset[self.start + self.count - 1]
        gap = squared_distances(self.landmarks[which], self.landmarks).sqrt_()
        return gap.mul_(1 - self.rounding).sub_(radius * (1 + self.rounding))

    def candidate_counts(self, which: "Tensor", reach: "Tensor") -> "Tensor":
        """Return how many samples of each cell are within reach of some cells, (w, c).

        A cell counts with all its samples or with none.
        """
        within = self.lower_bounds(which) < reach[:, None]
        return extra("torch").where(within, self.count, 0)


def make_cells(X: "Tensor", memory: StepMemory) -> SampleCells:
    """Return samples, (n, d), in the cells of randomly chosen ones.

    The choice is always the same. Samples of double precision are centred, then rounded to single
    precision.
    """
    torch = extra("torch")
    samples = X - X.mean(dim=0) if X.dtype == torch.float64 else X
    largest = float(samples.abs().max()) or 1.0
    # With coordinates of about 1, squares neither overflow nor vanish.
    scale = 2.0 ** math.floor(math.log2(largest))
    samples = (samples / scale).float()
    device = samples.device
    # A generator of its own: the landmarks are the same whatever the global seed is, and the global
    # state stays untouched.
    generator = torch.Generator(device=device).manual_seed(0)
    drawn = torch.randperm(len(samples), generator=generator, device=device)
    landmarks = samples[drawn[: max(1, len(samples) // SAMPLES_PER_CELL)]]
    home = _nearest_landmarks(samples, landmarks, memory)
    offset = memory.in_blocks(
        lambda rows: (samples[rows] - landmarks[home[rows]]).norm(dim=1),
        len(samples),
        12 * samples.shape[1],
    )
    order = offset.argsort(stable=True)
    order = order[home[order].argsort(stable=True)]
    # Empty cells are dropped.
    kept, home_of, count = torch.unique_consecutive(
        home[order], return_inverse=True, return_counts=True
    )
    return SampleCells(
        samples=samples[order],
        order=order,
        home=home_of,
        offset=offset[order],
        landmarks=landmarks[kept],
        start=count.cumsum(0) - count,
        count=count,
        scale=scale,
    )


def squared_distances(one: "Tensor", other: "Tensor") -> "Tensor":
    """Return squared distances by differences, (..., a, b).

    Shapes: one (..., a, d), other (..., b, d).
    """
    squares = one.new_zeros((*one.shape[:-1], other.shape[-2]))
    # A pass for each coordinate: all differences at once would take d times the memory.
    for x, y in zip(one.unbind(-1), other.unbind(-1), strict=True):
        gap = x[..., :, None] - y[..., None, :]
        squares.addcmul_(gap, gap)
    return squares


def _nearest_landmarks(samples: "Tensor", landmarks: "Tensor", memory: StepMemory) -> "Tensor":
    """Return the landmark of each sample that is nearest up to rounding, (n,)."""
    torch = extra("torch")
    n_samples, n_features = samples.shape
    # Centred, so that products lose few digits. A sample in the second-nearest cell does no harm:
    # its distance from that landmark is what counts.
    origin = samples.mean(dim=0)
    centred = landmarks - origin
    half_squares = centred.square().sum(1) / 2

    def nearest(rows: slice) -> "Tensor":
        queries = samples[rows] - origin
        return torch.addmm(half_squares, queries, centred.T, alpha=-1).argmin(1)

    return memory.in_blocks(nearest, n_samples, 8 * (len(centred) + n_features))


# Candidate neighbours of queries: the nearest samples of the cells within reach.
#
# Queries of one cell are searched together, in blocks; blocks of like size that have about as many
# candidates form a batch, which is padded to its largest block.


@dataclass(frozen=True)
class SearchPass:
    """A search for neighbours of samples within a reach."""

    cells: SampleCells
    n_neighbors: int
    reach: "Tensor"  # (n,): a sample is compared with all cells that come nearer to its landmark
    # Whether distances are computed from differences of coordinates, slow and exact, or from matrix
    # products, which round
    by_differences: bool = False

    @property
    def n_chosen(self) -> int:
        """Candidates chosen by rounded distances, the query itself among them."""
        # One spare candidate for 4 neighbours, and 8 in any case; exact distances then decide.
        return self.n_neighbors + self.n_neighbors // 4 + 8

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
    first: "Tensor"  # (p,): where a block's queries begin among all
    size: "Tensor"  # (p,): how many there are
    load: list[tuple[int, int]]  # numbers of queries and of candidates of each block, on the host


@dataclass(frozen=True)
class QueryBatch:
    """Blocks of queries that are searched together."""

    cell: "Tensor"  # (b,)
    queries: "Tensor"  # (b, q)
    present: "Tensor"  # (b, q): false for padding
    counts: "Tensor"  # (b, c): candidates of each block in each cell

    def candidates(self, cells: SampleCells, start: int, stop: int) -> tuple["Tensor", "Tensor"]:
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
    cell, size = _split(cell, size, QUERIES_PER_BLOCK)
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


def make_batch(search: SearchPass, rows: "Tensor", blocks: QueryBlocks, some: slice) -> QueryBatch:
    """Return some blocks as a batch."""
    torch = extra("torch")
    largest = max(n_queries for n_queries, _ in blocks.load[some])
    position = torch.arange(largest, device=rows.device)
    present = position < blocks.size[some, None]
    place = torch.where(present, blocks.first[some, None] + position, 0)
    cell = blocks.cell[some]
    counts = search.cells.candidate_counts(cell, blocks.reach[some])
    return QueryBatch(cell, rows[place], present, counts)


def choose_candidates(
    search: SearchPass, batch: QueryBatch, step_bytes: int
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


def _by_products(
    cells: SampleCells, batch: QueryBatch, columns: "Tensor", real: "Tensor"
) -> "Tensor":
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


def _by_differences(
    cells: SampleCells, batch: QueryBatch, columns: "Tensor", real: "Tensor"
) -> "Tensor":
    """Return squared distances with all their digits, (b, q, m)."""
    squares = squared_distances(cells.samples[batch.queries], cells.samples[columns])
    return squares.masked_fill_(~real[:, None], math.inf)
