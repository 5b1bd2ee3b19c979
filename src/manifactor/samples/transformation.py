"""A function of every column, before noise is removed: square root, logarithm or ranks."""

from dataclasses import dataclass, field

import numpy as np

# "auto" and "none" leave the columns as they are; a factorizer may try the square root by "auto".
TRANSFORMATIONS = ("auto", "none", "sqrt", "log", "ranks")
WORDS = {"sqrt": "square root", "log": "logarithm", "ranks": "ranks"}
# Ranks are read off so many quantiles of each column.
N_QUANTILES = 1001


@dataclass(frozen=True)
class Transformation:
    """A monotone function of every column, and its inverse."""

    name: str  # "sqrt", "log" or "ranks"
    # (n_quantiles, n_features): of the samples of the fit, for ranks
    quantiles: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))

    def __str__(self) -> str:
        return WORDS[self.name]

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Return a function of every column of samples, (n, n_features)."""
        if self.name == "ranks":
            return np.column_stack(
                [_ranks(x, known) for x, known in zip(X.T, self.quantiles.T, strict=True)]
            )
        least = X.min(axis=0)
        column = int(least.argmin())
        # A logarithm of 0 is not finite.
        if least[column] < 0 or (self.name == "log" and least[column] == 0):
            what = "not be negative" if self.name == "sqrt" else "be positive"
            raise ValueError(
                f"with `transformation={self.name!r}`, all values must {what}; got "
                f"{least[column]:.3g} in column {column}. Use 'ranks', or leave the column out."
            )
        return np.sqrt(X) if self.name == "sqrt" else np.log(X)

    def inverse(self, X: np.ndarray) -> np.ndarray:
        """Return the samples of which this is the function, (n, n_features)."""
        if self.name == "ranks":
            shares = np.linspace(0, 1, len(self.quantiles))
            columns = zip(X.T, self.quantiles.T, strict=True)
            return np.column_stack([np.interp(x, shares, known) for x, known in columns])
        # An average of roots may be a little below 0.
        return np.maximum(X, 0) ** 2 if self.name == "sqrt" else np.exp(X)


def _ranks(x: np.ndarray, quantiles: np.ndarray) -> np.ndarray:
    """Return the share of samples below each value, from 0 to 1; that of ties is their mean."""
    shares = np.linspace(0, 1, len(quantiles))
    above = np.interp(-x, -quantiles[::-1], shares)
    return (np.interp(x, quantiles, shares) + 1 - above) / 2


def make_transformation(name: str, X: np.ndarray) -> Transformation | None:
    """Return the transformation of samples, by its name; None for samples as they are."""
    if name in ("auto", "none"):
        return None
    if name != "ranks":
        return Transformation(name)
    shares = np.linspace(0, 1, min(len(X), N_QUANTILES))
    return Transformation(name, np.quantile(X, shares, axis=0))
