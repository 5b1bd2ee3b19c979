"""Samples whose noise is known: where each of them lies, given all others.

The density of samples without noise is taken to be that of points, of which each has a weight. What
a sample tells of its point is a Gaussian likelihood, as narrow as its noise; weights of higher
likelihood follow by expectation maximisation, and a denoised sample is the mean of the points given
its likelihood. No shape is assumed: noisy samples of a curve come to lie on a curve.

References
----------
Kiefer and Wolfowitz, 1956; of noise that differs between samples: Soloff, Guntuboyina and Sen,
Multivariate, heteroscedastic empirical Bayes via nonparametric maximum likelihood, 2024.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from manifactor._support.threads import map_panels

# Points that stand for the density, and samples that their weights are learned from.
POINTS, LEARNED = 3000, 6000


@dataclass(frozen=True)
class Told:
    """What samples tell of their points x: ``exp(linear @ x - x @ information @ x / 2)``.

    The likelihood of a sample y with noise of covariance C has the information ``inv(C)`` and is
    linear in ``inv(C) @ y``. A direction that a sample tells nothing of has no information.
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

    def within(self, axes: np.ndarray, others: np.ndarray) -> "Told":
        """Return what is told of coordinates along axes, whatever those along others are.

        Shapes: axes (p, q), others (p, p - q), all orthonormal.
        """
        cross = axes.T @ self.information @ others
        inner = others.T @ self.information @ others
        # A sample may tell nothing of the others.
        weights = cross @ np.linalg.pinv(inner, hermitian=True)
        linear = self.linear @ axes - (weights @ (self.linear @ others)[:, :, None])[:, :, 0]
        return Told(linear, axes.T @ self.information @ axes - weights @ cross.swapaxes(1, 2))

    def about(self, points: np.ndarray) -> "Told":
        """Return what is told of the differences from points, (n, p)."""
        shown = (self.information @ points[:, :, None])[:, :, 0]
        return Told(self.linear - shown, self.information)

    def beyond(self, spread: np.ndarray) -> tuple["Told", np.ndarray]:
        """Return what is told of centres, about which points are normal with a covariance, (p, p).

        Also the log-likelihood of each sample for a centre at 0, over that without a spread, (n,).
        """
        kept = np.linalg.inv(np.eye(len(spread)) + self.information @ spread)
        linear = (kept @ self.linear[:, :, None])[:, :, 0]
        evidence = np.einsum("np,np->n", self.linear @ spread, linear)
        evidence = (evidence + np.linalg.slogdet(kept)[1]) / 2
        return Told(linear, kept @ self.information), evidence

    def covariance(self, before: np.ndarray) -> np.ndarray:
        """Return the mean square of the points, (p, p), one step nearer to the likeliest one."""
        inner = np.linalg.inv(self.information + np.linalg.inv(before))
        mean = (inner @ self.linear[:, :, None])[:, :, 0]
        return (mean.T @ mean + inner.sum(axis=0)) / len(self)

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
    def of(
        cls,
        told: Told,
        samples: np.ndarray,
        *,
        rounds: int = 3,
        passes: int = 2,
        rng: np.random.Generator,
    ) -> "Density":
        """Return a density of high likelihood on points that are near samples, (n, p).

        More rounds of weights make it higher, and gather samples. After each of the passes, points
        are moved to where they lie by themselves.
        """
        some = rng.permutation(len(told))[:LEARNED]
        told, points = told[some], samples[some][:POINTS]
        for _ in range(passes):
            scores = told.scores(points)
            # A sample's own point is where its noise has put it.
            np.fill_diagonal(scores, -np.inf)
            shares = _relative(scores)
            weights = np.full(len(points), 1 / len(points))
            for _ in range(rounds):
                weights *= (1 / (shares @ weights)) @ shares / len(told)
            density = cls(points, weights)
            points = density.means(told[: len(points)])
        return density

    def means(self, told: Told, samples: np.ndarray | None = None) -> np.ndarray:
        """Return where samples lie in the mean, (n, p).

        Where points are further apart than the noise is wide, a sample stays near itself if
        `samples` are given.
        """

        def at(rows: slice) -> np.ndarray:
            scores = self._scores(told[rows])
            if samples is None:
                shares = _relative(scores)
                return shares @ self.points / shares.sum(axis=1, keepdims=True)
            # Each sample is a point for itself, with the weight of a usual one.
            own = np.einsum("np,np->n", told.linear[rows], samples[rows]) / 2
            shares = _relative(np.column_stack([scores, own - np.log(len(self.points))]))
            there = shares[:, :-1] @ self.points + shares[:, -1:] * samples[rows]
            return there / shares.sum(axis=1, keepdims=True)

        return np.concatenate(map_panels(at, len(told), smallest=256, largest=2048))

    def log_likelihood(self, told: Told) -> np.ndarray:
        """Return the logarithm of the likelihood of each sample, (n,)."""
        return logsumexp(self._scores(told), axis=1)

    def _scores(self, told: Told) -> np.ndarray:
        # A sample may be near to points only that no sample was learned from.
        return told.scores(self.points) + np.log(np.maximum(self.weights, 1e-9))


def _relative(scores: np.ndarray) -> np.ndarray:
    """Return likelihoods, (n, m), of which the highest of each sample is 1."""
    scores = scores - scores.max(axis=1, keepdims=True)
    # Numbers below e^-60 slow processors down.
    return np.where(scores > -60, np.exp(np.maximum(scores, -60)), 0)


def denoised(told: Told, samples: np.ndarray, *, rng: np.random.Generator) -> np.ndarray:
    """Return samples, (n, p), without the noise that is known."""
    # With three rounds, circles of 1,000 samples fell into clusters; with two passes, one with
    # noise of half its radius was still a surface.
    return Density.of(told, samples, rounds=1, passes=3, rng=rng).means(told, samples)
