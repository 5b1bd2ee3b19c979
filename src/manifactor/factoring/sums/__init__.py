"""Samples as a sum of functions of independent factors.

peeling
    The algorithm: independent parts, a factor of each, further factors of the rest.
directions, independence
    Main directions of samples; linear parts that are independent of each other.
reading
    Where samples lie on the curve or surface that explains them.
sheets, regression
    A curve or surface through samples, by local linear regression.
fitting
    Each factor fitted to what all others leave.
summands
    The record `Sum`, and where samples lie on its terms.
agreement
    Whether half of the samples show the same factors.
"""
