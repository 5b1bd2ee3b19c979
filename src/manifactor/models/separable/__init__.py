"""Coordinates in which the Laplacian separates."""
