"""Which motions the principal coordinates of particles show, beyond their noise.

Factors of denoised coordinates, a circle and an interval are proposed: maps from places on motions
to coordinates, learned from one half of the particles. A proposal is right if it tells of the other
half what a density without any shape tells of them. Without a motion that is there, it tells less.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np
from sklearn.base import clone

from manifactor._support.errors import NothingFoundError
from manifactor.cryoem.all_views.motions import Motions
from manifactor.cryoem.all_views.placing import even_places
from manifactor.cryoem.all_views.regression import FeatureMoments
from manifactor.estimators import ManifoldFactorizer
from manifactor.estimators.factorizer import fit_quietly
from manifactor.runs.landscape import LEVELS
from manifactor.samples.likelihood import Density, GaussianLikelihood


@dataclass(frozen=True)
class Shape:
    """Motions, and the coordinates of particles as functions of places on them."""

    motions: Motions
    coefficients: np.ndarray  # (n_features, rank)
    # (rank, rank): covariance of coordinates about these, such as by errors of poses
    spread: np.ndarray

    @classmethod
    def learn(
        cls, seen: GaussianLikelihood, motions: Motions, rows: np.ndarray, places: np.ndarray
    ) -> "Shape":
        """Learn from particles, starting with the places of some, (n_rows, n_motions)."""
        known = FeatureMoments.known(motions.features(places))
        spread = 0.01 * np.eye(seen.linear.shape[1])
        shape = cls(motions, _solved(seen[rows], known.mean, known.products), spread)
        # Eight rounds were no better for places on a circle at a signal to noise of .02.
        for _ in range(4):
            apart = seen.of_centres(spread)[0]
            _, mean, products = motions.expected(apart.of_combinations(shape.coefficients))
            coefficients = _solved(apart, mean, products)
            rest = seen.about(mean @ coefficients)
            for _ in range(5):
                spread = rest.spread(spread)
            shape = cls(motions, coefficients, spread)
        return shape

    def log_likelihood(self, seen: GaussianLikelihood) -> np.ndarray:
        """Return the logarithm of the likelihood of each particle, (n,)."""
        apart, evidence = seen.of_centres(self.spread)
        return self.motions.expected(apart.of_combinations(self.coefficients))[0] + evidence

    def coordinates(self, seen: GaussianLikelihood) -> np.ndarray:
        """Return the coordinates of particles at their places, (n, rank)."""
        apart = seen.of_centres(self.spread)[0].of_combinations(self.coefficients)
        return self.motions.features(self.motions.posterior(apart)[0]) @ self.coefficients


def _solved(seen: GaussianLikelihood, features: np.ndarray, products: np.ndarray) -> np.ndarray:
    """Return coefficients, (n_features, rank), given means of features and of their products."""
    # Coordinates have unit variance: that of each coefficient is 1 before any particle is seen.
    n, m = features.shape
    rank = seen.linear.shape[1]
    left = products.reshape(n, -1).T @ seen.precision.reshape(n, -1)
    left = left.reshape(m, m, rank, rank).transpose(0, 2, 1, 3).reshape(m * rank, m * rank)
    right = (features.T @ seen.linear).ravel()
    return np.linalg.solve(left + np.eye(m * rank), right).reshape(m, rank)


@dataclass(frozen=True)
class Judge:
    """Half of some particles to learn from, and the other half to be told of."""

    seen: GaussianLikelihood
    samples: np.ndarray  # (n, rank): principal coordinates
    rows: np.ndarray  # (n_rows,): particles of which places are proposed
    rng: np.random.Generator

    @cached_property
    def _halves(self) -> tuple[np.ndarray, np.ndarray]:
        others = np.setdiff1d(np.arange(len(self.seen)), self.rows)
        chosen = np.concatenate([self.rows, self.rng.permutation(others)])[:8000]
        order = self.rng.permutation(chosen)
        return order[::2], order[1::2]

    @cached_property
    def without_shape(self) -> np.ndarray:
        """What a density without shape tells of each particle of the second half."""
        first, second = self._halves
        density = Density.of(self.seen[first], self.samples[first], rounds=10, rng=self.rng)
        return density.log_likelihood(self.seen[second])

    def share(self, motions: Motions, places: np.ndarray) -> tuple[float, float, float]:
        """Return what a shape tells, over what a density without shape does, and its error.

        Last comes the same share if nothing spreads about the shape.
        """
        first, second = self._halves
        number = np.full(len(self.seen), -1)
        number[first] = np.arange(len(first))
        own = number[self.rows] >= 0
        shape = Shape.learn(self.seen[first], motions, number[self.rows[own]], places[own])
        bare = replace(shape, spread=np.zeros_like(shape.spread))
        told, alone = (each.log_likelihood(self.seen[second]) for each in (shape, bare))
        most, apart = self.without_shape.mean(), told - self.without_shape
        error = apart.std() / np.sqrt(len(apart)) / abs(most)
        return float(told.mean() / most), float(error), float(alone.mean() / most)


def finest(topologies: tuple[str, ...], n_particles: int) -> Motions:
    """Return motions with as many functions as so many particles tell."""
    motions, most = Motions(topologies), n_particles / 25
    while (more := motions.grow()) != motions and more.features(
        np.zeros((1, len(topologies)))
    ).shape[1] <= most:
        motions = more
    return motions


def find_shapes(
    seen: GaussianLikelihood,
    samples: np.ndarray,
    rows: np.ndarray,
    fit: ManifoldFactorizer,
    scale: np.ndarray,
    *,
    rng: np.random.Generator,
) -> Iterator[Shape]:
    """Yield the motions that coordinates show, those that tell most first.

    `fit` has factored some `rows` of the `samples` without noise, in units of `scale`, (rank,).
    """
    judge, right, most, spread = Judge(seen, samples, rows, rng), [], 0.0, 0.0
    if judge.without_shape.mean() <= 0:
        return
    for topologies, places in _proposals(fit, samples[rows] * scale):
        motions = finest(topologies, len(seen))
        share, error, alone = judge.share(motions, places)
        # The first of those that tell as much is the simplest. If nothing spreads about a shape,
        # poses 3 degrees off leave .95 to .96 of what a density tells.
        if alone > 0.94 and share > most + 2 * error:
            right.append((motions, places))
            most, spread = share, share - alone
        # Of few particles, a density without shape tells little. What spreads may be a motion.
        if most > 1 - 3 * error and max(error, spread) < 0.005:
            break
    for motions, places in reversed(right):
        yield Shape.learn(seen[rows], motions, np.arange(len(rows)), places)


def _proposals(
    fit: ManifoldFactorizer, noisy: np.ndarray
) -> Iterator[tuple[tuple[str, ...], np.ndarray]]:
    """Yield topologies and places of fitted coordinates, `noisy` as they were, one motion first."""
    asked, samples = fit.n_factors, fit.diffusion_.samples
    if asked in ("auto", 1):
        yield ("interval",), even_places(samples[:, 0])[:, None]
        if samples.shape[1] > 1:
            around = (samples - samples.mean(axis=0)) / samples.std(axis=0)
            angle = np.arctan2(around[:, 1], around[:, 0])
            yield ("circle",), (angle / (2 * np.pi) % 1)[:, None]
    yield from _of(fit)
    # Parts that move by themselves add up, which a few noisy samples show best.
    counts = (2, 3) if asked == "auto" else (asked,)
    methods = dict.fromkeys(["sum", fit.method])
    for count, method, each in product(counts, methods, [samples, noisy]):
        if 1 < count <= samples.shape[1]:
            other = clone(fit).set_params(n_factors=count, method=method)
            with suppress(NothingFoundError):
                yield from _of(fit_quietly(other, each)[0])


def _of(fit: ManifoldFactorizer) -> Iterator[tuple[tuple[str, ...], np.ndarray]]:
    topologies = tuple(factor.topology for factor in fit.factors_)
    if set(topologies) <= set(LEVELS):
        yield topologies, np.column_stack([even_places(f.coordinate) for f in fit.factors_])
