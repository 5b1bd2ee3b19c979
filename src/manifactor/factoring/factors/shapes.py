"""Angles, and places on a circle."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from manifactor._support.regression import neighbour_means
from manifactor._support.threads import map_panels, map_threads
from manifactor._support.values import quotient
from manifactor.factoring.factors.charts import Cloud
from manifactor.factoring.gradients.purity import PuritySettings, batch_size
from manifactor.factoring.prediction import PredictionSettings, predictability, thinned
from manifactor.spectral.spectrum import Spectrum


def angle_of(places: np.ndarray) -> np.ndarray:
    """Return the angle of places, (n, 2), from 0 to below 2 pi.

    >>> angle_of(np.array([[1.0, -1e-20], [0.0, 1.0]])).round(3)
    array([0.   , 1.571])
    """
    angle = np.arctan2(places[:, 1], places[:, 0])
    angle[angle < 0] += 2 * np.pi
    # The sum is 2 pi for an angle just below 0.
    angle[angle >= 2 * np.pi] = 0.0
    return angle


def on_circle(angle: np.ndarray) -> np.ndarray:
    """Return cosine and sine of angles, (n, 2)."""
    return np.column_stack([np.cos(angle), np.sin(angle)])


def unit_vectors(places: np.ndarray) -> np.ndarray:
    """Return the directions from the origin to places, (n, 2)."""
    radius = np.linalg.norm(places, axis=1, keepdims=True)
    return quotient(places, radius)


def widest_gap(angle: np.ndarray) -> tuple[float, float]:
    """Return where the widest gap between angles begins, and its width.

    >>> start, width = widest_gap(np.array([3.0, 0.0, 1.0]))
    >>> start, round(width, 3)
    (3.0, 3.283)
    """
    ordered = np.sort(angle)
    gaps = np.diff(ordered, append=ordered[0] + 2 * np.pi)
    widest = int(gaps.argmax())
    return float(ordered[widest]), float(gaps[widest])


# Shape of a factor, read from its functions, and places on it.


@dataclass(frozen=True)
class ShapeSettings:
    """Settings of `chart_functions`, `find_topology` and `interval_ends`."""

    # A function of the lowest batch tells nothing new if those before it predict this R^2 of it. It
    # must be near 1: where samples lie in a few wells along a circle, its cosine predicts .99 of
    # its sine, and still folds the circle. On an interval the lowest function predicts .999 of the
    # second.
    known: float = 0.998
    # Lowest functions that a chart is chosen from where there are other factors, whose pollution
    # grows with the eigenvalue.
    described_functions: int = 8
    # Share of a function that a complete chart may leave unexplained, since it is polluted: the
    # variance of an eigenfunction's error falls as the number of samples and grows as the
    # eigenvalue. Up to `low` times the lowest eigenvalue it is below .05 with 3,000 samples and .3
    # with 500 of intervals, circles and spheres.
    polluted_samples: float = 150.0
    low: float = 4.0
    # Bounds of that share: neighbours predict no function exactly, and a function of which more is
    # unexplained is new whatever its eigenvalue.
    least_unexplained: float = 0.02
    most_unexplained: float = 0.7
    # Functions of a chart at most; None for as many as it takes.
    most_functions: int | None = None
    # Neighbours on a chart fail to predict less than this share of its own functions, unless these
    # are peaks on a few samples, which tell nothing of the chart's resolution.
    peaked: float = 0.05
    # A function is impure, and would make the chart depend on other factors, if their functions
    # help to predict this share of it.
    foreign: float = 0.1
    # Largest spread of a circle's radius at an angle, relative to the mean radius.
    round: float = 0.18
    # Largest part of a full turn without samples on a circle, in radians. The two lowest functions
    # of an interval leave a quarter of a turn or more open.
    open_angle: float = np.pi / 4
    # Largest R^2 of a circle's functions that the place predicts and the angle does not: .05 on
    # circles of 500 samples, .3 and more where a curve goes around more than once.
    beside_angle: float = 0.2
    # Share of the samples at either end of an interval that may be stray. With the exact sqrt(2)
    # cos(pi t) a deviation of 4 % near an end would move a sample by 9 % of the length.
    stray: float = 0.01
    # How functions are predicted from those before them. One neighbour of 50 samples resolves all
    # 24 functions of a curve: means of 20 among 200 samples do not, and the higher functions look
    # like those of further dimensions.
    prediction: PredictionSettings = field(
        default_factory=partial(PredictionSettings, samples_per_neighbor=50)
    )
    # Which functions are the lowest batch.
    purity: PuritySettings = field(default_factory=PuritySettings)


def chart_functions(
    spectrum: Spectrum,
    block: np.ndarray,
    others: np.ndarray,
    *,
    settings: ShapeSettings = ShapeSettings(),
) -> tuple[int, ...]:
    """Return which functions of a block tell places on its factor apart.

    These are the functions of the lowest batch, and higher ones until all that are left are
    functions of the place: a chart that does not predict them is folded.

    Shapes: block (n_spectrum_functions, r), others (n_spectrum_functions, p).
    """
    eigenvalues = spectrum.eigenvalues @ block**2
    n_lowest = batch_size(eigenvalues, settings=settings.purity)
    if others.shape[1]:
        block = block[:, : max(n_lowest, settings.described_functions)]
    # Only as many samples are looked at as a prediction needs.
    some = spectrum.functions[_thinned(spectrum, settings)]
    described = Described(
        functions=some @ block,
        eigenvalues=eigenvalues,
        foreign=some @ others,
        n_samples=len(spectrum.functions),
    )
    chart = _lowest(described.functions[:, :n_lowest], settings)
    higher = np.arange(n_lowest, block.shape[1])
    while len(higher):
        new = _new(described, chart, higher, settings)
        if not len(new):
            break
        chart.append(int(new[0]))
        higher = higher[higher > new[0]]
    return tuple(chart[: settings.most_functions])


@dataclass(frozen=True)
class Described:
    """Functions that a chart is chosen from."""

    functions: np.ndarray  # (n, r): at some of the samples
    eigenvalues: np.ndarray  # (r,)
    foreign: np.ndarray  # (n, p): lowest functions of the other factors at the same samples
    n_samples: int  # samples that the functions were computed from


def _thinned(spectrum: Spectrum, settings: ShapeSettings) -> np.ndarray:
    return thinned(len(spectrum.functions), settings.prediction.samples)


def _lowest(functions: np.ndarray, settings: ShapeSettings) -> list[int]:
    """Functions of the lowest batch, (n, r), that tell places apart.

    One of them if it determines the others, as on an interval; two, as on a circle; or all, since a
    batch of nearly equal eigenvalues is cut in two by chance only.
    """
    chart = [0]
    for j in range(1, functions.shape[1]):
        (predicted,) = predictability(
            functions[:, chart], functions[:, [j]], settings=settings.prediction
        )
        if predicted >= settings.known:
            continue
        if len(chart) == 2:
            return list(range(functions.shape[1]))
        chart.append(j)
    return chart


def _new(
    described: Described, chart: Sequence[int], higher: np.ndarray, settings: ShapeSettings
) -> np.ndarray:
    """Those of the higher functions that are no functions of the place on a chart."""
    predict = partial(predictability, settings=settings.prediction)
    functions, foreign = described.functions, described.foreign
    predicted = predict(functions[:, chart], functions)
    alone = predicted[higher]
    tolerated = _tolerated(described, chart, higher, predicted, settings)
    new = alone < 1 - tolerated
    if foreign.shape[1] and new.any():
        # An impure function is explained with the help of the other factors.
        helpers = np.hstack([functions[:, chart], foreign])
        helped = predict(helpers, functions[:, higher])
        new &= (helped < 1 - tolerated) & (helped - alone < settings.foreign)
    return higher[new]


def _tolerated(
    described: Described,
    chart: Sequence[int],
    higher: np.ndarray,
    predicted: np.ndarray,
    settings: ShapeSettings,
) -> np.ndarray:
    """Shares of higher functions that a complete chart may leave unexplained.

    Shapes: predicted (r,).
    """
    eigenvalues = described.eigenvalues
    ratio = eigenvalues[higher] / eigenvalues[chart].mean()
    # What neighbours on a chart cannot resolve grows as the square of the eigenvalue. It is known
    # of the chart's own functions.
    loss = 1 - predicted[chart].max()
    unresolved = loss * ratio**2 if loss < settings.peaked else 0.0
    low = settings.polluted_samples / described.n_samples
    low = max(low, settings.least_unexplained)
    polluted = low * np.maximum(1, ratio / settings.low)
    return np.minimum(unresolved + polluted, settings.most_unexplained)


def find_topology(
    spectrum: Spectrum,
    block: np.ndarray,
    others: np.ndarray,
    places: np.ndarray,
    *,
    settings: ShapeSettings = ShapeSettings(),
) -> str:
    """Return "interval", "circle" or "other".

    On an interval one function tells all places apart. On a circle two functions go around once,
    whatever the density of the samples, and the angle tells places apart.

    Shapes: block (n_spectrum_functions, r), others (n_spectrum_functions, p), places (n_samples,
    m).
    """
    if places.shape[1] == 1:
        return "interval"
    if places.shape[1] > 2:
        return "other"
    thin = _thinned(spectrum, settings)
    some = spectrum.functions[thin]
    functions = some @ block[:, : settings.described_functions]
    foreign = some @ others
    closed = partial(_is_closed, places[thin], foreign, settings)
    tells_all = partial(_angle_tells_all, places[thin], functions, foreign, settings)
    goes_round = all(map_threads(lambda test: test(), [closed, tells_all]))
    return "circle" if goes_round else "other"


def _is_closed(places: np.ndarray, foreign: np.ndarray, settings: ShapeSettings) -> bool:
    """Whether places, (n, 2), are a closed curve around the origin.

    Its radius may depend on the other factors, whose functions are (n, p): the angle does not.
    """
    _, gap = widest_gap(np.arctan2(places[:, 1], places[:, 0]))
    if gap > settings.open_angle:
        return False
    radius = np.hypot(places[:, 0], places[:, 1])
    k = min(settings.prediction.n_neighbors, len(places) - 1)
    angle = unit_vectors(places)

    def rest_beside(known: np.ndarray) -> float:
        # Two functions of a square fill a square instead, those of a star its arms.
        rest = radius - neighbour_means(known, k)(radius[:, None])[:, 0]
        return (rest**2).mean()

    rests = map_threads(rest_beside, [angle, np.hstack([angle, foreign])])
    return bool(np.sqrt(min(rests)) < settings.round * radius.mean())


def _angle_tells_all(
    places: np.ndarray, functions: np.ndarray, foreign: np.ndarray, settings: ShapeSettings
) -> bool:
    """Whether the angle of places, (n, 2), tells as much of functions as the places.

    It does not where a curve goes around more than once. Places tell a little of the other factors,
    which impure functions depend on, so the angle gets the other factors' functions, (n, p), as
    well.
    """
    predict = partial(predictability, target=functions)
    angle = unit_vectors(places)
    by_place, by_angle = map_threads(
        lambda known: predict(known, settings=settings.prediction), [places, angle]
    )
    told = (by_place - by_angle).max() < settings.beside_angle
    if not told and foreign.shape[1]:
        helped = predict(np.hstack([angle, foreign]), settings=settings.prediction)
        by_angle = np.maximum(by_angle, helped)
        told = (by_place - by_angle).max() < settings.beside_angle
    return bool(told)


def interval_ends(topology: str, chart_values: np.ndarray, stray: float) -> np.ndarray | None:
    """Return an interval's lowest function at its ends, (2,); None on other shapes.

    They are read from where all but stray samples end.
    """
    if topology != "interval":
        return None
    # The extremes themselves would be stray samples. cos(pi t) at t = stray and at t = 1 - stray,
    # from which its values at 0 and 1 follow.
    near = np.quantile(chart_values[:, 0], [1 - stray, stray])
    return near.mean() + (near - near.mean()) / np.cos(np.pi * stray)


def place_on_shape(
    topology: str, chart_values: np.ndarray, cloud: Cloud | None, ends: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return embedding and coordinate of samples, given the chart's values at them.

    The coordinate is None unless the shape is an interval or a circle.
    """
    # Only an interval has ends.
    if ends is not None:
        coordinate = _in_panels(partial(_along_interval, ends=ends), chart_values)
        return coordinate[:, None], coordinate
    if topology == "circle":
        angle = _in_panels(angle_of, chart_values)
        return _in_panels(on_circle, angle), angle
    return (chart_values if cloud is None else cloud.pull(chart_values)), None


def _in_panels(work: Callable[[np.ndarray], np.ndarray], values: np.ndarray) -> np.ndarray:
    """What `work` makes of each sample, computed on all cores."""
    panels = map_panels(lambda rows: work(values[rows]), len(values))
    return np.concatenate(panels)


def _along_interval(functions: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Arc length: the lowest function of an interval is cos(pi t).

    It is stretched and moved a little where the interval is not even.
    """
    # New samples may lie a little beyond the ends, where arccos is not defined.
    cosine = (functions[:, 0] - ends.mean()) / (ends[0] - ends.mean())
    return np.arccos(np.clip(cosine, -1, 1)) / np.pi
