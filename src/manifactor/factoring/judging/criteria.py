"""The tests behind a verdict: what each of them measures, and when it is passed."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from manifactor.factoring.measures.placed_samples import NOT_MEASURED, Measurement

# A criterion: what a test measures, and when a measured value passes it.

# Between the term of a sum and the criterion, in the name of a test.
TERM_END = ": "


@dataclass(frozen=True)
class Test:
    """One measured number, judged.

    Attributes
    ----------
    name : str
        Of the criterion; "term 1: folds" for a test of one term of a sum.
    value : float
        The number as measured.
    noise : float
        Part of the value that is noise. It is taken off before the comparison with
        the limit; nan where none is measured.
    limit : float
    passed : bool
    meaning : str
        What the number measures, as one phrase.
    at_least : bool
        Whether the value, less its noise, must be at least the limit, or at most.
    problem : str
        What is wrong, as one phrase; "" if the test was passed.
    """

    # pytest collects imported classes whose names begin with Test.
    __test__: ClassVar[bool] = False

    name: str
    value: float
    noise: float
    limit: float
    passed: bool
    meaning: str
    at_least: bool = True
    problem: str = ""

    @property
    def kind(self) -> str:
        """Name of the criterion, without the term of a sum that was tested."""
        return self.name.rpartition(TERM_END)[2]

    @property
    def net(self) -> float:
        """Value less its noise, as compared with the limit."""
        return Measurement(self.value, self.noise).net

    @property
    def rule(self) -> str:
        """When the test is passed, in words."""
        return _rule(self.limit, self.at_least)

    @property
    def interval(self) -> str:
        """Value with its noise, as "0.12 +- 0.03"."""
        return str(Measurement(self.value, self.noise))

    def is_of_term(self, number: int) -> bool:
        """Return whether this is a test of one term of a sum, numbered from 1."""
        return self.name.startswith(f"term {number}{TERM_END}")

    def of_term(self, number: int) -> "Test":
        """Return the same as a test of one term of a sum, numbered from 1."""
        term = f"term {number}"
        return replace(
            self,
            name=f"{term}{TERM_END}{self.name}",
            problem=f"in {term}, {self.problem}" if self.problem else "",
        )


def _rule(limit: float, at_least: bool) -> str:
    return f"{'at least' if at_least else 'at most'} {limit:.3g}"


@dataclass(frozen=True)
class Criterion:
    """What a test measures and when it is passed.

    >>> shared = Criterion("overlap", 0.2, False, "share", "{value:.0%} shared")
    >>> shared.judge(0.1).passed, shared.judge(0.5).problem
    (True, '50% shared')
    """

    name: str
    limit: float
    at_least: bool  # whether a value must be at least the limit, or at most
    meaning: str
    # Template of what to say if the test fails, for `str.format` with `value`, `noise`, `net`,
    # `limit`, `interval`, and any words given to `judge`
    problem: str
    # What is allowed beyond the limit, times the square root of the number of samples: errors of
    # the places of n samples fall as 1/sqrt(n)
    slack: float = 0.0

    @property
    def rule(self) -> str:
        """When the test is passed, in words."""
        rule = _rule(self.limit, self.at_least)
        if not self.slack:
            return rule
        return f"{rule} {'-' if self.at_least else '+'} {self.slack:g} / sqrt(n)"

    def limit_for(self, n_samples: int | None) -> float:
        """Return the limit for a number of samples, the last one where it is None."""
        if n_samples is None:
            return self.limit
        slack = self.slack / np.sqrt(n_samples)
        return float(self.limit - slack if self.at_least else self.limit + slack)

    def judge(
        self,
        value: float,
        noise: float = NOT_MEASURED,
        *,
        n_samples: int | None = None,
        **words: Any,
    ) -> Test:
        """Return the test of a measured value; a value that is nan fails."""
        # Plain numbers, which every file format takes.
        measured = Measurement(float(value), float(noise))
        limit = self.limit_for(n_samples)
        net = measured.net
        passed = net >= limit if self.at_least else net <= limit
        problem = ""
        if not passed:
            problem = self.problem.format(
                value=measured.value,
                noise=measured.noise,
                net=net,
                limit=limit,
                interval=measured,
                **words,
            )
        return Test(
            name=self.name,
            value=measured.value,
            noise=measured.noise,
            limit=limit,
            passed=bool(passed),
            meaning=self.meaning,
            at_least=self.at_least,
            problem=problem,
        )


def at_least(name: str, limit: float, meaning: str, problem: str) -> Criterion:
    """Return the criterion that a value is at least a limit."""
    return Criterion(name, limit, True, meaning, problem)


def at_most(
    name: str, limit: float, meaning: str, problem: str, *, slack: float = 0.0
) -> Criterion:
    """Return the criterion that a value is at most a limit."""
    return Criterion(name, limit, False, meaning, problem, slack)


# Limits of the tests that a verdict rests on.


@dataclass(frozen=True)
class EvidenceSettings:
    """Limits of the tests that a verdict rests on, and of the prose about them."""

    # Share of the product of two factors' lowest functions near the sum of their eigenvalues: .97
    # and more on products, .7 and less on irreducible shapes.
    product: float = 0.8
    # Share of the low spectrum that functions and their products make up. Twisted products have too
    # few or too many of them, and reach .4 to .7.
    completeness: float = 0.75
    # Energy of a factor's lowest function along another factor, in units of the other's lowest
    # eigenvalue: 0 on a product, 1/4 where one turn around a factor reverses the other.
    twist: float = 1 / 8
    # Relative spread of a factor's variance along another factor: up to .1 on products, .5 where a
    # twist is cut open.
    modulation: float = 1 / 3
    # q of functions that were not divided: near 1 for one factor, near 0 for two.
    undivided: float = 0.65
    # R^2 of the main direction of the data that the factors explain least. Below a half it belongs
    # to no factor.
    explained: float = 0.5
    # The same of the lowest functions: a folded factor leaves one unexplained.
    lowest_explained: float = 0.5
    # The same of the independent parts of the samples: near 0 for a factor that was not found, a
    # half for a part that is half noise.
    part_explained: float = 0.2
    # Number of the lowest functions that must be explained.
    lowest_functions: int = 8
    # Share of what the other terms of a sum leave that each explains: .88 where the noise has an
    # eighth of the weaker object's variance.
    own_share: float = 0.5
    # Variance that is left of the data and is no noise, in units of the weakest term's: with a
    # quarter of it a further factor would have half the width of that term.
    structured_rest: float = 0.3
    # Squared sine of the standard error of Gaussian axes: the share of one axis that leaks into the
    # other. It is below the limit in 1 of 500 draws of equal variances, and at 3,000 samples if the
    # variances have a ratio of 1.15 or more.
    axes: float = 0.02
    # R^2 with which one factor predicts another: up to .1 on tori, squares and cubes of 1,500 to
    # 2,000 samples, .3 where triplets put a square's function wrongly.
    leakage: float = 0.2
    # The same in every sense of a product but the first: each further search is another chance to
    # find a product by accident.
    strict_leakage: float = 0.15
    # Share of a factor's lowest functions that the better half of the samples finds: .95 and more
    # on products of 1,500 samples, .9 with 400.
    agreement: float = 0.7
    # Difference between the dimensions of factors and data, which is measured to about a half.
    dimensions: float = 0.75
    # Share of samples that lie elsewhere than their neighbours by place: 0 on products, up to .015
    # where noise is a tenth of a factor's length, .03 and more where a chart folds.
    folds: float = 0.02
    # Share of the product of the factors' ranges without samples: 0 to .001 on products of any
    # density, .003 and more where 2 % of the area are cut off.
    filling: float = 0.002
    # Samples whose neighbours lie all over a factor, per neighbour: .7 to 1.9 on cones, drops and
    # spheroids, 0 where a circle's radius falls to a fourth.
    poles: float = 0.5
    # Cosine between directions of different factors, and relative spread of lengths along one over
    # the others. Errors of places leave .1 on even products of 1,000 samples, .06 on those of 3,000
    # and .03 on those of 30,000.
    metric: float = 0.04
    metric_slack: float = 2.7
    # Beyond this cosine directions belong to no factors, in any sense of a product: .5 on a
    # parallelogram of 60 degrees, up to .26 between overlapping objects in images.
    oblique: float = 1 / 3
    # Beyond this empty share of the product of their ranges, factors are none: .1 and more on disks
    # and triangles, up to .09 around a large hole.
    voids: float = 0.1
    # Factors along which the samples may be Gaussian (Comon, 1994).
    gaussian_factors: int = 1
    # Share of a factor's variance that noise of known size must leave: a tenth of noise moves
    # places by a third of their standard deviation.
    reliability: float = 0.9
    # Fewer samples show so few functions that a single factor means nothing.
    samples: int = 200
    # Noise of q above which it is not known whether the lowest functions fall apart.
    uncertainty: float = 0.3
    # Relative spread of the distance to the 64th neighbour: .04 on even samples without edges, .16
    # with edges and corners, .25 and more on Gaussians.
    evenness: float = 0.2
    # Clusters that samples may fall into along their lowest functions.
    clusters: int = 1
    # Product share that a further factor must have; `find_in_functions` replaces it by the one that
    # peeling was done with.
    further_product: float = 0.7
    # Permutation p-value up to which places are called dependent, and the leakage below which a
    # significant dependence does not matter.
    significance: float = 0.01
    weak_leakage: float = 0.05


# Criteria of a single factor: why there is only one.


def criteria_of_one_factor(settings: EvidenceSettings) -> tuple[Criterion, ...]:
    """Return the criteria that tell why one factor was found."""
    return (*_criteria_of_samples(settings), *_criteria_of_reasons(settings))


def _criteria_of_samples(settings: EvidenceSettings) -> tuple[Criterion, ...]:
    """Criteria that come first where one factor was found."""
    return (
        at_least(
            "factors asked for",
            2,
            "one factor: number of factors that the caller asked for",
            "one factor was asked for",
        ),
        at_least(
            "directions",
            2,
            "one factor: number of directions that the samples vary in",
            "the samples lie on a straight line, which is one factor{gaps}",
        ),
        at_least(
            "samples",
            settings.samples,
            "one factor: number of distinct samples",
            "{value:.0f} samples are too few to tell",
        ),
        at_most(
            "uncertainty",
            settings.uncertainty,
            "one factor: noise of the indivisibility score q of the lowest "
            "eigenfunctions, where it is below 1; q is 0 if they divide into blocks of "
            "different factors, and 1 if they do not",
            "{samples} samples are too few, or too noisy, to tell whether the lowest "
            "eigenfunctions divide into blocks of different factors: their score, from "
            "0 (they do) to 1 (they do not), is measured with an error of "
            "{value:.2f}; at most {limit:.2f} is allowed",
        ),
        at_most(
            "clusters",
            settings.clusters,
            "one factor: number of clusters that the samples fall into along one of "
            "the lowest eigenfunctions",
            "it cannot be told whether the data are a product: the samples fall into "
            "{sizes}, and the lowest eigenfunctions tell the clusters apart, no "
            "factors",
        ),
        at_most(
            "evenness",
            settings.evenness,
            "one factor: relative spread of the distance to the 64th neighbour",
            "it cannot be told whether the data are a product: the samples are uneven, "
            "their density varies {ratio:.2g}-fold, and lengths alone show none",
        ),
    )


def _criteria_of_reasons(settings: EvidenceSettings) -> tuple[Criterion, ...]:
    """Criteria that tell why one factor was found."""
    return (
        at_least(
            "further product",
            settings.further_product,
            "one factor: share of the product of the lowest eigenfunctions with those "
            "that do not vary along them near the sum of the eigenvalues, if there "
            "are any",
            "the data have several directions, but are no product: there are "
            "eigenfunctions that do not vary along the lowest ones, but only "
            "{value:.0%} of their products with those lie where a product manifold "
            "has them, so that the data look irreducible",
        ),
        at_most(
            "missing dimensions",
            settings.dimensions,
            "one factor: dimensions of the data beyond those of the lowest "
            "eigenfunctions, where they are no noise",
            "it cannot be told whether the data are a product: they have more "
            "dimensions than their lowest eigenfunctions, but none of the {functions} "
            "eigenfunctions shows another factor clearly: the spectrum is too short, "
            "or the samples are too few, to see a much smaller one",
        ),
        at_least(
            "blocks",
            2,
            "one factor: number of blocks of eigenfunctions with orthogonal gradients",
            "the data have one factor: the lowest eigenfunctions vary in all "
            "directions of the data and do not divide into blocks of different factors",
        ),
    )


# Criteria of samples' places on the factors of a product.


def criteria_of_places(settings: EvidenceSettings) -> tuple[Criterion, ...]:
    """Return the criteria of samples' places on the factors of a product."""
    return (
        *_criteria_of_the_explained(settings),
        at_most(
            "leakage",
            settings.leakage,
            "largest R^2 with which places (coordinates) on one factor predict another",
            "a sample's place (coordinate) on one factor predicts {value:.0%} of another",
        ),
        at_least(
            "agreement",
            settings.agreement,
            "smallest share of a factor's lowest eigenfunctions, of a sum's places, "
            "that the better half of the samples finds again",
            "neither half of the samples shows the same factors by itself, the better "
            "one only {value:.0%} of them, so there may be too few samples or too much "
            "noise",
        ),
        at_most(
            "dimensions",
            settings.dimensions,
            "difference between the dimensions of all factors together and those of "
            "the data, where it is no noise",
            "the factors have {difference}",
        ),
        *_criteria_of_chart(settings),
        *_criteria_of_metric(settings),
        at_most(
            "poles",
            settings.poles,
            "volume: number of samples whose neighbours lie all over a factor, over "
            "the number of neighbours",
            "a factor shrinks to a point somewhere, as at the tip of a cone or the "
            "poles of a sphere",
        ),
        at_most(
            "identified",
            settings.gaussian_factors,
            "number of factors along which the samples are Gaussian",
            "the samples are Gaussian along {value:.0f} factors: the axes of a "
            "Gaussian cloud depend on the units of its columns",
        ),
    )


def _criteria_of_the_explained(settings: EvidenceSettings) -> tuple[Criterion, ...]:
    """Criteria of what places tell of the samples."""
    return (
        at_least(
            "explained",
            settings.explained,
            "smallest R^2 with which all factors together predict a main direction of the data",
            "the factors explain only {value:.0%} of a main direction of the data",
        ),
        at_least(
            "lowest functions",
            settings.lowest_explained,
            "smallest R^2 with which all factors together predict one of the "
            f"{settings.lowest_functions} lowest eigenfunctions",
            "the factors explain only {value:.0%} of one of the lowest eigenfunctions",
        ),
        at_least(
            "parts",
            settings.part_explained,
            "smallest R^2 with which all factors together predict an independent part "
            "of the samples that is no Gaussian noise",
            "the factors explain only {value:.0%} of an independent part of the data, "
            "which may be a small factor",
        ),
    )


def _criteria_of_chart(settings: EvidenceSettings) -> tuple[Criterion, ...]:
    """Criteria of the map from samples to places."""
    return (
        at_most(
            "folds",
            settings.folds,
            "share of samples whose neighbours by place lie elsewhere in the data",
            "samples of equal coordinate lie far apart in the data, a share of "
            "{interval} where {limit:.3g} is allowed: a factor is folded",
        ),
        at_most(
            "filling",
            settings.filling,
            "share of the product of the factors' ranges without any samples",
            "the samples do not fill the product of the factors' ranges: a share of "
            "{interval} is empty where {limit:.3g} is allowed, as with a corner cut "
            "off or a hole",
        ),
    )


def _criteria_of_metric(settings: EvidenceSettings) -> tuple[Criterion, ...]:
    """Criteria of the metric of the samples in the factors' places."""
    return (
        at_most(
            "skew",
            settings.metric,
            "mean cosine between directions of different factors",
            "directions of different factors have a mean cosine of {interval} where "
            "{limit:.2f} is allowed, as on a skewed torus",
            slack=settings.metric_slack,
        ),
        at_most(
            "crossing",
            settings.metric,
            "root mean square cosine between directions of different factors, as far "
            "as it depends on the places on both",
            "directions of different factors are not orthogonal everywhere: cosines "
            "of {interval} where {limit:.2f} is allowed, as around a hole or a corner "
            "cut off",
            slack=settings.metric_slack,
        ),
        at_most(
            "modulation in data",
            settings.metric,
            "relative spread of lengths along one factor over the other factors",
            "lengths along one factor change along another by {interval} of their "
            "mean where {limit:.2f} is allowed, as on a cone",
            slack=settings.metric_slack,
        ),
    )


# The tests behind a verdict: what each of them measures, and when it is passed.


def criteria(settings: EvidenceSettings = EvidenceSettings()) -> tuple[Criterion, ...]:
    """Return the criteria of all methods and verdicts, each of them once."""
    return (
        *_criteria_of_functions(settings),
        *criteria_of_places(settings),
        *_criteria_of_triplets(),
        *_criteria_of_sums(settings),
        *criteria_of_one_factor(settings),
    )


def judges(settings: EvidenceSettings = EvidenceSettings()) -> dict[str, Callable[..., Test]]:
    """Return the method `judge` of every criterion, by the criterion's name."""
    return {criterion.name: criterion.judge for criterion in criteria(settings)}


def _criteria_of_functions(settings: EvidenceSettings) -> tuple[Criterion, ...]:
    """Criteria of the factors' functions on a product."""
    return (
        at_least(
            "product",
            settings.product,
            "smallest share, over pairs of factors, of the product of their lowest "
            "eigenfunctions within 20 % of the sum of the eigenvalues",
            "only {value:.0%} of a product of two factors' eigenfunctions lies where "
            "a product manifold has it, not {limit:.0%}",
        ),
        at_least(
            "completeness",
            settings.completeness,
            "how far eigenfunctions of single factors and their products are the low "
            "eigenfunctions of the data, no fewer and no more",
            "eigenfunctions of single factors and their products make up {value:.0%} "
            "of the low spectrum, not {limit:.0%}, as on a twisted product, with a "
            "factor missing, or with noise",
        ),
        at_most(
            "twist",
            settings.twist,
            "energy of a factor's lowest eigenfunction along another factor, in units "
            "of the other's lowest eigenvalue, less its noise",
            "a factor's lowest eigenfunction varies along another factor, by "
            "{net:.2f} of that factor's lowest eigenvalue where {limit:.2f} are "
            "allowed, as on a twisted product",
        ),
        at_most(
            "modulation",
            settings.modulation,
            "spread of the variance of a factor's eigenfunctions along another factor, "
            "relative to its mean",
            "the variance of one factor's lowest eigenfunctions changes by "
            "{value:.0%} along another factor, more than {limit:.0%}, as on a twisted "
            "product",
        ),
        at_least(
            "undivided",
            settings.undivided,
            "indivisibility score q of the eigenfunctions of one factor, 0 if they "
            "divide into two blocks and 1 if they do not, less its noise",
            "one of the factors may be a product of two: on a scale from 0 (its "
            "eigenfunctions divide into two blocks) to 1 (they do not), their score is "
            "{net:.2f}; at least {limit:.2f} is needed",
        ),
    )


def _criteria_of_triplets() -> tuple[Criterion, ...]:
    """Criteria of `method="triplets"`."""
    return (
        at_least(
            "triplets",
            1,
            "triplets: number of eigenfunctions that are products of two which may be "
            "put into a factor",
            "{why}",
        ),
        at_most(
            "connected",
            1,
            "triplets: number of unconnected pieces of the graph of eigenfunctions "
            "that occur in a product together",
            "the triplets fall into {value:.0f} unconnected pieces, each of which the "
            "cut may assign either way round",
        ),
        at_least(
            "groups",
            1,
            "triplets: number of factors found over the number asked for",
            "only {found} of the {asked} factors asked for were found",
        ),
    )


def _criteria_of_terms(settings: EvidenceSettings) -> tuple[Criterion, ...]:
    """Criteria that only a sum has."""
    return (
        at_least(
            "sum",
            settings.explained,
            "sum: share of the data's variance that a sum of one function of each factor explains",
            "a sum of one function of each factor explains only {value:.0%} of the data's variance",
        ),
        at_least(
            "own share",
            settings.own_share,
            "sum: smallest share of what all other terms leave that a term explains",
            "a term of the sum explains only {value:.0%} of what the others leave",
        ),
        at_most(
            "structured rest",
            settings.structured_rest,
            "sum: variance of what is left of the data, where it is no noise, over "
            "that of the weakest term",
            "something is left of the data that is no noise and has {value:.0%} of the "
            "variance of the weakest term",
        ),
        at_most(
            "axes",
            settings.axes,
            "sum: squared sine of the standard error of the axes of Gaussian factors",
            "the samples do not tell the axes of Gaussian factors of nearly equal "
            "variance (squared sine of their error {value:.2f})",
        ),
        at_least(
            "terms",
            2,
            "one factor: number of independent terms that add up to the data",
            "the data are no sum of functions of several independent factors",
        ),
    )


def _criteria_of_sums(settings: EvidenceSettings) -> tuple[Criterion, ...]:
    """Criteria of `method="sum"`, and of noise of known size."""
    return (
        *_criteria_of_terms(settings),
        at_least(
            "independence",
            settings.significance,
            "sum: permutation p-value of independent places on the factors",
            "the coordinates are statistically dependent (p = {value:.3f}), so that a "
            "sum of functions of them is no product",
        ),
        at_least(
            "reliability",
            settings.reliability,
            "smallest share of the variance of places on a factor that is no noise, "
            "where the size of the noise is known",
            "noise makes up {noise_share:.0%} of the variance of places on factor {factor}",
        ),
    )
