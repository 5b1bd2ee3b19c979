"""Panels that several figures share: functions of a factor drawn over the truth."""

from dataclasses import dataclass

import numpy as np

from manifactor.scores import column_r2
from manifactor.views import plots
from studies.paper.finding import Found


@dataclass(frozen=True)
class PanelSettings:
    """Settings of `lowest_functions`, and of what counts as pure in all figures."""

    # As many functions of each factor as the paper shows.
    n_functions: int = 5
    # The threshold of `scores.function_accuracy`, so that figures and rates agree.
    pure_r2: float = 0.9


@dataclass(frozen=True)
class Lowest:
    """The lowest functions of the factor found for a true one."""

    functions: np.ndarray  # (n, n_functions)
    r2: np.ndarray  # (n_functions,): R^2 with which the true factor explains each function
    n_pure: int  # number of functions that depend on the true factor alone

    @property
    def words(self) -> str:
        """How many of the functions depend on their own factor alone."""
        return f"{self.n_pure} of {len(self.r2)}"


def lowest_functions(
    found: Found, true: int, *, settings: PanelSettings = PanelSettings()
) -> Lowest:
    """Return the lowest functions found for a true factor; none if it was not found."""
    number = found.matching(true)
    if number is None:
        return Lowest(np.empty((len(found.rows), 0)), np.empty(0), 0)
    functions = found.factors[number].functions[:, : settings.n_functions]
    r2 = column_r2(found.fitted_truth[true], functions)
    return Lowest(functions, r2, int((r2 >= settings.pure_r2).sum()))


def function_row(axes, lowest: Lowest, xy: np.ndarray, *, name: str) -> None:
    """Draw the functions over two true coordinates, (n, 2), with their R^2."""
    for k, ax in enumerate(axes):
        if k < len(lowest.r2):
            title = f"$R^2$ = {lowest.r2[k]:.2f}"
            plots.function(ax, xy, lowest.functions[:, k], title=title)
        else:
            # An empty panel says why: too few functions, or no factor at all.
            plots.nothing(ax, "no more" if len(lowest.r2) else "not found")
    axes[0].set_ylabel(name)


def latent(true: np.ndarray) -> np.ndarray:
    """Return one number for each sample of a true circle or interval.

    A circle, given as cosine and sine, (n, 2), becomes its angle in degrees; an interval's
    coordinate, (n, 1), stays as it is.
    """
    if true.shape[1] != 2:
        return true[:, 0]
    angle = np.arctan2(true[:, 1], true[:, 0])
    return np.degrees(angle) % 360
