"""Groups of functions by the paper's algorithm.

search
    Triplets: which functions are products of which (Algorithm 1).
grouping
    Triplets to a separability matrix, and its maximum cut to groups.
maxcut
    Max-Cut and Max-k-Cut by semidefinite relaxation.
"""
