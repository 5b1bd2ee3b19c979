"""Samples as a sum of functions of independent factors."""
