"""Blocks of functions whose gradients are orthogonal, one block for each factor.

peeling
    The algorithm: propose blocks, judge them by their products, accept or merge.
looks
    Geometries of all samples and of halves, which tell noise from structure.
geometry
    Gradients of the functions and their inner products.
proposals, division, commutant
    Further functions; their division into blocks; the algebra behind it.
purity, energy, products
    Functions without energy along other blocks; products of two blocks.
dimensions, residuals
    Whether blocks have all dimensions of the data, or leave only noise.
noise
    The noise of a number, read from halves of the samples.
"""
