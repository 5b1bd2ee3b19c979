"""The result: factors, the evidence for them, and what was tried."""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from manifactor._support.errors import Warned
from manifactor._support.parameters import Choice
from manifactor._support.workers import PickledFields
from manifactor.factors.factor import Factor
from manifactor.factors.inversion import PlaceSpace, choose_window
from manifactor.factors.placing import ByFunctions, Locate
from manifactor.judging.evidence import Evidence
from manifactor.models.maxcut import Cut
from manifactor.models.moves.integration import Integrated
from manifactor.models.moves.unmixing import Unmixed
from manifactor.models.peeling.division import Split
from manifactor.models.sums.summands import ByTerms, Sum
from manifactor.models.triplets import Triplets
from manifactor.operators.operator import Operator
from manifactor.samples.samples import Samples


@dataclass(frozen=True)
class Tried:
    """A result that was tried, what was measured of it, and how often such results are right."""

    name: str
    n_factors: int
    probability: float
    measured: dict[str, float]


@dataclass(frozen=True, repr=False)
class Factorization(PickledFields):
    """Factors, the evidence for them, and the diffusion they were found in."""

    factors: tuple[Factor, ...]  # the one with the smallest eigenvalue first
    evidence: Evidence
    # The one that was given, one of more functions, or one in another sense of a product
    diffusion: Operator
    # How batches of functions fell into blocks, by `method="gradients"`
    splits: tuple[Split, ...] = ()
    triplets: Triplets | None = None
    cut: Cut | None = None  # by `method="triplets"`
    placer: ByFunctions | Integrated | Unmixed | ByTerms = field(default_factory=ByFunctions)
    # "method" and "factors", "sense" where several were looked at, "functions" where more of them
    # were computed than given, and "term 1" where a term of a sum is a surface that may have
    # several factors
    choices: dict[str, Choice] = field(default_factory=dict)
    # What archives do not hold: what was tried, in order; the samples, with rows and moves; and
    # warnings, which the estimator issues
    tried: tuple[Tried, ...] = ()
    drawn: Samples | None = field(default=None, repr=False, compare=False)
    warned: tuple[Warned, ...] = ()

    def __repr__(self) -> str:
        return f"Factorization({self.evidence.verdict}, {list(self.factors)})"

    @property
    def in_graph(self) -> np.ndarray:
        """Whether each sample is in the graph, (n_samples,)."""
        return ~self.diffusion.graph.outliers

    @property
    def coefficients(self) -> tuple[np.ndarray, ...]:
        """The functions of each factor as combinations of the spectrum's; none of a sum."""
        return () if isinstance(self.placer, ByTerms) else self.placer.coefficients

    @property
    def sum(self) -> Sum | None:
        """The terms that add up to the samples, if the factors are those."""
        return self.placer.sum if isinstance(self.placer, ByTerms) else None

    def locator(self, n_new: int) -> Locate:
        """Return a function that places prepared samples, about `n_new` in all."""
        if self.diffusion.points is None:
            raise ValueError(
                "new samples are placed by their distances to the training samples, which "
                "a precomputed graph does not have; fit samples instead."
            )
        return self.placer.locator(self.factors, self.diffusion, n_new)

    def places(self) -> PlaceSpace:
        """Return the places of the samples in the graph."""
        return PlaceSpace(
            tuple(factor.topology for factor in self.factors),
            tuple(factor.embedding.shape[1] for factor in self.factors),
            np.hstack([factor.embedding[self.in_graph] for factor in self.factors]),
        )

    @cached_property
    def window(self) -> Choice:
        """How many samples to average at a place; only for samples that are points.

        It is found when first asked for, and is no field: archives and pickles are the same before
        and after.
        """
        points = self.diffusion.points
        assert points is not None
        return choose_window(self.places(), points[self.in_graph])

    def settled(self) -> "Factorization":
        """Return the same with everything in the host's memory."""
        return replace(self, diffusion=self.diffusion.settled())

    def searchable(self, n_jobs: int | None) -> "Factorization":
        """Return the same with neighbour searches, which archives do not hold."""
        placer = self.placer
        if isinstance(placer, ByTerms):
            placer = placer.searchable(n_jobs)
        return replace(self, diffusion=self.diffusion.searchable(n_jobs), placer=placer)
