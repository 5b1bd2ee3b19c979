"""Benchmarks of accuracy, and the paper reproduced."""
