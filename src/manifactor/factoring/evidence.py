"""How sure are we: numbers behind the verdict, and the verdict in words."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from manifactor._support.threads import at_once
from manifactor.factoring.factor import Factor
from manifactor.factoring.measures import (
    agreement,
    completeness,
    dependence,
    explained,
    leakage,
)
from manifactor.factoring.peeling import Peeling
from manifactor.factoring.products import product_share
from manifactor.factoring.purity import impurity
from manifactor.spectral.spectrum import Spectrum

COMPLETE = 0.75  # least completeness of a product; twisted products reach .7
LEAKING = 0.2  # share of a factor that another one predicts, above which they are not independent
PRODUCT = 0.8  # least share of the product of two factors' functions near the sum of their eigenvalues
AGREEING = (
    0.7  # least share of a factor's functions that half of the samples find again
)
TWISTED = (
    1 / 8
)  # quanta of energy of a factor's lowest function along another: 0 on a product, 1/4 on a twisted one
MODULATED = (
    1 / 3
)  # spread of a factor's variance along another: up to .1 on products, .5 where a twist is cut open
UNDIVIDED = 0.65  # least q of a factor that surely hides no second one
EXPLAINED = 0.5  # least share of any main direction of the data, and of the lowest functions, that the factors explain
FIRST = 8  # functions that are the lowest
FEW = 200  # samples below which one factor means nothing
RELIABLE = 0.9  # least share of a factor's variance that noise of known size may leave
NOISY = 0.3  # noise of q above which a batch that does not fall apart might yet do so
DEPENDENT, WEAK = (
    0.01,
    0.05,
)  # p-value of dependence, and the leakage below which it does not matter
SECOND_OPINION = "for images of independently moving parts, method='deflation' gives a second opinion"


class NoProductStructureWarning(UserWarning):
    """The data show one factor only."""


class SampleWarning(UserWarning):
    """The samples are too few or too noisy for a verdict."""


@dataclass(frozen=True)
class Evidence:
    """The verdict, the reason for it, and the numbers behind it; ``str()`` reads as prose.

    Attributes
    ----------
    verdict : "product", "partial" or "none"
    reason : str
        One sentence.
    completeness : float
        How far pure functions and their products are the low eigenfunctions, no fewer and no more; 1 for a product.
    leakage : ndarray of shape (n_factors, n_factors)
        [i, j] is the R^2 with which places on factor i predict factor j; the diagonal is nan.
    product : float
        Smallest share, over pairs of factors, of the product of their lowest functions near the sum of the eigenvalues.
    agreement : float
        Smallest share of a factor's lowest functions that the better half of the samples finds again.
    null : float
        Noise of the number that the count of factors rests on, from half samples; that number is 0 for factors, 1 for
        none, and counts as 0 below .45 after the noise is taken off.
    dependence : float
        Permutation p-value of the hypothesis that the factors' places are statistically independent.
    reliability : float
        Smallest share of a factor's variance that is no noise, where the size of the noise is known.
    details : str
        What else the method has to say.
    """

    verdict: str
    reason: str
    completeness: float = float("nan")
    leakage: np.ndarray = field(default_factory=lambda: np.full((1, 1), np.nan))
    product: float = float("nan")
    agreement: float = float("nan")
    null: float = float("nan")
    dependence: float = float("nan")
    reliability: float = float("nan")
    details: str = ""

    def __str__(self) -> str:
        text = [VERDICTS[self.verdict], _sentence(self.reason)]
        if np.isfinite(self.completeness):
            text.append(
                f"Functions of single factors and their products make up {self.completeness:.0%} of the low spectrum."
            )
        if len(self.leakage) > 1:
            text.append(
                f"A sample's place on one factor predicts at most {np.nanmax(self.leakage):.0%} of another."
            )
        if np.isfinite(self.agreement):
            text.append(
                f"Half of the samples alone shows the same factors to {self.agreement:.0%}."
            )
        if np.isfinite(self.dependence):
            text.append(
                _about_dependence(self.dependence, float(np.nanmax(self.leakage)))
            )
        if np.isfinite(self.reliability):
            share = min(self.reliability, 0.99)
            text.append(
                f"At least {share:.0%} of the variance of the places on every factor is signal, not noise."
            )
        return " ".join([*text, _sentence(self.details)] if self.details else text)


VERDICTS = {
    "product": "The data are samples of a product of independent factors.",
    "partial": "Several factors were found, but not every test of a product was passed.",
    "none": "No product structure was found.",
}


def weigh(
    spectrum: Spectrum,
    factors: Sequence[Factor],
    peeling: Peeling,
    samples: np.ndarray | None,
    inliers: np.ndarray,
    *,
    misfit: str,
    rng: np.random.Generator,
) -> Evidence:
    """Verdict on several factors that were found by peeling; `misfit` says how their dimensions miss the data's."""
    look = peeling.looks[0]
    measures: dict[str, Callable[[], Any]] = {
        "completeness": lambda: completeness(spectrum, factors),
        "leakage": lambda: leakage(factors),
        "product": lambda: product_share(look.geometry, look.blocks),
        "agreement": lambda: max(
            [agreement(look, half) for half in peeling.looks[1:]], default=0.0
        ),
        "null": lambda: max(
            [float(split.noise.max(initial=0)) for split in peeling.splits], default=0.0
        ),
        "dependence": lambda: dependence(factors, rng=rng),
    }
    others = (
        lambda: max(
            factor.chart.modulation(spectrum) for factor in factors if factor.chart
        ),
        lambda: explained(factors, samples, inliers),
        lambda: explained(factors, spectrum.functions[:, 1 : 1 + FIRST], inliers),
        *(partial(impurity, look.geometry, look.blocks) for look in peeling.looks),
    )
    found = at_once(lambda measure: measure(), [*measures.values(), *others])
    numbers = dict(zip(measures, found, strict=False))
    modulation, main, lowest, *impurities = found[len(measures) :]
    twist = _without_noise(impurities)
    problems = _problems(
        numbers, peeling, main=main, lowest=lowest, modulation=modulation, twist=twist
    )
    problems += [misfit] if misfit else []
    if numbers["agreement"] < AGREEING:
        _warn_of_few_samples(
            2 * len(look.part),
            f"of {len(look.part)} samples neither half shows the same factors",
        )
    if not problems:
        return Evidence("product", "all tests were passed", **numbers)
    return Evidence("partial", "; ".join(problems), **numbers, details=SECOND_OPINION)


def weigh_one(peeling: Peeling, *, missing: bool) -> Evidence:
    """Verdict when one factor was found, and why: too few samples, too noisy, spectrum too short, or irreducible."""
    look = peeling.looks[0]
    split = peeling.splits[0]
    noise = float(split.noise.max(initial=0))
    if len(look.part) < FEW:
        _warn_of_few_samples(
            5 * FEW, f"{len(look.part)} distinct samples show little of any manifold"
        )
        reason = f"{len(look.part)} samples are too few to tell"
    elif noise > NOISY and (split.q < 1).any():
        enough = int(len(look.part) * noise / (NOISY / 2))
        _warn_of_few_samples(
            enough,
            f"the number of factors is uncertain by {noise:.2f} of the range it is read from",
        )
        reason = f"{len(look.part)} samples are too few, or too noisy, to tell whether the lowest functions fall apart"
    elif peeling.refused is not None:
        reason = (
            "there are functions that do not vary along the lowest ones, but their products with those lie only to "
            f"{peeling.refused:.0%} where a product manifold has them: the data look irreducible"
        )
    elif missing:
        reason = (
            "the data have more dimensions than their lowest functions, but none of the "
            f"{len(look.geometry.eigenvalues)} functions shows another factor clearly: the spectrum is too short, or "
            "the samples are too few, to see a much smaller one; raise `n_functions` or add samples"
        )
    else:
        reason = "the lowest functions vary in all directions of the data and do not fall apart: the data are irreducible"
    return Evidence("none", reason, null=noise, details=SECOND_OPINION)


def weigh_sum(
    factors: Sequence[Factor], explained: float, *, rng: np.random.Generator
) -> Evidence:
    """Verdict on two factors that were found by deflation, which cannot tell a product from what is none."""
    reason = (
        f"a function of the first factor and one of the second add up to {max(0.0, explained):.0%} of the data's "
        "variance; this is how two independent motions show in images, but a sum alone does not prove a product"
    )
    return Evidence(
        "partial",
        reason,
        leakage=leakage(factors),
        dependence=dependence(factors, rng=rng),
    )


def weigh_noise(evidence: Evidence, shares: Sequence[float]) -> Evidence:
    """The evidence where noise of known size leaves these shares of the factors' variance; a product needs most."""
    if evidence.verdict == "none":
        return evidence
    worst = int(np.argmin(shares))
    reliability = max(0.0, float(shares[worst]))
    if reliability >= RELIABLE:
        return replace(evidence, reliability=reliability)
    reason = f"noise makes up {1 - reliability:.0%} of the variance of places on factor {worst + 1}"
    reason = reason if evidence.verdict == "product" else f"{evidence.reason}; {reason}"
    return replace(evidence, verdict="partial", reason=reason, reliability=reliability)


def _warn_of_few_samples(enough: int, what: str) -> None:
    warnings.warn(
        f"The samples are too few or too noisy for a sure verdict: {what}. About {enough} samples would help.",
        SampleWarning,
        stacklevel=5,
    )


def _problems(
    numbers: dict,
    peeling: Peeling,
    *,
    main: float,
    lowest: float,
    modulation: float,
    twist: float,
) -> list[str]:
    undivided = min(
        [
            float((s.q - s.noise)[s.n_blocks - 1])
            for s in peeling.splits
            if len(s.q) >= s.n_blocks
        ],
        default=1,
    )
    leaking = np.nanmax(numbers["leakage"])
    tests = (
        (
            numbers["product"] < PRODUCT,
            f"products of the factors' functions lie to {numbers['product']:.0%} only where a product manifold has "
            "them",
        ),
        (
            numbers["completeness"] < COMPLETE,
            f"functions of single factors and their products match the low spectrum to {numbers['completeness']:.0%}, "
            f"not {COMPLETE:.0%}, as on a twisted product or with a factor missing",
        ),
        (
            twist > TWISTED,
            "a factor's lowest function varies a little along another factor, as on a twisted product",
        ),
        (
            modulation > MODULATED,
            "the lowest functions of one factor fade at some places of another, as on a twisted product",
        ),
        (undivided < UNDIVIDED, "one of the factors may hide two"),
        (
            main < EXPLAINED,
            f"the factors explain only {main:.0%} of a main direction of the data",
        ),
        (
            lowest < EXPLAINED,
            f"the factors explain only {lowest:.0%} of one of the lowest functions",
        ),
        (
            leaking > LEAKING,
            f"a sample's place on one factor predicts {leaking:.0%} of another",
        ),
        (
            numbers["agreement"] < AGREEING,
            "neither half of the samples shows the same factors by itself, the better one only to "
            f"{numbers['agreement']:.0%}, so there may be too few samples, or too much noise",
        ),
    )
    return [text for failed, text in tests if failed]


def _without_noise(impurities: Sequence[float]) -> float:
    """Impurity of the factors' lowest functions, less what half of the samples adds to it."""
    full, *halves = impurities
    return full - max(0.0, float(np.mean(halves)) - full) if halves else full


def _about_dependence(p: float, leakage: float) -> str:
    if p > DEPENDENT:
        return f"The places show no clear dependence on each other (permutation p = {p:.3f})."
    if leakage < WEAK:
        return f"The places are nearly independent: what one tells of another is significant but small (p = {p:.3f})."
    return f"The places are statistically dependent (p = {p:.3f}): the samples do not fill the product evenly."


def _sentence(reason: str) -> str:
    return reason[0].upper() + reason[1:].rstrip(".") + "."
