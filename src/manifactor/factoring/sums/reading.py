"""One factor of samples: where they lie on the curve or surface that explains them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from manifactor._support.warning import held_warnings, issue, parted
from manifactor.factoring.factors.circles import unit_vectors, widest_gap
from manifactor.factoring.prediction import thinned
from manifactor.factoring.sums.regression import choose_neighbors
from manifactor.factoring.sums.sheets import SheetSettings, lay_sheet
from manifactor.spectral.components import DisconnectedGraphWarning
from manifactor.spectral.kernel import affinity
from manifactor.spectral.laplacian import laplacian_spectrum
from manifactor.spectral.neighbors import neighbor_graph
from manifactor.spectral.outliers import without_outliers


@dataclass(frozen=True)
class ReadingSettings:
    """Settings of `read_factor`."""

    # Samples that a factor is read from; all others are projected onto it. They need to show the
    # order of places only, which curves that are laid later make exact.
    samples: int = 1000
    # Share of them that are neighbours in their graph, at most: more would bridge the turns of a
    # winding curve.
    neighbourhood: float = 0.04
    fewest_neighbors: int = 16
    # Main directions that a factor is read in, and the least share of the variance of the first.
    directions: int = 12
    thin: float = 1e-3
    # Share of the variance that a curve leaves at most. A disk's best circle leaves 11 %, the noise
    # of a curve that is to be told from a surface leaves less.
    curve_leaves: float = 0.07
    # Share that a circle must explain beyond an interval.
    plainer: float = 0.02
    # No spectrum is needed if a curve that is read from the main directions explains this share of
    # the variance.
    surely: float = 0.99
    # Functions of the spectrum, the constant included, and those that a circle may be made of:
    # between its cosine and its sine lies at most one of another factor.
    n_functions: int = 6
    chart_functions: int = 3
    # Samples up to which a full decomposition takes no time. Beyond, the Lanczos method is the
    # fastest for so few functions.
    dense_samples: int = 300
    # Main directions that a surface may have, and the share of the variance that they hold
    # together.
    surface_directions: int = 9
    surface_share: float = 0.98
    # Widest gap of a circle, relative to its length. An interval has a wider one.
    widest_gap: float = 0.1
    sheets: SheetSettings = field(default_factory=SheetSettings)


@dataclass(frozen=True)
class Reading:
    """Where samples lie on one factor."""

    topology: str
    places: np.ndarray  # (n, c)
    explained: float  # share of the samples' variance that the places explain


def read_factor(
    samples: np.ndarray,
    *,
    n_neighbors: int,
    surfaces: bool = True,
    settings: ReadingSettings = ReadingSettings(),
    rng: np.random.Generator,
) -> Reading:
    """Return where samples, (n, q), lie on the curve or surface that explains them.

    Shapes: samples (n, q).
    """
    shown = _main_coordinates(samples, settings.directions, settings.thin)
    some = shown[thinned(len(shown), settings.samples)]
    readings = [_reading(some, *start, settings) for start in _linear_curves(some)]
    if max(reading.explained for reading in readings) < settings.surely:
        starts = _spectral_curves(some, n_neighbors, settings, rng)
        readings += [_reading(some, *start, settings) for start in starts]
    curve = _of_all(shown, some, _plainest(readings, settings), settings)
    if not surfaces or curve.explained > 1 - settings.curve_leaves:
        return curve
    surface = read_surface(samples, settings=settings)
    better = 1 - surface.explained < (1 - curve.explained) / 2
    return surface if better else curve


def read_surface(samples: np.ndarray, *, settings: ReadingSettings = ReadingSettings()) -> Reading:
    """Return where samples, (n, q) of mean 0, lie along their main directions."""
    shown = _main_coordinates(samples, settings.directions, settings.thin)
    some = shown[thinned(len(shown), settings.samples)]
    count = _surface_directions(some, settings)
    surface = _reading(some, "other", some[:, :count], settings)
    return _of_all(shown, some, surface, settings)


def _of_all(
    shown: np.ndarray, some: np.ndarray, reading: Reading, settings: ReadingSettings
) -> Reading:
    """The reading of all samples, which are projected onto the sheet of some.

    Places that are out of order somewhere explain nothing.
    """
    sheet = lay_sheet(reading.places, reading.topology, some, settings=settings.sheets)
    at = sheet.project(shown, settings=settings.sheets)
    places, explained = at.places, reading.explained
    if reading.topology == "other":
        # Of noise, its own directions explain as much as they hold.
        explained = 1 - float(((shown - at.means) ** 2).sum() / (shown**2).sum())
    if sheet.tangled(settings=settings.sheets):
        explained = 0.0
    return opened(Reading(reading.topology, places, explained), settings=settings)


def opened(reading: Reading, *, settings: ReadingSettings = ReadingSettings()) -> Reading:
    """Return a reading; a circle that has a wide gap is read as an interval."""
    if reading.topology != "circle":
        return reading
    angle = np.arctan2(reading.places[:, 1], reading.places[:, 0])
    start, gap = widest_gap(angle)
    if gap <= 2 * np.pi * settings.widest_gap:
        return reading
    along = (angle - start - gap) % (2 * np.pi)
    return Reading("interval", along[:, None], reading.explained)


def _reading(
    samples: np.ndarray, topology: str, places: np.ndarray, settings: ReadingSettings
) -> Reading:
    regression = settings.sheets.regression
    _, explained = choose_neighbors(places, samples, topology=topology, settings=regression)
    return Reading(topology, places, explained)


def _plainest(readings: list[Reading], settings: ReadingSettings) -> Reading:
    """The reading that explains most; an interval unless a circle explains more."""
    best = max(readings, key=lambda reading: reading.explained)
    intervals = [reading for reading in readings if reading.topology == "interval"]
    plain = max(intervals, key=lambda reading: reading.explained)
    enough = plain.explained > best.explained - settings.plainer
    return plain if enough else best


def _main_coordinates(samples: np.ndarray, most: int, thin: float) -> np.ndarray:
    """Coordinates of samples along their main directions, the strongest first."""
    variance, axes = np.linalg.eigh(samples.T @ samples)
    kept = variance > thin * variance[-1]
    kept[:-most] = False
    return samples @ axes[:, kept][:, ::-1]


def _surface_directions(samples: np.ndarray, settings: ReadingSettings) -> int:
    """Number of main directions that hold nearly all of the samples' variance."""
    share = np.cumsum(samples.var(axis=0)) / samples.var(axis=0).sum()
    count = int((share < settings.surface_share).sum()) + 1
    return min(count, settings.surface_directions, samples.shape[1])


def _linear_curves(samples: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Places along the first main direction, and around the first two.

    They need no neighbours, so that the density along a curve does not matter.
    """
    yield "interval", samples[:, :1]
    if samples.shape[1] > 1:
        yield "circle", unit_vectors(samples[:, :2] / samples[:, :2].std(axis=0))


def _spectral_curves(
    samples: np.ndarray, n_neighbors: int, settings: ReadingSettings, rng: np.random.Generator
) -> Iterator[tuple[str, np.ndarray]]:
    """Places that the lowest functions of the samples' own diffusion tell."""
    most = max(settings.fewest_neighbors, int(settings.neighbourhood * len(samples)))
    with held_warnings() as held:
        graph = neighbor_graph(samples, min(n_neighbors, most, len(samples) - 1))
    # Pieces are joined, and nobody asked for the graph of what is left.
    _, others = parted(held, DisconnectedGraphWarning)
    issue(others)
    graph, walk = without_outliers(samples, graph, affinity(graph))
    count = min(settings.n_functions, len(graph.distinct) - 1)
    solver = "dense" if len(graph.distinct) <= settings.dense_samples else "arpack"
    distinct = laplacian_spectrum(walk, count, solver=solver, rng=rng)
    functions = distinct.with_copies(graph).functions[:, 1:]
    if not functions.shape[1]:
        return
    yield "interval", functions[:, :1]
    last = min(settings.chart_functions, functions.shape[1])
    for pair in combinations(range(last), 2):
        yield "circle", unit_vectors(functions[:, list(pair)])
