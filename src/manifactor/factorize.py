"""From samples to factors: try the models of a product one after another, take the likeliest."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from manifactor._support.errors import NothingFoundError, Warned, first_sentence
from manifactor._support.parameters import Choice, given
from manifactor._support.stages import Stages
from manifactor._support.threads import one_blas_thread
from manifactor.factorization import MOST_WITH_OTHERS, Factorization, Proposal
from manifactor.factors.factor import Factor
from manifactor.judging.candidate import (
    Candidate,
    Facts,
    likeliest,
    likeliest_division,
    measured,
    streams_of,
)
from manifactor.judging.evidence import CURVES, Evidence
from manifactor.judging.probability import agreement
from manifactor.judging.table import CRITERIA
from manifactor.judging.verdict import evidence_of, with_probability
from manifactor.kinds import MODELS, NOTHING, Model, always, require_as_many, whole_factor
from manifactor.models.moves.lagged import diffuse_moves
from manifactor.operators.neighbors import DisconnectedGraphWarning
from manifactor.operators.operator import DiffusionSettings, Operator
from manifactor.samples import Samples
from manifactor.samples.columns import no_measurements, warned_of
from manifactor.samples.preparation import MOST_COMPONENTS
from manifactor.settings import SUM_NAMES, FactoringSettings, is_auto, require_factoring
from manifactor.statistics import distinct_rows, nested_r2, random_rows

# R^2 of coordinates that are the same.
SAME = 0.95
# Kinds of results beside which no model is tried.
ONLY = {"line", "asked"}
WHY_SO_MANY = {
    "one factor": "one curve, beside noise, tells all samples apart",
    "none": "no product structure was found",
    "gradients": (
        "so many blocks of eigenfunctions have orthogonal gradients, beyond the samples' own noise"
    ),
    "separable": "so many coordinates, or groups of them, separate",
    "sum": "so many independent terms add up to the samples, and leave noise",
    "divided sum": (
        "independent terms add up to the samples, and a surface among them is a product by itself"
    ),
    "triplets": "the fewest groups that separate nearly all pairs in triplets",
}


def factorize(
    samples: Samples,
    spectral: DiffusionSettings = DiffusionSettings(),
    settings: FactoringSettings = FactoringSettings(),
    *,
    stages: Stages | None = None,
) -> Factorization:
    """Split the manifold of samples into its factors; warnings are data of the result.

    Copies of rows change nothing: distinct ones are factored.
    """
    stages = stages or Stages()
    if samples.moves is None and not (spectral.precomputed or spectral.own_search):
        rows, copy_of = distinct_rows(samples.columns)
        # Of fewer rows, the graph says how many are distinct.
        if CRITERIA["samples"].limit <= len(rows) < len(copy_of):
            distinct = replace(samples, columns=samples.columns[rows], n_given=len(copy_of))
            found = factorize(distinct, spectral, settings, stages=stages)
            return found.with_copies(samples, rows, copy_of)
    facts = facts_of(samples, spectral, settings, stages)
    # Matrices are small, and our threads use all cores, whatever the number of samples. Samples of
    # many columns, such as images that were left as they are, are large.
    points = facts.operator.points
    narrow = points is None or points.shape[1] <= MOST_COMPONENTS
    with stages.timed("factors"), one_blas_thread() if narrow else nullcontext():
        try:
            return conclude(facts, search(facts))
        except NothingFoundError as error:
            # The graph may be the reason.
            error.warned = (*warned_before(facts), *facts.operator.warned)
            raise


def facts_of(
    samples: Samples, spectral: DiffusionSettings, settings: FactoringSettings, stages: Stages
) -> Facts:
    """Return what is the same for all models of samples, their operator first of all."""
    X, several = samples.columns, settings.n_asked != 1 and samples.moves is None

    def diffuse(chosen: Mapping[str, Choice]) -> Operator:
        choices = {**settings.choices, **chosen}
        return diffuse_moves(
            X, spectral, samples.moves, choices=choices, stages=stages, rng=samples.rng
        )

    def again(verdict: str) -> Facts | None:
        pairs = samples.as_pairs(verdict) if samples.as_pairs else None
        return None if pairs is None else facts_of(pairs, spectral, settings, stages)

    columns = no_measurements(X) if several else {}
    operator = diffuse({})
    # The number of functions is known only now; all else was checked by the estimator.
    require_factoring(settings, n_functions=len(operator.distinct.eigenvalues))
    fixed = np.random.default_rng(0)
    free = _is_free(settings, operator)
    # Samples may be counts, spectra or densities, and a second fit is cheap.
    counts = several and samples.noise is None and not spectral.precomputed
    counts = counts and spectral.transformation == "auto" and X.shape[0] <= 20_000
    return Facts(
        operator,
        settings.n_asked,
        samples,
        settings,
        is_free=free,
        columns=columns,
        rng=fixed,
        streams=streams_of(fixed) if free else {},
        search=search,
        conclude=conclude,
        diffuse=diffuse,
        again=again if samples.as_pairs else None,
        may_be_counts=counts and X.shape[1] >= 10 and bool((X >= 0).all()),
        report=lambda fraction: stages.report("factors", fraction),
    )


def _is_free(settings: FactoringSettings, operator: Operator) -> bool:
    """Return whether all models may be tried.

    The caller must have left all that shapes the walk to the program, and the samples must be
    enough.
    """
    walk = operator.settings
    left_to_us = (
        is_auto(walk.bandwidth)
        and walk.density_correction == DiffusionSettings().density_correction
        and not (walk.own_search or walk.precomputed or walk.dense)
    )
    auto = settings.method == "gradients" and is_auto(settings.sense)
    auto &= operator.metric is None and not operator.lagged
    enough = len(operator.graph.distinct) >= CRITERIA["samples"].limit
    return auto and left_to_us and enough


def models_of(facts: Facts) -> list[Model]:
    """Return the models that may be tried, in their order."""
    settings = facts.settings
    first, roots = MODELS["one factor"], MODELS["square roots"]
    if settings.method == "triplets":
        return [first, MODELS["triplets"], roots]
    if facts.is_free or facts.is_moving:
        of = "moves" if facts.is_moving else "samples"
        return [first, *(model for model in MODELS.values() if model.of == of)]
    sense = "sum" if settings.method in SUM_NAMES else settings.sense
    names = {"auto": ["geometry"], "ica": ["ica", "ica of functions"]}.get(sense, [sense])
    return [first, *(replace(MODELS[name], worth_trying=always) for name in names), roots]


def search(
    facts: Facts, models: Sequence[Model] = (), *, only_likely: bool = False
) -> list[Candidate]:
    """Return the best candidate of each model that is worth trying, up to one that is sure.

    The models are those of the settings if none are given. With `only_likely`, the search ends
    where the first model shows no likely factors.
    """
    models, tried = models or models_of(facts), list[Candidate]()
    errors: list[Exception] = []
    for number, model in enumerate(models):
        facts.report(number / len(models))
        if not model.worth_trying(facts, tried):
            continue
        try:
            operator = model.operator(facts, tried)
            candidates = (
                [*model.read(model, operator, facts, tried)] if operator is not None else []
            )
        except NOTHING as error:
            errors.append(error)
            facts.passed_over[model.name] = first_sentence(error)
            continue
        if candidates:
            tried = rated([*tried, best_of(candidates, facts)], facts)
            if is_sure(tried[-1]):
                break
        # Lines come first, and most samples lie on none.
        if only_likely and facts.is_free and number and not any(c.is_likely for c in tried):
            return []
    if not tried:
        raise _error_of_nothing(facts, errors)
    return tried


def _error_of_nothing(facts: Facts, errors: Sequence[Exception]) -> NothingFoundError:
    """Return the error of a search in which no model has a candidate."""
    for error in errors:
        if isinstance(error, NothingFoundError):
            return _error_of_count(facts) if facts.is_free and facts.n_asked else error
    reasons = "; ".join(f"{model}: {why}" for model, why in facts.passed_over.items())
    return NothingFoundError(
        f"none of the models of a product can be solved on these samples ({reasons}). Remove "
        "columns that hardly change, and samples that differ by rounding only, or raise "
        "`n_neighbors`."
    )


def best_of(candidates: Sequence[Candidate], facts: Facts) -> Candidate:
    """Return the likeliest of what one model proposes."""
    alone = candidates if len(candidates) < 2 else rated(candidates, facts, alone=True)
    return likeliest(alone)


def is_sure(candidate: Candidate) -> bool:
    """Return whether nothing better is to be expected."""
    sure = candidate.probability >= CRITERIA["certainty"].limit
    product = sure and candidate.verdict == "product" and not candidate.has_wrong_lengths
    return bool(candidate.kinds & ONLY) or product


def rated(tried: Sequence[Candidate], facts: Facts, *, alone: bool = False) -> list[Candidate]:
    """Return candidates with their probabilities, each beside the others of the same samples."""
    if not facts.is_free:
        return [*tried]
    own = [each for each in tried if each.facts is facts]
    r2 = np.full((len(own), len(own)), np.nan) if alone else agreement_of(own, facts.agreed)
    counts = np.array([len(each.factors) for each in own])
    said = [
        with_probability(each, agreement(count, zip(counts[others], row[others], strict=True)))
        for each, count, row, others in zip(own, counts, r2, ~np.isnan(r2), strict=True)
    ]
    # Candidates with the same coordinates are right together.
    alike = (r2 >= SAME) & (counts == counts[:, None])
    same = [[said[j] for j in np.flatnonzero(row)] for row in alike]
    lifted = iter(_as_likely_as(each, others) for each, others in zip(said, same, strict=True))
    return [next(lifted) if each.facts is facts else each for each in tried]


def _as_likely_as(candidate: Candidate, others: Sequence[Candidate]) -> Candidate:
    probability, true = np.max([(c.probability, c.true) for c in (candidate, *others)], axis=0)
    return replace(candidate, probability=float(probability), true=float(true))


def agreement_of(
    candidates: Sequence[Candidate], known: dict[tuple[int, int], Any] | None = None
) -> np.ndarray:
    """Return how far the factors of candidates agree, (n, n): R^2, nan where there are not two.

    Of as many factors as the candidate with fewer of them has. What is `known` is not computed
    again.
    """
    known = {} if known is None else known
    r2 = np.full((len(candidates), len(candidates)), np.nan)
    for i, j in combinations(range(len(candidates)), 2):
        ones, others = candidates[i].factors, candidates[j].factors
        key = id(ones), id(others)
        if min(len(ones), len(others)) < 2:
            continue
        if key not in known:
            # Factors are held, too, as long as their addresses are a key.
            known[key] = ones, others, nested_r2(_some_places(ones), _some_places(others))
        r2[i, j] = r2[j, i] = known[key][-1]
    return r2


def _some_places(factors: Sequence[Factor]) -> list[np.ndarray]:
    """Return places of a thousand samples, which tell whether two factors are the same."""
    return [factor.embedding[random_rows(len(factor.embedding), 1000)] for factor in factors]


def _error_of_count(facts: Facts) -> NothingFoundError:
    """Return an error that says how many factors any model shows, fewer than were asked for."""
    freely = replace(facts, n_asked=None, settings=replace(facts.settings, n_factors="auto"))
    count = max(len(candidate.factors) for candidate in search(freely))
    try:
        require_as_many(facts.n_asked, max(count, 1))
    except NothingFoundError as error:
        return error
    return NothingFoundError(
        f"no sense of a product divides these samples into just {facts.n_asked} factors. Leave "
        "`n_factors` at its default."
    )


# The result: the likeliest candidate with its evidence, and what was chosen.


def conclude(facts: Facts, tried: Sequence[Candidate]) -> Factorization:
    """Return the best of the candidates that were tried as a result; the same is made once."""
    key = tuple(map(id, tried))
    if key not in facts.results:
        # The candidates are held, too, as long as their addresses are a key.
        facts.results[key] = tried, _concluded(facts, tried)
    return facts.results[key][1]


def _concluded(facts: Facts, tried: Sequence[Candidate]) -> Factorization:
    best, choices = _chosen(facts, tried)
    result = _result(facts, tried, best, choices)
    others = [each for each in tried if each.model != best.model and len(each.factors) > 1]
    others.sort(key=lambda each: -np.nan_to_num(each.probability))
    whole = _proposal(best, result)
    none = [
        Proposal(each.model, 0, why_not="it shows one factor")
        for each in tried
        if not each.factors and each.model != best.model
    ]

    def take(k: int) -> Factorization:
        if k == 0:
            return result
        other = others[k - 1]
        chosen = Choice(other.sense, f"candidate {k} was chosen")
        return _result(facts, tried, other, {**other.choices, "sense": chosen})

    listed = (whole, *map(_proposal, others), *none, *_passed_over(facts))
    held = len(facts.operator.graph.distinct) <= MOST_WITH_OTHERS
    return replace(result, proposals=listed, take=take if held else None)


def _proposal(candidate: Candidate, result: Factorization | None = None) -> Proposal:
    factors = candidate.factors if result is None else result.factors
    return Proposal(
        candidate.model,
        len(factors),
        tuple(factor.shape for factor in factors),
        candidate.probability if result is None else result.evidence.probability,
        {test.name: test.value for test in candidate.tests},
    )


def _passed_over(facts: Facts) -> list[Proposal]:
    return [Proposal(model, 0, why_not=why) for model, why in facts.passed_over.items()]


def _result(
    facts: Facts, tried: Sequence[Candidate], best: Candidate, choices: dict[str, Choice]
) -> Factorization:
    """Return one of the candidates that were tried as a result, with its evidence."""
    facts = best.facts
    factors, placer = best.factors, best.placer
    if not factors:
        factors, placer = as_whole(best)
    shapes = [candidate.symmetries for candidate in tried if len(tried) > 1]
    alike = (each for each in shapes if each is not None and each.is_homogeneous)
    symmetries = next(alike, best.symmetries)
    evidence, of_columns, of_none = evidence_of(best, factors, symmetries=symmetries)
    # Outliers lie where their nearest neighbour lies, which says nothing about them.
    outliers = facts.operator.graph.outliers
    factors = tuple(
        replace(factor, confidence=np.where(outliers, 0.0, factor.confidence)) for factor in factors
    )
    count = len(best.operator.distinct.eigenvalues)
    settings = facts.settings
    method = given(settings.method)
    if settings.method == FactoringSettings().method:
        method = Choice(settings.method, "the default: it also finds the number of factors")
    choices = {**choices, "method": method}
    choices["factors"] = _choice_of_factors(best, evidence, settings)
    if count > len(facts.operator.distinct.eigenvalues) and best.sense == "geometry":
        choices["functions"] = Choice(
            count, "more than usual: the factors first found had fewer dimensions than the data"
        )
    # A sum needs no graph; other models have graphs of their own, and have warned of them.
    graph = _of_graph(facts) if best.sense == "geometry" else ()
    return Factorization(
        factors,
        evidence,
        # A fit is tested by its moves once; archives and pickles need not hold them.
        replace(best.operator, path=None, lagged=()),
        best.splits,
        triplets=getattr(best.read, "triplets", None),
        cut=getattr(best.read, "cut", None),
        placer=placer,
        choices=choices,
        drawn=facts.drawn,
        warned=(*warned_before(facts), *best.warned, *of_none, *graph, *of_columns),
    )


def _chosen(facts: Facts, tried: Sequence[Candidate]) -> tuple[Candidate, dict[str, Choice]]:
    """Return the likeliest candidate, or one factor if none is likely, and the choice of sense."""
    best = likeliest(tried)
    if not facts.is_free or best.kinds & ONLY:
        return best, dict(best.choices)
    why = "likeliest to be right"
    if not (best.is_likely or (facts.n_asked is not None and len(best.factors) > 1)):
        best, why = as_one(tried, best), "none is likely to be right"
    if len(tried) == 1:
        return best, dict(best.choices)
    said = ", ".join(
        f"{each.sense} {f'{each.probability:.0%}' if len(each.factors) > 1 else 'one factor'}"
        for each in tried
    )
    return best, {**best.choices, "sense": Choice(best.sense, f"{why}: {said}")}


def as_whole(one: Candidate) -> tuple[tuple[Factor, ...], Any]:
    """Return the data as one factor, a circle if they are one, and what places samples on it."""
    whole = whole_factor(one.operator)
    if whole[0][0].topology in CURVES or one.as_circle is None:
        return whole
    return one.as_circle


def as_one(tried: Sequence[Candidate], best: Candidate) -> Candidate:
    """Return one factor: as the geometry has found it, or in place of several unlikely ones."""
    ones = [each for each in tried if each.sense == "geometry" and not each.factors]
    division = likeliest_division(tried)
    one = replace(
        best, model="one factor", tests=best.failed, factors=(), raw=(), inner={}, warned=()
    )
    one = ones[-1] if ones else one
    curves = (each for each in tried if each.as_circle is not None)
    if one.as_circle is None and (other := next(curves, None)) is not None:
        other = replace(other, model="one factor", factors=(), raw=(), inner={}, kinds=one.kinds)
        other = replace(other, tests=one.tests, numbers=one.numbers)
        one = one if as_whole(one)[0][0].topology in CURVES else other
    one = replace(one, instead=division)
    return measured(one, {"unlikely"}) if division else one


def warned_before(facts: Facts) -> tuple[Warned, ...]:
    """Return the warnings of columns, of the operator but for its graph, and of the method."""
    old: tuple[Warned, ...] = ()
    if facts.settings.method == "deflation":
        said = (
            "`method='deflation'` will be removed in version 0.4; use `method='sum'`, which is "
            "the same."
        )
        old = (Warned(said, FutureWarning),)
    graph = _of_graph(facts)
    others = (warned for warned in facts.operator.warned if warned not in graph)
    return (*warned_of(facts.columns, facts.drawn.names), *others, *old)


def _of_graph(facts: Facts) -> tuple[Warned, ...]:
    warned = facts.operator.warned
    return tuple(each for each in warned if each.category is DisconnectedGraphWarning)


def _choice_of_factors(best: Candidate, evidence: Evidence, settings: FactoringSettings) -> Choice:
    count = evidence.n_factors
    if settings.n_asked == count:
        return given(count)
    if settings.n_asked is not None:
        return Choice(count, f"no more of the {settings.n_asked} asked for were found")
    if evidence.verdict in WHY_SO_MANY:
        return Choice(count, WHY_SO_MANY[evidence.verdict])
    kind = best.sense if best.sense in ("sum", "separable") else settings.method
    return Choice(count, WHY_SO_MANY["divided sum" if best.inner else kind])
