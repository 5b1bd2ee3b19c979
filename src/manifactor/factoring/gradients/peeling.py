"""Peeling: blocks of pure functions, found factor after factor.

All samples and two halves of them are looked at; the halves tell noise from structure. Functions
below twice the lowest eigenvalue are not products, hence pure up to a rotation, and divide into
blocks of orthogonal gradients. What has no energy along any block belongs to further factors, and
its lowest functions are again pure. `peel` repeats this step: propose new blocks, judge them by
their products with the others, then accept them, merge two blocks, or stop.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from scipy.sparse.csgraph import connected_components

from manifactor._support.threads import map_threads
from manifactor.factoring.gradients.division import Split, deficit_in_halves, divide
from manifactor.factoring.gradients.geometry import Geometry, measure_geometry
from manifactor.factoring.gradients.purity import batch_size, product_share, refine, without_energy
from manifactor.spectral.diffusion import Diffusion
from manifactor.spectral.laplacian import laplacian_spectrum
from manifactor.spectral.neighbors import chosen
from manifactor.spectral.parts import ROUGH_ACCURACY, Part

# The number of functions below an eigenvalue grows as a power of the dimension (Weyl), so that a
# few hundred functions do not show more factors than this.
MAX_FACTORS = 6
# Least share of the product of two functions near the sum of their eigenvalues, its noise taken
# off: 0.97 and more on products, 0.7 and less on irreducible shapes.
MIN_PRODUCT_SHARE = 0.7
# Most that is added to a share for its noise, so that poor halves cannot excuse any product.
MAX_SHARE_NOISE = 0.15
# A half with fewer functions cannot show two factors.
FEWEST_FUNCTIONS = 4
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


def take_looks(diffusion: Diffusion, *, rng: np.random.Generator) -> list[Look]:
    """Return looks at all distinct samples and at two parts or halves of them.

    Each has its own spectrum and gradients, and no blocks yet.
    """
    count = len(diffusion.distinct.eigenvalues)
    everything = np.arange(len(diffusion.distinct.weights))
    whole = Part(everything, diffusion.affinity, diffusion.distinct)
    halves = diffusion.parts or _halves(diffusion, count, rng)
    parts = [whole, *halves]
    samples = diffusion.points
    if samples is not None:
        samples = chosen(samples, diffusion.graph.distinct)

    def look(part: Part, rng: np.random.Generator) -> Look:
        some = None if samples is None else chosen(samples, part.rows)
        spectrum = part.spectrum.lowest(count)
        return Look(part.rows, measure_geometry(spectrum, part.affinity, some, rng=rng))

    # A generator for each, so that results do not depend on the order of threads.
    return map_threads(look, parts, rng.spawn(len(parts)))


def _halves(diffusion: Diffusion, n_functions: int, rng: np.random.Generator) -> Iterator[Part]:
    """Random halves with their spectra under the same kernel.

    A half that falls apart, or has few functions, says nothing and is left out.
    """
    affinity = diffusion.affinity
    for rows in np.array_split(rng.permutation(len(affinity.degree)), 2):
        # Ascending rows keep the kernel's rows in the order of memory.
        rows.sort()
        walk = affinity.restricted(rows)
        count = min(n_functions, len(rows) // 2)
        if count < FEWEST_FUNCTIONS:
            continue
        # Its lowest functions would tell its pieces apart, and nothing else.
        if connected_components(walk.kernel, directed=False)[0] > 1:
            continue
        # With many samples for each function, the block solver is faster than the dense one at the
        # low accuracy that halves need.
        solver = "chebyshev" if len(rows) > 6 * count else "auto"
        spectrum = laplacian_spectrum(walk, count, solver=solver, accuracy=ROUGH_ACCURACY, rng=rng)
        if len(spectrum.eigenvalues) < FEWEST_FUNCTIONS:
            continue
        yield Part(rows, walk, spectrum)


@dataclass(frozen=True)
class Proposal:
    """Blocks that may belong to further factors, in each look that shows them."""

    looks: tuple[Look, ...]  # with the blocks accepted so far
    batches: list[np.ndarray]  # (n_functions, r): the functions that were divided into blocks
    blocks: list[list[np.ndarray]]  # the proposed blocks of each look
    split: Split

    def undivided(self) -> "Proposal":
        """Return the proposal that the whole batch is one block."""
        blocks = [[batch] for batch in self.batches]
        split = replace(self.split, n_blocks=1)
        return replace(self, blocks=blocks, split=split)


def propose(looks: Sequence[Look], *, rng: np.random.Generator) -> Proposal | None:
    """Divide the lowest functions without energy along the blocks found into blocks."""
    rests = map_threads(lambda look: without_energy(look.geometry, look.blocks), looks)
    size = batch_size(looks[0].geometry.rayleigh(rests[0]))
    if size == 0:
        return None
    pairs = zip(looks, rests, strict=True)
    shown = [(look, rest[:, :size]) for look, rest in pairs if rest.shape[1] >= size]
    batches = [batch for _, batch in shown]
    geometries = [look.geometry for look, _ in shown]
    blocks, split = divide(geometries, batches, max_blocks=MAX_FACTORS, rng=rng)
    return Proposal(tuple(look for look, _ in shown), batches, blocks, split)


@dataclass(frozen=True)
class Peeling:
    """The blocks that were found, and how."""

    # All samples first, then the halves that showed as many functions at every step
    looks: tuple[Look, ...]
    splits: tuple[Split, ...]  # one for each step
    # A further factor that was refused, None if no function was left to propose one
    refused: "Refusal | None" = None


@dataclass(frozen=True)
class Refusal:
    """Blocks whose products with the others are not eigenfunctions."""

    product_share: float  # of the products of all blocks
    peeling: Peeling  # as if the blocks had been accepted


@dataclass(frozen=True)
class Misfit:
    """How far the factors' dimensions miss the data's."""

    dimensions: float
    difference: str = ""  # in which way, as a phrase; "" where they fit


@dataclass(frozen=True)
class Dimensions:
    """Dimensions of the data, and of the blocks of functions that were found."""

    data: float  # as the kernel's bandwidth curve has it
    found: int  # directions that the gradients of the blocks span together
    missing: bool  # whether the blocks lack a dimension that is not noise

    def misfit(self, of_factors: int, limit: float) -> Misfit:
        """Return how far the dimensions of all factors together miss the data's.

        A surplus of dimensions up to `limit` is not reported.
        """
        surplus = of_factors - self.data
        if surplus > limit:
            return Misfit(surplus, MORE)
        if self.missing:
            return Misfit(self.data - self.found, FEWER)
        # Dimensions that only noise fills are not missing.
        return Misfit(max(0.0, surplus))


@dataclass(frozen=True)
class Trial:
    """Looks with all blocks refined, not accepted yet."""

    looks: tuple[Look, ...]  # without blocks where refining left one of them empty
    # `product_share` of all samples, its noise taken off; 0 where they have no blocks
    product_share: float

    @property
    def empty(self) -> bool:
        """Whether refining left no pure functions of some factor in all samples."""
        return not self.looks[0].blocks


@dataclass(frozen=True)
class State:
    """What was accepted so far."""

    looks: tuple[Look, ...]
    splits: tuple[Split, ...] = ()
    # The result without merged blocks, None while no blocks were merged
    before_merging: Peeling | None = None

    @property
    def n_factors(self) -> int:
        """Number of blocks."""
        return len(self.looks[0].blocks)

    @property
    def merged(self) -> bool:
        """Whether two blocks were taken as one."""
        return self.before_merging is not None

    def accept(self, trial: Trial, split: Split) -> "State":
        """Return the state with the blocks of a trial; halves without any drop out."""
        whole, *halves = trial.looks
        halves = [half for half in halves if half.blocks]
        looks = (whole, *halves)
        splits = (*self.splits, split)
        return replace(self, looks=looks, splits=splits)

    def merge(self, trial: Trial, split: Split, *, refused: Refusal) -> "State":
        """Return the state with merged blocks, after unmerged ones were refused."""
        accepted = self.accept(trial, split)
        return replace(accepted, before_merging=self.stop(refused))

    def stop(self, refused: Refusal | None = None) -> Peeling:
        """Return the result, given what was refused, if anything.

        A merged block beside which no factor was found is all of the data: then the merging did not
        help, and the result is the one without.
        """
        if self.before_merging is not None and self.n_factors == 1:
            return self.before_merging
        return Peeling(self.looks, self.splits, refused)


def peel(looks: Sequence[Look], *, at_least: int = 1, rng: np.random.Generator) -> Peeling:
    """Find blocks of pure functions of all samples and of their halves.

    The step is repeated until no function is left, or until the products of what is left with what
    was found are not eigenfunctions. Then the two blocks that do not go together are merged, once,
    and a further factor is looked for beside them: two motions that are coupled with each other,
    but not with the rest, are one factor of two dimensions.
    """
    state = State(tuple(looks))
    while state.n_factors < MAX_FACTORS:
        proposal = propose(state.looks, rng=rng)
        if proposal is None:
            break
        proposal, trial = _judge(state, proposal, at_least)
        if trial.empty:
            break
        accepted = state.accept(trial, proposal.split)
        if state.n_factors < at_least or _passes(trial):
            state = accepted
            continue
        refused = Refusal(trial.product_share, accepted.stop())
        # Merged once only: repeated, that would end with all of the data as one block.
        if state.merged:
            return state.stop(refused)
        trial = _merge_worst_pair(trial)
        if not _passes(trial):
            return state.stop(refused)
        state = state.merge(trial, proposal.split, refused=refused)
    return state.stop()


def _judge(state: State, proposal: Proposal, at_least: int) -> tuple[Proposal, Trial]:
    """Try the proposed blocks, or their union where their products do not pass.

    The union is not tried where `at_least` asks for the blocks.
    """
    trial = _try(proposal.looks, proposal.blocks, state.merged)
    divided = proposal.split.n_blocks > 1
    union_suffices = state.n_factors + 1 >= at_least
    if _passes(trial) or not (divided and union_suffices):
        return proposal, trial
    union = proposal.undivided()
    trial = _try(union.looks, union.blocks, state.merged)
    return union, trial


def _passes(trial: Trial) -> bool:
    return trial.product_share >= MIN_PRODUCT_SHARE


def _try(looks: Sequence[Look], new: Sequence[Sequence[np.ndarray]], unions: bool) -> Trial:
    """Add new blocks to each look, refine all blocks, and measure their products."""

    def refined(look: Look, new: Sequence[np.ndarray]) -> Look:
        return replace(look, blocks=refine(look.geometry, (*look.blocks, *new), unions=unions))

    whole, *halves = map_threads(refined, looks, new)
    share, *in_halves = [
        product_share(look.geometry, look.blocks)
        for look in (whole, *(half for half in halves if half.blocks))
    ]
    noise = min(float(deficit_in_halves(share, in_halves)), MAX_SHARE_NOISE)
    return Trial((whole, *halves), min(1.0, share + noise))


def _merge_worst_pair(trial: Trial) -> Trial:
    """Try the same looks with those two blocks as one that make the poorest product."""
    whole = trial.looks[0]
    pairs = list(combinations(range(len(whole.blocks)), 2))
    shares = [product_share(whole.geometry, [whole.blocks[a], whole.blocks[b]]) for a, b in pairs]
    worst = pairs[int(np.argmin(shares))]
    merged = [_merged(look.blocks, worst) for look in trial.looks]
    bare = [replace(look, blocks=()) for look in trial.looks]
    return _try(bare, merged, unions=True)


def _merged(blocks: Sequence[np.ndarray], pair: tuple[int, int]) -> list[np.ndarray]:
    """Return the blocks with two of them as one, the last; none if there are none."""
    if not blocks:
        return []
    others = [block for i, block in enumerate(blocks) if i not in pair]
    union = np.hstack([blocks[i] for i in pair])
    return [*others, union]
