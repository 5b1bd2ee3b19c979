"""The table of measures: all that is measured of a result, in the order in which tests are told.

A row says which number is taken of a candidate, of which kinds of results, its limit, and what is
said if the test fails. `measured` takes all numbers that a candidate's kinds ask for. The limits
rest on the measurements in the comments.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import isnan, nan
from typing import Any

import numpy as np

from manifactor.judging.measure import Measure
from manifactor.judging.measures import places, product
from manifactor.judging.measures.density import (
    clusters_in_words,
    clusters_of_function,
    gaussian_factors,
)
from manifactor.models.moves import motion
from manifactor.models.moves.paths import Pairs
from manifactor.models.peeling.peeling import MIN_PRODUCT_SHARE
from manifactor.models.peeling.purity import product_share
from manifactor.models.separable.symmetry import MOST_OFF, SLACK
from manifactor.statistics import Measurement

# What each sense of a product says of data that pass all tests.
SENSES = {
    "geometry": (
        "Directions of different factors are orthogonal, and distances along one do not depend on "
        "the others."
    ),
    "sum": (
        "They are a sum: each factor moves the samples by a function of its own, "
        "whatever the others do."
    ),
    "volume": (
        "They are a product in units of the distance between samples: distances along all factors "
        "change together, with the density."
    ),
    "density": (
        "They are a product together with their density: the factors are orthogonal, and the "
        "samples are distributed independently on them."
    ),
    "separable": (
        "Every eigenfunction is a product of functions of single coordinates: use these as those "
        "of a product. Directions of different factors are orthogonal, but distances along one "
        "depend on another."
    ),
    "ica": (
        "Factors are independent components of the data: whatever their lengths and directions, "
        "one tells nothing of the others."
    ),
    "dynamics": (
        "They move independently: each factor diffuses by itself, whatever map leads from the "
        "factors to the samples."
    ),
}
# Number of the lowest functions that the factors must explain.
LOWEST_FUNCTIONS = 8
# Those in which lengths and angles of the samples themselves mean something.
OF_SAMPLES = tuple(sense for sense in SENSES if sense != "dynamics")
# Kinds of results: those of models that read functions, and those with places on factors. A model
# of one's own names "places" for the measures that need coordinates and samples only.
PEELED = frozenset({"geometry", "volume", "density", "dynamics"})
SAMPLED = frozenset({*OF_SAMPLES, "places"})
PLACED = SAMPLED | {"dynamics"}

MORE_SAMPLES = "Add samples, or remove noise: average, or leave out noisy columns."
MORE_FUNCTIONS = (
    'Raise `n_functions` (the default, "auto", tries 400 at most), or scale up the columns of a '
    "small factor."
)
AS_ONE = "Take the data as one factor: its embedding distinguishes samples."
TWISTED = (
    "Fit a part of the samples: a twisted product is one on each half. Follow the samples once "
    "around a circle: they may come back reversed."
)
LOOK_AT_THE_REST = (
    "Use the factors, and look at what they leave: it is not noise, and may be a factor of its own."
)
DEFAULT_METHOD = "Leave `method` at its default."
# With the rate that `studies/advice.py` measured; docs/accuracy.md has them all. Advice that helped
# in fewer than half of its cases is not given: to thin uneven samples (4 of 11) or take their ranks
# (0 of 7), to fit a part of data that look irreducible (0 of 9), to add samples where no factors
# were found (1 of 53).
AS_ONE_RATED = AS_ONE[:-1] + " (right in {} of {} such cases)."


# What some measures take of a candidate; the others are one expression, in their row.


def _number(name: str) -> Callable[[Any, Any], Measurement | None]:
    return lambda candidate, facts: candidate.read.number(name)


def _coverage(candidate, facts) -> Measurement | None:
    path, (slowest, *_) = candidate.operator.path, sorted(candidate.rates or [0.0])
    if isnan(path.duration):
        return None
    times = motion.correlation_times(path.duration, slowest)
    return Measurement(times, words={"longer": CRITERIA["coverage"].limit / max(times, 1e-3)})


def _resolution(candidate, facts) -> float | None:
    path = candidate.operator.path
    if len(candidate.factors) < 2 or isinstance(path, Pairs):
        return None
    return motion.length_of_move(path.lag, max(candidate.rates))


def _coupling(kind: str) -> Callable[[Any, Any], Measurement | None]:
    return lambda candidate, facts: candidate.couplings.get(kind)


def _in_places(measure: Callable[[Any], Measurement]) -> Callable[[Any, Any], Measurement | None]:
    # Where only distances are known, samples have no places.
    return lambda candidate, facts: candidate.placed and measure(candidate.placed)


def _twist_in_data(candidate, facts) -> Measurement | None:
    # In a sum, angles must be independent, too.
    measure = partial(places.twist_in_data, beside_circles=candidate.sense == "sum")
    return _in_places(measure)(candidate, facts)


def _of_pieces(candidate, facts) -> Measurement | None:
    if facts.pieces is None:
        return None
    told = product.told_of_pieces([f.embedding for f in candidate.as_read], facts.pieces.label)
    return Measurement(told, words={"pieces": len(facts.pieces.level)})


def _shapes_of(candidate) -> str:
    return " and ".join(factor.shape for factor in candidate.factors)


def _groups(candidate, facts) -> Measurement:
    count = len(candidate.factors)
    asked = facts.n_asked or count
    return Measurement(count / asked, words={"found": count, "asked": asked})


def _dimensions(candidate, facts) -> Measurement:
    of_factors = sum(factor.dimension for factor in candidate.as_read)
    limit = CRITERIA["dimensions"].limit
    misfit, difference = candidate.read.dimensions.misfit(of_factors, limit)
    return Measurement(misfit, words={"difference": difference})


def _uncertainty(candidate, facts) -> Measurement:
    # The largest noise of the q that the functions were divided by. Functions whose q is 1 or more
    # are structureless, whatever its noise.
    split = candidate.read.peeling.splits[0]
    noise = float(split.noise.max(initial=0)) if (split.q < 1).any() else 0.0
    return Measurement(noise, words={"samples": candidate.n_distinct})


def _clusters(candidate, facts) -> Measurement | None:
    # Pairs show how the samples get from one cluster to another, at any density.
    if candidate.operator.basis is not None:
        return None
    # Each factor may be a step, so that several of the lowest functions are looked at.
    lowest = candidate.looks[0].geometry.spectrum.functions[:, 1:4]
    shares = max((clusters_of_function(function) for function in lowest.T), key=len)
    return Measurement(float(len(shares)), words={"sizes": clusters_in_words(shares)})


def _evenness(candidate, facts) -> Measurement | None:
    if candidate.operator.basis is not None or candidate.operator.points is None:
        return None
    even = candidate.density
    return Measurement(even.spread, words={"ratio": even.ratio})


def _missing_dimensions(candidate, facts) -> Measurement:
    dimensions = candidate.read.dimensions
    missing = dimensions.data - dimensions.found if dimensions.missing else 0.0
    count = len(candidate.looks[0].geometry.eigenvalues)
    return Measurement(missing, words={"functions": count})


def _reliability(candidate, facts) -> Measurement:
    shares = candidate.signal_shares()
    worst = int(np.argmin(shares))
    # Noise may move coordinates by more than they spread.
    share = max(0.0, float(shares[worst]))
    return Measurement(share, words={"noise_share": 1 - share, "factor": worst + 1})


# Rows whose values must be at most their limits; those of all others must be at least that.
at_most = partial(Measure, at_most=True)

AGREEMENT = Measure(
    "agreement",
    # .95 and more on products of 1,500 samples, .9 with 400.
    0.7,
    "smallest share of a factor's lowest eigenfunctions, of a sum's coordinates, that the "
    "better half of the samples finds again",
    "neither half of the samples shows the same factors by itself: the better one finds only "
    "{value:.0%} of them, so there may be too few samples or too much noise",
    MORE_SAMPLES,
    coordinates="wrong",
    answer="cannot tell",
    of=lambda c, f: max((product.agreement(c.looks[0], each) for each in c.looks[1:]), default=0.0),
    models=PEELED,
)
IDENTIFIED = at_most(
    "identified",
    1,  # Comon (1994)
    "number of factors along which the samples are Gaussian",
    "the samples are Gaussian along {value:.0f} factors: the axes of a Gaussian cloud depend "
    "on the units of its columns",
    "Use the coordinates together: Gaussian samples have no preferred axes, and rescaling a "
    "column would change them. Columns in which the factors have edges would fix the axes.",
    # But in a sum, which tells how well the axes of a Gaussian cloud are known: see "axes".
    coordinates="wrong",
    robust=True,
    of=_in_places(gaussian_factors),
    models=SAMPLED,
)
EXPLAINED = Measure(
    "explained",
    # Below a half the main direction belongs to no factor.
    0.5,
    "smallest R^2 with which all factors together predict a main direction of the data",
    "the factors explain only {value:.0%} of a main direction of the data",
    "Look at the columns that the factors do not explain: without them the fit may show a product.",
    coordinates="incomplete",
    of=lambda c, f: product.explained(c.as_read, c.operator.points, c.inliers),
    models=PEELED | {"separable", "ica"},
)
LOWEST = Measure(
    "lowest functions",
    # A folded factor leaves one unexplained.
    0.5,
    f"smallest R^2 with which all factors together predict one of the {LOWEST_FUNCTIONS} "
    "lowest eigenfunctions",
    "the factors miss a part of the data: they explain only {value:.0%} of one of the lowest "
    "eigenfunctions",
    "Add samples, or ask for one factor more with `n_factors`.",
    coordinates="incomplete",
    # Coordinates that separate tell all functions: .92 and more on 430 such results of 800 to
    # 10,000 samples, .85 and less on clouds in space whose commutators are hidden by noise.
    in_sense={"separable": 0.89},
    of=lambda c, f: product.explained(
        c.as_read, c.operator.spectrum.functions[:, 1 : 1 + LOWEST_FUNCTIONS], c.inliers
    ),
    models=PEELED | {"separable"},
)
CROSSING = at_most(
    "crossing",
    0.04,
    "root mean square cosine between directions of different factors, as far as it depends on "
    "the coordinates on both",
    "directions of different factors are not orthogonal everywhere: cosines of {interval} "
    "where {limit:.2f} is allowed, as around a hole or a corner cut off",
    "Use the coordinates, they tell samples apart; but the factors are orthogonal in a part "
    "of the data only.",
    slack=2.7,
    wrong_beyond=1 / 3,
    coordinates="right",
    # Functions that add up need not be orthogonal everywhere.
    robust=True,
    # .03 to .2 on separable shapes of 3,000 samples, where a circle is sewn to itself the most.
    in_sense={"separable": 0.25},
    of=_in_places(places.crossing),
    models={"geometry", "volume", "density", "separable"},
)
MODULATION_IN_DATA = at_most(
    "modulation in data",
    0.04,
    "relative spread of lengths along one factor over the other factors",
    "distances along one factor depend on another: they change by {interval} of their mean "
    "where {limit:.2f} is allowed, as on a cone",
    "Use the coordinates, they are right; but compare distances along one factor only where "
    "the others have equal coordinates.",
    slack=2.7,
    coordinates="right",
    about="lengths",
    robust=True,
    of=_in_places(places.modulation_in_data),
    models={"geometry", "density", "sum"},
)

MEASURES: tuple[Measure, ...] = (
    Measure(
        "coverage",
        20,
        "dynamics: correlation times of the slowest factor in all of the time",
        "the slowest factor moves through its range too seldom: {value:.1f} correlation times, "
        "where {limit:.0f} are needed; a record {longer:.1f} times as long would do",
        "Record for longer: in so short a time, independent factors may look dependent.",
        answer="cannot tell",
        of=_coverage,
        models={"moves"},
    ),
    at_most(
        "connected",
        1,
        "triplets: number of unconnected pieces of the graph of eigenfunctions that occur in a "
        "product together",
        "the factors are not certain: the triplets fall into {value:.0f} unconnected pieces, each "
        "of which the cut may assign either way round",
        DEFAULT_METHOD,
        robust=True,
        of=lambda c, f: c.read.n_pieces,
        models={"triplets"},
    ),
    Measure(
        "groups",
        1,
        "triplets: number of factors found over the number asked for",
        "only {found} of the {asked} factors asked for were found",
        DEFAULT_METHOD,
        robust=True,
        of=_groups,
        models={"triplets"},
    ),
    at_most(
        "unique",
        1,
        "separable: number of symmetries, where they move every sample everywhere",
        "the data are {shape}: every sample looks like every other, and no coordinates stand out",
        AS_ONE,
        answer="one factor",
        robust=True,
        of=lambda c, f: Measurement(float(c.read.count), words={"shape": c.read.symmetries}),
        models={"web"},
    ),
    Measure(
        "warp",
        # .2 and more on separable shapes; near 0 on twisted products, which separate locally.
        0.05,
        "separable: spread of the logarithm of the squared ratio of lengths along both coordinates",
        "distances along the coordinates do not change: directions separate, as on a product, a "
        "twisted one or one with a hole",
        "Leave `sense` at its default, which finds products.",
        answer="no product",
        slack=3.0,
        of=_number("warp"),
        models={"web"},
    ),
    at_most(
        "turned",
        MOST_OFF,
        "separable: squared distance from samples, turned about an axis of symmetry, to the "
        "nearest sample, relative to that between neighbours",
        "the data do not look the same after a turn: samples turned about an axis lie {value:.1f} "
        "times as far from the samples as those lie from each other, squared",
        AS_ONE,
        slack=SLACK,
        slack_power=-0.5,
        answer="no product",
        of=_number("turned"),
        models={"web"},
    ),
    at_most(
        "commutator",
        # Up to .0003 on shapes of 3,000 samples that separate, .0009 on those of 2,000. .0006 to
        # .1 on others of 3,000, but for some lenses, which are as near to ellipses.
        0.0001,
        "separable: squared commutator of a tensor with the Laplacian, relative to its size, less "
        "its noise",
        "no coordinates separate: the operator that comes nearest to commuting with the Laplacian "
        "misses by {interval} of its size where {limit:.2g} is allowed",
        AS_ONE,
        slack=130.0,
        slack_power=1.6,
        answer="no product",
        of=_number("commutator"),
        models={"web"},
    ),
    # A Gaussian separates in radius and angle, and in any pair of axes.
    replace(IDENTIFIED, of=_number("identified"), models={"web"}),
    at_most(
        "orbits",
        # -.0008 to .0002 in 12 searches of double cones of 3,000 samples, each with other halves.
        # Balls with a hole off the centre may have as little; "strays" sees them.
        0.0001,
        "separable, three dimensions and more: squared commutators of the products of symmetries "
        "with the Laplacian, relative to their size, less its noise",
        "the symmetries found are not exact: their commutator with the Laplacian is {interval} of "
        "their size where {limit:.2g} is allowed",
        AS_ONE,
        answer="no product",
        slack=2.7,
        slack_power=1.0,
        of=_number("orbits"),
        models={"web"},
    ),
    at_most(
        "strays",
        # At most .0005 on 19 solids of 1,000 to 10,000 samples that separate, .001 and more on 6
        # balls with a hole off the centre.
        0.0006,
        "separable, solids: share of samples that symmetries turn to where no sample is",
        "the data do not look the same after a turn: turns move {value:.2%} of the samples into "
        "empty space, where {limit:.2%} is allowed, as with a hole",
        AS_ONE,
        answer="no product",
        of=_number("strays"),
        models={"web"},
    ),
    replace(AGREEMENT, of=lambda c, f: c.halves, models={"halves"}),
    Measure(
        "product",
        # .97 and more on products, .7 and less on irreducible shapes.
        0.8,
        "smallest share, over pairs of factors, of the product of their lowest eigenfunctions "
        "within 20 % of the sum of the eigenvalues",
        "the factors do not combine as those of a product: only {value:.0%} of a product of two "
        "factors' eigenfunctions lies where a product manifold has it, not {limit:.0%}",
        "Fit a part of the samples, such as one range of a column: a product may hold there.",
        about="lengths",
        of=lambda c, f: product_share(c.looks[0].geometry, c.looks[0].blocks),
        models=PEELED,
    ),
    Measure(
        "completeness",
        # Twisted products have too few or too many of them, and reach .4 to .7.
        0.75,
        "how far eigenfunctions of single factors and their products are the low eigenfunctions "
        "of the data, no fewer and no more",
        "the data vary in ways that the factors do not have: eigenfunctions of single factors and "
        "their products make up {value:.0%} of the lowest ones, not {limit:.0%}, as on a twisted "
        "product, with a factor missing, or with noise",
        "Ask for one factor more with `n_factors`, and compare: the data vary in ways that the "
        "factors do not have. Noise looks like that, too.",
        about="lengths",
        of=lambda c, f: product.completeness(c.operator.spectrum, c.as_read),
        models=PEELED | {"triplets"},
    ),
    at_most(
        "twist",
        # 0 on a product, 1/4 where one turn around a factor reverses the other.
        1 / 8,
        "energy of a factor's lowest eigenfunction along another factor, in units of the other's "
        "lowest eigenvalue, less its noise",
        "a factor turns along another, as on a Moebius band: its lowest eigenfunction varies "
        "by {net:.2f} of that factor's lowest eigenvalue where {limit:.2f} are allowed",
        TWISTED,
        about="lengths",
        robust=True,
        answer="no product",
        of=lambda c, f: product.twist(c.looks),
        models=PEELED,
    ),
    at_most(
        "modulation",
        # Up to .1 on products, .5 where a twist is cut open.
        1 / 3,
        "spread of the variance of a factor's eigenfunctions along another factor, relative to "
        "its mean",
        "a factor changes along another: the variance of its lowest eigenfunctions does by "
        "{value:.0%}, more than {limit:.0%}, as on a twisted product",
        "Fit a part of the samples, such as one range of a column: the factors change along each "
        "other.",
        about="lengths",
        of=lambda c, f: product.modulation(c.readings, c.operator.spectrum),
        models=PEELED,
    ),
    Measure(
        "undivided",
        # Near 1 for one factor, near 0 for two.
        0.65,
        "indivisibility score q of the eigenfunctions of one factor, 0 if they divide into two "
        "blocks and 1 if they do not, less its noise",
        "one of the factors may be a product of two: on a scale from 0 (its eigenfunctions divide "
        "into two blocks) to 1 (they do not), their score is {net:.2f}; at least {limit:.2f} is "
        "needed",
        "Ask for one factor more with `n_factors`, and compare.",
        of=lambda c, f: product.undivided(c.read.peeling.splits),
        models=PEELED,
    ),
    Measure(
        "sum",
        0.5,
        "sum: share of the data's variance that a sum of one function of each factor explains",
        "a sum of one function of each factor explains only {value:.0%} of the data's variance",
        "Use the factors with care: much of the data is not a function of them.",
        coordinates="incomplete",
        of=lambda c, f: 1 - c.read.left,
        models={"sum"},
    ),
    Measure(
        "own share",
        # .88 where the noise has an eighth of the weaker object's variance.
        0.5,
        "sum: smallest share of what all other terms leave that a term explains",
        "a factor explains little that the others do not: {value:.0%} of what they leave",
        "Use the other factors: one of them explains little that the others do not.",
        coordinates="wrong",
        of=lambda c, f: c.read.own_share,
        models={"sum"},
    ),
    EXPLAINED,
    at_most(
        "hidden direction",
        # At true coordinates at most .09 with noise of .3 of the smaller factor in each of 5 to 30
        # columns, .15 in three columns where it grows by column. A hidden direction of .3 shows as
        # .28 without noise, .25 with noise of .1, and .16 with noise of .2.
        0.2,
        "size of a direction that no factor tells, in units of the smallest factor",
        "samples with the same coordinates still differ, so that a degree of freedom is missing: "
        "along one direction by {value:.2f} of the smallest factor",
        LOOK_AT_THE_REST,
        coordinates="incomplete",
        of=lambda c, f: c.untold.direction,
        models=SAMPLED,
    ),
    Measure(
        "pieces",
        # Of three classes beside a torus below .2 by its two angles, and above .9 by the classes.
        0.5,
        "smallest R^2 with which a factor, or all of them, predict a piece that the samples fall "
        "into",
        "the samples fall into {pieces} pieces that no factor tells: a factor is missing",
        LOOK_AT_THE_REST,
        coordinates="incomplete",
        of=_of_pieces,
        models=SAMPLED,
        only_failed=True,
    ),
    Measure(
        "above noise",
        # 1.7 and more at true coordinates with noise of .45 of the smallest factor, .4 to .5 where
        # the width of a noisy circle in ten columns is taken for an interval.
        1.25,
        "size of the smallest factor along one direction, in units of the noise in directions that "
        "no factor tells",
        "a factor is no larger than noise: it has {value:.1f} times the size that samples differ "
        "by in a direction that no factor tells, not {limit:.2f} times",
        "Use the other factors: one of them may be noise.",
        coordinates="wrong",
        of=lambda c, f: c.untold.above_noise,
        models=SAMPLED,
    ),
    at_most(
        "structured rest",
        # With a quarter of it a further factor would have half the width of the weakest term.
        0.3,
        "sum: variance of what is left of the data, where it is not noise, over that of the "
        "weakest term",
        "something is left of the data that is not noise: it has {value:.0%} of the variance of "
        "the weakest term",
        LOOK_AT_THE_REST,
        coordinates="incomplete",
        of=lambda c, f: c.read.structured_rest,
        models={"sum"},
    ),
    at_most(
        "axes",
        # The share of one axis that leaks into the other. It is below the limit in 1 of 500 draws
        # of equal variances, and at 3,000 samples if the variances have a ratio of 1.15 or more.
        0.02,
        "sum: squared sine of the standard error of the axes of Gaussian factors",
        "the samples do not show the axes of Gaussian factors of nearly equal variance: the "
        "squared sine of their error is {value:.2f}",
        "Take the factors together: other axes explain the samples nearly as well.",
        coordinates="wrong",
        robust=True,
        of=lambda c, f: np.sin(c.read.axes_error) ** 2,
        models={"sum"},
    ),
    LOWEST,
    Measure(
        "parts",
        # Near 0 for a factor that was not found, a half for a part that is half noise.
        0.2,
        "smallest R^2 with which all factors together predict an independent part of the samples "
        "that is not Gaussian noise",
        "a small factor may be missing: the factors explain only {value:.0%} of an independent "
        "part of the data",
        "Scale up the columns of a small factor: it is too small beside the others.",
        coordinates="incomplete",
        of=lambda c, f: product.least_explained_part(c.as_read, c.operator.points, c.inliers),
        models=PEELED,
    ),
    at_most(
        "leakage",
        # Up to .1 on tori, squares and cubes of 1,500 to 2,000 samples, .3 where triplets put a
        # square's function wrongly.
        0.2,
        "largest R^2 with which coordinates on one factor predict another",
        "a sample's coordinate on one factor predicts {value:.0%} of another",
        "Use the coordinates together: each tells something of the other.",
        # Every search but the first is another chance to find a product by accident.
        strict=0.15,
        coordinates="wrong",
        of=lambda c, f: float(np.nanmax(c.own_leakage)),
        models=SAMPLED | {"triplets"},
    ),
    Measure(
        "independence",
        0.01,
        "sum: permutation p-value of independent coordinates on the factors",
        "the coordinates are statistically dependent: p = {value:.3f}, so that a sum of functions "
        "of them is not a product",
        "Use the coordinates, but not as independent numbers: one tells of the other.",
        coordinates="right",
        of=lambda c, f: product.dependence(c.distinct_places, rng=c.rng),
        models={"sum"},
    ),
    AGREEMENT,
    Measure(
        "dependence",
        nan,  # a product may have dependent coordinates: it is said, and no test
        "permutation p-value of independent coordinates on the factors",
        "",
        of=lambda c, f: product.dependence(c.distinct_places, by_ranks=False, rng=c.rng),
        models=PEELED,
    ),
    Measure(
        "distance correlation",
        nan,
        "largest squared distance correlation between the coordinates on two factors",
        "",
        of=lambda c, f: product.distance_correlation(c.distinct_places),
        models=SAMPLED,
    ),
    Measure(
        "noise",
        nan,
        "size of the noise in directions that no factor tells, in units of the smallest factor",
        "",
        of=lambda c, f: 1 / max(c.untold.above_noise, 1e-3) if c.untold.above else None,
        models=SAMPLED,
    ),
    Measure(
        "smallest factor",
        nan,
        "size of the smallest factor, in units of the largest",
        "",
        of=lambda c, f: c.untold.smallest,
        models=SAMPLED,
    ),
    # In other senses these are no faults, but tell right results from wrong ones.
    replace(EXPLAINED, limit=nan, models={"sum"}),
    replace(LOWEST, limit=nan, models={"sum", "ica"}),
    replace(CROSSING, limit=nan, models={"sum", "ica"}),
    replace(MODULATION_IN_DATA, limit=nan, models={"volume", "ica"}),
    at_most(
        "dimensions",
        # The dimension of the data is measured to about a half.
        0.75,
        "difference between the dimensions of all factors together and those of the data, where "
        "it is not noise",
        "the factors have {difference}",
        MORE_FUNCTIONS,
        coordinates="incomplete",
        of=_dimensions,
        models=PEELED,
    ),
    at_most(
        "folds",
        # 0 on products, up to .015 where noise is a tenth of a factor's length, .03 and more where
        # a chart folds.
        0.02,
        "share of samples whose neighbours by coordinate lie elsewhere in the data",
        "a factor is folded: samples of equal coordinate lie far apart in the data, a share of "
        "{interval} where {limit:.3g} is allowed",
        "Use the other factors, but not the coordinate of the folded one: samples of several "
        "kinds share it. More samples where they are few along it would help.",
        coordinates="wrong",
        in_sense={"separable": 0.05},
        of=_in_places(places.folds),
        models=PLACED,
    ),
    at_most(
        "filling",
        # 0 to .001 on products of any density, .003 and more where 2 % of the area are cut off.
        0.002,
        "share of the product of the factors' ranges without any samples",
        "some combinations of coordinates do not occur: a share of {interval} of the product of "
        "the factors' ranges is empty where {limit:.3g} is allowed, as with a corner cut off or a "
        "hole",
        "Use the coordinates, they are right; but not every combination of them occurs.",
        # .1 and more on disks and triangles, up to .09 around a large hole.
        wrong_beyond=0.1,
        coordinates="right",
        robust=True,
        # Coordinates that are no eigenfunctions have larger errors at the ends of an interval. In
        # the sense "dynamics", right results that failed no other test had up to .016, one of noisy
        # samples .05; wrong ones with less than .02 failed other tests, too.
        in_sense={"separable": 0.02, "dynamics": 0.02},
        of=_in_places(places.filling),
        models=PLACED,
    ),
    at_most(
        "skew",
        0.04,
        "mean cosine between directions of different factors",
        "moving along one factor moves samples along another: directions of different factors have "
        "a mean cosine of {interval} where {limit:.2f} is allowed, as on a skewed torus",
        "Use the coordinates, they tell samples apart; but moving along one factor moves a sample "
        "along the other, too.",
        slack=2.7,
        # .5 on a parallelogram of 60 degrees, up to .26 between overlapping objects in images.
        wrong_beyond=1 / 3,
        coordinates="right",
        robust=True,
        of=_in_places(places.skew),
        models=SAMPLED,
    ),
    CROSSING,
    # Errors of coordinates leave cosines and spreads of .1 on even products of 1,000 samples, .06
    # on those of 3,000 and .03 on those of 30,000.
    MODULATION_IN_DATA,
    at_most(
        "poles",
        # .7 to 1.9 on cones, drops and spheroids, 0 where a circle's radius falls to a fourth.
        0.5,
        "volume: number of samples whose neighbours lie all over a factor, over the number of "
        "neighbours",
        "a factor shrinks to a point somewhere, as at the tip of a cone or the poles of a sphere",
        "Leave out the samples around the point that a factor shrinks to: the factor has no "
        "coordinate there.",
        coordinates="wrong",
        # Lengths may change with the density, but never vanish.
        robust=True,
        of=_in_places(lambda placed: places.poles(placed.places, placed.samples)),
        models={"volume"},
    ),
    at_most(
        "seams",
        # 1.1 to 1.4 on bodies of revolution of 2,500 samples, up to 2.2 on ellipses; 3.2 and more
        # on half discs whose angle was taken for a circle.
        2.7,
        "separable: distance between samples where a circle closes, relative to elsewhere on it",
        "a circle does not close: samples on both sides of a point of it lie {value:.1f} times as "
        "far apart as elsewhere, where {limit:.1f} is allowed",
        AS_ONE,
        coordinates="wrong",
        of=_in_places(places.seams),
        models={"separable"},
    ),
    IDENTIFIED,
    at_most(
        "twist in data",
        # At most 5 / sqrt(n) on 170 products of a circle and a surface of 500 to 6,000 samples that
        # pass all other tests: .16 at 1,000, .11 at 2,000, .07 from 3,000 on. Where a square or a
        # triangle turns around a circle, .2 to .6 from 1,000 samples on.
        0.1,
        "correlation of going around a circle with a turn of the other factors that their shape "
        "hides",
        "the other factors come back turned after one turn around a circle, as a square that "
        "turns by a quarter: the correlation is {value:.2f} where {limit:.2f} is allowed",
        TWISTED,
        slack=3.0,
        about="lengths",
        robust=True,
        in_sense={"separable": 0.1},
        only_failed=True,
        answer="no product",
        of=_twist_in_data,
        models=PLACED,
    ),
    *(
        at_most(
            name,
            limit,
            f"dynamics: squared correlation of {what}, less that after shifts in time",
            f"samples do not move independently on the factors: {what} have a squared correlation "
            "of {interval} where {limit:.2f} is allowed",
            "Take the factors together: they do not move independently of each other.",
            coordinates="wrong",
            of=_coupling(name),
            models={"moves"},
        )
        # Of 60 pairs of independent walks of 40 correlation times, moves, drift and speed had at
        # most .006 and places .07; errors of coordinates add up to .015. Of 25 pairs in which one
        # pulls the other, drift had .04 and more, also between their sum and difference, which
        # have independent moves; noise with a correlation of .5 has moves of .25.
        for name, limit, what in (
            ("moves", 0.05, "moves on two factors"),
            ("drift", 0.02, "moves on one factor and places on another"),
            ("speed", 0.05, "squared moves on one factor and places or squared moves on another"),
            ("places", 0.15, "places on two factors"),
        )
    ),
    at_most(
        "transitions",
        # 0 for true coordinates, .01 to .11 for found ones, whose errors go together; .04 to .13 of
        # pairs of latents whose noise has a correlation of .3 or .5.
        0.03,
        "dynamics: squared correlation of where long moves on two factors start and end, less that "
        "after shifts in time",
        "starts and ends of moves on two factors have a squared correlation of {interval} where "
        "{limit:.2f} is allowed: the factors depend on each other, or coordinates are not accurate",
        "Give more pairs, and raise `fit_samples`, for more accurate coordinates.",
        of=_coupling("transitions"),
        models={"moves"},
    ),
    at_most(
        "resolution",
        0.05,
        "dynamics: length of a move, relative to that of the shortest factor",
        "moves are {value:.3f} of the length of the shortest factor where {limit:.3f} is allowed: "
        "too long to show the directions of a bent manifold",
        "Record at shorter time steps.",
        of=_resolution,
        models={"moves"},
    ),
    Measure(
        "factors asked for",
        2,
        "one factor: number of factors that the caller asked for",
        "one factor was asked for",
        answer="one factor",
        robust=True,
        of=lambda c, f: 1.0,
        models={"asked"},
    ),
    Measure(
        "directions",
        2,
        "one factor: number of directions that the samples vary in",
        "the samples lie on a straight line{gaps}",
        "Take the data as one factor: its coordinate orders samples along the line. A product "
        "takes columns that vary independently.",
        answer="one factor",
        robust=True,
        of=lambda c, f: Measurement(1.0, words={"gaps": c.read}),
        models={"line"},
    ),
    Measure(
        "samples",
        # Fewer samples show so few functions that a single factor means nothing.
        200,
        "one factor: number of distinct samples",
        "{value:.0f} samples are too few to tell",
        "Add samples: a thousand show most products of two curves.",
        answer="cannot tell",
        of=lambda c, f: float(c.n_distinct),
        models={"one"},
    ),
    at_most(
        "uncertainty",
        0.3,
        "one factor: noise of the indivisibility score q of the lowest eigenfunctions, where it "
        "is below 1; q is 0 if they divide into blocks of different factors, and 1 if they do not",
        "{samples} samples are too few, or too noisy, to tell: the score by which the lowest "
        "eigenfunctions divide into blocks of different factors, from 0 (they do) to 1 (they do "
        "not), has an error of {value:.2f}; at most {limit:.2f} is allowed",
        MORE_SAMPLES,
        answer="cannot tell",
        of=_uncertainty,
        models={"one"},
    ),
    at_most(
        "clusters",
        1,
        "one factor: number of clusters that the samples fall into along one of the lowest "
        "eigenfunctions",
        "the samples fall into {sizes}: the lowest eigenfunctions separate the clusters, not "
        "factors",
        "Fit each cluster by itself, or add samples between them.",
        answer="cannot tell",
        robust=True,
        of=_clusters,
        models={"one"},
    ),
    at_most(
        "evenness",
        # .04 on even samples without edges, .16 with edges and corners, .25 and more on Gaussians.
        0.2,
        "one factor: relative spread of the distance to the 64th neighbour",
        "the samples are uneven: their density varies {ratio:.2g}-fold, and distances alone show "
        "no product",
        answer="cannot tell",
        robust=True,
        of=_evenness,
        models={"one"},
    ),
    Measure(
        "further product",
        # Peeling's own limit, so that the test fails exactly when peeling refused.
        MIN_PRODUCT_SHARE,
        "one factor: share of the product of the lowest eigenfunctions with those that do not "
        "vary along them near the sum of the eigenvalues, if there are any",
        "every direction depends on the others: a second one was found, but only {value:.0%} "
        "of the products of its eigenfunctions with the first's are eigenfunctions (a product "
        "needs {limit:.0%}), so that the data look irreducible",
        AS_ONE_RATED.format(6, 9),
        answer="no product",
        of=lambda c, f: getattr(c.read.peeling.refused, "product_share", None),
        models={"one"},
    ),
    at_most(
        "missing dimensions",
        0.75,  # as "dimensions"
        "one factor: dimensions of the data beyond those of the lowest eigenfunctions, where they "
        "are not noise",
        "a much smaller factor may be hidden: the data have more dimensions than their lowest "
        "eigenfunctions, but none of the {functions} eigenfunctions shows another factor clearly, "
        "since the spectrum is too short, or the samples are too few",
        MORE_FUNCTIONS,
        answer="cannot tell",
        of=_missing_dimensions,
        models={"one"},
    ),
    Measure(
        "blocks",
        2,
        "one factor: number of blocks of eigenfunctions with orthogonal gradients",
        "the data have one factor: the lowest eigenfunctions vary in all directions of the data "
        "and do not divide into blocks of different factors",
        AS_ONE_RATED.format(19, 22),
        answer="one factor",
        of=lambda c, f: float(len(c.looks[0].blocks)),
        models={"one"},
    ),
    Measure(
        "terms",
        2,
        "one factor: number of independent terms that add up to the data",
        "the data are not a sum of functions of several independent factors",
        AS_ONE,
        answer="one factor",
        of=lambda c, f: 1.0,
        models={"one term"},
    ),
    Measure(
        "triplets",
        1,
        "triplets: number of eigenfunctions that are products of two which may be put into a "
        "factor",
        "{why}",
        DEFAULT_METHOD,
        answer="cannot tell",
        robust=True,
        of=lambda c, f: Measurement(0.0, words={"why": c.read.why_none}),
        models={"no triplets"},
    ),
    Measure(
        "probability",
        0.5,
        "one factor: how often the likeliest division into several factors is right, by its tests",
        "no division into several factors is likely: the likeliest one, into {shapes}, is right in "
        "{value:.0%} of random problems with such tests (`choose(1)` shows it)",
        AS_ONE_RATED.format(11, 21),
        answer="cannot tell",
        of=lambda c, f: Measurement(c.instead.probability, words={"shapes": _shapes_of(c.instead)}),
        models={"unlikely"},
    ),
    Measure(
        "certainty",
        0.9,
        "how often results with such tests are right",
        "such results are wrong too often: {value:.0%} of random problems with such tests were "
        "right, where {limit:.0%} are asked for",
        of=lambda c, f: Measurement(c.probability),
        models={"rated"},
    ),
    Measure(
        "reliability",
        # A tenth of noise moves coordinates by a third of their standard deviation.
        0.9,
        "smallest share of the variance of the coordinates on a factor that is not noise, where "
        "the size of the noise is known",
        "the coordinates on factor {factor} are uncertain: noise makes up {noise_share:.0%} of "
        "their variance",
        "Average, or leave out noisy columns: single coordinates are uncertain.",
        of=_reliability,
        models={"noise"},
    ),
    at_most(
        "views",
        # Of 22 simulated motions whose states did not depend on the view, none had more than .013;
        # states that correlate by .3 with the elevation of the view had .08.
        0.05,
        "all views: largest R^2 with which the viewing direction predicts the coordinates on a "
        "factor",
        "coordinates depend on the viewing direction: {dependent}",
        robust=True,
        models=set(),
    ),
    Measure(
        "consistency",
        # At least .97 in simulated fits, below .2 where coordinates drifted with the view.
        0.5,
        "all views: smallest share of a motion in some views that views far from them predict",
        "a coordinate does not mean the same in all views: {drifting}",
        robust=True,
        models=set(),
    ),
)

# The order of advice, and of what is said to be wrong; measures that are not named come last.
# fmt: off
GRAVEST_FIRST = (
    "agreement", "reliability", "views", "consistency", "connected", "groups", "twist",
    "twist in data", "undivided", "dimensions", "explained", "hidden direction", "pieces",
    "above noise", "lowest functions", "parts", "coverage", "resolution", "moves", "drift",
    "speed", "places", "transitions", "folds", "poles", "seams", "sum", "own share",
    "structured rest", "identified", "axes", "leakage", "completeness", "modulation",
    "product", "unique", "commutator", "turned", "orbits", "strays", "warp",
    "modulation in data", "filling", "skew", "crossing", "independence", "certainty",
    "factors asked for", "directions", "samples", "uncertainty", "clusters", "evenness",
    "further product", "missing dimensions", "blocks", "terms", "probability", "triplets",
)
# fmt: on
# Those that are only told are no tests.
_BY_NAME = {row.name: row for row in reversed(MEASURES) if row.is_test}
CRITERIA = {name: _BY_NAME[name] for name in GRAVEST_FIRST} | _BY_NAME
