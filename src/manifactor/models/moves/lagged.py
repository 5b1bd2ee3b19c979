"""The operator of lagged pairs: which functions of the samples last, and for how long.

f is an eigenfunction of a process if the mean of f(x'), a lag after x, is mu f(x); its rate is
-log(mu) over the lag. Of independent processes, products of functions are eigenfunctions and rates
add up. Functions are sought among those of a walk, by all pairs (Noe and Nueske, 2013).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from sklearn.utils import gen_batches

from manifactor._support.errors import NothingFoundError
from manifactor._support.parameters import Choice
from manifactor._support.stages import Stages
from manifactor.models.moves.paths import Moves, Pairs
from manifactor.operators.laplacian import Spectrum
from manifactor.operators.neighbors import nearest_point
from manifactor.operators.operator import Basis, DiffusionSettings, LaggedPart, Operator
from manifactor.operators.pipeline import diffuse
from manifactor.statistics import inverse_root

# Functions of the walk at most: with 100, the ends of intervals behind a strong warp were blurred;
# with 250, no better than with 200. Pairs for each of them at least.
MOST_IN_BASIS = 200
PAIRS_PER_FUNCTION = 25
# Functions of the operator that are kept at most.
MOST_SLOW = 40
# Samples of a trajectory follow each other, so that halves are made of blocks of pairs.
BLOCKS = 40


def diffuse_moves(
    X: np.ndarray,
    settings: DiffusionSettings,
    moves: Moves | None,
    *,
    choices: Mapping[str, Choice] | None = None,
    stages: Stages | None = None,
    rng: np.random.Generator,
) -> Operator:
    """Return the operator of samples, by their moves where these are known; see `diffuse`."""
    choices = dict(choices or {})
    if isinstance(moves, Pairs):
        if settings.n_functions == "auto":
            count = min(MOST_IN_BASIS, len(X) // 8, len(moves.before) // PAIRS_PER_FUNCTION)
            choices["functions"] = Choice(max(count, 3), "a basis for the operator of pairs")
        if settings.density_correction == DiffusionSettings.density_correction:
            # Tails of wells then have no functions of their own.
            settings = replace(settings, density_correction=0.5)
    return in_pairs(diffuse(X, settings, moves=moves, choices=choices, stages=stages, rng=rng))


def in_pairs(diffusion: Operator) -> Operator:
    """Return the same with the functions of the operator of its pairs, if it has any.

    They are made of the functions of the walk.
    """
    pairs = diffusion.path
    if not isinstance(pairs, Pairs):
        return diffusion
    basis, n = diffusion.distinct, len(diffusion.graph.distinct)
    nearest = nearest_point(diffusion.samples)

    def extended(X: np.ndarray) -> np.ndarray:
        # Samples far from all of the fit lie where the nearest one lies.
        distance, index = nearest(X)
        far = (distance > diffusion.reach)[:, None]
        return diffusion.extended(np.where(far, diffusion.samples[index], X))

    ends = [
        np.concatenate([extended(each[rows]) for rows in gen_batches(len(each), 5000)])
        for each in (pairs.before, pairs.after)
    ]
    copies = diffusion.graph.multiplicity
    half = np.arange(len(pairs.before)) * BLOCKS // len(pairs.before) % 2
    of_half = np.random.default_rng(0).permutation(n) % 2
    whole, coefficients = _part(basis, copies, np.arange(n), ends)
    halves = [
        _part(basis, copies, np.flatnonzero(of_half == k), [end[half == k] for end in ends])[0]
        for k in (0, 1)
    ]
    count = len(whole.spectrum.eigenvalues)
    least = _chance(len(coefficients), len(pairs.before))
    functions = Choice(count, f"those with mu above chance, {least:.2f}, {MOST_SLOW} at most")
    density = Choice(diffusion.settings.density_correction, "samples are as dense as the process")
    return replace(
        diffusion,
        distinct=whole.spectrum,
        parts=(),
        basis=Basis(basis, coefficients),
        lagged=(whole, *(half for half in halves if len(half.spectrum.eigenvalues) > 3)),
        choices={**diffusion.choices, "functions": functions, "density correction": density},
    )


def _chance(n_functions: int, n_pairs: int) -> float:
    """Return about the mu that functions of unrelated pairs have by chance."""
    return float(np.sqrt(n_functions / n_pairs))


def _part(
    basis: Spectrum, copies: np.ndarray, rows: np.ndarray, ends: Sequence[np.ndarray]
) -> tuple[LaggedPart, np.ndarray]:
    """Return functions of the operator of some pairs at some samples, and their coefficients."""
    now, then = ends
    size = (now.T @ now + then.T @ then) / (2 * len(now))
    change = (then - now).T @ (then - now) / (2 * len(now))
    root = inverse_root(size, 1e-6)
    lost, modes = np.linalg.eigh(root.T @ change @ root)
    kept = np.flatnonzero(1 - lost > _chance(len(size), len(now)))[:MOST_SLOW]
    mu, coefficients = np.minimum(1 - lost[kept], 1.0), (root @ modes)[:, kept]
    # Those of unrelated pairs have up to sqrt(2) times that.
    if len(mu) < 3 or mu[1] < 1.6 * _chance(len(size), len(now)):
        raise NothingFoundError(
            "pairs must show functions that last for a lag, and show none: what follows a sample "
            "does not depend on it. Give pairs a shorter lag apart."
        )
    constant = np.eye(len(coefficients))[:, 0] / basis.functions[0, 0]
    coefficients[:, 0], mu[0] = constant, 1.0
    # Orthonormal at the samples, the slowest first, so that products have the right coefficients.
    weights = copies[rows] / copies[rows].sum()
    functions = basis.functions[rows] @ coefficients
    gram = functions.T @ (weights[:, None] * functions)
    lower = np.linalg.cholesky(gram + 1e-9 * np.eye(len(gram)))
    coefficients = np.linalg.solve(lower, coefficients.T).T
    # In units of the lag, twice the rate: as where latents diffuse by 1 in each unit.
    eigenvalues = -2 * np.log(mu)
    before = now @ coefficients
    spectrum = Spectrum(
        eigenvalues,
        basis.functions[rows] @ coefficients,
        weights,
        np.zeros(len(mu)),
        0.5 / eigenvalues[-1],
        Choice("dense", "few functions of lagged pairs"),
    )
    return LaggedPart(rows, spectrum, before, then @ coefficients - mu * before), coefficients
