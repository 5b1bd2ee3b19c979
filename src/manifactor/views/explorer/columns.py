"""Everything known about every sample as named columns, and selections in them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from manifactor.runs.places import Place, in_range

# Radius at which a circle's samples of no confidence are drawn; those of full confidence have 1.
# The hole shows that it is a circle.
INNER_RADIUS = 0.4


@dataclass(frozen=True)
class Column:
    """A number for every sample."""

    label: str  # what people call it
    values: np.ndarray  # (n,)
    group: str = ""  # heading in the page's lists; "" for a column that only places points
    cyclic: bool = False  # whether the values are degrees, 360 being 0

    def limits(self) -> tuple[float, float]:
        """Return the smallest and the largest number; fixed ones of degrees and confidence."""
        if self.cyclic:
            return 0.0, 360.0
        finite = self.values[np.isfinite(self.values)]
        # Fixed, so that colours of two factors, and of two runs, can be compared.
        if self.group == "confidence" or not len(finite):
            return 0.0, 1.0
        return float(finite.min()), float(finite.max())

    def about(self) -> dict:
        """Return what the page needs to list the column."""
        low, high = self.limits()
        own = {"label": self.label, "group": self.group, "cyclic": self.cyclic}
        return {**own, "low": low, "high": high}


def place_columns(places: Sequence[Place]) -> dict[str, Column]:
    """Return places on every factor, how sure they are, and where to draw them."""
    columns: dict[str, Column] = {}
    for number, place in enumerate(places, start=1):
        name, label = f"factor{number}", f"factor {number}"
        values, circle = place.displayed, place.topology == "circle"
        if values.ndim == 1:
            columns[name] = Column(label, values, "places", cyclic=circle)
        else:
            for axis, column in enumerate(values.T):
                columns[f"{name}_{axis}"] = Column(f"{label}, axis {axis + 1}", column, "places")
        for j, column in enumerate(() if place.angles is None else place.angles.T, start=1):
            columns[f"{name}_angle{j}"] = Column(f"torus, angle {j}", column, "angles", cyclic=True)
        confidence = np.ones(len(place)) if place.confidence is None else place.confidence
        spreads = {"confidence": confidence, "deviation": place.displayed_deviation}
        for what, spread in spreads.items():
            if spread is not None:
                columns[f"{name}_{what}"] = Column(f"{what} on {label}", spread, what)
        if circle:
            # Beside the angle: a picture of a circle must not be cut open at 0 degrees.
            radius = INNER_RADIUS + (1 - INNER_RADIUS) * confidence
            for letter, column in zip("xy", place.features.T, strict=True):
                columns[f"{name}_{letter}"] = Column("", radius * column)
    return columns


def about_factor(number: int, place: Place) -> dict:
    """Return what the page needs to draw a factor, counted from 1, and to move along it."""
    name, circle = f"factor{number}", place.topology == "circle"
    own = [name]
    if place.coordinate.ndim > 1:
        own = [f"{name}_{axis}" for axis in range(place.coordinate.shape[1])]
    # Points that are drawn may have columns which no list offers.
    x, y, *_ = [f"{name}_x", f"{name}_y"] if circle else [*own, f"{name}_confidence"]
    if place.coordinate.ndim == 1:
        # The whole range, not that of the samples: places between them exist.
        high = 360 if circle else 1
        limits, start = [[0, high]], [high / 2]
    else:
        # A surface may have no samples in the middle: it starts at one.
        ends = place.coordinate.min(axis=0), place.coordinate.max(axis=0)
        limits, start = np.transpose(ends).tolist(), place.coordinate[0].tolist()
    return {
        "topology": place.topology,
        "columns": own,
        "view": {"x": x, "y": y},
        "limits": limits,
        "start": start,
    }


def feature_columns(samples: np.ndarray, names: Sequence[str] = ()) -> dict[str, Column]:
    """Return the first columns of the samples, by the names that the input has for all of them."""
    # More than a hundred would fill the page's lists.
    numbered = [f"column {j + 1}" for j in range(min(samples.shape[1], 100))]
    # Some names, as of an index column that was dropped, would be out of step.
    labels = names if len(names) == samples.shape[1] else numbered
    return {name: Column(labels[j], samples[:, j], "samples") for j, name in enumerate(numbered)}


def inside(columns: Mapping[str, Column], conditions: Sequence[Mapping]) -> np.ndarray:
    """Return which samples, (n,) bool, meet all conditions."""
    n_samples = len(next(iter(columns.values())).values)
    met = np.ones(n_samples, dtype=bool)
    for condition in conditions:
        if "polygon" in condition:
            points = np.column_stack([columns[condition[axis]].values for axis in "xy"])
            polygon = np.asarray(condition["polygon"], dtype=float)
            # Most samples lie outside the polygon's box, where no edge need be looked at.
            met &= ((points >= polygon.min(axis=0)) & (points <= polygon.max(axis=0))).all(axis=1)
            met[met] = in_polygon(points[met], polygon)
        else:
            column = columns[condition["column"]]
            low, high = condition["low"], condition["high"]
            met &= in_range(column.values, low, high, cyclic=column.cyclic)
    return met


def in_polygon(points: np.ndarray, polygon: np.ndarray) -> np.ndarray:
    """Return from which points, (n, 2), a ray crosses a polygon, (m, 2), an odd number of times."""
    # In order of height, an edge is compared with the points of its own height only.
    order = np.argsort(points[:, 1], kind="stable")
    x, y = points[order].T
    crossed = np.zeros(len(x), dtype=bool)
    following = np.roll(polygon, -1, axis=0)
    for (x1, y1), (x2, y2) in zip(polygon, following, strict=True):
        if y1 == y2:  # a ray along the edge does not cross it
            continue
        level = slice(*np.searchsorted(y, sorted((y1, y2))))
        along = (y[level] - y1) / (y2 - y1)
        crossed[level] ^= x[level] < (x2 - x1) * along + x1
    found = np.empty_like(crossed)
    found[order] = crossed
    return found
