"""From a diffusion to the factors of the manifold.

`factorize(diffusion, settings, rng=rng)` in `factorize.py` is the way in, and the record
`Factorization` is what comes out. A module imports from those below it in this map, never from
those above.

First level, the methods:

factorize
    The methods in a table, and what is done to the result of each.
terms
    Surfaces that are terms of a sum, divided where they are products of lengths.
senses
    `method="gradients"`: find factors in one sense of a product after the other.
from_functions, from_samples
    One search each: in the functions of a diffusion, or for a sum of the samples.
    Find factors, then weigh the evidence.
blocks
    Peel blocks of functions off a diffusion until they have all its dimensions.
noisy_places
    How far noise of known size moves places.
placement
    Places of new samples on the factors.
settings, factorization
    The records that go in and come out.
inversion
    Samples at places on the factors.

Packages, the parts that methods are made of:

judging
    Measured numbers to tests, tests to a verdict, a verdict to prose.
measures
    Numbers that speak for or against a product.
triplets
    `method="triplets"`: the paper's algorithm.
sums
    `method="sum"`: samples as a sum of one function of each factor.
factors
    The record `Factor`: functions, shape and places of one factor.
gradients
    Blocks of functions with orthogonal gradients, found by peeling.
prediction
    Nearest-neighbour regression: its R^2, edges and holes in what it leaves, and a draw of few
    samples, used by all of them.
"""
