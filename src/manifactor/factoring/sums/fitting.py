"""One factor of samples: where they lie on the curve or surface that explains them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np

from manifactor._support.errors import held_warnings, issue, parted
from manifactor.factoring.factors.shapes import unit_vectors, widest_gap
from manifactor.factoring.prediction import thinned
from manifactor.factoring.sums.sheets import (
    Projection,
    Sheet,
    SheetSettings,
    choose_neighbors,
    lay_sheet,
)
from manifactor.spectral.kernel import affinity
from manifactor.spectral.laplacian import laplacian_spectrum, without_outliers
from manifactor.spectral.neighbors import DisconnectedGraphWarning, neighbor_graph


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


# Factors fitted to samples, each to what all others leave.


@dataclass(frozen=True)
class FittingSettings:
    """Settings of `polish`."""

    # Rounds in which each factor is fitted to what the others leave, at most, and the relative
    # change of what all leave at which they end. Each round takes off a share of the error that is
    # the squared cosine between the factors' directions.
    rounds: int = 5
    settled: float = 0.05
    # Share of the variance that may be left in any case: a thousandth of a factor that is thirty
    # times smaller than another.
    negligible: float = 1e-6
    # A factor is read anew where it explains less than this of what the others leave: its first
    # reading may have seen an overtone only, which folds it.
    clear: float = 0.98
    # Times that factors are read anew, at most: once more where a curve is tangled. Places in the
    # wrong order explain as much as those in the right one.
    readings: int = 2
    reading: ReadingSettings = field(default_factory=ReadingSettings)


@dataclass(frozen=True)
class Fitted:
    """One factor of a sum, fitted to samples."""

    sheet: Sheet  # `sheet.explained` is the share of what the others leave that it explains
    at: Projection  # where the samples lie on it
    # Share that the places explained as they were read, before any sheet was laid. A curve that is
    # laid again and again may fill a surface; a place that is read cannot.
    shown: float

    @property
    def variance(self) -> float:
        """Variance of the samples that the factor explains."""
        return float(self.at.means.var(axis=0).sum())

    @property
    def reading(self) -> Reading:
        """The places alone."""
        return Reading(self.sheet.topology, self.at.places, self.shown)


def rest_of(samples: np.ndarray, factors: Sequence[Fitted]) -> np.ndarray:
    """Return what factors leave of samples."""
    rest = samples
    for factor in factors:
        rest = rest - factor.at.means
    return rest


def share_left(samples: np.ndarray, factors: Sequence[Fitted]) -> float:
    """Return the share of the samples' variance that factors leave."""
    return float((rest_of(samples, factors) ** 2).sum() / (samples**2).sum())


@dataclass(frozen=True)
class Fitter:
    """Reads factors from samples, and fits each to what the others leave."""

    n_neighbors: int  # neighbours in the graphs of what is left of the samples
    surfaces: bool  # whether a factor may be a surface
    settings: FittingSettings
    rng: np.random.Generator

    def read(self, samples: np.ndarray) -> Reading:
        """Return one factor of samples, (n, q)."""
        return read_factor(
            samples - samples.mean(axis=0),
            n_neighbors=self.n_neighbors,
            surfaces=self.surfaces,
            settings=self.settings.reading,
            rng=self.rng,
        )

    def fit(self, samples: np.ndarray, reading: Reading) -> Fitted:
        """Lay a sheet through samples at known places."""
        sheets = self.settings.reading.sheets
        sheet = lay_sheet(reading.places, reading.topology, samples, settings=sheets)
        at = sheet.project(samples, settings=sheets)
        return Fitted(sheet, at, reading.explained)

    def polish(self, samples: np.ndarray, factors: Sequence[Fitted]) -> list[Fitted]:
        """Fit each factor to what the others leave, in turn; the best round counts."""
        factors = self._each(samples, factors, self._fit_again)
        for _ in range(self.settings.readings):
            factors = self._each(samples, factors, self._read_again)
            factors = self._fit_rounds(samples, factors)
            if not any(self.tangled(factor) for factor in factors):
                return list(factors)
        if not self.surfaces:
            return list(factors)
        factors = self._each(samples, factors, self._untangled)
        return list(self._fit_rounds(samples, factors))

    def _fit_rounds(self, samples: np.ndarray, factors: Sequence[Fitted]) -> Sequence[Fitted]:
        """Sheets laid anew round by round; the best round counts."""
        best = factors
        last = least = share_left(samples, factors)
        for _ in range(self.settings.rounds):
            factors = self._each(samples, factors, self._fit_again)
            left = share_left(samples, factors)
            if left < least:
                best, least = factors, left
            small = left < self.settings.negligible
            if small or left > (1 - self.settings.settled) * last:
                break
            last = left
        return best

    def shown_anew(self, samples: np.ndarray, factors: Sequence[Fitted]) -> list[float]:
        """Return the shares that places explain if they are read from what is left.

        Of what the other factors leave; only where a first reading explained little.
        """
        rest = rest_of(samples, factors)
        enough = 1 - self.settings.reading.curve_leaves
        return [
            factor.shown if factor.shown > enough else self.read(rest + factor.at.means).explained
            for factor in factors
        ]

    def _each(
        self,
        samples: np.ndarray,
        factors: Sequence[Fitted],
        work: Callable[[np.ndarray, Fitted], Fitted],
    ) -> list[Fitted]:
        """Apply `work` to each factor, given what the others leave."""
        rest = rest_of(samples, factors)
        done = []
        for factor in factors:
            target = rest + factor.at.means
            done.append(work(target, factor))
            rest = target - done[-1].at.means
        return done

    def _fit_again(self, target: np.ndarray, factor: Fitted) -> Fitted:
        """The factor fitted to `target`, at its places on the old sheet."""
        at = factor.sheet.project(target, settings=self.settings.reading.sheets)
        # A sheet measures lengths, so that a gap may be wider on it than when read.
        reading = opened(replace(factor, at=at).reading, settings=self.settings.reading)
        return self.fit(target, reading)

    def _read_again(self, target: np.ndarray, factor: Fitted) -> Fitted:
        """The factor fitted again, or read anew where it explains little or is tangled.

        A new reading must explain more than the old fit, which was fitted many times.
        """
        again = self._fit_again(target, factor)
        tangled = self.tangled(again)
        if again.sheet.explained > self.settings.clear and not tangled:
            return again
        anew = self.fit(target, self.read(target))
        enough = self.settings.clear if tangled else again.sheet.explained
        return anew if anew.shown > enough else again

    def _untangled(self, target: np.ndarray, factor: Fitted) -> Fitted:
        """The factor, or a surface in place of a tangled curve."""
        if not self.tangled(factor):
            return factor
        reading = read_surface(target - target.mean(axis=0), settings=self.settings.reading)
        return self.fit(target, reading)

    def tangled(self, factor: Fitted) -> bool:
        """Return whether a factor is a curve that covers a piece twice, or jumps."""
        return factor.sheet.tangled(settings=self.settings.reading.sheets)

    def is_no_curve(self, factor: Fitted) -> bool:
        """Return whether a factor is a tangled curve that leaves much unexplained."""
        leaves = 1 - factor.sheet.explained
        return leaves > self.settings.reading.curve_leaves and self.tangled(factor)
