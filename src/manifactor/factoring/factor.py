"""One factor: its functions, its shape, and where every sample lies on it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from manifactor._support.regression import neighbour_means
from manifactor._support.threads import at_once
from manifactor.factoring.charts import (
    Chart,
    Cloud,
    cloud_dimension,
    make_chart,
    make_cloud,
)
from manifactor.factoring.gradients import carre_du_champ
from manifactor.spectral.spectrum import Spectrum

MAX_CHART = 6  # functions an embedding may have
DESCRIBED = 8  # lowest functions of a factor that its shape is read from
CORRECTED = 6  # functions of each other factor that a chart is freed from
NEW, SURELY_NEW = (
    0.6,
    0.3,
)  # largest R^2 with which a low or a high function is predicted that tells more of the place
ALONE = 0.9  # the same where there is no other factor that could pollute it
LOW = 4.0  # times the lowest eigenvalue
FOREIGN = 0.6  # R^2 from which on a function that others help to predict is impure
ROUND = 0.18  # largest spread of a circle's radius
LOWEST = 2  # functions of each factor whose gradients tell the confidence
REGRESSION_SAMPLES = 4000
REGRESSION_NEIGHBORS = 20
BEYOND = 0.01  # share of the samples at either end of an interval that may be stray


@dataclass(frozen=True)
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
        An interval's coordinate, a circle's cosine and sine, or a few functions that tell places apart.
    coordinate : ndarray of shape (n_samples,) or None
        Arc length from 0 to 1 on an interval, angle from 0 to 2 pi on a circle; None otherwise.
    confidence : ndarray of shape (n_samples,)
        From 0 to 1: how orthogonal this factor's directions are to the other factors' at the sample; 1 if there are
        no others.
    coefficients : ndarray of shape (n_spectrum_functions, n_functions)
        The functions as combinations of the spectrum's.
    chart : Chart or None
        How a place is read from the spectrum's functions; None where it is read from others (deflation).
    cloud : Cloud or None
        The surface that places are pulled onto, where the embedding has more columns than the factor has dimensions.
    ends : ndarray of shape (2,) or None
        The chart's values at the ends of an interval.
    """

    functions: np.ndarray
    eigenvalues: np.ndarray
    topology: str
    dimension: int
    embedding: np.ndarray
    coordinate: np.ndarray | None
    confidence: np.ndarray
    coefficients: np.ndarray
    chart: Chart | None
    cloud: Cloud | None
    ends: np.ndarray | None

    def place(
        self, spectrum_functions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Embedding and coordinate of samples, given the spectrum's functions at them."""
        if self.chart is None:
            raise ValueError(
                "deflation places the samples that it was fitted on, and no others; fit all samples together."
            )
        return _place(
            self.topology, self.chart(spectrum_functions), self.cloud, self.ends
        )

    @property
    def shape(self) -> str:
        """What the factor looks like, in two or three words."""
        named = {"interval": "an interval", "circle": "a circle"}
        return named.get(self.topology, f"a {self.dimension}-dimensional shape")

    def __str__(self) -> str:
        return f"{self.shape}, {len(self.eigenvalues)} functions, eigenvalues from {self.eigenvalues[0]:.4g}"


def make_factors(
    spectrum: Spectrum, blocks: Sequence[np.ndarray]
) -> tuple[Factor, ...]:
    """Factors whose functions are these combinations of the spectrum's, whatever method found them, lowest first.

    Parameters
    ----------
    spectrum : Spectrum
    blocks : sequence of ndarray of shape (n_spectrum_functions, n_functions)
        Unit columns, one block for each factor.
    """
    blocks = [
        block[:, np.argsort(spectrum.eigenvalues @ block**2, kind="stable")]
        for block in blocks
    ]
    blocks = sorted(
        blocks, key=lambda block: float(spectrum.eigenvalues @ block[:, 0] ** 2)
    )
    described = (
        DESCRIBED if len(blocks) > 1 else None
    )  # where there is one factor only, no function is impure

    def factor(f: int) -> Factor:
        block = blocks[f]
        topology, columns = _shape(
            spectrum, block[:, :described], _lowest(blocks, but=f)
        )
        others = np.hstack(
            [
                block[:, :0],
                *(other[:, :CORRECTED] for g, other in enumerate(blocks) if g != f),
            ]
        )
        return _factor(
            spectrum, block, topology, *make_chart(spectrum, block[:, columns], others)
        )

    tasks = [
        partial(_confidence, spectrum, blocks),
        *(partial(factor, f) for f in range(len(blocks))),
    ]
    confidence, *factors = at_once(lambda task: task(), tasks)
    return tuple(
        replace(f, confidence=c) for f, c in zip(factors, confidence, strict=True)
    )


def placed_factor(
    functions: np.ndarray, eigenvalues: np.ndarray, topology: str
) -> Factor:
    """An interval or a circle read from given functions, (n_samples, 1 or 2), of another spectrum than the samples'."""
    ends = _ends(topology, functions)
    embedding, coordinate = _place(topology, functions, None, ends)
    return Factor(
        functions=functions,
        eigenvalues=eigenvalues,
        topology=topology,
        dimension=1,
        embedding=embedding,
        coordinate=coordinate,
        confidence=np.ones(len(functions)),
        coefficients=np.empty((0, functions.shape[1])),
        chart=None,
        cloud=None,
        ends=ends,
    )


def _factor(
    spectrum: Spectrum,
    block: np.ndarray,
    topology: str,
    chart: Chart,
    places: np.ndarray,
) -> Factor:
    """The factor whose samples have these places on the chart, with confidence 1."""
    dimension = cloud_dimension(places) if topology == "other" else 1
    cloud = (
        make_cloud(places, dimension)
        if topology == "other" and places.shape[1] > dimension
        else None
    )
    ends = _ends(topology, places)
    embedding, coordinate = _place(topology, places, cloud, ends)
    return Factor(
        functions=spectrum.combined(block),
        eigenvalues=spectrum.eigenvalues @ block**2,
        topology=topology,
        dimension=dimension,
        embedding=embedding,
        coordinate=coordinate,
        confidence=np.ones(len(places)),
        coefficients=block,
        chart=chart,
        cloud=cloud,
        ends=ends,
    )


def selection(spectrum: Spectrum, indices) -> np.ndarray:
    """Coefficients that pick functions of a spectrum by their indices."""
    return np.eye(len(spectrum.eigenvalues))[:, np.asarray(indices, dtype=int)]


def predictability(source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """R^2 with which places `source`, (n, d), predict each column of `target`, (n, m), at least 0.

    Leave-one-out regression on the nearest neighbours; long samples are thinned evenly. The mean of k neighbours has a
    k-th of the noise itself, which is taken into account: two independent arrays give 0, not -1/k.
    """
    thin = slice(None, None, -(-len(source) // REGRESSION_SAMPLES))
    source, target = source[thin], target[thin]
    k = min(REGRESSION_NEIGHBORS, len(source) - 1)
    left = ((target - neighbour_means(source, k)(target)) ** 2).mean(axis=0) / (
        1 + 1 / k
    )
    return np.clip(1 - left / np.maximum(target.var(axis=0), 1e-300), 0, 1)


def _ends(topology: str, chart_values: np.ndarray) -> np.ndarray | None:
    """Values of an interval's lowest function at its ends, read from where all but stray samples end."""
    if topology != "interval":
        return None
    near = np.quantile(
        chart_values[:, 0], [1 - BEYOND, BEYOND]
    )  # cos(pi t) at t = BEYOND and at 1 - BEYOND
    return near.mean() + (near - near.mean()) / np.cos(np.pi * BEYOND)


def _place_on_interval(
    functions: np.ndarray, ends: np.ndarray
) -> tuple[np.ndarray, np.ndarray | None]:
    """The lowest function of an interval is cos(pi t), stretched and moved a little where the interval is not even."""
    cosine = (functions[:, 0] - ends.mean()) / (ends[0] - ends.mean())
    t = np.arccos(np.clip(cosine, -1, 1)) / np.pi
    return t[:, None], t


def _place_on_circle(functions: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    angle = np.arctan2(functions[:, 1], functions[:, 0]) % (2 * np.pi)
    angle[angle == 2 * np.pi] = 0.0  # what % makes of an angle just below 0
    return np.column_stack([np.cos(angle), np.sin(angle)]), angle


def _place(
    topology: str,
    chart_values: np.ndarray,
    cloud: Cloud | None,
    ends: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray | None]:
    if ends is not None:
        return _place_on_interval(chart_values, ends)
    if topology == "circle":
        return _place_on_circle(chart_values)
    return (chart_values if cloud is None else cloud.pull(chart_values)), None


def _lowest(blocks: Sequence[np.ndarray], *, but: int) -> np.ndarray:
    """Coefficients of the lowest functions of all blocks but one."""
    return np.hstack(
        [
            blocks[but][:, :0],
            *(block[:, :LOWEST] for f, block in enumerate(blocks) if f != but),
        ]
    )


def _shape(
    spectrum: Spectrum, block: np.ndarray, others: np.ndarray
) -> tuple[str, tuple[int, ...]]:
    """Topology, and the functions that tell places apart.

    On an interval the lowest function predicts all others. On a circle the two lowest do, a cosine and a sine, whose
    squares add up to a constant. A function that is predicted only with the help of the other factors is impure and
    tells nothing.
    """
    some = spectrum.functions[:: -(-len(spectrum.functions) // REGRESSION_SAMPLES)]
    functions, eigenvalues, foreign = (
        some @ block,
        spectrum.eigenvalues @ block**2,
        some @ others,
    )
    chart = [0]
    predicted = predictability(functions[:, chart], functions)
    for j in range(1, functions.shape[1]):
        new = (
            ALONE
            if not others.shape[1]
            else NEW
            if eigenvalues[j] < LOW * eigenvalues[0]
            else SURELY_NEW
        )
        if len(chart) < MAX_CHART and predicted[j] < new:
            helped = predictability(
                np.hstack([functions[:, chart], foreign]), functions[:, [j]]
            )[0]
            if helped < max(FOREIGN, predicted[j]):
                chart.append(j)
                predicted = predictability(functions[:, chart], functions)
    if chart == [0, 1] and eigenvalues[1] < 2 * eigenvalues[0]:
        radius = np.hypot(functions[:, 0], functions[:, 1])
        if radius.std() < ROUND * radius.mean():
            return "circle", (0, 1)
    return ("interval", (0,)) if len(chart) == 1 else ("other", tuple(chart))


def _confidence(spectrum: Spectrum, blocks: Sequence[np.ndarray]) -> np.ndarray:
    """One less the cosine between each factor's gradients and all others' at every sample, (n_factors, n_samples).

    Where a gradient vanishes, at an interval's end, it counts as half its mean.
    """
    lowest = [block[:, :LOWEST] for block in blocks]
    label = np.repeat(np.arange(len(blocks)), [low.shape[1] for low in lowest])
    champ = carre_du_champ(spectrum, np.hstack(lowest))
    energy = np.array(
        [
            np.einsum("xaa->x", champ[:, label == f][:, :, label == f])
            for f in range(len(blocks))
        ]
    )
    energy = np.maximum(energy, 0.5 * np.abs(energy @ spectrum.weights)[:, None])
    out = np.ones_like(energy)
    for f in range(len(blocks)):
        for g in range(len(blocks)):
            if g != f:
                across = (champ[:, label == f][:, :, label == g] ** 2).sum(axis=(1, 2))
                out[f] = np.minimum(
                    out[f], 1 - np.sqrt(across / (energy[f] * energy[g]))
                )
    return np.clip(out, 0, 1)
