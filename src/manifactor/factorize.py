"""From a diffusion to the factors of the manifold: find them, divide terms of a sum, judge."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import NoReturn

import numpy as np
from numpy.random import Generator

from manifactor import methods
from manifactor._support.errors import (
    NothingFoundError,
    held_warnings,
    issue,
    warn_all,
    warn_caller,
)
from manifactor._support.parameters import Choice, given
from manifactor._support.workers import ignored
from manifactor.factorization import (
    SUM_NAMES,
    FactoringSettings,
    Factorization,
    Tried,
    is_auto,
    require_factoring,
)
from manifactor.factors.factor import Factor
from manifactor.factors.placing import ByFunctions, place_blocks
from manifactor.judging.evidence import CURVES, VERDICTS, Evidence, NoProductStructureWarning
from manifactor.judging.measures.places import prepared_noise, signal_share
from manifactor.judging.probability import (
    Sampling,
    kind_of_one,
    kind_of_several,
    of_factor,
    of_one,
    of_several,
    probability,
)
from manifactor.judging.table import CRITERIA, judge
from manifactor.models.moves import motion
from manifactor.models.moves.paths import Bursts, Pairs, Trajectory
from manifactor.models.peeling.peeling import MAX_FACTORS
from manifactor.models.separable.separation import find_separation
from manifactor.models.sums.summands import ByTerms, DividedTerm
from manifactor.operators.operator import DiffusionSettings, Operator
from manifactor.operators.pipeline import diffuse
from manifactor.operators.variants import in_density, in_volume
from manifactor.statistics import NOT_MEASURED, Measurement, leaves_noise, matched_r2, random_rows


def factorize(
    diffusion: Operator,
    settings: FactoringSettings = FactoringSettings(),
    *,
    noise: np.ndarray | None = None,
    only_likely: bool = False,
    report: Callable[[float], None] = ignored,
    rng: Generator,
) -> Factorization:
    """Split the manifold of samples into its factors.

    With `only_likely`, samples whose geometry shows no likely factors raise `NothingFoundError`.
    `report` is told which fraction of the senses has been tried.

    Shapes: noise (n_features,).
    """
    # The number of functions is known only now; all else was checked by the estimator.
    require_factoring(settings, n_functions=len(diffusion.distinct.eigenvalues))
    found = find(diffusion, settings, only_likely=only_likely, report=report, rng=rng)
    return judged(found, diffusion, settings, noise=noise, rng=rng)


def find(
    diffusion: Operator,
    settings: FactoringSettings,
    *,
    only_likely: bool = False,
    report: Callable[[float], None] = ignored,
    rng: Generator,
) -> Factorization:
    """Return the factors by the method, and in the sense, that the caller chose."""
    if settings.method == "deflation":
        warn_caller(
            "`method='deflation'` will be removed in version 0.4; use `method='sum'`, "
            "which is the same.",
            FutureWarning,
        )
    n_asked = settings.n_asked
    if n_asked in (None, 1):
        line = methods.weigh_line(diffusion)
        evidence = Evidence(judge({"factors asked for": 1})) if n_asked else line
        if evidence is not None:
            whole, placer = methods.whole_factor(diffusion, on_line=line is not None)
            return _named_if_curve(Factorization(whole, evidence, diffusion, placer=placer))
    if settings.method == "triplets":
        return methods.find_by_triplets(diffusion, settings, rng=rng)
    if diffusion.metric is not None or diffusion.lagged:
        found = _in_moves(diffusion, n_asked, rng=rng)
        return found if found.factors else _as_whole(found)
    sense = "sum" if settings.method in SUM_NAMES else settings.sense
    sampling = sampling_of(diffusion)
    likeliest = 0.0
    if not is_auto(sense):
        found = SENSE_SEARCHES[sense](diffusion, n_asked, rng=rng)
    elif _may_try_others(diffusion):
        proposals = propose(
            diffusion, n_asked, sampling, only_likely=only_likely, report=report, rng=rng
        )
        likeliest = max(each.probability for each in proposals)
        found = replace(choose(proposals, n_asked), tried=tuple(each.tried for each in proposals))
    else:
        found = SENSE_SEARCHES["geometry"](diffusion, n_asked, rng=rng)
    if not found.factors:
        found = _as_whole(found)
    return with_probability(found, likeliest, sampling)


def _in_moves(
    diffusion: Operator, n_asked: int | None, *, rng: np.random.Generator
) -> Factorization:
    """Factors in units of moves; if they are not a product, in flat places if these show more."""
    with held_warnings() as warned:
        found = methods.find_in_functions(diffusion, n_asked, sense="dynamics", rng=rng)
    if diffusion.metric is not None and found.evidence.verdict != "product":
        search = partial(methods.find_in_flat_places, found, n_asked, rng=rng)
        other, of_other = methods.attempt(search)
        # Axes of flat places are always found: alone, they must be those of a box.
        if (
            other is not None
            and other.evidence.is_better_than(found.evidence)
            and (found.factors or not other.evidence.fails("folds", "filling"))
        ):
            found, warned = other, of_other
    issue(warned)
    return found


def _as_whole(found: Factorization) -> Factorization:
    """Return a result without factors with all data as one."""
    whole, placer = methods.whole_factor(found.diffusion)
    return _named_if_curve(replace(found, factors=whole, placer=placer))


def _named_if_curve(found: Factorization) -> Factorization:
    """Return one factor as it is, or named where it is a curve that leaves noise only."""
    (whole,), diffusion = found.factors, found.diffusion
    if whole.topology not in CURVES or diffusion.points is None:
        return found
    if not leaves_noise(whole.embedding, diffusion.points):
        return found
    return replace(found, evidence=replace(found.evidence, curve=whole.topology))


# Senses of a product.


def _in_functions_of(
    other_sense: Callable[..., Operator],
    sense: str,
    diffusion: Operator,
    n_asked: int | None,
    *,
    rng: Generator,
) -> Factorization:
    """Factors in the functions of another diffusion of the same samples."""
    other = other_sense(diffusion, rng=rng)
    warn_all(other.warned)
    eigenvalues = other.distinct.eigenvalues
    # In a graph of several components, functions are constant on each of them.
    if len(eigenvalues) < 2 or eigenvalues[1] <= np.finfo(float).eps * eigenvalues[-1]:
        raise NothingFoundError(
            f"the kernel of `sense={sense!r}` must connect these samples and resolve "
            "more than the constant function, and does not. Choose another `sense`."
        )
    return methods.find_in_functions(other, n_asked, sense=sense, strict=True, rng=rng)


def _in_samples(diffusion: Operator, n_asked: int | None, *, rng: Generator) -> Factorization:
    """Terms of a sum, and the factors of those that are products themselves."""
    sampling = sampling_of(diffusion)

    def may_be_right(found: Factorization) -> bool:
        # Even if another sense confirms it.
        return probability_of_several(found, 1.0, sampling) >= 0.05

    found = methods.find_in_samples(diffusion, n_asked, may_be_right=may_be_right, rng=rng)
    found = divide_terms(found, n_asked, rng=rng)
    methods.require_as_many(n_asked, len(found.factors))
    return found


# In the order in which they are tried. All but the geometry are further chances to find a product
# by accident, so that their tests have stricter limits. `SENSES` of `judging/criteria.py` says what
# each of them means.
SENSE_SEARCHES: dict[str, Callable[..., Factorization]] = {
    "geometry": methods.find_in_functions,
    "sum": _in_samples,
    "volume": partial(_in_functions_of, in_volume, "volume"),
    "density": partial(_in_functions_of, in_density, "density"),
    "separable": find_separation,
}

# The spread of the density of even samples is .09 to .13 on surfaces with edges and .04 to .07 on
# others; on tori that are sampled evenly by their angles it is .11 to .24.
EVEN, EVEN_WITHOUT_EDGES = 0.14, 0.08
# Probabilities that differ by less are nearly the same.
NEARLY = 0.2


@dataclass(frozen=True)
class Proposal:
    """What a sense proposes, its warnings, and how often such results are right.

    The probability of one factor is 0 here: it is what remains if nothing else is likely.
    """

    sense: str
    found: Factorization
    warned: list[warnings.WarningMessage]
    probability: float = 0.0

    @property
    def tried(self) -> Tried:
        """What is kept of a proposal that was tried."""
        measured = {test.name: test.value for test in self.found.evidence.tests}
        return Tried(self.sense, len(self.found.factors), self.probability, measured)

    @property
    def is_likely(self) -> bool:
        """Whether such results are right often enough to be returned."""
        return self.probability >= CRITERIA["probability"].limit

    @property
    def ends_search(self) -> bool:
        """Whether nothing better is to be expected: a product that is sure."""
        sure = self.probability >= CRITERIA["certainty"].limit
        return sure and self.found.evidence.verdict == "product"

    def __str__(self) -> str:
        several = len(self.found.factors) > 1
        return f"{self.sense} {f'{self.probability:.0%}' if several else 'one factor'}"


def propose(
    diffusion: Operator,
    n_asked: int | None,
    sampling: Sampling,
    *,
    only_likely: bool = False,
    report: Callable[[float], None] = ignored,
    rng: Generator,
) -> list[Proposal]:
    """Return what each sense proposes, up to the first that ends the search.

    On even samples the density changes nothing. More functions are computed where all proposals are
    unlikely and the geometry misses a dimension.
    """
    # Each sense has random numbers of its own: what one finds does not depend on the others.
    streams = dict(zip(SENSE_SEARCHES, rng.spawn(len(SENSE_SEARCHES)), strict=True))
    searches = {
        sense: partial(search, diffusion, n_asked, rng=streams[sense])
        for sense, search in SENSE_SEARCHES.items()
    }
    searches["geometry"] = partial(
        methods.find_in_functions, diffusion, n_asked, grow=False, rng=rng
    )
    proposals: list[Proposal] = []
    for number, (sense, search) in enumerate(searches.items()):
        # One part more: functions that are added, and what is judged in the end.
        report(number / (len(searches) + 1))
        if not _is_worth_trying(sense, proposals, sampling):
            continue
        proposals = weighed([*proposals, *_proposed(sense, search)], sampling)
        if proposals and proposals[-1].ends_search:
            return proposals
        if only_likely and not any(each.is_likely for each in proposals):
            raise NothingFoundError("the geometry must show likely factors, and does not.")
    report(len(searches) / (len(searches) + 1))
    if not any(each.is_likely for each in proposals):
        more = _of_more_functions(proposals, diffusion, n_asked, rng=rng)
        proposals = weighed([*proposals, *more], sampling)
    if not proposals and n_asked is not None:
        _raise_how_many(diffusion, n_asked, sampling, rng=rng)
    return proposals


def _is_worth_trying(sense: str, proposals: Sequence[Proposal], sampling: Sampling) -> bool:
    """Whether a sense may show more than those before it."""
    if sense == "volume":
        return not _is_same_in_volume(proposals, sampling)
    if sense == "density":
        return sampling.is_uneven
    # Coordinates of a twisted product separate in every part, but not as a whole.
    return sense != "separable" or not any(
        _is_sound(each.found) and each.found.evidence.fails("twist in data") for each in proposals
    )


def _is_same_in_volume(proposals: Sequence[Proposal], sampling: Sampling) -> bool:
    """Whether units of the density change nothing about right coordinates: samples are even.

    Only lengths may be wrong then, which the sense "volume" does not test.
    """
    of_geometry = [each.found for each in proposals if each.sense == "geometry"]
    if not of_geometry or not _is_sound(of_geometry[0]):
        return False
    (found,) = of_geometry
    closed = all(factor.topology == "circle" for factor in found.factors)
    limit = EVEN_WITHOUT_EDGES if closed else EVEN
    return sampling.spread <= limit and not found.evidence.fails("product")


def _proposed(sense: str, search: Callable[[], Factorization]) -> list[Proposal]:
    """What a sense proposes; nothing if it finds less than was asked for."""
    found, warned = methods.attempt(search)
    return [] if found is None else [Proposal(sense, found, warned)]


def weighed(proposals: Sequence[Proposal], sampling: Sampling) -> list[Proposal]:
    """Return proposals with their probabilities, each beside the others."""
    confirmed = confirmations([each.found for each in proposals])
    return [
        replace(each, probability=probability_of_several(each.found, r2, sampling))
        for each, r2 in zip(proposals, confirmed, strict=True)
    ]


def confirmations(found: Sequence[Factorization]) -> list[float]:
    """Return the R^2 of each result's factors with the same ones of another; nan if it is alone."""
    r2 = np.full((len(found), len(found)), np.nan)
    for i, j in combinations(range(len(found)), 2):
        one, other = ([_some_places(each) for each in found[k].factors] for k in (i, j))
        r2[i, j] = r2[j, i] = matched_r2(one, other) if len(one) > 1 else 0.0
    return np.nanmax(r2, axis=1).tolist() if len(found) > 1 else [np.nan] * len(found)


def _some_places(factor: Factor) -> np.ndarray:
    """Where some of the samples lie on a factor: a thousand tell whether two are the same."""
    return factor.embedding[random_rows(len(factor.embedding), 1000)]


def _of_more_functions(
    proposals: Sequence[Proposal], diffusion: Operator, n_asked: int | None, *, rng: Generator
) -> list[Proposal]:
    """What the geometry proposes of more functions, if it misses a dimension."""
    first = [each.found for each in proposals if each.sense == "geometry"]
    if not first:
        search = partial(methods.find_in_functions, diffusion, n_asked, rng=rng)
    elif first[0].evidence.fails("dimensions", "missing dimensions"):
        search = partial(methods.find_in_more_functions, first[0], n_asked, rng=rng)
    else:
        return []
    return _proposed("geometry", search)


def choose(proposals: Sequence[Proposal], n_asked: int | None) -> Factorization:
    """Return the proposal that is most likely right, or one factor if none is likely.

    Of proposals that are nearly as likely, a product is taken first, then coordinates that
    separate: they also say how the factors belong together.
    """
    highest = max(each.probability for each in proposals)
    likely = [each for each in proposals if each.is_likely] or proposals
    best = max(
        (each for each in likely if each.probability >= highest - NEARLY),
        key=lambda each: (-list(VERDICTS).index(each.found.evidence.verdict), each.probability),
    )
    if best.is_likely or (n_asked is not None and len(best.found.factors) > 1):
        chosen, why = best, "likeliest to be right"
    else:
        chosen, why = _as_one(proposals, best), "none is likely to be right"
    issue(chosen.warned)
    found = chosen.found
    if found.factors:
        found = replace(found, evidence=replace(found.evidence, probability=chosen.probability))
    if len(proposals) == 1:
        return found
    tried = ", ".join(map(str, proposals))
    choices = {**found.choices, "sense": Choice(found.evidence.sense, f"{why}: {tried}")}
    return replace(found, evidence=_with_symmetries(found.evidence, proposals), choices=choices)


def _as_one(proposals: Sequence[Proposal], best: Proposal) -> Proposal:
    """One factor: as the geometry has found it, or in place of several that are unlikely."""
    ones = [each for each in proposals if each.sense == "geometry" and not each.found.factors]
    if ones:
        return ones[-1]
    found = best.found
    unlikely = judge({"probability": best.probability}, found=len(found.factors))
    evidence = replace(
        found.evidence,
        tests=found.evidence.failed + unlikely,
        leakage=np.full((1, 1), np.nan),
        dependence=NOT_MEASURED,
        terms=(),
    )
    nothing = replace(found, factors=(), evidence=evidence, placer=ByFunctions())
    return replace(best, found=nothing, warned=[])


def _raise_how_many(
    diffusion: Operator, n_asked: int, sampling: Sampling, *, rng: Generator
) -> NoReturn:
    """Raise an error that says how many factors any sense shows, fewer than were asked for."""
    found = max(len(each.found.factors) for each in propose(diffusion, None, sampling, rng=rng))
    methods.require_as_many(n_asked, max(found, 1))
    raise NothingFoundError(
        f"no sense of a product divides these samples into just {n_asked} factors. Leave "
        "`n_factors` at its default."
    )


def _with_symmetries(evidence: Evidence, proposals: Sequence[Proposal]) -> Evidence:
    """The evidence with symmetries of a shape that looks the same everywhere.

    On other shapes, symmetries mean something only beside coordinates that separate.
    """
    for each in proposals:
        symmetries = each.found.evidence.symmetries
        if symmetries is not None and symmetries.is_homogeneous:
            return replace(evidence, symmetries=symmetries)
    return evidence


# How often such results are right.


def sampling_of(diffusion: Operator) -> Sampling:
    """Return what is known of the samples before any factor is found."""
    n_distinct = len(diffusion.graph.distinct)
    return Sampling(n_distinct, diffusion.dimension, methods.density_of(diffusion).spread)


def probability_of_several(found: Factorization, confirmed: float, sampling: Sampling) -> float:
    """Return how often such results are right; 0 for one factor."""
    if len(found.factors) < 2:
        return 0.0
    evidence, factors = found.evidence, found.factors
    faults = of_several(
        evidence.sense,
        evidence.tests,
        [factor.dimension for factor in factors],
        min(factor.confidence.mean() for factor in factors),
        confirmed,
        sampling,
    )
    return probability("several", kind_of_several(evidence.sense, len(factors)), faults)


def with_probability(found: Factorization, likeliest: float, sampling: Sampling) -> Factorization:
    """Return a result with its probability and that of each factor.

    `likeliest` is the probability of the best division into several factors, which one factor is
    weighed against. Nothing is said of samples unlike those of the problems learnt from, nor where
    the answer is that it cannot be told.
    """
    evidence = found.evidence
    if not sampling.is_known or evidence.answer == "cannot tell":
        return replace(found, evidence=evidence.without_probability())
    if len(found.factors) == 1:
        right = probability("one", kind_of_one(evidence), of_one(likeliest, sampling))
        return replace(found, evidence=replace(evidence, probability=right, probabilities=(right,)))
    right = evidence.probability
    if np.isnan(right):  # no other sense was tried
        right = probability_of_several(found, np.nan, sampling)
    leaks = np.fmax(np.nanmax(evidence.leakage, axis=0), np.nanmax(evidence.leakage, axis=1))
    each = tuple(
        # All factors are right at most as often as one of them.
        max(right, probability("factor", factor.topology, of_factor(right, leak, sure)))
        for factor, leak, sure in zip(
            found.factors, leaks, (each.confidence.mean() for each in found.factors), strict=True
        )
    )
    evidence = replace(evidence, probability=right, probabilities=each)
    if evidence.verdict == "product":
        evidence = replace(evidence, tests=evidence.tests + judge({"certainty": right}))
    return replace(found, evidence=evidence)


def _may_try_others(diffusion: Operator) -> bool:
    """Whether other senses of a product may be tried.

    The caller must have left all that shapes the walk to the program, and the samples must be
    enough.
    """
    given = diffusion.settings
    left_to_us = (
        is_auto(given.bandwidth)
        and given.density_correction == DiffusionSettings().density_correction
        and not (given.own_search or given.precomputed or given.dense)
    )
    return left_to_us and len(diffusion.graph.distinct) >= CRITERIA["samples"].limit


# Terms of a sum that are products of lengths themselves, and their factors.


def divide_terms(found: Factorization, n_asked: int | None, *, rng: Generator) -> Factorization:
    """Return a sum with factors in place of each surface that is a product of lengths.

    Everything else is returned as it is, and so is a sum whose coordinates are wrong. No more
    factors are made than the caller asked for.
    """
    if found.sum is None or not _is_sound(found):
        return found
    room = (n_asked or MAX_FACTORS) - len(found.factors)
    factors: list[Factor] = []
    inside: dict[int, Factorization] = {}
    choices = dict(found.choices)
    # What the caller set for the samples, such as a bandwidth, need not fit a surface.
    given = found.diffusion.settings
    spectral = DiffusionSettings(preparation="none", n_jobs=given.n_jobs, device=given.device)
    for term, factor in enumerate(found.factors):
        if factor.topology != "other" or room < 1:
            factors.append(factor)
            continue
        points = found.sum.points(found.diffusion.samples, term)
        inner, warned = methods.attempt(partial(_inside, points, spectral, most=room + 1, rng=rng))
        if inner is None or not _is_nearly_a_product(inner):
            factors.append(factor)
            choice = Choice(1, "the surface is not a product of lengths by itself")
        else:
            issue(warned)
            inside[term] = inner
            factors += _factors_of(factor, inner)
            room -= len(inner.factors) - 1
            why = "the surface is a product of lengths by itself, or nearly"
            choice = Choice(len(inner.factors), why)
        choices[f"term {term + 1}"] = choice
    if not inside:
        return replace(found, choices=choices)
    # Placing is written for the host's side of a device.
    divided = tuple(
        DividedTerm(term, len(inner.factors), inner.diffusion.settled(), inner.placer)
        for term, inner in inside.items()
    )
    evidence = methods.weigh_terms(
        found.evidence, {term: inner.evidence for term, inner in inside.items()}
    )
    placer = ByTerms(found.sum, divided)
    return replace(found, factors=tuple(factors), evidence=evidence, placer=placer, choices=choices)


def _is_sound(found: Factorization) -> bool:
    """Whether there are several factors, and no failed test says that coordinates are wrong."""
    return len(found.factors) > 1 and not any(
        CRITERIA[test.kind].coordinates in ("wrong", "incomplete")
        or test.net > CRITERIA[test.kind].wrong_beyond
        for test in found.evidence.failed
        # A sum tells how well the axes of a Gaussian cloud are known, by a test of its own.
        if not (found.sum and test.name == "identified")
    )


def _inside(
    points: np.ndarray, spectral: DiffusionSettings, *, most: int, rng: Generator
) -> Factorization:
    """Factors of a surface, at most so many."""
    diffusion = diffuse(points, spectral, rng=rng)
    warn_all(diffusion.warned)
    # One more chance to find a product by accident.
    search = partial(methods.find_in_functions, diffusion, strict=True, grow=False, rng=rng)
    inner = search(n_asked=None)
    return search(n_asked=most) if len(inner.factors) > most else inner


def _is_nearly_a_product(inner: Factorization) -> bool:
    """Whether a surface is to be divided: its motions may change each other a little.

    Spheroids and other surfaces of revolution fail "product" as well, a sheared torus "skew": they
    stay whole.
    """
    right = all(CRITERIA[test.kind].coordinates == "right" for test in inner.evidence.failed)
    return _is_sound(inner) and right and not inner.evidence.fails("skew")


def _factors_of(term: Factor, inner: Factorization) -> list[Factor]:
    """The factors of a divided term, as factors of the sum."""
    sure = np.where(inner.diffusion.graph.outliers, 0.0, term.confidence)
    return [
        replace(factor, confidence=np.minimum(factor.confidence, sure)) for factor in inner.factors
    ]


# What is said of the result.


def judged(
    found: Factorization,
    diffusion: Operator,
    settings: FactoringSettings,
    *,
    noise: np.ndarray | None,
    rng: Generator,
) -> Factorization:
    """Return the result with the tests of moves and noise, and what was chosen; warn of "none"."""
    if diffusion.path is not None:
        found = with_motion(found, diffusion.path)
    shapes = tuple(factor.shape for factor in found.factors)
    found = replace(found, evidence=replace(found.evidence, shapes=shapes))
    none = found.evidence.verdict == "none"
    # After all else, so that the factors are the same with and without it.
    if noise is not None and not none:
        shares = signal_shares(found, noise, rng=rng)
        found = replace(found, evidence=methods.weigh_noise(found.evidence, shares))
    # Whoever asks for one factor needs no warning of it.
    if none and settings.n_asked != 1:
        warn_caller(found.evidence.finding, NoProductStructureWarning)
    # Outliers lie where their nearest neighbour lies, which says nothing about them.
    outliers = diffusion.graph.outliers
    factors = tuple(
        replace(factor, confidence=np.where(outliers, 0.0, factor.confidence))
        for factor in found.factors
    )
    method = given(settings.method)
    if settings.method == FactoringSettings().method:
        method = Choice(settings.method, "the default: it also finds the number of factors")
    choices = {**found.choices, "method": method, "factors": _choice_of_factors(found, settings)}
    count = len(found.diffusion.distinct.eigenvalues)
    if count > len(diffusion.distinct.eigenvalues) and found.evidence.sense == "geometry":
        choices["functions"] = Choice(
            count, "more than usual: the factors first found had fewer dimensions than the data"
        )
    return replace(found, factors=factors, choices=choices)


def with_motion(found: Factorization, path: Trajectory | Bursts | Pairs) -> Factorization:
    """Return the result with tests of how samples move on its factors; the path is forgotten."""
    found = replace(found, diffusion=replace(found.diffusion, path=None, lagged=()))
    evidence, lowest = found.evidence, [float(factor.eigenvalues[0]) for factor in found.factors]
    numbers: dict[str, float | Measurement] = {}
    if len(lowest) > 1:
        moves = path.moves(motion.time_of_move(motion.TESTED_MOVE, max(lowest)))
        locate = found.locator(2 * len(moves[0]))
        places = [[each.embedding for each in place_blocks(some, locate)] for some in moves]
        jointly = isinstance(path, Pairs)
        numbers |= motion.couplings(*places, n_repeats=path.n_repeats, jointly=jointly)
        if not isinstance(path, Pairs):
            numbers["resolution"] = motion.length_of_move(path.lag, max(lowest))
    scales = ", ".join(f"{2 * found.diffusion.time / each:.3g}" for each in lowest)
    details = "; ".join(filter(None, [evidence.details, f"time scales of the factors: {scales}"]))
    evidence = replace(evidence, tests=(*evidence.tests, *judge(numbers)), details=details)
    if not np.isnan(path.duration):
        times = motion.correlation_times(path.duration, min(lowest))
        needed = CRITERIA["coverage"].limit / max(times, 1e-3)
        (enough,) = judge({"coverage": times}, longer=needed)
        # First, as it may be why there is one factor only: a short path looks like a curve.
        curve = evidence.curve if enough.passed else ""
        evidence = replace(evidence, tests=(enough, *evidence.tests), curve=curve)
    return replace(found, evidence=evidence)


def signal_shares(found: Factorization, noise: np.ndarray, *, rng: Generator) -> list[float]:
    """Return the share of each factor's variance that noise of known size leaves.

    Noise of the same size is added to the samples once more; how far it moves the places estimates
    how far the noise already present has moved them.

    Shapes: noise (n_features,).
    """
    # Placing is written for the host's side of a device.
    found = found.settled()
    samples, preparation = found.diffusion.samples, found.diffusion.preparation
    noisy = samples + prepared_noise(noise, len(samples), preparation=preparation, rng=rng)
    moved = place_blocks(noisy, found.locator(len(noisy)))
    pairs = zip(found.factors, moved, strict=True)
    return [signal_share(factor.embedding, after.embedding) for factor, after in pairs]


def _choice_of_factors(found: Factorization, settings: FactoringSettings) -> Choice:
    count = len(found.factors)
    if settings.n_asked == count:
        return given(count)
    if settings.n_asked is not None:
        return Choice(count, f"no more of the {settings.n_asked} asked for were found")
    if found.evidence.verdict == "one factor":
        return Choice(count, "one curve, beside noise, tells all samples apart")
    if found.evidence.verdict == "none":
        return Choice(count, "no product structure was found")
    kind = "sum" if found.sum else settings.method
    if found.evidence.sense == "separable":
        kind = "separable"
    return Choice(count, WHY_SO_MANY["divided sum" if found.divided else kind])


WHY_SO_MANY = {
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
