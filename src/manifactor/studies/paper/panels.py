"""What several figures show: functions of factors over the truth, with the R^2 of their own factor."""

from dataclasses import dataclass

import numpy as np

from manifactor.scores import column_r2
from manifactor.studies.paper.lab import Found
from manifactor.views import plots

SHOWN = 5  # functions of each factor, as in the paper
PURE = 0.9  # least R^2 on its own factor of a function that depends on that alone


@dataclass(frozen=True)
class Lowest:
    """The lowest functions of the factor that stands for a true one, (n, at most 5), and their R^2 on it."""

    functions: np.ndarray
    r2: np.ndarray

    @property
    def words(self) -> str:
        """How many of them depend on their own factor alone."""
        return f"{(self.r2 >= PURE).sum()} of {len(self.r2)}"


def lowest_functions(found: Found, true: int) -> Lowest:
    """What was found for a true factor; nothing if it was not."""
    number = found.matching(true)
    if number is None:
        return Lowest(np.empty((len(found.rows), 0)), np.empty(0))
    functions = found.factors[number].functions[:, :SHOWN]
    return Lowest(functions, column_r2(found.fitted_truth[true], functions))


def function_row(axes, lowest: Lowest, xy: np.ndarray, *, name: str) -> None:
    """Draw the functions over two true coordinates, (n, 2), with their R^2."""
    for k, ax in enumerate(axes):
        if k < len(lowest.r2):
            plots.function(
                ax, xy, lowest.functions[:, k], title=f"$R^2$ = {lowest.r2[k]:.2f}"
            )
        else:
            plots.nothing(ax, "no more" if len(lowest.r2) else "not found")
    axes[0].set_ylabel(name)


def latent(true: np.ndarray) -> np.ndarray:
    """A circle's cosine and sine, (n, 2), as its angle in degrees; the coordinate of an interval, (n, 1), itself."""
    return (
        np.degrees(np.arctan2(true[:, 1], true[:, 0])) % 360
        if true.shape[1] == 2
        else true[:, 0]
    )
