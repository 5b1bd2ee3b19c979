"""Factors made of known places."""

import numpy as np

from manifactor.factoring.factors.factor import Factor


def interval(t):
    """An interval with samples at arc lengths t, (n,)."""
    return Factor(
        functions=np.sqrt(2) * np.cos(np.pi * t)[:, None],
        eigenvalues=np.ones(1),
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
