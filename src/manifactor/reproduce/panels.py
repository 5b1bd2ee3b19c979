"""Panels that several figures share: functions of factors over the truth, with the R^2 of their own factor."""

import numpy as np

from manifactor import plots
from manifactor.reproduce.lab import Found
from manifactor.scores import column_r2

SHOWN = 5  # functions of each factor, as in the paper


def latent(true: np.ndarray) -> np.ndarray:
    """A true factor as a number for each sample: an angle in degrees, or the coordinate itself."""
    return np.degrees(np.arctan2(true[:, 1], true[:, 0])) % 360 if true.shape[1] == 2 else true[:, 0]


def function_row(axes, found: Found, true: int, xy: np.ndarray, *, name: str) -> list[float]:
    """Draw the lowest functions of the factor that stands for a true one; returns their R^2 on it."""
    number = found.matching(true)
    if number is None:
        for ax in axes:
            plots.nothing(ax, "not found")
        return []
    functions = found.factors[number].functions[:, :SHOWN]
    r2 = column_r2(found.fitted_truth[true], functions)
    for k, ax in enumerate(axes):
        if k < functions.shape[1]:
            plots.function(ax, xy, functions[:, k], title=f"$R^2$ = {r2[k]:.2f}")
        else:
            plots.nothing(ax, "no more")
    axes[0].set_ylabel(name)
    return r2.tolist()


def share_pure(r2: list[float], *, enough: float = 0.9) -> str:
    """How many of the functions shown depend on their own factor, in words."""
    return f"{sum(value >= enough for value in r2)} of {len(r2)}"
