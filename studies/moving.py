"""A wide mixture of random moving problems, which the probability of dynamics is learnt from.

>>> problem = draw(3)
>>> len(problem.X) == len(problem.truth[0]), set(problem.known) <= set(KINDS)
(True, True)

Latents diffuse, hop between wells, turn, swing or jump, by themselves or coupled, and are seen
through a linear map, a shear, a warp or a network, with noise.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from manifactor.datasets.products import Truth, ring
from studies.dynamics import LINE, RING, Kinds, encoded, folded, random_map

# How moves are given, and the share of each.
KINDS = {"times": 0.65, "pairs": 0.15, "bursts": 0.12, "metric": 0.08}
# How latents move, in trajectories and pairs; bursts and metrics have moves at even places.
WALKS = {"diffusing": 0.4, "wells": 0.2, "pulled": 0.12, "with inertia": 0.14, "jumping": 0.14}
COUPLINGS = ("same noise", "drift", "speed", "triangle")
VIEWS = {"linear": 0.15, "shear": 0.15, "warp": 0.4, "network": 0.3}


@dataclass(frozen=True)
class Moving:
    """Samples with their moves, the true factors, and what they are."""

    X: np.ndarray
    known: dict[str, Any]
    truth: Truth
    family: str
    member: str
    noise: float = 0.0  # of the deviation of a column
    fitted: int = 2000
    details: dict[str, Any] = field(default_factory=dict)


def draw(seed: int) -> Moving:
    """Draw moving problem number `seed`."""
    rng = np.random.default_rng(seed)
    kind = str(rng.choice(list(KINDS), p=list(KINDS.values())))
    count = int(rng.choice([1, 2, 3], p=[0.12, 0.68, 0.2]))
    kinds: Kinds = tuple(rng.choice([LINE, RING], size=count, p=[0.6, 0.4]).tolist())
    step = float(np.exp(rng.uniform(*np.log([0.006, 0.12]))))
    speeds = step * np.exp(rng.uniform(0, np.log(4), size=count))
    noise = float(rng.choice([0.0, 0.06 * rng.uniform() ** 2]))
    fitted = round(np.exp(rng.uniform(*np.log([800, 3000]))))
    family = kind
    if kind in ("times", "pairs"):
        walk = str(rng.choice(list(WALKS), p=list(WALKS.values())))
        coupling = "none"
        if count == 2 and walk == "diffusing" and rng.random() < 0.45:
            coupling = str(rng.choice(COUPLINGS))
        n = round(np.exp(rng.uniform(*np.log([3000, 25_000]))))
        kinds = kinds if walk in ("diffusing", "with inertia") else (LINE,) * count
        u = WALKERS[walk](kinds, speeds, n, rng)
        if coupling != "none":
            u = coupled(coupling, kinds, speeds, n, rng)
        family = f"{kind}, {walk if coupling == 'none' else coupling}"
        single = coupling != "none"
    else:
        fitted = min(fitted, 2000)
        u, single = rng.random((fitted, count)), False
    see, view = seen(kinds, rng)
    X = see(u)
    size = noise * X.std()
    X, known = X + size * rng.normal(size=X.shape), dict[str, Any]()
    if kind == "times":
        known = {"times": np.arange(len(X))}
    elif kind == "pairs":
        X, u, known = X[:-1], u[:-1], {"pairs": X[1:]}
    elif kind == "bursts":
        repeats = int(rng.integers(4, 21))
        free = u[:, None] + speeds * rng.normal(size=(fitted, repeats, count))
        columns = zip(np.moveaxis(free, 2, 0), kinds, strict=True)
        moved = np.stack([folded(t, each) for t, each in columns], axis=2).reshape(-1, count)
        Y = see(moved)
        known = {"bursts": (Y + size * rng.normal(size=Y.shape)).reshape(fitted, repeats, -1)}
    else:
        h = 1e-4
        sides = [(see(u + h * e) - see(u - h * e)) / (2 * h) for e in np.eye(count)]
        known = {"metric": np.stack(sides, axis=2) * speeds / step}
    truth = [
        ring(2 * np.pi * t) if each == RING else t[:, None]
        for t, each in zip(u.T, kinds, strict=True)
    ]
    # What depends on each other is one factor.
    whole = (np.hstack(truth),) if single else tuple(truth)
    details = {"step": step, "speeds": (speeds / step).tolist(), "view": view}
    return Moving(X, known, whole, family, " x ".join(kinds), noise, fitted, details)


def seen(kinds: Kinds, rng: np.random.Generator) -> tuple[Callable, str]:
    """Draw the map from places to samples, and its name."""
    name = str(rng.choice(list(VIEWS), p=list(VIEWS.values())))
    width = sum(2 if kind == RING else 1 for kind in kinds)
    if name == "linear" or width < 2:
        mixed = rng.normal(size=(width, width + int(rng.integers(0, 8))))
        return lambda u: encoded(u, kinds) @ mixed, "linear"
    sizes = {"shear": (0.3, 1.5), "warp": (0.1, 0.45), "network": (0.4, 2.0)}
    return random_map(kinds, (name, float(rng.uniform(*sizes[name]))), rng), name


# Latents, (n, n_latents), from 0 to 1.


def _diffusing(kinds: Kinds, speeds: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    free = rng.random(len(kinds)) + np.cumsum(speeds * rng.normal(size=(n, len(kinds))), axis=0)
    return np.column_stack([folded(t, kind) for t, kind in zip(free.T, kinds, strict=True)])


def _in_potential(
    kinds: Kinds, speeds: np.ndarray, n: int, rng: np.random.Generator, *, wells: bool
) -> np.ndarray:
    """Langevin motion in a double well, or in the middle of a harmonic one."""
    count, u = len(kinds), np.empty((n, len(kinds)))
    # Speeds are those of a free walk along a range of three.
    size = np.minimum(3 * speeds, 0.35)
    barrier = rng.uniform(1, 2.6, size=count)
    at = rng.normal(size=count)
    for t, kick in enumerate(size * rng.normal(size=(n, count))):
        force = -4 * barrier * at * (at**2 - 1) if wells else -4 * at
        at = np.clip(at + size**2 / 2 * force + kick, -2.2, 2.2)
        u[t] = at
    return u / 3 + 0.5


def _with_inertia(kinds: Kinds, speeds: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Steps that remember the last ones, for 2 to 12 frames; circles may drift around."""
    count = len(kinds)
    keep = np.exp(-1 / rng.uniform(2, 12, size=count))
    turn = np.where(np.array(kinds) == RING, rng.choice([0.0, 0.01, 0.03], size=count), 0.0)
    move, moves = np.zeros(count), np.empty((n, count))
    for t, kick in enumerate(rng.normal(size=(n, count))):
        move = keep * move + np.sqrt(1 - keep**2) * kick
        moves[t] = move
    free = rng.random(count) + np.cumsum(speeds * moves + turn, axis=0)
    return np.column_stack([folded(t, kind) for t, kind in zip(free.T, kinds, strict=True)])


def _jumping(kinds: Kinds, speeds: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Places that stay, and are drawn anew now and then, from two to four states."""
    columns = []
    for speed in speeds:
        states = int(rng.integers(2, 5))
        jumps = rng.random(n) < min(0.3, 1.5 * speed)
        state = rng.integers(states, size=n)[np.maximum.accumulate(np.arange(n) * jumps)]
        columns.append((state + 0.5 + 0.08 * rng.normal(size=n)) / states)
    return np.column_stack(columns)


WALKERS: dict[str, Callable[..., np.ndarray]] = {
    "diffusing": _diffusing,
    "wells": partial(_in_potential, wells=True),
    "pulled": partial(_in_potential, wells=False),
    "with inertia": _with_inertia,
    "jumping": _jumping,
}


def coupled(
    name: str, kinds: Kinds, speeds: np.ndarray, n: int, rng: np.random.Generator
) -> np.ndarray:
    """Return two latents that depend on each other."""
    kicks, at, u = rng.normal(size=(n, 2)), rng.random(2) / 2, np.empty((n, 2))
    strength = rng.uniform(0.35, 0.9)
    for t, kick in enumerate(kicks):
        if name == "same noise":
            kick[1] = strength * kick[0] + np.sqrt(1 - strength**2) * kick[1]
        move = speeds * kick
        if name == "speed":
            move[1] *= 1 + strength * (2 * at[0] - 1) * 0.9
        elif name == "drift":
            move[1] += 60 * strength * speeds[1] ** 2 * (at[0] - at[1])
        moved = at + move
        for k, kind in enumerate(kinds):
            moved[k] = moved[k] % 1 if kind == RING else 1 - abs(1 - abs(moved[k]) % 2)
        if name != "triangle" or moved.sum() < 1:
            at = moved
        u[t] = at
    return u
