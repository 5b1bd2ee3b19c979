"""Approximate neighbour searches."""
