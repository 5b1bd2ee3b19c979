"""Where every sample of a run lies on every factor, as later commands need it: a table and back."""

from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO

import numpy as np


@dataclass(frozen=True)
class Place:
    """Places of all samples on one factor.

    Attributes
    ----------
    coordinate : ndarray of shape (n,) or (n, d)
        From 0 to 1 on an interval, degrees on a circle; the embedding of any other shape.
    topology : "interval", "circle" or "other"
    confidence : ndarray of shape (n,) or None
    """

    coordinate: np.ndarray
    topology: str
    confidence: np.ndarray | None = None

    def __getitem__(self, rows) -> "Place":
        confidence = None if self.confidence is None else self.confidence[rows]
        return Place(self.coordinate[rows], self.topology, confidence)

    @property
    def features(self) -> np.ndarray:
        """Columns in which near places have near values, (n, d): a circle's cosine and sine."""
        if self.topology == "circle":
            angle = np.radians(self.coordinate)
            return np.column_stack([np.cos(angle), np.sin(angle)])
        return self.coordinate.reshape(len(self.coordinate), -1)

    def between(self, low: float, high: float) -> np.ndarray:
        """Which samples lie in a range, its ends included; on a circle the way from `low` up to `high`, across 0 too.

        Examples
        --------
        >>> Place(np.array([5.0, 180.0, 355.0]), "circle").between(350, 10).tolist()
        [True, False, True]
        """
        if self.topology == "other":
            raise ValueError(
                "a range needs a factor that is an interval or a circle; this one has more dimensions. Select by its "
                "columns in coordinates.csv."
            )
        if self.topology == "interval":
            if not 0 <= low <= high <= 1:
                raise ValueError(
                    f"the range of an interval must be two ascending numbers in [0, 1]; got {low:g} {high:g}."
                )
            return (self.coordinate >= low) & (self.coordinate <= high)
        if not (-360 <= low <= 360 and -360 <= high <= 360):
            raise ValueError(
                f"the range of a circle must be two numbers of degrees in [-360, 360]; got {low:g} {high:g}."
            )
        if high - low >= 360:
            return np.ones(len(self.coordinate), dtype=bool)
        low, high = low % 360, high % 360
        if low <= high:
            return (self.coordinate >= low) & (self.coordinate <= high)
        return (self.coordinate >= low) | (self.coordinate <= high)


def fitted_places(fit) -> tuple[Place, ...]:
    """Places of the samples that a ManifoldFactorizer was fitted to."""
    return tuple(
        _place(f.topology, f.embedding, f.coordinate, f.confidence)
        for f in fit.factors_
    )


def all_places(fit, X: np.ndarray) -> tuple[Place, ...]:
    """Places of any samples on the factors of a ManifoldFactorizer."""
    return tuple(
        _place(f.topology, *found)
        for f, found in zip(fit.factors_, fit.locate(X), strict=True)
    )


def _place(
    topology: str,
    embedding: np.ndarray,
    coordinate: np.ndarray | None,
    confidence: np.ndarray,
) -> Place:
    if coordinate is None:
        return Place(embedding, topology, confidence)
    return Place(
        np.degrees(coordinate) if topology == "circle" else coordinate,
        topology,
        confidence,
    )


def to_table(places: Sequence[Place], rows: np.ndarray) -> tuple[list[str], np.ndarray]:
    """Names and columns of a table with one row a sample; `rows` are the samples' numbers in the input."""
    header, columns = ["sample"], [rows.astype(float)]
    for number, place in enumerate(places, start=1):
        width = 1 if place.coordinate.ndim == 1 else place.coordinate.shape[1]
        header += (
            [f"factor{number}"]
            if place.coordinate.ndim == 1
            else [f"factor{number}_{j}" for j in range(width)]
        )
        columns += list(place.coordinate.reshape(len(rows), -1).T)
        header.append(f"factor{number}_confidence")
        columns.append(
            np.ones(len(rows)) if place.confidence is None else place.confidence
        )
    return header, np.column_stack(columns)


def table_as_csv(places: Sequence[Place], rows: np.ndarray) -> bytes:
    """The table as the bytes of a .csv file."""
    header, columns = to_table(places, rows)
    buffer = BytesIO()
    np.savetxt(
        buffer, columns, delimiter=",", header=",".join(header), comments="", fmt="%.8g"
    )
    return buffer.getvalue()


def from_table(
    header: Sequence[str], columns: np.ndarray, topologies: Sequence[str]
) -> tuple[Place, ...]:
    """The places of a table that `to_table` made."""
    out = []
    for number, topology in enumerate(topologies, start=1):
        own = [
            i
            for i, name in enumerate(header)
            if name == f"factor{number}" or name.startswith(f"factor{number}_")
        ]
        *places, confidence = own
        coordinate = (
            columns[:, places[0]] if topology != "other" else columns[:, places]
        )
        out.append(Place(coordinate, topology, columns[:, confidence]))
    return tuple(out)


def coordinate_columns(places: Sequence[Place], suffix: str) -> dict[str, np.ndarray]:
    """Columns with the places on every factor and their confidence, named as the format of that suffix names its own.

    Examples
    --------
    >>> list(coordinate_columns([Place(np.zeros(3), "circle", np.ones(3))], ".star"))
    ['mfFactor1', 'mfFactor1Confidence']
    """
    one, several, sure = NAMES[suffix]
    columns: dict[str, np.ndarray] = {}
    for number, place in enumerate(places, start=1):
        if place.coordinate.ndim == 1:
            columns[one.format(number)] = place.coordinate
        else:
            columns |= {
                several.format(number, j + 1): column
                for j, column in enumerate(place.coordinate.T)
            }
        if place.confidence is not None:
            columns[sure.format(number)] = place.confidence
    return columns


NAMES = {
    ".star": ("mfFactor{}", "mfFactor{}Dimension{}", "mfFactor{}Confidence"),
    ".cs": ("factor{}", "factor{}_dimension{}", "factor{}_confidence"),
}
