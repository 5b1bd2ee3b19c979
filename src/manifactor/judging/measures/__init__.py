"""Numbers that speak for or against a product of the factors that were found.

None of them has a limit: `judging` compares them with limits.

product
    Are the functions those of a product? Do the factors explain the samples, and not each other?
places
    Samples with their coordinates in one unit of length: angles and lengths in these, folded
    factors, empty combinations of coordinates, factors that shrink to a point.
density
    How even the samples are: clusters, samples on a line, Gaussian factors.
"""

from math import isnan
from typing import NamedTuple

NOT_MEASURED = float("nan")


class Measurement(NamedTuple):
    """A number, and the part of it that is noise.

    >>> Measurement(0.5, 0.2).net, Measurement(0.5).net
    (0.3, 0.5)
    >>> str(Measurement(0.1234, 0.031)), str(Measurement(0.5))
    ('0.123 +- 0.031', '0.5')
    """

    value: float
    noise: float = NOT_MEASURED  # nan where none is measured

    @property
    def net(self) -> float:
        """The value less its noise; the value itself where no noise is measured."""
        return self.value if isnan(self.noise) else self.value - self.noise

    def __str__(self) -> str:
        if isnan(self.noise):
            return f"{self.value:.3g}"
        return f"{self.value:.3f} +- {self.noise:.3f}"
