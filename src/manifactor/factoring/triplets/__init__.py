"""Groups of functions by the paper's algorithm.

search
    Triplets: which functions are products of which (Algorithm 1); separability; groups.
maxcut
    Max-Cut and Max-k-Cut by semidefinite relaxation.
"""
