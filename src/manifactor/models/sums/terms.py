"""Samples as a sum: terms are read as curves or surfaces, and fitted to what the others leave."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import combinations

import numpy as np

from manifactor._support.errors import Warned
from manifactor.factors.shapes import on_circle, signed_angle, unit_vectors, widest_gap
from manifactor.models.sums import independence
from manifactor.models.sums.sheets import Projection, Sheet, choose_neighbors, lay_sheet
from manifactor.models.sums.summands import MOST_SURFACES, Sum, Summand
from manifactor.operators.kernel import affinity
from manifactor.operators.laplacian import laplacian_spectrum, without_outliers
from manifactor.operators.neighbors import neighbor_graph
from manifactor.statistics import has_edge, matched_r2, random_rows, whiten

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
    """Samples in up to 12 main directions, the strongest first; and the 1,000 that are read."""
    variance, axes = independence.principal_axes(samples)
    shown = samples @ axes[:, :12][:, variance[:12] > 1e-3 * variance[0]]
    return shown, shown[random_rows(len(shown), 1000)]


def _of_all(shown: np.ndarray, some: np.ndarray, reading: Reading) -> Reading:
    """The reading of all samples, which are projected onto the sheet of some."""
    sheet = lay_sheet(reading.places, reading.topology, some)
    at = sheet.project(shown)
    explained = reading.explained
    if reading.topology == "other":
        # The directions of noise explain only the variance that lies in them.
        explained = 1 - float(((shown - at.means) ** 2).sum() / (shown**2).sum())
    # Places that are out of order somewhere explain nothing.
    return open_gap(Reading(reading.topology, at.places, 0.0 if sheet.tangled() else explained))


def open_gap(reading: Reading) -> Reading:
    """Return a reading; a circle that has a wide gap is read as an interval."""
    if reading.topology != "circle":
        return reading
    angle = signed_angle(reading.places)
    start, gap = widest_gap(angle)
    # An interval has a gap wider than a tenth of its length.
    if gap <= 2 * np.pi * 0.1:
        return reading
    along = (angle - start - gap) % (2 * np.pi)
    return Reading("interval", along[:, None], reading.explained)


def _reading(samples: np.ndarray, topology: str, places: np.ndarray) -> Reading:
    _, explained = choose_neighbors(places, samples)
    return Reading(topology, places, explained)


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


def rest_of(samples: np.ndarray, factors: Sequence[Fitted]) -> np.ndarray:
    """Return what factors leave of samples."""
    return reduce(np.subtract, (factor.at.means for factor in factors), samples)


def share_left(samples: np.ndarray, factors: Sequence[Fitted]) -> float:
    """Return the share of the samples' variance that factors leave."""
    return float((rest_of(samples, factors) ** 2).sum() / (samples**2).sum())


def fit_reading(samples: np.ndarray, reading: Reading) -> Fitted:
    """Lay a sheet through samples at known places."""
    sheet = lay_sheet(reading.places, reading.topology, samples)
    return Fitted(sheet, sheet.project(samples), reading.explained)


def _fit_again(target: np.ndarray, factor: Fitted) -> Fitted:
    """The factor fitted to `target`, at its places on the old sheet."""
    places = factor.sheet.project(target).places
    # A sheet measures lengths, so that a gap may be wider on it than when read.
    return fit_reading(target, open_gap(Reading(factor.sheet.topology, places, factor.shown)))


def _in_turn(
    samples: np.ndarray, factors: Sequence[Fitted], work: Callable[[np.ndarray, Fitted], Fitted]
) -> list[Fitted]:
    """Apply `work` to each factor, given what the others leave."""
    rest, done = rest_of(samples, factors), []
    for factor in factors:
        target = rest + factor.at.means
        done.append(work(target, factor))
        rest = target - done[-1].at.means
    return done


def _fit_rounds(samples: np.ndarray, factors: list[Fitted]) -> list[Fitted]:
    """Sheets laid anew round by round; the best round counts."""
    best = factors
    last = least = share_left(samples, factors)
    # Each round takes off a share of the error that is the squared cosine between the factors'
    # directions.
    for _ in range(5):
        factors = _in_turn(samples, factors, _fit_again)
        left = share_left(samples, factors)
        if left < least:
            best, least = factors, left
        # 1e-6 is a thousandth of a factor that is thirty times smaller than another.
        if left < 1e-6 or left > 0.95 * last:
            break
        last = left
    return best


@dataclass(frozen=True)
class Fitter:
    """Reads factors from samples, and fits each to what the others leave."""

    max_factors: int
    n_neighbors: int  # neighbours in the graphs of what is left of the samples
    rng: np.random.Generator
    surfaces: bool = False  # whether a factor may be a surface
    warned: list[Warned] = field(default_factory=list)  # of all spectra that were computed

    def read(self, samples: np.ndarray) -> Reading:
        """Return where samples, (n, q), lie on the curve or surface that explains them."""
        samples = samples - samples.mean(axis=0)
        shown, some = _shown(samples)
        # Along the first main direction, and around the first two: whatever the density.
        readings = [_reading(some, "interval", some[:, :1])]
        if some.shape[1] > 1:
            around = unit_vectors(some[:, :2] / some[:, :2].std(axis=0))
            readings.append(_reading(some, "circle", around))
        # A curve that is read from the main directions and explains nearly all needs no spectrum.
        if max(reading.explained for reading in readings) < 0.99:
            readings += [_reading(some, *start) for start in self._spectral_curves(some)]
        best = max(readings, key=lambda reading: reading.explained)
        intervals = [reading for reading in readings if reading.topology == "interval"]
        plain = max(intervals, key=lambda reading: reading.explained)
        # A circle must explain .02 more.
        curve = _of_all(shown, some, plain if plain.explained > best.explained - 0.02 else best)
        if not self.surfaces or curve.explained > 1 - CURVE_LEAVES:
            return curve
        surface = read_surface(samples)
        better = 1 - surface.explained < (1 - curve.explained) / 2
        return surface if better else curve

    def _spectral_curves(self, samples: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
        """Places that the lowest functions of the samples' own diffusion tell."""
        # More neighbours would bridge the turns of a winding curve.
        most = max(16, int(0.04 * len(samples)))
        graph = neighbor_graph(samples, min(self.n_neighbors, most, len(samples) - 1))
        graph, walk = without_outliers(samples, graph, affinity(graph))
        # A full decomposition of few samples takes no time. For few functions of more samples, the
        # Lanczos method is the fastest.
        solver = "dense" if len(graph.distinct) <= 300 else "arpack"
        count = min(6, len(graph.distinct) - 1)
        spectrum = laplacian_spectrum(walk, count, solver=solver, rng=self.rng)
        # Nothing is said of pieces that were joined: nobody asked for the graph of what is left.
        self.warned.extend(spectrum.warned)
        functions = spectrum.with_copies(graph).functions[:, 1:]
        if functions.shape[1]:
            yield "interval", functions[:, :1]
        # Between the cosine of a circle and its sine lies at most one function of another factor.
        for pair in combinations(range(min(3, functions.shape[1])), 2):
            yield "circle", unit_vectors(functions[:, list(pair)])

    def fit(self, samples: np.ndarray) -> Fitted:
        """Return the curve or surface that explains samples, (n, q)."""
        return fit_reading(samples, self.read(samples))

    def polish(self, samples: np.ndarray, factors: Sequence[Fitted]) -> list[Fitted]:
        """Fit each factor to what the others leave, in turn; the best round counts."""
        factors = _in_turn(samples, factors, _fit_again)
        # Once more where a curve is tangled: places in the wrong order explain as much as those in
        # the right one.
        for _ in range(2):
            factors = _fit_rounds(samples, _in_turn(samples, factors, self._read_again))
            if not any(factor.sheet.tangled() for factor in factors):
                return factors
        if not self.surfaces:
            return factors

        def untangled(target: np.ndarray, factor: Fitted) -> Fitted:
            if not factor.sheet.tangled():
                return factor
            return fit_reading(target, read_surface(target - target.mean(axis=0)))

        return _fit_rounds(samples, _in_turn(samples, factors, untangled))

    def shares_read(self, samples: np.ndarray, factors: Sequence[Fitted]) -> list[float]:
        """Return the shares that places explain if they are read from what the others leave.

        A factor is read again only where its first reading explained little.
        """
        rest = rest_of(samples, factors)
        enough = 1 - CURVE_LEAVES
        return [
            factor.shown if factor.shown > enough else self.read(rest + factor.at.means).explained
            for factor in factors
        ]

    def _read_again(self, target: np.ndarray, factor: Fitted) -> Fitted:
        """The factor fitted again, or read anew where that explains more, or it is tangled."""
        again = _fit_again(target, factor)
        tangled = again.sheet.tangled()
        if again.sheet.explained > CLEAR and not tangled:
            return again
        anew = self.fit(target)
        enough = CLEAR if tangled else again.sheet.explained
        return anew if anew.shown > enough else again


def find_sum(
    samples: np.ndarray, *, max_factors: int, n_neighbors: int, rng: np.random.Generator
) -> Sum:
    """Return samples as a sum of one function of each of several factors.

    Shapes: samples (n_samples, n_features).
    """
    # The sum is fitted to at most 3,000 samples; the others are placed on it.
    if len(samples) > 3000:
        samples = samples[np.sort(rng.choice(len(samples), 3000, replace=False))]
    directions = independence.main_directions(samples, rng=rng)
    shown = directions(samples)
    fitter = Fitter(max_factors, n_neighbors, rng)
    factors = _divide(shown, _curves_or_surfaces(shown, fitter), replace(fitter, surfaces=True))
    order = sorted(factors, key=lambda factor: -factor.variance)
    return Sum(
        directions=directions,
        summands=tuple(
            Summand(
                factor.sheet,
                np.linalg.lstsq(shown, factor.at.means, rcond=None)[0],
                factor.variance,
                factor.sheet.explained,
            )
            for factor in order
        ),
        left=share_left(shown, order),
        noise_left=is_noise(rest_of(shown, order)),
        axes_error=axes_error(order),
        warned=tuple(fitter.warned),
    )


def _curves_or_surfaces(samples: np.ndarray, fitter: Fitter) -> list[Fitted]:
    """Factors of samples: curves, or also surfaces where curves do not add up."""
    first = _first_factors(samples, fitter)
    curves = _with_further(samples, first, fitter)
    enough = 1 - CURVE_LEAVES
    add_up = _add_up(samples, curves)
    tangled = any(curve.sheet.tangled() for curve in curves)
    if add_up and not tangled and min(factor.shown for factor in first) > enough:
        return curves
    # A curve that fills a surface explains it only after many fits, not as it was first read.
    fill = add_up and min(fitter.shares_read(samples, curves)) < enough
    # More curves than parts may be a surface that was taken for several curves.
    if add_up and not tangled and not fill and len(curves) <= len(first):
        return curves
    fitter = replace(fitter, surfaces=True)
    first = _first_factors(samples, fitter)
    if not tangled and all(factor.sheet.topology != "other" for factor in first):
        return curves
    surfaces = _with_further(samples, first, fitter)
    if tangled or fill or not add_up:
        return surfaces
    less = share_left(samples, surfaces) < share_left(samples, curves)
    return surfaces if less and len(surfaces) < len(curves) else curves


def _with_further(samples: np.ndarray, factors: list[Fitted], fitter: Fitter) -> list[Fitted]:
    """The factors of samples, (n, q), given the first of them."""
    factors = _prune(samples, fitter.polish(samples, factors), fitter)
    left = share_left(samples, factors)
    while len(factors) < fitter.max_factors:
        rest = rest_of(samples, factors)
        # So small a rest is the bending of sheets between their nodes.
        if left < 1e-4 or is_noise(rest):
            break
        # One factor is a surface; adding curves would not help, so surfaces are tried next.
        if not fitter.surfaces and any(
            1 - factor.sheet.explained > CURVE_LEAVES and factor.sheet.tangled()
            for factor in factors
        ):
            break
        trial = fitter.polish(samples, [*factors, fitter.fit(_parts(rest)[0])])
        less = share_left(samples, trial)
        # A further factor must explain half of what is left.
        if less > 0.5 * left:
            break
        factors, left = trial, less
    return factors


def _divide(samples: np.ndarray, factors: list[Fitted], fitter: Fitter) -> list[Fitted]:
    """Factors with two independent parts in place of a surface, as long as one has such."""
    surfaces = [factor for factor in factors if factor.sheet.topology == "other"]
    if len(surfaces) > MOST_SURFACES or len(factors) == fitter.max_factors:
        return factors
    rest = rest_of(samples, factors)
    for surface in surfaces:
        # Weaker parts are what the other terms failed to explain.
        parts = _parts(rest + surface.at.means)[:2]
        if len(parts) < 2:
            continue
        others = [factor for factor in factors if factor is not surface]
        trial = fitter.polish(samples, [*others, *map(fitter.fit, parts)])
        less = share_left(samples, trial) < share_left(samples, factors)
        if less and _add_up(samples, trial):
            return _divide(samples, trial, fitter)
    return factors


def _first_factors(samples: np.ndarray, fitter: Fitter) -> list[Fitted]:
    """The factors of the independent parts of samples, one of each."""
    all_seen = samples.shape[1] <= independence.SEARCHED_DIRECTIONS
    factors = []
    for part in _parts(samples)[: fitter.max_factors]:
        flat = all_seen and len(independence.principal_coordinates(part)[1]) <= 3
        factors.append((replace(fitter, surfaces=True) if flat else fitter).fit(part))
    return factors


def _prune(samples: np.ndarray, factors: list[Fitted], fitter: Fitter) -> list[Fitted]:
    """Factors without those that depend on a stronger one."""
    kept: list[Fitted] = []
    for factor in sorted(factors, key=lambda factor: -factor.variance):
        if cumulant_between([*kept, factor]) < independence.MAX_CUMULANT:
            kept.append(factor)
    return factors if len(kept) == len(factors) else fitter.polish(samples, kept)


def _parts(rest: np.ndarray) -> list[np.ndarray]:
    """Independent parts of a rest, (n, q) each, without those that are noise."""
    turned, axes = independence.principal_coordinates(rest - rest.mean(axis=0))
    parts = independence.independent_parts(turned)
    # A bell with heavy tails is noise as a Gaussian is, unless all parts are bells.
    bells = [part.gaussian or independence.is_bell(turned @ part.reading) for part in parts]
    if all(bells):
        bells = [part.gaussian for part in parts]
    structured = [part.variance for part, bell in zip(parts, bells, strict=True) if not bell]
    # It is not noise if it is wider than a quarter of the weakest other part.
    least = min(structured, default=0.0) / 16

    def is_wide(part: independence.IndependentPart) -> bool:
        # Gaussians of equal variance beside anything else are noise.
        count = len(part.writing)
        return part.variance / count > least and (count == 1 or not part.gaussian)

    return [
        part(turned) @ axes
        for part, bell in zip(parts, bells, strict=True)
        if not bell or not structured or is_wide(part)
    ]


def is_noise(rest: np.ndarray) -> bool:
    """Return whether no main direction of a rest, (n, q), has an edge or a hole.

    The regression leaves noise of its own in many thin directions, which do not count.
    """
    return not has_edge(rest, thick=0.04, most_directions=6)


def _add_up(samples: np.ndarray, factors: Sequence[Fitted]) -> bool:
    """Whether factors explain samples and are independent of each other."""
    rest = rest_of(samples, factors)
    weakest = min(factor.variance for factor in factors)
    return bool(
        rest.var(axis=0).sum() <= 0.3 * weakest
        # Any disk is a sum of two circles, with a squared cosine of .5.
        and crossing(factors) <= 0.3
        and cumulant_between(factors) < independence.MAX_CUMULANT
    )


def crossing(factors: Sequence[Fitted]) -> float:
    """Return the largest mean squared cosine between the directions of two factors."""
    pairs = combinations([factor.at.tangents for factor in factors], 2)
    cosines = [np.linalg.norm(a @ b.transpose(0, 2, 1), ord=2, axis=(1, 2)) for a, b in pairs]
    return max((float((c**2).mean()) for c in cosines), default=0.0)


def cumulant_between(factors: Sequence[Fitted]) -> float:
    """Return the largest cumulant between places on different factors.

    Places are made even first: on an uneven circle cumulants have large errors.
    """
    white = [whiten(_even(factor))[0] for factor in factors]
    label = np.repeat(np.arange(len(white)), [block.shape[1] for block in white])
    across = label[:, None] != label
    return float(independence.dependence(np.hstack(white))[across].max(initial=0.0))


def _even(factor: Fitted) -> np.ndarray:
    """Places as ranks: even on an interval, around a circle, in each coordinate."""
    closed = factor.sheet.topology == "circle"
    along = signed_angle(factor.at.places) if closed else factor.at.places
    ranks = along.argsort(axis=0).argsort(axis=0) / len(along)
    return on_circle(2 * np.pi * ranks) if closed else ranks


def axes_error(factors: Sequence[Fitted]) -> float:
    """Return the largest error of Gaussian factors' axes, in radians; 0 if fewer than two are."""
    variances = [
        factor.variance
        for factor in factors
        if factor.sheet.topology == "interval" and independence.is_gaussian(factor.at.places).all()
    ]
    return float(
        independence.axes_errors(np.array(variances), len(factors[0].at.places)).max(initial=0.0)
    )


def agreement(
    total: Sum, samples: np.ndarray, find: Callable[[np.ndarray], Sum], *, rng: np.random.Generator
) -> float:
    """Return the least R^2 with which half of the samples gives the same places.

    Shapes: samples (n_samples, n_features).
    """
    shown = samples[random_rows(len(samples), 1000)]
    places = total.explain(shown).places
    best = 0.0
    for rows in np.array_split(rng.permutation(len(samples)), 2):
        best = max(best, matched_r2(places, find(samples[rows]).explain(shown).places))
        # The other half is not looked at if the first agrees well.
        if best > 0.9:
            break
    return best
