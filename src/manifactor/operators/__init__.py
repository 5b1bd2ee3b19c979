"""Samples to a spectrum."""
