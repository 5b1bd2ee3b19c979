"""Spectrum to factorization: the methods, and the result they share."""

import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse.csgraph import connected_components

from manifactor._support.threads import at_once
from manifactor.factoring.deflation import WalkSpectrum, deflate
from manifactor.factoring.division import Split
from manifactor.factoring.energy import count_directions
from manifactor.factoring.evidence import (
    COMPLETE,
    LEAKING,
    Evidence,
    NoProductStructureWarning,
    weigh,
    weigh_one,
    weigh_sum,
)
from manifactor.factoring.factor import Factor, make_factors, selection
from manifactor.factoring.gradients import beside_constant, measure_geometry
from manifactor.factoring.maxcut import Cut, max_cut
from manifactor.factoring.measures import completeness, leakage, leaves_noise
from manifactor.factoring.peeling import Peeling, peel
from manifactor.factoring.proposals import Look
from manifactor.factoring.purity import batch_size, without_energy
from manifactor.factoring.triplets import Triplets, best_similarity, find_triplets
from manifactor.spectral.diffusion import Diffusion
from manifactor.spectral.kernel import Affinity
from manifactor.spectral.neighbors import AUTO_NEIGHBORS, chosen
from manifactor.spectral.parts import ROUGH, Part
from manifactor.spectral.spectrum import Spectrum, laplacian_spectrum

log = logging.getLogger("manifactor")

UNCERTAIN = 0.75  # dimensions that the data, whose own are measured to about a half, may have more or fewer
MISFITS = {
    0: "",
    1: "the factors have more dimensions than the data, so they overlap",
    -1: "the factors have fewer dimensions than the data, so a small one may be missing",
}
MAX_CUT = 5  # groups that "auto" looks for in the triplet method
SEPARATED = 0.95  # share of the separability that the cut of "auto" must cut
WHOLE = 24  # functions that describe the data when there is one factor
FEWEST_FUNCTIONS = 4  # of a half that is looked at
BLOCK_WISE = 6  # samples for each function from which on the block solver beats the dense one at low accuracy


@dataclass(frozen=True)
class Factorization:
    """Factors, the one with the smallest eigenvalue first, the evidence for them, and their spectrum."""

    factors: tuple[Factor, ...]
    evidence: Evidence
    spectrum: Spectrum
    splits: tuple[Split, ...] = ()
    triplets: Triplets | None = None
    cut: Cut | None = None


def by_gradients(
    diffusion: Diffusion, n_factors: int | str, *, rng: np.random.Generator, **_
) -> Factorization:
    """Factors by orthogonal gradients: peel off blocks of pure functions, in the whole sample and in its halves."""
    asked = None if n_factors == "auto" else int(n_factors)
    if asked == 1:
        return _whole(diffusion.spectrum, "one factor was asked for")
    while True:
        peeling = peel(_looks(diffusion, rng), at_least=asked or 1, rng=rng)
        missing = _directions_missing(peeling, diffusion)
        longer = diffusion.grown(rng) if missing else None
        if longer is None:
            break
        diffusion = longer
    spectrum = diffusion.spectrum
    blocks = _as_many_as(asked, peeling)
    if len(blocks) == 1:
        evidence = weigh_one(peeling, missing=missing)
        warnings.warn(
            f"No product structure was found: {evidence.reason}.",
            NoProductStructureWarning,
            stacklevel=3,
        )
        return replace(_whole(spectrum, ""), evidence=evidence, splits=peeling.splits)
    factors = make_factors(spectrum, [beside_constant(block) for block in blocks])
    inliers = ~diffusion.graph.outliers
    surplus = (
        sum(factor.dimension for factor in factors)
        > diffusion.affinity.bandwidth.dimension + UNCERTAIN
    )
    misfit = MISFITS[1 if surplus else -1 if missing else 0]
    evidence = weigh(
        spectrum, factors, peeling, diffusion.samples, inliers, misfit=misfit, rng=rng
    )
    return Factorization(factors, evidence, spectrum, peeling.splits)


def by_deflation(
    diffusion: Diffusion, n_factors: int | str, *, rng: np.random.Generator, **_
) -> Factorization:
    """Two factors of an additive embedding: each is found in what the other leaves of the data."""
    if n_factors not in ("auto", 2):
        raise ValueError(
            f"`method='deflation'` finds two factors; got `n_factors`={n_factors}. Leave it at 'auto', or choose "
            "another `method`."
        )
    if diffusion.samples is None:
        raise ValueError(
            "`method='deflation'` subtracts samples; pass them, not a precomputed graph of distances."
        )
    n_neighbors = diffusion.graph.n_neighbors or AUTO_NEIGHBORS
    start = WalkSpectrum(diffusion.graph, diffusion.affinity, diffusion.distinct)
    factors, explained = deflate(
        diffusion.samples, start, n_neighbors=n_neighbors, rng=rng
    )
    return Factorization(
        factors, weigh_sum(factors, explained, rng=rng), diffusion.spectrum
    )


def _looks(diffusion: Diffusion, rng: np.random.Generator) -> list[Look]:
    """All distinct samples, and two parts or halves of them, each with its spectrum and its gradients."""
    samples = (
        None
        if diffusion.samples is None
        else chosen(diffusion.samples, diffusion.graph.distinct)
    )
    count = len(diffusion.distinct.eigenvalues)
    whole = Part(
        np.arange(len(diffusion.distinct.weights)),
        diffusion.affinity,
        diffusion.distinct,
    )
    parts = [whole, *(diffusion.parts or _halves(diffusion.affinity, count, rng))]

    def look(part: Part, rng: np.random.Generator) -> Look:
        some = None if samples is None else chosen(samples, part.rows)
        return Look(
            part.rows,
            measure_geometry(part.spectrum.lowest(count), part.affinity, some, rng=rng),
        )

    return at_once(look, parts, rng.spawn(len(parts)))


def _halves(
    affinity: Affinity, n_functions: int, rng: np.random.Generator
) -> Iterator[Part]:
    """Random halves with their spectra under the same kernel; a half that falls apart says nothing and is left out."""
    for rows in np.array_split(rng.permutation(len(affinity.degree)), 2):
        rows.sort()
        walk = affinity.restricted(rows)
        count = min(n_functions, len(rows) // 2)
        if (
            count < FEWEST_FUNCTIONS
            or connected_components(walk.kernel, directed=False)[0] > 1
        ):
            continue
        solver = "chebyshev" if len(rows) > BLOCK_WISE * count else "auto"
        yield Part(
            rows,
            walk,
            laplacian_spectrum(walk, count, solver=solver, accuracy=ROUGH, rng=rng),
        )


def _directions_missing(peeling: Peeling, diffusion: Diffusion) -> bool:
    """Whether the factors have fewer dimensions than the data, nothing was refused, and the rest is no noise."""
    look = peeling.looks[0]
    found = sum(count_directions(look.geometry, block) for block in look.blocks)
    if (
        peeling.refused is not None
        or found + UNCERTAIN >= diffusion.affinity.bandwidth.dimension
    ):
        return False
    if diffusion.samples is None or not look.blocks:
        return True
    return not leaves_noise(
        _places(look), chosen(diffusion.samples, diffusion.graph.distinct)
    )


def _places(look: Look) -> np.ndarray:
    """Where samples lie on the blocks, by their lowest functions in units of length, (n, c)."""
    rayleigh = [look.geometry.rayleigh(block) for block in look.blocks]
    low = [
        block[:, : batch_size(r)] / np.sqrt(r[0])
        for block, r in zip(look.blocks, rayleigh, strict=True)
    ]
    return np.hstack([look.geometry.values(block) for block in low])


def _as_many_as(asked: int | None, peeling: Peeling) -> list[np.ndarray]:
    """The blocks found, or as many as were asked for: the highest ones are then taken together."""
    geometry, blocks = peeling.looks[0].geometry, list(peeling.looks[0].blocks)
    blocks.sort(key=lambda block: float(geometry.rayleigh(block)[0]))
    if asked is None or asked == len(blocks):
        return blocks
    if asked > len(blocks):
        raise ValueError(
            f"`n_factors` must not exceed what the data show; {asked} were asked for and {len(blocks)} found: no "
            "function was left that does not vary along those. Lower `n_factors`, or give more samples."
        )
    rest = without_energy(geometry, blocks[: asked - 1])
    return [
        *blocks[: asked - 1],
        rest if rest.shape[1] else np.hstack(blocks[asked - 1 :]),
    ]


def by_triplets(
    diffusion: Diffusion,
    n_factors: int | str,
    *,
    eigenvalue_tolerance: float | str,
    similarity_threshold: float,
    exclude: Sequence[int],
    rng: np.random.Generator,
) -> Factorization:
    """The paper's algorithm: triplets, separability matrix, maximum cut."""
    spectrum = diffusion.spectrum
    if n_factors == 1:
        return _whole(spectrum, "one factor was asked for")
    auto = isinstance(eigenvalue_tolerance, str)
    tolerance = 0.1 * spectrum.eigenvalues if auto else np.asarray(eigenvalue_tolerance)
    most = 2 if n_factors == "auto" else int(n_factors)
    triplets = find_triplets(
        spectrum, tolerance=tolerance, threshold=similarity_threshold, max_parts=most
    )
    functions, separability = triplets.separability(exclude=exclude)
    if not separability.any():
        reason = _why_no_triplet(spectrum, triplets, tolerance, similarity_threshold)
        warnings.warn(
            f"No product structure was found: {reason}",
            NoProductStructureWarning,
            stacklevel=2,
        )
        return _whole(spectrum, reason, triplets)
    cut = _cut(separability, n_factors, rng)
    groups = [functions[cut.labels == label] for label in range(cut.labels.max() + 1)]
    factors = make_factors(spectrum, [selection(spectrum, group) for group in groups])
    evidence = _weigh_triplets(spectrum, factors, separability, cut, n_factors)
    return Factorization(factors, evidence, spectrum, triplets=triplets, cut=cut)


METHODS: dict[str, Callable[..., Factorization]] = {
    "gradients": by_gradients,
    "deflation": by_deflation,
    "triplets": by_triplets,
}


def _cut(
    separability: np.ndarray, n_factors: int | str, rng: np.random.Generator
) -> Cut:
    """The maximum cut into as many groups as asked for, or the fewest that separate nearly all that is separable."""
    if n_factors != "auto":
        return max_cut(separability, int(n_factors), rng=rng)
    for n_groups in range(2, MAX_CUT + 1):
        cut = max_cut(separability, n_groups, rng=rng)
        if cut.objective >= SEPARATED * separability.sum() / 2:
            break
    return cut


def _weigh_triplets(spectrum, factors, separability, cut: Cut, n_factors) -> Evidence:
    """Verdict of the triplet method."""
    explained = completeness(spectrum, factors)
    pieces = connected_components(separability, directed=False)[0]
    problems = []
    if pieces > 1:
        problems.append(
            f"the triplets fall into {pieces} unconnected pieces, each of which the cut may assign either way round"
        )
    if n_factors != "auto" and len(factors) < n_factors:
        problems.append(
            f"only {len(factors)} of the {n_factors} factors asked for were found"
        )
    if explained < COMPLETE:
        problems.append(
            f"products of the functions found explain {explained:.0%} of the low spectrum, not {COMPLETE:.0%}"
        )
    quality = (
        "the best there is"
        if cut.gap < 1e-6
        else f"at most {cut.gap:.1%} below the best"
    )
    leaked = leakage(factors)
    if np.nanmax(leaked) > LEAKING:
        problems.append(
            f"a sample's place on one factor predicts {np.nanmax(leaked):.0%} of another"
        )
    return Evidence(
        verdict="partial" if problems else "product",
        reason="; ".join(problems)
        or f"the functions fall into {len(factors)} groups whose products are functions too",
        completeness=explained,
        leakage=leaked,
        details=f"the cut that made the groups is {quality}",
    )


def _whole(
    spectrum: Spectrum, reason: str, triplets: Triplets | None = None
) -> Factorization:
    """The data as one factor."""
    indices = range(1, min(1 + WHOLE, len(spectrum.eigenvalues)))
    factors = make_factors(spectrum, [selection(spectrum, indices)])
    return Factorization(factors, Evidence("none", reason), spectrum, triplets=triplets)


def _why_no_triplet(
    spectrum: Spectrum, triplets: Triplets, tolerance, threshold: float
) -> str:
    """Why nothing can be separated, and what the nearest triplet would have needed."""
    if len(triplets):
        return f"all {len(triplets)} triplets have excluded functions; what `exclude` leaves is one factor"
    best = best_similarity(spectrum, tolerance=tolerance)
    count = len(spectrum.eigenvalues) - 1
    if best == 0:
        return (
            f"no two of the {count} functions have eigenvalues that add up to a third's within "
            "`eigenvalue_tolerance`; raise it or `n_functions`"
        )
    return (
        f"none of the {count} functions is the product of lower ones; the most similar reaches {best:.2f} where "
        f"`similarity_threshold` asks for {threshold:.2f}; lower it, raise `eigenvalue_tolerance` or add samples"
    )
