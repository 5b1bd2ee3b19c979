"""Proposals: blocks that may belong to factors not found yet."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np

from manifactor._support.threads import map_threads
from manifactor.factoring.gradients.division import (
    DivisionSettings,
    Split,
    deficit_in_halves,
    divide,
)
from manifactor.factoring.gradients.geometry import Geometry
from manifactor.factoring.gradients.purity import (
    ProductSettings,
    PuritySettings,
    batch_size,
    product_share,
    refine,
    without_energy,
)


@dataclass(frozen=True)
class Look:
    """The blocks of pure functions that a part of the samples shows."""

    part: np.ndarray  # the samples
    geometry: Geometry
    # (n_functions, r): unit columns of coefficients, ascending eigenvalue; one block for each
    # factor
    blocks: tuple[np.ndarray, ...] = ()


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


def propose(
    looks: Sequence[Look],
    *,
    max_blocks: int,
    purity: PuritySettings = PuritySettings(),
    division: DivisionSettings = DivisionSettings(),
    rng: np.random.Generator,
) -> Proposal | None:
    """Divide the lowest functions without energy along the blocks found into blocks."""

    def rest_of(look: Look) -> np.ndarray:
        return without_energy(look.geometry, look.blocks, settings=purity)

    rests = map_threads(rest_of, looks)
    eigenvalues = looks[0].geometry.rayleigh(rests[0])
    size = batch_size(eigenvalues, settings=purity)
    if size == 0:
        return None
    pairs = zip(looks, rests, strict=True)
    shown = [(look, rest[:, :size]) for look, rest in pairs if rest.shape[1] >= size]
    batches = [batch for _, batch in shown]
    blocks, split = divide(
        [look.geometry for look, _ in shown],
        batches,
        max_blocks=max_blocks,
        settings=division,
        rng=rng,
    )
    return Proposal(tuple(look for look, _ in shown), batches, blocks, split)


# Peeling: blocks of pure functions, found factor after factor.
#
# Functions below twice the lowest eigenvalue are no products, hence pure up to a rotation, and
# divide into blocks of orthogonal gradients. What has no energy along any block belongs to further
# factors, and its lowest functions are again pure. `peel` repeats this step: propose new blocks,
# judge them by their products with the others, then accept them, merge two blocks, or stop.


@dataclass(frozen=True)
class PeelingSettings:
    """Settings of `peel`."""

    # The number of functions below an eigenvalue grows as a power of the dimension (Weyl), so that
    # a few hundred functions do not show more factors than this.
    max_factors: int = 6
    products: ProductSettings = field(default_factory=ProductSettings)
    purity: PuritySettings = field(default_factory=PuritySettings)
    division: DivisionSettings = field(default_factory=DivisionSettings)


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
    """Blocks whose products with the others are no eigenfunctions."""

    product_share: float  # of the products of all blocks
    peeling: Peeling  # as if the blocks had been accepted


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


def peel(
    looks: Sequence[Look],
    *,
    at_least: int = 1,
    settings: PeelingSettings = PeelingSettings(),
    rng: np.random.Generator,
) -> Peeling:
    """Find blocks of pure functions of all samples and of their halves.

    The step is repeated until no function is left, or until the products of what is left with what
    was found are no eigenfunctions. Then the two blocks that do not go together are merged, once,
    and a further factor is looked for beside them: two motions that are coupled with each other,
    but not with the rest, are one factor of two dimensions.
    """
    state = State(tuple(looks))
    while state.n_factors < settings.max_factors:
        proposal = propose(
            state.looks,
            max_blocks=settings.max_factors,
            purity=settings.purity,
            division=settings.division,
            rng=rng,
        )
        if proposal is None:
            break
        proposal, trial = _judge(state, proposal, at_least, settings)
        if trial.empty:
            break
        accepted = state.accept(trial, proposal.split)
        if state.n_factors < at_least or _passes(trial, settings):
            state = accepted
            continue
        refused = Refusal(trial.product_share, accepted.stop())
        # Merged once only: repeated, that would end with all of the data as one block.
        if state.merged:
            return state.stop(refused)
        trial = _merge_worst_pair(trial, settings)
        if not _passes(trial, settings):
            return state.stop(refused)
        state = state.merge(trial, proposal.split, refused=refused)
    return state.stop()


def _judge(
    state: State, proposal: Proposal, at_least: int, settings: PeelingSettings
) -> tuple[Proposal, Trial]:
    """Try the proposed blocks, or their union where their products do not pass.

    The union is not tried where `at_least` asks for the blocks.
    """
    trial = _try(proposal.looks, proposal.blocks, state.merged, settings)
    divided = proposal.split.n_blocks > 1
    union_suffices = state.n_factors + 1 >= at_least
    if _passes(trial, settings) or not (divided and union_suffices):
        return proposal, trial
    union = proposal.undivided()
    trial = _try(union.looks, union.blocks, state.merged, settings)
    return union, trial


def _passes(trial: Trial, settings: PeelingSettings) -> bool:
    return trial.product_share >= settings.products.min_share


def _try(
    looks: Sequence[Look],
    new: Sequence[Sequence[np.ndarray]],
    unions: bool,
    settings: PeelingSettings,
) -> Trial:
    """Add new blocks to each look, refine all blocks, and measure their products."""

    def refined(look: Look, new: Sequence[np.ndarray]) -> Look:
        blocks = refine(
            look.geometry, (*look.blocks, *new), unions=unions, settings=settings.purity
        )
        return replace(look, blocks=blocks)

    whole, *halves = map_threads(refined, looks, new)
    share, *in_halves = [
        product_share(look.geometry, look.blocks, settings=settings.products)
        for look in (whole, *(half for half in halves if half.blocks))
    ]
    noise = float(deficit_in_halves(share, in_halves))
    noise = min(noise, settings.products.max_noise)
    return Trial((whole, *halves), min(1.0, share + noise))


def _merge_worst_pair(trial: Trial, settings: PeelingSettings) -> Trial:
    """Try the same looks with those two blocks as one that make the poorest product."""
    whole = trial.looks[0]
    pairs = list(combinations(range(len(whole.blocks)), 2))
    shares = [
        product_share(
            whole.geometry, [whole.blocks[a], whole.blocks[b]], settings=settings.products
        )
        for a, b in pairs
    ]
    worst = pairs[int(np.argmin(shares))]
    merged = [_merged(look.blocks, worst) for look in trial.looks]
    bare = [replace(look, blocks=()) for look in trial.looks]
    return _try(bare, merged, unions=True, settings=settings)


def _merged(blocks: Sequence[np.ndarray], pair: tuple[int, int]) -> list[np.ndarray]:
    """Return the blocks with two of them as one, the last; none if there are none."""
    if not blocks:
        return []
    others = [block for i, block in enumerate(blocks) if i not in pair]
    union = np.hstack([blocks[i] for i in pair])
    return [*others, union]
