"""Factors and samples made of known places."""

import numpy as np

from manifactor.factors.factor import Factor
from manifactor.judging.table import CRITERIA

# What makes a test of a value, by name.
JUDGE = {name: criterion.judge for name, criterion in CRITERIA.items()}


def ring(angle):
    """A circle with samples at angles, (n,)."""
    return np.column_stack([np.cos(angle), np.sin(angle)])


def sphere(rng, n, dimension=2):
    """Even samples of a unit sphere."""
    points = rng.normal(size=(n, dimension + 1))
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def pure(waves, side):
    """Indices of a box's functions, with so many waves, that vary along one side only."""
    return set(np.flatnonzero((np.delete(waves, side, axis=1) == 0).all(axis=1))) - {0}


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
    )
