"""The methods that the accuracy benchmark compares, all called in the same way.

Each takes the samples, the true factors (of which it may use the number only) and a seed, and
returns the recovered factors and the verdict; "" where it gives no verdict.
"""

from collections.abc import Callable, Sequence

import numpy as np
from sklearn.decomposition import PCA, FastICA
from sklearn.manifold import LocallyLinearEmbedding

from manifactor.estimators import DiffusionMap, ManifoldFactorizer

Recovered = tuple[list[np.ndarray], str]
Method = Callable[[np.ndarray, Sequence[np.ndarray], int], Recovered]


def by_gradients(X: np.ndarray, truth: Sequence[np.ndarray], seed: int) -> Recovered:
    """Factor with default arguments: nothing is set by hand."""
    return _factored(X, seed)


def by_triplets(X: np.ndarray, truth: Sequence[np.ndarray], seed: int) -> Recovered:
    """Factor with the paper's algorithm, which must be told the number of factors."""
    return _factored(X, seed, method="triplets", n_factors=len(truth))


def by_sum(X: np.ndarray, truth: Sequence[np.ndarray], seed: int) -> Recovered:
    """Factor samples that are a sum of one function of each factor."""
    return _factored(X, seed, method="sum")


def by_pca(X: np.ndarray, truth: Sequence[np.ndarray], seed: int) -> Recovered:
    """Take each of the leading principal components as a factor."""
    return _columns(PCA(len(truth)).fit_transform(X))


def by_ica(X: np.ndarray, truth: Sequence[np.ndarray], seed: int) -> Recovered:
    """Take each independent component of the data as a factor."""
    return _columns(FastICA(len(truth), random_state=seed).fit_transform(X))


def by_diffusion_and_ica(X: np.ndarray, truth: Sequence[np.ndarray], seed: int) -> Recovered:
    """Take each independent component of the diffusion coordinates as a factor."""
    # One function more than there are factors: the first one is constant.
    embedding = DiffusionMap(len(truth) + 1, random_state=seed, n_jobs=1)
    return by_ica(embedding.fit_transform(X), truth, seed)


def by_hessian_and_ica(X: np.ndarray, truth: Sequence[np.ndarray], seed: int) -> Recovered:
    """Unroll flat boxes by Hessian eigenmaps and find the sides by ICA.

    For boxes this is the strongest of the cheap baselines.
    """
    d = len(truth)
    # The local quadratic fits have d (d + 3) / 2 coefficients besides the constant, and need more
    # neighbours than that.
    unrolling = LocallyLinearEmbedding(
        n_neighbors=d * (d + 3) // 2 + 12,
        n_components=d,
        method="hessian",
        # scikit-learn's documentation calls ARPACK unstable on such singular matrices.
        eigen_solver="dense",
        random_state=seed,
    )
    return by_ica(unrolling.fit_transform(X), truth, seed)


def _factored(X: np.ndarray, seed: int, **parameters) -> Recovered:
    # One thread: the benchmark runs a process for each core already.
    fit = ManifoldFactorizer(random_state=seed, n_jobs=1, **parameters).fit(X)
    return [factor.embedding for factor in fit.factors_], fit.verdict_


def _columns(values: np.ndarray) -> Recovered:
    return [column[:, None] for column in values.T], ""


# The names appear in the table's groups.
BASELINES: dict[str, Method] = {
    "triplets": by_triplets,
    "ica": by_ica,
    "diffusion + ica": by_diffusion_and_ica,
    "hessian lle + ica": by_hessian_and_ica,
    "pca": by_pca,
}
METHODS: dict[str, Method] = {"gradients": by_gradients, "sum": by_sum, **BASELINES}
