"""Factors of known places."""

import numpy as np

from manifactor.factoring.factor import Factor


def interval(t):
    """An interval on which samples lie at t, from 0 to 1."""
    functions = np.sqrt(2) * np.cos(np.pi * t)[:, None]
    return Factor(
        functions=functions,
        eigenvalues=np.array([1.0]),
        topology="interval",
        dimension=1,
        embedding=t[:, None],
        coordinate=t,
        confidence=np.ones(len(t)),
        coefficients=np.empty((0, 1)),
        chart=None,
        cloud=None,
        ends=None,
    )
