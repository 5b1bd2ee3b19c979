"""A wide mixture of random problems, which the probability of results is learnt from.

>>> problem = draw(1, n_samples=300)
>>> problem.family in FAMILIES, len(problem.X) == len(problem.truth[0])
(True, True)

Every family meets all conditions: noise of several kinds, 200 to 20,000 samples, 2 to 500 columns,
copies of rows, corners and holes without samples, factors that depend on each other.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from manifactor.datasets.products import Truth
from studies import sources
from studies.conditions import SPARE, Conditions, draw_conditions, meet
from studies.parts import Drawn, Source

NONE = Conditions(0)  # nothing is known of them


@dataclass(frozen=True)
class Problem:
    """Samples, the family that they were drawn from, which of it, and what befell them.

    What is not a product may have several right answers: one factor, the samples, and the
    coordinates that separate, or those of a product that a map has bent.
    """

    X: np.ndarray
    truths: tuple[Truth, ...]
    family: str
    member: str
    conditions: Conditions = NONE
    is_product: bool = False  # whether "product" is a right verdict

    @property
    def truth(self) -> Truth:
        """The true factors, by the first of the right answers."""
        return self.truths[0]


def draw(seed: int, *, family: str | None = None, n_samples: int | None = None) -> Problem:
    """Draw problem number `seed`, of a random family or of one, with as many samples as asked for.

    Some families have fewer samples: a real table, or what holes leave.
    """
    rng = np.random.RandomState(seed)
    shares = np.array([share for share, _ in FAMILIES.values()], float)
    drawn_family = str(rng.choice(list(FAMILIES), p=shares / shares.sum()))
    family = family or drawn_family
    conditions = draw_conditions(rng)
    conditions = replace(conditions, n=n_samples or conditions.n)
    spare = 1.0 if conditions.void == "none" else SPARE
    source = Source(int(spare * conditions.n), rng, conditions.dependence)
    drawn = FAMILIES[family][1](source)
    X, truths, met = meet(conditions, drawn, rng)
    is_product = drawn.is_product and conditions.void == "none"
    return Problem(X, tuple(truths), family, drawn.member, met, is_product)


# The share of each family, and how its problems are drawn.
FAMILIES: dict[str, tuple[int, Callable[[Source], Drawn]]] = {
    "calibration": (8, sources.calibration),
    "curves": (9, sources.curves),
    "surfaces": (4, sources.surfaces),
    "linear": (3, sources.linear),
    "gentle maps": (3, sources.gentle_maps),
    "wild maps": (3, sources.wild_maps),
    "networks": (3, sources.networks),
    "warps": (3, sources.warps),
    "inversions": (3, sources.inversions),
    "complex maps": (3, sources.complex_maps),
    "orthogonal maps": (3, sources.orthogonal_maps),
    "sums": (4, sources.sums),
    "components": (3, sources.components),
    "bent components": (2, sources.bent_components),
    "classes": (3, sources.classes),
    "levels": (4, sources.levels),
    "views": (5, sources.views),
    "noisy curves": (5, sources.noisy_curves),
    "noisy products": (5, sources.noisy_products),
    "windows": (1, sources.windows),
    "blobs": (2, sources.blobs),
    "objects": (1, sources.objects),
    "signals": (2, sources.signals),
    "waves": (2, sources.waves),
    "counts": (2, sources.counts),
    "one curve": (4, sources.one_curve),
    "bodies": (4, sources.bodies),
    "coupled": (3, sources.coupled),
    "trees": (2, sources.trees),
    "mixtures": (2, sources.mixtures),
    "clusters": (2, sources.clusters),
    "real tables": (3, sources.real_tables),
    **{
        name: (share, sources.of_group(name))
        for name, share in zip(sources.SHAPES, (4, 2, 1, 3, 1), strict=True)
    },
}
