"""Drawings of rates: how often answers are right."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from manifactor.views.plots.appearance import GREY, colour
from manifactor.views.plots.arrays import nothing


@dataclass(frozen=True)
class Rate:
    """The share of answers that are right, at some confidence.

    Attributes
    ----------
    confidence : float
        Mean over the answers.
    rate : float
    low, high : float
        Ends of the confidence interval of the rate.
    """

    confidence: float
    rate: float
    low: float
    high: float


def reliability(ax, curves: Mapping[str, Sequence[Rate]]):
    """Draw the share of right answers over their confidence; return the Axes.

    Parameters
    ----------
    ax : Axes
    curves : mapping of str to sequence of Rate
        One curve for each name, in the colours of factors.
    """
    if not curves:
        return nothing(ax, "too few answers to draw")
    ends = (0, 1)
    # On the diagonal, the confidence is the probability of a right answer.
    label = "probability"
    ax.plot(ends, ends, color=GREY, linewidth=0.6, linestyle="--", label=label)
    for number, (name, rates) in enumerate(curves.items()):
        x, y, low, high = np.array(
            [(one.confidence, one.rate, one.low, one.high) for one in rates]
        ).T
        # At a rate of 0 or 1, rounding may leave the rate outside of its interval.
        beyond = np.clip([y - low, high - y], 0, None)
        drawn = {"marker": "o", "ms": 3, "lw": 1, "elinewidth": 0.6, "capsize": 2}
        ax.errorbar(x, y, yerr=beyond, color=colour(number), label=name, **drawn)
    limits = (-0.03, 1.03)
    ax.set(xlabel="confidence", ylabel="share that is right", xlim=limits, ylim=limits)
    ax.legend(frameon=False)
    return ax
