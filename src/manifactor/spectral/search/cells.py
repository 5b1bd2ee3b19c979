"""Exact nearest neighbours by torch, on a GPU or on the CPU: samples in cells, far cells ruled out.

Samples lie in the cells of landmarks, which are samples chosen at random. A query meets all samples of the cells within
its reach: those whose key, the distance of their landmark from the query's less their radius, is smaller. By the
triangle inequality no other sample is nearer to the query than the reach less the query's distance from its landmark,
so a query with all its neighbours that near is done. At first the reach takes in a fixed number of cells; a query that
is not done then knows which reach will do.

Distances come from matrix products in coordinates relative to the landmark. Their rounding can swap neighbours, so more
samples than asked for are chosen, and measured again by differences of coordinates. Queries for which that does not
settle the matter, in knots of samples much smaller than their cell, are blurred: they meet their samples once more, by
differences alone.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from manifactor._support.extras import extra

if TYPE_CHECKING:
    from torch import Tensor

PER_CELL = 256  # samples around a landmark
FIRST_CELLS = 16  # whose samples a query meets at first; on a surface, 19 of 20 then know their 64 nearest
QUERIES = 128  # of one cell that meet samples together; the largest such party pads its whole batch
TILE_BYTES = {
    "cpu": 2**25,
    "cuda": 2**31,
}  # of a step: what stays in a cache, what keeps a GPU busy
LEAST_TILE = 2**22  # bytes; a device with less to spare is full
TIE = 1e-5  # squared distances that differ by less, relatively, need not be told apart by products


@dataclass
class Tile:
    """Bytes that a step of the work may take, halved whenever the device runs out of memory."""

    size: int

    def fit(self, step: Callable[[int], Any]) -> Any:
        """A step's answer with the tile's size, or with the first smaller one that fits."""
        while True:
            try:
                return step(self.size)
            except extra("torch").OutOfMemoryError:
                if self.size // 2 < LEAST_TILE:
                    raise
                self.size //= 2

    def in_blocks(
        self, part: Callable[[slice], "Tensor"], n: int, row_bytes: int
    ) -> "Tensor":
        """The parts for blocks of n rows, one after the other."""

        def joined(size: int) -> "Tensor":
            step = max(1, size // row_bytes)
            return extra("torch").cat(
                [part(slice(start, start + step)) for start in range(0, n, step)]
            )

        return self.fit(joined)


@dataclass(frozen=True)
class Cells:
    """Samples in the order of their cells, and within a cell of their distance from its landmark.

    Attributes
    ----------
    samples : Tensor of shape (n, d)
    order : Tensor of shape (n,)
        The given sample that each of them is.
    home : Tensor of shape (n,)
        The cell of each of them.
    offset : Tensor of shape (n,)
        The distance of each from its landmark.
    landmarks : Tensor of shape (c, d)
    start, count : Tensor of shape (c,)
        Where a cell's samples begin, and how many there are; never none.
    """

    samples: "Tensor"
    order: "Tensor"
    home: "Tensor"
    offset: "Tensor"
    landmarks: "Tensor"
    start: "Tensor"
    count: "Tensor"

    @property
    def rounding(self) -> float:
        """How wrong a sum over the coordinates may be in single precision, relatively."""
        return 2**-23 * (4 + math.sqrt(self.samples.shape[1]))

    def keys(self, which) -> "Tensor":
        """How near the samples of all cells may come to the landmarks of some, (w, c), rounding allowed for."""
        radius = self.offset[self.start + self.count - 1]
        gap = _squares(self.landmarks[which], self.landmarks).sqrt_()
        return gap.mul_(1 - self.rounding).sub_(radius * (1 + self.rounding))

    def visits(self, which: "Tensor", reach: "Tensor") -> "Tensor":
        """How many samples of each cell are met from some with a reach, (w, c): all or none."""
        return extra("torch").where(self.keys(which) < reach[:, None], self.count, 0)


@dataclass(frozen=True)
class Search:
    """What is asked of the cells: so many neighbours within each sample's reach, (n,); sharp: by differences alone."""

    cells: Cells
    n_neighbors: int
    reach: "Tensor"
    sharp: bool = False

    @property
    def chosen(self) -> int:
        """Samples to choose by rounded distances, the query itself among them."""
        return self.n_neighbors + self.n_neighbors // 4 + 8

    def party_bytes(self, queries: int, met: int) -> int:
        """Memory of one party: distances, the samples that are met, those chosen, and the visits."""
        distances = (3 if self.sharp else 1) * queries * met
        samples = (2 * self.cells.samples.shape[1] + 16) * met
        return 4 * (
            distances
            + samples
            + 12 * queries * self.chosen
            + 12 * len(self.cells.count)
        )


@dataclass(frozen=True)
class Parties:
    """Queries in parties, each of one cell and of at most QUERIES.

    Attributes
    ----------
    cell : Tensor of shape (p,)
    reach : Tensor of shape (p,)
        The largest of a party's queries.
    first, size : Tensor of shape (p,)
        Where a party's queries begin among all, and how many there are.
    load : list of (int, int)
        The same number of queries on the host, and how many samples they meet.
    """

    cell: "Tensor"
    reach: "Tensor"
    first: "Tensor"
    size: "Tensor"
    load: list[tuple[int, int]]


@dataclass(frozen=True)
class Meeting:
    """Parties that meet their samples together.

    Attributes
    ----------
    cell : Tensor of shape (b,)
    queries : Tensor of shape (b, q)
    present : Tensor of bool of shape (b, q)
        The others only pad.
    visits : Tensor of shape (b, c)
        How many samples of each cell they meet.
    """

    cell: "Tensor"
    queries: "Tensor"
    present: "Tensor"
    visits: "Tensor"

    def met(self, cells: Cells, start: int, stop: int) -> tuple["Tensor", "Tensor"]:
        """The samples that each party meets from the start-th on, (b, stop - start), and which do not only pad."""
        torch = extra("torch")
        ends = self.visits.cumsum(1)
        position = torch.arange(start, stop, device=ends.device).repeat(len(ends), 1)
        where = torch.searchsorted(ends, position, right=True).clamp_(
            max=ends.shape[1] - 1
        )
        real = position < ends[:, -1:]
        position += (cells.start + self.visits - ends).gather(1, where)
        return torch.where(real, position, 0), real


@dataclass(frozen=True)
class Answers:
    """Neighbours of some queries within their reach.

    Attributes
    ----------
    rows : Tensor of shape (m,)
        The queries, counted in the order of the cells, as the columns are.
    distances, columns : Tensor of shape (m, n_neighbors)
        Ascending; infinite where fewer samples were met.
    needs : Tensor of shape (m,)
        The reach that proves them the nearest of all.
    blurred : Tensor of bool of shape (m,)
        Whether rounding may have hidden nearer samples within reach.
    """

    rows: "Tensor"
    distances: "Tensor"
    columns: "Tensor"
    needs: "Tensor"
    blurred: "Tensor"


def nearest(X: "Tensor", n_neighbors: int) -> tuple["Tensor", "Tensor"]:
    """Distances and indices of every sample's nearest others, in the order of the given samples.

    A sample is never its own neighbour; a copy of it is one, at distance 0.

    Parameters
    ----------
    X : Tensor of shape (n, d)
        Samples in single or double precision, on any device; double ones are centred and rounded to single.
    n_neighbors : int
        Neighbours of each sample, at most n - 1.

    Returns
    -------
    distances : Tensor of float32 of shape (n, n_neighbors)
        Ascending along each row.
    indices : Tensor of int64 of shape (n, n_neighbors)

    Examples
    --------
    >>> distances, indices = nearest(torch.tensor([[0.0], [1.0], [3.0]]), 1)  # doctest: +SKIP
    >>> distances[:, 0], indices[:, 0]  # doctest: +SKIP
    (tensor([1., 1., 2.]), tensor([1, 0, 1]))
    """
    _require_whole_products(X)
    with suppress(
        extra("torch").OutOfMemoryError
    ):  # whose traceback would hold on to the memory
        return _nearest(X.detach(), n_neighbors)
    raise MemoryError(
        f"{n_neighbors} neighbours of {len(X)} samples must fit into the memory of the device {str(X.device)!r}; it "
        f"was full even with steps of {LEAST_TILE // 2**20} MiB. Free memory there, lower `n_neighbors` or search on "
        "the CPU."
    )


def _nearest(X: "Tensor", n_neighbors: int) -> tuple["Tensor", "Tensor"]:
    """The same where memory suffices."""
    torch = extra("torch")
    cells, scale, tile = _cells_of(X)
    distances = torch.empty((len(X), n_neighbors), dtype=torch.float32, device=X.device)
    indices = torch.empty((len(X), n_neighbors), dtype=torch.int64, device=X.device)
    for answers in _answers(cells, n_neighbors, tile):
        given = cells.order[answers.rows]
        distances[given] = answers.distances * scale
        indices[given] = cells.order[answers.columns]
    return distances, indices


def cell_order(X: "Tensor") -> "Tensor":
    """Samples in the order of their cells, so that neighbours lie close together, (n,)."""
    return _cells_of(X)[0].order


def _cells_of(X: "Tensor") -> tuple[Cells, float, Tile]:
    """Samples in cells, in units of a scale, and the tile that was large enough."""
    tile = Tile(TILE_BYTES.get(X.device.type, TILE_BYTES["cpu"]))
    samples = X - X.mean(dim=0) if X.dtype == extra("torch").float64 else X
    scale = 2.0 ** math.floor(
        math.log2(float(samples.abs().max()) or 1.0)
    )  # squares neither overflow nor vanish
    return make_cells((samples / scale).float(), tile), scale, tile


def _require_whole_products(X: "Tensor") -> None:
    """Torch can be set to round products of single precision to fewer digits, which no bound here allows for."""
    torch = extra("torch")
    thirds = torch.full((1, 64, 64), 4 / 3, dtype=torch.float32, device=X.device)
    if not torch.equal(
        torch.bmm(thirds, torch.eye(64, dtype=torch.float32, device=X.device)[None]),
        thirds,
    ):
        raise ValueError(
            "exact neighbours need matrix products in full single precision; torch is set to round them to fewer "
            "digits. Call torch.set_float32_matmul_precision('highest') first."
        )


def make_cells(samples: "Tensor", tile: Tile) -> Cells:
    """Samples, (n, d), in the cells of randomly chosen ones; the choice is always the same."""
    torch = extra("torch")
    n, d = samples.shape
    generator = torch.Generator(device=samples.device).manual_seed(0)
    some = torch.randperm(n, generator=generator, device=samples.device)[
        : max(1, n // PER_CELL)
    ]
    landmarks, origin = samples[some], samples.mean(dim=0)
    ahead = landmarks - origin
    half = ahead.square().sum(1) / 2
    home = tile.in_blocks(
        lambda rows: torch.addmm(
            half, samples[rows] - origin, ahead.T, alpha=-1
        ).argmin(1),
        n,
        8 * (len(ahead) + d),
    )
    offset = tile.in_blocks(
        lambda rows: (samples[rows] - landmarks[home[rows]]).norm(dim=1), n, 12 * d
    )
    order = offset.argsort(stable=True)
    order = order[home[order].argsort(stable=True)]
    kept, home, count = torch.unique_consecutive(
        home[order], return_inverse=True, return_counts=True
    )
    return Cells(
        samples[order],
        order,
        home,
        offset[order],
        landmarks[kept],
        count.cumsum(0) - count,
        count,
    )


def _answers(cells: Cells, n_neighbors: int, tile: Tile) -> Iterator[Answers]:
    """Answers for all samples; a later one for the same sample replaces an earlier one."""
    torch = extra("torch")
    rows = torch.arange(len(cells.home), device=cells.home.device)
    heaped = _heaped(cells, n_neighbors)
    yield from _in_heaps(cells, rows[heaped], n_neighbors, tile)
    rows = rows[~heaped]
    search = Search(cells, n_neighbors, _first_reach(cells, n_neighbors, tile))
    for final in (False, True):
        needs, blurred = torch.empty_like(cells.offset), torch.empty_like(heaped)
        for answers in _meetings(search, rows, tile):
            yield answers
            needs[answers.rows], blurred[answers.rows] = answers.needs, answers.blurred
        done = (
            needs[rows] <= search.reach[rows]
        ) | final  # a reach found the first time is always enough
        yield from _meetings(
            replace(search, sharp=True), rows[done & blurred[rows]], tile
        )
        rows = rows[~done]
        rows = rows[needs[rows].argsort(stable=True)]
        rows = rows[
            cells.home[rows].argsort(stable=True)
        ]  # those of like reach will meet samples together
        search = replace(search, reach=needs)


def _heaped(cells: Cells, n_neighbors: int) -> "Tensor":
    """Which samples are copies of their landmark and have enough of each other, (n,): nothing is nearer than 0."""
    copies = cells.offset == 0
    heap = (
        extra("torch").zeros_like(cells.count).index_add_(0, cells.home, copies.long())
    )
    return copies & (heap > n_neighbors)[cells.home]


def _in_heaps(
    cells: Cells, rows: "Tensor", n_neighbors: int, tile: Tile
) -> Iterator[Answers]:
    """Answers for copies of their landmark: the next ones, which stand side by side at the start of the cell."""
    torch = extra("torch")
    ahead = torch.arange(1, n_neighbors + 1, device=rows.device)
    home, size = torch.unique_consecutive(cells.home[rows], return_counts=True)
    start, size = (
        each.repeat_interleave(size)[:, None] for each in (cells.start[home], size)
    )
    step = tile.size // (32 * n_neighbors) + 1
    for some in (slice(first, first + step) for first in range(0, len(rows), step)):
        columns = start[some] + (rows[some, None] - start[some] + ahead) % size[some]
        nothing = torch.zeros_like(columns, dtype=torch.float32)
        yield Answers(rows[some], nothing, columns, nothing[:, 0], nothing[:, 0] > 0)


def _first_reach(cells: Cells, n_neighbors: int, tile: Tile) -> "Tensor":
    """The reach, (n,), that takes in FIRST_CELLS cells, or more where many neighbours are asked for."""
    count, n_cells = max(FIRST_CELLS, 4 * n_neighbors // PER_CELL), len(cells.count)
    if n_cells <= count:
        return cells.offset.new_full(cells.offset.shape, math.inf)
    reach = tile.in_blocks(
        lambda which: (
            cells.keys(which).topk(count + 1, dim=1, largest=False).values[:, -1]
        ),
        n_cells,
        16 * n_cells,
    )
    return reach[cells.home]


def _meetings(search: Search, rows: "Tensor", tile: Tile) -> Iterator[Answers]:
    """Answers for some queries, those of a cell side by side."""
    if len(rows):
        parties, start = _parties(search, rows, tile), 0
        while start < len(parties.load):
            answers, start = tile.fit(
                partial(_next_answers, search, rows, parties, start)
            )
            yield answers


def _parties(search: Search, rows: "Tensor", tile: Tile) -> Parties:
    """All queries in parties; parties of like size that meet about as many samples follow each other."""
    torch = extra("torch")
    cells = search.cells
    cell, size = torch.unique_consecutive(cells.home[rows], return_counts=True)
    cell, size = _split(cell, size)
    party = torch.arange(len(cell), device=cell.device).repeat_interleave(size)
    reach = search.reach.new_zeros(len(cell)).scatter_reduce_(
        0, party, search.reach[rows], "amax", include_self=False
    )
    met = tile.in_blocks(
        lambda some: cells.visits(cell[some], reach[some]).sum(1),
        len(cell),
        32 * len(cells.count),
    )
    doublings = size.float().log2().ceil().long()
    order = (doublings * (len(cells.home) + 1) + met).argsort(stable=True)
    first = (size.cumsum(0) - size)[order]
    cell, reach, size, met = cell[order], reach[order], size[order], met[order]
    return Parties(
        cell, reach, first, size, list(zip(size.tolist(), met.tolist(), strict=True))
    )


def _split(cell: "Tensor", size: "Tensor") -> tuple["Tensor", "Tensor"]:
    """Cells and sizes of even parts of at most QUERIES, cell after cell."""
    torch = extra("torch")
    parts = (size + QUERIES - 1) // QUERIES
    of = torch.arange(len(cell), device=cell.device).repeat_interleave(parts)
    nth = torch.arange(len(of), device=cell.device) - (parts.cumsum(0) - parts)[of]
    return cell[of], size[of] * (nth + 1) // parts[of] - size[of] * nth // parts[of]


def _next_answers(
    search: Search, rows: "Tensor", parties: Parties, start: int, size: int
) -> tuple[Answers, int]:
    """Answers for as many parties as fit into a tile, one at least, and where the next begin."""
    stop, queries, met = start, 0, 0
    while stop < len(parties.load):
        queries, met = (
            max(queries, parties.load[stop][0]),
            max(met, parties.load[stop][1]),
        )
        if (
            stop > start
            and (stop + 1 - start) * search.party_bytes(queries, met) > size
        ):
            break
        stop += 1
    meeting = _meeting(search, rows, parties, slice(start, stop))
    value, columns = _chosen(search, meeting, size)
    present = meeting.present
    return _measured(
        search, meeting.queries[present], columns[present], value[present], size
    ), stop


def _meeting(search: Search, rows: "Tensor", parties: Parties, some: slice) -> Meeting:
    """The meeting of some parties."""
    torch = extra("torch")
    position = torch.arange(
        max(queries for queries, _ in parties.load[some]), device=rows.device
    )
    present = position < parties.size[some, None]
    queries = rows[torch.where(present, parties.first[some, None] + position, 0)]
    cell = parties.cell[some]
    return Meeting(
        cell, queries, present, search.cells.visits(cell, parties.reach[some])
    )


def _chosen(search: Search, meeting: Meeting, size: int) -> tuple["Tensor", "Tensor"]:
    """Squared distances up to a constant of the query, and columns, (b, q, chosen), of the nearest that are met."""
    torch = extra("torch")
    met = max(search.chosen, int(meeting.visits.sum(1).max()))
    shape = meeting.queries.shape
    step = max(
        search.chosen, size * met // (shape[0] * search.party_bytes(shape[1], met))
    )
    value, columns = (
        search.cells.samples.new_empty((*shape, 0)),
        meeting.queries.new_empty((*shape, 0)),
    )
    for start in range(0, met, step):
        candidates, real = meeting.met(search.cells, start, min(start + step, met))
        distances = (_by_differences if search.sharp else _by_products)(
            search.cells, meeting, candidates, real
        )
        nearer, nth = distances.topk(
            min(search.chosen, distances.shape[2]), dim=2, largest=False, sorted=False
        )
        candidates = candidates[:, None].expand(-1, shape[1], -1).gather(2, nth)
        value, columns = (
            torch.cat([value, nearer], 2),
            torch.cat([columns, candidates], 2),
        )
        if start:
            value, nth = value.topk(search.chosen, dim=2, largest=False, sorted=False)
            columns = columns.gather(2, nth)
    return value, columns


def _by_products(
    cells: Cells, meeting: Meeting, columns: "Tensor", real: "Tensor"
) -> "Tensor":
    """Squared distances, (b, q, m), less the square of the query, all relative to the landmark."""
    torch = extra("torch")
    origin = cells.landmarks[meeting.cell][:, None]
    samples, queries = (
        cells.samples[columns] - origin,
        cells.samples[meeting.queries] - origin,
    )
    squares = samples.square().sum(2).masked_fill_(~real, math.inf)
    return torch.baddbmm(squares[:, None], queries, samples.transpose(1, 2), alpha=-2)


def _by_differences(
    cells: Cells, meeting: Meeting, columns: "Tensor", real: "Tensor"
) -> "Tensor":
    """Squared distances, (b, q, m), with all their digits."""
    squares = _squares(cells.samples[meeting.queries], cells.samples[columns])
    return squares.masked_fill_(~real[:, None], math.inf)


def _squares(one: "Tensor", other: "Tensor") -> "Tensor":
    """Squared distances by differences, (..., a, b), of (..., a, d) and (..., b, d); a pass for each coordinate."""
    squares = one.new_zeros((*one.shape[:-1], other.shape[-2]))
    for x, y in zip(one.unbind(-1), other.unbind(-1), strict=True):
        gap = x[..., :, None] - y[..., None, :]
        squares.addcmul_(gap, gap)
    return squares


def _measured(
    search: Search, rows: "Tensor", columns: "Tensor", value: "Tensor", size: int
) -> Answers:
    """The nearest of the samples that were chosen for each query, and what this proves."""
    torch = extra("torch")
    cells, samples = search.cells, search.cells.samples
    step = size // (12 * columns.shape[1] * samples.shape[1]) + 1
    blocks = zip(rows.split(step), columns.split(step), strict=True)
    squares = torch.cat(
        [(samples[i][:, None] - samples[j]).square_().sum(2) for i, j in blocks]
    )
    squares.masked_fill_((columns == rows[:, None]) | value.isinf(), math.inf)
    squares, nth = squares.sort(dim=1)
    distances, columns = (
        squares[:, : search.n_neighbors].sqrt(),
        columns.gather(1, nth[:, : search.n_neighbors]),
    )
    last, offset = distances[:, -1], cells.offset[rows]
    needs = (last + offset) * (1 + cells.rounding)
    if search.sharp:
        return Answers(
            rows, distances, columns, needs, torch.zeros_like(rows, dtype=torch.bool)
        )
    others = (
        value.amax(1) + offset.square() - cells.rounding * (2 * offset + last).square()
    )
    return Answers(
        rows,
        distances,
        columns,
        needs,
        (last > 0) & (others < (1 - TIE) * last.square()),
    )
