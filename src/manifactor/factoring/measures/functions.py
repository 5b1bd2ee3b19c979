"""Measures of the factors' functions: are they those of a product?"""

from collections.abc import Sequence

import numpy as np
from scipy.optimize import linear_sum_assignment

from manifactor._support.threads import map_threads
from manifactor.factoring.factors.factor import Factor
from manifactor.factoring.gradients.division import Split, excess_in_halves
from manifactor.factoring.gradients.peeling import Look
from manifactor.factoring.gradients.purity import batch_size, impurity
from manifactor.factoring.measures import Measurement
from manifactor.factoring.prediction import thinned
from manifactor.spectral.spectrum import Spectrum

# Products are taken up to this ratio above the low spectrum, and the spectrum must reach as far: an
# eigenfunction is a mixture of products a little above and below.
PRODUCT_MARGIN = 1.3


def completeness(spectrum: Spectrum, factors: Sequence[Factor]) -> float:
    """Return how far pure functions and their products are the low eigenfunctions.

    The least of three numbers: the share of low eigenfunctions that lie, for the most part, in the
    span of the products, and the ratio of the numbers of both either way round. On a twisted
    product the sums of the factors' eigenvalues are too many or too few. Low is what lies below the
    products of the factors' lowest functions, and the first 16 functions at least.
    """
    top = _top_of_low_spectrum(spectrum, factors)
    low = (spectrum.eigenvalues <= top) & (spectrum.eigenvalues > 0)
    if not low.any():
        return 0.0
    # The error of a share is below 1/sqrt(20,000) = .007.
    thin = thinned(len(spectrum.weights), 20_000)
    weights = spectrum.weights[thin]
    root = np.sqrt(weights / weights.sum())[:, None]
    # Orthonormal under the weights, so that squared coefficients are shares.
    products, sums = _products_below(factors, PRODUCT_MARGIN * top, thin)
    basis = np.linalg.qr(products * root)[0]
    low_functions = spectrum.functions[thin][:, low]
    # A repeated eigenvalue mixes functions, but not the span of the products.
    inside = ((basis.T @ (low_functions * root)) ** 2).sum(axis=0)
    # The constant function is a product of constants, but not a low eigenfunction.
    ratio = max(1, int((sums <= top).sum()) - 1) / low.sum()
    return float(min((inside > 0.5).mean(), ratio, 1 / ratio))


def _top_of_low_spectrum(spectrum: Spectrum, factors: Sequence[Factor]) -> float:
    """Largest eigenvalue of the low spectrum."""
    lowest = sorted(factor.eigenvalues[0] for factor in factors)
    # Above the products of the factors' lowest functions, with room for the error of an eigenvalue.
    above_products = 1.1 * sum(lowest[-2:])
    # A few pure functions without any product between them would explain only themselves.
    above_few = spectrum.eigenvalues[:16][-1]
    reach = spectrum.eigenvalues[-1] / PRODUCT_MARGIN
    return min(max(above_products, above_few), reach)


def _products_below(
    factors: Sequence[Factor], limit: float, thin: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Products of one function of each factor, (n, r), and sums of eigenvalues, (r,).

    Those whose sum is below the limit; the constant is a function of every factor.
    """
    n = len(factors[0].functions[thin])
    products, sums = np.ones((n, 1)), np.zeros(1)
    for factor in factors:
        functions = np.column_stack([np.ones(n), factor.functions[thin]])
        eigenvalues = np.concatenate([[0.0], factor.eigenvalues])
        sums = (sums[:, None] + eigenvalues).ravel()
        products = (products[:, :, None] * functions[:, None]).reshape(n, -1)
        # Dropped at once: the products of three factors would be too many otherwise.
        below = sums < limit
        products, sums = products[:, below], sums[below]
    return products, sums


def agreement(full: Look, half: Look) -> float:
    """Return the smallest share of a factor's lowest functions that a half finds again.

    The share of the function in the span of the same factor's functions in half of the samples;
    both ways round, after the best matching of the factors.
    """
    thin = thinned(len(half.part), 5000)
    root = np.sqrt(half.geometry.spectrum.weights[thin])[:, None]
    root /= np.linalg.norm(root)
    whole = _lowest_and_all(full, half.part[thin], root)
    parts = _lowest_and_all(half, thin, root)
    # A half may find the factors in another order.
    shares = np.empty((len(whole), len(parts)))
    for i, (low, block) in enumerate(whole):
        for j, (low_in_half, block_in_half) in enumerate(parts):
            found_again = _share(low, block_in_half[:, :8])
            found_before = _share(low_in_half, block[:, :8])
            shares[i, j] = min(found_again, found_before)
    return float(shares[linear_sum_assignment(-shares)].min())


def best_agreement(full: Look, halves: Sequence[Look]) -> float:
    """Return the `agreement` of the better half, 0 where no half shows factors."""
    return max((agreement(full, half) for half in halves), default=0.0)


def _lowest_and_all(
    look: Look, rows: np.ndarray, root: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Lowest functions and all functions of each block of a look at some samples."""
    functions = look.geometry.spectrum.functions[rows, 1:]
    out = []
    for block in look.blocks:
        values = _centred(functions @ block, root)
        count = batch_size(look.geometry.rayleigh(block))
        out.append((values[:, :count], values))
    return out


def _centred(values: np.ndarray, root: np.ndarray) -> np.ndarray:
    """Columns of mean 0 and norm 1 under the weights root**2, times root."""
    values = (values - (root**2).T @ values) * root
    return values / np.linalg.norm(values, axis=0)


def _share(functions: np.ndarray, others: np.ndarray) -> float:
    """Smallest share of a function in the span of others."""
    basis = np.linalg.qr(others)[0]
    return float(((basis.T @ functions) ** 2).sum(axis=0).min())


def twist(looks: Sequence[Look]) -> Measurement:
    """Return the `impurity` of the factors' lowest functions in all samples.

    Its noise is what halves of the samples add to it.
    """
    full, *halves = map_threads(lambda look: impurity(look.geometry, look.blocks), looks)
    if not halves:
        return Measurement(full)
    return Measurement(full, float(excess_in_halves(full, halves)))


def modulation(factors: Sequence[Factor], spectrum: Spectrum) -> float:
    """Return the largest change of a factor's variance along the others."""
    charts = [factor.chart for factor in factors if factor.chart is not None]
    # A mean square of 4,000 samples is accurate to some 3 %.
    return max((chart.modulation(spectrum, 4000) for chart in charts), default=0.0)


def undivided(splits: Sequence[Split]) -> Measurement:
    """Return the smallest q, less its noise, of functions that were not divided.

    A batch that fell into n blocks has n - 1 values of q near 0; the next one says whether one of
    the blocks might be divided once more. 1 where no batch has another.
    """
    following = [
        Measurement(float(s.q[s.n_blocks - 1]), float(s.noise[s.n_blocks - 1]))
        for s in splits
        if len(s.q) >= s.n_blocks
    ]
    return min(following, key=lambda q: q.net, default=Measurement(1.0))
