"""Numbers that speak for or against a product: completeness, leakage, agreement, angles, what is explained."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.decomposition import PCA

from manifactor._support.regression import neighbour_means
from manifactor.factoring.factor import (
    REGRESSION_NEIGHBORS,
    REGRESSION_SAMPLES,
    Factor,
    predictability,
)
from manifactor.factoring.gradients import carre_du_champ
from manifactor.factoring.proposals import Look
from manifactor.factoring.purity import batch_size
from manifactor.spectral.spectrum import Spectrum

MOST_COMPARED = 8  # functions of a factor in the matrix of angles
LOW = 16  # functions that are the low spectrum at least
MOST_MAIN = 20  # principal components that are looked at
MAIN = 0.01  # share of the variance from which on a principal component is a main direction
PERMUTATIONS, SHUFFLED = 199, 5_000  # and the samples that are shuffled, evenly spread
ENOUGH = 20_000  # samples that measures of the whole are taken from, evenly spread
OWN = (
    0.5  # share of a function in the span of a factor's from which on it belongs to it
)
THICK = (
    0.01  # share of the largest variance from which on a direction of the rest counts
)
EDGED = 0.4  # by which a direction's kurtosis lies below a Gaussian's if it has an edge or a hole; an interval's by 1.2


def completeness(spectrum: Spectrum, factors: Sequence[Factor]) -> float:
    """How far pure functions and their products are the low eigenfunctions, no fewer and no more.

    The least of three: the share of low eigenfunctions that lie, for the most part, in the span of the products, and
    the ratio of the numbers of both either way round. On a twisted product the sums of the factors' eigenvalues are
    too many or too few. Low is what lies below the products of the factors' lowest functions, and the first `LOW`
    functions at least: a few pure functions with nothing between them explain only themselves.
    """
    lowest = sorted(factor.eigenvalues[0] for factor in factors)
    top = max(1.1 * sum(lowest[-2:]), spectrum.eigenvalues[:LOW][-1])
    top = min(top, spectrum.eigenvalues[-1] / 1.3)
    thin = _thinned(len(spectrum.weights))
    weights, spectrum_functions = spectrum.weights[thin], spectrum.functions[thin]
    products, total = np.ones((len(weights), 1)), np.zeros(1)
    for factor in factors:
        functions = np.column_stack([np.ones(len(products)), factor.functions[thin]])
        total = (total[:, None] + np.concatenate([[0.0], factor.eigenvalues])).ravel()
        products = (products[:, :, None] * functions[:, None]).reshape(
            len(products), -1
        )[:, total < 1.3 * top]
        total = total[total < 1.3 * top]
    root = np.sqrt(weights / weights.sum())[:, None]
    low = (spectrum.eigenvalues <= top) & (spectrum.eigenvalues > 0)
    if not low.any():
        return 0.0
    ratio = max(1, int((total <= top).sum()) - 1) / low.sum()
    basis = np.linalg.qr(products * root)[0]
    inside = ((basis.T @ (spectrum_functions[:, low] * root)) ** 2).sum(axis=0)
    return float(min((inside > 0.5).mean(), ratio, 1 / ratio))


def leakage(factors: Sequence[Factor]) -> np.ndarray:
    """R^2 with which places on each factor predict each other factor, (n_factors, n_factors), nan on the diagonal."""
    out = np.full((len(factors), len(factors)), np.nan)
    for i, source in enumerate(factors):
        others = [j for j in range(len(factors)) if j != i]
        widths = [factors[j].embedding.shape[1] for j in others]
        columns = predictability(
            source.embedding, np.hstack([factors[j].embedding for j in others])
        )
        out[i, others] = [
            part.mean() for part in np.split(columns, np.cumsum(widths)[:-1])
        ]
    return out


def agreement(full: Look, half: Look) -> float:
    """Smallest share of a factor's lowest functions in the span of the same factor's functions in half of the samples.

    Both ways round, after the best matching of the factors.
    """
    thin = slice(None, None, -(-len(half.part) // SHUFFLED))
    root = np.sqrt(half.geometry.spectrum.weights[thin])[:, None]
    root /= np.linalg.norm(root)
    functions, own = (
        full.geometry.spectrum.functions[half.part[thin], 1:],
        half.geometry.spectrum.functions[thin, 1:],
    )
    whole = [_centred(functions @ block, root) for block in full.blocks]
    parts = [_centred(own @ block, root) for block in half.blocks]
    low = [batch_size(full.geometry.rayleigh(block)) for block in full.blocks]
    low_half = [batch_size(half.geometry.rayleigh(block)) for block in half.blocks]
    shares = np.array(
        [
            [
                min(_share(a[:, :i], b), _share(b[:, :j], a))
                for b, j in zip(parts, low_half, strict=True)
            ]
            for a, i in zip(whole, low, strict=True)
        ]
    )
    return float(shares[linear_sum_assignment(-shares)].min())


def _centred(values: np.ndarray, root: np.ndarray) -> np.ndarray:
    values = (values - (root**2).T @ values) * root
    return values / np.linalg.norm(values, axis=0)


def _share(functions: np.ndarray, others: np.ndarray) -> float:
    """Smallest share of a function in the span of others."""
    return float(
        ((np.linalg.qr(others[:, :8])[0].T @ functions) ** 2).sum(axis=0).min()
    )


def explained(
    factors: Sequence[Factor], samples: np.ndarray | None, inliers: np.ndarray
) -> float:
    """Smallest R^2 with which all factors together predict a main direction of the samples that are no outliers.

    1 where only distances are known. Orthogonal functions of equal variance may stand for samples.
    """
    if samples is None:
        return 1.0
    thin = np.flatnonzero(inliers)[_thinned(int(inliers.sum()))]
    places = np.hstack(
        [
            f.embedding[thin] / (f.embedding.std() * np.sqrt(f.eigenvalues[0]))
            for f in factors
        ]
    )
    samples = samples[thin]
    pca = PCA(min(MOST_MAIN, *samples.shape), svd_solver="auto", random_state=0)
    scores = pca.fit_transform(samples)
    main = scores[:, pca.explained_variance_ratio_ > MAIN]
    return float(predictability(places, main).min(initial=1.0))


def leaves_noise(places: np.ndarray, samples: np.ndarray) -> bool:
    """Whether what places on factors, (n, c), leave of the samples, (n, d), has no edge and no hole, as noise has none.

    Samples are predicted from their neighbours on the factors. A small factor that was missed, an interval, a circle,
    shows in the rest as a direction of low kurtosis: a low eigenvalue of the matrix of fourth moments (Cardoso, 1989).
    At 4,000 samples an interval blurred by noise of a quarter of its width looks like noise, and noise of ten and more
    directions, whose lowest eigenvalue is low by chance, may look like a factor.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> line = rng.uniform(size=(2000, 1))
    >>> noise, strip = 0.1 * rng.normal(size=(2000, 1)), 0.3 * rng.uniform(size=(2000, 1))
    >>> leaves_noise(line, np.hstack([line, noise])), leaves_noise(line, np.hstack([line, strip]))
    (True, False)
    """
    thin = slice(None, None, -(-len(samples) // REGRESSION_SAMPLES))
    places, samples = places[thin], samples[thin]
    rest = samples - neighbour_means(
        places, min(REGRESSION_NEIGHBORS, len(places) - 1)
    )(samples)
    left, strength, _ = np.linalg.svd(rest - rest.mean(axis=0), full_matrices=False)
    if strength[0] <= 1e-9 * np.linalg.norm(samples - samples.mean(axis=0)):
        return True  # nothing is left
    white = left[:, strength**2 > THICK * strength[0] ** 2] * np.sqrt(len(left))
    fourth = (white * (white**2).sum(axis=1, keepdims=True)).T @ white / len(white)
    return bool(
        np.linalg.eigvalsh(fourth)[0] > white.shape[1] + 2 - EDGED
    )  # p + 2 for a Gaussian of p directions


def dependence(factors: Sequence[Factor], *, rng: np.random.Generator) -> float:
    """Permutation p-value of independent places: squared correlations between features of the factors' places."""
    thin = slice(None, None, -(-len(factors[0].embedding) // SHUFFLED))
    first, *others = (_features(factor.embedding[thin]) for factor in factors)

    def statistic(shuffled):
        features = [first, *shuffled]
        return sum(
            ((a.T @ b) ** 2).sum() for i, a in enumerate(features) for b in features[:i]
        )

    seen = statistic(others)
    chance = [
        statistic([f.take(rng.permutation(len(f)), axis=0) for f in others])
        for _ in range(PERMUTATIONS)
    ]
    return (1 + sum(value >= seen for value in chance)) / (1 + PERMUTATIONS)


def _thinned(n_samples: int) -> slice:
    """Evenly spread samples, enough of them."""
    return slice(None, None, -(-n_samples // ENOUGH))


def _features(places: np.ndarray) -> np.ndarray:
    """Places and their squares and products, centred and made orthonormal."""
    i, j = np.triu_indices(places.shape[1])
    scaled = (places - places.mean(axis=0)) / places.std()
    features = np.column_stack([scaled, scaled[:, i] * scaled[:, j]])
    left, strength, _ = np.linalg.svd(
        features - features.mean(axis=0), full_matrices=False
    )
    return left[:, strength > 1e-3 * strength[0]]


def owners(spectrum: Spectrum, factors: Sequence[Factor]) -> np.ndarray:
    """The factor that each of the spectrum's functions belongs to for the most part, -1 where there is none.

    Factors that were found by deflation have functions of their own, and own none.
    """
    shares = np.zeros((len(factors), len(spectrum.eigenvalues)))
    for share, factor in zip(shares, factors, strict=True):
        share[: len(factor.coefficients)] = (factor.coefficients**2).sum(axis=1)
    return np.where(shares.max(axis=0) > OWN, shares.argmax(axis=0), -1)


def angles(spectrum: Spectrum, blocks: Sequence[np.ndarray]) -> np.ndarray:
    """Mean squared cosines between the gradients of combinations of functions, block after block, (r, r).

    0 where two functions belong to different factors of a product, 1 where their gradients are parallel.
    """
    thin = _thinned(len(spectrum.weights))
    weights = spectrum.weights[thin] / spectrum.weights[thin].sum()
    some = replace(
        spectrum, functions=spectrum.functions[thin], weights=weights, resident=None
    )
    champ = carre_du_champ(some, np.hstack(blocks))
    energy = np.einsum("xaa->xa", champ)
    across = np.einsum("x,xab->ab", weights, champ**2)
    return np.clip(
        across / np.maximum((energy * weights[:, None]).T @ energy, 1e-300), 0, 1
    )


def angle_matrix(
    spectrum: Spectrum, factors: Sequence[Factor]
) -> tuple[np.ndarray, list[int]]:
    """`angles` of the lowest functions of every factor, and how many of each; empty where they have none."""
    blocks = [
        factor.coefficients[:, :MOST_COMPARED]
        for factor in factors
        if len(factor.coefficients)
    ]
    return angles(spectrum, blocks) if blocks else np.zeros((0, 0)), [
        block.shape[1] for block in blocks
    ]
