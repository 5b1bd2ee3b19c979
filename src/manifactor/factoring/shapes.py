"""Shape of a factor, read from its functions, and places on it."""

from dataclasses import dataclass, field
from functools import partial

import numpy as np

from manifactor.factoring.charts import Cloud
from manifactor.factoring.prediction import PredictionSettings, predictability, thinned
from manifactor.spectral.spectrum import Spectrum


@dataclass(frozen=True)
class ShapeSettings:
    """Settings of `find_shape` and `interval_ends`."""

    # Functions that an embedding may have: a sphere needs three, and regression on
    # neighbours fails in many more dimensions.
    most_coordinates: int = 6
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
    # How functions are predicted from those before them.
    prediction: PredictionSettings = field(default_factory=PredictionSettings)


def find_shape(
    spectrum: Spectrum,
    block: np.ndarray,
    others: np.ndarray,
    *,
    settings: ShapeSettings = ShapeSettings(),
) -> tuple[str, tuple[int, ...]]:
    """Return the topology, and the functions that tell places apart.

    On an interval the lowest function predicts all others. On a circle the two lowest
    do, a cosine and a sine, whose squares add up to a constant.
    """
    # Only as many are combined as a prediction looks at.
    thin = thinned(len(spectrum.functions), settings.prediction.samples)
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
    settings: ShapeSettings,
) -> list[int]:
    """Functions, (n, r), that those before them do not predict.

    A function that is predicted only with the help of the other factors' functions,
    (n, p), is impure and tells nothing.
    """
    predict = partial(predictability, settings=settings.prediction)
    chart = [0]
    predicted = predict(functions[:, chart], functions)
    for j in range(1, functions.shape[1]):
        if len(chart) == settings.most_coordinates:
            break
        low = eigenvalues[j] < settings.low * eigenvalues[0]
        new = settings.new if low else settings.surely_new
        if not foreign.shape[1]:
            new = settings.new_alone
        if not predicted[j] < new:
            continue
        # A function of this factor alone is predicted no better with the others.
        helpers = np.hstack([functions[:, chart], foreign])
        helped = predict(helpers, functions[:, [j]])[0]
        if helped < max(settings.foreign, predicted[j]):
            chart.append(j)
            predicted = predict(functions[:, chart], functions)
    return chart


def _is_circle(
    functions: np.ndarray, eigenvalues: np.ndarray, settings: ShapeSettings
) -> bool:
    """Whether the two lowest functions are a cosine and a sine."""
    if eigenvalues[1] >= settings.circle_eigenvalues * eigenvalues[0]:
        return False
    # cos^2 + sin^2 = 1; two functions of a square fill a square instead.
    radius = np.hypot(functions[:, 0], functions[:, 1])
    return bool(radius.std() < settings.round * radius.mean())


def interval_ends(
    topology: str, chart_values: np.ndarray, stray: float
) -> np.ndarray | None:
    """Values of an interval's lowest function at its ends; None on other shapes.

    They are read from where all but stray samples end.
    """
    if topology != "interval":
        return None
    # The extremes themselves would be stray samples. cos(pi t) at t = stray and at
    # t = 1 - stray, from which its values at 0 and 1 follow.
    near = np.quantile(chart_values[:, 0], [1 - stray, stray])
    return near.mean() + (near - near.mean()) / np.cos(np.pi * stray)


def place_on_shape(
    topology: str,
    chart_values: np.ndarray,
    cloud: Cloud | None,
    ends: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray | None]:
    """Embedding and coordinate of samples, given the chart's values at them."""
    # Only an interval has ends.
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
    # New samples may lie a little beyond the ends, where arccos is not defined.
    cosine = (functions[:, 0] - ends.mean()) / (ends[0] - ends.mean())
    t = np.arccos(np.clip(cosine, -1, 1)) / np.pi
    return t[:, None], t


def _place_on_circle(functions: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Angle of the two lowest functions, a cosine and a sine."""
    angle = np.arctan2(functions[:, 1], functions[:, 0]) % (2 * np.pi)
    # % makes 2 pi of an angle just below 0.
    angle[angle == 2 * np.pi] = 0.0
    return np.column_stack([np.cos(angle), np.sin(angle)]), angle
