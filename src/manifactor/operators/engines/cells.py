"""Exact nearest neighbours by torch, on a GPU or on the CPU: far cells are ruled out.

Samples lie in the cells of landmarks, which are random samples. A query is compared with all
samples of the cells within its reach: the distance of their landmark from the query's, less their
radius, is smaller. By the triangle inequality no other sample is nearer than the reach less the
query's distance from its landmark, so a query with all its neighbours that near is done. Others
then know which reach is sufficient.

Distances come from matrix products in coordinates relative to the landmark. Their rounding can swap
neighbours, so more candidates than neighbours are measured again by differences of coordinates.
Queries for which that is not conclusive, in clusters much smaller than their cell, are ambiguous:
they are searched once more, by differences alone.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from manifactor._support.errors import extra
from manifactor.operators.engines.gpu import ResidentMatrix, sparse_rows
from manifactor.operators.engines.searches import NeighborSearch

if TYPE_CHECKING:
    from torch import Tensor


# Samples around a landmark, on average.
SAMPLES_PER_CELL = 256

# Cells that a query searches first: on a surface, 19 of 20 queries then know their 64 nearest
# neighbours.
FIRST_CELLS = 16

# Queries of one cell that are searched together; the largest such block pads all blocks of its
# batch.
QUERIES_PER_BLOCK = 128

# Distances between new and fitted samples that are computed at a time.
DISTANCES_PER_STEP = 2**28
# Memory of a step: what stays in a cache of a CPU, what keeps a GPU busy. A device that has less to
# spare than the least is full.
CPU_STEP_BYTES = 2**25
GPU_STEP_BYTES = 2**31
LEAST_STEP_BYTES = 2**22


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
            return extra("torch").cat(
                [part(slice(start, start + step)) for start in range(0, n_rows, step)]
            )

        return self.fit(joined)


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
    memory: StepMemory

    @property
    def rounding(self) -> float:
        """Bound on the relative error of a sum over the coordinates."""
        # The relative spacing of numbers of single precision is 2**-23.
        return 2**-23 * (4 + math.sqrt(self.samples.shape[1]))

    def lower_bounds(self, which) -> "Tensor":
        """Return how near the samples of all cells may come to some landmarks, (w, c).

        It is the distance of the landmarks less the radius, with an allowance for rounding.
        """
        radius = self.offset[self.start + self.count - 1]
        gap = squared_distances(self.landmarks[which], self.landmarks).sqrt_()
        return gap.mul_(1 - self.rounding).sub_(radius * (1 + self.rounding))

    def candidate_counts(self, which: "Tensor", reach: "Tensor") -> "Tensor":
        """Return how many samples each cell within reach of some cells has, (w, c)."""
        return extra("torch").where(self.lower_bounds(which) < reach[:, None], self.count, 0)


def make_cells(X: "Tensor") -> SampleCells:
    """Return samples, (n, d), in the cells of random ones, which are always the same."""
    torch = extra("torch")
    # Centred before they are rounded to single precision.
    samples = X - X.mean(dim=0) if X.dtype == torch.float64 else X
    largest = float(samples.abs().max()) or 1.0
    # With coordinates of about 1, squares neither overflow nor vanish.
    scale = 2.0 ** math.floor(math.log2(largest))
    samples = (samples / scale).float()
    device = samples.device
    memory = StepMemory(GPU_STEP_BYTES if device.type == "cuda" else CPU_STEP_BYTES)
    # A generator of its own: the global one is neither used nor changed.
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
        memory=memory,
    )


def squared_distances(one: "Tensor", other: "Tensor") -> "Tensor":
    """Return squared distances, (..., a, b), by differences."""
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


# Queries of one cell are searched together, in blocks; blocks of like size that have about as many
# candidates form a batch, which is padded to its largest block.


@dataclass(frozen=True)
class SearchPass:
    """A search for neighbours of samples within a reach."""

    cells: SampleCells
    n_neighbors: int
    reach: "Tensor"  # (n,): a sample is compared with all cells that come nearer to its landmark
    # Whether distances are those of differences of coordinates, slow and exact, or of products
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
        distances = (3 if self.by_differences else 1) * n_queries * n_candidates
        samples = (2 * self.cells.samples.shape[1] + 16) * n_candidates
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
        """Return candidates of each block, (b, stop - start), and which are real."""
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
        position += (cells.start + self.counts - ends).gather(1, cell)
        return torch.where(real, position, 0), real


def query_blocks(search: SearchPass, rows: "Tensor") -> QueryBlocks:
    """Return the queries in blocks, sorted by size and by number of candidates."""
    torch = extra("torch")
    cells = search.cells
    cell, size = torch.unique_consecutive(cells.home[rows], return_counts=True)
    cell, size = _split(cell, size, QUERIES_PER_BLOCK)
    block = torch.arange(len(cell), device=cell.device).repeat_interleave(size)
    reach = search.reach.new_zeros(len(cell))
    reach.scatter_reduce_(0, block, search.reach[rows], "amax", include_self=False)

    def count_candidates(some: slice) -> "Tensor":
        return cells.candidate_counts(cell[some], reach[some]).sum(1)

    n_candidates = cells.memory.in_blocks(count_candidates, len(cell), 32 * len(cells.count))
    # Sizes alike up to a factor of two share a batch, and padding at most doubles it.
    doublings = size.float().log2().ceil().long()
    order = (doublings * (len(cells.home) + 1) + n_candidates).argsort(stable=True)
    first = size.cumsum(0) - size
    # On the host: the loop that forms batches would wait for the device each time.
    load = zip(size[order].tolist(), n_candidates[order].tolist(), strict=True)
    return QueryBlocks(cell[order], reach[order], first[order], size[order], list(load))


def end_of_batch(search: SearchPass, blocks: QueryBlocks, start: int, step_bytes: int) -> int:
    """Return the end of the batch that begins at `start`: as many blocks as fit."""
    stop, n_queries, n_candidates = start, 0, 0
    while stop < len(blocks.load):
        n_queries, n_candidates = map(max, (n_queries, n_candidates), blocks.load[stop])
        needed = (stop + 1 - start) * search.block_bytes(n_queries, n_candidates)
        # One block is searched in any case; its candidates then come in steps.
        if stop > start and needed > step_bytes:
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
    """Return value and column, (b, q, n_chosen), of the nearest candidates of each query."""
    torch = extra("torch")
    shape = batch.queries.shape
    total = max(search.n_chosen, int(batch.counts.sum(1).max()))
    batch_bytes = shape[0] * search.block_bytes(shape[1], total)
    step = max(search.n_chosen, step_bytes * total // batch_bytes)
    value = search.cells.samples.new_empty((*shape, 0))
    columns = batch.queries.new_empty((*shape, 0))
    for start in range(0, total, step):
        stop = min(start + step, total)
        candidates, real = batch.candidates(search.cells, start, stop)
        distances = _distances(search, batch, candidates, real)
        count = min(search.n_chosen, distances.shape[2])
        nearer, nth = distances.topk(count, dim=2, largest=False, sorted=False)
        candidates = candidates[:, None].expand(-1, shape[1], -1)
        value = torch.cat([value, nearer], 2)
        columns = torch.cat([columns, candidates.gather(2, nth)], 2)
        # Of this step and of those before, only the nearest are kept.
        if start:
            value, nth = value.topk(search.n_chosen, dim=2, largest=False, sorted=False)
            columns = columns.gather(2, nth)
    return value, columns


def _split(cell: "Tensor", size: "Tensor", most: int) -> tuple["Tensor", "Tensor"]:
    """Return cells and sizes of even blocks of at most `most` queries."""
    torch = extra("torch")
    n_blocks = (size + most - 1) // most
    of = torch.arange(len(cell), device=cell.device).repeat_interleave(n_blocks)
    first = n_blocks.cumsum(0) - n_blocks
    nth = torch.arange(len(of), device=cell.device) - first[of]
    # The ends are rounded down alike for all blocks of a cell: sizes differ by one at most, and add
    # up to that of the cell.
    size, n_blocks = size[of], n_blocks[of]
    ends = size * (nth + 1) // n_blocks
    return cell[of], ends - (size * nth // n_blocks)


def _distances(
    search: SearchPass, batch: QueryBatch, columns: "Tensor", real: "Tensor"
) -> "Tensor":
    """Return squared distances of queries to candidates, (b, q, m).

    By products, they lack the query's own square; the landmark, which is near, is the origin.
    """
    cells = search.cells
    samples, queries = cells.samples[columns], cells.samples[batch.queries]
    if search.by_differences:
        return squared_distances(queries, samples).masked_fill_(~real[:, None], math.inf)
    origin = cells.landmarks[batch.cell][:, None]
    samples -= origin
    squares = samples.square().sum(2).masked_fill_(~real, math.inf)
    # |y|^2 - 2 x.y in one pass; |x|^2 is the same for all candidates of a query.
    return extra("torch").baddbmm(
        squares[:, None], queries - origin, samples.transpose(1, 2), alpha=-2
    )


@dataclass(frozen=True)
class Answers:
    """Neighbours of some queries within their reach."""

    rows: "Tensor"  # (m,): the queries, counted in the order of the cells, as the columns are
    distances: "Tensor"  # (m, n_neighbors): ascending; infinite where there were fewer candidates
    columns: "Tensor"  # (m, n_neighbors): the neighbours
    needed_reach: "Tensor"  # (m,): the reach that proves them the nearest of all
    ambiguous: "Tensor"  # (m,): whether rounding may have hidden nearer samples within reach


def nearest(X: "Tensor", n_neighbors: int) -> tuple["Tensor", "Tensor"]:
    """Return distances and indices of every sample's nearest other samples, (n, n_neighbors)."""
    _require_full_precision(X)
    # The error is suppressed and raised anew outside: its traceback would hold on to the memory of
    # the device.
    with suppress(extra("torch").OutOfMemoryError):
        return _nearest(X.detach(), n_neighbors)
    raise MemoryError(
        f"{n_neighbors} neighbours of {len(X)} samples must fit into the memory of the device "
        f"{str(X.device)!r}; it was full even with steps of {LEAST_STEP_BYTES // 2**20} MiB. Free "
        "memory there, lower `n_neighbors` or search on the CPU."
    )


def _nearest(X: "Tensor", n_neighbors: int) -> tuple["Tensor", "Tensor"]:
    """Return the result of `nearest` if memory suffices."""
    torch = extra("torch")
    cells = make_cells(X)
    shape = len(X), n_neighbors
    distances = torch.empty(shape, dtype=torch.float32, device=X.device)
    indices = torch.empty(shape, dtype=torch.int64, device=X.device)
    # Answers count samples in the order of the cells, the caller in the given order.
    for answers in _answers(cells, n_neighbors):
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
    if not torch.equal(torch.bmm(thirds, torch.eye(64, **single)[None]), thirds):
        raise ValueError(
            "exact neighbours need matrix products in full single precision; torch is set to round "
            "them to fewer digits. Call torch.set_float32_matmul_precision('highest') first."
        )


def _answers(cells: SampleCells, n_neighbors: int) -> Iterator[Answers]:
    """Yield answers for all samples; a later answer replaces an earlier one."""
    torch = extra("torch")
    rows = torch.arange(len(cells.home), device=cells.home.device)
    copies = cells.offset == 0
    count = torch.zeros_like(cells.count).index_add_(0, cells.home, copies.long())
    # Copies of their landmark with enough others need no search, as nothing is nearer than 0.
    copies &= (count > n_neighbors)[cells.home]
    yield from _answers_for_copies(cells, rows[copies], n_neighbors)
    rows = rows[~copies]
    search = SearchPass(cells, n_neighbors, _first_reach(cells, n_neighbors))
    for final in (False, True):
        needed = torch.empty_like(cells.offset)
        ambiguous = torch.empty_like(copies)
        for answers in _searched(search, rows):
            yield answers
            needed[answers.rows] = answers.needed_reach
            ambiguous[answers.rows] = answers.ambiguous
        # The reach that the first pass computes is always sufficient for the second.
        done = (needed[rows] <= search.reach[rows]) | final
        yield from _searched(replace(search, by_differences=True), rows[done & ambiguous[rows]])
        # By cell, and those of like reach side by side: they will share a block, whose reach is
        # that of its farthest-reaching query.
        rows = rows[~done]
        rows = rows[needed[rows].argsort(stable=True)]
        rows = rows[cells.home[rows].argsort(stable=True)]
        search = replace(search, reach=needed)


def _answers_for_copies(cells: SampleCells, rows: "Tensor", n_neighbors: int) -> Iterator[Answers]:
    """Yield answers for copies of their landmark: the copies that follow, in a circle."""
    torch = extra("torch")
    ahead = torch.arange(1, n_neighbors + 1, device=rows.device)
    home, size = torch.unique_consecutive(cells.home[rows], return_counts=True)
    start = cells.start[home].repeat_interleave(size)[:, None]
    size = size.repeat_interleave(size)[:, None]
    step = cells.memory.size // (32 * n_neighbors) + 1
    for first in range(0, len(rows), step):
        some = slice(first, first + step)
        place = rows[some, None] - start[some]
        columns = start[some] + (place + ahead) % size[some]
        zeros = torch.zeros_like(columns, dtype=torch.float32)
        yield Answers(rows[some], zeros, columns, zeros[:, 0], zeros[:, 0] > 0)


def _first_reach(cells: SampleCells, n_neighbors: int) -> "Tensor":
    """Return the reach, (n,), that takes in the first cells of each query."""
    # They hold at least 4 samples for each neighbour that is sought.
    count = max(FIRST_CELLS, 4 * n_neighbors // SAMPLES_PER_CELL)
    n_cells = len(cells.count)
    # All cells are within an infinite reach, and no second pass is needed.
    if n_cells <= count:
        return cells.offset.new_full(cells.offset.shape, math.inf)

    def reach_of(which: slice) -> "Tensor":
        nearest_cells = cells.lower_bounds(which).topk(count + 1, dim=1, largest=False)
        return nearest_cells.values[:, -1]

    return cells.memory.in_blocks(reach_of, n_cells, 16 * n_cells)[cells.home]


def _searched(search: SearchPass, rows: "Tensor") -> Iterator[Answers]:
    """Yield answers for some queries, those of a cell side by side."""
    if not len(rows):
        return
    blocks, start = query_blocks(search, rows), 0

    def of_next_batch(step_bytes: int) -> tuple[Answers, int]:
        stop = end_of_batch(search, blocks, start, step_bytes)
        batch = make_batch(search, rows, blocks, slice(start, stop))
        value, columns = choose_candidates(search, batch, step_bytes)
        some = batch.present
        found = _measured(search, batch.queries[some], columns[some], value[some], step_bytes)
        return found, stop

    while start < len(blocks.load):
        answers, start = search.cells.memory.fit(of_next_batch)
        yield answers


def _measured(
    search: SearchPass, rows: "Tensor", columns: "Tensor", value: "Tensor", step_bytes: int
) -> Answers:
    """Return the nearest of the candidates of each query, and what they prove."""
    cells = search.cells
    row_bytes = 12 * columns.shape[1] * cells.samples.shape[1]
    step = step_bytes // row_bytes + 1
    squares = extra("torch").cat(
        [
            (cells.samples[i][:, None] - cells.samples[j]).square_().sum(2)
            for i, j in zip(rows.split(step), columns.split(step), strict=True)
        ]
    )
    # Neither the query itself nor padding is a neighbour.
    squares.masked_fill_((columns == rows[:, None]) | value.isinf(), math.inf)
    squares, nth = squares.sort(dim=1)
    distances = squares[:, : search.n_neighbors].sqrt()
    columns = columns.gather(1, nth[:, : search.n_neighbors])
    last = distances[:, -1]
    offset = cells.offset[rows]
    needed_reach = (last + offset) * (1 + cells.rounding)
    # The query lies `offset` from the landmark, and a sample nearer than the last neighbour at most
    # `offset` + `last`. The square of the sum bounds the error of products.
    rounding = cells.rounding * (2 * offset + last).square()
    others = value.amax(1) + offset.square() - rounding
    # Squared distances that differ by less, relatively, need not be distinguished.
    ambiguous = (last > 0) & (others < (1 - 1e-5) * last.square()) & (not search.by_differences)
    return Answers(rows, distances, columns, needed_reach, ambiguous)


@dataclass(frozen=True)
class NeighborTable:
    """Neighbours of every sample, on the device."""

    distances: "Tensor"  # (n, n_neighbors)
    indices: "Tensor"  # (n, n_neighbors)

    def copies(self) -> sp.csr_array:
        """Return ones for the neighbours at distance 0, on the host, (n, n)."""
        n = len(self.indices)
        row, nth = (self.distances == 0).nonzero(as_tuple=True)
        pairs = (row.cpu().numpy(), self.indices[row, nth].cpu().numpy())
        return sp.csr_array((np.ones(len(row)), pairs), shape=(n, n))

    def symmetric(self) -> ResidentMatrix:
        """Return a matrix with an entry wherever either sample is a neighbour."""
        torch = extra("torch")
        n, k = self.indices.shape
        row = torch.arange(n, device=self.indices.device).repeat_interleave(k)
        column = self.indices.reshape(-1)
        # One number for each pair: sorted, both directions of an edge are side by side.
        key, order = torch.cat([row * n + column, column * n + row]).sort()
        kept = torch.ones_like(key, dtype=torch.bool)
        kept[1:] = key[1:] != key[:-1]
        key, order = key[kept], order[kept]
        count = torch.bincount(key // n, minlength=n)
        starts = torch.cat([count.new_zeros(1), count.cumsum(0)])
        distances = self.distances.reshape(-1)[order % (n * k)]
        return ResidentMatrix(starts.int(), (key % n).int(), distances)


class DeviceSearch(NeighborSearch):
    """Exact search on a torch device; new samples are compared with all others."""

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
        return make_cells(self._on_device(X)).order.cpu().numpy()

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
        distances, indices = (torch.cat(each).cpu().numpy() for each in zip(*found, strict=True))
        return sparse_rows(distances, indices, n_samples)

    def _on_device(self, X) -> "Tensor":
        # A copy, since torch warns about arrays that are read-only.
        return extra("torch").as_tensor(np.array(X)).to(self.device)
