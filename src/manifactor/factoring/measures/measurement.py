"""A measured number and its noise."""

from dataclasses import dataclass

import numpy as np

NOT_MEASURED = float("nan")


@dataclass(frozen=True)
class Measurement:
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
        return self.value if np.isnan(self.noise) else self.value - self.noise

    def __str__(self) -> str:
        if np.isnan(self.noise):
            return f"{self.value:.3g}"
        return f"{self.value:.3f} +- {self.noise:.3f}"
