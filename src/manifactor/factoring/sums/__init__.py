"""Samples as a sum of functions of independent factors.

terms
    The algorithm: independent parts, a factor of each, further factors of the rest. Each is read
    as a curve or surface and fitted to what all others leave.
independence
    Main directions of samples; linear parts that are independent of each other.
sheets
    A curve or surface through samples, by local linear regression.
summands
    The record `Sum`, and where samples lie on its terms.
"""
