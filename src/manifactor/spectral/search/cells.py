"""A partition of samples into the cells of landmarks, by torch, on a GPU or the CPU."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from manifactor._support.extras import extra
from manifactor.spectral.search.memory import StepMemory

if TYPE_CHECKING:
    from torch import Tensor

SINGLE_EPSILON = 2**-23  # relative spacing of numbers of single precision


@dataclass(frozen=True)
class CellSettings:
    """Settings of the exact search in cells and of `DeviceSearch`."""

    # Samples around a landmark, on average.
    samples_per_cell: int = 256

    # Cells that a query searches first: on a surface, 19 of 20 queries then know their 64 nearest
    # neighbours.
    first_cells: int = 16

    # The first cells hold at least so many samples for each neighbour that is sought.
    first_samples_per_neighbor: int = 4

    # Queries of one cell that are searched together; the largest such block pads all blocks of its
    # batch.
    queries_per_block: int = 128

    # Rounded distances choose one spare candidate for so many neighbours, and so many spare ones in
    # any case; exact distances then decide.
    neighbors_per_spare: int = 4
    least_spare: int = 8

    # Squared distances that differ by less, relatively, need not be told apart.
    tie_tolerance: float = 1e-5

    # Memory of a step: what stays in a cache of a CPU, what keeps a GPU busy.
    cpu_step_bytes: int = 2**25
    gpu_step_bytes: int = 2**31

    # A device that has less to spare is full.
    least_step_bytes: int = 2**22

    # Distances between new and fitted samples that are computed at a time.
    distances_per_step: int = 2**28

    def step_memory(self, device: "str") -> StepMemory:
        """Return the memory of a step on a type of device."""
        on_gpu = device == "cuda"
        size = self.gpu_step_bytes if on_gpu else self.cpu_step_bytes
        return StepMemory(size, self.least_step_bytes)


@dataclass(frozen=True)
class Cells:
    """Samples sorted by cell, and within a cell by distance from its landmark."""

    samples: "Tensor"  # (n, d): in units of `scale`
    order: "Tensor"  # (n,): the given sample that each of them is
    home: "Tensor"  # (n,): the cell of each of them
    offset: "Tensor"  # (n,): the distance of each from its landmark
    landmarks: "Tensor"  # (c, d)
    start: "Tensor"  # (c,): where a cell's samples begin, and how many there are; never none
    count: "Tensor"  # (c,): where a cell's samples begin, and how many there are; never none
    scale: float
    settings: CellSettings = CellSettings()

    @property
    def rounding(self) -> float:
        """Bound on the relative error of a sum over the coordinates."""
        return SINGLE_EPSILON * (4 + math.sqrt(self.samples.shape[1]))

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


def make_cells(
    X: "Tensor", memory: StepMemory, *, settings: CellSettings = CellSettings()
) -> Cells:
    """Return samples, (n, d), in the cells of randomly chosen ones.

    The choice is always the same. Samples of double precision are centred, then rounded to single
    precision.
    """
    samples = X - X.mean(dim=0) if X.dtype == extra("torch").float64 else X
    largest = float(samples.abs().max()) or 1.0
    # With coordinates of about 1, squares neither overflow nor vanish.
    scale = 2.0 ** math.floor(math.log2(largest))
    samples = (samples / scale).float()
    landmarks = _random_landmarks(samples, settings)
    home = _nearest_landmarks(samples, landmarks, memory)
    offset = memory.in_blocks(
        lambda rows: (samples[rows] - landmarks[home[rows]]).norm(dim=1),
        len(samples),
        12 * samples.shape[1],
    )
    return _sorted_cells(samples, landmarks, home, offset, scale, settings)


def cell_order(X: "Tensor", *, settings: CellSettings = CellSettings()) -> "Tensor":
    """Return an order of the samples in which neighbours lie close together, (n,)."""
    memory = settings.step_memory(X.device.type)
    return make_cells(X, memory, settings=settings).order


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


def _random_landmarks(samples: "Tensor", settings: CellSettings) -> "Tensor":
    """Return samples chosen at random, (c, d)."""
    torch = extra("torch")
    device = samples.device
    # A generator of its own: the landmarks are the same whatever the global seed is, and the global
    # state stays untouched.
    generator = torch.Generator(device=device).manual_seed(0)
    order = torch.randperm(len(samples), generator=generator, device=device)
    count = max(1, len(samples) // settings.samples_per_cell)
    return samples[order[:count]]


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


def _sorted_cells(
    samples: "Tensor",
    landmarks: "Tensor",
    home: "Tensor",
    offset: "Tensor",
    scale: float,
    settings: CellSettings,
) -> Cells:
    """Return samples sorted by cell and offset; empty cells are dropped."""
    torch = extra("torch")
    order = offset.argsort(stable=True)
    order = order[home[order].argsort(stable=True)]
    kept, home, count = torch.unique_consecutive(
        home[order], return_inverse=True, return_counts=True
    )
    return Cells(
        samples=samples[order],
        order=order,
        home=home,
        offset=offset[order],
        landmarks=landmarks[kept],
        start=count.cumsum(0) - count,
        count=count,
        scale=scale,
        settings=settings,
    )
