"""The tests behind a verdict: what each of them measures, and when it is passed."""

from dataclasses import dataclass

from manifactor.factoring.judging import Criterion


@dataclass(frozen=True)
class EvidenceSettings:
    """Limits of the tests that a verdict rests on, and of the prose about them."""

    # Share of the product of two factors' lowest functions near the sum of their
    # eigenvalues: .97 and more on products, .7 and less on irreducible shapes.
    product: float = 0.8
    # Twisted products have too few or too many products below a given eigenvalue:
    # they reach .4 to .7.
    completeness: float = 0.75
    # Quanta of energy of a factor's lowest function along another factor: 0 on a
    # product, 1/4 where going around one factor turns the other over.
    twist: float = 1 / 8
    # Relative spread of a factor's variance along another factor: up to .1 on
    # products, .5 where a twist is cut open.
    modulation: float = 1 / 3
    # q of functions that were not divided: near 1 for one factor, near 0 for two.
    undivided: float = 0.65
    # R^2 of the worst main direction of the data. A direction below it belongs to no
    # factor.
    explained: float = 0.5
    # R^2 of the worst of the lowest functions. A folded factor leaves one unexplained.
    lowest_explained: float = 0.5
    # Number of the lowest functions that must be explained.
    lowest_functions: int = 8
    # Share of what the other terms of a sum leave that each explains: .88 where the
    # noise has an eighth of the weaker object's variance.
    own_share: float = 0.5
    # What is left of the data and is no noise, in units of the weakest term: at a third
    # of it a further factor of half its width may be hidden there.
    structured_rest: float = 0.3
    # Squared sine of the standard error of Gaussian axes: the share of one that leaks
    # into the other. It is as small as this in 1 of 500 draws of equal variances, and
    # smaller from a ratio of 1.15 on at 3,000 samples.
    axes: float = 0.02
    # R^2 with which one factor predicts another: up to .1 on tori, squares and cubes of
    # 1,500 to 2,000 samples, .3 where triplets put a square's function wrongly.
    leakage: float = 0.2
    # The same in further looks, the price of looking more than once: places on factors
    # of a product in another sense are independent, too.
    strict_leakage: float = 0.15
    # Share of a factor's lowest functions that the better half of the samples finds:
    # .95 and more on products of 1,500 samples, .9 with 400.
    agreement: float = 0.7
    # The dimension of the data is measured to about a half.
    dimensions: float = 0.75
    # Share of a factor's variance that noise of known size must leave: a tenth of
    # noise moves places by a third of their standard deviation.
    reliability: float = 0.9
    # Fewer samples show so few functions that a single factor means nothing.
    samples: int = 200
    # Noise of q above which functions that do not fall apart might yet do so.
    uncertainty: float = 0.3
    # Product share that `peel` asks of a further factor.
    further_product: float = 0.7
    # Permutation p-value up to which places are called dependent, and the leakage
    # below which a significant dependence does not matter.
    significance: float = 0.01
    weak_leakage: float = 0.05


def criteria(settings: EvidenceSettings = EvidenceSettings()) -> tuple[Criterion, ...]:
    """Return the criteria of all methods and verdicts, each of them once."""
    return (
        *_criteria_of_functions(settings),
        *_criteria_of_places(settings),
        *_criteria_of_triplets(),
        *_criteria_of_sums(settings),
        *_criteria_of_samples(settings),
        *_criteria_of_one_factor(settings),
    )


def criteria_table(settings: EvidenceSettings = EvidenceSettings()) -> str:
    """Return the criteria as a Markdown table."""
    rows = [
        f"| {criterion.name} | {criterion.meaning} | {criterion.rule} |"
        for criterion in criteria(settings)
    ]
    header = ["| test | what it measures | passed if |", "|---|---|---|"]
    return "\n".join([*header, *rows]) + "\n"


def _criteria_of_functions(settings: EvidenceSettings) -> tuple[Criterion, ...]:
    """Criteria of the factors' functions on a product."""
    return (
        Criterion(
            "product",
            settings.product,
            True,
            "smallest share, over pairs of factors, of the product of their lowest "
            "functions within 20 % of the sum of the eigenvalues",
            "only {value:.0%} of a product of two factors' functions lies where a "
            "product manifold has it, not {limit:.0%}",
        ),
        Criterion(
            "completeness",
            settings.completeness,
            True,
            "how far functions of single factors and their products are the low "
            "eigenfunctions, no fewer and no more",
            "functions of single factors and their products make up {value:.0%} of the "
            "low spectrum, not {limit:.0%}, as on a twisted product or with a factor "
            "missing",
        ),
        Criterion(
            "twist",
            settings.twist,
            False,
            "energy of a factor's lowest function along another factor, in units of "
            "the other's lowest eigenvalue, less its noise",
            "a factor's lowest function varies along another factor, by {net:.2f} of "
            "that factor's lowest eigenvalue where {limit:.2f} are allowed, as on a "
            "twisted product",
        ),
        Criterion(
            "modulation",
            settings.modulation,
            False,
            "spread of the variance of a factor's functions along another factor, "
            "relative to its mean",
            "the variance of one factor's lowest functions changes by {value:.0%} "
            "along another factor, more than {limit:.0%}, as on a twisted product",
        ),
        Criterion(
            "undivided",
            settings.undivided,
            True,
            "q of the functions of one factor, 0 if they fall into two blocks and 1 "
            "if they do not, less its noise",
            "one of the factors may be a product of two: its functions are indivisible "
            "only to {net:.2f}, not {limit:.2f}",
        ),
    )


def _criteria_of_places(settings: EvidenceSettings) -> tuple[Criterion, ...]:
    """Criteria of samples' places on the factors of a product."""
    return (
        Criterion(
            "explained",
            settings.explained,
            True,
            "smallest R^2 with which all factors together predict a main direction "
            "of the data",
            "the factors explain only {value:.0%} of a main direction of the data",
        ),
        Criterion(
            "lowest functions",
            settings.lowest_explained,
            True,
            "smallest R^2 with which all factors together predict one of the "
            f"{settings.lowest_functions} lowest functions",
            "the factors explain only {value:.0%} of one of the lowest functions",
        ),
        Criterion(
            "leakage",
            settings.leakage,
            False,
            "largest R^2 with which places on one factor predict another factor",
            "a sample's place on one factor predicts {value:.0%} of another",
        ),
        Criterion(
            "agreement",
            settings.agreement,
            True,
            "smallest share of a factor's lowest functions, of a sum's places, that "
            "the better half of the samples finds again",
            "neither half of the samples shows the same factors by itself, the better "
            "one only {value:.0%} of them, so there may be too few samples or too much "
            "noise",
        ),
        Criterion(
            "dimensions",
            settings.dimensions,
            False,
            "difference between the dimensions of all factors together and those of "
            "the data, where it is no noise",
            "the factors have {difference}",
        ),
    )


def _criteria_of_triplets() -> tuple[Criterion, ...]:
    """Criteria of `method="triplets"`."""
    return (
        Criterion(
            "triplets",
            1,
            True,
            "triplets: number of functions that are products of two functions which "
            "may be put into a factor",
            "{why}",
        ),
        Criterion(
            "connected",
            1,
            False,
            "triplets: number of unconnected pieces of the graph of functions that "
            "occur in a product together",
            "the triplets fall into {value:.0f} unconnected pieces, each of which the "
            "cut may assign either way round",
        ),
        Criterion(
            "groups",
            1,
            True,
            "triplets: number of factors found over the number asked for",
            "only {found} of the {asked} factors asked for were found",
        ),
    )


def _criteria_of_terms(settings: EvidenceSettings) -> tuple[Criterion, ...]:
    """Criteria that only a sum has."""
    return (
        Criterion(
            "products checked",
            1,
            True,
            "sum: number of products of functions that were compared with the "
            "spectrum, always 0",
            "one function of each factor add up to {explained:.0%} of the data's "
            "variance; this is how independent motions show in images, but a sum alone "
            "does not prove a product",
        ),
        Criterion(
            "sum",
            settings.explained,
            True,
            "sum: share of the data's variance that one function of each factor add up "
            "to",
            "one function of each factor add up to only {value:.0%} of the data's "
            "variance",
        ),
        Criterion(
            "own share",
            settings.own_share,
            True,
            "sum: smallest share of what all other terms leave that a term explains",
            "a term of the sum explains only {value:.0%} of what the others leave",
        ),
        Criterion(
            "structured rest",
            settings.structured_rest,
            False,
            "sum: variance of what is left of the data, where it is no noise, over "
            "that of the weakest term",
            "something is left of the data that is no noise and has {value:.0%} of the "
            "variance of the weakest term",
        ),
        Criterion(
            "axes",
            settings.axes,
            False,
            "sum: squared sine of the standard error of the axes of Gaussian factors",
            "Gaussian factors of nearly equal variance have no axes that the samples "
            "tell (squared sine of their error {value:.2f})",
        ),
        Criterion(
            "terms",
            2,
            True,
            "one factor: number of independent terms that add up to the data",
            "the data are no sum of functions of several independent factors",
        ),
    )


def _criteria_of_sums(settings: EvidenceSettings) -> tuple[Criterion, ...]:
    """Criteria of `method="sum"`, and of noise of known size."""
    return (
        *_criteria_of_terms(settings),
        Criterion(
            "reliability",
            settings.reliability,
            True,
            "smallest share of the variance of places on a factor that is no noise, "
            "where the size of the noise is known",
            "noise makes up {noise_share:.0%} of the variance of places on factor "
            "{factor}",
        ),
    )


def _criteria_of_samples(settings: EvidenceSettings) -> tuple[Criterion, ...]:
    """Criteria that come first where one factor was found."""
    return (
        Criterion(
            "factors asked for",
            2,
            True,
            "one factor: number of factors that the caller asked for",
            "one factor was asked for",
        ),
        Criterion(
            "samples",
            settings.samples,
            True,
            "one factor: number of distinct samples",
            "{value:.0f} samples are too few to tell",
        ),
        Criterion(
            "uncertainty",
            settings.uncertainty,
            False,
            "one factor: noise of the q of the lowest functions, where it is below 1",
            "{samples} samples are too few, or too noisy, to tell whether the lowest "
            "functions fall apart",
        ),
    )


def _criteria_of_one_factor(settings: EvidenceSettings) -> tuple[Criterion, ...]:
    """Criteria that tell why one factor was found."""
    return (
        Criterion(
            "further product",
            settings.further_product,
            True,
            "one factor: share of the product of the lowest functions with functions "
            "that do not vary along them near the sum of the eigenvalues, if there "
            "are any",
            "there are functions that do not vary along the lowest ones, but only "
            "{value:.0%} of their products with those lie where a product manifold has "
            "them: the data look irreducible",
        ),
        Criterion(
            "missing dimensions",
            settings.dimensions,
            False,
            "one factor: dimensions of the data beyond those of the lowest functions, "
            "where they are no noise",
            "the data have more dimensions than their lowest functions, but none of "
            "the {functions} functions shows another factor clearly: the spectrum is "
            "too short, or the samples are too few, to see a much smaller one; raise "
            "`n_functions` or add samples",
        ),
        Criterion(
            "blocks",
            2,
            True,
            "one factor: number of blocks of functions with orthogonal gradients",
            "the lowest functions vary in all directions of the data and do not fall "
            "apart: the data are irreducible",
        ),
    )
