"""Coordinates in which the Laplacian separates, where lengths along one depend on another.

The directions of these coordinates, the web, are eigenvectors of a Killing tensor, or of two of
them in space. Functions that vary along one of them only are the factors; where a circle shrinks to
a point or is sewn to itself, as at the centre of a disc and between the foci of an ellipse,
eigenfunctions divided by their size at each place on the other factors tell its angle.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain

import numpy as np
from scipy.spatial import KDTree

import manifactor.statistics as statistics
from manifactor._support.errors import NothingFoundError
from manifactor._support.parameters import Choice
from manifactor._support.threads import map_threads
from manifactor.factors.factor import Factor, Reading, make_factors
from manifactor.models.peeling.division import excess_in_halves
from manifactor.models.separable import symmetry
from manifactor.models.separable.commuting import commutator_of, killing_tensors
from manifactor.models.separable.symmetry import Turn, find_turn
from manifactor.operators.geometry import Geometry, beside_constant, measure_geometry
from manifactor.operators.laplacian import Spectrum
from manifactor.operators.operator import DiffusionSettings, Operator
from manifactor.operators.pipeline import diffuse
from manifactor.statistics import Measurement, fourth_moment, is_gaussian

# Samples at which fields are compared: sums over fewer add their own error to mu, .006 at 1,000 of
# 3,000 samples where all of them have .001.
HALF_ROWS = 10_000
# Functions of a half, more than fields are compared by.
FUNCTIONS_OF_HALF = 36
# Fewer functions show no second direction.
FEWEST_FUNCTIONS = 20
# Weights of the energy along other directions beside a function's own. The lesser leaves smoother
# functions; the greater resolves coordinates that are sewn, as on ellipses.
PENALTIES = (10.0, 100.0)


@dataclass(frozen=True)
class Web:
    """Orthogonal directions of coordinates, or groups of them, at the rows of a geometry."""

    axes: tuple[np.ndarray, ...]  # (n_rows, p, d): of each
    # (n_tensors, n_rows, n_axes): eigenvalues of each tensor. On a surface, that along one
    # coordinate is a function of the other
    values: np.ndarray
    mu: Measurement  # how far the tensors fail to commute with the Laplacian

    @property
    def gap(self) -> np.ndarray:
        """Volume in units of functions of single coordinates, (n_rows,): Staeckel's determinant.

        On a surface, the squared length of one coordinate in units of the other, up to a constant.
        """
        metric = np.ones_like(self.values[:1])
        return np.abs(np.linalg.det(np.vstack([metric, self.values]).transpose(1, 0, 2)))

    @property
    def has_poles(self) -> bool:
        """Whether a circle may shrink to a point somewhere, or be sewn to itself.

        Elsewhere, both coordinates have functions of their own, or the data are twisted: a Moebius
        band cut along its middle is a ring, each of whose points meets the one opposite.
        """
        return bool(np.quantile(self.gap, 0.01) < 0.3 * np.median(self.gap))

    @property
    def spread(self) -> float:
        """Standard deviation of the logarithm of the gap."""
        # The gap vanishes where a circle shrinks to a point.
        return float(np.std(np.log(np.maximum(self.gap, 0.02 * np.median(self.gap)))))


@dataclass(frozen=True)
class Warp:
    """How lengths depend on the coordinates in which a Laplacian separates."""

    # Number of the factor, from 1, whose coordinate lengths along the other depend on (a warped
    # product); None if they depend on both (Staeckel)
    factor: int | None
    # (n_points,): coordinates on this factor, none of a surface, and lengths along the other one
    # there, relative to their mean
    coordinate: np.ndarray = field(default_factory=lambda: np.empty(0))
    length: np.ndarray = field(default_factory=lambda: np.empty(0))

    def __str__(self) -> str:
        if self.factor is None:
            return "Lengths along each coordinate depend on both, as a sum of a function of each."
        depend = f"Lengths along factor {3 - self.factor} depend on the"
        if not len(self.length):
            return f"{depend} coordinates on factor {self.factor}."
        low, high = self.length.min(), self.length.max()
        return (
            f"{depend} coordinate on factor {self.factor}: they are {low:.2g} to {high:.2g} times "
            "their mean."
        )


@dataclass(frozen=True)
class Separation:
    """Coordinates in which the Laplacian separates, and what was measured of them."""

    geometry: Geometry
    symmetries: symmetry.Symmetries
    numbers: Mapping[str, Measurement]  # by the names of their measures
    web: Web | None = None  # None where all directions look alike

    @property
    def count(self) -> int:
        """Number of symmetries where they move every sample everywhere; else 1."""
        return self.symmetries.count if self.symmetries.is_homogeneous else 1

    def number(self, name: str) -> Measurement | None:
        """Return a measured number with that of the samples; None if it was not measured."""
        if name not in self.numbers:
            return None
        return self.numbers[name]._replace(n_samples=len(self.geometry.spectrum.weights))


def find_separation(
    diffusion: Operator,
    n_asked: int | None,
    *,
    commutes: Callable[[Measurement], bool],
    rng: np.random.Generator,
) -> Separation:
    """Return coordinates in which the Laplacian may separate.

    `commutes` tells whether a tensor does with the Laplacian, as far as that is known.
    """
    _require_surface(diffusion, n_asked)
    whole, *halves = _geometries(diffusion, rng)
    n_columns = [each.coordinates.shape[1] for each in (whole, *halves)]
    if min(n_columns) < 2:
        raise NothingFoundError(
            "two coordinates need samples that vary in two directions; these vary in one, beside "
            "noise. Leave `sense` at its default."
        )
    # Noise in many columns adds to the dimension, but not to the smoothed samples.
    dimension = min(_dimension(diffusion), n_columns[0])
    symmetries = symmetry.find_symmetries(whole, halves, dimension)
    if symmetries.angles is not None:
        symmetries = replace(symmetries, angles=symmetries.angles[diffusion.graph.inverse])
    if symmetries.is_homogeneous:
        return Separation(whole, symmetries, {})
    web = find_web(whole, halves, dimension, symmetries, n_asked, commutes)
    if n_asked is not None and len(web.axes) < n_asked:
        raise NothingFoundError(
            f"two coordinates separate; {n_asked} were asked for. Leave `n_factors` at its default."
        )
    points = np.asarray(diffusion.distinct_points)
    numbers = _of_web(web, whole, halves, symmetries, points)
    return Separation(whole, symmetries, numbers, web)


def _dimension(diffusion: Operator) -> int:
    return max(2, round(diffusion.dimension))


def _require_surface(diffusion: Operator, n_asked: int | None) -> None:
    """Raise an error where a diffusion cannot show the coordinates asked for."""
    if diffusion.points is None:
        raise ValueError(
            "coordinates that separate are sought among samples; got a precomputed graph of "
            "distances. Pass samples, or leave `sense` at its default."
        )
    if n_asked is not None and not 2 <= n_asked <= min(_dimension(diffusion), 3):
        raise NothingFoundError(
            f"two factors of a surface separate, and up to three of a solid; {n_asked} were asked "
            "for. Leave `n_factors` or `sense` at its default."
        )
    n_functions = len(diffusion.distinct.eigenvalues)
    if n_functions < FEWEST_FUNCTIONS:
        raise NothingFoundError(
            f"coordinates that separate need {FEWEST_FUNCTIONS} eigenfunctions or more; got "
            f"{n_functions}. Add samples, or raise `n_functions`."
        )
    if diffusion.dimension < 1.5:
        raise NothingFoundError(
            f"two coordinates need samples of a surface; these have {diffusion.dimension:.1f} "
            "dimensions. Leave `sense` at its default."
        )


def _of_web(
    web: Web,
    whole: Geometry,
    halves: Sequence[Geometry],
    symmetries: symmetry.Symmetries,
    points: np.ndarray,
) -> dict[str, Measurement]:
    """Numbers that tell whether a web separates, by the names of their tests."""
    count, n_columns = symmetries.count, whole.coordinates.shape[1]
    is_surface = sum(axes.shape[2] for axes in web.axes) == 2
    numbers: dict[str, Measurement] = {"warp": Measurement(web.spread)}
    if symmetries.turn is not None:
        # A turn is known better than the Laplacian.
        numbers["turned"] = Measurement(symmetries.turn.off)
    # Two motions of space tell the web, and are measured better than tensors in many columns.
    elif is_surface or count < 2 or n_columns > symmetry.COLUMNS_OF_MOTIONS:
        numbers["commutator"] = web.mu
    if _is_cloud(whole.coordinates, symmetries.turn):
        numbers["identified"] = Measurement(2.0)
    # On surfaces, one field that commutes is sure enough.
    if count and not is_surface:
        numbers["orbits"] = _of_fields(whole, halves, partial(symmetry.orbit_fields, count=count))
        if n_columns == 3:
            numbers["strays"] = Measurement(_strays(whole, points, count))
    return numbers


def factorings(
    found: Separation, diffusion: Operator
) -> Iterator[tuple[tuple[Factor, ...], tuple[Reading, ...]]]:
    """Yield the factors of a web, made in several ways."""
    symmetries, geometry, web = found.symmetries, found.geometry, found.web
    assert web is not None
    # A turn of space is known to close.
    turns = symmetries.name is not None and geometry.coordinates.shape[1] <= 3
    ways = factor_web(geometry, web, diffusion, may_be_sewn=turns or web.has_poles)
    if symmetries.turn is not None:
        ways = chain(factor_turn(geometry, web, symmetries.turn, diffusion), ways)
    return ways


def _is_cloud(columns: np.ndarray, turn: Turn | None) -> bool:
    """Whether samples of a plane are Gaussian, or fade out on all sides alike without a border."""
    variance = columns.var(axis=0)
    if variance[2:].sum() > 0.02 * variance.sum():
        return False
    plane = columns[:, :2]
    # -.24 to -.29 on discs whose density falls 3- to 10-fold with the fourth power of the radius,
    # -.20 to -.25 where it falls 90-fold; -.23 to .01 on polygons and blobs with a Gaussian inside
    # whose border is 3 standard deviations away.
    fades = fourth_moment(plane) > -0.2 - 1 / np.sqrt(len(plane))
    return (turn is not None and fades) or is_gaussian(plane)


def _geometries(diffusion: Operator, rng: np.random.Generator) -> list[Geometry]:
    """The geometry of a diffusion, then those of halves of the samples with graphs of their own.

    Halves of the kernel on all samples would be noisier by ten times, not by two. Four of them, of
    two ways to halve the samples, make the noise of mu less noisy itself.
    """
    points = np.asarray(diffusion.distinct_points)
    count = min(FUNCTIONS_OF_HALF, len(points) // 4)
    # Three times as fast as a full decomposition of 1,500 samples, for so few functions.
    settings = DiffusionSettings(
        preparation="none", solver="chebyshev", n_jobs=diffusion.settings.n_jobs
    )
    orders = [rng.permutation(len(points)) for _ in range(2)]
    halves = [np.sort(half[:HALF_ROWS]) for order in orders for half in np.array_split(order, 2)]
    # Halves of few samples may resolve fewer.
    chosen = {"functions": Choice(count, "enough for the lowest of half the samples")}
    parts = [diffuse(points[half], settings, choices=chosen, rng=rng) for half in halves]

    def measured(part: Operator, rng: np.random.Generator) -> Geometry:
        samples = np.asarray(part.distinct_points)
        return measure_geometry(part.distinct, part.affinity, samples, n_rows=HALF_ROWS, rng=rng)

    parts = [diffusion.settled(), *parts]
    return map_threads(measured, parts, rng.spawn(len(parts)))


def find_web(
    geometry: Geometry,
    halves: Sequence[Geometry],
    dimension: int,
    symmetries: symmetry.Symmetries,
    n_asked: int | None,
    commutes: Callable[[Measurement], bool],
) -> Web:
    """Return the directions that separate best, and how well they do.

    Those along and across the orbits of symmetries, where there are any: a torus of revolution has
    several tensors that nearly commute, but one such field. In space, two tensors, or the squares
    of two symmetries, tell three directions.
    """
    count = symmetries.count
    fields, *in_halves = (killing_tensors(each, dimension) for each in (geometry, *halves))
    if min(len(each.mu) for each in (fields, *in_halves)) < 3:
        raise NothingFoundError(
            "coordinates that separate need three tensors that can be told from noise in each half "
            "of the samples, and there are fewer. Leave `sense` at its default, or add samples."
        )
    noise = excess_in_halves(fields.mu[:3], [half.mu[:3] for half in in_halves])
    if dimension == 2:
        # Halves of a surface that separates show about three times its value, not twice.
        noise = noise / 2
    # The first tensor is the metric.
    _, mu, mu_of_two = map(Measurement, fields.mu.tolist(), noise.tolist())
    tensors = [fields.at_rows(1)]
    may_be_three = dimension == 3 and n_asked != 2
    n_samples = len(geometry.spectrum.weights)
    two_commute = commutes(mu_of_two._replace(n_samples=n_samples))
    if may_be_three and count < 2 and two_commute:
        tensors, mu = [fields.at_rows(1), fields.at_rows(2)], mu_of_two
    elif dimension > 2 and count:
        vectors = symmetry.orbit_fields(geometry, count)
        closed = symmetry.closed_orbits(geometry, vectors) if may_be_three and count == 2 else None
        parts = [vectors] if closed is None else np.split(closed, 2, axis=2)
        tensors = [_squares(part) for part in parts]
    elif symmetries.turn is not None:
        field = symmetries.turn.field(geometry.coordinates[geometry.rows])
        tensors = [_squares(field[:, :, None])]
    elif symmetries.name is not None:
        tensors = [_squares(symmetry.orbit_field(geometry))]
        # Either of them commutes. Bodies of revolution have .0004 or less of one of them with
        # 3,000 samples, discs with a hole .004 or more of both.
        of_orbits = _of_fields(geometry, halves, symmetry.orbit_field)
        mu = min(mu, of_orbits, key=lambda measured: measured.net)
    frames = _tangents(geometry, dimension)
    matrices = np.stack([_on_tangents(tensor, frames, geometry) for tensor in tensors])
    known: np.ndarray | float = 0.0
    if count == 1 and len(tensors) == 2:
        orbit = frames.transpose(0, 2, 1) @ symmetry.orbit_fields(geometry, 1)
        known = _squares(orbit / np.linalg.norm(orbit, axis=1, keepdims=True))
    values, vectors = _clearest(matrices, known)
    largest = np.argsort(-np.median(np.diff(values, axis=1), axis=0))[: len(tensors)]
    groups = np.split(np.arange(dimension), 1 + np.sort(largest))
    own = np.einsum("xiv,txij,xjv->txv", vectors, matrices, vectors, optimize=True)
    axes = frames @ vectors
    return Web(
        tuple(axes[:, :, group] for group in groups),
        np.stack([own[:, :, group].mean(axis=2) for group in groups], axis=2),
        mu,
    )


def _squares(vectors: np.ndarray) -> np.ndarray:
    """The sum of the squares of fields, (n_rows, p, r), as a tensor, (n_rows, p, p)."""
    return vectors @ vectors.transpose(0, 2, 1)


def _clearest(matrices: np.ndarray, known: np.ndarray | float) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and eigenvectors of the combination of tensors that tells directions apart best.

    The projector on one direction may be known, else 0: near an axis, tensors hardly tell the
    direction around it from that away from it.

    Shapes: matrices (n_tensors, n_rows, d, d), of one or two tensors, known (n_rows, d, d).
    """
    if len(matrices) == 1:
        return np.linalg.eigh(matrices[0])
    d = matrices.shape[-1]
    traces = np.trace(matrices, axis1=2, axis2=3)[:, :, None, None]
    matrices = matrices - traces * np.eye(d) / d
    matrices /= np.sqrt((matrices**2).mean(axis=(1, 2, 3), keepdims=True))

    def solved(turn: float) -> tuple[np.ndarray, np.ndarray]:
        return np.linalg.eigh(np.cos(turn) * matrices[0] + np.sin(turn) * matrices[1] + 100 * known)

    def clearness(turn: float) -> float:
        # Directions may meet at poles, but not be exchanged.
        gaps = np.quantile(np.diff(solved(turn)[0], axis=1), 0.1, axis=0)
        return float(np.sort(gaps)[-2])

    return solved(max(np.linspace(0, np.pi, 24, endpoint=False), key=clearness))


def _of_fields(
    geometry: Geometry, halves: Sequence[Geometry], fields: Callable[[Geometry], np.ndarray]
) -> Measurement:
    """How far the products of fields fail to commute with the Laplacian."""
    mu, *in_halves = (commutator_of(each, fields(each)) for each in (geometry, *halves))
    return Measurement(mu, float(excess_in_halves(mu, in_halves)) / 2)


def _strays(geometry: Geometry, points: np.ndarray, count: int) -> float:
    """Largest share of the samples of a solid that a symmetry turns to where none are."""
    centred = points - points.mean(axis=0)
    columns = centred @ np.linalg.lstsq(centred, geometry.coordinates, rcond=None)[0]
    rows = columns[geometry.rows]
    motions = symmetry.orbit_fields(geometry, count).transpose(2, 0, 1)
    return max(find_turn(rows, m, geometry.row_weights).strays(rows) for m in motions)


def _tangents(geometry: Geometry, dimension: int) -> np.ndarray:
    """Orthonormal directions of the manifold at the rows, (n_rows, p, d)."""
    low = geometry.gradients[:, :, :20] / np.sqrt(geometry.eigenvalues[:20])
    outer = low @ low.transpose(0, 2, 1)
    averaged = (geometry.average @ outer.reshape(len(outer), -1)).reshape(outer.shape)
    return np.linalg.eigh(averaged)[1][:, :, -dimension:]


def _on_tangents(tensor: np.ndarray, frames: np.ndarray, geometry: Geometry) -> np.ndarray:
    """A tensor field as matrices in tangent frames, (n_rows, d, d)."""
    if tensor.shape[1] != frames.shape[1]:
        # Written in the gradients of the lowest functions.
        frames = geometry.gradients[:, :, : tensor.shape[1]].transpose(0, 2, 1) @ frames
    return frames.transpose(0, 2, 1) @ tensor @ frames


def factor_web(
    geometry: Geometry, web: Web, diffusion: Operator, *, may_be_sewn: bool
) -> Iterator[tuple[tuple[Factor, ...], tuple[Reading, ...]]]:
    """Yield factors of a web, made in several ways.

    Either all have functions of their own; or one of two has, the base, and the eigenfunctions that
    it does not explain, freed from it, tell the place on the other, the fibre; or one of two is a
    circle that is sewn to itself, whose own functions tell its cosine, and an eigenfunction that
    both do not explain tells the side.
    """
    spectrum = diffusion.spectrum
    # Weights under which places on separating coordinates are independent: the volume is the gap
    # times the product of the coordinates' own lengths.
    gap = np.maximum(web.gap, 0.1 * np.median(web.gap))
    weights = diffusion.spectrum.weights / _at_samples(gap, geometry, diffusion)
    weights = weights / weights.sum()
    everyone = range(len(web.axes))
    for penalty in PENALTIES:
        pure = [
            beside_constant(
                pure_functions(
                    geometry,
                    np.concatenate([web.axes[a] for a in everyone if a != b], axis=2),
                    web.values[0, :, 1 - b] if len(everyone) == 2 else None,
                    penalty,
                )
            )
            for b in everyone
        ]
        # Three factors are curves.
        yield make_factors(spectrum, pure, most_functions=2 if len(pure) > 2 else None)
        if not may_be_sewn or len(pure) > 2:
            continue
        for base, axes in zip(pure, reversed(web.axes), strict=True):
            fibre = _unexplained(spectrum, [base[:, :1]], 1 + axes.shape[2])
            charted = [1, fibre.shape[1]]
            if fibre.shape[1]:
                blocks = [base, fibre]
                yield make_factors(spectrum, blocks, charted=charted, chart_weights=weights)
        side = _unexplained(spectrum, [block[:, :1] for block in pure], 1)
        for base, sewn in (pure, pure[::-1]):
            if side.shape[1] and _vanishes_at_ends(
                *spectrum.combined(np.hstack([sewn[:, :1], side])).T
            ):
                folded = np.hstack([sewn[:, :1], side])
                yield make_factors(spectrum, [base, folded], charted=[1, 2], circle=1, folded=True)


def factor_turn(
    geometry: Geometry, web: Web, turn: Turn, diffusion: Operator
) -> Iterator[tuple[tuple[Factor, ...], tuple[Reading, ...]]]:
    """Yield factors of a body of revolution: the profile, and the angle of a turn about the axis.

    The cosine and sine of the angle are taken as functions as they are: what would free them from
    the other factor would only add its errors.
    """
    known = diffusion.distinct
    around = turn.around(geometry.coordinates)
    angle = known.functions.T @ (known.weights[:, None] * around)
    angle[0] = 0
    angle /= np.linalg.norm(angle, axis=0)
    for charted in (None, 1):
        for penalty in PENALTIES:
            base = pure_functions(geometry, web.axes[1], web.values[0, :, 1], penalty)
            blocks = [beside_constant(base), angle]
            made = make_factors(diffusion.spectrum, blocks, charted=[charted, 2], circle=1)
            if all(factor.topology != "other" for factor in made[0]):
                yield made


def _vanishes_at_ends(cosine: np.ndarray, side: np.ndarray) -> bool:
    """Whether a function that tells two sides of a circle is small where they meet, both times."""
    order = np.argsort(cosine)
    few = len(order) // 20
    usual = np.abs(side).mean()
    return all(np.abs(side[some]).mean() < usual / 2 for some in (order[:few], order[-few:]))


def pure_functions(
    geometry: Geometry, others: np.ndarray, value: np.ndarray | None, penalty: float
) -> np.ndarray:
    """Return the lowest functions with the least energy along other directions.

    They need not be eigenfunctions, but are combinations of them: the lowest of the Laplacian and
    `penalty` times that energy. `value` is the eigenvalue of the only tensor along the other
    directions, and a function of this coordinate itself, which may be purer.

    Shapes: others (n_rows, p, d), value (n_rows,) -> (n_functions - 1, r).
    """
    along = others.transpose(0, 2, 1) @ geometry.gradients
    along *= np.sqrt(geometry.row_weights)[:, None, None]
    along = along.reshape(-1, along.shape[2])
    energy = along.T @ along

    def leak(functions: np.ndarray) -> np.ndarray:
        return (functions * (energy @ functions)).sum(axis=0) / geometry.rayleigh(functions)

    functions = np.linalg.eigh(np.diag(geometry.eigenvalues) + penalty * energy)[1][:, :12]
    leaks = leak(functions)
    # Curves need few functions.
    most = 2 if value is None else 4
    functions = functions[:, leaks < max(most * leaks.min(), 0.03)]
    functions = functions[:, np.argsort(geometry.rayleigh(functions))]
    if value is None:
        return functions
    known = _of_eigenvalue(geometry, value)
    if leak(known)[0] < leak(functions)[0]:
        functions = np.hstack([known, functions])
    return functions


def _of_eigenvalue(geometry: Geometry, value: np.ndarray) -> np.ndarray:
    """A function of a tensor's eigenvalue that is flat at both ends, as coefficients, (n, 1)."""
    # But for stray values.
    low, high = np.quantile(value, [0.01, 0.99])
    wave = np.cos(np.pi * np.clip((value - low) / (high - low), 0, 1))
    functions = geometry.spectrum.functions[geometry.rows, 1:]
    coefficients = functions.T @ (geometry.row_weights * wave)
    return (coefficients / np.linalg.norm(coefficients))[:, None]


def _unexplained(spectrum: Spectrum, known: Sequence[np.ndarray], count: int) -> np.ndarray:
    """The lowest combinations of eigenfunctions that known functions tell nothing of."""
    thin = statistics.random_rows(len(spectrum.weights), statistics.PREDICTED_SAMPLES)
    values = spectrum.functions[thin] @ np.hstack(known)
    low = spectrum.functions[thin, 1:16]
    means = statistics.neighbour_means(
        values / values.std(axis=0), statistics.PREDICTION_NEIGHBORS
    )(low)
    told, combinations = np.linalg.eigh(means.T @ means / len(means))
    odd = combinations[:, told < 0.25]
    within = odd.T * spectrum.eigenvalues[1:16] @ odd
    lowest = odd @ np.linalg.eigh(within)[1][:, :count]
    return np.pad(lowest, ((1, len(spectrum.eigenvalues) - 16), (0, 0)))


def _at_samples(values: np.ndarray, geometry: Geometry, diffusion: Operator) -> np.ndarray:
    """Values at rows as values at all samples: those of the nearest row."""
    points = np.asarray(diffusion.distinct_points)
    nearest = KDTree(points[geometry.rows]).query(points)[1]
    return values[nearest][diffusion.graph.inverse]


def warp_of(found: Separation, factors: Sequence[Factor], diffusion: Operator) -> Warp | None:
    """Return how lengths depend on two factors; None for more of them."""
    if len(factors) != 2 or found.web is None:
        return None
    length = np.sqrt(np.maximum(_at_samples(found.web.gap, found.geometry, diffusion), 0.0))
    told = [statistics.predictability(factor.embedding, length[:, None])[0] for factor in factors]
    best = int(np.argmax(told))
    place = factors[best].coordinate
    # Along the orbits of a symmetry they depend on the other factor alone.
    if found.symmetries.name is None and not told[best] > 0.9:
        return Warp(None)
    if place is None:
        return Warp(best + 1)
    bins = np.array_split(np.argsort(place), 32)
    curve = np.array([length[some].mean() for some in bins])
    return Warp(best + 1, np.array([place[some].mean() for some in bins]), curve / curve.mean())
