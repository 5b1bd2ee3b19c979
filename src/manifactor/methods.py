"""Three searches for factors: in the functions of a diffusion, in the samples, by triplets.

Each of them finds factors, measures them, and returns them with the evidence.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from manifactor._support.errors import (
    NothingFoundError,
    held_warnings,
    issue,
    warn_all,
    warn_caller,
)
from manifactor._support.threads import map_threads
from manifactor.factorization import FactoringSettings, Factorization, is_auto
from manifactor.factors.factor import Factor, Reading, make_factors, selection
from manifactor.factors.placing import ByFunctions
from manifactor.judging.evidence import Evidence, SampleWarning
from manifactor.judging.measures import product
from manifactor.judging.measures.density import (
    Evenness,
    along_line,
    clusters,
    clusters_in_words,
    clusters_of_function,
    evenness,
    gaussian_factors,
)
from manifactor.judging.measures.places import (
    PlacedSamples,
    crossing,
    filling,
    folds,
    modulation_in_data,
    place_samples,
    poles,
    seams,
    skew,
    twist_in_data,
)
from manifactor.judging.table import CRITERIA, LOWEST_FUNCTIONS, Test, judge
from manifactor.models.moves.integration import integrated
from manifactor.models.moves.unfolding import in_flat_places
from manifactor.models.moves.unmixing import unmixed
from manifactor.models.peeling import purity
from manifactor.models.peeling.peeling import (
    MAX_FACTORS,
    Dimensions,
    Look,
    Peeling,
    peel,
    take_looks,
)
from manifactor.models.sums.independence import far_off
from manifactor.models.sums.summands import ByTerms, Sum
from manifactor.models.sums.terms import agreement, find_sum
from manifactor.models.triplets import group_functions
from manifactor.operators import geometry
from manifactor.operators.geometry import beside_constant
from manifactor.operators.operator import Operator
from manifactor.statistics import NOT_MEASURED, Measurement, leaves_noise, random_rows

# Waves along a factor that are looked for among the functions, and the least share of each that
# functions show.
N_WAVES, LEAST_SHOWN = 7, 0.5

# The tests that need coordinates and samples only, the same for every method.
OF_PLACES: dict[str, Callable[[PlacedSamples], Measurement]] = {
    "folds": folds,
    "filling": filling,
    "skew": skew,
    "crossing": crossing,
    "modulation in data": modulation_in_data,
    "poles": lambda placed: poles(placed.places, placed.samples),
    "seams": seams,
    "identified": gaussian_factors,
}


def attempt(
    find: Callable[[], Factorization],
) -> tuple[Factorization | None, list[warnings.WarningMessage]]:
    """Return what a search finds, None if nothing, and its warnings, which are held back.

    Warnings of a result that is not taken say nothing about the one that is.
    """
    with held_warnings() as held:
        try:
            return find(), held
        except NothingFoundError:
            return None, held


def whole_factor(
    diffusion: Operator, *, on_line: bool = False
) -> tuple[tuple[Factor, ...], ByFunctions]:
    """Return the data as one factor of the lowest functions, of a single one on a line."""
    spectrum = diffusion.spectrum
    # An embedding takes six functions at most; more of them are for the user to see.
    block = selection(spectrum, range(1, min(25, len(spectrum.eigenvalues))))
    factors, readings = make_factors(spectrum, [block], most_functions=1 if on_line else None)
    return factors, ByFunctions(readings)


# Factors in the functions of a diffusion: blocks of orthogonal gradients.


@dataclass(frozen=True)
class Peeled:
    """A peeling with what it was made of."""

    diffusion: Operator  # whose functions were peeled; it may have more of them than the one given
    peeling: Peeling
    dimensions: Dimensions  # of the data and of the blocks that were found
    sense: str  # of a product, which the diffusion is for
    strict: bool  # whether it is a further chance to find a product
    # Functions that tell a place on each factor, if they are known
    charted: tuple[int, ...] = ()


def find_in_functions(
    diffusion: Operator,
    n_asked: int | None,
    *,
    sense: str = "geometry",
    strict: bool = False,
    grow: bool = True,
    rng: np.random.Generator,
) -> Factorization:
    """Peel off blocks of pure functions, and weigh the factors that they describe.

    `grow` doubles the functions while a dimension is missing. Data that are one factor are returned
    without factors: `whole_factor` adds it to the result that is taken, since describing it takes
    time and most such results give way to those of another sense.
    """
    while True:
        peeling = peel(take_looks(diffusion, rng=rng), at_least=n_asked or 1, rng=rng)
        dimensions = _dimensions(peeling, diffusion)
        # A much smaller factor has its lowest function far up in the spectrum.
        longer = diffusion.grown(rng) if grow and dimensions.missing else None
        if longer is None:
            break
        diffusion = longer
        warn_all(longer.warned)
    return weigh_peeled(Peeled(diffusion, peeling, dimensions, sense, strict), n_asked, rng=rng)


def find_in_flat_places(
    found: Factorization, n_asked: int | None, *, rng: np.random.Generator
) -> Factorization:
    """Weigh the factors along flat places, whose circles are those that were found before.

    Functions of a factor are its waves, as the spectrum has them.
    """
    rings = [factor.embedding for factor in found.factors if factor.topology == "circle"]
    known = [np.arctan2(ring[:, 1], ring[:, 0]) for ring in rings]
    diffusion = in_flat_places(found.diffusion, known, rng=rng)
    warn_all(diffusion.warned)
    assert diffusion.metric is not None
    assert diffusion.metric.flat is not None
    flat = diffusion.metric.flat.chosen(diffusion.graph.distinct)
    angles = flat.angles.T
    counts = [1] * flat.n_lines + [2] * (len(angles) - flat.n_lines)
    waves = [
        np.column_stack([w(k * angle) for k in range(1, N_WAVES) for w in (np.cos, np.sin)[:count]])
        for angle, count in zip(angles, counts, strict=True)
    ]

    def looked(look: Look) -> Look:
        return replace(look, blocks=tuple(_waves_in(look, own[look.part]) for own in waves))

    looks = [looked(look) for look in take_looks(diffusion, rng=rng)]
    lowest = [looks[0].geometry.rayleigh(block)[0] for block in looks[0].blocks]
    order = np.argsort(lowest, kind="stable")
    looks = [replace(look, blocks=tuple(look.blocks[f] for f in order)) for look in looks]
    charted = tuple(counts[f] for f in order)
    share = purity.product_share(looks[0].geometry, looks[0].blocks)
    peeling = Peeling(tuple(looks), product_share=share)
    dimensions = _dimensions(peeling, diffusion)
    peeled = Peeled(diffusion, peeling, dimensions, "dynamics", strict=True, charted=charted)
    return weigh_peeled(peeled, n_asked, rng=rng)


def _waves_in(look: Look, waves: np.ndarray) -> np.ndarray:
    """Return waves, (n, r), as combinations of functions; those that are some."""
    spectrum = look.geometry.spectrum
    weights = spectrum.weights[:, None] / spectrum.weights.sum()
    waves = waves - (weights * waves).sum(axis=0)
    found = spectrum.functions[:, 1:].T @ (weights * waves)
    share = (found**2).sum(axis=0) / (weights * waves**2).sum(axis=0)
    known = share > LEAST_SHOWN
    known[:1] = True
    return np.linalg.qr(found[:, known])[0]


def find_in_more_functions(
    found: Factorization, n_asked: int | None, *, rng: np.random.Generator
) -> Factorization:
    """Return the factors of more functions if a dimension is missing, else those found."""
    missing = found.evidence.fails("dimensions", "missing dimensions")
    longer = found.diffusion.grown(rng) if missing else None
    if longer is None:
        return found
    warn_all(longer.warned)
    return find_in_functions(longer, n_asked, rng=rng)


def _dimensions(peeling: Peeling, diffusion: Operator) -> Dimensions:
    """Dimensions of the data and of the blocks.

    None is missing where a further factor was refused, or where what the blocks leave of the
    samples is noise.
    """
    look = peeling.looks[0]
    of_data = diffusion.dimension
    found = sum(geometry.count_directions(look.geometry, block) for block in look.blocks)
    # A refused factor is not missing: it is there, but not a factor of a product.
    missing = peeling.refused is None and found + CRITERIA["dimensions"].limit < of_data
    if missing and diffusion.points is not None and look.blocks:
        # On the paper's rectangle, whose noise of .05 counts as a third dimension, this saves
        # computing 400 functions: 5 s instead of 40 at 10,000 samples.
        missing = not leaves_noise(_places(look), np.asarray(diffusion.distinct_points))
    return Dimensions(of_data, found, missing)


def _places(look: Look) -> np.ndarray:
    """Where samples lie on the blocks, (n, c), in units of length."""
    places = []
    for block in look.blocks:
        eigenvalues = look.geometry.rayleigh(block)
        lowest = block[:, : geometry.batch_size(eigenvalues)]
        # A function of eigenvalue l has gradients of mean square l.
        places.append(look.geometry.values(lowest / np.sqrt(eigenvalues[0])))
    return np.hstack(places)


def require_as_many(asked: int | None, found: int) -> None:
    """Raise an error if fewer factors were found than asked for."""
    if asked is not None and found < asked:
        raise NothingFoundError(
            f"Found only {found} of the {asked} factors requested by `n_factors`: what remains "
            "varies along these. Lower `n_factors`, or give more samples."
        )


def as_many_as(asked: int | None, peeling: Peeling) -> list[np.ndarray]:
    """Return the blocks found, or as many as were asked for with the highest taken together."""
    geometry, blocks = peeling.looks[0].geometry, list(peeling.looks[0].blocks)
    blocks.sort(key=lambda block: float(geometry.rayleigh(block)[0]))
    if asked is None or asked == len(blocks):
        return blocks
    require_as_many(asked, len(blocks))
    kept, joined = blocks[: asked - 1], blocks[asked - 1 :]
    # What has no energy along the kept blocks includes the products of the joined ones, which are
    # functions of the joint factor.
    rest = purity.without_energy(geometry, kept)
    return [*kept, rest if rest.shape[1] else np.hstack(joined)]


def weigh_peeled(peeled: Peeled, n_asked: int | None, *, rng: np.random.Generator) -> Factorization:
    """Return the factors that peeled blocks describe, and the evidence for them."""
    diffusion, peeling = peeled.diffusion, peeled.peeling
    blocks = as_many_as(n_asked, peeling)
    if len(blocks) == 1:
        found = None if n_asked else _with_refused(peeled, rng)
        if found is not None:
            return found
        return Factorization((), weigh_one(peeled), diffusion, peeling.splits)
    made = partial(
        make_factors,
        diffusion.spectrum,
        [beside_constant(block) for block in blocks],
        geometry=peeling.looks[0].geometry,
    )
    factors, readings = made(charted=peeled.charted if len(blocks) == len(peeled.charted) else ())
    bent = [factor.topology == "other" and factor.dimension == 1 for factor in factors]
    if diffusion.basis is not None and any(bent):
        # The lowest function of a process on an interval tells all places, although it hardly
        # changes inside a well.
        factors, readings = made(charted=[1 if each else None for each in bent])
    placer: ByFunctions
    factors, placer = integrated(factors, readings, diffusion)
    evidence = weigh(peeled, factors, readings, rng=rng)
    # Afterwards: that samples fill the product of such places would be no evidence.
    if diffusion.lagged and len(factors) > 1:
        factors, placer = unmixed(factors, readings, diffusion)
    return Factorization(factors, evidence, diffusion, peeling.splits, placer=placer)


def _with_refused(peeled: Peeled, rng: np.random.Generator) -> Factorization | None:
    """Factors of which some were refused, if only their lengths are not a product's.

    As on a surface of revolution: products of functions are not eigenfunctions there, but
    coordinates are right and directions orthogonal. None where nothing was refused, where more is
    wrong with it, or where a factor shrinks to a point, as on a cone.
    """
    samples, refused = peeled.diffusion.points, peeled.peeling.refused
    # Without samples nothing tells whether directions are orthogonal.
    if samples is None or refused is None:
        return None
    dimensions = _dimensions(refused, peeled.diffusion)
    everything = replace(peeled, peeling=refused, dimensions=dimensions, strict=True)
    found, warned = attempt(partial(weigh_peeled, everything, None, rng=rng))
    if found is None or any(
        CRITERIA[test.kind].about != "lengths" for test in found.evidence.failed
    ):
        return None
    rows = random_rows(np.flatnonzero(~peeled.diffusion.graph.outliers), 10_000)
    places = [factor.embedding[rows] for factor in found.factors]
    if not CRITERIA["poles"].judge(*poles(places, samples[rows])).passed:
        return None
    issue(warned)
    return found


# Why no other factor was found.


def weigh_one(peeled: Peeled) -> Evidence:
    """Return the evidence on one factor that was found by peeling, and why only one.

    Too few samples, too noisy, in clusters, uneven, irreducible, or a spectrum that is too short:
    the tests are taken in this order up to the first that fails.
    """
    peeling, dimensions = peeled.peeling, peeled.dimensions
    look, split = peeling.looks[0], peeling.splits[0]
    # The largest noise of the q that the functions were divided by.
    n, noise = len(look.part), float(split.noise.max(initial=0))
    # Functions whose q is 1 or more are structureless, whatever its noise.
    might_divide = bool((split.q < 1).any())
    # Each factor may be a step, so that several of the lowest functions are looked at.
    lowest = look.geometry.spectrum.functions[:, 1:4]
    shares = max((clusters_of_function(function) for function in lowest.T), key=len)
    numbers = {"samples": n, "uncertainty": noise if might_divide else 0.0}
    even = density_of(peeled.diffusion)
    # Pairs show how the samples get from one cluster to another, at any density.
    if peeled.diffusion.basis is None:
        numbers["clusters"] = len(shares)
        if peeled.diffusion.points is not None:
            numbers["evenness"] = even.spread
    if peeling.refused is not None:
        numbers["further product"] = peeling.refused.product_share
    numbers["missing dimensions"] = (
        dimensions.data - dimensions.found if dimensions.missing else 0.0
    )
    numbers["blocks"] = len(look.blocks)
    tests = judge(
        numbers,
        samples=n,
        sizes=clusters_in_words(shares),
        ratio=even.ratio,
        functions=len(look.geometry.eigenvalues),
    )
    _warn_if_unsure(tests, n, even)
    # Tests after the first that fails rest on what it denies.
    first = next(number for number, test in enumerate(tests) if not test.passed)
    return Evidence(tests[: first + 1], null=noise, sense=peeled.sense)


def weigh_line(diffusion: Operator) -> Evidence | None:
    """Return the evidence on samples on a straight line; None if they are on none."""
    if diffusion.points is None:
        return None
    along = along_line(diffusion.points, diffusion.graph.distinct)
    if along is None:
        return None
    shares = clusters(along)
    gaps = f", and fall into {clusters_in_words(shares)}" if len(shares) > 1 else ""
    return Evidence(judge({"directions": 1}, gaps=gaps))


def density_of(diffusion: Operator) -> Evenness:
    """Return how even the samples are; nan where only distances are known."""
    if diffusion.points is None:
        return Evenness(NOT_MEASURED, NOT_MEASURED)
    samples = np.asarray(diffusion.distinct_points)
    return evenness(samples, diffusion.dimension, diffusion.distinct_metric)


def is_uneven(density: Evenness) -> bool:
    """Return whether the density varies more than that of even samples."""
    return density.spread > CRITERIA["evenness"].limit


def _warn_if_unsure(tests: Sequence[Test], n_samples: int, even: Evenness) -> None:
    """Warn if the first test, of the number of samples, or the second, of q, fails."""
    enough, certain = tests[:2]
    if not enough.passed:
        warn_of_few_samples(
            # A number to try, well above the least one.
            int(5 * enough.limit),
            f"{n_samples} distinct samples show little of any manifold",
            even,
        )
    elif not certain.passed:
        warn_of_few_samples(
            # Noise falls inversely with the number of samples; aim at half the limit.
            int(n_samples * certain.value / (certain.limit / 2)),
            f"the number of factors is uncertain by {certain.value:.2f} of the range "
            "it is read from",
            even,
        )


def warn_of_few_samples(enough: int, what: str, even: Evenness) -> None:
    """Warn of few or noisy samples, with the number that would help.

    The noise of even samples falls with their number. Uneven samples have tails, where functions
    are peaks on single samples; more samples only show more of the tails.
    """
    remedy = f"About {enough} samples would help."
    if is_uneven(even):
        remedy = (
            f"Their density varies {even.ratio:.2g}-fold, so that more samples of the "
            "same kind may not help."
        )
    warn_caller(
        f"The samples are too few or too noisy for a sure verdict: {what}. {remedy}", SampleWarning
    )


# The evidence on several factors.


def _taken(measures: Mapping[str, Callable[[], Any]]) -> dict[str, Any]:
    """What functions return, by name; each of them runs in a thread of its own."""
    values = map_threads(lambda measure: measure(), list(measures.values()))
    return dict(zip(measures, values, strict=True))


def judge_places(
    factors: Sequence[Factor],
    samples: np.ndarray | None,
    *,
    inliers: np.ndarray | slice = slice(None),
    sense: str = "geometry",
    judged_as: str = "",
) -> tuple[Test, ...]:
    """Return the tests of `OF_PLACES` that apply in a sense; () if only distances are known.

    "twist in data" is among them only where it fails: most data have nothing that could be twisted.

    Shapes: samples (n, p), inliers (n,).
    """
    if samples is None:
        return ()
    placed = place_samples(
        [factor.embedding for factor in factors],
        [factor.dimension for factor in factors],
        samples,
        inliers=inliers,
    )
    # Made once, before several threads ask for them.
    _ = placed.local_fits, placed.halves
    found = _taken(
        {
            name: partial(measure, placed)
            for name, measure in OF_PLACES.items()
            if sense in CRITERIA[name].senses
        }
    )
    # In a sum, angles must be independent, too.
    found["twist in data"] = twist_in_data(placed, beside_circles=sense == "sum")
    # Limits follow the number of all samples, which coordinates are made from.
    *tests, twist = judge(found, n_samples=len(samples), sense=judged_as or sense)
    return (*tests, *([] if twist.passed else [twist]))


def clusters_of_factors(factors: Sequence[Factor]) -> str:
    """Return a phrase on factors along which samples fall into clusters, or ""."""
    phrases = []
    for number, factor in enumerate(factors, start=1):
        if factor.coordinate is None:
            shares = clusters_of_function(factor.functions[:, 0])
        else:
            shares = clusters(factor.coordinate, closed=factor.topology == "circle")
        if len(shares) > 1:
            phrases.append(f"{clusters_in_words(shares)}, along factor {number}")
    return f"the samples fall into {'; '.join(phrases)}" if phrases else ""


def weigh(
    peeled: Peeled,
    factors: Sequence[Factor],
    readings: Sequence[Reading],
    *,
    rng: np.random.Generator,
) -> Evidence:
    """Return the evidence on several factors that were found by peeling."""
    diffusion, peeling, sense = peeled.diffusion, peeled.peeling, peeled.sense
    spectrum, points, inliers = diffusion.spectrum, diffusion.points, ~diffusion.graph.outliers
    full, *halves = peeling.looks
    lowest = spectrum.functions[:, 1 : 1 + LOWEST_FUNCTIONS]
    # Only one of them uses `rng`, so that the result does not depend on the order of threads.
    found = _taken(
        {
            "product": partial(purity.product_share, full.geometry, full.blocks),
            "completeness": partial(product.completeness, spectrum, factors),
            "twist": partial(product.twist, peeling.looks),
            "modulation": partial(product.modulation, readings, spectrum),
            "undivided": partial(product.undivided, peeling.splits),
            "explained": partial(product.explained, factors, points, inliers),
            "hidden direction": partial(product.hidden_direction, factors, points, inliers),
            "lowest functions": partial(product.explained, factors, lowest, inliers),
            "parts": partial(product.least_explained_part, factors, points, inliers),
            "leakage": partial(product.leakage, factors),
            "agreement": lambda: max(
                (product.agreement(full, half) for half in halves), default=0.0
            ),
            "dependence": partial(product.dependence, factors, by_ranks=False, rng=rng),
            "places": partial(
                judge_places,
                factors,
                points,
                inliers=inliers,
                sense=sense,
                # Places that are read off functions are less accurate than integrated ones.
                judged_as="" if diffusion.basis is None else "pairs",
            ),
        }
    )
    leaks, p, of_places = found["leakage"], found.pop("dependence"), found.pop("places")
    of_factors = sum(factor.dimension for factor in factors)
    misfit = peeled.dimensions.misfit(of_factors, CRITERIA["dimensions"].limit)
    found |= {"leakage": np.nanmax(leaks), "dimensions": misfit.dimensions}
    # A trajectory may be short: independent coordinates then predict each other by chance.
    found = {name: value for name, value in found.items() if sense in CRITERIA[name].senses}
    tests = judge(found, strict=peeled.strict, difference=misfit.difference)
    evidence = Evidence(
        tests + of_places,
        leakage=leaks,
        null=max((float(split.noise.max(initial=0)) for split in peeling.splits), default=0.0),
        dependence=p,
        details=clusters_of_factors(factors),
        sense=sense,
    )
    if evidence.fails("agreement"):
        n = len(full.part)
        # The halves of twice as many samples are as large as all of these.
        what = f"of {n} samples neither half shows the same factors"
        warn_of_few_samples(2 * n, what, density_of(diffusion))
    return evidence


# Factors in the samples themselves: terms of a sum.


def find_in_samples(
    diffusion: Operator,
    n_asked: int | None,
    *,
    may_be_right: Callable[[Factorization], bool],
    rng: np.random.Generator,
) -> Factorization:
    """Find factors whose functions add up to the samples, and weigh them.

    Only factors that may be right are compared with those of half of the samples.
    """
    if diffusion.points is None:
        raise ValueError(
            "a sum is taken of samples; got a precomputed graph of distances. Pass "
            "samples, or leave `method` and `sense` at their defaults."
        )
    # Outliers would dominate means and cumulants, but tails belong to the density.
    samples = diffusion.points[~(diffusion.graph.outliers & far_off(diffusion.points))]
    find = partial(
        find_sum, max_factors=n_asked or MAX_FACTORS, n_neighbors=diffusion.n_neighbors, rng=rng
    )
    known = diffusion.preparation
    found = replace(find(samples), noise=known.noise if known else 0.0)
    warn_all(found.warned)
    factors = found.factors(diffusion.points)
    evidence = weigh_sum(found, factors, diffusion, rng=rng)
    wrong = any(
        CRITERIA[test.kind].coordinates in ("wrong", "incomplete") for test in evidence.failed
    )
    result = Factorization(factors, evidence, diffusion, placer=ByTerms(found))
    # Those of a handful of samples or of noise show nothing.
    if len(factors) > 1 and not wrong and may_be_right(result):
        enough = len(samples) >= CRITERIA["samples"].limit and not found.is_cloud
        agreed = agreement(found, samples, find, rng=rng) if enough else NOT_MEASURED
        tests = judge({"agreement": agreed}, strict=True)
        result = replace(result, evidence=replace(evidence, tests=tests + evidence.tests))
    return result


def weigh_sum(
    found: Sum, factors: Sequence[Factor], diffusion: Operator, *, rng: np.random.Generator
) -> Evidence:
    """Return the evidence on factors whose functions add up to the samples.

    A parallelogram and a cone are sums, too, exactly or nearly: only the tests of coordinates tell
    them from products.
    """
    if len(factors) == 1:
        return Evidence(judge({"terms": 1}), sense="sum")
    inliers = ~diffusion.graph.outliers
    leaks = product.leakage(factors)
    p = product.dependence(factors, rng=rng)
    numbers = {
        "sum": 1 - found.left,
        "own share": found.own_share,
        "hidden direction": product.hidden_direction(factors, diffusion.points, inliers),
        "structured rest": found.structured_rest,
        "axes": np.sin(found.axes_error) ** 2,
        "leakage": np.nanmax(leaks),
        "independence": p,
    }
    of_places = judge_places(factors, diffusion.points, inliers=inliers, sense="sum")
    tests = judge(numbers, strict=True) + of_places
    return Evidence(tests, leakage=leaks, dependence=p, sense="sum")


# Factors by the paper's algorithm: triplets, separability, maximum cut.


def find_by_triplets(
    diffusion: Operator, settings: FactoringSettings, *, rng: np.random.Generator
) -> Factorization:
    """Find groups of functions whose products are functions, and weigh them."""
    tolerance, threshold = (
        None if is_auto(value) else float(value)
        for value in (settings.eigenvalue_tolerance, settings.similarity_threshold)
    )
    spectrum = diffusion.spectrum
    grouping = group_functions(
        spectrum,
        n_groups=settings.n_asked,
        tolerance=tolerance,
        threshold=threshold,
        exclude=settings.exclude,
        rng=rng,
    )
    if not grouping.groups:
        evidence = Evidence(judge({"triplets": 0}, why=grouping.why_none))
        whole, placer = whole_factor(diffusion)
        return Factorization(whole, evidence, diffusion, triplets=grouping.triplets, placer=placer)
    blocks = [selection(spectrum, group) for group in grouping.groups]
    factors, readings = make_factors(spectrum, blocks)
    leaks, asked = product.leakage(factors), settings.n_asked or len(factors)
    numbers = {
        "connected": grouping.n_pieces,
        "groups": len(factors) / asked,
        "completeness": product.completeness(spectrum, factors),
        "leakage": np.nanmax(leaks),
    }
    tests = judge(numbers, found=len(factors), asked=asked)
    assert grouping.cut is not None
    gap = grouping.cut.gap
    # A gap below 1e-6 is rounding of the bound.
    quality = "the best there is" if gap < 1e-6 else f"at most {gap:.1%} below the best"
    details = f"the cut that made the groups is {quality}"
    evidence = Evidence(tests, leakage=leaks, details=details)
    return Factorization(
        factors,
        evidence,
        diffusion,
        triplets=grouping.triplets,
        cut=grouping.cut,
        placer=ByFunctions(readings),
    )


# What known noise, and factors of terms, add to the evidence.


def weigh_noise(evidence: Evidence, shares: Sequence[float]) -> Evidence:
    """Return the evidence with a test of what noise of known size leaves."""
    worst = int(np.argmin(shares))
    # Noise may move coordinates by more than they spread.
    share = max(0.0, float(shares[worst]))
    (test,) = judge({"reliability": share}, noise_share=1 - share, factor=worst + 1)
    return evidence.with_test(test)


def weigh_terms(of_sum: Evidence, inside: Mapping[int, Evidence]) -> Evidence:
    """Return the evidence on all factors of a sum with divided terms.

    A test that fails anywhere makes the verdict "partial".
    """
    sizes = [inside[term].n_factors if term in inside else 1 for term in range(of_sum.n_factors)]
    tests = [test.of_term(term + 1) for term, each in inside.items() for test in each.tests]
    both = [of_sum, *inside.values()]
    # Leakage between terms, and inside each of them.
    leakage = np.repeat(np.repeat(of_sum.leakage, sizes, axis=0), sizes, axis=1)
    # Numbers of the factors of each term, from 0.
    members = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
    for term, each in inside.items():
        leakage[np.ix_(members[term], members[term])] = each.leakage
    return replace(
        of_sum,
        tests=(*of_sum.tests, *tests),
        leakage=leakage,
        # Numbers that were not measured are nan, and do not count.
        null=float(np.fmax.reduce([each.null for each in both])),
        dependence=float(np.fmin.reduce([each.dependence for each in both])),
        terms=tuple(tuple((own + 1).tolist()) for own in members),
    )
