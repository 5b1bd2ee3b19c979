"""Loadings: which columns each factor moves, by a functional analysis of variance."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.preprocessing import PolynomialFeatures, SplineTransformer

from manifactor._support.errors import listed
from manifactor._support.values import quotient
from manifactor.factors.inversion import PlaceSpace, even_steps
from manifactor.factors.shapes import on_line
from manifactor.statistics import random_rows

# Functions of one factor, of each of the two of a pair, and of a curve that is shown, at most. Of
# pairs, the fourth root of the samples: with 16 functions each and 3,000 samples, 5 % of the shares
# of a table differ from the exact ones by more than .03, with 8 less than 1 %.
MOST_ALONE, MOST_IN_PAIR, MOST_SHOWN = 40, 16, 12
# More change no share by .005.
MOST_SAMPLES = 50_000
# As many samples for each function at least: the shares of a column of noise then have a standard
# deviation of .03 with 500 samples, and .0015 with 10,000.
SAMPLES_PER_FUNCTION = 8
# Ridges, relative to the mean square of a function. Where the places on two factors are dependent,
# functions of single factors come first.
ALONE, TOGETHER = 1e-6, 2e-3
N_FOLDS, N_STEPS = 5, 32


@dataclass(frozen=True, repr=False)
class Loadings:
    """Which share of the variance of each column each factor explains.

    `shares`, `interactions` and `noise` of a column add up to 1.

    Attributes
    ----------
    columns : tuple of str or int
        Names of the columns, or their numbers from 0.
    shares : ndarray of shape (n_columns, n_factors)
        What each factor explains alone.
    interactions : ndarray of shape (n_columns, n_pairs)
        What two factors explain together, beyond what each explains alone.
    pairs : tuple of (int, int)
        The factors of each pair, from 0.
    noise : ndarray of shape (n_columns,)
        The rest: noise, and what only three factors together explain. 1 for a constant column.
    variances : ndarray of shape (n_columns,)
        Variance of each column.
    coordinates : tuple of (ndarray of shape (n_steps,) or None)
        Even steps along each interval or circle, in radians; None for a surface.
    curves : tuple of (ndarray of shape (n_columns, n_steps) or None)
        Means of the columns at these steps, with the other factors averaged over.
    shape : tuple of int
        Shape of one sample, such as that of an image.
    """

    columns: tuple[str | int, ...]
    shares: np.ndarray
    interactions: np.ndarray
    pairs: tuple[tuple[int, int], ...]
    noise: np.ndarray
    variances: np.ndarray
    coordinates: tuple[np.ndarray | None, ...]
    curves: tuple[np.ndarray | None, ...]
    shape: tuple[int, ...]

    def leading(self, factor: int, *, count: int = 4) -> np.ndarray:
        """Return the numbers of the columns of which a factor explains most, at least .1."""
        order = np.argsort(-self.shares[:, factor], kind="stable")[:count]
        return order[self.shares[order, factor] >= 0.1]

    def named(self, column: int) -> str:
        """Return what a column is called, given its number."""
        name = self.columns[column]
        return name if isinstance(name, str) else f"column {name}"

    def __str__(self) -> str:
        # Pixels have no names that mean anything.
        total = self.variances @ self.shares / (self.variances.sum() or 1.0)
        said = [f"explains {share:.0%} of the variance" for share in total]
        for f in range(len(said) if len(self.shape) == 1 else 0):
            named = [f"{self.named(c)} ({self.shares[c, f]:.0%})" for c in self.leading(f)]
            said[f] = f"moves {listed(named or ['no column alone'])}"
        text = "; ".join(f"factor {f} {words}" for f, words in enumerate(said, start=1))
        return f"F{text[1:]}.".replace("%", " %")

    def __repr__(self) -> str:
        return f"Loadings({len(self.columns)} columns, {self.shares.shape[1]} factors)"


def find_loadings(
    space: PlaceSpace,
    values: np.ndarray,
    columns: Sequence[str | int] | None,
    shape: tuple[int, ...],
    hidden: np.ndarray | float = 0.0,
) -> Loadings:
    """Return the loadings of columns on the factors that samples have places on.

    The columns are regressed on smooth functions of each place, and of pairs of places. What a part
    of the regression explains is its covariance with the column in samples that were left out,
    which has the right mean for any number of functions. `hidden` is variance of noise that the
    values are without. Columns without names are numbered.

    Shapes: values (n, p), hidden (p,).
    """
    if len(values) > MOST_SAMPLES:
        thin = random_rows(len(values), MOST_SAMPLES)
        values, space = values[thin], replace(space, places=space.places[thin])
    (n, n_factors), mean = (len(values), len(space.widths)), values.mean(axis=0)
    values, blocks = values - mean, _functions(space)
    functions, widths = np.hstack(blocks), [block.shape[1] for block in blocks]
    starts = np.cumsum([0, *widths[:-1]])
    ridge = np.repeat([ALONE] * n_factors + [TOGETHER] * (len(blocks) - n_factors), widths)
    folds = np.array_split(np.random.default_rng(0).permutation(n), N_FOLDS)
    sums = [functions[fold].T @ values[fold] for fold in folds]
    grams = [functions[fold].T @ functions[fold] for fold in folds]
    total, gram = np.sum(sums, axis=0), np.sum(grams, axis=0) + n * np.diag(ridge)
    explained = np.zeros((len(blocks), len(mean)))
    for one, squares in zip(sums, grams, strict=True):
        covariance = cho_solve(cho_factor(gram - squares), total - one) * one / n
        explained += np.add.reduceat(covariance, starts)
    variance = (values**2).mean(axis=0) + hidden
    # What is left of a constant column is rounding.
    spread = np.sqrt(variance)
    explained[:, spread <= 1e-12 * (np.abs(mean) + spread.max(initial=0))] = 0
    explained = quotient(explained, variance)
    together, shares = np.clip(explained.sum(axis=0), 0, 1), np.clip(explained, 0, None)
    # What is a little below 0 by chance counts as 0, and the other parts have less.
    shares *= quotient(together, shares.sum(axis=0))
    curves = _curves(space, values)
    return Loadings(
        columns=tuple(range(len(mean)) if columns is None else columns),
        shares=shares[:n_factors].T,
        interactions=shares[n_factors:].T,
        pairs=tuple(combinations(range(n_factors), 2)),
        noise=1 - together,
        variances=variance,
        coordinates=tuple(
            None if topology == "other" else on_line(topology, even_steps(topology, N_STEPS))
            for topology in space.topologies
        ),
        curves=tuple(None if curve is None else curve.T + mean[:, None] for curve in curves),
        shape=shape,
    )


def _functions(space: PlaceSpace) -> list[np.ndarray]:
    """Return functions of places on each factor, and products of those of two, (n, k) each."""
    n, n_factors, n_pairs = len(space.places), len(space.widths), comb(len(space.widths), 2)
    budget = n // SAMPLES_PER_FUNCTION
    alone = int(np.clip(budget // (3 * n_factors), 3, MOST_ALONE))
    left = max(budget - n_factors * alone, 0)
    paired = int(np.clip(np.sqrt(left / max(n_pairs, 1)), 1, min(n**0.25 + 1, MOST_IN_PAIR)))
    factors = list(zip(space.topologies, space.columns(space.places), strict=True))
    blocks = [_basis(*factor, alone)(factor[1]) for factor in factors]
    coarse = [_basis(*factor, paired)(factor[1]) for factor in factors]
    for one, other in combinations(coarse, 2):
        products = (one[:, :, None] * other[:, None]).reshape(n, -1)
        blocks.append(products - products.mean(axis=0))
    return blocks


def _curves(space: PlaceSpace, values: np.ndarray) -> list[np.ndarray | None]:
    """Return the parts of values, (n, p), at even steps along each factor, (N_STEPS, p)."""
    count = int(np.clip(len(values) // SAMPLES_PER_FUNCTION // len(space.widths), 3, MOST_SHOWN))
    factors = list(zip(space.topologies, space.columns(space.places), strict=True))
    bases = [_basis(*factor, count) for factor in factors]
    blocks = [basis(part) for basis, (_, part) in zip(bases, factors, strict=True)]
    functions = np.hstack(blocks)
    gram = functions.T @ functions + ALONE * len(values) * np.eye(functions.shape[1])
    coefficients = cho_solve(cho_factor(gram), functions.T @ values)
    ends = np.cumsum([block.shape[1] for block in blocks])[:-1]
    return [
        None if topology == "other" else basis(even_steps(topology, N_STEPS)) @ own
        for topology, basis, own in zip(
            space.topologies, bases, np.split(coefficients, ends), strict=True
        )
    ]


def _basis(topology: str, places: np.ndarray, count: int) -> Callable[[np.ndarray], np.ndarray]:
    """Return smooth functions of places on a factor, of mean 0 and mean square 1 there."""
    if topology == "other":
        width = min(places.shape[1], count)
        degrees = (d for d in range(6, 1, -1) if comb(width + d, d) <= count + 1)
        polynomials = PolynomialFeatures(next(degrees, 1), include_bias=False)
        unit = np.abs(places[:, :width]).max(axis=0)

        def raw(at: np.ndarray) -> np.ndarray:
            return polynomials.fit_transform(quotient(at[:, :width], unit))
    else:
        # An interval has three more splines than pieces, a circle as many.
        circle, line = topology == "circle", on_line(topology, places)
        n_pieces = max(count if circle else count - 2, 2)
        knots = np.unique(np.quantile(line, np.linspace(0, 1, n_pieces + 1)).round(9))
        if circle:
            knots = np.append(knots[:-1], knots[0] + 2 * np.pi)
        if len(knots) < 5:  # few pieces, or samples at a few places only
            knots = np.linspace(0, 2 * np.pi if circle else 1, 5)
        outside = "periodic" if circle else "constant"
        splines = SplineTransformer(knots=knots[:, None], extrapolation=outside).fit(line[:, None])

        def raw(at: np.ndarray) -> np.ndarray:
            return splines.transform(on_line(topology, at)[:, None])

    values = raw(places)
    mean = values.mean(axis=0)
    squares, axes = np.linalg.eigh((values - mean).T @ (values - mean) / len(values))
    # Those of the largest variance are the smoothest.
    kept = np.flatnonzero(squares > 1e-4 * squares[-1])[::-1][:count]
    return lambda at: (raw(at) - mean) @ (axes[:, kept] / np.sqrt(squares[kept]))
