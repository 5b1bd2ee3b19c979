"""Latents that diffuse independently of each other, and a bent map of them to samples."""

import numpy as np


def walk(n, rng, step):
    """A Brownian motion in [0, 1] that is reflected at both ends, (n,)."""
    free = (rng.random() + np.cumsum(step * rng.normal(size=n))) % 2
    return np.where(free > 1, 2 - free, free)


def latents(n, rng, steps=(0.04, 0.06)):
    """Independent walks, (n, number of steps)."""
    return np.column_stack([walk(n, rng, step) for step in steps])


def seen(u):
    """Samples of places in a square, (n, 3): a sheared and bent sheet, no product of lengths."""
    x, y = u[:, 0] + 0.5 * u[:, 1], u[:, 1]
    return np.column_stack([x + 0.2 * np.sin(2 * y), y + 0.2 * x**2, 0.3 * np.cos(2 * x + y)])


def jacobian(u, h=1e-5):
    """Derivatives of `seen`, (n, 3, 2)."""
    sides = [(seen(u + h * e) - seen(u - h * e)) / (2 * h) for e in np.eye(2)]
    return np.stack(sides, axis=2)
