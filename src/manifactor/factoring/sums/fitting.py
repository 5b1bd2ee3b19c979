"""Factors of samples: each is read as a curve or surface, and fitted to what the others leave."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from manifactor._support.errors import held_warnings, issue, parted
from manifactor.factoring.prediction import thinned
from manifactor.factoring.shapes import unit_vectors, widest_gap
from manifactor.factoring.sums.independence import principal_axes
from manifactor.factoring.sums.sheets import Projection, Sheet, choose_neighbors, lay_sheet
from manifactor.spectral.kernel import affinity
from manifactor.spectral.laplacian import laplacian_spectrum, without_outliers
from manifactor.spectral.neighbors import DisconnectedGraphWarning, neighbor_graph

# Share of the variance that a curve leaves at most. A disk's best circle leaves 11 %, the noise of
# a curve that is to be told from a surface leaves less.
CURVE_LEAVES = 0.07
# A factor is read anew where it explains less than this of what the others leave: its first reading
# may have seen an overtone only, which folds it.
CLEAR = 0.98


@dataclass(frozen=True)
class Reading:
    """Where samples lie on one factor."""

    topology: str
    places: np.ndarray  # (n, c)
    explained: float  # share of the samples' variance that the places explain


def read_surface(samples: np.ndarray) -> Reading:
    """Return where samples, (n, q) of mean 0, lie along their main directions."""
    shown, some = _shown(samples)
    # As many directions, up to 9, as hold nearly all of the variance together.
    variance = some.var(axis=0)
    share = np.cumsum(variance) / variance.sum()
    count = min(int((share < 0.98).sum()) + 1, 9)
    return _of_all(shown, some, _reading(some, "other", some[:, :count]))


def _shown(samples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Samples in up to 12 main directions, the strongest first; and the 1,000 that are read.

    They need to show the order of places only, which curves that are laid later make exact.
    """
    variance, axes = principal_axes(samples)
    shown = samples @ axes[:, :12][:, variance[:12] > 1e-3 * variance[0]]
    return shown, shown[thinned(len(shown), 1000)]


def _of_all(shown: np.ndarray, some: np.ndarray, reading: Reading) -> Reading:
    """The reading of all samples, which are projected onto the sheet of some.

    Places that are out of order somewhere explain nothing.
    """
    sheet = lay_sheet(reading.places, reading.topology, some)
    at = sheet.project(shown)
    explained = reading.explained
    if reading.topology == "other":
        # The directions of noise explain only the variance that lies in them.
        explained = 1 - float(((shown - at.means) ** 2).sum() / (shown**2).sum())
    if sheet.tangled():
        explained = 0.0
    return opened(Reading(reading.topology, at.places, explained))


def opened(reading: Reading) -> Reading:
    """Return a reading; a circle that has a wide gap is read as an interval."""
    if reading.topology != "circle":
        return reading
    angle = np.arctan2(reading.places[:, 1], reading.places[:, 0])
    start, gap = widest_gap(angle)
    # An interval has a gap wider than a tenth of its length.
    if gap <= 2 * np.pi * 0.1:
        return reading
    along = (angle - start - gap) % (2 * np.pi)
    return Reading("interval", along[:, None], reading.explained)


def _reading(samples: np.ndarray, topology: str, places: np.ndarray) -> Reading:
    _, explained = choose_neighbors(places, samples)
    return Reading(topology, places, explained)


def _plainest(readings: list[Reading]) -> Reading:
    """The reading that explains most; an interval unless a circle explains .02 more."""
    best = max(readings, key=lambda reading: reading.explained)
    intervals = [reading for reading in readings if reading.topology == "interval"]
    plain = max(intervals, key=lambda reading: reading.explained)
    return plain if plain.explained > best.explained - 0.02 else best


def _linear_curves(samples: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Places along the first main direction, and around the first two.

    They need no neighbours, so that the density along a curve does not matter.
    """
    yield "interval", samples[:, :1]
    if samples.shape[1] > 1:
        yield "circle", unit_vectors(samples[:, :2] / samples[:, :2].std(axis=0))


def _spectral_curves(
    samples: np.ndarray, n_neighbors: int, rng: np.random.Generator
) -> Iterator[tuple[str, np.ndarray]]:
    """Places that the lowest functions of the samples' own diffusion tell."""
    # More neighbours would bridge the turns of a winding curve.
    most = max(16, int(0.04 * len(samples)))
    with held_warnings() as held:
        graph = neighbor_graph(samples, min(n_neighbors, most, len(samples) - 1))
    # Pieces are joined, and nobody asked for the graph of what is left.
    _, others = parted(held, DisconnectedGraphWarning)
    issue(others)
    graph, walk = without_outliers(samples, graph, affinity(graph))
    # A full decomposition of few samples takes no time. For few functions of more samples, the
    # Lanczos method is the fastest.
    solver = "dense" if len(graph.distinct) <= 300 else "arpack"
    count = min(6, len(graph.distinct) - 1)
    spectrum = laplacian_spectrum(walk, count, solver=solver, rng=rng)
    functions = spectrum.with_copies(graph).functions[:, 1:]
    if not functions.shape[1]:
        return
    yield "interval", functions[:, :1]
    # Between the cosine of a circle and its sine lies at most one function of another factor.
    for pair in combinations(range(min(3, functions.shape[1])), 2):
        yield "circle", unit_vectors(functions[:, list(pair)])


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
    def is_no_curve(self) -> bool:
        """Whether the factor is a tangled curve that leaves much unexplained."""
        return 1 - self.sheet.explained > CURVE_LEAVES and self.sheet.tangled()


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
    rng: np.random.Generator

    def read(self, samples: np.ndarray) -> Reading:
        """Return where samples, (n, q), lie on the curve or surface that explains them."""
        samples = samples - samples.mean(axis=0)
        shown, some = _shown(samples)
        readings = [_reading(some, *start) for start in _linear_curves(some)]
        # A curve that is read from the main directions and explains nearly all needs no spectrum.
        if max(reading.explained for reading in readings) < 0.99:
            starts = _spectral_curves(some, self.n_neighbors, self.rng)
            readings += [_reading(some, *start) for start in starts]
        curve = _of_all(shown, some, _plainest(readings))
        if not self.surfaces or curve.explained > 1 - CURVE_LEAVES:
            return curve
        surface = read_surface(samples)
        better = 1 - surface.explained < (1 - curve.explained) / 2
        return surface if better else curve

    def fit(self, samples: np.ndarray, reading: Reading) -> Fitted:
        """Lay a sheet through samples at known places."""
        sheet = lay_sheet(reading.places, reading.topology, samples)
        return Fitted(sheet, sheet.project(samples), reading.explained)

    def polish(self, samples: np.ndarray, factors: Sequence[Fitted]) -> list[Fitted]:
        """Fit each factor to what the others leave, in turn; the best round counts."""
        factors = self._each(samples, factors, self._fit_again)
        # Once more where a curve is tangled: places in the wrong order explain as much as those in
        # the right one.
        for _ in range(2):
            factors = self._each(samples, factors, self._read_again)
            factors = self._fit_rounds(samples, factors)
            if not any(factor.sheet.tangled() for factor in factors):
                return list(factors)
        if not self.surfaces:
            return list(factors)
        factors = self._each(samples, factors, self._untangled)
        return list(self._fit_rounds(samples, factors))

    def _fit_rounds(self, samples: np.ndarray, factors: Sequence[Fitted]) -> Sequence[Fitted]:
        """Sheets laid anew round by round; the best round counts."""
        best = factors
        last = least = share_left(samples, factors)
        # Each round takes off a share of the error that is the squared cosine between the factors'
        # directions.
        for _ in range(5):
            factors = self._each(samples, factors, self._fit_again)
            left = share_left(samples, factors)
            if left < least:
                best, least = factors, left
            # 1e-6 is a thousandth of a factor that is thirty times smaller than another.
            if left < 1e-6 or left > 0.95 * last:
                break
            last = left
        return best

    def shown_anew(self, samples: np.ndarray, factors: Sequence[Fitted]) -> list[float]:
        """Return the shares that places explain if they are read from what the others leave.

        A factor is read again only where its first reading explained little.
        """
        rest = rest_of(samples, factors)
        enough = 1 - CURVE_LEAVES
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
        places = factor.sheet.project(target).places
        # A sheet measures lengths, so that a gap may be wider on it than when read.
        return self.fit(target, opened(Reading(factor.sheet.topology, places, factor.shown)))

    def _read_again(self, target: np.ndarray, factor: Fitted) -> Fitted:
        """The factor fitted again, or read anew where it explains little or is tangled.

        A new reading must explain more than the old fit, which was fitted many times.
        """
        again = self._fit_again(target, factor)
        tangled = again.sheet.tangled()
        if again.sheet.explained > CLEAR and not tangled:
            return again
        anew = self.fit(target, self.read(target))
        enough = CLEAR if tangled else again.sheet.explained
        return anew if anew.shown > enough else again

    def _untangled(self, target: np.ndarray, factor: Fitted) -> Fitted:
        """The factor, or a surface in place of a tangled curve."""
        if not factor.sheet.tangled():
            return factor
        return self.fit(target, read_surface(target - target.mean(axis=0)))
