"""Whether a division of samples into factors is right, by the truth and by what noise leaves of it.

A factor tells a truth if it predicts it nearly as well as neighbours in the noisy samples do, and
mixes truths if it predicts another one by more than the truths share.

>>> a, b = np.random.default_rng(0).uniform(size=(2, 900, 1))
>>> case = Truths(np.hstack([a, b]), [(a, b)])
>>> [case.label(places).name for places in ([b**2, -a], [a, b, a * b], [a + b, a - b])]
['right', 'wrong', 'wrong']
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from manifactor.datasets.products import Truth
from manifactor.statistics import blurred, distinct_rows, predictability, random_rows

# Least share of the ceiling that a factor has to tell, and most that it may tell of other truths,
# beyond what truths share.
ENOUGH, MOST_OF_OTHERS = 0.95, 0.1
# A truth of which neighbours tell less is lost in noise.
TOLD = 0.5
# Samples that are enough to tell an R^2 to .01, and main axes in which neighbours are sought.
N_SAMPLES, N_AXES = 2000, (5, 20)
LABELS = ("right", "coarse", "wrong")


def told(source: np.ndarray, targets: Sequence[np.ndarray]) -> np.ndarray:
    """Return the R^2 with which a source's neighbours tell each target, over its columns."""
    values = np.hstack(targets)
    shares = predictability(source, values) * values.var(axis=0)
    ends = np.cumsum([target.shape[1] for target in targets])[:-1]
    parts = (np.split(each, ends) for each in (shares, values.var(axis=0)))
    sums = [(share.sum(), whole.sum()) for share, whole in zip(*parts, strict=True)]
    return np.array([share / whole if whole > 0 else 0.0 for share, whole in sums])


@dataclass(frozen=True)
class Label:
    """What a division is: "right"; "coarse", true but not finished; or "wrong"."""

    name: str
    r2: np.ndarray  # (n_factors, n_truths)
    right: tuple[bool, ...]  # whether each factor tells one truth, and nothing more of others
    alternative: int = 0  # which of several truths it was compared with

    @property
    def rank(self) -> tuple:
        """What labels by several truths are compared by."""
        return -LABELS.index(self.name), sum(self.right), float(self.r2.max(axis=1).min())


@dataclass
class Truths:
    """Samples with truths that are each right."""

    X: np.ndarray
    alternatives: Sequence[Truth]
    rows: np.ndarray = field(init=False)  # without copies, which would tell each other

    def __post_init__(self) -> None:
        first = distinct_rows(self.X)[0]
        # One sample of each state that was seen a few times; not of levels, which are few.
        states = distinct_rows(np.hstack(self.alternatives[-1]))[0]
        rows = states if 6 * len(states) >= len(first) else first
        self.rows = random_rows(rows, N_SAMPLES)
        self.alternatives = [tuple(t[self.rows] for t in truth) for truth in self.alternatives]

    @cached_property
    def ceilings(self) -> list[np.ndarray]:
        """What neighbours in the noisy samples tell of each truth."""
        X = self.X[self.rows] - self.X[self.rows].mean(axis=0)
        places = [X]
        # Noise of many columns keeps neighbours apart that main axes show.
        if X.shape[1] > N_AXES[0]:
            left, strength, _ = np.linalg.svd(X, full_matrices=False)
            kept = [count for count in N_AXES if count < X.shape[1]]
            places = [left[:, :count] * strength[:count] for count in kept]
            places += [X] if X.shape[1] <= N_AXES[-1] else []
        return [
            np.max([told(each, truth) for each in places], axis=0) for truth in self.alternatives
        ]

    def label(self, factors: Sequence[np.ndarray], *, only_told: bool = False) -> Label:
        """Return the best label of factors, by any of the truths.

        With `only_told`, truths that noise hides need not be found, but may be.
        """
        places = [blurred(factor[self.rows]) for factor in factors]
        labels = [
            self._label(places, number, fewer)
            for number in range(len(self.alternatives))
            for fewer in {False, only_told}
        ]
        return max(labels, key=lambda label: label.rank)

    def _label(self, places: Sequence[np.ndarray], number: int, only_told: bool) -> Label:
        truth, ceilings = self.alternatives[number], self.ceilings[number]
        known = ceilings >= TOLD if only_told else np.full(len(truth), True)
        r2 = np.array([told(place, truth) for place in places])
        # Where neighbours tell nothing, nothing would be enough.
        tells = (r2 >= ENOUGH * ceilings) & (r2 > MOST_OF_OTHERS) & known
        clean = [self._is_clean(truth, r2[f], tells[f], known) for f in range(len(places))]
        several = len(places) > 1
        right = tuple(bool(tells[f].sum() == 1 and clean[f]) for f in range(len(places)))
        true = bool(
            all(clean) and tells.any(axis=1).all() and tells.sum(axis=0).max(initial=0) <= 1
        )
        name = "coarse" if true and several else "wrong"
        if all(right) and true and tells.sum() == known.sum():
            name = "right"
        return Label(name, r2, right, number)

    def _is_clean(self, truth: Truth, r2: np.ndarray, tells: np.ndarray, known: np.ndarray) -> bool:
        """Return whether a factor says no more of other truths than those that it tells do."""
        others = ~tells & known & (r2 > MOST_OF_OTHERS)
        if not others.any():
            return True
        if not tells.any():
            return False
        own = np.hstack([truth[t] for t in np.flatnonzero(tells)])
        rest = np.flatnonzero(others)
        shared = told(own, [truth[t] for t in rest])
        return bool((r2[rest] <= MOST_OF_OTHERS + shared).all())
