"""From moves of the samples to their local metric: given covariances, trajectories, or bursts.

Local covariances are means over the moves that start nearest to a sample. The mean move is not
taken off: drift is of second order, but edges push all moves inwards. Measurement noise is.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from sklearn.neighbors import NearestNeighbors

from manifactor._support.errors import Warned
from manifactor._support.parameters import Choice
from manifactor._support.threads import row_slices
from manifactor.operators.kernel import choose_bandwidth
from manifactor.operators.metric import LocalMetric, Measured
from manifactor.operators.neighbors import choose_search, make_search, nearest_point, neighbor_graph
from manifactor.samples.preparation import Preparation
from manifactor.statistics import even_rows, whiten

# Moves that a local covariance is the mean of: its entries are then known to 10 %, and of 50 to 400
# no other number gave better factors.
N_MOVES = 100
# Lags that are tried, up to the first at which noise is small: the variance of the slowest latent's
# move must be so many times that of the noise.
LAGS = (1, 2, 4, 8, 16)
BEYOND_NOISE = 4.0
# Share of the variance of noise that is left across the manifold after samples were moved onto it:
# with 4, noise of 5 % made a torus of lengths that are no product, with .05 to .25 not.
NOISE_ACROSS = 0.25
# Directions of moves that are kept have at least this share of the variance along the last
# dimension of the data. There are more of them than dimensions, since tangents turn inside a
# neighbourhood: a warped torus in 6 columns is lost with 2 or 6 directions, found with 3 or 4.
LEAST_SHARE = 0.05
# Samples that tell the dimension, the lag and the number of directions.
ASKED = 3000
# Samples of a trajectory that some are drawn from.
MOST_DRAWN_FROM = 50_000
# Moves that factors are tested by at most.
MOST_TESTED = 2000


class NoDiffusionWarning(UserWarning):
    """The moves of the samples are not those of a diffusion."""


@dataclass(frozen=True)
class GivenMetric:
    """Covariances of moves, (n, p, p), or their roots, such as Jacobians, (n, p, d)."""

    matrices: np.ndarray
    are_roots: bool

    def chosen(self, rows: np.ndarray) -> "GivenMetric":
        """Return the metric at some of the samples."""
        return replace(self, matrices=self.matrices[rows])

    def measured(self, samples: np.ndarray, preparation: Preparation | None) -> Measured:
        """Return the metric of prepared samples; of covariances, only the main directions count."""
        matrices = self.matrices
        if preparation is not None:
            matrices = preparation.components.T @ matrices
            matrices = matrices if self.are_roots else matrices @ preparation.components
        if self.are_roots:
            kept = Choice(matrices.shape[2], "the Jacobians have as many")
            return Measured(samples, LocalMetric.of_roots(matrices), {"directions": kept})
        asked = even_rows(len(samples), ASKED)
        d, warned = dimension(samples[asked])
        kept = directions(_spectrum(matrices[asked]), d)
        metric = LocalMetric.of_roots(_roots(matrices, kept.value))
        return Measured(samples, metric, {"directions": kept}, warned=warned)


@dataclass(frozen=True)
class Trajectory:
    """Samples in the order of time, in one piece or several."""

    samples: np.ndarray  # (T, p)
    times: np.ndarray  # (T,): in units of the usual step
    piece: np.ndarray  # (T,): number of the piece that each sample belongs to
    row: np.ndarray  # (T,): number of each sample among those that were given
    lag: int = 1  # steps of the moves that the metric is of
    time: float = 1.0  # of the usual step, in the caller's units
    why: str = ""  # lengths are taken in units of moves

    n_repeats: ClassVar[int] = 0  # moves are in the order of time

    def even_rows(self, count: int) -> np.ndarray:
        """Return rows of so many given samples, as even as possible in units of moves.

        A run of 40 correlation times may have been in one corner of a square ten times as long as
        in another. Drawn at random, samples of such a run showed one factor only in 3 of 8 maps;
        drawn evenly, in none of 10.
        """
        rows = even_rows(len(self.samples), MOST_DRAWN_FROM)
        whole = replace(self, samples=_narrow(self.samples))
        samples = whole.samples[rows]
        known = even_rows(len(rows), ASKED)
        some = whole.measured(samples[known], None)
        assert some.metric is not None
        d, _ = dimension(some.samples)
        near = nearest_point(some.samples)(samples)[1]
        # Samples far off by noise would seem to have much space for themselves: it is then that of
        # the nearest one without noise.
        radius = _radius(samples, some.samples)[near] if some.metric.floor else _radius(samples)
        # In units of moves.
        share = radius**d / some.metric.scales[:, :d].prod(axis=1)[near]
        # Probabilities are at most 1: what samples of rare places cannot take, others get.
        for _ in range(30):
            share = np.minimum(share * (count / share.sum()), 1.0)
        picked = np.searchsorted(np.cumsum(share), np.arange(count) + 0.5)
        return np.sort(self.row[rows[np.unique(np.minimum(picked, len(share) - 1))]])

    def starts(self, lag: int) -> np.ndarray:
        """Return the samples that have another one `lag` steps later in the same piece."""
        return np.flatnonzero(self.piece[:-lag] == self.piece[lag:])

    def measured(self, samples: np.ndarray, preparation: Preparation | None) -> Measured:
        """Return the metric of prepared samples by the steps around them."""
        if preparation is not None:
            whole = replace(self, samples=preparation(self.samples))
            return whole.measured(samples, None)
        noise = noise_covariance(self)
        size = np.trace(noise) / len(noise)
        for lag in LAGS:
            moves = LocalMoves.of_trajectory(self, lag, noise)
            spectrum, means = moves.around_some(samples)
            if lag == LAGS[0]:
                d, warned = dimension(means)
            slowest = max(spectrum[min(d, len(spectrum)) - 1], 0.0)
            if lag * slowest >= BEYOND_NOISE * size or not len(self.starts(2 * lag)):
                break
        kept = directions(spectrum, d)
        moves = moves.of_more(1 + 2 * size / (lag * slowest) if slowest > 0 else np.inf)
        samples, metric = moves.metric(samples, kept.value, NOISE_ACROSS * size)
        why_lag, noisy = _reason_of_lag(lag, slowest, size)
        choices = {"directions": kept, "lag": Choice(lag, why_lag)}
        if self.why:
            choices["dynamics"] = Choice("metric", self.why)
        if len(samples) < len(self.samples):
            why = f"of {len(self.samples):,} in all, as even as possible in units of moves"
            choices["samples"] = Choice(len(samples), why)
        return Measured(samples, metric, choices, replace(self, lag=lag), (*warned, *noisy))

    def is_too_long(self) -> bool:
        """Return whether steps leave the neighbourhoods in which a metric is measured."""
        samples = _narrow(self.samples)
        starts = self.starts(1)
        squares = ((samples[starts + 1] - samples[starts]) ** 2).sum(axis=1)
        noise = 2 * np.trace(noise_covariance(replace(self, samples=samples)))
        some = samples[even_rows(len(samples), ASKED)]
        near = NearestNeighbors(n_neighbors=min(64, len(some))).fit(some).kneighbors()[0]
        return bool(np.median(squares) - noise > np.median(near[:, -1]) ** 2)

    def correlation_times(self) -> float:
        """Return how often the slowest linear function of the samples forgets itself."""
        samples = _narrow(self.samples)
        starts = self.starts(1)
        white = whiten(samples, 1e-6)[0]
        step = white[starts + 1] - white[starts]
        lost = np.linalg.eigvalsh(step.T @ step)[0] / (2 * len(starts))
        return -self.duration * float(np.log(max(1 - lost, 1e-3)))

    def pairs(self, lag: int, why: str) -> "Pairs":
        """Return all pairs of samples so many steps apart."""
        starts = self.starts(lag)
        before, after = self.samples[starts], self.samples[starts + lag]
        return Pairs(before, after, lag * self.time, len(starts) / lag, why)

    @property
    def duration(self) -> float:
        """Time of all steps, in units of the usual one."""
        return float(np.diff(self.times)[self.starts(1)].sum())

    def moves(self, time: float) -> tuple[np.ndarray, np.ndarray]:
        """Return samples, and those about this time later, in the order of time, (m, p) each."""
        lag = max(self.lag, round(time))
        # Pieces may be short.
        while lag > self.lag and len(self.starts(lag)) < len(self.samples) / 2:
            lag = max(self.lag, lag // 2)
        starts = self.starts(lag)
        some = starts[even_rows(len(starts), MOST_TESTED)]
        return self.samples[some], self.samples[some + lag]


@dataclass(frozen=True)
class Bursts:
    """Samples, each with several others that are a short move away."""

    samples: np.ndarray  # (n, p)
    repeats: np.ndarray  # (n, r, p)

    lag: ClassVar[int] = 1
    time: ClassVar[float] = 1.0
    duration: ClassVar[float] = float("nan")

    @property
    def n_repeats(self) -> int:
        """Moves of one sample."""
        return self.repeats.shape[1]

    def measured(self, samples: np.ndarray, preparation: Preparation | None) -> Measured:
        """Return the metric of prepared samples by the bursts around them."""
        if preparation is not None:
            n, r, p = self.repeats.shape
            repeats = preparation(self.repeats.reshape(n * r, p)).reshape(n, r, -1)
            return Bursts(preparation(self.samples), repeats).measured(samples, None)
        moves = LocalMoves.of_bursts(self)
        spectrum, means = moves.around_some(samples)
        d, warned = dimension(means)
        kept = directions(spectrum, d)
        _, metric = moves.metric(samples, kept.value)
        return Measured(samples, metric, {"directions": kept}, self, warned)

    def moves(self, time: float) -> tuple[np.ndarray, np.ndarray]:
        """Return samples and those a move away, (m, p) each; a burst after the other."""
        # Samples may come in order: the first of them would be of one corner.
        some = even_rows(len(self.samples), max(1, MOST_TESTED // self.n_repeats))
        before = np.repeat(self.samples[some], self.n_repeats, axis=0)
        return before, self.repeats[some].reshape(before.shape)


@dataclass(frozen=True)
class Pairs:
    """Samples, each with what followed a lag later."""

    before: np.ndarray  # (m, p)
    after: np.ndarray  # (m, p)
    time: float  # the lag, in the caller's units
    duration: float  # time of all pairs, in lags
    why: str  # their operator is taken

    n_repeats: ClassVar[int] = 0

    def measured(self, samples: np.ndarray, preparation: Preparation | None) -> Measured:
        """Return the samples as they are: pairs tell an operator, not a metric."""
        path = self
        if preparation is not None:
            before, after = preparation(self.before), preparation(self.after)
            path = replace(self, before=before, after=after)
        return Measured(samples, choices={"dynamics": Choice("pairs", self.why)}, path=path)

    def moves(self, time: float) -> tuple[np.ndarray, np.ndarray]:
        """Return samples and those a lag later, (m, p) each, in the order of the pairs."""
        some = even_rows(len(self.before), MOST_DRAWN_FROM)
        return self.before[some], self.after[some]


# Moves as a caller gives them.
Moves = GivenMetric | Trajectory | Bursts | Pairs


@dataclass(frozen=True)
class LocalMoves:
    """Moves by where they start, and a search for those that start near a sample."""

    starts: np.ndarray  # (m, p)
    # From numbers of starts, (k,), to their moves over the root of their time, (k * r, p)
    moves: Callable[[np.ndarray], np.ndarray]
    noise: np.ndarray  # (p, p): what noise adds to their mean square
    n_near: int

    @classmethod
    def of_trajectory(cls, path: Trajectory, lag: int, noise: np.ndarray) -> "LocalMoves":
        """Return the steps of a trajectory over a lag."""
        starts = path.starts(lag)
        root = np.sqrt(path.times[starts + lag] - path.times[starts])

        def moves(some: np.ndarray) -> np.ndarray:
            first = starts[some]
            return (path.samples[first + lag] - path.samples[first]) / root[some][..., None]

        n_near = min(N_MOVES, len(starts))
        return cls(path.samples[starts], moves, 2 * noise / np.median(root) ** 2, n_near)

    @classmethod
    def of_bursts(cls, bursts: Bursts) -> "LocalMoves":
        """Return the moves of bursts, pooled over the nearest of them."""
        n, r, p = bursts.repeats.shape

        def moves(some: np.ndarray) -> np.ndarray:
            away = bursts.repeats[some] - bursts.samples[some][..., None, :]
            return away.reshape(len(some), -1, p)

        return cls(bursts.samples, moves, np.zeros((p, p)), min(n, -(-N_MOVES // r)))

    def of_more(self, growth: float) -> "LocalMoves":
        """Return the same with as many moves that covariances are as sure as without noise.

        `growth`, of which at most 2 counts, is how much larger noise makes their mean square.
        """
        return replace(
            self, n_near=min(round(self.n_near * min(growth, 2.0) ** 2), len(self.starts))
        )

    def around_some(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return median variances along main directions around some points, and mean starts."""
        parts = list(self.around(points[even_rows(len(points), ASKED)]))
        _, means, covariances = zip(*parts, strict=True)
        return _spectrum(np.concatenate(covariances)), np.concatenate(means)

    def around(self, points: np.ndarray) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """Yield slices of points, the mean start around each, and the covariance of moves."""
        search = make_search(choose_search(*self.starts.shape).value, self.n_near - 1)
        search.fit(self.starts)
        # A few hundred megabytes at once.
        at_most = max(1, 2**24 // (self.n_near * self.starts.shape[1] + self.starts.shape[1] ** 2))
        for rows in row_slices(len(points), at_most):
            near = search.transform(points[rows]).indices.reshape(rows.stop - rows.start, -1)
            moves = self.moves(near)
            squares = moves.transpose(0, 2, 1) @ moves / moves.shape[1]
            yield rows, self.starts[near[:, : N_MOVES // 2]].mean(axis=1), squares - self.noise

    def metric(
        self, points: np.ndarray, n_directions: int, noise: float = 0.0
    ) -> tuple[np.ndarray, LocalMetric]:
        """Return points and the metric there; noise across the manifold, if any, is taken off.

        Points are then moved onto the plane of their moves through the mean of their neighbours.
        """
        roots = np.empty((*points.shape, n_directions))
        moved = points.copy() if noise else points
        for rows, mean, covariances in self.around(points):
            roots[rows] = _roots(covariances, n_directions)
            if noise:
                plane = np.linalg.qr(roots[rows])[0]
                off = (points[rows] - mean)[:, :, None]
                moved[rows] = mean + (plane @ (plane.transpose(0, 2, 1) @ off))[:, :, 0]
        return moved, LocalMetric.of_roots(roots, noise)


def noise_covariance(path: Trajectory) -> np.ndarray:
    """Return the covariance of measurement noise, (p, p).

    Noise makes each step undo a part of the one before: cov(dx_t, dx_t+1) = -N. Edges and curvature
    do so, too, but about as much two steps later, which noise does not. Directions below 3.5
    standard errors, of which clean steps have up to 2.8, have none. The usual (2 C_1 - C_2) / 2
    makes noise of 2 to 5 % of clean steps.
    """
    steps, first = np.diff(path.samples, axis=0), path.starts(3)
    if not len(first):
        return np.zeros((steps.shape[1],) * 2)
    later = steps[first + 2] - steps[first + 1]
    difference = steps[first].T @ later / len(first)
    values, axes = np.linalg.eigh((difference + difference.T) / 2)
    error = ((steps[first] @ axes) * (later @ axes)).std(axis=0) / np.sqrt(len(first))
    return (axes * np.where(values < 3.5 * error, 0.0, values)) @ axes.T


def directions(spectrum: np.ndarray, dimension: int) -> Choice:
    """Return how many directions of moves to keep, given their median variances, descending.

    >>> directions(np.array([4.0, 1.0, 0.1, 0.01]), 2).value
    3
    """
    least = LEAST_SHARE * spectrum[min(dimension, len(spectrum)) - 1]
    count = max(min(dimension, len(spectrum)), int((spectrum > max(least, 0.0)).sum()))
    why = f"moves along them have {LEAST_SHARE:.0%} or more of the variance along the last of "
    return Choice(count, f"{why}{dimension} dimensions of the data")


def dimension(points: np.ndarray) -> tuple[int, tuple[Warned, ...]]:
    """Return the dimension of points, (n, p), by the slope of their kernel, and warnings."""
    graph = neighbor_graph(points, min(64, len(points) - 1))
    return max(1, round(choose_bandwidth(graph.distances).dimension)), graph.warned


def _reason_of_lag(lag: int, slowest: float, noise: float) -> tuple[str, tuple[Warned, ...]]:
    """Return why a lag was taken, and a warning if noise outweighs moves at all lags."""
    if not noise:
        return "steps show no measurement noise", ()
    ratio = lag * slowest / noise
    if ratio >= BEYOND_NOISE:
        return f"the variance of the slowest move is {ratio:.2g} times the noise", ()
    enough = f"{BEYOND_NOISE * noise / slowest:.0f} steps" if slowest > 0 else "any number of steps"
    message = (
        f"moves must outweigh the measurement noise; at the longest lag tried, {lag} steps, the "
        f"variance of the slowest move is {ratio:.2g} times that of the noise, "
        f"where {BEYOND_NOISE:g} are needed: a lag of {enough} would do. Give every n-th sample, "
        "or average the noise."
    )
    why = "the longest that was tried; noise outweighs moves at all of them"
    return why, (Warned(message, NoDiffusionWarning),)


def _narrow(samples: np.ndarray) -> np.ndarray:
    """Return samples of many columns in their main directions, (T, at most 64)."""
    if samples.shape[1] <= 64:
        return samples
    some = samples[even_rows(len(samples), 1000)]
    return samples @ np.linalg.svd(some - some.mean(axis=0), full_matrices=False)[2][:32].T


def _radius(samples: np.ndarray, points: np.ndarray | None = None) -> np.ndarray:
    """Return how far around points, or the samples themselves, some of the samples lie."""
    points = samples if points is None else points
    search = make_search(choose_search(*samples.shape).value, min(N_MOVES, len(samples) - 1))
    search.fit(samples)
    # Blocks, to save memory.
    blocks = (search.transform(points[rows]) for rows in row_slices(len(points), 5000))
    return np.concatenate([each.max(axis=1).toarray().ravel() for each in blocks])


def _spectrum(covariances: np.ndarray) -> np.ndarray:
    """Return the median variances along the main directions, descending."""
    return np.median(np.linalg.eigvalsh(covariances)[:, ::-1], axis=0)


def _roots(covariances: np.ndarray, count: int) -> np.ndarray:
    """Return the main columns of the roots of covariances, (n, p, count)."""
    variances, axes = np.linalg.eigh(covariances)
    variances, axes = variances[:, -count:], axes[:, :, -count:]
    return axes * np.sqrt(np.maximum(variances, 0.0))[:, None]
