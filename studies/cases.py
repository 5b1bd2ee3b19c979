"""Cases of the accuracy benchmark: a data set and the method that factors it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from manifactor import datasets
from manifactor.datasets.sampling import rotated_into
from studies import families


@dataclass(frozen=True)
class Case:
    """One data set of the benchmark and the method that factors it."""

    group: str  # row of the table that the case is counted in
    # A name of `datasets.SHAPES`, or "random" for an even random problem; or the name of a family
    shape: str
    n: int = 3000  # number of samples; random problems choose their own
    sampling: str = "uniform"
    # Standard deviation in every column, relative to the shape's diameter; of a family's member, to
    # the root mean square of the distances from its middle
    noise: float = 0.0
    # Number of columns that the samples are rotated into; None keeps the shape's
    columns: int | None = None
    scale: float = 1.0
    method: str = "gradients"  # A name of `METHODS`
    # A group of `families.FAMILIES`, or "symmetric"; each seed draws another member
    families: str = ""

    def draw(self, seed: int) -> tuple[np.ndarray, Any]:
        """Return the samples and the true factors, or the `Symmetry` of a symmetric shape."""
        if self.shape == "random":
            problem = datasets.random_problem(seed, kinds="even")
            return problem.X, problem.truth
        rng = np.random.default_rng(seed)
        if self.families:
            given = {"density": self.sampling, "random_state": seed}
            X, truth = families.draw(self.families, self.shape, self.n, **given)
            size = np.sqrt(X.var(axis=0).sum())
        else:
            given = {"sampling": self.sampling, "random_state": seed}
            X, truth = datasets.sample(self.shape, self.n, **given)
            # The diameter is taken before the rotation, which would widen the bounding box.
            size = np.linalg.norm(X.max(axis=0) - X.min(axis=0))
        if self.columns is not None:
            X = rotated_into(X, self.columns, rng)
        noise = self.noise * size * rng.normal(size=X.shape)
        return self.scale * (X + noise), truth


# A case and its number of seeds.
Row = tuple[Case, int]


def rows_of(group: str, shapes: Iterable[str], seeds: int, **changes) -> list[Row]:
    """Return a case for each shape, with its number of seeds."""
    return [(Case(group, shape, **changes), seeds) for shape in shapes]
