"""Criteria of a single factor: why there is only one."""

from manifactor.factoring.judging.criterion import Criterion, at_least, at_most
from manifactor.factoring.judging.limits import EvidenceSettings


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
