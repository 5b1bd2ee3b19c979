"""Samples as a sum of functions of independent factors.

peeling
    The algorithm: independent parts, a factor of each, further factors of the rest; and whether
    half of the samples show the same factors.
independence
    Main directions of samples; linear parts that are independent of each other.
fitting
    Where samples lie on the curve or surface that explains them; each factor fitted to what all
    others leave.
sheets
    A curve or surface through samples, by local linear regression.
summands
    The record `Sum`, and where samples lie on its terms.
"""
