"""The verdict: what was measured of the best candidate becomes evidence, in one place."""

from dataclasses import replace
from functools import partial

import numpy as np
import scipy.sparse as sp

from manifactor._support.errors import Warned
from manifactor.factors.factor import Factor
from manifactor.judging.candidate import Candidate, dropped_variance, measured
from manifactor.judging.evidence import (
    CURVES,
    DataKnown,
    Evidence,
    NoProductStructureWarning,
    answer_of,
    verdict_of,
)
from manifactor.judging.probability import (
    kind_of_one,
    kind_of_several,
    of_factor,
    of_one,
    of_several,
    probability,
)
from manifactor.models.separable.separation import Separation, warp_of
from manifactor.models.separable.symmetry import Symmetries
from manifactor.operators.operator import Operator
from manifactor.samples.columns import in_words, remedy, suspicious_columns, warned_of
from manifactor.statistics import NOT_MEASURED, leaves_noise

# Kinds of results unlike those that the probability was learnt from.
UNRATED = {"triplets", "no triplets", "line", "asked"}


def probability_of(candidate: Candidate, confirmed: float) -> float:
    """Return how often such results are right; 0 for one factor, nan where it is not known.

    `confirmed` is the R^2 with the same factors of another model, nan where there is none.
    """
    factors = candidate.factors
    if len(factors) < 2:
        return 0.0
    faults = of_several(
        candidate.sense,
        candidate.tests,
        [factor.dimension for factor in factors],
        min(factor.confidence.mean() for factor in factors),
        confirmed,
        candidate.facts.sampling,
    )
    return probability("several", kind_of_several(candidate.sense, len(factors)), faults)


def evidence_of(
    candidate: Candidate,
    factors: tuple[Factor, ...],
    *,
    highest: float,
    symmetries: Symmetries | None,
) -> tuple[Evidence, tuple[Warned, ...], tuple[Warned, ...]]:
    """Return the evidence on factors, and warnings of columns and of a verdict of "none".

    `highest` is the probability of the best division into several factors, which one factor is
    weighed against; `symmetries` are those of a shape that looks the same everywhere.
    """
    facts, noise = candidate.facts, candidate.facts.drawn.noise
    curve = _curve(candidate, factors)
    details = candidate.details
    if candidate.operator.path is not None:
        scales = ", ".join(f"{2 * candidate.operator.time / rate:.3g}" for rate in candidate.rates)
        details = "; ".join(filter(None, [details, f"time scales of the factors: {scales}"]))
    right, parts = _probabilities(candidate, factors, curve, highest)
    verdict = partial(verdict_of, n_factors=len(factors), sense=candidate.sense, curve=curve)
    if verdict(candidate.tests) == "product" and parts:
        candidate = measured(replace(candidate, probability=right), {"likely"})
    # After all else, so that the factors are the same with and without it.
    if noise is not None and verdict(candidate.tests) != "none":
        candidate = measured(candidate, {"noise"})
    said = verdict(candidate.tests)
    known, remark, warned = _data_known(candidate, factors, said)
    # The random problems had neither such noise nor such columns.
    if candidate.fails("reliability") or known.columns:
        right, parts = NOT_MEASURED, ()
    warp = None
    if isinstance(candidate.read, Separation) and said in ("separable", "partial"):
        warp = warp_of(candidate.read, candidate.factors, candidate.operator)
    evidence = Evidence(
        candidate.tests,
        leakage=candidate.leakage,
        null=candidate.null,
        dependence=candidate.dependence,
        details=f"{remark} {details[:1].upper()}{details[1:]}".strip() if remark else details,
        sense=candidate.sense,
        known=known,
        terms=candidate.terms,
        warp=warp,
        symmetries=symmetries,
        curve=curve,
        probability=right,
        probabilities=parts,
        shapes=tuple(factor.shape for factor in factors),
    )
    none = said == "none" and facts.n_asked != 1
    return evidence, warned, (Warned(evidence.finding, NoProductStructureWarning),) * none


def _curve(candidate: Candidate, factors: tuple[Factor, ...]) -> str:
    """Return what the data are if they are one curve that leaves noise only; else ""."""
    whole, points = factors[0], candidate.operator.points
    # A short path looks like a curve.
    if len(factors) > 1 or points is None or candidate.fails("coverage", "triplets"):
        return ""
    curve = whole.topology in CURVES and leaves_noise(whole.embedding, points)
    return whole.topology if curve else ""


def _probabilities(
    candidate: Candidate, factors: tuple[Factor, ...], curve: str, highest: float
) -> tuple[float, tuple[float, ...]]:
    """Return how often such a result is right, and each of its factors by itself.

    Nothing is said of samples unlike those of the problems learnt from, nor where the answer is
    that it cannot be told.
    """
    several, facts = len(factors) > 1, candidate.facts
    unknown = not several and not curve and answer_of(candidate.tests) == "cannot tell"
    unlike = candidate.sense == "dynamics" or candidate.kinds & UNRATED
    if unknown or unlike or not facts.sampling.is_known:
        return NOT_MEASURED, ()
    if not several:
        kind = kind_of_one(curve, candidate.tests)
        right = probability("one", kind, of_one(highest, facts.sampling))
        return right, (right,)
    right = candidate.probability
    if np.isnan(right):  # no other model was tried
        right = probability_of(candidate, np.nan)
    leakage, parts = candidate.leakage, []
    leaks = np.fmax(np.nanmax(leakage, axis=0), np.nanmax(leakage, axis=1))
    for factor, leak in zip(factors, leaks, strict=True):
        faults = of_factor(right, leak, factor.confidence.mean())
        # All factors are right at most as often as one of them.
        parts.append(max(right, probability("factor", factor.topology, faults)))
    return right, tuple(parts)


def _data_known(
    candidate: Candidate, factors: tuple[Factor, ...], verdict: str
) -> tuple[DataKnown, str, tuple[Warned, ...]]:
    """Return what is known of the data, a remark on their columns, and a warning of them."""
    facts, graph = candidate.facts, candidate.operator.graph
    if facts.n_asked == 1 or facts.drawn.moves is not None:
        return DataKnown(), "", ()
    X, names, columns = facts.drawn.columns, facts.drawn.names, facts.columns
    warned: tuple[Warned, ...] = ()
    if not (verdict == "product" or sp.issparse(X)):
        columns = suspicious_columns(X)
        new = {kind: which for kind, which in columns.items() if facts.columns.get(kind) != which}
        warned = warned_of(new, names)
    known = DataKnown(
        n_samples=len(graph.distinct),
        n_columns=0 if sp.issparse(X) else X.shape[1],
        noise=_noise_share(candidate.operator, X, facts.drawn.noise),
        # Twisted data that are one factor have circles all the same.
        circles=len(factors) == 1 or any(factor.topology == "circle" for factor in factors),
        # Only the geometry rests on the graph.
        pieces=1 + int(graph.components.max()) if candidate.sense == "geometry" else 1,
        columns=remedy(columns, names),
    )
    return known, in_words(columns, names) if columns else "", warned


def _noise_share(operator: Operator, X, noise: np.ndarray | None) -> float:
    """Return the share of the variance of prepared samples that is noise; nan if not known.

    Noise whose size is not given has the same variance in the components that were kept as in those
    dropped.
    """
    preparation, samples = operator.preparation, operator.points
    if samples is None:
        return NOT_MEASURED
    some = slice(None, None, max(1, len(X) // 2000))
    kept = float(np.var(np.asarray(samples[some]), axis=0).sum())
    of_noise = NOT_MEASURED
    if noise is not None:
        variance = np.asarray(noise) ** 2
        if preparation is not None:
            variance = variance @ preparation.components**2
        of_noise = float(variance.sum())
    elif preparation is not None and len(preparation.components) > preparation.components.shape[1]:
        of_noise = preparation.components.shape[1] * dropped_variance(operator, X)
    return of_noise / kept if kept else NOT_MEASURED
