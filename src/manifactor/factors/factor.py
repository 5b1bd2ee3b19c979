"""One factor: its functions, its shape, and where every sample lies on it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import combinations

import numpy as np

from manifactor._support.threads import map_panels, map_threads
from manifactor._support.values import quotient
from manifactor.factors import charts, shapes
from manifactor.factors.levels import LEAST_LEVELS, count_levels
from manifactor.operators.geometry import Geometry, carre_du_champ, champ_of_pairs, count_directions
from manifactor.operators.laplacian import Spectrum
from manifactor.statistics import random_rows

# Lowest functions of each factor whose gradients tell the confidence, and which tell impure
# functions: cosine and sine on a circle.
FIRST_FUNCTIONS = 2
# As `LEAST_SPREAD` of a chart, for functions that are divided by their size, which may vanish.
FIBRE_SPREAD = 0.03


@dataclass(frozen=True, repr=False)
class Factor:
    """One factor of the manifold.

    Attributes
    ----------
    functions : ndarray of shape (n_samples, n_functions)
        Functions that depend on this factor alone, ascending eigenvalue, mean square 1.
    eigenvalues : ndarray of shape (n_functions,)
        This factor's own spectrum.
    topology : "interval", "circle" or "other"
    dimension : int
        Intrinsic dimension.
    embedding : ndarray of shape (n_samples, n_coordinates)
        An interval's coordinate, a circle's cosine and sine, or the coordinates of a
        surface: a few functions.
    coordinate : ndarray of shape (n_samples,) or None
        Arc length from 0 to 1 on an interval, angle from 0 to 2 pi on a circle; None otherwise.
    confidence : ndarray of shape (n_samples,)
        From 0 to 1: how orthogonal this factor's directions are to the other factors'
        at the sample; 1 if there are no others. Two factors have one angle between
        them, so that both have the same confidence.
    """

    functions: np.ndarray
    eigenvalues: np.ndarray
    topology: str
    dimension: int
    embedding: np.ndarray
    coordinate: np.ndarray | None
    confidence: np.ndarray

    @property
    def shape(self) -> str:
        """Shape of the factor, in two or three words."""
        named = {"interval": "an interval", "circle": "a circle"}
        shape = named.get(self.topology, f"a {self.dimension}-dimensional shape")
        if self.n_levels > 1:
            few = self.n_levels < LEAST_LEVELS
            return f"{self.n_levels} classes" if few else f"{self.n_levels} levels on {shape}"
        return shape

    @cached_property
    def n_levels(self) -> int:
        """Number of places on an interval or a circle at which all samples lie; 1 for a curve."""
        if self.coordinate is None:
            return 1
        return count_levels(self.coordinate, self.functions, closed=self.topology == "circle")

    def with_copies(self, copy_of: np.ndarray) -> "Factor":
        """Return the factor of samples that are copies of these."""
        coordinate = None if self.coordinate is None else self.coordinate[copy_of]
        each = {name: getattr(self, name)[copy_of] for name in ("functions", "embedding")}
        return replace(self, coordinate=coordinate, confidence=self.confidence[copy_of], **each)

    def __str__(self) -> str:
        count, lowest = len(self.eigenvalues), self.eigenvalues[0]
        return f"{self.shape}, {count} eigenfunctions, eigenvalues from {lowest:.4g}"

    def __repr__(self) -> str:
        return (
            f"Factor({self.topology}, dimension={self.dimension}, "
            f"n_functions={len(self.eigenvalues)}, lowest_eigenvalue={self.eigenvalues[0]:.4g})"
        )


@dataclass(frozen=True)
class Reading:
    """How places on a factor are read from the functions of a spectrum."""

    # (n_spectrum_functions, n_functions): the factor's functions as combinations of the spectrum's
    coefficients: np.ndarray
    topology: str  # that of the factor
    chart: charts.Chart
    # The surface that places are pulled onto, where they have more columns than the factor has
    # dimensions
    cloud: charts.Cloud | None
    ends: np.ndarray | None  # (2,): the chart's values at the ends of an interval

    def place(self, functions: np.ndarray) -> shapes.Places:
        """Return embedding and coordinate, given all functions, (n, n_spectrum_functions)."""
        return self.on_shape(self.chart(functions))

    def on_shape(self, chart_values: np.ndarray) -> shapes.Places:
        """Return embedding and coordinate, given the values of the chart."""
        return shapes.place_on_shape(self.topology, chart_values, self.cloud, self.ends)


def make_factors(
    spectrum: Spectrum,
    blocks: Sequence[np.ndarray],
    *,
    geometry: Geometry | None = None,
    most_functions: int | None = None,
    charted: Sequence[int | None] = (),
    chart_weights: np.ndarray | None = None,
    circle: int | None = None,
    folded: bool = False,
) -> tuple[tuple[Factor, ...], tuple[Reading, ...]]:
    """Return factors whose functions are combinations of the spectrum's, and how they are read.

    Places on a factor are read from at most `most_functions`; None for as many as it takes. They
    are read from the first `charted` functions of each block, whatever these are, if that is given,
    and freed from the other factors under `chart_weights` of the samples, if these are. `circle` is
    the number of a block of a circle's cosine and sine, which are taken as they are; of the sine,
    if `folded`, only the sign.

    Shapes: blocks (n_spectrum_functions, n_functions), chart_weights (n_samples,).
    """
    counts = list(charted) or [None] * len(blocks)
    blocks = [
        block if count else block[:, np.argsort(spectrum.eigenvalues @ block**2, kind="stable")]
        for block, count in zip(blocks, counts, strict=True)
    ]
    lowest = [float((spectrum.eigenvalues @ block**2).min()) for block in blocks]
    order = np.argsort(lowest, kind="stable")
    blocks, counts = [blocks[f] for f in order], [counts[f] for f in order]
    weighted = spectrum if chart_weights is None else replace(spectrum, weights=chart_weights)

    def make(f: int) -> tuple[Factor, Reading]:
        """Factor of one block, freed from the others, with confidence 1."""
        block, charted, round_block = blocks[f], counts[f], order[f] == circle
        lowest = _others(blocks, but=f, most=FIRST_FUNCTIONS)
        columns = (
            tuple(range(charted))
            if charted
            else shapes.chart_functions(spectrum, block, lowest, most=most_functions)
        )
        # A modulation is smooth, and every function of the regression adds its error.
        corrected = _others(blocks, but=f, most=0 if round_block else 6)
        # Functions that are given may vanish at some places on the others.
        least = FIBRE_SPREAD if charted else charts.LEAST_SPREAD
        functions = block[:, columns]
        chart, places = charts.make_chart(weighted, functions, corrected, least_spread=least)
        topology = (
            "circle" if round_block else shapes.find_topology(spectrum, block, lowest, places)
        )
        dimension, cloud = 1, None
        if topology == "other":
            dimension = charts.cloud_dimension(places)
            # A bent surface fills more dimensions of the chart than its own, and an average of
            # gradients around a bend points in more directions; the lesser number is right.
            if geometry is not None:
                dimension = min(dimension, count_directions(geometry, functions[1:]))
            # More functions than dimensions leave the surface by their errors, which pulling takes
            # out.
            if places.shape[1] > dimension:
                cloud = charts.make_cloud(places, dimension)
        ends = shapes.interval_ends("interval" if round_block and folded else topology, places)
        reading = Reading(block, topology, chart, cloud, ends)
        values, eigenvalues = spectrum.combined(block), spectrum.eigenvalues @ block**2
        shape = (topology, dimension, *reading.on_shape(places))
        return Factor(values, eigenvalues, *shape, np.ones(len(places))), reading

    # Concurrently: none of them needs another.
    tasks = [partial(_confidence, spectrum, blocks), *(partial(make, f) for f in range(len(order)))]
    confidence, *made = map_threads(lambda task: task(), tasks)
    factors, readings = zip(*made, strict=True)
    sure = zip(factors, confidence, strict=True)
    return tuple(replace(factor, confidence=own) for factor, own in sure), readings


def _others(blocks: Sequence[np.ndarray], *, but: int, most: int) -> np.ndarray:
    """Coefficients of the lowest functions of all blocks but one, side by side."""
    others = [block[:, :most] for f, block in enumerate(blocks) if f != but]
    # np.hstack needs one array at least, where there is no other block.
    none = blocks[but][:, :0]
    return np.hstack([none, *others])


def selection(spectrum: Spectrum, indices) -> np.ndarray:
    """Return coefficients that pick functions of a spectrum by their indices."""
    return np.eye(len(spectrum.eigenvalues))[:, np.asarray(indices, dtype=int)]


def _confidence(spectrum: Spectrum, blocks: Sequence[np.ndarray]) -> np.ndarray:
    """One less the cosine between the gradients of each factor and all others at samples."""
    lowest = [block[:, :FIRST_FUNCTIONS] for block in blocks]
    label = np.repeat(np.arange(len(blocks)), [low.shape[1] for low in lowest])
    champ, pair = champ_of_pairs(spectrum, np.hstack(lowest))
    own = [np.diag(pair)[label == f] for f in range(len(blocks))]
    energy = np.array([champ[:, some].sum(axis=1) for some in own])
    # The carre du champ at a positive time may be a little below 0.
    mean_energy = np.abs(energy @ spectrum.weights)[:, None]
    energy = np.maximum(energy, 0.5 * mean_energy)

    def sureness(rows: slice) -> np.ndarray:
        squares = champ[rows] ** 2
        out = np.ones((len(blocks), len(squares)))
        for f, g in combinations(range(len(blocks)), 2):
            # The squared cosine of rank-one gradients, summed over pairs of functions.
            some = pair[np.ix_(label == f, label == g)].ravel()
            across = squares[:, some].sum(axis=1)
            sure = 1 - np.sqrt(across / (energy[f, rows] * energy[g, rows]))
            out[[f, g]] = np.minimum(out[[f, g]], sure)
        return np.clip(out, 0, 1)

    return np.concatenate(map_panels(sureness, len(champ)), axis=1)


def owners(spectrum: Spectrum, blocks: Sequence[np.ndarray]) -> np.ndarray:
    """Return which factor most of each of the spectrum's functions belongs to, -1 for none."""
    # Functions of unit norm: squared coefficients are shares. Factors are orthogonal, so that no
    # function has more than half in two of them.
    none = np.full(len(spectrum.eigenvalues), 0.5)
    return np.vstack([none, *((block**2).sum(axis=1) for block in blocks)]).argmax(axis=0) - 1


def angle_matrix(spectrum: Spectrum, blocks: Sequence[np.ndarray]) -> tuple[np.ndarray, list[int]]:
    """Return mean squared cosines between gradients of the 8 lowest functions of every factor.

    0 where two functions belong to different factors of a product, 1 where their gradients are
    parallel. Also returned is how many functions of each factor these are.
    """
    blocks = [block[:, :8] for block in blocks]
    if not blocks:
        return np.zeros((0, 0)), []
    # Means over as many samples are known to better than a hundredth.
    thin = random_rows(len(spectrum.weights), 20_000)
    weights = spectrum.weights[thin] / spectrum.weights[thin].sum()
    # What a device holds belongs to all samples.
    some = replace(spectrum, functions=spectrum.functions[thin], weights=weights, resident=None)
    champ = carre_du_champ(some, np.hstack(blocks))
    energy = np.einsum("xaa->xa", champ)
    across = np.einsum("x,xab->ab", weights, champ**2)
    parallel = (energy * weights[:, None]).T @ energy
    return np.clip(quotient(across, parallel), 0, 1), [block.shape[1] for block in blocks]
