"""One factor: its functions, its shape, and where every sample lies on it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from manifactor._support.threads import at_once
from manifactor.factoring.charts import (
    Chart,
    ChartSettings,
    Cloud,
    cloud_dimension,
    make_chart,
    make_cloud,
)
from manifactor.factoring.gradients import carre_du_champ
from manifactor.factoring.prediction import PredictionSettings, predictability, thinned
from manifactor.spectral.spectrum import Spectrum


@dataclass(frozen=True)
class FactorSettings:
    """Settings of `make_factors`."""

    # Lowest functions of a factor that its shape is read from: high ones are impure.
    described_functions: int = 8
    # Functions that an embedding may have; a surface in space needs three to six.
    most_coordinates: int = 6
    # Functions of each other factor that a chart is freed from.
    corrected_functions: int = 6
    # Lowest functions of each factor whose gradients tell the confidence, and which
    # tell impure functions: cosine and sine on a circle.
    lowest_functions: int = 2
    # Largest R^2 with which a function may be predicted that tells more of the place:
    # a low one, and a high one, which the other factors have polluted more.
    new: float = 0.6
    surely_new: float = 0.3
    # The same where there is no other factor that could pollute it.
    new_alone: float = 0.9
    # A function is low below this many times the lowest eigenvalue.
    low: float = 4.0
    # R^2 from which on a function that other factors help to predict is impure.
    foreign: float = 0.6
    # Cosine and sine have equal eigenvalues; on an interval the second has 4 times the
    # first.
    circle_eigenvalues: float = 2.0
    # Largest spread of a circle's radius, of its mean.
    round: float = 0.18
    # Share of the samples at either end of an interval that may be stray. With the
    # exact sqrt(2) cos(pi t) a deviation of 4 % near an end would move a sample by 9 %
    # of the length.
    stray: float = 0.01
    # Share of its mean that a vanishing gradient counts as, at an interval's end.
    least_energy: float = 0.5


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
        An interval's coordinate, a circle's cosine and sine, or a few functions that
        tell places apart.
    coordinate : ndarray of shape (n_samples,) or None
        Arc length from 0 to 1 on an interval, angle from 0 to 2 pi on a circle; None
        otherwise.
    confidence : ndarray of shape (n_samples,)
        From 0 to 1: how orthogonal this factor's directions are to the other factors'
        at the sample; 1 if there are no others.
    coefficients : ndarray of shape (n_spectrum_functions, n_functions)
        The functions as combinations of the spectrum's.
    chart : Chart or None
        How a place is read from the spectrum's functions; None where it is read from
        others (deflation).
    cloud : Cloud or None
        The surface that places are pulled onto, where the embedding has more columns
        than the factor has dimensions.
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
        """Return embedding and coordinate, given the spectrum's functions at samples."""
        if self.chart is None:
            raise ValueError(
                "deflation places the samples that it was fitted on, and no others; "
                "fit all samples together."
            )
        chart_values = self.chart(spectrum_functions)
        return _place(self.topology, chart_values, self.cloud, self.ends)

    @property
    def shape(self) -> str:
        """Shape of the factor, in two or three words."""
        named = {"interval": "an interval", "circle": "a circle"}
        return named.get(self.topology, f"a {self.dimension}-dimensional shape")

    def __str__(self) -> str:
        return (
            f"{self.shape}, {len(self.eigenvalues)} functions, eigenvalues from "
            f"{self.eigenvalues[0]:.4g}"
        )

    def __repr__(self) -> str:
        return (
            f"Factor({self.topology}, dimension={self.dimension}, "
            f"n_functions={len(self.eigenvalues)}, "
            f"lowest_eigenvalue={self.eigenvalues[0]:.4g})"
        )


def make_factors(
    spectrum: Spectrum,
    blocks: Sequence[np.ndarray],
    *,
    settings: FactorSettings = FactorSettings(),
    charts: ChartSettings = ChartSettings(),
) -> tuple[Factor, ...]:
    """Return the factors whose functions are combinations of the spectrum's.

    Parameters
    ----------
    spectrum : Spectrum
    blocks : sequence of ndarray of shape (n_spectrum_functions, n_functions)
        Unit columns, one block for each factor, whatever method found them.

    Returns
    -------
    tuple of Factor
        The one with the smallest eigenvalue first.
    """
    blocks = _ascending(spectrum, blocks)
    making = [
        partial(_make_factor, spectrum, blocks, f, settings=settings, charts=charts)
        for f in range(len(blocks))
    ]
    measuring = partial(_confidence, spectrum, blocks, settings=settings)
    confidence, *factors = at_once(lambda task: task(), [measuring, *making])
    return tuple(
        replace(f, confidence=c) for f, c in zip(factors, confidence, strict=True)
    )


def _ascending(spectrum: Spectrum, blocks: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Blocks in order of their lowest eigenvalues, and functions inside each block."""

    def eigenvalues(functions: np.ndarray) -> np.ndarray:
        return spectrum.eigenvalues @ functions**2

    orders = [np.argsort(eigenvalues(block), kind="stable") for block in blocks]
    inside = [block[:, order] for block, order in zip(blocks, orders, strict=True)]
    return sorted(inside, key=lambda block: float(eigenvalues(block[:, 0])))


def _make_factor(
    spectrum: Spectrum,
    blocks: Sequence[np.ndarray],
    f: int,
    *,
    settings: FactorSettings,
    charts: ChartSettings,
) -> Factor:
    """Factor of one block, freed from the others, with confidence 1."""
    block = blocks[f]
    lowest = _others(blocks, but=f, most=settings.lowest_functions)
    # Where there is one factor only, no function is impure.
    described = settings.described_functions if len(blocks) > 1 else None
    topology, columns = _shape(spectrum, block[:, :described], lowest, settings)
    corrected = _others(blocks, but=f, most=settings.corrected_functions)
    chart, places = make_chart(spectrum, block[:, columns], corrected, settings=charts)
    surface = topology == "other"
    dimension = cloud_dimension(places, settings=charts) if surface else 1
    cloud = None
    if surface and places.shape[1] > dimension:
        cloud = make_cloud(places, dimension, settings=charts)
    ends = _ends(topology, places, settings.stray)
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


def _others(blocks: Sequence[np.ndarray], *, but: int, most: int) -> np.ndarray:
    """Coefficients of the lowest functions of all blocks but one, side by side."""
    others = [block[:, :most] for f, block in enumerate(blocks) if f != but]
    none = blocks[but][:, :0]
    return np.hstack([none, *others])


def placed_factor(
    functions: np.ndarray,
    eigenvalues: np.ndarray,
    topology: str,
    *,
    settings: FactorSettings = FactorSettings(),
) -> Factor:
    """Return an interval or a circle read from functions of another spectrum.

    Parameters
    ----------
    functions : ndarray of shape (n_samples, 1 or 2)
        Of a spectrum that is not the samples' own.
    eigenvalues : ndarray of shape (1 or 2,)
    topology : "interval" or "circle"
    """
    ends = _ends(topology, functions, settings.stray)
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


def selection(spectrum: Spectrum, indices) -> np.ndarray:
    """Return coefficients that pick functions of a spectrum by their indices."""
    return np.eye(len(spectrum.eigenvalues))[:, np.asarray(indices, dtype=int)]


def _shape(
    spectrum: Spectrum,
    block: np.ndarray,
    others: np.ndarray,
    settings: FactorSettings,
) -> tuple[str, tuple[int, ...]]:
    """Topology, and the functions that tell places apart.

    On an interval the lowest function predicts all others. On a circle the two lowest
    do, a cosine and a sine, whose squares add up to a constant.
    """
    thin = thinned(len(spectrum.functions), PredictionSettings().samples)
    some = spectrum.functions[thin]
    functions = some @ block
    eigenvalues = spectrum.eigenvalues @ block**2
    coordinates = _coordinates(functions, eigenvalues, some @ others, settings)
    if coordinates == [0]:
        return "interval", (0,)
    if coordinates == [0, 1] and _is_circle(functions, eigenvalues, settings):
        return "circle", (0, 1)
    return "other", tuple(coordinates)


def _coordinates(
    functions: np.ndarray,
    eigenvalues: np.ndarray,
    foreign: np.ndarray,
    settings: FactorSettings,
) -> list[int]:
    """Functions, (n, r), that those before them do not predict.

    A function that is predicted only with the help of the other factors' functions,
    (n, p), is impure and tells nothing.
    """
    chart = [0]
    predicted = predictability(functions[:, chart], functions)
    for j in range(1, functions.shape[1]):
        if len(chart) == settings.most_coordinates:
            break
        low = eigenvalues[j] < settings.low * eigenvalues[0]
        new = settings.new if low else settings.surely_new
        if not foreign.shape[1]:
            new = settings.new_alone
        if not predicted[j] < new:
            continue
        helpers = np.hstack([functions[:, chart], foreign])
        helped = predictability(helpers, functions[:, [j]])[0]
        if helped < max(settings.foreign, predicted[j]):
            chart.append(j)
            predicted = predictability(functions[:, chart], functions)
    return chart


def _is_circle(
    functions: np.ndarray, eigenvalues: np.ndarray, settings: FactorSettings
) -> bool:
    """Whether the two lowest functions are a cosine and a sine."""
    if eigenvalues[1] >= settings.circle_eigenvalues * eigenvalues[0]:
        return False
    radius = np.hypot(functions[:, 0], functions[:, 1])
    return bool(radius.std() < settings.round * radius.mean())


def _ends(topology: str, chart_values: np.ndarray, stray: float) -> np.ndarray | None:
    """Values of an interval's lowest function at its ends; None on other shapes.

    They are read from where all but stray samples end.
    """
    if topology != "interval":
        return None
    # cos(pi t) at t = stray and at t = 1 - stray
    near = np.quantile(chart_values[:, 0], [1 - stray, stray])
    return near.mean() + (near - near.mean()) / np.cos(np.pi * stray)


def _place(
    topology: str,
    chart_values: np.ndarray,
    cloud: Cloud | None,
    ends: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray | None]:
    """Embedding and coordinate of samples, given the chart's values at them."""
    if ends is not None:
        return _place_on_interval(chart_values, ends)
    if topology == "circle":
        return _place_on_circle(chart_values)
    return (chart_values if cloud is None else cloud.pull(chart_values)), None


def _place_on_interval(
    functions: np.ndarray, ends: np.ndarray
) -> tuple[np.ndarray, np.ndarray | None]:
    """Arc length: the lowest function of an interval is cos(pi t).

    It is stretched and moved a little where the interval is not even.
    """
    cosine = (functions[:, 0] - ends.mean()) / (ends[0] - ends.mean())
    t = np.arccos(np.clip(cosine, -1, 1)) / np.pi
    return t[:, None], t


def _place_on_circle(functions: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Angle of the two lowest functions, a cosine and a sine."""
    angle = np.arctan2(functions[:, 1], functions[:, 0]) % (2 * np.pi)
    # % makes 2 pi of an angle just below 0.
    angle[angle == 2 * np.pi] = 0.0
    return np.column_stack([np.cos(angle), np.sin(angle)]), angle


def _confidence(
    spectrum: Spectrum,
    blocks: Sequence[np.ndarray],
    *,
    settings: FactorSettings,
) -> np.ndarray:
    """One less the cosine between each factor's gradients and all others'.

    At every sample, (n_factors, n_samples). Where a gradient vanishes, at an
    interval's end, it counts as half its mean.
    """
    lowest = [block[:, : settings.lowest_functions] for block in blocks]
    counts = [low.shape[1] for low in lowest]
    label = np.repeat(np.arange(len(blocks)), counts)
    champ = carre_du_champ(spectrum, np.hstack(lowest))

    def between(f: int, g: int) -> np.ndarray:
        return champ[:, label == f][:, :, label == g]

    energy = np.array([np.einsum("xaa->x", between(f, f)) for f in range(len(blocks))])
    mean_energy = np.abs(energy @ spectrum.weights)[:, None]
    energy = np.maximum(energy, settings.least_energy * mean_energy)
    out = np.ones_like(energy)
    for f in range(len(blocks)):
        for g in range(len(blocks)):
            if g == f:
                continue
            across = (between(f, g) ** 2).sum(axis=(1, 2))
            cosine = np.sqrt(across / (energy[f] * energy[g]))
            out[f] = np.minimum(out[f], 1 - cosine)
    return np.clip(out, 0, 1)
