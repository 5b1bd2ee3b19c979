"""Drawings of rates: how often something is right."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from manifactor.views.plots.appearance import GREY, colour
from manifactor.views.plots.arrays import nothing


@dataclass(frozen=True)
class Rate:
    """A rate at some confidence, with its interval."""

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
    label = "a probability"
    ax.plot(ends, ends, color=GREY, linewidth=0.6, linestyle="--", label=label)
    for number, (name, rates) in enumerate(curves.items()):
        x, y, low, high = np.array(
            [(one.confidence, one.rate, one.low, one.high) for one in rates]
        ).T
        # Wilson's interval holds its rate but for rounding.
        beyond = np.clip([y - low, high - y], 0, None)
        drawn = {"marker": "o", "ms": 3, "lw": 1, "elinewidth": 0.6, "capsize": 2}
        ax.errorbar(x, y, yerr=beyond, color=colour(number), label=name, **drawn)
    limits = (-0.03, 1.03)
    ax.set(xlabel="confidence", ylabel="share that is right", xlim=limits, ylim=limits)
    ax.legend(frameon=False)
    return ax
