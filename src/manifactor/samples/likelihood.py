"""Samples whose noise is known: where each of them lies, given all others.

The density of samples without noise is that of weighted points, fitted by expectation maximisation
(Kiefer and Wolfowitz, 1956; Soloff, Guntuboyina and Sen, 2024). What a sample says of its point is
a Gaussian likelihood, and a denoised sample is the mean of the points given its likelihood. No
shape is assumed: noisy samples of a curve come to lie on a curve.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from manifactor._support.threads import map_panels

# Points that stand for the density, and samples that their weights are learned from.
POINTS, LEARNED = 3000, 6000


@dataclass(frozen=True)
class GaussianLikelihood:
    """What samples say of points x: ``exp(linear @ x - x @ precision @ x / 2)``.

    A sample y with noise of covariance C has the precision ``inv(C)`` and is linear in
    ``inv(C) @ y``. The precision is 0 in a direction of which a sample says nothing.
    """

    linear: np.ndarray  # (n, p)
    precision: np.ndarray  # (n, p, p)

    def __len__(self) -> int:
        return len(self.linear)

    def __getitem__(self, rows) -> "GaussianLikelihood":
        return GaussianLikelihood(self.linear[rows], self.precision[rows])

    @classmethod
    def of_samples(cls, samples: np.ndarray, covariance: np.ndarray) -> "GaussianLikelihood":
        """Return the likelihood of samples, (n, p), with noise of this covariance, (n, p, p)."""
        precision = np.linalg.inv(covariance)
        return cls(_times(precision, samples), precision)

    def of_combinations(self, axes: np.ndarray) -> "GaussianLikelihood":
        """Return the likelihood of the coordinates z of points ``x = z @ axes``."""
        return GaussianLikelihood(self.linear @ axes.T, axes @ (self.precision @ axes.T))

    def marginal(self, axes: np.ndarray, others: np.ndarray) -> "GaussianLikelihood":
        """Return the likelihood of coordinates along axes, (q, p), whatever those along others are.

        All axes are orthonormal.
        """
        along, beside = self.of_combinations(axes), self.of_combinations(others)
        cross = axes @ self.precision @ others.T
        # A sample may say nothing of the others.
        weights = cross @ np.linalg.pinv(beside.precision, hermitian=True)
        linear = along.linear - _times(weights, beside.linear)
        return GaussianLikelihood(linear, along.precision - weights @ cross.swapaxes(1, 2))

    def about(self, points: np.ndarray) -> "GaussianLikelihood":
        """Return the likelihood of the differences from points, (n, p)."""
        return GaussianLikelihood(self.linear - _times(self.precision, points), self.precision)

    def of_centres(self, spread: np.ndarray) -> tuple["GaussianLikelihood", np.ndarray]:
        """Return the likelihood of centres of points that are normal with a covariance, (p, p).

        Also the log-likelihood of each sample for a centre at 0, over that without a spread, (n,).
        """
        kept = np.linalg.inv(np.eye(len(spread)) + self.precision @ spread)
        linear = _times(kept, self.linear)
        evidence = np.einsum("np,np->n", self.linear @ spread, linear)
        evidence = (evidence + np.linalg.slogdet(kept)[1]) / 2
        return GaussianLikelihood(linear, kept @ self.precision), evidence

    def posterior(self, prior: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return means and covariances of points, normal about 0 with a precision, (p, p)."""
        covariance = np.linalg.inv(self.precision + prior)
        return _times(covariance, self.linear), covariance

    def spread(self, before: np.ndarray) -> np.ndarray:
        """Return the mean square of the points, (p, p), one step nearer to the likeliest one."""
        mean, covariance = self.posterior(np.linalg.inv(before))
        return (mean.T @ mean + covariance.sum(axis=0)) / len(self)

    def scores(self, points: np.ndarray) -> np.ndarray:
        """Return the logarithms of the likelihoods at points, (m, p) -> (n, m)."""
        i, j = np.triu_indices(points.shape[1])
        # A product of two coordinates occurs twice in the quadratic form, a square once.
        halves = self.precision[:, i, j] * np.where(i == j, 0.5, 1.0)
        return self.linear @ points.T - halves @ (points[:, i] * points[:, j]).T


def _times(matrices: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Return the products of a matrix and a vector for each sample."""
    return (matrices @ vectors[:, :, None])[:, :, 0]


def mixture_weights(shares: np.ndarray, weights: np.ndarray, rounds: int) -> np.ndarray:
    """Return weights of components, (m,), of higher likelihood, by expectation maximisation.

    `shares` are likelihoods, (n, m), each sample's in a unit of its own.
    """
    for _ in range(rounds):
        weights = weights * ((1 / (shares @ weights)) @ shares / len(shares))
    return weights


@dataclass(frozen=True)
class Density:
    """Points, and the weight of each."""

    points: np.ndarray  # (m, p)
    weights: np.ndarray  # (m,)

    @classmethod
    def of(
        cls,
        likelihood: GaussianLikelihood,
        samples: np.ndarray,
        *,
        rounds: int = 3,
        passes: int = 2,
        rng: np.random.Generator,
    ) -> "Density":
        """Return a density of high likelihood on points that are near samples, (n, p).

        More rounds of weights make it higher, and gather samples. Points move after each pass.
        """
        some = rng.permutation(len(likelihood))[:LEARNED]
        likelihood, points = likelihood[some], samples[some][:POINTS]
        for _ in range(passes):
            scores = likelihood.scores(points)
            # A sample's own point is where its noise has put it.
            np.fill_diagonal(scores, -np.inf)
            even = np.full(len(points), 1 / len(points))
            density = cls(points, mixture_weights(_relative(scores), even, rounds))
            points = density.means(likelihood[: len(points)])
        return density

    def means(
        self, likelihood: GaussianLikelihood, samples: np.ndarray | None = None
    ) -> np.ndarray:
        """Return where samples lie in the mean, (n, p).

        Where points are further apart than the noise is wide, a sample stays near itself if
        `samples` are given.
        """

        def at(rows: slice) -> np.ndarray:
            scores = self._scores(likelihood[rows])
            if samples is None:
                shares = _relative(scores)
                return shares @ self.points / shares.sum(axis=1, keepdims=True)
            # Each sample is a point for itself, with the weight of a usual one.
            own = np.einsum("np,np->n", likelihood.linear[rows], samples[rows]) / 2
            shares = _relative(np.column_stack([scores, own - np.log(len(self.points))]))
            there = shares[:, :-1] @ self.points + shares[:, -1:] * samples[rows]
            return there / shares.sum(axis=1, keepdims=True)

        return np.concatenate(map_panels(at, len(likelihood), smallest=256, largest=2048))

    def log_likelihood(self, likelihood: GaussianLikelihood) -> np.ndarray:
        """Return the logarithm of the likelihood of each sample, (n,)."""
        return logsumexp(self._scores(likelihood), axis=1)

    def _scores(self, likelihood: GaussianLikelihood) -> np.ndarray:
        # A sample may be near to points only that no sample was learned from.
        return likelihood.scores(self.points) + np.log(np.maximum(self.weights, 1e-9))


def _relative(scores: np.ndarray) -> np.ndarray:
    """Return likelihoods, (n, m), of which the highest of each sample is 1."""
    scores = scores - scores.max(axis=1, keepdims=True)
    # Numbers below e^-60 slow processors down.
    return np.where(scores > -60, np.exp(np.maximum(scores, -60)), 0)


def denoise(
    likelihood: GaussianLikelihood, samples: np.ndarray, *, rng: np.random.Generator
) -> np.ndarray:
    """Return samples, (n, p), without the noise that is known."""
    # With three rounds, circles of 1,000 samples fell into clusters; with two passes, one with
    # noise of half its radius was still a surface.
    return Density.of(likelihood, samples, rounds=1, passes=3, rng=rng).means(likelihood, samples)
