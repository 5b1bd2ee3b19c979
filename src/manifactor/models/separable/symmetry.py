"""Continuous symmetries of the data: how many, the name of the shape, a flat torus's lattice.

A sphere has three, a body of revolution one, a flat torus two. Those of a flat torus commute: their
common eigenfunctions are waves, whose eigenvalues are the squared lengths of the dual lattice.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.optimize import minimize
from scipy.spatial import KDTree
from scipy.spatial.transform import Rotation

from manifactor.models.separable.commuting import Fields, killing_fields, killing_motions
from manifactor.operators.geometry import Geometry
from manifactor.statistics import even_rows

# Turns by which samples are moved: no polygon with few corners looks the same after one of them.
ANGLES = 0.05 + 2 * np.pi * np.arange(1, 13) / 13
# Largest `off` of a symmetry, but for `SLACK` times the root of the number of samples. The largest
# of 42 bodies of revolution of any density and noise was 1.59 with 1,000 samples and 1.88 with
# 3,000. That of a regular octagon is 1.81 and 2.34, the least of 20 other shapes was 1.87 and 3.99;
# but 1.49 of a Gaussian in a pentagon of 1,000 samples, which hardly shows the border.
MOST_OFF = 1.4
SLACK = 0.011


@dataclass(frozen=True)
class Turn:
    """A turn about an axis in space; that of the plane has a third coordinate of 0."""

    axis: np.ndarray  # (3,), of length 1
    centre: np.ndarray  # (3,): a point on the axis
    # Mean squared distance from turned samples to the nearest sample, in units of the distance of
    # that one to its 8th neighbour, relative to that of the samples themselves: the largest of all
    # turns
    off: float = np.inf

    def field(self, columns: np.ndarray) -> np.ndarray:
        """Return the direction and length of its motion at places, (n, p)."""
        return np.cross(self.axis, _in_space(columns) - self.centre)[:, : columns.shape[1]]

    def around(self, columns: np.ndarray) -> np.ndarray:
        """Return the cosine and sine of the angle about the axis at places, (n, 2)."""
        across = (_in_space(columns) - self.centre) @ _across(self.axis).T
        return across / np.linalg.norm(across, axis=1, keepdims=True)

    def strays(self, columns: np.ndarray) -> float:
        """Return the share of samples, (n, p), that turns bring to where no sample is near."""
        points = _in_space(columns)
        tree = KDTree(points)
        scale = tree.query(points, 9)[0][:, -1]
        nearest = (tree.query(self.moved(points, angle)) for angle in ANGLES)
        return float(np.mean([away > 1.2 * scale[near] for away, near in nearest]))

    def moved(self, points: np.ndarray, angle: float) -> np.ndarray:
        """Return points of space, (n, 3), after a turn."""
        turn = Rotation.from_rotvec(angle * self.axis)
        return turn.apply(points - self.centre) + self.centre


def find_turn(columns: np.ndarray, field: np.ndarray, weights: np.ndarray) -> Turn:
    """Return the turn near a vector field that moves samples best among themselves.

    Shapes: columns (n, p) with p = 2 or 3, field (n, p), weights (n,).
    """
    return _best_turn(columns, _turn_of(columns, field, weights))


def is_symmetry(turn: Turn, n_samples: int) -> bool:
    """Return whether turned samples lie among the samples."""
    return turn.off < MOST_OFF + SLACK * np.sqrt(n_samples)


def _best_turn(columns: np.ndarray, start: Turn, most: float = np.inf) -> Turn:
    """The best turn about an axis near that of another, if this is off by at most `most`."""
    points = _in_space(columns)
    size = np.sqrt(points.var(axis=0).sum())
    tree = KDTree(points)
    distances, neighbours = tree.query(points, 9)
    scale = distances[:, -1]
    usual = np.mean((distances[:, 1] / scale[neighbours[:, 1]]) ** 2)
    sides = _across(start.axis)

    def changed(change: np.ndarray) -> Turn:
        shift, tilt = np.pad(change, (0, 4 - len(change))).reshape(2, 2) @ sides
        axis = start.axis + tilt
        return replace(start, axis=axis / np.linalg.norm(axis), centre=start.centre + size * shift)

    def off(turn: Turn, angles: np.ndarray, count: int) -> np.ndarray:
        some = points[even_rows(len(points), count)]
        nearest = (tree.query(turn.moved(some, angle)) for angle in angles)
        return np.array([np.mean((away / scale[near]) ** 2) for away, near in nearest]) / usual

    def to_lessen(change: np.ndarray) -> float:
        return float(off(changed(change), ANGLES[::3], 400).mean())

    none = np.zeros(2 * (columns.shape[1] - 1))
    if to_lessen(none) > most:
        return start
    simplex = np.vstack([none, 0.02 * np.eye(len(none))])
    options = {"initial_simplex": simplex, "maxfev": 100, "xatol": 1e-3, "fatol": 1e-2}
    found = minimize(to_lessen, none, method="Nelder-Mead", options=options)
    best = changed(found.x)
    return replace(best, off=float(off(best, ANGLES, 3000).max()))


def _turn_of(columns: np.ndarray, field: np.ndarray, weights: np.ndarray) -> Turn:
    """The turn of the motion of space nearest to a field, less its shift along the axis."""
    points = _in_space(columns)
    middle = points.mean(axis=0)
    turns = np.cross(np.eye(3)[:, None], points - middle)
    shifts = np.broadcast_to(np.eye(3)[:, None], turns.shape)
    scale = np.sqrt(weights)[:, None]
    motions = (scale * np.concatenate([shifts, turns])).reshape(6, -1).T
    shift, speed = np.split(np.linalg.lstsq(motions, (scale * _in_space(field)).ravel())[0], 2)
    square = max(float(speed @ speed), np.finfo(float).tiny)
    return Turn(speed / np.sqrt(square), middle + np.cross(speed, shift) / square)


def _in_space(columns: np.ndarray) -> np.ndarray:
    return np.pad(columns, ((0, 0), (0, 3 - columns.shape[1])))


def _across(axis: np.ndarray) -> np.ndarray:
    """Two directions across an axis, (2, 3)."""
    return np.linalg.svd(axis[None])[2][1:]


# Largest mu of a symmetry, times samples over dimensions. Over the families of `studies`, the
# largest of symmetries was 7.1 with 1,000 samples (one SO(3): 18), 6.2 with 3,000 and 2.8 with
# 10,000; the least of bumpy surfaces, which have none, 4.9, 4.2 (5 of 64 below the limit) and 24.
# Discs and balls with a hole and long ellipsoids lie lower. What halves of the samples add to mu
# separates worse.
MOST_MU = 7.5
# Columns of the samples up to which symmetries are sought among motions of their space.
COLUMNS_OF_MOTIONS = 5


@dataclass(frozen=True)
class Symmetries:
    """Continuous symmetries of the data."""

    count: int  # of independent continuous symmetries (Killing fields)
    # "sphere", "SO(3)", "flat torus", "body of revolution" or "disc"; None where the symmetries do
    # not tell the shape
    name: str | None = None
    # Of the two periods of a flat torus: their angle, 60 to 90 degrees, its standard error, and
    # their ratio, at least 1
    lattice_angle: float | None = None
    lattice_error: float | None = None
    ratio: float | None = None
    # (n_samples, 2): radians along the longer and the shorter period
    angles: np.ndarray | None = None
    # Of the plane, or of space, that moves the data along themselves
    turn: Turn | None = field(default=None, repr=False)

    @property
    def is_homogeneous(self) -> bool:
        """Whether symmetries move every sample everywhere, so that no coordinates stand out."""
        return self.name in ("sphere", "SO(3)", "flat torus")

    def __str__(self) -> str:
        if self.lattice_angle is not None and self.lattice_error is not None:
            error = max(1, round(self.lattice_error))
            return f"a flat torus, lattice angle {self.lattice_angle:.0f} +- {error} degrees"
        if self.name is None:
            plural = "symmetry" if self.count == 1 else "symmetries"
            return f"{self.count or 'no'} continuous {plural}"
        return self.name if self.name == "SO(3)" else f"a {self.name}"


def find_symmetries(geometry: Geometry, halves: Sequence[Geometry], dimension: int) -> Symmetries:
    """Return the symmetries and the shape; halves tell the error of a flat torus's angle."""
    n_lowest = _n_lowest(geometry.eigenvalues)
    fields = killing_fields(geometry, n_lowest)
    largest = dimension * (dimension + 1) // 2
    count = int((fields.mu < MOST_MU * dimension / len(geometry.rows)).sum())
    if dimension > 2:
        # On long shapes, fields of the lowest functions are more than there are symmetries.
        count = len(_motions(geometry)) or count
    count = min(count, largest)
    name = _round_name(geometry, dimension) if count == largest else None
    if name is not None or dimension != 2:
        return Symmetries(count, name)
    # No flat torus lies in space.
    in_space = geometry.coordinates.shape[1] <= 3
    if count >= 2 and not in_space:
        vectors = [_vectors(geometry, fields, number) for number in range(2)]
        torus, *of_halves = (_lattice(each, n_lowest) for each in (geometry, *halves))
        if torus is not None and max(_length(each).std() for each in vectors) < 0.3:
            tori = (torus, *filter(None, of_halves))
            whole, *angles = np.array([each.lattice_angle for each in tori], dtype=float)
            # The variance of a half is twice that of the whole.
            error = float(np.sqrt(np.mean((angles - whole) ** 2) / 2)) if angles else None
            return replace(torus, lattice_error=error)
    # The only surfaces with two symmetries are flat tori, on which fields have one length; a
    # projective plane has three.
    return _revolution(geometry) if count <= 2 or in_space else Symmetries(count)


def _n_lowest(eigenvalues: np.ndarray) -> int:
    """Number of functions that make fields, which should not cut a multiple eigenvalue."""
    numbers = np.arange(8, min(11, len(eigenvalues)))
    if not len(numbers):
        return len(eigenvalues)
    return int(numbers[np.argmax(eigenvalues[numbers] / eigenvalues[numbers - 1])])


def _vectors(geometry: Geometry, fields: Fields, number: int) -> np.ndarray:
    """A field along the coordinates, (n_rows, p), averaged over near rows, of mean square 1."""
    parts = fields.at_rows(number)
    slopes = geometry.gradients[:, :, : parts.shape[1]]
    vectors = geometry.average @ np.einsum("xj,xpj->xp", parts, slopes)
    return vectors / np.sqrt(geometry.row_weights @ _length(vectors) ** 2)


def _length(vectors: np.ndarray) -> np.ndarray:
    return np.linalg.norm(vectors, axis=1)


def _round_name(geometry: Geometry, dimension: int) -> str | None:
    """Name of a shape with all symmetries that its dimension allows, by its lowest eigenvalues."""
    eigenvalues = geometry.eigenvalues
    multiplicity = int((eigenvalues < 1.5 * eigenvalues[0]).sum())
    if multiplicity != dimension + 1:
        return "SO(3)" if dimension == 3 and multiplicity == 9 else None
    columns = geometry.coordinates
    if columns.shape[1] != dimension + 1:
        return "sphere"
    squares = (columns**2).sum(axis=1)
    # On a sphere, whatever its centre, squares are a linear function of the columns.
    terms = np.column_stack([columns, np.ones(len(columns))])
    rest = squares - terms @ np.linalg.lstsq(terms, squares, rcond=None)[0]
    # Up to .07 on spheres of two to four dimensions and 1,000 samples, uneven or with noise of a
    # tenth of the radius; .11 to .41 on balls.
    return None if rest.std() / squares.mean() > 0.1 else "sphere"


def _revolution(geometry: Geometry) -> Symmetries:
    """A surface with at most one symmetry; it has no name where that is not a motion of space."""
    fields = _of_revolution(geometry)
    vectors = _vectors(geometry, fields, 0)
    n_rows, p = vectors.shape
    # The largest mu of 144 bodies of revolution was .018 with 1,000 samples, .0039 with 3,000 and
    # .0007 with 10,000; the least of holed discs .015, .0040 and .0046.
    commutes = fields.mu[0] <= 0.021 * (1000 / n_rows) ** 1.4
    if p > 3:
        return Symmetries(1, "body of revolution") if commutes else Symmetries(0)
    columns = geometry.coordinates[geometry.rows]
    turn = find_turn(columns, vectors, geometry.row_weights)
    # An ellipsoid with two similar axes has eigenvalues like those of a body of revolution.
    if not is_symmetry(turn, n_rows):
        return Symmetries(int(commutes))
    if p == 3:
        # A sphere also turns about an axis across the first.
        across = Turn(_across(turn.axis)[0], geometry.row_weights @ columns)
        if is_symmetry(_best_turn(columns, across, most=8.0), n_rows):
            return Symmetries(3, "sphere")
    # A field of a disc, unlike that of an annulus, vanishes near some samples.
    lengths = _length(turn.field(columns))
    is_disc = p == 2 and np.quantile(lengths, 0.01) < 0.2 * np.sqrt((lengths**2).mean())
    return Symmetries(1, "disc" if is_disc else "body of revolution", turn=turn)


def _of_revolution(geometry: Geometry) -> Fields:
    """Fields by more functions: the lowest of a thin ring do not tell how one varies across."""
    return killing_fields(geometry, min(14, len(geometry.eigenvalues)), 24)


def orbit_field(geometry: Geometry) -> np.ndarray:
    """Return the field of the only symmetry of a surface, (n_rows, p, 1)."""
    return _vectors(geometry, _of_revolution(geometry), 0)[:, :, None]


def orbit_fields(geometry: Geometry, count: int) -> np.ndarray:
    """Return the fields of symmetries of more than a surface, (n_rows, p, count).

    They are fewer where functions of a half of the samples have fewer.
    """
    vectors = _motions(geometry)[:count]
    if len(vectors) < count:
        fields = killing_fields(geometry, _n_lowest(geometry.eigenvalues))
        vectors = [_vectors(geometry, fields, k) for k in range(min(count, len(fields.mu)))]
    return np.stack(vectors, axis=2)


def _motions(geometry: Geometry) -> list[np.ndarray]:
    """Symmetries among the motions of the space of the samples, (n_rows, p) each."""
    if geometry.coordinates.shape[1] > COLUMNS_OF_MOTIONS:
        return []
    # Many functions tell a square from a disc, but are noisier.
    mu = killing_motions(geometry, 60).mu
    motions = killing_motions(geometry, 30)
    # Times samples, up to 82 on symmetries of solids of 3,000 samples and more, 152 and more of
    # others.
    count = int((mu < 100 / len(geometry.rows)).sum())
    return [motions.at_rows(number) for number in range(count)]


def closed_orbits(geometry: Geometry, vectors: np.ndarray) -> np.ndarray | None:
    """Return symmetries along two orthogonal circles, (n_rows, p, 2); None on a slanted torus."""
    steps, energies, _ = _common_waves(geometry, vectors)
    lengths = _length(steps)
    moved = [k for k in np.argsort(energies) if lengths[k] > 0.2 * lengths.max()]
    longest = _two_across(steps, moved)
    if longest is None:
        return None
    # Each moves one of the two longest waves, by one step.
    one, other = (vectors @ np.linalg.inv(steps[longest])).transpose(2, 0, 1)
    cosine = (one * other).sum(axis=1) / (_length(one) * _length(other))
    oblique = geometry.row_weights @ np.abs(cosine) > 0.2
    return None if oblique else np.stack([one, other], axis=2)


def _lattice(geometry: Geometry, n_lowest: int) -> Symmetries | None:
    """Lattice of a flat torus, from two symmetries; None where the waves make no lattice."""
    fields = killing_fields(geometry, n_lowest)
    vectors = np.stack([_vectors(geometry, fields, number) for number in range(2)], axis=2)
    steps, energies, waves = _common_waves(geometry, vectors)
    values, axes = np.linalg.eigh(_quadratic(steps, energies))
    if values[0] <= 0:
        return None
    # In units in which the squared length of a wave's step is its eigenvalue.
    steps = steps @ (axes * np.sqrt(values))
    squares = (steps**2).sum(axis=1)
    # The last function's partner may lie above those that are compared.
    order = [k for k in np.argsort(energies) if abs(squares[k] - energies[k]) < 0.3 * energies[k]]
    longest = _two_across(steps, order)
    if longest is None:
        return None
    labels = steps[order] @ np.linalg.inv(steps[longest])
    whole = np.abs(labels - np.round(labels)).max(axis=1) < 0.25
    gram = _quadratic(np.round(labels[whole]), energies[order][whole])
    if np.linalg.det(gram) <= 0:
        return None
    functions = geometry.spectrum.functions[:, 1 : 1 + len(waves)]
    return _reduce(gram, np.angle(functions @ waves[:, longest]))


def _two_across(steps: np.ndarray, order: Sequence[int]) -> list[int] | None:
    """The first step in an order, and the next one at 30 degrees or more to it; None if none is.

    Shapes: steps (r, 2). Both steps, and `order`, are given by their rows.
    """
    for second in order[1:]:
        pair = [order[0], second]
        if abs(np.linalg.det(steps[pair])) > 0.5 * _length(steps[pair]).prod():
            return pair
    return None


def _common_waves(
    geometry: Geometry, vectors: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Common eigenfunctions of two symmetries, (n_rows, p, 2).

    Returns the eigenvalues of both, (r, 2), that of the Laplacian, (r,), and coefficients, (r, r).
    """
    # With 18 functions, which are noisier, 4 of 8 lattices of 1,000 samples were wrong by 2 degrees
    # or more, with 14 two.
    eigenvalues = geometry.eigenvalues[:14]
    r = len(eigenvalues)
    weighted = geometry.row_weights[:, None] * geometry.spectrum.functions[geometry.rows, 1 : 1 + r]
    both = []
    for vector in vectors.transpose(2, 0, 1):
        moved = weighted.T @ np.einsum("xp,xpk->xk", vector, geometry.gradients[:, :, :r])
        both.append(0.5j * (moved - moved.T))

    def steps_of(waves: np.ndarray) -> np.ndarray:
        return np.column_stack([(waves.conj() * (each @ waves)).sum(axis=0).real for each in both])

    # Functions that one combination of the symmetries does not tell apart, another does: mixed
    # waves have shorter steps.
    turns = np.linspace(0, np.pi, 24, endpoint=False)
    sums = [np.cos(turn) * both[0] + np.sin(turn) * both[1] for turn in turns]
    waves = max((np.linalg.eigh(each)[1] for each in sums), key=lambda w: (steps_of(w) ** 2).sum())
    return steps_of(waves), eigenvalues @ np.abs(waves) ** 2, waves


def _quadratic(steps: np.ndarray, energies: np.ndarray) -> np.ndarray:
    """Symmetric Q, (2, 2), for which step Q step is nearest to the energies, relative to them."""
    x, y = steps.T
    terms = np.column_stack([x * x, 2 * x * y, y * y]) / energies[:, None]
    a, b, c = np.linalg.lstsq(terms, np.ones(len(terms)), rcond=None)[0]
    return np.array([[a, b], [b, c]])


def _reduce(gram: np.ndarray, angles: np.ndarray) -> Symmetries:
    """Flat torus whose dual has this Gram matrix; its periods meet at 60 to 90 degrees."""
    # Gauss: the step of the longest wave first, and the other as short as multiples of it allow.
    while True:
        order = np.argsort(np.diag(gram))
        multiple = round(gram[0, 1] / gram[order[0], order[0]])
        change = np.array([[1, 0], [-multiple, 1]]) @ np.eye(2)[order]
        gram, angles = change @ gram @ change.T, angles @ change.T
        if multiple == 0:
            break
    if gram[0, 1] > 0:
        # Periods meet at an acute angle where the steps of the dual meet at an obtuse one.
        angles = angles * [1, -1]
    cosine = abs(gram[0, 1]) / np.sqrt(gram[0, 0] * gram[1, 1])
    degrees = float(np.degrees(np.arccos(cosine)))
    ratio = float(np.sqrt(gram[1, 1] / gram[0, 0]))
    angles = angles % (2 * np.pi)
    return Symmetries(2, "flat torus", degrees, ratio=ratio, angles=angles)
