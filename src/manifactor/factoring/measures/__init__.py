"""Numbers that speak for or against a product of the factors that were found.

None of them has a limit: `judging` compares them with limits. Some look at functions, or at
functions and places together:

functions
    Completeness, agreement of halves, twist, modulation, undivided blocks.
explained
    How well the factors predict directions and independent parts of the samples.
dependence
    How well one factor predicts another, and whether they are independent.

The others need places and samples only, whatever method found the factors:

placed_samples
    Samples with their places in one unit of length, and local fits of them.
folding, filling, poles, metric, gaussianity
    Folded factors; empty combinations of places; factors that shrink to a point; angles
    and lengths; Gaussian factors.
evenness
    How much the density of samples varies, and clusters along a coordinate.
lines
    Whether samples lie on a straight line, and where on it.
measurement, settings
    A number with its noise; the settings of all measures.
"""
