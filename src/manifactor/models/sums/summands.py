"""A sum of functions of factors, and where samples lie on them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

import numpy as np

from manifactor._support.errors import Warned
from manifactor._support.values import quotient
from manifactor.factors.factor import Factor
from manifactor.factors.placing import ByFunctions, Locate, Placed, Placer, place_blocks
from manifactor.factors.shapes import angle_of, signed_angle
from manifactor.models.sums.independence import Directions
from manifactor.models.sums.sheets import Sheet
from manifactor.operators.operator import Operator

# More terms than these that are surfaces are noise, which fills all directions: of 8,000 random
# problems none was a sum of three surfaces.
MOST_SURFACES = 2


@dataclass(frozen=True)
class Summand:
    """A function of one factor, one term of a sum."""

    sheet: Sheet  # the curve or surface that the function traces out
    start: np.ndarray  # (q, q): linear estimate of the term: samples times this
    variance: float  # of the samples, that the term explains
    explained: float  # share of what the other terms leave of the samples that this one explains

    def coordinate(self, places: np.ndarray) -> np.ndarray | None:
        """Return arc length from 0 to 1 or an angle; None for a surface."""
        if self.sheet.topology == "interval":
            return np.clip(places[:, 0], 0, 1)
        if self.sheet.topology == "circle":
            return angle_of(places)
        return None


@dataclass(frozen=True)
class Explained:
    """Samples as a sum."""

    places: tuple[np.ndarray, ...]  # (n, c): on each factor
    means: tuple[np.ndarray, ...]  # (n, q): the terms, in the main directions of the samples
    off: np.ndarray  # (n,): squared distances of samples from the sum


@dataclass(frozen=True)
class Sum:
    """Samples as a sum of one function of each factor, and noise."""

    directions: Directions  # the main directions of the samples, in which the terms are given
    summands: tuple[Summand, ...]  # the strongest first
    left: float  # share of the samples' variance that all terms together leave
    # Whether what is left looks like noise: no direction of it has an edge or a hole
    noise_left: bool
    # Standard error of the axes of Gaussian factors, in radians; 0 where there are fewer than two
    axes_error: float = 0.0
    # Variance of the noise in each direction, as the preparation of the samples has seen it
    noise: float = 0.0
    warned: tuple[Warned, ...] = ()
    # How often each term is fitted again to what the others leave; linear estimates are kept at 0
    rounds: int = 6

    @property
    def own_share(self) -> float:
        """Smallest share of what the other terms leave that a term explains."""
        return min(term.explained for term in self.summands)

    def chosen(self, numbers: Sequence[int]) -> "Sum":
        """Return the same of some of the terms; the others are noise."""
        some = tuple(self.summands[number] for number in numbers)
        explained, kept = (sum(term.variance for term in of) for of in (self.summands, some))
        left = 1 - (1 - self.left) * quotient(kept, explained)
        return replace(self, summands=some, left=float(left), noise_left=True)

    @property
    def is_cloud(self) -> bool:
        """Whether so many terms are surfaces that they are noise."""
        return sum(term.sheet.topology == "other" for term in self.summands) > MOST_SURFACES

    @property
    def structured_rest(self) -> float:
        """Variance that is left and is not noise, in units of the weakest term's."""
        if self.noise_left:
            return 0.0
        explained = sum(term.variance for term in self.summands)
        left = quotient(explained * self.left, 1 - self.left)
        return left / min(term.variance for term in self.summands)

    def explain(self, samples: np.ndarray) -> Explained:
        """Return samples, (n, n_features), as a sum.

        All of them at a time; blocks are for the caller to make. Every place is the nearest one to
        what the other terms leave, in turn; linear estimates come first.
        """
        shown = self.directions(samples)
        at = [term.sheet.project(shown @ term.start) for term in self.summands]
        rest = shown - sum(term.means for term in at)
        # Where factors move samples in orthogonal directions one round would do; at a cosine of .5
        # each of them leaves a quarter of the error.
        for _ in range(self.rounds):
            for j, term in enumerate(self.summands):
                target = rest + at[j].means
                at[j] = term.sheet.project(target)
                rest = target - at[j].means
        # Noise along a term moves its places, and leaves nothing.
        off = (rest**2).sum(axis=1) + self.noise
        return Explained(tuple(t.places for t in at), tuple(t.means for t in at), off)

    def points(self, samples: np.ndarray, term: int) -> np.ndarray:
        """Return the values of one term at samples, (n, q), in their own units."""
        blocks = [samples[start : start + 20_000] for start in range(0, len(samples), 20_000)]
        return np.concatenate([self.explain(block).means[term] for block in blocks])

    def factors(self, samples: np.ndarray) -> tuple[Factor, ...]:
        """Return the factors with the places of samples, (n, n_features), on them."""
        at = place_blocks(samples, partial(_place_on_terms, self, {}))
        return tuple(
            Factor(
                *_functions(term, places),
                term.sheet.topology,
                term.sheet.dimension,
                places,
                coordinate,
                sure,
            )
            for term, (places, coordinate, sure) in zip(self.summands, at, strict=True)
        )


@dataclass(frozen=True)
class DividedTerm:
    """A surface that is a term of a sum and has several factors itself."""

    term: int  # index of the term in the sum
    n_factors: int  # number of its factors, which follow each other among those of the sum
    # Of the points of the surface that samples lie at; its factors are read from it
    diffusion: Operator
    placer: "ByFunctions | ByTerms"


@dataclass(frozen=True)
class ByTerms(Placer):
    """Places on the terms of a sum, and on the factors of terms that have several."""

    sum: Sum
    divided: tuple[DividedTerm, ...] = ()  # every other term is one factor

    def locator(self, factors: Sequence[Factor], diffusion: Operator, n_new: int) -> Locate:
        """Return a function that places prepared samples where the sum is nearest to them.

        The confidence falls with the distance from the sum. On factors of a divided term a sample
        lies where its point on the term lies, and the lower of both confidences counts.
        """
        inside, number, left = {}, 0, list(factors)
        for divided in self.divided:
            # Each term before it is one factor.
            first = divided.term - number
            own, left = left[first : first + divided.n_factors], left[first + divided.n_factors :]
            number = divided.term + 1
            inside[divided.term] = divided.placer.locator(own, divided.diffusion, n_new)
        return partial(_place_on_terms, self.sum, inside)

    def searchable(self, n_jobs: int | None) -> Self:
        """Return the same with neighbour searches of divided terms."""
        return self._with_each(lambda operator: operator.searchable(n_jobs))

    def with_copies(self, rows: np.ndarray, copy_of: np.ndarray) -> Self:
        """Return the same for samples with copies, as an `Operator` does."""
        return self._with_each(lambda operator: operator.with_copies(rows, copy_of))

    def _with_each(self, change: Callable[[Operator], Operator]) -> Self:
        terms = [replace(each, diffusion=change(each.diffusion)) for each in self.divided]
        return replace(self, divided=tuple(terms))


def _place_on_terms(terms: Sum, inside: Mapping[int, Locate], X: np.ndarray) -> list[Placed]:
    """Places of prepared samples on each factor of a sum."""
    explained = terms.explain(X)
    out = []
    for number, term in enumerate(terms.summands):
        sure = 1 / (1 + explained.off / term.variance)
        if number not in inside:
            places = explained.places[number]
            out.append(Placed(places, term.coordinate(places), sure))
            continue
        for placed in inside[number](explained.means[number]):
            out.append(placed._replace(confidence=np.minimum(placed.confidence, sure)))
    return out


def _functions(term: Summand, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Functions of a factor at places, of mean square 1, and their eigenvalues."""
    steps = term.sheet.steps
    order = np.arange(1, 7)
    if term.sheet.topology == "interval":
        functions = np.cos(np.pi * order * places)
        eigenvalues = (np.pi * order * steps[0, 0, 0]) ** 2
    elif term.sheet.topology == "circle":
        angle = signed_angle(places)[:, None]
        turns = (order + 1) // 2
        functions = np.where(order % 2, np.cos(turns * angle), np.sin(turns * angle))
        eigenvalues = (turns * steps[0, 0, 0]) ** 2
    else:
        functions = places - places.mean(axis=0)
        # The Rayleigh quotient: mean square of the gradient over that of the values.
        slope = (steps**2).sum(axis=1).mean(axis=0)
        eigenvalues = quotient(slope, (functions**2).mean(axis=0))
        ascending = np.argsort(eigenvalues)
        functions, eigenvalues = functions[:, ascending], eigenvalues[ascending]
    size = np.sqrt((functions**2).mean(axis=0))
    return quotient(functions, size), eigenvalues
