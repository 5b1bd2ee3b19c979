"""Shape of a factor, read from its functions, and where samples lie on it."""

from functools import partial

import numpy as np

import manifactor.statistics as statistics
from manifactor._support.threads import map_threads
from manifactor._support.values import quotient
from manifactor.factors.charts import Cloud, in_panels
from manifactor.operators.geometry import batch_size
from manifactor.operators.laplacian import Spectrum

# Lowest functions that a chart is chosen from where there are other factors, whose pollution grows
# with the eigenvalue.
DESCRIBED_FUNCTIONS = 8
# Largest R^2 of a circle's functions that the place predicts and the angle does not: .05 on circles
# of 500 samples, .3 and more where a curve goes around more than once.
BESIDE_ANGLE = 0.2
# One neighbour of 50 samples resolves all 24 functions of a curve: means of 20 among 200 samples do
# not, and the higher functions look like those of further dimensions.
_predict = partial(statistics.predictability, samples_per_neighbor=50)

# Embedding of samples on a factor, (n, n_coordinates), and their coordinate, (n,), if there is one.
Places = tuple[np.ndarray, np.ndarray | None]


def signed_angle(places: np.ndarray) -> np.ndarray:
    """Return the angle of places, (n, 2), from -pi to pi."""
    return np.arctan2(places[:, 1], places[:, 0])


def angle_of(places: np.ndarray) -> np.ndarray:
    """Return the angle of places, (n, 2), from 0 to below 2 pi."""
    angle = signed_angle(places)
    angle[angle < 0] += 2 * np.pi
    # The sum is 2 pi for an angle just below 0.
    angle[angle >= 2 * np.pi] = 0.0
    return angle


def on_circle(angle: np.ndarray) -> np.ndarray:
    """Return cosine and sine of angles, (n, 2)."""
    return np.column_stack([np.cos(angle), np.sin(angle)])


def on_line(topology: str, places: np.ndarray) -> np.ndarray:
    """Return the coordinate of places on a circle or an interval, (n,)."""
    return angle_of(places) if topology == "circle" else places[:, 0]


def unit_vectors(places: np.ndarray) -> np.ndarray:
    """Return the directions from the origin to places, (n, 2)."""
    radius = np.linalg.norm(places, axis=1, keepdims=True)
    return quotient(places, radius)


def widest_gap(angle: np.ndarray) -> tuple[float, float]:
    """Return where the widest gap between angles begins, and its width."""
    ordered = np.sort(angle)
    gaps = np.diff(ordered, append=ordered[0] + 2 * np.pi)
    widest = int(gaps.argmax())
    return float(ordered[widest]), float(gaps[widest])


def chart_functions(
    spectrum: Spectrum, block: np.ndarray, others: np.ndarray, *, most: int | None = None
) -> tuple[int, ...]:
    """Return which functions of a block distinguish places on its factor, at most `most`.

    These are the functions of the lowest batch, and higher ones until all that are left are
    functions of the place: a chart that does not predict them is folded.

    Shapes: block (n_spectrum_functions, r), others (n_spectrum_functions, p).
    """
    eigenvalues = spectrum.eigenvalues @ block**2
    n_lowest = batch_size(eigenvalues)
    if others.shape[1]:
        block = block[:, : max(n_lowest, DESCRIBED_FUNCTIONS)]
    some = _some(spectrum)
    functions, foreign = some @ block, some @ others
    chart = _lowest(functions[:, :n_lowest])
    higher = np.arange(n_lowest, block.shape[1])
    while len(higher):
        predicted = _predict(functions[:, chart], functions)
        alone = predicted[higher]
        # What neighbours on a chart cannot resolve is known of the chart's own functions.
        loss = 1 - predicted[chart].max()
        ratio = eigenvalues[higher] / eigenvalues[chart].mean()
        tolerated = _tolerated(loss, ratio, len(spectrum.functions))
        new = alone < 1 - tolerated
        if foreign.shape[1] and new.any():
            # An impure function is explained with the help of the other factors; it would make the
            # chart depend on them.
            helped = _predict(np.hstack([functions[:, chart], foreign]), functions[:, higher])
            new &= (helped < 1 - tolerated) & (helped - alone < 0.1)
        if not new.any():
            break
        chart.append(int(higher[new][0]))
        higher = higher[higher > chart[-1]]
    return tuple(chart[:most])


def _some(spectrum: Spectrum) -> np.ndarray:
    """The spectrum's functions at only as many samples as a prediction needs."""
    rows = statistics.random_rows(len(spectrum.functions), statistics.PREDICTED_SAMPLES)
    return spectrum.functions[rows]


def _lowest(functions: np.ndarray) -> list[int]:
    """Functions of the lowest batch, (n, r), that distinguish places."""
    chart = [0]
    for j in range(1, functions.shape[1]):
        (predicted,) = _predict(functions[:, chart], functions[:, [j]])
        # It must be near 1: where samples lie in a few wells along a circle, its cosine predicts
        # .99 of its sine, and still folds the circle. On an interval the lowest function predicts
        # .999 of the second.
        if predicted >= 0.998:
            continue
        if len(chart) == 2:
            return list(range(functions.shape[1]))
        chart.append(j)
    return chart


def _tolerated(loss: float, ratio: np.ndarray, n_samples: int) -> np.ndarray:
    """Shares of functions that a complete chart may leave unexplained.

    `loss` is the share of the chart's own functions that neighbours on it do not predict, and
    `ratio` is that of the functions' eigenvalues to the chart's.
    """
    # What neighbours cannot resolve grows as the square of the eigenvalue. A larger loss is that of
    # peaks on a few samples, which tell nothing of the chart's resolution.
    unresolved = loss * ratio**2 if loss < 0.05 else 0.0
    # Functions are polluted: the variance of an eigenfunction's error falls as the number of
    # samples and grows as the eigenvalue. Up to 4 times the lowest eigenvalue it is below .05 with
    # 3,000 samples and .3 with 500 of intervals, circles and spheres. Neighbours predict no
    # function exactly, hence the .02.
    polluted = max(150.0 / n_samples, 0.02) * np.maximum(1, ratio / 4.0)
    # A function of which more is unexplained is new, also one with a high eigenvalue.
    return np.minimum(unresolved + polluted, 0.7)


def find_topology(
    spectrum: Spectrum, block: np.ndarray, others: np.ndarray, places: np.ndarray
) -> str:
    """Return "interval", "circle" or "other".

    On an interval one function distinguishes all places. On a circle two functions go around once,
    for samples of any density, and the angle distinguishes the places.

    Shapes: block (n_spectrum_functions, r), others (n_spectrum_functions, p), places (n_samples,
    m).
    """
    if places.shape[1] == 1:
        return "interval"
    if places.shape[1] > 2:
        return "other"
    some = _some(spectrum)
    functions, foreign = some @ block[:, :DESCRIBED_FUNCTIONS], some @ others
    places = places[statistics.random_rows(len(places), statistics.PREDICTED_SAMPLES)]
    goes_round = is_closed(places, foreign) and _angle_tells_all(places, functions, foreign)
    return "circle" if goes_round else "other"


def is_closed(places: np.ndarray, foreign: np.ndarray) -> bool:
    """Whether places, (n, 2), are a closed curve, whose radius may depend on functions, (n, p)."""
    _, gap = widest_gap(signed_angle(places))
    # The two lowest functions of an interval leave a quarter of a turn or more open.
    if gap > np.pi / 4:
        return False
    radius = np.hypot(places[:, 0], places[:, 1])
    k = min(statistics.PREDICTION_NEIGHBORS, len(places) - 1)
    angle = unit_vectors(places)

    def rest_beside(known: np.ndarray) -> float:
        # Two functions of a square fill a square instead, those of a star its arms.
        rest = radius - statistics.neighbour_means(known, k)(radius[:, None])[:, 0]
        return (rest**2).mean()

    rests = map_threads(rest_beside, [angle, np.hstack([angle, foreign])])
    # Largest spread of a circle's radius at an angle, relative to the mean radius.
    return bool(np.sqrt(min(rests)) < 0.18 * radius.mean())


def _angle_tells_all(places: np.ndarray, functions: np.ndarray, foreign: np.ndarray) -> bool:
    """Whether the angle of places, (n, 2), tells as much of functions as the places."""
    predict = partial(_predict, target=functions)
    angle = unit_vectors(places)
    by_place, by_angle = map_threads(predict, [places, angle])
    # Places tell a little of the other factors, which impure functions depend on.
    if foreign.shape[1] and not (by_place - by_angle).max() < BESIDE_ANGLE:
        by_angle = np.maximum(by_angle, predict(np.hstack([angle, foreign])))
    return bool((by_place - by_angle).max() < BESIDE_ANGLE)


def interval_ends(topology: str, chart_values: np.ndarray) -> np.ndarray | None:
    """Return an interval's lowest function at its ends, (2,); None on other shapes.

    They are read from where all but stray samples end.
    """
    if topology != "interval":
        return None
    # The extremes themselves would be stray samples. With the exact sqrt(2) cos(pi t) a deviation
    # of 4 % near an end would move a sample by 9 % of the length. These are cos(pi t) at t = stray
    # and at t = 1 - stray, from which its values at 0 and 1 follow.
    stray = 0.01
    near = np.quantile(chart_values[:, 0], [1 - stray, stray])
    return near.mean() + (near - near.mean()) / np.cos(np.pi * stray)


def place_on_shape(
    topology: str, chart_values: np.ndarray, cloud: Cloud | None, ends: np.ndarray | None
) -> Places:
    """Return embedding and coordinate of samples, given the chart's values at them.

    The coordinate is None unless the shape is an interval or a circle.
    """
    if topology == "other":
        return (chart_values if cloud is None else cloud.pull(chart_values)), None
    circle, read = topology == "circle", angle_of
    # Of circles, only one that is read from its cosine, and the side of it, has ends.
    if ends is not None:
        read = partial(_around_folded if circle else _along_interval, ends=ends)
    coordinate = in_panels(read, chart_values)
    return (in_panels(on_circle, coordinate) if circle else coordinate[:, None]), coordinate


def _around_folded(functions: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Angle from 0 to 2 pi, from the cosine of a circle and a function of the side's sign."""
    half = np.pi * _along_interval(functions, ends)
    return np.where(functions[:, 1] < 0, 2 * np.pi - half, half) % (2 * np.pi)


def _along_interval(functions: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Arc length: the lowest function of an interval is cos(pi t)."""
    # New samples may lie a little beyond the ends, where arccos is not defined.
    cosine = (functions[:, 0] - ends.mean()) / (ends[0] - ends.mean())
    return np.arccos(np.clip(cosine, -1, 1)) / np.pi
