"""The record Factorization: what every method of finding factors returns."""

from dataclasses import dataclass, field, replace

from manifactor._support.choices import Choice
from manifactor.factoring.factors.factor import Factor
from manifactor.factoring.gradients.division import Split
from manifactor.factoring.judging.evidence import Evidence
from manifactor.factoring.sums.summands import Sum
from manifactor.factoring.triplets.maxcut import Cut
from manifactor.factoring.triplets.search import Triplets
from manifactor.spectral.diffusion import Diffusion


@dataclass(frozen=True, repr=False)
class Factorization:
    """Factors, the evidence for them, and the diffusion they were found in.

    Attributes
    ----------
    factors : tuple of Factor
        The one with the smallest eigenvalue first.
    evidence : Evidence
    diffusion : Diffusion
        The one that was given, one of more functions, or one in another sense of a
        product.
    splits : tuple of Split
        How batches of functions fell into blocks, by `method="gradients"`.
    triplets : Triplets or None
    cut : Cut or None
        By `method="triplets"`.
    sum : Sum or None
        How samples are placed on the factors of a sum.
    choices : dict of str to Choice
        "method" and "factors", "sense" where several were looked at, and "functions"
        where more of them were computed than given.
    """

    factors: tuple[Factor, ...]
    evidence: Evidence
    diffusion: Diffusion
    splits: tuple[Split, ...] = ()
    triplets: Triplets | None = None
    cut: Cut | None = None
    sum: Sum | None = None
    choices: dict[str, Choice] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Factorization({self.evidence.verdict}, {list(self.factors)})"

    def settled(self) -> "Factorization":
        """Return the same with everything in the host's memory."""
        return replace(self, diffusion=self.diffusion.settled())
