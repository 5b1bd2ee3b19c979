"""Numbers that speak for or against a product of the factors that were found.

None of them has a limit: `judging` compares them with limits.

product
    Are the functions those of a product? Do the factors explain the samples, and not each other?
places
    Samples with their coordinates in one unit of length: angles and lengths in these, folded
    factors, empty combinations of coordinates, factors that shrink to a point.
density
    How even the samples are: clusters, samples on a line, Gaussian factors.
"""
