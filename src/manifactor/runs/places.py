"""Where every sample of a run lies on every factor: a record, a table, and bins along a factor."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from io import BytesIO, StringIO
from pathlib import Path

import numpy as np

from manifactor._support.errors import one_line, printable
from manifactor._support.parameters import require_count
from manifactor.factors.loadings import Loadings
from manifactor.factors.shapes import on_circle, on_line


@dataclass(frozen=True)
class Place:
    """Places of all samples on one factor.

    In memory a coordinate has the unit of `Factor.coordinate`. Files, the command line and the page
    show circles in degrees: that is `displayed`.
    """

    # (n,): from 0 to 1 on an interval, radians on a circle; (n, d): the embedding of other shapes
    coordinate: np.ndarray
    topology: str
    confidence: np.ndarray | None = None  # (n,)
    deviation: np.ndarray | None = None  # (n,): the coordinate's standard deviation, where known
    angles: np.ndarray | None = None  # (n, 2): both angles on a flat torus, in degrees

    @classmethod
    def from_displayed(cls, values: np.ndarray, topology: str) -> "Place":
        """Return places of coordinates as people read them: a circle's in degrees."""
        return cls(np.radians(values) if topology == "circle" else values, topology)

    @classmethod
    def from_features(cls, values: np.ndarray, topology: str) -> "Place":
        """Return the places that have these `features`."""
        return cls(values if topology == "other" else on_line(topology, values), topology)

    def __len__(self) -> int:
        return len(self.coordinate)

    def __getitem__(self, rows) -> "Place":
        more = (self.confidence, self.deviation, self.angles)
        some = (None if values is None else values[rows] for values in more)
        return Place(self.coordinate[rows], self.topology, *some)

    @cached_property
    def displayed(self) -> np.ndarray:
        """Coordinate as people read it: a circle's in degrees."""
        if self.topology != "circle":
            return self.coordinate
        # Rounded, so that the 8 digits of a file come back exactly: the ends of a range belong to
        # it.
        return np.round(np.degrees(self.coordinate), 10)

    @property
    def displayed_deviation(self) -> np.ndarray | None:
        """Deviation as people read it: a circle's in degrees."""
        if self.deviation is None or self.topology != "circle":
            return self.deviation
        return np.degrees(self.deviation)

    def apart(self, at: float | np.ndarray) -> np.ndarray:
        """Return how far displayed coordinates are from one, by the shorter way on a circle."""
        apart = np.abs(self.displayed - at)
        return np.minimum(apart % 360, -apart % 360) if self.topology == "circle" else apart

    @property
    def features(self) -> np.ndarray:
        """Columns in which near places have near values, (n, d): of a circle, cosine and sine."""
        if self.topology == "circle":
            return on_circle(self.coordinate)
        return self.coordinate.reshape(len(self), -1)

    def between(self, low: float, high: float) -> np.ndarray:
        """Return which samples lie in a range, as `in_range` does; refuse impossible ranges."""
        cyclic = self.topology == "circle"
        if self.topology == "other":
            raise ValueError(
                "a range needs a factor that is an interval or a circle; this one has more "
                "dimensions. Select by its columns in coordinates.csv with --column."
            )
        what = "an interval must be two ascending numbers in [0, 1]"
        possible = 0 <= low <= high <= 1
        if cyclic:
            what = "a circle must be two numbers of degrees in [-360, 360]"
            possible = abs(low) <= 360 and abs(high) <= 360
        if not possible:
            raise ValueError(f"the range of {what}; got {low:g} {high:g}.")
        return in_range(self.displayed, low, high, cyclic=cyclic)


# Numbers of samples, and their places on each factor.
PlacedRows = tuple[np.ndarray, tuple[Place, ...]]


def in_range(values: np.ndarray, low: float, high: float, *, cyclic: bool = False) -> np.ndarray:
    """Return which values lie in a range, both ends included.

    A cyclic range goes from `low` up to `high`, in degrees, across 0 too.
    """
    if cyclic and high - low >= 360:
        return np.ones(len(values), dtype=bool)
    if cyclic:
        low, high = low % 360, high % 360
    above, below = values >= low, values <= high
    return above | below if cyclic and low > high else above & below


def fitted_places(fit) -> tuple[Place, ...]:
    """Return the places of a ManifoldFactorizer's own samples."""
    return as_places(fit, [(f.embedding, f.coordinate, f.confidence) for f in fit.factors_])


def all_places(fit, X: np.ndarray) -> tuple[Place, ...]:
    """Return the places of any samples on the factors of a ManifoldFactorizer."""
    # In double precision, as those of the fit are, also of samples in single.
    return as_places(fit, fit.locator(len(X))(X))


def as_places(fit, located: Sequence[tuple]) -> tuple[Place, ...]:
    """Return what a ManifoldFactorizer located as the places of a run."""
    places = tuple(
        Place(embedding if coordinate is None else coordinate, factor.topology, confidence)
        for factor, (embedding, coordinate, confidence) in zip(fit.factors_, located, strict=True)
    )
    angles = torus_angles(fit)
    if angles is None:
        return places
    if places[0].coordinate is not fit.factors_[0].embedding:
        # Of other samples than the fit's: cosines and sines from those near them.
        waves = np.hstack([np.cos(angles), np.sin(angles)])
        at = fit.inverse_transform(places[0].coordinate, values=waves)
        angles = np.arctan2(at[:, 2:], at[:, :2]) % (2 * np.pi)
    return (replace(places[0], angles=np.degrees(angles)),)


def torus_angles(fit) -> np.ndarray | None:
    """Return both angles of the fit's samples if its only factor is a flat torus, (n, 2)."""
    symmetries = fit.evidence_.symmetries
    return symmetries.angles if symmetries is not None and len(fit.factors_) == 1 else None


# What follows factor and number in names of columns: for one of several dimensions, an angle of a
# torus, the deviation and the confidence. Other programs count dimensions from 1.
COLUMN_NAMES = {
    ".csv": ("factor{}", "_{}", "_angle{}", "_deviation", "_confidence"),
    ".star": ("mfFactor{}", "Dimension{}", "Angle{}", "Deviation", "Confidence"),
    ".cs": ("factor{}", "_dimension{}", "_angle{}", "_deviation", "_confidence"),
}
# Columns of the names of files, where each sample has its own, and of the numbers of clusters.
FILE, CLUSTER = "file", "cluster"


def coordinate_columns(places: Sequence[Place], suffix: str) -> dict[str, np.ndarray]:
    """Return the places as columns, named as files of that suffix name their own."""
    factor, several, angle, spread, sure = COLUMN_NAMES[suffix]
    columns: dict[str, np.ndarray] = {}
    for number, place in enumerate(places, start=1):
        name = factor.format(number)
        if place.coordinate.ndim == 1:
            columns[name] = place.displayed
        else:
            for j, column in enumerate(place.displayed.T, start=int(suffix != ".csv")):
                columns[name + several.format(j)] = column
        for j, column in enumerate(() if place.angles is None else place.angles.T, start=1):
            columns[name + angle.format(j)] = column
        if place.displayed_deviation is not None:
            columns[name + spread] = place.displayed_deviation
        if place.confidence is not None:
            columns[name + sure] = place.confidence
    return columns


def table_columns(
    places: Sequence[Place], rows: np.ndarray, clusters: np.ndarray | None = None
) -> dict[str, np.ndarray]:
    """Return columns of a table of the samples of these numbers; unknown confidences are 1."""
    sure = [
        replace(place, confidence=np.ones(len(rows))) if place.confidence is None else place
        for place in places
    ]
    last = {} if clusters is None else {CLUSTER: clusters}
    return {"sample": rows, **coordinate_columns(sure, ".csv"), **last}


def table_as_csv(
    places: Sequence[Place],
    rows: np.ndarray,
    names: Sequence[str] | None = None,
    clusters: np.ndarray | None = None,
) -> bytes:
    """Return the table as the bytes of a .csv file; names of files are its last column."""
    table = as_csv(table_columns(places, rows, clusters))
    if names is None:
        return table
    named = StringIO()
    csv.writer(named, lineterminator="\n").writerows([printable(each)] for each in (FILE, *names))
    lines = zip(table.decode().splitlines(), named.getvalue().splitlines(), strict=True)
    return "".join(f"{line},{name}\n" for line, name in lines).encode()


def as_csv(columns: Mapping[str, np.ndarray]) -> bytes:
    """Return columns with their names as the bytes of a .csv file."""
    buffer, table = BytesIO(), np.column_stack(list(columns.values()))
    np.savetxt(buffer, table, "%.8g", ",", header=",".join(columns), comments="")
    return buffer.getvalue()


def loadings_as_csv(loadings: Loadings) -> bytes:
    """Return shares of every column as the bytes of a .csv file."""
    factors = [f"factor{f + 1}" for f in range(loadings.shares.shape[1])]
    pairs = [f"{factors[f]}_{factors[g]}" for f, g in loadings.pairs]
    shares = np.column_stack([loadings.shares, loadings.interactions, loadings.noise]).round(6)
    text = StringIO()
    rows = zip(loadings.columns, *shares.T.tolist(), strict=True)
    csv.writer(text, lineterminator="\n").writerows([("column", *factors, *pairs, "noise"), *rows])
    return text.getvalue().encode(errors="surrogateescape")


def damaged(path: Path, problem: object) -> ValueError:
    """Return the error of a file that is not as a run wrote it."""
    return ValueError(f"{path} is damaged: {one_line(problem)}. Fit again.")


def from_table(
    path: Path,
    header: Sequence[str],
    columns: np.ndarray,
    factors: Sequence[Mapping],
    *,
    below: float = 2.0**53,  # whole numbers beyond it are not exact
) -> PlacedRows:
    """Return what a file of `table_columns` holds; refuse what cannot be, such as numbers >= below.

    Shapes: columns (n_samples, len(header)).
    """
    if not np.isfinite(columns).all():
        row = int((~np.isfinite(columns)).any(axis=1).argmax()) + 1
        raise damaged(path, f"row {row} has NaN or inf values")
    try:
        rows = columns[:, header.index("sample")]
        places = [
            _from_columns(f"factor{number}", header, columns, factor["topology"])
            for number, factor in enumerate(factors, start=1)
        ]
    except (ValueError, LookupError) as error:
        raise damaged(path, error) from error
    possible = (rows % 1 == 0) & (rows >= 0) & (rows < below)
    if not possible.all() or len(np.unique(rows)) < len(rows):
        raise damaged(path, "the numbers of the samples must be whole, from 0, and differ")
    for number, place in enumerate(places, start=1):
        high = {"interval": 1, "circle": 360}.get(place.topology)
        if high is not None and not in_range(place.displayed, 0, high).all():
            raise damaged(path, f"coordinates on factor {number} must lie in [0, {high}]")
    return rows.astype(np.int64), tuple(places)


def _from_columns(name: str, header: Sequence[str], columns: np.ndarray, topology: str) -> Place:
    """Return the places on one factor, given the name of its columns."""
    mine = [k for k, title in enumerate(header) if f"{title}_".startswith(f"{name}_")]
    turns = [k for k in mine if header[k].startswith(f"{name}_angle")]
    *shown, confidence = (k for k in mine if k not in turns)
    values = columns[:, shown] if topology == "other" else columns[:, shown[0]]
    deviation = None
    if f"{name}_deviation" in header:
        deviation = columns[:, header.index(f"{name}_deviation")]
        deviation = np.radians(deviation) if topology == "circle" else deviation
    angles = columns[:, turns] if turns else None
    place = Place.from_displayed(values, topology)
    return replace(place, confidence=columns[:, confidence], deviation=deviation, angles=angles)


# Bins of equal width along a factor, and on the grid of two factors.


def bin_labels(
    coordinate: np.ndarray, topology: str, *, n_bins: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the bin of every sample, (n,), of an interval or a circle, and every bin's centre."""
    # More bins than that are a mistake, such as samples counted instead of bins.
    require_count("n_bins", n_bins, low=1, high=10_000)
    if topology == "circle":
        width = 360 / n_bins
        # Half a bin on: the first one is centred at 0, so that none has an end there.
        labels = np.floor(coordinate / width + 0.5).astype(int) % n_bins
        return labels, np.arange(n_bins) * width
    # The upper end belongs to the last bin.
    labels = np.minimum((coordinate * n_bins).astype(int), n_bins - 1)
    return labels, (np.arange(n_bins) + 0.5) / n_bins


def grid_labels(rows: np.ndarray, columns: np.ndarray, *, n_columns: int) -> np.ndarray:
    """Return every sample's cell on the grid of two factors' bins, row by row; -1 for none."""
    return np.where((rows < 0) | (columns < 0), -1, rows * n_columns + columns)
