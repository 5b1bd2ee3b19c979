"""How sure are we: numbers behind the verdict, and the verdict in words."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from manifactor.factoring.factor import Factor, predictability
from manifactor.spectral.spectrum import Spectrum

COMPLETE = 0.8  # share of the low spectrum that the products must explain; Klein bottles stay below
LOW = 16  # functions that are the low spectrum at least


class NoProductStructureWarning(UserWarning):
    """The data show one factor only."""


@dataclass(frozen=True)
class Evidence:
    """The verdict, the reason for it, and the numbers behind it; ``str()`` reads as prose.

    Attributes
    ----------
    verdict : "product", "partial" or "none"
    reason : str
        One sentence.
    completeness : float
        Share of the low part of the spectrum in the span of pure functions and their products.
    leakage : ndarray of shape (n_factors, n_factors)
        [i, j] is the R^2 with which places on factor i predict factor j; the diagonal is nan.
    details : str
        What else the method has to say.
    """

    verdict: str
    reason: str
    completeness: float = float("nan")
    leakage: np.ndarray = field(default_factory=lambda: np.full((1, 1), np.nan))
    details: str = ""

    def __str__(self) -> str:
        text = [VERDICTS[self.verdict], _sentence(self.reason)]
        if np.isfinite(self.completeness):
            text.append(
                f"Functions of single factors and their products explain {self.completeness:.0%} of the low spectrum."
            )
        if len(self.leakage) > 1:
            text.append(f"A sample's place on one factor predicts at most {np.nanmax(self.leakage):.0%} of another.")
        return " ".join([*text, _sentence(self.details)] if self.details else text)


VERDICTS = {
    "product": "The data are samples of a product of independent factors.",
    "partial": "Several factors were found, but they are not the whole story.",
    "none": "No product structure was found.",
}


def completeness(spectrum: Spectrum, factors: Sequence[Factor]) -> float:
    """Share of the eigenfunctions, up to the highest pure one, in the span of pure functions and their products.

    At least the first `LOW` functions count: a few pure functions with nothing between them explain only themselves.
    """
    top = max(*(factor.eigenvalues[-1] for factor in factors), spectrum.eigenvalues[:LOW][-1])
    low = np.flatnonzero((spectrum.eigenvalues > 0) & (spectrum.eigenvalues <= 1.001 * top))
    columns = []
    for choice in product(*(range(-1, len(factor.eigenvalues)) for factor in factors)):
        used = [(factor, j) for factor, j in zip(factors, choice, strict=True) if j >= 0]
        if used and sum(factor.eigenvalues[j] for factor, j in used) <= 1.2 * top:
            columns.append(np.prod([factor.functions[:, j] for factor, j in used], axis=0))
    root = np.sqrt(spectrum.weights)[:, None]
    basis = np.linalg.qr(np.column_stack(columns) * root)[0]
    return float(((basis.T @ (spectrum.functions[:, low] * root)) ** 2).sum(axis=0).mean())


def leakage(factors: Sequence[Factor]) -> np.ndarray:
    """R^2 with which places on each factor predict each other factor, (n_factors, n_factors), nan on the diagonal."""
    out = np.full((len(factors), len(factors)), np.nan)
    for i, source in enumerate(factors):
        for j, target in enumerate(factors):
            if i != j:
                out[i, j] = predictability(source.embedding, target.embedding)
    return out


def _sentence(reason: str) -> str:
    return reason[0].upper() + reason[1:].rstrip(".") + "."
