"""Limits of the tests that a verdict rests on."""

from dataclasses import dataclass


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
