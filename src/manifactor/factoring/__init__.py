"""From a diffusion to the factors of the manifold.

`factorize(diffusion, settings, rng=rng)` in `factorize.py` is the way in, and the record
`Factorization` is what comes out.

factorize
    Find factors in one sense of a product after the other, divide terms of a sum, judge.
methods
    The searches: in functions, in samples, by triplets. Each finds factors, measures them, and
    returns them with the evidence.
placement, inversion
    Coordinates of new samples on the factors, and samples at coordinates.
factorization
    The records that go in and come out.
triplets, maxcut
    `method="triplets"`: the paper's algorithm.
factor, shapes, charts
    The record `Factor`: functions, shape and coordinates of one factor.

Packages, the parts that methods are made of. Imports between them point one way, in the order
prediction, gradients, factor, sums, triplets, measures, judging:

judging
    Measured numbers to tests, tests to a verdict, a verdict to prose.
measures
    Numbers that speak for or against a product.
sums
    `method="sum"`: samples as a sum of one function of each factor.
gradients
    Blocks of functions with orthogonal gradients, found by peeling.
prediction
    Regression on nearest neighbours, by means and by linear fits: its R^2, edges and holes in what
    it leaves, and a draw of few samples, used by all of them.
"""
