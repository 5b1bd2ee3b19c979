"""Local linear regression of values on places."""

from dataclasses import dataclass, field, replace

import numpy as np
from scipy.spatial import KDTree
from scipy.spatial.distance import cdist

from manifactor._support.regression import nearest_on_line, neighbour_sums, without_itself
from manifactor._support.values import ceil_div, quotient
from manifactor.factoring.factors.charts import ChartSettings, cloud_dimension
from manifactor.factoring.prediction import thinned


@dataclass(frozen=True)
class RegressionSettings:
    """Settings of `local_fit` and `choose_neighbors`."""

    # Neighbours that a conditional mean may be taken over: few where a factor bends the samples,
    # many where noise or other factors are to be averaged. Near its minimum the error hardly
    # depends on their number, so that a ratio of 3 will do.
    ladder: tuple[int, ...] = (15, 45, 135)
    # Share of the samples that a neighbourhood may hold at most: an eighth of a circle is still
    # nearly straight.
    widest: float = 1 / 8
    # Samples that are left out, one at a time, to compare numbers of neighbours: the mean square of
    # 300 is accurate to 8 %.
    left_out: int = 300
    # Ridge, of the widest direction of a neighbourhood: places that extend in fewer directions than
    # they have columns have no slope along the others.
    ridge: float = 0.02
    # Ridge, of the variance of all places, where a neighbourhood has no spread: copies.
    least_ridge: float = 1e-12


@dataclass(frozen=True)
class LocalFit:
    """Linear functions of the place, one around each of some places."""

    means: np.ndarray  # (m, q): values at the places
    slopes: np.ndarray  # (m, c, q)


def local_fit(
    places: np.ndarray,
    values: np.ndarray,
    at: np.ndarray,
    n_neighbors: int,
    *,
    topology: str = "other",
    settings: RegressionSettings = RegressionSettings(),
) -> LocalFit:
    """Fit values, (n, q), by linear functions of their places, (n, c), around others.

    Linear and not constant: the slope of a strong factor across a neighbourhood would outweigh a
    weak factor.

    >>> line = np.linspace(0, 1, 50)[:, None]
    >>> fit = local_fit(line, 3 * line, line[:1], 10)
    >>> round(float(fit.slopes[0, 0, 0]), 1)
    2.9
    """
    near = _neighbors(places, at, n_neighbors, topology)
    around = _places_around(places, near, settings)
    slopes = np.linalg.solve(around.spread, neighbour_sums(around.off, near, values))
    return LocalFit(_means(around, near, at, values), slopes)


def choose_neighbors(
    places: np.ndarray,
    values: np.ndarray,
    *,
    topology: str = "other",
    settings: RegressionSettings = RegressionSettings(),
) -> tuple[int, float]:
    """Choose the number of neighbours that predicts samples left out best."""
    n = len(places)
    some = thinned(n, settings.left_out)
    ladder = _affordable(settings, n)
    near = _neighbors(places, places[some], ladder[-1] + 1, topology)
    near = without_itself(near, some)
    total = float(((values[some] - values.mean(axis=0)) ** 2).sum())
    left = {}
    for k in ladder:
        around = _places_around(places, near[:, :k], settings)
        means = _means(around, near[:, :k], places[some], values)
        left[k] = float(((values[some] - means) ** 2).sum())
    best = min(ladder, key=lambda k: left[k])
    # The mean of k neighbours has a k-th of the noise itself.
    share = quotient(left[best] / (1 + 1 / best), total)
    return best, 1 - share


def _affordable(settings: RegressionSettings, n_samples: int) -> list[int]:
    """Numbers of neighbours that so many samples allow, the smallest in any case."""
    most = max(settings.ladder[0], int(settings.widest * n_samples))
    return [min(k, n_samples - 1) for k in settings.ladder if k <= most]


def _neighbors(places: np.ndarray, at: np.ndarray, n_neighbors: int, topology: str) -> np.ndarray:
    """Indices of the nearest places, nearest first, (m, k)."""
    k = min(n_neighbors, len(places))
    if topology == "other":
        return KDTree(places).query(at, k)[1].reshape(len(at), k)
    if topology == "circle":
        return _neighbors_on_circle(_angle(places), _angle(at), k)
    return _neighbors_on_line(places[:, 0], at[:, 0], k)


def _angle(places: np.ndarray) -> np.ndarray:
    return np.arctan2(places[:, 1], places[:, 0])


def _neighbors_on_circle(angles: np.ndarray, at: np.ndarray, k: int) -> np.ndarray:
    """As on a line, along three turns."""
    turn = 2 * np.pi
    line = np.concatenate([angles - turn, angles, angles + turn])
    return _neighbors_on_line(line, at, k) % len(angles)


def _neighbors_on_line(places: np.ndarray, at: np.ndarray, k: int) -> np.ndarray:
    """Indices of the nearest of places, (n,), nearest first."""
    near = nearest_on_line(places, at, k)
    distance = np.abs(places[near] - at[:, None])
    return np.take_along_axis(near, distance.argsort(axis=1), axis=1)


@dataclass(frozen=True)
class _PlacesAround:
    """Places in m neighbourhoods of k samples."""

    centre: np.ndarray  # (m, c): mean place
    off: np.ndarray  # (m, c, k): places less their mean
    spread: np.ndarray  # (m, c, c): sums of the products of places, with a ridge


def _places_around(
    places: np.ndarray, near: np.ndarray, settings: RegressionSettings
) -> _PlacesAround:
    n_columns = places.shape[1]
    # One column after the other: sums over neighbours then run along memory.
    around = places.T.take(near, axis=1)
    centre = around.mean(axis=2)
    around -= centre[:, :, None]
    off = around.transpose(1, 0, 2)
    spread = off @ off.transpose(0, 2, 1)
    ridge = settings.ridge * np.trace(spread, axis1=1, axis2=2) / n_columns
    ridge = ridge + settings.least_ridge * places.var() + np.finfo(float).tiny
    return _PlacesAround(centre.T, off, spread + ridge[:, None, None] * np.eye(n_columns))


def _means(
    around: _PlacesAround, near: np.ndarray, at: np.ndarray, values: np.ndarray
) -> np.ndarray:
    """Values of the local fits at places, one in each neighbourhood, (m, q).

    They are weighted means of the neighbours' values, with weights that depend on the places alone:
    no slopes of many values need be solved for.
    """
    shift = np.linalg.solve(around.spread, (at - around.centre)[:, :, None])
    weights = 1 / near.shape[1] + shift.transpose(0, 2, 1) @ around.off
    return neighbour_sums(weights, near, values)[:, 0]


# A curve or surface through samples, and the projection of samples onto it.


@dataclass(frozen=True)
class SheetSettings:
    """Settings of `lay_sheet` and `Sheet.project`."""

    # Nodes of a curve and of a surface, at most: between neighbours among 128 nodes a circle
    # deviates from its chord by 3e-4 of the radius, between 400 nodes a sphere from its tangent
    # planes by 1 %.
    curve_nodes: int = 128
    surface_nodes: int = 400
    # Nodes per neighbourhood of the regression: more of them would follow its noise.
    nodes_per_neighborhood: float = 2.0
    fewest_nodes: int = 12
    # Length of a curve's neighbourhoods, in units of their width: shorter ones would let the curve
    # turn into its own noise, as principal curves do.
    slender: float = 4.0
    # Share of the samples that a neighbourhood may hold at most.
    longest: float = 0.25
    # Share of the samples beyond either end of an interval.
    stray: float = 0.002
    # A link between nodes is long beyond this length, in units of the median: links differ by the
    # density of the samples, by a factor of two.
    long_link: float = 4.0
    # Share of a curve's nodes that are neighbours of one along the curve.
    along: float = 1 / 16
    # Least slope of a surface, of the largest: directions in which a fit is flat would move places
    # without end.
    least_slope: float = 1e-6
    # Share of the nodes that others may lie on: a few, where a curve crosses itself.
    covered_twice: float = 0.1
    # Samples that are projected at a time.
    block: int = 4000
    regression: RegressionSettings = field(default_factory=RegressionSettings)
    charts: ChartSettings = field(default_factory=ChartSettings)


@dataclass(frozen=True)
class Sheet:
    """Nodes of a curve or surface, each with the flat piece around it."""

    topology: str
    # (m, c): arc length from 0 to 1, cosine and sine, or the coordinates of a surface
    places: np.ndarray
    means: np.ndarray  # (m, q): the nodes among the samples
    tangents: np.ndarray  # (m, d, q): orthonormal directions in which samples move along the sheet
    # (m, d, c): change of the place for a unit move along each tangent; of an angle for a circle
    steps: np.ndarray
    explained: float = np.nan  # share of the samples' variance that places on the sheet explain

    @property
    def dimension(self) -> int:
        """Intrinsic dimension."""
        return self.tangents.shape[1]

    def tangled(self, *, settings: SheetSettings = SheetSettings()) -> bool:
        """Return whether a curve's nodes are out of order, or cover a piece twice.

        A long link is a jump if other nodes lie near its ends, beside the neighbours along the
        curve; else it spans a gap between samples. A surface has no order.
        """
        if self.topology == "other":
            return False
        m = len(self.means)
        far = cdist(self.means, self.means)
        apart = np.abs(np.arange(m)[:, None] - np.arange(m))
        if self.topology == "circle":
            apart = np.minimum(apart, m - apart)
        others = np.where(apart > settings.along * m, far, np.inf).min(axis=1)
        links = np.diagonal(far, 1)
        usual = np.median(links)
        # Where a curve is slow, nodes lie nearer to each other.
        shorter = np.minimum(np.append(links, usual), np.insert(links, 0, usual))
        near = others < np.minimum(shorter, usual)
        long = np.flatnonzero(links > settings.long_link * usual)
        ends = np.union1d(long, long + 1)
        jumps = others[ends] < 2 * np.minimum(shorter, usual)[ends]
        return bool(jumps.any() or near.mean() > settings.covered_twice)

    def project(
        self, samples: np.ndarray, *, settings: SheetSettings = SheetSettings()
    ) -> "Projection":
        """Return the nearest places to samples, (n, q)."""
        count = ceil_div(max(1, len(samples)), settings.block)
        blocks = [self._project(block) for block in np.array_split(samples, count)]
        return Projection(*map(np.concatenate, zip(*blocks, strict=True)))

    def _project(self, samples: np.ndarray) -> tuple[np.ndarray, ...]:
        """Places, means and tangents of a `Projection`, for a block of samples."""
        # The nearest node: half the squared distance, less what all nodes share.
        squares = (self.means**2).sum(axis=1)
        node = (squares / 2 - samples @ self.means.T).argmin(axis=1)
        tangents = self.tangents[node]
        off = samples - self.means[node]
        along = np.einsum("ndq,nq->nd", tangents, off)
        moved = np.einsum("nd,ndc->nc", along, self.steps[node])
        places = _moved(self.topology, self.places[node], moved)
        means = self.means[node] + np.einsum("nd,ndq->nq", along, tangents)
        return places, means, tangents


@dataclass(frozen=True)
class Projection:
    """Where samples lie on a sheet."""

    places: np.ndarray  # (n, c)
    means: np.ndarray  # (n, q): the points of the sheet
    tangents: np.ndarray  # (n, d, q)


def _moved(topology: str, places: np.ndarray, by: np.ndarray) -> np.ndarray:
    """Places moved along the sheet."""
    if topology != "circle":
        return places + by
    angle = np.arctan2(places[:, 1], places[:, 0]) + by[:, 0]
    return np.column_stack([np.cos(angle), np.sin(angle)])


def lay_sheet(
    places: np.ndarray,
    topology: str,
    samples: np.ndarray,
    *,
    settings: SheetSettings = SheetSettings(),
) -> Sheet:
    """Lay a sheet through samples, (n, q), whose places, (n, c), are known roughly."""
    regression = settings.regression
    k, explained = choose_neighbors(places, samples, topology=topology, settings=regression)
    if topology == "other":
        sheet = _lay_surface(places, samples, k, settings)
    else:
        sheet = _lay_curve(places, topology, samples, k, settings)
        slender = _slender_neighbors(sheet, samples, explained, settings)
        if slender > k:
            sheet = _lay_curve(places, topology, samples, slender, settings)
    return replace(sheet, explained=explained)


def _slender_neighbors(
    sheet: Sheet, samples: np.ndarray, explained: float, settings: SheetSettings
) -> int:
    """Fewest neighbours that extend farther along a curve than across it."""
    length = 1 / sheet.steps[0, 0, 0]
    if sheet.topology == "circle":
        length *= 2 * np.pi
    across = np.sqrt(max(0.0, 1 - explained) * samples.var(axis=0).sum())
    share = min(quotient(settings.slender * across, length), settings.longest)
    return int(share * len(samples))


def _lay_curve(
    places: np.ndarray,
    topology: str,
    samples: np.ndarray,
    n_neighbors: int,
    settings: SheetSettings,
) -> Sheet:
    """A chain of nodes, with places by the length of the chain."""
    at = _curve_nodes(places, topology, n_neighbors, settings)
    fit = local_fit(
        places, samples, at, n_neighbors, topology=topology, settings=settings.regression
    )
    closed = topology == "circle"
    means = fit.means
    ahead, behind = _shifted(means, closed)
    along = ahead - behind
    length = np.linalg.norm(along, axis=1, keepdims=True)
    tangents = quotient(along, length)
    gaps = np.linalg.norm(np.diff(means, axis=0), axis=1)
    arc = np.concatenate([[0.0], np.cumsum(gaps)])
    if closed:
        total = arc[-1] + np.linalg.norm(means[0] - means[-1])
        angle = 2 * np.pi * arc / total
        nodes = np.column_stack([np.cos(angle), np.sin(angle)])
        step = 2 * np.pi / total
    else:
        nodes, step = arc[:, None] / arc[-1], 1 / arc[-1]
    steps = np.full((len(means), 1, 1), step)
    return Sheet(topology, nodes, means, tangents[:, None], steps)


def _shifted(means: np.ndarray, closed: bool) -> tuple[np.ndarray, np.ndarray]:
    if closed:
        return np.roll(means, -1, axis=0), np.roll(means, 1, axis=0)
    last = len(means) - 1
    index = np.arange(len(means))
    return means[np.minimum(index + 1, last)], means[np.maximum(index - 1, 0)]


def _curve_nodes(
    places: np.ndarray, topology: str, n_neighbors: int, settings: SheetSettings
) -> np.ndarray:
    """Places of nodes: halfway between even in length and even in samples."""
    wanted = int(settings.nodes_per_neighborhood * len(places) / n_neighbors)
    count = int(np.clip(wanted, settings.fewest_nodes, settings.curve_nodes))
    if topology == "circle":
        angle = np.sort(np.arctan2(places[:, 1], places[:, 0]) % (2 * np.pi))
        share = np.arange(count) / count
        even = angle[0] + 2 * np.pi * share
        filled = np.quantile(angle, share)
        at = (even + filled) / 2
        return np.column_stack([np.cos(at), np.sin(at)])
    share = np.linspace(settings.stray, 1 - settings.stray, count)
    filled = np.quantile(places[:, 0], share)
    even = np.linspace(filled[0], filled[-1], count)
    return ((even + filled) / 2)[:, None]


def _lay_surface(
    places: np.ndarray, samples: np.ndarray, n_neighbors: int, settings: SheetSettings
) -> Sheet:
    """Nodes at some of the places, with tangents by the slopes of the regression."""
    at = places[thinned(len(places), settings.surface_nodes)]
    fit = local_fit(places, samples, at, n_neighbors, settings=settings.regression)
    d = min(cloud_dimension(places, settings=settings.charts), places.shape[1])
    left, strength, right = np.linalg.svd(fit.slopes, full_matrices=False)
    # Among near copies all slopes of a node vanish: those of other nodes count, too.
    vanishing = settings.least_slope**2 * strength.max()
    floor = np.maximum(settings.least_slope * strength[:, :1], vanishing)
    inverse = quotient(1.0, np.maximum(strength[:, :d], floor))
    steps = inverse[:, :, None] * left[:, :, :d].transpose(0, 2, 1)
    return Sheet("other", at, fit.means, right[:, :d], steps)
