"""Criteria of samples' places on the factors of a product."""

from manifactor.factoring.judging.criterion import Criterion, at_least, at_most
from manifactor.factoring.judging.limits import EvidenceSettings


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
