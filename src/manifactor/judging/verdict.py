"""The verdict: what was measured of the best candidate becomes evidence, in one place."""

from dataclasses import replace

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
    verdict_of,
)
from manifactor.judging.probability import (
    Agreement,
    costs,
    is_unlike,
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


def inputs_of(candidate: Candidate, agreement: Agreement = Agreement()) -> dict[str, float]:
    """Return what the probability of several factors follows from."""
    factors = candidate.factors
    return of_several(
        candidate.model,
        candidate.sense,
        candidate.tests,
        [(factor.topology, factor.dimension) for factor in factors],
        min(factor.confidence.mean() for factor in factors),
        agreement,
        candidate.facts.sampling,
        candidate.numbers,
    )


def with_probability(candidate: Candidate, agreement: Agreement = Agreement()) -> Candidate:
    """Return a candidate with how often such results are right, and how often true; 0 for one."""
    if len(candidate.factors) < 2:
        return replace(candidate, probability=0.0, true=0.0)
    inputs = inputs_of(candidate, agreement)
    right = probability("right", inputs)
    true = max(right, probability("true", inputs))
    return replace(candidate, probability=right, true=true, inputs=inputs)


def evidence_of(
    candidate: Candidate, factors: tuple[Factor, ...], *, symmetries: Symmetries | None
) -> tuple[Evidence, tuple[Warned, ...], tuple[Warned, ...]]:
    """Return the evidence on factors, and warnings of columns and of a verdict of "none".

    `symmetries` are those of a shape that looks the same everywhere.
    """
    facts, noise = candidate.facts, candidate.facts.drawn.noise
    curve, several = _curve(candidate, factors), len(factors) > 1
    right, unfinished, parts = NOT_MEASURED, NOT_MEASURED, tuple[float, ...]()
    if candidate.sense != "dynamics" and not candidate.kinds & UNRATED:
        if several:
            if np.isnan(candidate.probability):  # no other model was tried
                candidate = with_probability(candidate)
            right, parts = candidate.probability, _of_each(candidate)
            unfinished = candidate.true - right
            candidate = measured(candidate, {"rated"})
        else:
            right = _of_whole(candidate, curve)
            parts = (right,)
    # After all else, so that the factors are the same with and without it.
    if noise is not None and (several or curve):
        candidate = measured(candidate, {"noise"})
    said = verdict_of(candidate.tests, len(factors), candidate.sense, curve)
    known, remark, warned = _data_known(candidate, factors, said)
    # The random problems had neither such noise nor such columns.
    if candidate.fails("reliability") or known.columns:
        right, unfinished, parts = NOT_MEASURED, NOT_MEASURED, ()
    warp = None
    if isinstance(candidate.read, Separation) and said in ("separable", "partial"):
        warp = warp_of(candidate.read, candidate.factors, candidate.operator)
    evidence = Evidence(
        candidate.tests,
        leakage=candidate.leakage,
        null=candidate.null,
        dependence=candidate.dependence,
        details=_details(candidate, remark),
        sense=candidate.sense,
        known=known,
        terms=candidate.terms,
        warp=warp,
        symmetries=symmetries,
        curve=curve,
        probability=right,
        probabilities=parts,
        unfinished=unfinished,
        costs=()
        if np.isnan(right) or not several
        else tuple(costs("right", candidate.inputs, right)),
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


def _of_each(candidate: Candidate) -> tuple[float, ...]:
    """Return how often each of several factors is right by itself."""
    right, leakage, parts = candidate.probability, candidate.leakage, []
    leaks = np.fmax(np.nanmax(leakage, axis=0), np.nanmax(leakage, axis=1))
    for factor, leak in zip(candidate.factors, leaks, strict=True):
        inputs = of_factor(factor.topology, right, leak, factor.confidence.mean())
        # All factors are right at most as often as one of them.
        parts.append(max(right, probability("factor", inputs)))
    return tuple(parts)


def _of_whole(candidate: Candidate, curve: str) -> float:
    """Return how often such samples are one factor, and its coordinate is right."""
    division = candidate.instead
    right, true = (division.probability, division.true) if division else (0.0, 0.0)
    known = division.inputs if division else {}
    tests, sampling = candidate.undivided or candidate.tests, candidate.facts.sampling
    return probability("one", of_one(curve, tests, right, true, known, sampling))


def _details(candidate: Candidate, remark: str) -> str:
    """Return remarks of the method, on time scales, and on samples unlike others or copied."""
    details = [candidate.details]
    if candidate.operator.path is not None:
        scales = ", ".join(f"{2 * candidate.operator.time / rate:.3g}" for rate in candidate.rates)
        details.append(f"time scales of the factors: {scales}")
    if candidate.inputs and is_unlike("right", candidate.inputs):
        details.append("the samples are unlike all that the probability was learnt from")
    drawn = candidate.facts.drawn
    if drawn.n_given:
        n, copies = drawn.n_given, drawn.n_given - drawn.columns.shape[0]
        details.append(f"{copies:,} of {n:,} rows are copies of others, and change nothing")
    said = "; ".join(filter(None, details))
    return f"{remark} {said[:1].upper()}{said[1:]}".strip() if remark else said


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
