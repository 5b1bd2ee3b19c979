"""What a product can be: the table of models, how each of them is found, and when it is tried.

A model has an operator, whose functions are read, and a reader, which yields candidates. Readers
divide and measure; `factorize` tries the models of the table one after another and takes the
candidate that is most likely right.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError
from numpy.random import Generator
from scipy.sparse.linalg import ArpackError

from manifactor._support.errors import NothingFoundError, Warned
from manifactor._support.parameters import Choice
from manifactor.factors.factor import Factor, make_factors, selection
from manifactor.factors.placing import ByFunctions
from manifactor.judging.candidate import Candidate, Facts, Peeled, likeliest, measured
from manifactor.judging.evidence import SampleWarning
from manifactor.judging.measures.density import (
    along_line,
    clusters,
    clusters_in_words,
    clusters_of_factors,
)
from manifactor.judging.measures.places import poles
from manifactor.judging.probability import Agreement, probability
from manifactor.judging.table import CRITERIA, SENSES
from manifactor.judging.verdict import inputs_of
from manifactor.models.components import independent_curves, linear_sum
from manifactor.models.moves.integration import integrated, unmixed
from manifactor.models.moves.unfolding import in_flat_places
from manifactor.models.peeling import purity
from manifactor.models.peeling.peeling import (
    MAX_FACTORS,
    Dimensions,
    Look,
    Peeling,
    peel,
    take_looks,
)
from manifactor.models.pieces import ByPieces
from manifactor.models.separable.separation import factorings, find_separation
from manifactor.models.sums.independence import far_off, main_directions
from manifactor.models.sums.summands import ByTerms, DividedTerm, Sum
from manifactor.models.sums.terms import agreement, find_sum
from manifactor.models.triplets import group_functions
from manifactor.operators import geometry
from manifactor.operators.geometry import beside_constant
from manifactor.operators.operator import DiffusionSettings, Operator
from manifactor.operators.pipeline import diffuse
from manifactor.operators.variants import in_density, in_volume
from manifactor.statistics import NOT_MEASURED, Measurement, leaves_noise, random_rows

Candidates = Iterator[Candidate]
Earlier = Sequence[Candidate]

# The spread of the density of even samples is .09 to .13 on surfaces with edges and .04 to .07 on
# others; on tori that are sampled evenly by their angles it is .11 to .24.
EVEN, EVEN_WITHOUT_EDGES = 0.14, 0.08


# Dimensions of samples up to which coordinates separate, or a density makes a product.
# Of 1,568 random problems, right coordinates that separate had 3.1 at most (49 of them), right
# products of the density 2.7 (13), and right products in units of volume, where uneven samples
# seem to be one factor by lengths, 2.6 (11); 528 further candidates had more, and none was right.
SEPARABLE_DIMENSIONS = 3.3

# Errors by which a model is passed over: it shows nothing, or cannot be solved on the samples.
NOTHING = (NothingFoundError, ArpackError, LinAlgError, ArithmeticError)


@dataclass(frozen=True)
class Model:
    """One row of the table: what a product can be."""

    name: str
    sense: str  # in which its results are products
    meaning: str
    # The operator whose functions are read; None where the samples have none
    operator: Callable[[Facts, Earlier], Operator | None]
    read: Callable[["Model", Operator, Facts, Earlier], Candidates]
    worth_trying: Callable[[Facts, Earlier], bool]
    strict: bool = False  # whether it is a further chance to find a product by accident
    # Which samples it is tried of by default: of "samples", of "moves", or only if asked for, ""
    of: str = "samples"


# Readers of functions: blocks of orthogonal gradients.


def by_blocks(model: Model, operator: Operator, facts: Facts, tried: Earlier) -> Candidates:
    """Peel off blocks of pure functions.

    The functions are doubled while a dimension is missing, but for the first of several models: a
    much smaller factor has its lowest function far up in the spectrum.
    """
    rng = facts.stream(model.name)
    longer: Operator | None = operator
    while longer is not None:
        operator = longer
        peeling = peel(take_looks(operator, rng=rng), at_least=facts.n_asked or 1, rng=rng)
        dimensions = dimensions_of(peeling, operator)
        grow = dimensions.missing and not (facts.is_free and model.name == "geometry")
        longer = operator.grown(rng) if grow else None
    start = Candidate(model.name, model.sense, operator, facts, strict=model.strict, rng=rng)
    start = replace(start, warned=() if operator is facts.operator else operator.warned)
    candidate = of_blocks(start, Peeled(peeling, dimensions))
    # Factors that peeling has refused may be those of the candidate.
    peeling, count = candidate.read.peeling, len(candidate.as_read)
    larger = _larger_than_noise(candidate)
    if peeling.looks[0].blocks and (len(larger) == 1 or not count):
        candidate = replace(candidate, as_circle=_along_circle(candidate, (larger or [0])[0]))
    yield candidate
    if 2 <= len(larger) < count:
        fewer = peeling.chosen(larger)
        with suppress(*NOTHING):
            yield of_blocks(start, Peeled(fewer, dimensions_of(fewer, operator)))


def _larger_than_noise(candidate: Candidate) -> list[int]:
    """Return the numbers of the factors that are no noise; of all if their number was asked for."""
    count = len(candidate.as_read)
    # Sizes say nothing of moves.
    if candidate.facts.n_asked is not None or candidate.sense == "dynamics" or count < 2:
        return [*range(count)]
    return candidate.beyond_noise


def _along_circle(
    candidate: Candidate, number: int
) -> tuple[tuple[Factor, ...], ByFunctions] | None:
    """Return the factor of a block if it is a circle that leaves nothing but noise.

    Of 105 trees, mixtures, clusters and clouds 39 would be an interval by the same rule, none of
    them a circle that it is not.
    """
    operator, whole = candidate.operator, candidate.looks[0]
    if operator.points is None or candidate.facts.is_moving:
        return None
    (block,) = candidate.read.peeling.chosen([number]).looks[0].blocks
    blocks = [beside_constant(block)]
    factors, readings = make_factors(operator.spectrum, blocks, geometry=whole.geometry)
    places = factors[0].embedding
    if factors[0].topology != "circle" or not leaves_noise(places, operator.points):
        return None
    alone = replace(candidate, factors=factors, raw=())
    # Noise has no direction.
    if alone.untold.direction > CRITERIA["hidden direction"].limit:
        return None
    return factors, ByFunctions(readings)


def by_waves(model: Model, operator: Operator, facts: Facts, tried: Earlier) -> Candidates:
    """Take the waves along axes of flat places as blocks, as the spectrum has them."""
    assert operator.metric is not None
    assert operator.metric.flat is not None
    flat = operator.metric.flat.chosen(operator.graph.distinct)
    angles, rng = flat.angles.T, facts.stream(model.name)
    counts = [1] * flat.n_lines + [2] * (len(angles) - flat.n_lines)
    waves = [
        np.column_stack([w(k * angle) for k in range(1, 7) for w in (np.cos, np.sin)[:count]])
        for angle, count in zip(angles, counts, strict=True)
    ]
    looks = [
        replace(look, blocks=tuple(_waves_in(look, wave[look.part]) for wave in waves))
        for look in take_looks(operator, rng=rng)
    ]
    lowest = [looks[0].geometry.rayleigh(block)[0] for block in looks[0].blocks]
    order = np.argsort(lowest, kind="stable")
    looks = [replace(look, blocks=tuple(look.blocks[f] for f in order)) for look in looks]
    share = purity.product_share(looks[0].geometry, looks[0].blocks)
    peeling = Peeling(tuple(looks), product_share=share)
    start = Candidate(model.name, model.sense, operator, facts, strict=True, rng=rng)
    start = replace(start, warned=operator.warned)
    read = Peeled(peeling, dimensions_of(peeling, operator))
    candidate = of_blocks(start, read, charted=tuple(counts[f] for f in order))
    # Axes of flat places are always found: alone, they must be those of a box.
    if likeliest(tried).factors or not candidate.fails("folds", "filling"):
        yield candidate


def _waves_in(look: Look, waves: np.ndarray) -> np.ndarray:
    """Return waves, (n, r), in the eigenfunctions, without those that these hardly explain."""
    spectrum = look.geometry.spectrum
    weights = spectrum.weights[:, None] / spectrum.weights.sum()
    waves = waves - (weights * waves).sum(axis=0)
    coefficients = spectrum.functions[:, 1:].T @ (weights * waves)
    share = (coefficients**2).sum(axis=0) / (weights * waves**2).sum(axis=0)
    shown = share > 0.5
    shown[:1] = True
    return np.linalg.qr(coefficients[:, shown])[0]


def of_blocks(start: Candidate, read: Peeled, charted: tuple[int, ...] = ()) -> Candidate:
    """Return the candidate of peeled blocks, measured; without factors if they are one.

    `charted` says how many functions tell a place on each factor, if that is known.
    """
    operator, facts, peeling = start.operator, start.facts, read.peeling
    moves = {"moves"} if operator.path is not None else set()
    blocks = as_many_as(facts.n_asked, peeling)
    if len(blocks) == 1:
        refused = None if facts.n_asked else _of_refused(start, peeling)
        one = replace(start, read=read, kinds={"one"} | moves)
        return _with_doubts(measured(one)) if refused is None else refused
    make = partial(
        make_factors,
        operator.spectrum,
        [beside_constant(block) for block in blocks],
        geometry=peeling.looks[0].geometry,
    )
    factors, readings = make(charted=charted if len(blocks) == len(charted) else ())
    bent = [factor.topology == "other" and factor.dimension == 1 for factor in factors]
    if operator.basis is not None and any(bent):
        # The lowest function of a process on an interval tells all places, although it hardly
        # changes inside a well.
        factors, readings = make(charted=[1 if each else None for each in bent])
    raw, placer = integrated(factors, readings, operator)
    details, kinds = clusters_of_factors(raw), {start.sense} | moves
    several = replace(start, kinds=kinds, factors=raw, placer=placer, read=read, details=details)
    several = replace(several, raw=raw, readings=readings)
    # That samples fill the product of corrected places would be no evidence.
    if operator.lagged:
        factors, corrected = unmixed(raw, readings, operator)
        several = replace(several, factors=factors, placer=corrected)
    return _with_doubts(measured(several))


def _of_refused(start: Candidate, peeling: Peeling) -> Candidate | None:
    """Return factors of which some were refused, if only their lengths are not a product's.

    As on a surface of revolution: products of functions are not eigenfunctions there, but
    coordinates are right and directions orthogonal. None where nothing was refused, where more is
    wrong with it, or where a factor shrinks to a point, as on a cone.
    """
    samples, refused = start.operator.points, peeling.refused
    # Without samples nothing tells whether directions are orthogonal.
    if samples is None or refused is None:
        return None
    everything = Peeled(refused, dimensions_of(refused, start.operator))
    candidate = of_blocks(replace(start, strict=True), everything)
    if any(CRITERIA[test.kind].about != "lengths" for test in candidate.failed):
        return None
    rows = random_rows(np.flatnonzero(candidate.inliers), 10_000)
    places = [factor.embedding[rows] for factor in candidate.raw]
    return candidate if CRITERIA["poles"].judge(poles(places, samples[rows])).passed else None


def dimensions_of(peeling: Peeling, operator: Operator) -> Dimensions:
    """Return the dimensions of the data and of the blocks.

    None is missing where a further factor was refused, or where what the blocks leave of the
    samples is noise.
    """
    look = peeling.looks[0]
    of_data = operator.dimension
    of_blocks = sum(geometry.count_directions(look.geometry, block) for block in look.blocks)
    # A refused factor is not missing: it is there, but not a factor of a product.
    missing = peeling.refused is None and of_blocks + CRITERIA["dimensions"].limit < of_data
    if missing and operator.points is not None and look.blocks:
        # On the paper's rectangle, whose noise of .05 counts as a third dimension, this saves
        # computing 400 functions: 5 s instead of 40 at 10,000 samples.
        samples, places = operator.distinct_points, []
        for block in look.blocks:
            eigenvalues = look.geometry.rayleigh(block)
            lowest = block[:, : geometry.batch_size(eigenvalues)]
            # In units of length: a function of eigenvalue l has gradients of mean square l.
            places.append(look.geometry.values(lowest / np.sqrt(eigenvalues[0])))
        missing = not leaves_noise(np.hstack(places), np.asarray(samples))
    return Dimensions(of_data, of_blocks, missing)


def require_as_many(asked: int | None, count: int) -> None:
    """Raise an error if fewer factors were found than asked for."""
    if asked is not None and count < asked:
        raise NothingFoundError(
            f"Found only {count} of the {asked} factors requested by `n_factors`: what remains "
            "varies along these. Lower `n_factors`, or give more samples."
        )


def as_many_as(asked: int | None, peeling: Peeling) -> list[np.ndarray]:
    """Return the blocks found, or as many as were asked for with the highest taken together."""
    whole, blocks = peeling.looks[0].geometry, list(peeling.looks[0].blocks)
    blocks.sort(key=lambda block: float(whole.rayleigh(block)[0]))
    if asked is None or asked == len(blocks):
        return blocks
    require_as_many(asked, len(blocks))
    kept, joined = blocks[: asked - 1], blocks[asked - 1 :]
    # What has no energy along the kept blocks includes the products of the joined ones, which are
    # functions of the joint factor.
    rest = purity.without_energy(whole, kept)
    return [*kept, rest if rest.shape[1] else np.hstack(joined)]


def whole_factor(
    operator: Operator, *, on_line: bool = False
) -> tuple[tuple[Factor, ...], ByFunctions]:
    """Return the data as one factor of the lowest functions, of a single one on a line."""
    spectrum = operator.spectrum
    # An embedding takes six functions at most; more of them are for the user to see.
    block = selection(spectrum, range(1, min(25, len(spectrum.eigenvalues))))
    factors, readings = make_factors(spectrum, [block], most_functions=1 if on_line else None)
    return factors, ByFunctions(readings)


def _with_doubts(candidate: Candidate) -> Candidate:
    """Return a candidate that warns if samples are too few or too noisy for its tests."""
    failed = {test.name: test for test in candidate.failed}
    kinds, n = candidate.kinds, candidate.n_distinct
    if "one" in kinds and "samples" in failed:
        # A number to try, well above the least one.
        enough = int(5 * failed["samples"].limit)
        what = f"{n} distinct samples show little of any manifold"
    elif "one" in kinds and "uncertainty" in failed:
        test = failed["uncertainty"]
        # Noise falls inversely with the number of samples; aim at half the limit.
        enough = int(n * test.value / (test.limit / 2))
        range_of = "of the range it is read from"
        what = f"the number of factors is uncertain by {test.value:.2f} {range_of}"
    elif "one" not in kinds and "agreement" in failed:
        # The halves of twice as many samples are as large as all of these.
        enough = 2 * len(candidate.looks[0].part)
        what = f"of {enough // 2} samples neither half shows the same factors"
    else:
        return candidate
    even = candidate.density
    remedy = f"About {enough} samples would help."
    # The noise of even samples falls with their number. Uneven samples have tails, where functions
    # are peaks on single samples; more samples only show more of the tails.
    if even.spread > CRITERIA["evenness"].limit:
        remedy = (
            f"Their density varies {even.ratio:.2g}-fold, so that more samples of the same kind "
            "may not help."
        )
    text = f"The samples are too few or too noisy for a sure verdict: {what}. {remedy}"
    return replace(candidate, warned=(*candidate.warned, Warned(text, SampleWarning)))


# Readers of samples: terms of a sum, which may be products of lengths themselves.


def by_terms(model: Model, operator: Operator, facts: Facts, tried: Earlier) -> Candidates:
    """Find functions of single factors that add up to the samples."""
    if operator.points is None:
        raise ValueError(
            "a sum is taken of samples; got a precomputed graph of distances. Pass "
            "samples, or leave `method` and `sense` at their defaults."
        )
    rng = facts.stream(model.name)
    # Outliers would dominate means and cumulants, but tails belong to the density.
    samples = operator.points[~(operator.graph.outliers & far_off(operator.points))]
    most = facts.n_asked or MAX_FACTORS
    find = partial(find_sum, max_factors=most, n_neighbors=operator.n_neighbors, rng=rng)
    preparation = operator.preparation
    total = replace(find(samples), noise=preparation.noise if preparation else 0.0)
    start = Candidate(model.name, model.sense, operator, facts, strict=model.strict, rng=rng)

    whole = _of_sum(start, total, partial(agreement, total, samples, find, rng=rng))
    candidate = _with_divided_terms(whole, most, rng)
    require_as_many(facts.n_asked, len(candidate.factors))
    yield candidate
    if 2 <= len(larger := _larger_than_noise(whole)) < len(whole.as_read):
        fewer, find = total.chosen(larger), partial(find, max_factors=len(larger))
        with suppress(*NOTHING):
            some = _of_sum(start, fewer, partial(agreement, fewer, samples, find, rng=rng))
            yield _with_divided_terms(some, most, rng)


def _of_sum(start: Candidate, total: Sum, of_halves: Callable[[], float]) -> Candidate:
    """Return the candidate of a sum, measured.

    Only factors that may be right are compared with those of half of the samples.
    """
    assert start.operator.points is not None
    factors = total.factors(start.operator.points)
    kinds = {"sum" if len(factors) > 1 else "one term"}
    start = replace(start, kinds=kinds, factors=factors, placer=ByTerms(total), read=total)
    candidate = measured(replace(start, warned=total.warned))
    right = all(
        CRITERIA[test.kind].coordinates in ("unclear", "right") for test in candidate.failed
    )
    # Factors may be confirmed by another model. Those of a handful of samples or of noise show
    # nothing.
    if len(factors) > 1 and right and _may_be_right(candidate):
        agreed = NOT_MEASURED
        if candidate.n_distinct >= CRITERIA["samples"].limit and not total.is_cloud:
            agreed = of_halves()
        tests, candidate = candidate.tests, replace(candidate, halves=agreed, tests=())
        candidate = measured(candidate, {"halves"})
        candidate = replace(candidate, tests=(*candidate.tests, *tests))
    return candidate


def _may_be_right(candidate: Candidate) -> bool:
    inputs = inputs_of(candidate, Agreement((1.0, 1.0))) | {"agreement": 0.0}
    return probability("right", inputs) >= 0.05


def _with_divided_terms(candidate: Candidate, most: int, rng: Generator) -> Candidate:
    """Return a sum with factors in place of each surface that is a product of lengths.

    A sum whose coordinates are wrong is returned as it is. `most` factors are made.
    """
    if not candidate.is_sound:
        return candidate
    room = most - len(candidate.factors)
    factors: list[Factor] = []
    inner: dict[int, Candidate] = {}
    choices = dict(candidate.choices)
    for number, factor in enumerate(candidate.factors):
        if factor.topology != "other" or room < 1:
            factors.append(factor)
            continue
        points = candidate.read.points(candidate.operator.samples, number)
        part = _part_of_term(points, candidate.facts, room + 1, rng)
        if part is None:
            factors.append(factor)
            choice = Choice(1, "the surface is not a product of lengths by itself")
        else:
            inner[number] = part
            sure = np.where(part.operator.graph.outliers, 0.0, factor.confidence)
            factors += [
                replace(each, confidence=np.minimum(each.confidence, sure)) for each in part.factors
            ]
            room -= len(part.factors) - 1
            why = "the surface is a product of lengths by itself, or nearly"
            choice = Choice(len(part.factors), why)
        choices[f"term {number + 1}"] = choice
    if not inner:
        return replace(candidate, choices=choices)
    tests = [test.of_term(k + 1) for k, part in inner.items() for test in part.tests]
    # Placing is written for the host's side of a device.
    divided = tuple(
        DividedTerm(k, len(part.factors), part.operator.settled(), part.placer)
        for k, part in inner.items()
    )
    return replace(
        candidate,
        raw=candidate.factors,
        factors=tuple(factors),
        placer=ByTerms(candidate.read, divided),
        inner=inner,
        tests=(*candidate.tests, *tests),
        choices=choices,
        warned=sum((part.warned for part in inner.values()), candidate.warned),
    )


def _part_of_term(points: np.ndarray, facts: Facts, most: int, rng: Generator) -> Candidate | None:
    """Return the factors of a surface, at most so many; None if it is not to be divided.

    Its motions may change each other a little. Spheroids and other surfaces of revolution fail
    "product" as well, a sheared torus "skew": they stay whole.
    """
    # What the caller set for the samples, such as a bandwidth, need not fit a surface.
    settings = facts.operator.settings
    spectral = DiffusionSettings(preparation="none", n_jobs=settings.n_jobs, device=settings.device)
    try:
        operator = diffuse(points, spectral, rng=rng)
    except NOTHING:
        return None
    # As one of several models: no more functions are computed where a dimension is missing.
    facts = replace(facts, operator=operator, is_free=True, rng=rng, streams={})
    # One more chance to find a product by accident.
    model = replace(MODELS["geometry"], strict=True)
    for asked in (None, most):
        with suppress(*NOTHING):
            part = next(by_blocks(model, operator, replace(facts, n_asked=asked), ()))
            if len(part.factors) <= most:
                right = all(CRITERIA[test.kind].coordinates == "right" for test in part.failed)
                part = replace(part, warned=(*operator.warned, *part.warned))
                return part if part.is_sound and right and not part.fails("skew") else None
    return None


# Readers of independent components, of the samples and of functions.


def by_components(model: Model, operator: Operator, facts: Facts, tried: Earlier) -> Candidates:
    """Read factors off the independent components of the leading principal components."""
    if operator.points is None:
        raise NothingFoundError(
            "principal components are of samples; got distances. Leave `sense` at its default."
        )
    rng, samples = facts.stream(model.name), operator.points[~operator.graph.outliers]
    directions = main_directions(samples, rng=rng)
    curves, agreed = _independent(directions(samples), facts, rng)
    total = linear_sum(directions, samples, curves)
    placed = {"factors": total.factors(operator.points), "placer": ByTerms(total)}
    yield _of_components(model, operator, facts, halves=agreed, read=total, **placed)


def by_components_of_functions(
    model: Model, operator: Operator, facts: Facts, tried: Earlier
) -> Candidates:
    """Read factors off the independent components of the lowest functions."""
    spectrum, rng = operator.spectrum, facts.stream(model.name)
    values = spectrum.functions[~operator.graph.outliers, 1:9]
    curves, agreed = _independent(values, facts, rng)
    more = len(spectrum.eigenvalues) - 1 - values.shape[1]
    blocks = [np.pad(curve, ((1, more), (0, 0))) for curve in curves]
    factors, readings = make_factors(spectrum, blocks, charted=[block.shape[1] for block in blocks])
    placed = {"factors": factors, "placer": ByFunctions(readings)}
    yield _of_components(model, operator, facts, halves=agreed, **placed)


def _of_components(model: Model, operator: Operator, facts: Facts, **found: Any) -> Candidate:
    start = Candidate(model.name, model.sense, operator, facts, strict=model.strict)
    start = replace(start, kinds={"ica", "halves"}, rng=facts.stream(model.name), **found)
    return measured(start)


def _independent(
    values: np.ndarray, facts: Facts, rng: Generator
) -> tuple[list[np.ndarray], float]:
    """Return independent curves of values, and how far halves of these show them."""
    around = round(facts.operator.dimension)
    counts = [facts.n_asked] if facts.n_asked else [k for k in (around, around + 1) if 2 <= k <= 4]
    curves, agreed = independent_curves(values - values.mean(axis=0), counts, rng=rng)
    if not curves:
        raise NothingFoundError(
            "no components are independent, or halves of the samples show others. Leave `sense` at "
            "its default, or give more samples."
        )
    return curves, agreed


# Readers of coordinates that separate, and of triplets.


def by_separation(model: Model, operator: Operator, facts: Facts, tried: Earlier) -> Candidates:
    """Read factors along coordinates in which the Laplacian separates, in several ways."""

    def commutes(mu: Measurement) -> bool:
        return CRITERIA["commutator"].judge(mu).passed

    rng = facts.stream(model.name)
    read = find_separation(operator, facts.n_asked, commutes=commutes, rng=rng)
    kinds = {"web"}
    web = measured(Candidate(model.name, model.sense, operator, facts, kinds, read=read))
    yield web
    if read.web is None or web.failed:
        return
    several = replace(web, strict=model.strict, kinds={"separable"})
    for factors, readings in factorings(read, operator):
        candidate = measured(replace(several, factors=factors, placer=ByFunctions(readings)))
        yield candidate
        # Another way could only be more orthogonal, which the angle of a turn is as it is.
        orthogonal = candidate.value("crossing") < CRITERIA["crossing"].limit
        if not candidate.failed and (orthogonal or read.symmetries.turn is not None):
            return


def by_triplets(model: Model, operator: Operator, facts: Facts, tried: Earlier) -> Candidates:
    """Find groups of functions whose products are functions."""
    asked = facts.settings
    tolerance, threshold = (
        None if isinstance(value, str) else float(value)
        for value in (asked.eigenvalue_tolerance, asked.similarity_threshold)
    )
    spectrum = operator.spectrum
    read = group_functions(
        spectrum,
        n_groups=facts.n_asked,
        tolerance=tolerance,
        threshold=threshold,
        exclude=asked.exclude,
        rng=facts.stream(model.name),
    )
    kinds = {"triplets" if read.groups else "no triplets"}
    candidate = Candidate(model.name, model.sense, operator, facts, kinds, read=read)
    if read.groups:
        assert read.cut is not None
        blocks = [selection(spectrum, group) for group in read.groups]
        # A gap below 1e-6 is rounding of the bound.
        best = read.cut.gap < 1e-6
        quality = "the best there is" if best else f"at most {read.cut.gap:.1%} below the best"
        details = f"the cut that made the groups is {quality}"
        factors, readings = make_factors(spectrum, blocks)
        placer = ByFunctions(readings)
        candidate = replace(candidate, factors=factors, placer=placer, details=details)
    yield measured(candidate)


def on_line(model: Model, operator: Operator, facts: Facts, tried: Earlier) -> Candidates:
    """Take samples on a straight line, or those of whom one factor is asked, as one factor."""
    along = None
    if operator.points is not None:
        along = along_line(operator.points, operator.graph.distinct)
    if along is None and facts.n_asked is None:
        return
    gaps = ""
    if along is not None and len(shares := clusters(along)) > 1:
        gaps = f", and fall into {clusters_in_words(shares)}"
    factors, placer = whole_factor(operator, on_line=along is not None)
    kinds = {"asked" if facts.n_asked else "line"}
    start = Candidate(model.name, model.sense, operator, facts, kinds, factors, placer, gaps)
    yield measured(start)


# Readers that search anew: in the square roots of columns, and in pairs.


def by_roots(model: Model, operator: Operator, facts: Facts, tried: Earlier) -> Candidates:
    """Try the other models on the square roots of columns, which make the noise of counts even.

    Of 40 random problems with counts, the geometry of all 22 products of roots was likely, so that
    no other model is tried where it is not.
    """
    renewed = facts.renewed(operator)
    candidates = facts.search(renewed, only_likely=True)
    best = likeliest(candidates) if candidates else None
    if best is None or len(best.factors) < 2:
        return
    # Where the probability is not known, all tests must be passed.
    passes = best.is_likely if facts.is_free else not best.failed
    if passes:
        alike = facts.conclude(renewed, candidates).evidence.symmetries
        yield replace(best, model=model.name, alike=alike)


def by_pieces(model: Model, operator: Operator, facts: Facts, tried: Earlier) -> Candidates:
    """Try the other models on pieces that are moved onto each other, with an axis of their own."""
    pieces, samples = facts.pieces, operator.points
    if pieces is None:
        return
    assert samples is not None
    rng, settings = np.random.default_rng(0), operator.settings
    shift = rng.uniform(-0.5, 0.5, size=len(samples))
    spectral = DiffusionSettings(preparation="none", n_jobs=settings.n_jobs, device=settings.device)
    unfolded = diffuse(pieces.unfolded(samples, pieces.label, shift), spectral, rng=rng)
    renewed = facts.renewed(unfolded)
    models = [MODELS[name] for name in ("geometry", "sum", "volume")]
    candidates = facts.search(renewed, models, only_likely=True)
    if not candidates:
        return
    best = likeliest(candidates)
    axis = [f for f, factor in enumerate(best.factors) if pieces.is_axis(factor)]
    if len(best.factors) < 2 or len(axis) != 1 or not best.is_likely:
        return
    placer = ByPieces(pieces, unfolded.settled(), best.placer, axis[0])
    factors = placer.located(best.factors, operator)
    yield replace(best, model=model.name, operator=operator, factors=factors, placer=placer)


def by_pairs(model: Model, operator: Operator, facts: Facts, tried: Earlier) -> Candidates:
    """Read the operator of pairs, if the metric of short moves says little."""
    assert facts.again is not None
    again = facts.again(facts.conclude(facts, tried).evidence.verdict)
    if again is not None and (candidates := facts.search(again)):
        yield replace(likeliest(candidates), model=model.name)


# Operators beside that of the samples, and when a model is worth trying.


def as_they_are(facts: Facts, tried: Earlier) -> Operator:
    """Return the operator of the samples by lengths, or by their moves."""
    return facts.operator


def _variant(name: str, make: Callable[..., Operator]) -> Callable[[Facts, Earlier], Operator]:
    def of(facts: Facts, tried: Earlier) -> Operator:
        operator = make(facts.operator, rng=facts.stream(name))
        lost = operator.distinct.eigenvalues[1:2] * operator.distinct.step
        # In a graph of several components, functions are constant on each of them.
        if not len(lost) or lost < 2 * np.finfo(float).eps:
            raise NothingFoundError(
                f"the kernel of `sense={name!r}` must connect these samples and resolve "
                "more than the constant function, and does not. Choose another `sense`."
            )
        return operator

    return of


def _grown(facts: Facts, tried: Earlier) -> Operator | None:
    first = _of(tried, "geometry")
    return facts.operator if first is None else first.operator.grown(facts.stream("geometry"))


def _flat(facts: Facts, tried: Earlier) -> Operator:
    best = likeliest(tried)
    rings = [factor.embedding for factor in best.factors if factor.topology == "circle"]
    angles = [np.arctan2(ring[:, 1], ring[:, 0]) for ring in rings]
    return in_flat_places(best.operator, angles, rng=facts.stream("flat places"))


def _of_roots(facts: Facts, tried: Earlier) -> Operator | None:
    """Return the operator of square roots, if the columns may be counts and are no product."""
    verdict = facts.conclude(facts, tried).evidence.verdict if facts.may_be_counts else ""
    if verdict not in ("partial", "none"):
        return None
    why = f'square roots are likelier to be a product; the columns themselves are "{verdict}"'
    return facts.diffuse({"transformation": Choice("sqrt", why)})


def _of(tried: Earlier, name: str) -> Candidate | None:
    return next((candidate for candidate in tried if candidate.model == name), None)


def _is_not_same_in_volume(facts: Facts, tried: Earlier) -> bool:
    """Return whether units of the density may change something about right coordinates.

    On even samples only lengths may be wrong, which the sense "volume" does not test.
    """
    first = _of(tried, "geometry")
    if first is not None and first.fails("evenness") and not first.factors:
        return _is_small(facts, tried)
    if first is None or not first.is_sound:
        return not _is_clustered(facts, tried)
    closed = all(factor.topology == "circle" for factor in first.factors)
    even = facts.sampling.spread <= (EVEN_WITHOUT_EDGES if closed else EVEN)
    return not even or first.fails("product")


def _is_clustered(facts: Facts, tried: Earlier) -> bool:
    # Where clusters are all that lengths show, other units show no more: of 330 candidates of the
    # volume, of the density and of coordinates that separate, none was right.
    first = _of(tried, "geometry")
    return facts.n_asked is None and first is not None and first.fails("clusters")


def _is_small(facts: Facts, tried: Earlier) -> bool:
    few = facts.sampling.dimension <= SEPARABLE_DIMENSIONS or facts.n_asked is not None
    return few and not _is_clustered(facts, tried)


def _is_small_and_uneven(facts: Facts, tried: Earlier) -> bool:
    # On even samples the density changes nothing.
    return facts.sampling.is_uneven and _is_small(facts, tried)


def _is_not_twisted(facts: Facts, tried: Earlier) -> bool:
    # Coordinates of a twisted product separate in every part, but not as a whole.
    twisted = any(each.is_sound and each.fails("twist in data") for each in tried)
    return _is_small(facts, tried) and not twisted


def _misses_a_dimension(facts: Facts, tried: Earlier) -> bool:
    first = _of(tried, "geometry")
    missing = first is None or first.fails("dimensions", "missing dimensions")
    return missing and not any(each.is_likely for each in tried)


def _is_unlikely(facts: Facts, tried: Earlier) -> bool:
    # Independent components never take the place of a likely result.
    return not any(each.is_likely for each in tried if each.sense != "ica")


def _is_no_product_but_for_moves(facts: Facts, tried: Earlier) -> bool:
    # How samples move on the factors does not depend on their lengths.
    if not tried or facts.operator.metric is None:
        return False
    best = likeliest(tried)
    return not best.factors or any("moves" not in CRITERIA[t.kind].models for t in best.failed)


def always(facts: Facts, tried: Earlier) -> bool:
    """Return True: the model is tried where it is reached."""
    return True


class Models(dict[str, Model]):
    """The table of models, by their names, in the order in which they are tried."""

    def __str__(self) -> str:
        return "\n".join(f"{name}: {model.meaning}" for name, model in self.items())


MODELS = Models(
    (row.name, row)
    for row in (
        Model(
            "one factor",
            "geometry",
            "The samples lie on a straight line, or one factor is asked for.",
            as_they_are,
            on_line,
            lambda facts, tried: facts.n_asked in (None, 1),
            of="",
        ),
        Model(
            "pieces",
            "geometry",
            "They are pieces that are copies of each other: levels of a factor, or classes.",
            as_they_are,
            by_pieces,
            lambda facts, tried: facts.n_asked != 1 and facts.operator.metric is None,
        ),
        Model("geometry", "geometry", SENSES["geometry"], as_they_are, by_blocks, always),
        Model("sum", "sum", SENSES["sum"], as_they_are, by_terms, always, strict=True),
        Model(
            "volume",
            "volume",
            SENSES["volume"],
            _variant("volume", in_volume),
            by_blocks,
            _is_not_same_in_volume,
            strict=True,
        ),
        Model(
            "density",
            "density",
            SENSES["density"],
            _variant("density", in_density),
            by_blocks,
            _is_small_and_uneven,
            strict=True,
        ),
        Model(
            "separable",
            "separable",
            SENSES["separable"],
            as_they_are,
            by_separation,
            _is_not_twisted,
            strict=True,
        ),
        Model(
            "more functions",
            "geometry",
            "As geometry, of more eigenfunctions, which show a much smaller factor.",
            _grown,
            by_blocks,
            _misses_a_dimension,
        ),
        Model("ica", "ica", SENSES["ica"], as_they_are, by_components, _is_unlikely, strict=True),
        Model(
            "ica of functions",
            "ica",
            "As ica, of components of the lowest eigenfunctions.",
            as_they_are,
            by_components_of_functions,
            _is_unlikely,
            strict=True,
        ),
        Model(
            "dynamics", "dynamics", SENSES["dynamics"], as_they_are, by_blocks, always, of="moves"
        ),
        Model(
            "flat places",
            "dynamics",
            "As dynamics, along the axes of places that moves lead to in a flat space.",
            _flat,
            by_waves,
            _is_no_product_but_for_moves,
            strict=True,
            of="moves",
        ),
        Model(
            "square roots",
            "geometry",
            "As geometry, of the square roots of columns: the noise of counts is even in them.",
            _of_roots,
            by_roots,
            lambda facts, tried: bool(tried) and facts.may_be_counts,
        ),
        Model(
            "pairs",
            "dynamics",
            "As dynamics, from where samples were and what followed them at a longer lag.",
            as_they_are,
            by_pairs,
            lambda facts, tried: bool(tried) and facts.again is not None,
            of="moves",
        ),
        Model(
            "triplets",
            "geometry",
            "Eigenfunctions are products of two lower ones: the algorithm of the paper.",
            as_they_are,
            by_triplets,
            always,
            of="",
        ),
    )
)
