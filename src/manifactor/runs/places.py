"""Where every sample of a run lies on every factor: a record, a table, bins and their weights."""

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

    @classmethod
    def joined(cls, parts: "Sequence[Place]") -> "Place":
        """Return places of several parts one after the other."""
        coordinate = np.concatenate([part.coordinate for part in parts])
        columns = zip(*(part.more for part in parts), strict=True)
        more = (None if column[0] is None else np.concatenate(column) for column in columns)
        return cls(coordinate, parts[0].topology, *more)

    @property
    def more(self) -> tuple[np.ndarray | None, ...]:
        """What is known beside the coordinate."""
        return self.confidence, self.deviation, self.angles

    def __len__(self) -> int:
        return len(self.coordinate)

    def __getitem__(self, rows) -> "Place":
        some = (None if values is None else values[rows] for values in self.more)
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


# Weights under which every bin has the same distribution of the other factors.

# Samples of the smallest bin that a joint cell of the other factors should hold.
FEWEST_IN_CELL = 8


@dataclass(frozen=True)
class Matching:
    """Weights under which all bins have one distribution of the other factors."""

    # (n,): sum to 1 in every matched bin; 0 for samples in no bin, in a bin too small to match, or
    # where the other factors have values that some bin lacks
    weights: np.ndarray
    # (n_bins,): (sum w)^2 / sum w^2: how many equally weighted samples average noise as well, or 0
    effective_sizes: np.ndarray
    counts: np.ndarray  # (n_bins,): samples of each bin before matching
    n_cells: int  # cells of the other factors over which the bins agree
    dropped: float  # share of the samples in bins whose weight is 0
    # Largest difference between two bins' means of another factor, in its standard deviations,
    # before and after
    unevenness: tuple[float, float]


def match(labels: np.ndarray, others: Sequence[Place], *, n_bins: int) -> Matching:
    """Compute the weights of samples with labels of bins, -1 for none.

    The other factors are cut into cells of about equally many samples. Over the cells all bins get
    one distribution, the harmonic mean of their counts: of all common distributions it has the
    least sum over the bins of 1 / effective size. It is 0 in a cell that some bin lacks, so that
    all bins are averaged over the same coordinates.
    """
    counts = np.bincount(labels[labels >= 0], minlength=n_bins)
    # One cell holds nothing still, so a bin needs two. With nothing to hold still, a mean of one
    # sample is a mean.
    least = 2 * FEWEST_IN_CELL if others else 1
    used = counts >= least
    if not used.any():
        raise ValueError(
            f"A bin must have at least {least} samples to be averaged; the fullest of "
            f"{n_bins} bins has {counts.max()}. Take fewer bins (--bins) or add samples."
        )
    # A label of -1 would index the last bin; the first condition excludes it.
    inside = np.flatnonzero((labels >= 0) & used[labels])
    bins, places = labels[inside], [place[inside] for place in others]
    cell = joint_cells(places, smallest=int(counts[used].min()), n_samples=len(inside))
    n_cells = int(cell.max()) + 1
    table = np.bincount(bins * n_cells + cell, minlength=n_bins * n_cells).reshape(n_bins, -1)
    target = _common_distribution(table, used)
    # All samples of a bin in one cell share the weight that the cell is to have.
    shares = target[cell] / table[bins, cell]
    weights = np.zeros(len(labels))
    weights[inside] = shares
    sums, squares = (np.bincount(bins, w, minlength=n_bins) for w in (shares, shares**2))
    before = _unevenness(np.ones(len(inside)), bins, places)
    after = _unevenness(shares, bins, places)
    return Matching(
        weights=weights,
        effective_sizes=np.divide(sums**2, squares, out=np.zeros(n_bins), where=squares > 0),
        counts=counts,
        n_cells=int(np.count_nonzero(target)),
        dropped=float(1 - np.count_nonzero(weights) / counts.sum()),
        unevenness=(before, after),
    )


def joint_cells(places: Sequence[Place], *, smallest: int, n_samples: int) -> np.ndarray:
    """Return the joint cell of every sample, from 0; the `smallest` bin limits their number."""
    joint = np.zeros(n_samples, dtype=int)
    for place in places:
        # The root of a whole power may come out just below the whole number.
        affordable = (smallest / FEWEST_IN_CELL) ** (1 / len(places)) + 1e-9
        # More cells than these of one factor gain nothing that counts; a surface needs more of them
        # than a line.
        n_cells = int(np.clip(affordable, 2, 48 if place.topology == "other" else 12))
        own = _even_cells(unrolled(place).reshape(n_samples, -1), n_cells)
        # Most joint cells of several factors are empty; `unique` closes the gaps.
        joint = np.unique(joint * n_cells + own, return_inverse=True)[1]
    return joint


def unrolled(place: Place) -> np.ndarray:
    """Return the coordinate; a circle's from its largest gap, which no cell then reaches across."""
    if place.topology != "circle":
        return place.coordinate
    degrees = place.displayed
    angle = np.sort(degrees % 360)
    gaps = np.diff(angle, prepend=angle[-1] - 360)
    return (degrees - angle[gaps.argmax()]) % 360


def _even_cells(points: np.ndarray, n_cells: int) -> np.ndarray:
    """Return the labels of boxes with equally many points, (n, d), of which the longest are cut."""
    labels = np.zeros(len(points), dtype=int)
    if n_cells == 1 or len(points) <= 1:
        return labels
    n_low = n_cells // 2
    # Stable, so that samples at one place are divided the same way every time.
    order = np.argsort(points[:, points.std(axis=0).argmax()], kind="stable")
    low, high = np.split(order, [len(points) * n_low // n_cells])
    labels[low] = _even_cells(points[low], n_low)
    labels[high] = n_low + _even_cells(points[high], n_cells - n_low)
    return labels


def _common_distribution(table: np.ndarray, used: np.ndarray) -> np.ndarray:
    """Return the shares of cells that all used bins can have, from counts, (n_bins, n_cells)."""
    counts = table[used]
    shared = (counts > 0).all(axis=0)
    if not shared.any():
        n_filled = np.count_nonzero(counts, axis=1)
        poorest = int(np.flatnonzero(used)[n_filled.argmin()])
        lacking = int((table[poorest] == 0).sum())
        raise ValueError(
            f"All bins must share some coordinates of the other factors; none of the "
            f"{table.shape[1]} cells of the other factors has samples of all "
            f"{len(counts)} bins: bin {poorest} lacks {lacking} of them. Take fewer "
            "bins (--bins), or average without matching."
        )
    # With shares t_c and counts n_bc, a bin's 1 / effective size is the sum over cells of t_c^2 /
    # n_bc. Its sum over the bins is least for t_c ~ 1 / sum_b (1 / n_bc).
    harmonic = np.zeros(table.shape[1])
    harmonic[shared] = 1 / (1 / counts[:, shared]).sum(axis=0)
    return harmonic / harmonic.sum()


def _unevenness(weights: np.ndarray, labels: np.ndarray, places: Sequence[Place]) -> float:
    """Return the largest difference of two bins' weighted means of a factor, in its deviations."""
    sums = np.bincount(labels, weights)
    filled = sums > 0
    largest = 0.0
    for place in places:
        for feature in place.features.T:
            means = np.bincount(labels, weights * feature)[filled] / sums[filled]
            # A feature that is the same everywhere has no spread to divide by.
            largest = max(largest, float(np.ptp(means) / (feature.std() or 1.0)))
    return largest
