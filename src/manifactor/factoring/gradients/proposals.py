"""Proposals: blocks that may belong to factors not found yet."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from manifactor._support.threads import map_threads
from manifactor.factoring.gradients.division import DivisionSettings, Split, divide
from manifactor.factoring.gradients.geometry import Geometry
from manifactor.factoring.gradients.purity import PuritySettings, batch_size, without_energy


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
