"""The motions of the molecule: the rotor's angle and the stretch of the rest."""

from dataclasses import dataclass

import numpy as np
from scipy import special
from sklearn.utils import check_random_state

from manifactor._support.parameters import require_choice, require_count, require_number

# The directions in which the rest is stretched.
MOTIONS = {
    "x": np.array([1.0, 0.0]),
    "xy": np.array([1.0, 1.0]),
}


@dataclass(frozen=True)
class Motion:
    """The distribution of the motions.

    Parameters
    ----------
    motions : {"x", "xy"}
        The rotor turns, and the rest is stretched along x, or along x and y.
    correlation : float
        Of the Gaussian copula of the angle and the x-stretch, in [-1, 1].
    symmetry : int
        Angles are uniform in [0, 2 pi / symmetry).
    stretch : float
        Stretches of the lowest atom are uniform in +-stretch, in Angstrom.
    """

    motions: str
    correlation: float
    symmetry: int
    stretch: float

    def __post_init__(self) -> None:
        require_choice("motions", self.motions, MOTIONS)
        require_number("correlation", self.correlation, low=-1, high=1)
        require_count("symmetry", self.symmetry, 1, 1000)
        require_number("stretch", self.stretch, low=0)

    @property
    def reach(self) -> np.ndarray:
        """The largest stretch along x and y, (2,)."""
        return self.stretch * MOTIONS[self.motions]

    def draw(
        self, n_samples: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return angles (n_samples,) and stretches (n_samples, 2)."""
        # A Gaussian copula: normal variables can be correlated at will, and their
        # distribution function makes each of them uniform again.
        turn, x, y = rng.standard_normal((3, n_samples))
        x = self.correlation * turn + np.sqrt(1 - self.correlation**2) * x
        angle = 2 * np.pi / self.symmetry * special.ndtr(turn)
        xy = np.stack([x, y], axis=1)
        uniform = special.ndtr(xy)
        return angle, self.reach * (2 * uniform - 1)


def simulation_generator(random_state) -> np.random.Generator:
    """Return a generator from an int, a RandomState or None."""
    # Images and volumes use the same one, so that one seed gives the same motions.
    seed = check_random_state(random_state).randint(2**31 - 1)
    return np.random.default_rng(seed)
