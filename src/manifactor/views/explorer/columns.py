"""All that is known of every sample as named columns of numbers, and selections by ranges and lassos in them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from manifactor.cryoem.particles import Particles
from manifactor.runs.places import Place

INNER = 0.4  # radius of a circle's samples without confidence; 1 with full confidence
MOST_OFFERED = 100  # columns of the samples themselves


@dataclass(frozen=True)
class Column:
    """A number for every sample.

    Attributes
    ----------
    label : str
        What people call it.
    values : ndarray of shape (n,)
    group : str
        What it is offered under; "" for one that only places points.
    cyclic : bool
        Whether 360 is 0.
    """

    label: str
    values: np.ndarray
    group: str = ""
    cyclic: bool = False

    def limits(self) -> tuple[float, float]:
        """The lowest and the highest number; a full turn for a circle, 0 and 1 for confidence."""
        if self.cyclic or self.group == "confidence":
            return 0.0, 360.0 if self.cyclic else 1.0
        finite = self.values[np.isfinite(self.values)]
        return (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)


def place_columns(places: Sequence[Place]) -> dict[str, Column]:
    """Places and confidence on every factor, and where to draw them."""
    out: dict[str, Column] = {}
    for number, place in enumerate(places, start=1):
        name, label = f"factor{number}", f"factor {number}"
        confidence = (
            np.ones(len(place.coordinate))
            if place.confidence is None
            else place.confidence
        )
        if place.coordinate.ndim > 1:
            for j, values in enumerate(place.coordinate.T):
                out[f"{name}_{j}"] = Column(f"{label}, axis {j + 1}", values, "places")
        else:
            out[name] = Column(
                label, place.coordinate, "places", place.topology == "circle"
            )
        out[f"{name}_confidence"] = Column(
            f"confidence on {label}", confidence, "confidence"
        )
        if place.topology == "circle":
            ring = (INNER + (1 - INNER) * confidence)[:, None] * place.features
            out |= {
                f"{name}_x": Column("", ring[:, 0]),
                f"{name}_y": Column("", ring[:, 1]),
            }
    return out


def view_of(number: int, place: Place) -> tuple[str, str]:
    """The columns that a factor, counted from 1, is drawn with."""
    name = f"factor{number}"
    if place.topology == "circle":
        return f"{name}_x", f"{name}_y"
    if place.topology == "interval" or place.coordinate.shape[1] == 1:
        return (
            name if place.topology == "interval" else f"{name}_0",
            f"{name}_confidence",
        )
    return f"{name}_0", f"{name}_1"


def particle_columns(particles: Particles) -> dict[str, Column]:
    """What is known of particles besides their images, where it is not the same for all."""
    known: dict[str, np.ndarray] = {}
    if particles.angles is not None:
        known |= dict(zip(("rot", "tilt", "psi"), particles.angles.T, strict=True))
    if particles.shift is not None:
        known |= {"shift x": particles.shift[:, 0], "shift y": particles.shift[:, 1]}
    known |= {
        name.replace("_", " "): values for name, values in particles.microscope.items()
    }
    numbers = {name: _numbers(values) for name, values in known.items()}
    return {
        f"particle {n}": Column(n, v, "particles")
        for n, v in numbers.items()
        if len(v) and (v != v[0]).any()
    }


def _numbers(values: np.ndarray) -> np.ndarray:
    """The values, or for words the place of each among them."""
    return (
        values.astype(float)
        if values.dtype.kind in "fiub"
        else np.unique(values, return_inverse=True)[1] * 1.0
    )


def feature_columns(
    samples: np.ndarray, names: Sequence[str] = ()
) -> dict[str, Column]:
    """The first columns of the samples themselves, with the names that they have, if there is one for each."""
    count = min(samples.shape[1], MOST_OFFERED)
    numbered = [f"column {j + 1}" for j in range(count)]
    labels = names if len(names) == samples.shape[1] else numbered
    return {
        numbered[j]: Column(labels[j], samples[:, j], "samples") for j in range(count)
    }


def inside(columns: Mapping[str, Column], conditions: Sequence[Mapping]) -> np.ndarray:
    """Which samples, (n,) bool, meet all conditions.

    Parameters
    ----------
    conditions : sequence of mapping
        Ranges, ``{"column": name, "low": a, "high": b}``, across 0 if cyclic and `a` is above `b`, and lassos,
        ``{"x": name, "y": name, "polygon": [[x, y], ...]}``.

    Examples
    --------
    >>> columns = {"turn": Column("turn", np.array([5.0, 180.0, 355.0]), cyclic=True)}
    >>> inside(columns, [{"column": "turn", "low": 350, "high": 10}]).tolist()
    [True, False, True]
    """
    n = len(next(iter(columns.values())).values)
    out = np.ones(n, dtype=bool)
    for condition in conditions:
        out &= (
            _in_lasso(columns, condition)
            if "polygon" in condition
            else _in_range(columns, condition)
        )
    return out


def _in_range(columns: Mapping[str, Column], condition: Mapping) -> np.ndarray:
    column, low, high = (
        columns[condition["column"]],
        condition["low"],
        condition["high"],
    )
    if column.cyclic:
        place = Place(column.values, "circle")
        return place.between(low, high)
    return (column.values >= low) & (column.values <= high)


def _in_lasso(columns: Mapping[str, Column], condition: Mapping) -> np.ndarray:
    x, y = columns[condition["x"]].values, columns[condition["y"]].values
    polygon = np.asarray(condition["polygon"], dtype=float)
    low, high = polygon.min(axis=0), polygon.max(axis=0)
    near = np.flatnonzero(
        (x >= low[0]) & (x <= high[0]) & (y >= low[1]) & (y <= high[1])
    )
    out = np.zeros(len(x), dtype=bool)
    out[near] = in_polygon(x[near], y[near], polygon)
    return out


def in_polygon(x: np.ndarray, y: np.ndarray, polygon: np.ndarray) -> np.ndarray:
    """Which points lie in a closed polygon, (m, 2): those from which a ray crosses its edges an odd number of times.

    Examples
    --------
    >>> square = np.array([[0, 0], [1, 0], [1, 1], [0, 1]])
    >>> in_polygon(np.array([0.5, 1.5]), np.array([0.5, 0.5]), square).tolist()
    [True, False]
    """
    order = np.argsort(
        y, kind="stable"
    )  # so that an edge is compared with points of its own height only
    x, y = x[order], y[order]
    crossed = np.zeros(len(x), dtype=bool)
    for (x1, y1), (x2, y2) in zip(polygon, np.roll(polygon, -1, axis=0), strict=True):
        if y1 != y2:
            level = slice(*np.searchsorted(y, [min(y1, y2), max(y1, y2)]))
            crossed[level] ^= x[level] < (x2 - x1) * ((y[level] - y1) / (y2 - y1)) + x1
    out = np.empty_like(crossed)
    out[order] = crossed
    return out
