"""Blocks of functions with orthogonal gradients."""
