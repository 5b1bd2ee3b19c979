"""The tests behind a verdict: what each of them measures, and when it is passed."""

from collections.abc import Callable

from manifactor.factoring.judging.criteria_of_one_factor import criteria_of_one_factor
from manifactor.factoring.judging.criteria_of_places import criteria_of_places
from manifactor.factoring.judging.criterion import Criterion, Test, at_least, at_most
from manifactor.factoring.judging.limits import EvidenceSettings


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
