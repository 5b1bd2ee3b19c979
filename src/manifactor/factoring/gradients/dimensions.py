"""Dimensions of the data, and of the blocks of functions found in them."""

from dataclasses import dataclass

from manifactor.factoring.gradients.peeling import Peeling
from manifactor.spectral.diffusion import Diffusion

MORE = "more dimensions than the data, so they overlap"
FEWER = "fewer dimensions than the data, so a small one may be missing"


@dataclass(frozen=True)
class Misfit:
    """How far the factors' dimensions miss the data's."""

    dimensions: float
    difference: str = ""  # in which way, as a phrase; "" where they fit


@dataclass(frozen=True)
class Dimensions:
    """Dimensions of the data, and of the blocks of functions that were found."""

    data: float  # as the kernel's bandwidth curve has it
    found: int  # directions that the gradients of the blocks span together
    missing: bool  # whether the blocks lack a dimension that is no noise

    def misfit(self, of_factors: int, limit: float) -> Misfit:
        """Return how far the dimensions of all factors together miss the data's.

        A surplus of dimensions up to `limit` is not reported.
        """
        surplus = of_factors - self.data
        if surplus > limit:
            return Misfit(surplus, MORE)
        if self.missing:
            return Misfit(self.data - self.found, FEWER)
        # Dimensions that only noise fills are not missing.
        return Misfit(max(0.0, surplus))


@dataclass(frozen=True)
class Peeled:
    """A peeling with what it was made of."""

    diffusion: Diffusion  # whose functions were peeled; it may have more of them than the one given
    peeling: Peeling
    dimensions: Dimensions  # of the data and of the blocks that were found
