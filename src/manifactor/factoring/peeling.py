"""Pure functions: blocks of functions of one factor each, found by peeling off factor after factor."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from manifactor._support.threads import at_once
from manifactor.factoring.gradients import (
    Geometry,
    commutant,
    cosines,
    energy_along,
    normalised,
)

MAX_FACTORS = 6
PENALTY = 10.0  # on energy along the other blocks, in units of the function's own
HOPEFUL = 4.0  # quanta of energy along the other blocks that polishing may yet remove
CANDIDATES = 48  # lowest functions that are polished
SPREAD = 2.0  # most that a squared distance in log eigenvalue counts in polishing
FIRM = 0.01  # what keeps a function in place in polishing
CLEAN, CLEAN_FLOOR = (
    4.0,
    0.01,
)  # leak, times the cleanest and absolute, up to which functions are as clean as others
IMPURE = 0.5  # energy along another factor is 0 or at least its lowest eigenvalue: half way is where purity ends
BATCH = 1.9  # times the lowest eigenvalue; a product has at least twice
MOST = 16  # functions kept of each factor
PASSES = 2  # more of them drift
OWN = 0.75  # least share of a function's energy along the lowest functions of its own factor
ALIKE = (
    0.5  # share of a function in the span of others from which on it says nothing new
)
DRAWS, LOOKED_AT = (
    30,
    5,
)  # random elements of the commutant's kernel, and how many of the clearest are tried
DIVIDED = (
    0.45  # largest q, its noise taken off, of a division; 1 is structureless, 0 exact
)
ORTHOGONAL = 0.12  # largest squared cosine between blocks, its noise taken off
CAPTURED = 0.9  # least share of the products of functions inside the spectrum that their carre du champ needs
MOST_NOISE = 0.15  # that is taken off a share or a squared cosine
ACCEPTED = (
    0.7  # least share of the product of two functions near the sum of their eigenvalues
)
WIDTH = 0.2  # how near


@dataclass(frozen=True)
class Look:
    """The blocks of pure functions that a part of the samples shows.

    Attributes
    ----------
    part : ndarray of int
        The samples.
    geometry : Geometry
    blocks : tuple of ndarray of shape (n_functions, r)
        Unit columns of coefficients, ascending eigenvalue; one block for each factor.
    """

    part: np.ndarray
    geometry: Geometry
    blocks: tuple[np.ndarray, ...] = ()


@dataclass(frozen=True)
class Split:
    """How a batch of functions, pure up to a rotation, fell into blocks.

    Attributes
    ----------
    n_blocks : int
    q : ndarray of shape (n_functions - 1,)
        The commutant's lowest values beyond the identity's 0; near 0 as often as there are further blocks.
    noise : ndarray of shape (n_functions - 1,)
        How much of them is noise: what half of the samples adds.
    """

    n_blocks: int
    q: np.ndarray
    noise: np.ndarray


@dataclass(frozen=True)
class Peeling:
    """What was found, and how.

    Attributes
    ----------
    looks : tuple of Look
        All samples first, then the halves that showed as many functions at every step.
    splits : tuple of Split
        One for each step.
    refused : float or None
        Product share of a further factor that was not believed, None if nothing was left to find.
    """

    looks: tuple[Look, ...]
    splits: tuple[Split, ...]
    refused: float | None


def peel(
    looks: Sequence[Look], *, at_least: int = 1, rng: np.random.Generator
) -> Peeling:
    """Blocks of pure functions of all samples, and of their halves, which tell noise from structure.

    Functions below twice the lowest eigenvalue are no products, hence pure up to a rotation; the commutant divides
    them into blocks. What has no energy along any block belongs to further factors, and its lowest functions are again
    pure: the same step is taken until nothing is left, or until the products of what is left with what was found are
    no eigenfunctions. Then the two blocks that do not go together are taken as one, once, and a further factor is
    looked for beside them. `at_least` factors are taken whatever their products look like.
    """
    splits: list[Split] = []
    refused: Peeling | None = None
    while len(looks[0].blocks) < MAX_FACTORS:
        rests = at_once(lambda look: without_energy(look.geometry, look.blocks), looks)
        size = batch_size(looks[0].geometry.rayleigh(rests[0]))
        if not size:
            break
        following = [
            look
            for look, rest in zip(looks, rests, strict=True)
            if rest.shape[1] >= size
        ]
        batches = [rest[:, :size] for rest in rests if rest.shape[1] >= size]
        found, split = divide([look.geometry for look in following], batches, rng=rng)
        joined = refused is not None
        trial, share = _try(following, found, joined=joined)
        enough = len(looks[0].blocks) + 1 >= at_least
        if (
            share < ACCEPTED and split.n_blocks > 1 and enough
        ):  # not these blocks, but perhaps their union
            split = replace(split, n_blocks=1)
            trial, share = _try(
                following, [[batch] for batch in batches], joined=joined
            )
        if not trial[0].blocks:
            break
        if share < ACCEPTED and len(looks[0].blocks) >= at_least:
            if refused is not None and len(looks[0].blocks) > 1:
                return Peeling(tuple(looks), tuple(splits), share)
            if refused is not None:
                break
            refused = Peeling(tuple(looks), tuple(splits), share)
            trial, share = _try(
                [replace(look, blocks=()) for look in trial], _join(trial), joined=True
            )
            if share < ACCEPTED:
                return refused
        looks, splits = (
            [trial[0], *(look for look in trial[1:] if look.blocks)],
            [*splits, split],
        )
    if refused is not None and len(looks[0].blocks) == 1:
        return refused
    return Peeling(tuple(looks), tuple(splits), None)


def _join(looks: Sequence[Look]) -> list[list[np.ndarray]]:
    """The blocks of each look with those two taken as one that make the poorest products in the first."""
    count = len(looks[0].blocks)
    pairs = list(combinations(range(count), 2))
    shares = [
        product_share(looks[0].geometry, [looks[0].blocks[a], looks[0].blocks[b]])
        for a, b in pairs
    ]
    pair = pairs[int(np.argmin(shares))]
    return [
        [
            *(block for i, block in enumerate(look.blocks) if i not in pair),
            *([np.hstack([look.blocks[i] for i in pair])] if look.blocks else []),
        ]
        for look in looks
    ]


def _try(
    looks: Sequence[Look], found: Sequence[Sequence[np.ndarray]], *, joined: bool
) -> tuple[list[Look], float]:
    """Looks with what was newly found in each, all blocks refined, and their product share with the noise taken off."""

    def refined(look: Look, new: Sequence[np.ndarray]) -> Look:
        return replace(
            look, blocks=refine(look.geometry, (*look.blocks, *new), joined=joined)
        )

    trial = at_once(refined, looks, found)
    share, *in_halves = (
        product_share(look.geometry, look.blocks)
        for look in trial
        if look.blocks or look is trial[0]
    )
    noise = float(_noise(-share, [-half for half in in_halves]))
    return trial, min(1.0, share + min(noise, MOST_NOISE))


def batch_size(eigenvalues: np.ndarray) -> int:
    """How many of the lowest functions are surely no products: those before the widest gap below twice the lowest."""
    low = int((eigenvalues <= BATCH * eigenvalues[:1]).sum()) if len(eigenvalues) else 0
    if low == len(eigenvalues):
        return low
    return int(np.argmax(eigenvalues[1 : low + 1] / eigenvalues[:low])) + 1


def without_energy(geometry: Geometry, blocks: Sequence[np.ndarray]) -> np.ndarray:
    """Lowest functions without energy along any of the blocks, (n_functions, r) unit columns, ascending eigenvalue.

    They are the lowest eigenfunctions of the Laplacian with a penalty on that energy, polished. Energy along a factor
    is quantised, 0 or at least the factor's lowest eigenvalue, so half of that tells pure functions from others
    whatever the sizes of the factors.
    """
    if not blocks:
        return np.eye(len(geometry.eigenvalues))
    energies = np.array([energy_along(geometry, block) for block in blocks])
    quanta = np.array([geometry.rayleigh(block).min() for block in blocks])
    total = energies.sum(axis=0)
    functions = np.linalg.eigh(np.diag(geometry.eigenvalues) + PENALTY * total)[1]
    functions = functions[:, _impurity(functions, energies, quanta) < HOPEFUL]
    functions = functions[:, geometry.rayleigh(functions) < geometry.resolution]
    functions = functions[:, np.argsort(geometry.rayleigh(functions))][:, :CANDIDATES]
    functions = polish(geometry, functions, total)
    pure = _impurity(functions, energies, quanta) < IMPURE
    return _distinct(geometry, functions[:, pure], total)


def _impurity(
    functions: np.ndarray, energies: np.ndarray, quanta: np.ndarray
) -> np.ndarray:
    """Energy of each function along the blocks, in units of their quanta: a mixture of two blocks counts as one."""
    return np.sum(
        [
            _energy(functions, energy) / quantum
            for energy, quantum in zip(energies, quanta, strict=True)
        ],
        axis=0,
    )


def _energy(functions: np.ndarray, energy: np.ndarray) -> np.ndarray:
    """Value of a quadratic form at each function, (r,)."""
    return (functions * (energy @ functions)).sum(axis=0)


def polish(geometry: Geometry, functions: np.ndarray, energy: np.ndarray) -> np.ndarray:
    """Functions closer to being free of `energy` and eigenfunctions at once: a step of inverse iteration."""
    eigenvalues = geometry.rayleigh(functions)
    distance = np.log(geometry.eigenvalues / eigenvalues[:, None]) ** 2
    operator = energy / eigenvalues[:, None, None]
    operator[:, np.arange(len(energy)), np.arange(len(energy))] += (
        0.5 * np.minimum(distance, SPREAD) + FIRM
    )
    polished = np.linalg.solve(operator, functions.T[..., None])[..., 0].T
    return polished / np.linalg.norm(polished, axis=0)


def _distinct(
    geometry: Geometry, functions: np.ndarray, energy: np.ndarray
) -> np.ndarray:
    """Functions about as clean as the cleanest, each only once."""
    if not functions.shape[1]:
        return functions
    leak = _energy(functions, energy) / geometry.rayleigh(functions)
    clean = leak < CLEAN * leak[:3].min() + CLEAN_FLOOR
    functions, leak = functions[:, clean], leak[clean]
    kept, span = [], functions[:, :0]
    for j in np.argsort(leak):
        if ((span.T @ functions[:, j]) ** 2).sum() < ALIKE:
            kept.append(int(j))
            span = np.linalg.qr(functions[:, kept])[0]
    functions = functions[:, kept]
    return functions[:, np.argsort(geometry.rayleigh(functions))[:MOST]]


def one_factor(geometry: Geometry, functions: np.ndarray) -> np.ndarray:
    """Those of the functions that point where the lowest ones point; others belong to a factor not yet found."""
    eigenvalues = geometry.rayleigh(functions)
    low = own = np.arange(len(eigenvalues)) < batch_size(eigenvalues)
    for _ in range(
        2
    ):  # the lowest point nowhere at their extremes; the second time there are more to ask
        energy = energy_along(geometry, functions[:, own])
        share = _energy(functions, energy) / eigenvalues
        own = low | (share > OWN)
    return functions[:, own]


def refine(
    geometry: Geometry, blocks: Sequence[np.ndarray], *, joined: bool = False
) -> tuple[np.ndarray, ...]:
    """Every block as the functions without energy along all others, the lowest factor first; none if one is empty.

    Functions that point elsewhere than a block's lowest are left to a factor not yet found, unless blocks were joined.
    """
    refined = list(blocks)
    order = np.argsort([geometry.rayleigh(block).min() for block in blocks])
    for _ in range(PASSES if len(blocks) > 1 else 0):
        for f in order:
            refined[f] = without_energy(
                geometry, [block for g, block in enumerate(refined) if g != f]
            )
            if not refined[f].shape[1]:
                return ()
        refined = (
            refined if joined else [one_factor(geometry, block) for block in refined]
        )
    return tuple(refined)


def divide(
    geometries: Sequence[Geometry],
    batches: Sequence[np.ndarray],
    *,
    rng: np.random.Generator,
) -> tuple[list[list[np.ndarray]], Split]:
    """Blocks of orthogonal gradients in a batch of functions, alike in all geometries; the first decides.

    A value of the commutant is near zero if it is so after its noise is taken off. Noise doubles in a half of the
    samples, so what a half adds is the noise of the whole.
    """
    r = batches[0].shape[1]
    if r == 1:
        return [[batch] for batch in batches], Split(1, np.empty(0), np.empty(0))
    champs = [
        normalised(_champ(g, batch), g.row_weights)
        for g, batch in zip(geometries, batches, strict=True)
    ]
    weights = [g.row_weights for g in geometries]
    kernels = [commutant(champ, w) for champ, w in zip(champs, weights, strict=True)]
    q = kernels[0][0][1:r]
    noise = _noise(q, [values[1:r] for values, _ in kernels[1:]])
    for count in range(
        min(int((q - noise < DIVIDED).cumprod().sum()) + 1, MAX_FACTORS), 1, -1
    ):
        few = [elements[:count] for _, elements in kernels]
        turned = at_once(_block_basis, few, champs, weights, rng.spawn(len(few)))
        cosine = [
            cosines(basis.T @ champ @ basis, w, labels)
            for (basis, labels), champ, w in zip(turned, champs, weights, strict=True)
        ]
        if (
            cosine[0] - min(float(_noise(cosine[0], cosine[1:])), MOST_NOISE)
            < ORTHOGONAL
        ):
            blocks = [
                [_unit(batch @ basis[:, labels == b]) for b in range(count)]
                for batch, (basis, labels) in zip(batches, turned, strict=True)
            ]
            return blocks, Split(count, q, noise)
    return [[batch] for batch in batches], Split(1, q, noise)


def _champ(geometry: Geometry, batch: np.ndarray) -> np.ndarray:
    """Inner products of gradients, from the spectrum if it reaches to the products, else from local regression."""
    if geometry.captured(batch) > CAPTURED:
        return geometry.champ(batch)
    gradients = geometry.gradients @ batch
    return gradients.transpose(0, 2, 1) @ gradients


def _noise(value, in_halves: Sequence) -> np.ndarray:
    return (
        np.maximum(np.mean(in_halves, axis=0) - value, 0)
        if len(in_halves)
        else np.zeros_like(value)
    )


def _unit(functions: np.ndarray) -> np.ndarray:
    return functions / np.linalg.norm(functions, axis=0)


def _block_basis(
    elements: np.ndarray,
    champ: np.ndarray,
    weights: np.ndarray,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """The basis in which elements of the commutant's kernel are diagonal, and which block each function belongs to.

    A random element has one eigenvalue for each block; of many the clearest are tried, and of those the basis with the
    most orthogonal blocks wins.
    """
    count = len(elements)
    draws = []
    for _ in range(DRAWS):
        values, basis = np.linalg.eigh(
            np.einsum("q,qab->ab", rng.normal(size=count), elements)
        )
        cuts = np.sort(np.argsort(-np.diff(values))[: count - 1])
        clearness = np.diff(values)[cuts].min() / (values[-1] - values[0])
        draws.append(
            (
                clearness,
                basis,
                np.searchsorted(cuts, np.arange(len(values)), side="left"),
            )
        )
    clearest = sorted(draws, key=lambda draw: -draw[0])[:LOOKED_AT]
    _, basis, labels = min(
        clearest,
        key=lambda draw: cosines(draw[1].T @ champ @ draw[1], weights, draw[2]),
    )
    return basis, labels


def product_share(geometry: Geometry, blocks: Sequence[np.ndarray]) -> float:
    """Smallest share, over pairs of factors, of the product of their lowest functions near the sum of the eigenvalues.

    On a product manifold the product is an eigenfunction of just that eigenvalue. 1 for a single block, 0 for none.
    """
    if not blocks:
        return 0.0
    lowest = np.column_stack([block[:, 0] for block in blocks])
    a, b = np.triu_indices(len(blocks), 1)
    own = geometry.rayleigh(lowest)
    total = own[a] + own[b]
    found = geometry.products(lowest[:, a], lowest[:, b])[0][1:] ** 2
    near = np.abs(geometry.eigenvalues[:, None] - total) < WIDTH * total
    return float(((found * near).sum(axis=0) / found.sum(axis=0)).min(initial=1.0))


def impurity(geometry: Geometry, blocks: Sequence[np.ndarray]) -> float:
    """Largest energy of a block's lowest function along another block, in units of the other's lowest eigenvalue.

    0 on a product; 1/4 where going around one factor once turns the other over, as on a Moebius band.
    """
    energies = np.array([energy_along(geometry, block) for block in blocks])
    quanta = np.array([geometry.rayleigh(block).min() for block in blocks])
    others = [np.arange(len(blocks)) != f for f in range(len(blocks))]
    return float(
        max(
            _impurity(block[:, :1], energies[o], quanta[o])[0]
            for block, o in zip(blocks, others, strict=True)
        )
    )
