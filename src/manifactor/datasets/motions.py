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
    "stretches": np.array([1.0, 1.0]),
    "rigid": np.array([0.0, 0.0]),
}
# Those in which the rotor turns, too.
TURNING = ("x", "xy")


@dataclass(frozen=True)
class Motion:
    """The distribution of the motions."""

    motions: str
    correlation: float
    symmetry: int
    stretch: float
    view_correlation: float = 0.0

    def __post_init__(self) -> None:
        require_choice("motions", self.motions, MOTIONS)
        require_number("correlation", self.correlation, low=-1, high=1)
        require_count("symmetry", self.symmetry, low=1, high=1000)
        require_number("stretch", self.stretch, low=0)
        require_number("view_correlation", self.view_correlation, low=-1, high=1)
        # Above rounding: .6 and .8 are allowed.
        if self.correlation**2 + self.view_correlation**2 > 1 + 1e-9:
            raise ValueError(
                "the squares of `correlation` and `view_correlation` must add up to at "
                f"most 1; got {self.correlation} and {self.view_correlation}. Lower "
                "one of them."
            )

    @property
    def _own_variance(self) -> float:
        """Share of the x-stretch's normal variable that depends on nothing else."""
        return max(1 - self.correlation**2 - self.view_correlation**2, 0.0)

    @property
    def reach(self) -> np.ndarray:
        """The largest stretch along x and y, (2,)."""
        return self.stretch * MOTIONS[self.motions]

    def draw(
        self, n_samples: int, rng: np.random.Generator, *, view: np.ndarray | float = 0.0
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return angles (n_samples,) and stretches (n_samples, 2).

        Shapes: view (n_samples,).
        """
        # A Gaussian copula: normal variables can be correlated at will, and their distribution
        # function makes each of them uniform again.
        turn, x, y = rng.standard_normal((3, n_samples))
        own = np.sqrt(self._own_variance) * x
        x = self.correlation * turn + self.view_correlation * view + own
        turns = self.motions in TURNING
        angle = turns * 2 * np.pi / self.symmetry * special.ndtr(turn)
        xy = np.stack([x, y], axis=1)
        uniform = special.ndtr(xy)
        return angle, self.reach * (2 * uniform - 1)


def simulation_generator(random_state) -> np.random.Generator:
    """Return a generator from an int, a RandomState or None."""
    # Images and volumes use the same one, so that one seed gives the same motions.
    seed = check_random_state(random_state).randint(2**31 - 1)
    return np.random.default_rng(seed)
