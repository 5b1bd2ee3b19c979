"""Do samples move independently on the factors? And does a trajectory show enough of them?

One of two independent processes may be shifted in time, which keeps all autocorrelation.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from manifactor.statistics import Measurement, random_shifts, whiten

# What is compared of two factors: each pair of features, either way round.
COUPLINGS = {
    "moves": (("move", "move"),),
    "drift": (("move", "place"), ("place", "move")),
    "speed": (("speed", "place"), ("place", "speed"), ("speed", "speed")),
    "places": (("place", "place"),),
    "transitions": (("transition", "transition"),),
}
# Shifts that a coupling is compared with; a fiftieth of them may exceed it.
SHIFTS = 99
# Length of the moves that are tested, relative to that of the shortest factor: the slopes of
# coordinates have errors within the kernel, which shorter moves would show.
TESTED_MOVE = 0.15


@dataclass(frozen=True)
class MarkovModel:
    """A reversible Markov model of moves along one factor.

    `deeptime.markov.msm.MarkovStateModel(model.transition_matrix)` reads it.

    Attributes
    ----------
    transition_matrix : ndarray of shape (n_states, n_states)
        Probabilities of moves from each state to each, a lag later; rows sum to 1.
    stationary_distribution : ndarray of shape (n_states,)
    edges : ndarray of shape (n_states + 1,)
        Where states begin and end on the factor's coordinate.
    lag : float
        Time of a move, in the caller's units.
    """

    transition_matrix: np.ndarray
    stationary_distribution: np.ndarray
    edges: np.ndarray
    lag: float

    def __repr__(self) -> str:
        return f"MarkovModel({len(self.transition_matrix)} states, lag={self.lag:.6g})"


def markov_model(
    before: np.ndarray, after: np.ndarray, n_states: int, *, lag: float, top: float
) -> MarkovModel:
    """Return the Markov model of moves between coordinates from 0 to `top`, (m,) each."""
    edges = np.quantile(np.concatenate([before, after]), np.linspace(0, 1, n_states + 1))
    edges[0], edges[-1] = 0.0, top
    edges = np.unique(edges)
    first, last = (np.searchsorted(edges[1:-1], each, side="right") for each in (before, after))
    counts = np.zeros((len(edges) - 1,) * 2)
    np.add.at(counts, (first, last), 1.0)
    counts += counts.T
    visits = counts.sum(axis=1)
    return MarkovModel(counts / visits[:, None], visits / visits.sum(), edges, lag)


# In units of moves, latents diffuse by a variance of 1 in each unit of time: a function of
# eigenvalue l forgets itself in a time of 2 / l, and an interval whose lowest one is l has a length
# of pi / sqrt(l).


def correlation_times(duration: float, eigenvalue: float) -> float:
    """Return how often a function of this eigenvalue forgets itself."""
    return duration * eigenvalue / 2


def length_of_move(time: float, eigenvalue: float) -> float:
    """Return the length of a move relative to that of an interval of this lowest eigenvalue."""
    return float(np.sqrt(time * eigenvalue) / np.pi)


def time_of_move(length: float, eigenvalue: float) -> float:
    """Return the time of a move of this length relative to that of an interval."""
    return (np.pi * length) ** 2 / eigenvalue


def couplings(
    before: Sequence[np.ndarray],
    after: Sequence[np.ndarray],
    *,
    n_repeats: int = 0,
    jointly: bool = False,
) -> dict[str, Measurement]:
    """Return the largest squared correlations between motions on two factors.

    The noise is that after shifts in time, or all of it if it is not more than after most shifts.
    Bursts of `n_repeats` moves are permuted instead, and places in them, which the caller chose,
    are not compared. Of moves as long as the factors, `jointly` compares where they start and end.

    Shapes: before, after (m, c) for each factor.
    """
    features = [_features(*each) for each in zip(before, after, strict=True)]
    left_out = {"places": n_repeats > 0, "transitions": not jointly}
    order, rng = np.arange(len(before[0])), np.random.default_rng(0)
    # The order of the moves, then others in which they are independent of the first.
    if n_repeats:
        bursts = order.reshape(-1, n_repeats)
        orders = [order, *(rng.permutation(bursts).ravel() for _ in range(SHIFTS))]
    else:
        orders = [order, *(np.roll(order, k) for k in random_shifts(len(order), SHIFTS))]

    def coupling(one: dict, other: dict, kind: str) -> Measurement:
        value, *shifted = (_correlation(one, other, kind, order) for order in orders)
        p = (1 + sum(each >= value for each in shifted)) / len(orders)
        return Measurement(value, float(np.mean(shifted)) if p <= 0.02 else value)

    def largest(kind: str) -> Measurement:
        pairs = (coupling(*pair, kind) for pair in combinations(features, 2))
        return max([Measurement(0.0, 0.0), *pairs], key=lambda each: (each.net, each.value))

    return {kind: largest(kind) for kind in COUPLINGS if not left_out.get(kind)}


def _correlation(one: dict, other: dict, kind: str, order: np.ndarray) -> float:
    """Return the largest squared canonical correlation of the features of a kind."""
    products = (one[a].T @ other[b][order] / len(order) for a, b in COUPLINGS[kind])
    return max(float(np.linalg.norm(each, 2) ** 2) if each.size else 0.0 for each in products)


def _features(before: np.ndarray, after: np.ndarray) -> dict[str, np.ndarray]:
    """Return functions of places, moves and squares of moves, each centred and orthonormal."""
    i, j = np.triu_indices(before.shape[1])
    mean, size = before.mean(axis=0), before.std() or 1.0
    moves = after - before

    def polynomials(places: np.ndarray) -> np.ndarray:
        scaled = (places - mean) / size
        return np.column_stack([scaled, scaled[:, i] * scaled[:, j]])

    def white(values: np.ndarray) -> np.ndarray:
        # Squares of cosine and sine add up to 1: what is left of that is error, not place.
        return whiten(values, 0.1)[0]

    place = white(polynomials(before))

    def beside_place(values: np.ndarray) -> np.ndarray:
        # What its own place predicts of a move is no coupling.
        return white(values - place @ (place.T @ (values - values.mean(axis=0))) / len(values))

    squares = moves[:, i] * moves[:, j]
    first, last = polynomials(before), polynomials(after)
    both = (first[:, :, None] * last[:, None]).reshape(len(first), -1)
    return {
        "place": place,
        "move": beside_place(moves),
        "speed": beside_place(squares),
        "transition": white(np.column_stack([first, last, both])),
    }
