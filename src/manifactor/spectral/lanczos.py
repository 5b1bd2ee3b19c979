"""The density of a matrix's spectrum, from Lanczos processes of random vectors."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.linalg import eigh_tridiagonal

from manifactor.spectral.operators import Operator


@dataclass(frozen=True)
class DensitySettings:
    """Settings of `spectral_density`."""

    # Random vectors. The standard error of a count of eigenvalues is about sqrt(2 * count /
    # probes).
    probes: int = 8

    # Lanczos steps with each vector, before the density is looked at for the first time and every
    # further time, and in all.
    steps: int = 40
    most_steps: int = 200

    # Quadrature nodes above the level in question that each probe must have on average; with fewer
    # the density is not resolved there.
    resolved_nodes: int = 6


def spectral_density(
    operator: Operator,
    count: float,
    *,
    rng: Generator,
    settings: DensitySettings = DensitySettings(),
) -> tuple[np.ndarray, np.ndarray]:
    """Estimate how many eigenvalues lie above a level.

    Every random vector's Lanczos process is a Gauss quadrature of the spectrum's density (Lin, Saad
    and Yang, 2016).

    Returns values (n_nodes,), counts (n_nodes,).
    """
    process = _Lanczos.started(operator, settings.probes, rng)
    while True:
        process.advance(settings.steps)
        values, weights = process.quadrature()
        # Half of a node's own weight lies above it.
        above = np.cumsum(weights) - weights / 2
        counts = above * operator.n / settings.probes
        n_nodes = (counts < count).sum()
        resolved = n_nodes >= settings.resolved_nodes * settings.probes
        if resolved or process.n_steps >= settings.most_steps:
            return values, counts


class _Lanczos:
    """Lanczos processes of several vectors, one beside the other.

    Vectors are not orthogonalised again: that multiplies nodes, but leaves the sums of their
    weights, which are all that counts here.
    """

    def __init__(self, operator: Operator, block: Any, norm: Any) -> None:
        self.operator = operator
        self.now, self.before = block, 0 * block
        self.beta = 0 * norm
        self.alphas: list[Any] = []
        self.betas: list[Any] = []

    @classmethod
    def started(cls, operator: Operator, width: int, rng: Generator) -> "_Lanczos":
        """Start from random unit vectors."""
        block = operator.random(width, rng)
        norm = operator.dots(block, block) ** 0.5
        operator.scale(block, 1 / norm)
        return cls(operator, block, norm)

    @property
    def n_steps(self) -> int:
        """Number of steps taken."""
        return len(self.alphas)

    def advance(self, steps: int) -> None:
        """Take some steps of the three-term recurrence."""
        operator = self.operator
        for _ in range(steps):
            after = operator.product(self.now)
            alpha = operator.dots(self.now, after)
            operator.add(after, self.now, -alpha)
            operator.add(after, self.before, -self.beta)
            # An invariant subspace ends a process with a norm of 0.
            square = operator.dots(after, after)
            self.beta = square.clip(1e-30) ** 0.5
            operator.scale(after, 1 / self.beta)
            self.alphas.append(alpha)
            self.betas.append(self.beta)
            self.before, self.now = self.now, after

    def quadrature(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the nodes of all processes, descending, and their weights."""
        diagonals = self.operator.stacked(self.alphas)
        beside = self.operator.stacked(self.betas)[:-1]
        nodes, weights = [], []
        for alpha, beta in zip(diagonals.T, beside.T, strict=True):
            # Weights of a Gauss quadrature are squared first components.
            values, vectors = eigh_tridiagonal(alpha, beta)
            nodes.append(values)
            weights.append(vectors[0] ** 2)
        all_nodes = np.concatenate(nodes)
        all_weights = np.concatenate(weights)
        order = np.argsort(-all_nodes)
        return all_nodes[order], all_weights[order]
