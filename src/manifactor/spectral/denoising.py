"""Samples whose noise is known: where each of them lies, given all others.

The density of samples without noise is taken to be that of points, of which each has a weight. What a
sample tells of its point is a Gaussian likelihood, as narrow as its noise; the weights of greatest
likelihood follow by expectation maximisation, and a denoised sample is the mean of the points given
its likelihood. No shape is assumed: noisy samples of a curve come to lie on a curve.

References
----------
Kiefer and Wolfowitz, 1956; of noise that differs between samples: Soloff, Guntuboyina and Sen,
Multivariate, heteroscedastic empirical Bayes via nonparametric maximum likelihood, 2024.
"""

from dataclasses import dataclass

import numpy as np

from manifactor._support.threads import map_panels

# Points that stand for the density, and samples that their weights are learned from.
POINTS, LEARNED = 3000, 6000
# Rounds of weights, and how often points are moved to where they lie themselves. A circle with noise
# of a fifth of its radius had two more dimensions after 3 rounds, and none after 10; after 30, a few
# points had most of the weight.
ROUNDS, PASSES = 10, 2


@dataclass(frozen=True)
class Told:
    """What samples tell of their points x: likelihoods ``exp(linear @ x - x @ information @ x / 2)``.

    That of a sample y with noise of covariance C has the information ``inv(C)`` and is linear in
    ``inv(C) @ y``. A direction that a sample tells nothing of has no information.
    """

    linear: np.ndarray  # (n, p)
    information: np.ndarray  # (n, p, p)

    def __len__(self) -> int:
        return len(self.linear)

    def __getitem__(self, rows) -> "Told":
        return Told(self.linear[rows], self.information[rows])

    @classmethod
    def by(cls, samples: np.ndarray, covariance: np.ndarray) -> "Told":
        """Return what samples, (n, p), tell, given the covariance of their noise, (n, p, p)."""
        information = np.linalg.inv(covariance)
        return cls((information @ samples[:, :, None])[:, :, 0], information)

    def scores(self, points: np.ndarray) -> np.ndarray:
        """Return the logarithms of the likelihoods at points, (m, p) -> (n, m)."""
        i, j = np.triu_indices(points.shape[1])
        # A product of two coordinates occurs twice in the quadratic form, a square once.
        halves = self.information[:, i, j] * np.where(i == j, 0.5, 1.0)
        return self.linear @ points.T - halves @ (points[:, i] * points[:, j]).T


@dataclass(frozen=True)
class Density:
    """Points, and the weight of each."""

    points: np.ndarray  # (m, p)
    weights: np.ndarray  # (m,)

    @classmethod
    def of(cls, told: Told, samples: np.ndarray, *, rng: np.random.Generator) -> "Density":
        """Return the density of greatest likelihood on points that are near samples, (n, p)."""
        some = rng.permutation(len(told))[:LEARNED]
        told, points = told[some], samples[some][:POINTS]
        for _ in range(PASSES):
            # A sample's own point is where its noise has put it.
            shares = _likelihoods(told, points, without_own=True)
            weights = np.full(len(points), 1 / len(points))
            for _ in range(ROUNDS):
                weights *= (1 / (shares @ weights)) @ shares / len(told)
            density = cls(points, weights)
            points = density.means(told[: len(points)])
        return density

    def means(self, told: Told) -> np.ndarray:
        """Return where samples lie in the mean, (n, p)."""

        def at(rows: slice) -> np.ndarray:
            shares = _likelihoods(told[rows], self.points) * self.weights
            return shares @ self.points / shares.sum(axis=1, keepdims=True)

        return np.concatenate(map_panels(at, len(told), smallest=256, largest=2048))

    def log_likelihood(self, told: Told) -> np.ndarray:
        """Return the logarithm of the likelihood of each sample, (n,)."""
        scores = told.scores(self.points)
        top = scores.max(axis=1)
        return top + np.log(np.exp(scores - top[:, None]) @ self.weights)


def _likelihoods(told: Told, points: np.ndarray, *, without_own: bool = False) -> np.ndarray:
    """Return likelihoods at the points, (n, m), the highest of each sample 1."""
    scores = told.scores(points)
    if without_own:
        np.fill_diagonal(scores, -np.inf)
    scores -= scores.max(axis=1, keepdims=True)
    # Numbers below e^-60 slow processors down.
    return np.where(scores > -60, np.exp(np.maximum(scores, -60)), 0)


def denoised(told: Told, samples: np.ndarray, *, rng: np.random.Generator) -> np.ndarray:
    """Return samples, (n, p), without the noise that is known."""
    return Density.of(told, samples, rng=rng).means(told)
