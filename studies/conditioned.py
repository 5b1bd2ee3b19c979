"""Samples under one condition each: noise, copies, levels, classes, and conformal maps.

Every function draws a problem by its seed: the samples, and truths that are each right, or copies.
"""

from collections.abc import Sequence

import numpy as np
from numpy.random import RandomState

from manifactor.datasets.products import Truth, ring
from manifactor.datasets.sampling import rotated_into
from studies import sources
from studies.parts import Source

Samples = tuple[np.ndarray, Sequence[Truth]]

# Dimensions of conformal maps, numbers of levels, and noise in percent of the smaller factor.
DIMENSIONS, LEVELS, NOISES = (2, 3, 6), (6, 8, 10, 20, 40), (5, 15, 25, 35, 45)


def noisy(seed: int, percent: int) -> Samples:
    """Draw an interval beside an interval or a circle, in 5 to 30 columns with noise.

    Of equal size in all columns or growing from column to column; every second problem has five
    samples of each state, each with noise of its own.
    """
    rng = RandomState(seed)
    states = 400 if seed % 2 else 2000
    u, v = rng.uniform(size=(2, states, 1))
    closed = rng.uniform() < 0.5
    smaller = 1 / np.sqrt(12)
    own = 2 * smaller * ring(2 * np.pi * v[:, 0]) if closed else rng.uniform(1, 2) * v
    X = rotated_into(np.hstack([u, own]), int(rng.randint(5, 31)), rng)
    rows = np.repeat(np.arange(states), 2000 // states)
    sizes = np.ones(X.shape[1])
    if rng.uniform() < 0.5:
        sizes = np.linspace(0.2, 1.8, X.shape[1])
        sizes /= np.sqrt((sizes**2).mean())
    noise = percent / 100 * smaller * sizes * rng.normal(size=(2000, X.shape[1]))
    truth = ring(2 * np.pi * v[:, 0]) if closed else v
    return X[rows] + noise, [(u[rows], truth[rows])]


def copied(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw a product of curves, and the same with rows that are copied up to eight times."""
    rng = RandomState(seed)
    X = sources.curves(Source(int(rng.randint(400, 1500)), rng)).X
    return X, np.repeat(X, rng.randint(1, 9, size=len(X)), axis=0)


def levelled(seed: int, count: int) -> Samples:
    """Draw a circle or an interval of so many levels beside a curve."""
    rng = RandomState(seed)
    u, level = rng.uniform(size=1500), rng.randint(count, size=1500) / count
    one, two = rng.uniform(size=2) < 0.5
    first = ring(2 * np.pi * level) if one else level[:, None]
    second = ring(2 * np.pi * u) if two else u[:, None]
    X = np.hstack([rng.uniform(1, 2) * first, rng.uniform(1, 2) * second])
    return X, [(first, second)]


def classified(seed: int) -> Samples:
    """Draw two to five classes, near or apart, beside a circle, an interval or a torus."""
    rng = RandomState(seed)
    count, n = int(rng.randint(2, 6)), 1500
    label = rng.randint(count, size=n)
    centres = rng.normal(size=(count, 3))
    nearest = min(np.linalg.norm(a - b) for k, a in enumerate(centres) for b in centres[:k])
    centres *= (rng.uniform(0.4, 1.0) if seed % 2 else rng.uniform(2, 4)) / nearest
    u, v = rng.uniform(size=(2, n))
    beside = [[ring(2 * np.pi * u)], [u[:, None]], [ring(2 * np.pi * u), ring(2 * np.pi * v)]]
    curves = beside[seed % 3]
    X = np.hstack([centres[label], *curves])
    return X, [(np.eye(count)[label], *curves)]


def noisy_circle(seed: int) -> Samples:
    """Draw one circle in 3 to 30 columns, with noise of .05 to .3 of its deviation."""
    rng = RandomState(seed)
    t = ring(rng.uniform(0, 2 * np.pi, size=int(rng.randint(800, 2500))))
    X = rotated_into(t, int(rng.randint(3, 31)), rng)
    noise = rng.uniform(0.05, 0.3) * np.sqrt(0.5)
    return X + noise * rng.normal(size=X.shape), [(t,)]


def coupled(seed: int) -> Samples:
    """Draw a surface of two coordinates and a function of both."""
    drawn = sources.coupled(Source(1500, RandomState(seed)))
    return drawn.X, drawn.truths


def conformal(seed: int, dimension: int) -> Samples:
    """Draw 5,000 samples of a box, inverted in a sphere around a point outside of it."""
    rng = RandomState(seed)
    u = rng.uniform(size=(5000, dimension))
    away = rng.normal(size=dimension)
    away *= rng.uniform(0.9, 1.6) * np.sqrt(dimension) / 2 / np.linalg.norm(away)
    side = np.abs(away).max()
    # Outside of the box, at a tenth of its side at least.
    away *= max(1.0, 0.6 / side)
    from_centre = u - 0.5 - away
    X = from_centre / (from_centre**2).sum(axis=1, keepdims=True)
    return X, [tuple(u[:, k : k + 1] for k in range(dimension))]


# What is no product, by families of the mixture.
NO_PRODUCTS = (
    sources.bodies,
    sources.trees,
    sources.mixtures,
    sources.clusters,
    sources.real_tables,
    sources.of_group("irreducible"),
    sources.of_group("symmetric"),
)


def no_product(seed: int) -> Samples:
    """Draw spheres, balls, clouds, trees, mixtures, real tables and irreducible shapes."""
    rng = RandomState(seed)
    drawn = NO_PRODUCTS[seed % len(NO_PRODUCTS)](Source(int(rng.randint(800, 2500)), rng))
    return drawn.X, drawn.truths
