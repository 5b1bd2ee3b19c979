"""Samples as a sum of one function of each factor."""
