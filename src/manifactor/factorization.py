"""What a caller may set of a factorization, and the record that every method returns."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from manifactor._support.parameters import (
    Choice,
    require_choice,
    require_count,
    require_indices,
    require_number,
)
from manifactor._support.values import bad_values
from manifactor._support.workers import PickledFields
from manifactor.factors.factor import Factor
from manifactor.factors.inversion import PlaceSpace, choose_window
from manifactor.factors.placing import ByFunctions, Locate
from manifactor.judging.evidence import Evidence
from manifactor.judging.table import OF_SAMPLES
from manifactor.models.maxcut import Cut
from manifactor.models.moves.integration import Integrated
from manifactor.models.moves.unmixing import Unmixed
from manifactor.models.peeling.division import Split
from manifactor.models.peeling.peeling import MAX_FACTORS
from manifactor.models.sums.summands import ByTerms, DividedTerm, Sum
from manifactor.models.triplets import Triplets
from manifactor.operators.operator import Operator

METHOD_NAMES = ("gradients", "sum", "deflation", "triplets")
# "deflation" is an earlier name of "sum".
SUM_NAMES = ("sum", "deflation")
# The senses that a caller may ask for; "dynamics" follows from moves that are given.
SENSE_NAMES = OF_SAMPLES


@dataclass(frozen=True)
class FactoringSettings:
    """What to look for, and by which method: the caller's parameters."""

    n_factors: int | str = "auto"
    method: str = "gradients"
    # For "triplets": how far the eigenvalue of a product may lie from the sum of its parts'. "auto"
    # is a tenth of the product's eigenvalue.
    eigenvalue_tolerance: float | str = "auto"
    # For "triplets": least absolute cosine between a function and a product of others. "auto" is
    # .7.
    similarity_threshold: float | str = "auto"
    # For "triplets": indices of functions that are not to be put into a factor
    exclude: Sequence[int] = ()
    # For "gradients": the sense of a product to look for. "auto" looks at the geometry first, and
    # further where that does not show a product.
    sense: str = "auto"

    @property
    def n_asked(self) -> int | None:
        """Number of factors that the caller asked for, None for "auto"."""
        return None if self.n_factors == "auto" else int(self.n_factors)


def is_auto(value: object) -> bool:
    """Return whether the caller leaves a setting to the program."""
    return isinstance(value, str) and value == "auto"


# The method that each of these parameters is for.
USED_BY = {
    "sense": "gradients",
    "eigenvalue_tolerance": "triplets",
    "similarity_threshold": "triplets",
    "exclude": "triplets",
}


def require_factoring(settings: FactoringSettings, *, n_functions: int | None = None) -> None:
    """Refuse settings that do not make sense, or that the method would ignore."""
    # Values first, then whether the method uses them: a wrong value is the clearer message.
    require_choice("method", settings.method, sorted(METHOD_NAMES))
    require_choice("sense", settings.sense, ["auto", *SENSE_NAMES])
    if not is_auto(settings.n_factors):
        require_count("n_factors", settings.n_factors, low=1, high=MAX_FACTORS)
    if not is_auto(settings.eigenvalue_tolerance):
        require_number("eigenvalue_tolerance", settings.eigenvalue_tolerance, above=0)
    if not is_auto(settings.similarity_threshold):
        require_number("similarity_threshold", settings.similarity_threshold, low=0, high=1)
    # While the number of functions is not known, any index may turn out to be one.
    last = 2**31 if n_functions is None else n_functions - 1
    require_indices("exclude", settings.exclude, low=1, high=last, of="functions")
    for name, method in USED_BY.items():
        value = getattr(settings, name)
        is_default = is_auto(value) or not np.size(value)
        if settings.method != method and not is_default:
            raise ValueError(
                f"`{name}` is for `method={method!r}`; got {value!r} with {settings.method!r}. "
                "Leave it out."
            )


# Columns of samples with noise of their own: the covariances of 20,000 samples take .6 GB.
MOST_WITH_NOISE = 64


def checked_noise(noise, X) -> np.ndarray:
    """Return the noise of samples as an array, if it can be used.

    Standard deviations of every column, (n_features,), or covariances of every sample, (n_samples,
    n_features, n_features).
    """
    if sp.issparse(X):
        raise ValueError("`noise` cannot be used with precomputed distances. Leave it out.")
    n, p = X.shape
    if isinstance(noise, np.ndarray) and noise.ndim > 1 and p > MOST_WITH_NOISE:
        raise ValueError(
            f"`noise` of each sample is for {MOST_WITH_NOISE} columns or fewer; got {p}. Give main "
            "directions of the samples and their noise, or the noise of every column."
        )
    numbers = np.empty(0)
    with suppress(TypeError, ValueError):  # words are refused
        noise = numbers = np.asarray(noise, dtype=float)
    known = numbers.shape in ((p,), (n, p), (n, p, p)) and bad_values(numbers) is None
    if not known or (numbers.ndim < 3 and (numbers < 0).any()):
        raise ValueError(
            "`noise` must hold a standard deviation of 0 or more, below 1e+150, for "
            f"each of the {p} columns, or that of each sample, ({n}, {p}), or a covariance of each "
            f"sample, ({n}, {p}, {p}); got {noise!r:.60}."
        )
    if numbers.ndim == 2:
        # A column without noise has a thousandth of its spread.
        spread = X.std(axis=0)
        least = 1e-3 * np.where(spread > 0, spread, 1)
        return np.maximum(numbers, least)[:, :, None] ** 2 * np.eye(p)
    if numbers.ndim == 3:
        skew = np.abs(numbers - numbers.swapaxes(1, 2)).max(axis=(1, 2), initial=0)
        spread = np.linalg.eigvalsh(numbers)
        wrong = (spread[:, 0] <= 1e-12 * spread[:, -1]) | (skew > 1e-6 * spread[:, -1])
        if wrong.any():
            raise ValueError(
                "the covariances of `noise` must be symmetric and positive in all directions; "
                f"that of sample {wrong.argmax()} is not. Add a small variance to the diagonal."
            )
    return numbers


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
    tried: tuple[Tried, ...] = ()  # in order; archives do not hold it

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

    @property
    def divided(self) -> tuple[DividedTerm, ...]:
        """Terms of the sum that have several factors."""
        return self.placer.divided if isinstance(self.placer, ByTerms) else ()

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
