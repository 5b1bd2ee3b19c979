"""Blocks of functions whose gradients are orthogonal, one block for each factor.

peeling
    The algorithm: look at all samples and at halves, propose blocks, judge them by their products,
    accept or merge.
division
    A batch of functions divided into blocks; the commutant behind it; noise, read from halves.
purity
    Functions without energy along other blocks; products of two blocks.
geometry
    Gradients of the functions and their inner products.
commuting
    Tensors and vector fields that commute with the Laplacian.
symmetry
    Continuous symmetries of the data, and the shapes that they tell.
turns
    Turns of the plane or of space that move samples among themselves.
"""
