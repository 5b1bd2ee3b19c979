"""The record Factorization: what every method of finding factors returns."""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from manifactor._support.parameters import Choice
from manifactor._support.workers import PickledFields
from manifactor.factoring.factor import Factor
from manifactor.factoring.gradients.division import Split
from manifactor.factoring.inversion import PlaceSpace, choose_window, place_space
from manifactor.factoring.judging.evidence import Evidence
from manifactor.factoring.maxcut import Cut
from manifactor.factoring.sums.summands import Sum
from manifactor.factoring.triplets import Triplets
from manifactor.spectral.diffusion import Diffusion


@dataclass(frozen=True)
class DividedTerm:
    """A surface that is a term of a sum and has several factors itself."""

    term: int  # index of the term in the sum
    n_factors: int  # number of its factors, which follow each other among those of the sum
    # Of the points of the surface that samples lie at; its factors are read from it
    diffusion: Diffusion

    def searchable(self, n_jobs: int | None) -> "DividedTerm":
        """Return the same with a neighbour search, which archives do not hold."""
        return replace(self, diffusion=self.diffusion.searchable(n_jobs))


@dataclass(frozen=True, repr=False)
class Factorization(PickledFields):
    """Factors, the evidence for them, and the diffusion they were found in."""

    factors: tuple[Factor, ...]  # the one with the smallest eigenvalue first
    evidence: Evidence
    # The one that was given, one of more functions, or one in another sense of a product
    diffusion: Diffusion
    # How batches of functions fell into blocks, by `method="gradients"`
    splits: tuple[Split, ...] = ()
    triplets: Triplets | None = None
    cut: Cut | None = None  # by `method="triplets"`
    sum: Sum | None = None  # how samples are placed on the terms of a sum
    # Terms of the sum that have several factors; every other term is one factor
    divided: tuple[DividedTerm, ...] = ()
    # "method" and "factors", "sense" where several were looked at, "functions" where more of them
    # were computed than given, and "term 1" where a term of a sum is a surface that may have
    # several factors
    choices: dict[str, Choice] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Factorization({self.evidence.verdict}, {list(self.factors)})"

    @property
    def in_graph(self) -> np.ndarray:
        """Whether each sample is in the graph, (n_samples,)."""
        return ~self.diffusion.graph.outliers

    def places(self) -> PlaceSpace:
        """Return the places of the samples in the graph."""
        return place_space(self.factors, self.in_graph)

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
        return replace(
            self,
            diffusion=self.diffusion.searchable(n_jobs),
            divided=tuple(term.searchable(n_jobs) for term in self.divided),
        )
