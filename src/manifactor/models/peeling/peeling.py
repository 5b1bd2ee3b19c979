"""Peeling: blocks of pure functions, found factor after factor.

All samples and two halves of them are looked at; the halves tell noise from structure. Functions
below twice the lowest eigenvalue are not products, hence pure up to a rotation, and divide into
blocks of orthogonal gradients. What has no energy along any block belongs to further factors.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse.csgraph import connected_components

from manifactor._support.threads import map_threads
from manifactor.models.peeling.division import Split, divide, excess_in_halves
from manifactor.models.peeling.purity import product_share, refine, without_energy
from manifactor.operators.geometry import Geometry, batch_size, geometry_of_pairs, measure_geometry
from manifactor.operators.laplacian import ROUGH_ACCURACY, Part, laplacian_spectrum
from manifactor.operators.neighbors import chosen
from manifactor.operators.operator import Operator

# The number of functions below an eigenvalue grows as a power of the dimension (Weyl), so that a
# few hundred functions do not show more factors than this.
MAX_FACTORS = 6
# Least share of the product of two functions near the sum of their eigenvalues, its noise taken
# off: 0.97 and more on products, 0.7 and less on irreducible shapes.
MIN_PRODUCT_SHARE = 0.7
# Most that is added to a share for its noise, so that poor halves cannot excuse any product.
MAX_SHARE_NOISE = 0.15
# A half with fewer functions cannot show two factors.
FEWEST_DIVIDED = 4
# How the dimensions of factors differ from those of the data
MORE = "more dimensions than the data, so they overlap"
FEWER = "fewer dimensions than the data, so a small one may be missing"


@dataclass(frozen=True)
class Look:
    """The blocks of pure functions that a part of the samples shows."""

    part: np.ndarray  # the samples
    geometry: Geometry
    # (n_functions, r): unit columns of coefficients, ascending eigenvalue; one block for each
    # factor
    blocks: tuple[np.ndarray, ...] = ()


def take_looks(diffusion: Operator, *, rng: np.random.Generator) -> list[Look]:
    """Return looks without blocks at all distinct samples, and at two parts or halves of them."""
    if diffusion.lagged:
        d = diffusion.dimension
        return [Look(part.rows, geometry_of_pairs(part, d, rng=rng)) for part in diffusion.lagged]
    count = len(diffusion.distinct.eigenvalues)
    everything = np.arange(len(diffusion.distinct.weights))
    whole = Part(everything, diffusion.affinity, diffusion.distinct)
    halves = diffusion.parts or _halves(diffusion, count, rng)
    parts = [whole, *halves]
    samples, metric = diffusion.distinct_points, diffusion.distinct_metric

    def look(part: Part, rng: np.random.Generator) -> Look:
        some = None if samples is None else chosen(samples, part.rows)
        own = None if metric is None else metric.chosen(part.rows)
        if own is not None and own.flat is not None:
            some, own = own.flat.places, None
        spectrum = part.spectrum.lowest(count)
        geometry = measure_geometry(spectrum, part.affinity, some, metric=own, rng=rng)
        return Look(part.rows, geometry)

    # A generator for each, so that results do not depend on the order of threads.
    return map_threads(look, parts, rng.spawn(len(parts)))


def _halves(diffusion: Operator, n_functions: int, rng: np.random.Generator) -> Iterator[Part]:
    """Yield random halves under the same kernel, but for those that show nothing."""
    affinity = diffusion.affinity
    for rows in np.array_split(rng.permutation(len(affinity.degree)), 2):
        # Ascending rows keep the kernel's rows in the order of memory.
        rows.sort()
        walk = affinity.restricted(rows)
        count = min(n_functions, len(rows) // 2)
        if count < FEWEST_DIVIDED:
            continue
        # Its lowest functions would tell its pieces apart, and nothing else.
        if connected_components(walk.kernel, directed=False)[0] > 1:
            continue
        # With many samples for each function, the block solver is faster than the dense one at the
        # low accuracy that halves need.
        solver = "chebyshev" if len(rows) > 6 * count else "auto"
        spectrum = laplacian_spectrum(walk, count, solver=solver, accuracy=ROUGH_ACCURACY, rng=rng)
        if len(spectrum.eigenvalues) < FEWEST_DIVIDED:
            continue
        yield Part(rows, walk, spectrum)


@dataclass(frozen=True)
class Peeling:
    """The blocks that were found, and how."""

    # All samples first, then the halves that showed as many functions at every step
    looks: tuple[Look, ...]
    splits: tuple[Split, ...] = ()  # one for each step
    # Of the products of all blocks in all samples, its noise taken off; 0 without blocks
    product_share: float = 0.0
    # The same with a further factor, which was refused for its products; None if no function was
    # left to propose one
    refused: "Peeling | None" = None

    def chosen(self, numbers: Sequence[int]) -> "Peeling":
        """Return the same of some of the blocks of all samples, in the order of the factors."""
        whole, *halves = self.looks
        ordered = sorted(whole.blocks, key=lambda block: float(whole.geometry.rayleigh(block)[0]))
        some = replace(whole, blocks=tuple(ordered[number] for number in numbers))
        looks = (some, *(_alike(some, half) for half in halves))
        return replace(self, looks=looks, product_share=product_share(some.geometry, some.blocks))


@dataclass(frozen=True)
class Dimensions:
    """Dimensions of the data, and of the blocks of functions that were found."""

    data: float  # as the kernel's bandwidth curve has it
    found: int  # directions that the gradients of the blocks span together
    missing: bool  # whether the blocks lack a dimension that is not noise

    def misfit(self, of_factors: int, limit: float) -> tuple[float, str]:
        """Return how far the dimensions of all factors together miss the data's, and how.

        The latter is a phrase, "" where they fit. A surplus of dimensions up to `limit` is not
        reported.
        """
        surplus = of_factors - self.data
        if surplus > limit:
            return surplus, MORE
        if self.missing:
            return self.data - self.found, FEWER
        # Dimensions that only noise fills are not missing.
        return max(0.0, surplus), ""


def peel(looks: Sequence[Look], *, at_least: int = 1, rng: np.random.Generator) -> Peeling:
    """Find blocks of pure functions of all samples and of their halves.

    The step is repeated until no function is left, or until the products of what is left with what
    was found are not eigenfunctions. Then the two blocks that do not go together are merged, once,
    and a further factor is looked for beside them: two motions that are coupled with each other,
    but not with the rest, are one factor of two dimensions.
    """
    found, before_merging = Peeling(tuple(looks)), None
    while _count(found) < MAX_FACTORS:
        trial = _with_further(found, at_least, before_merging is not None, rng)
        if trial is None:
            break
        if _count(found) < at_least or trial.product_share >= MIN_PRODUCT_SHARE:
            found = trial
            continue
        refused = replace(found, refused=trial)
        # Merged once only: repeated, that would end with all of the data as one block.
        merged = trial if before_merging else _merge_worst_pair(trial)
        if merged.product_share < MIN_PRODUCT_SHARE:
            found = refused
            break
        before_merging, found = refused, merged
    # A merged block beside which no factor was found is all of the data: then the merging did not
    # help, and the result is the one without.
    return before_merging if before_merging and _count(found) == 1 else found


def _alike(whole: Look, half: Look) -> Look:
    """Return a half with those of its blocks that show the functions of all samples best."""
    known = whole.geometry.spectrum.functions[half.part, 1:]
    own = half.geometry.spectrum.functions[:, 1:]
    bases = [np.linalg.qr(own @ block[:, :8])[0] for block in half.blocks]
    lowest = [known @ block[:, 0] for block in whole.blocks]
    shares = [[((basis.T @ f) ** 2).sum() / (f @ f) for basis in bases] for f in lowest]
    _, chosen = linear_sum_assignment(shares, maximize=True)
    return replace(half, blocks=tuple(half.blocks[number] for number in chosen))


def _count(found: Peeling) -> int:
    return len(found.looks[0].blocks)


def _with_further(
    found: Peeling, at_least: int, merged: bool, rng: np.random.Generator
) -> Peeling | None:
    """Divide what has no energy along the blocks; None if no pure functions are left."""
    rests = map_threads(lambda look: without_energy(look.geometry, look.blocks), found.looks)
    size = batch_size(found.looks[0].geometry.rayleigh(rests[0]))
    if size == 0:
        return None
    pairs = zip(found.looks, rests, strict=True)
    shown = [(look, rest[:, :size]) for look, rest in pairs if rest.shape[1] >= size]
    looks, batches = zip(*shown, strict=True)
    geometries = [look.geometry for look in looks]
    blocks, split = divide(geometries, batches, max_blocks=MAX_FACTORS, rng=rng)
    union_suffices = split.n_blocks > 1 and _count(found) + 1 >= at_least
    trial = _tried(looks, blocks, merged, may_fail=union_suffices)
    if trial.product_share < MIN_PRODUCT_SHARE and union_suffices:
        split = replace(split, n_blocks=1)
        trial = _tried(looks, [[batch] for batch in batches], merged)
    return replace(trial, splits=(*found.splits, split)) if _count(trial) else None


def _tried(
    looks: Sequence[Look],
    new: Sequence[Sequence[np.ndarray]],
    unions: bool,
    *,
    may_fail: bool = False,
) -> Peeling:
    """Add new blocks to each look, refine all blocks, and measure their products.

    Halves are left out if it `may_fail`, and does whatever they show.
    """

    def refined(look: Look, new: Sequence[np.ndarray]) -> Look:
        return replace(look, blocks=refine(look.geometry, (*look.blocks, *new), unions=unions))

    whole = refined(looks[0], new[0])
    share = product_share(whole.geometry, whole.blocks)
    # A third of the time of peeling what is not a product; no noise excuses so low a share.
    if may_fail and share + MAX_SHARE_NOISE < MIN_PRODUCT_SHARE:
        return Peeling((whole,), product_share=share)
    halves = [half for half in map_threads(refined, looks[1:], new[1:]) if half.blocks]
    in_halves = [product_share(half.geometry, half.blocks) for half in halves]
    # Noise lowers a share.
    noise = min(float(excess_in_halves(-share, [-half for half in in_halves])), MAX_SHARE_NOISE)
    return Peeling((whole, *halves), product_share=min(1.0, share + noise))


def _merge_worst_pair(trial: Peeling) -> Peeling:
    """Try the same looks with those two blocks as one, the last, that make the poorest product."""
    whole = trial.looks[0]
    pairs = list(combinations(range(len(whole.blocks)), 2))
    shares = [product_share(whole.geometry, [whole.blocks[a], whole.blocks[b]]) for a, b in pairs]
    worst = pairs[int(np.argmin(shares))]
    merged = [
        [block for i, block in enumerate(look.blocks) if i not in worst]
        + [np.hstack([look.blocks[i] for i in worst])]
        for look in trial.looks
    ]
    bare = [replace(look, blocks=()) for look in trial.looks]
    return replace(_tried(bare, merged, unions=True, may_fail=True), splits=trial.splits)
