"""Energy of the functions along the gradients of a block of them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from manifactor.factoring.gradients.geometry import Geometry


def energy_along(geometry: Geometry, block: np.ndarray) -> np.ndarray:
    """Compute the energy of all functions along the gradients of a block.

    The block's gradients span its directions at every row; the matrix is the mean inner product of
    the functions' gradients after projection on them. It is the factor's own Laplacian if the block
    is pure.

    Shapes: block (n_functions - 1, r) -> (n_functions - 1, n_functions - 1).
    """
    key = block.tobytes()
    if key not in geometry.measured:
        geometry.measured[key] = _energy_along(geometry, block)
    return geometry.measured[key]


def _energy_along(geometry: Geometry, block: np.ndarray) -> np.ndarray:
    strength, axes = _directions(geometry, block)
    weak = geometry.settings.vanishing_strength * strength.mean()
    trust = np.sqrt(strength / (strength + weak))
    trusted = axes * trust[:, None]
    along = trusted.transpose(0, 2, 1) @ geometry.gradients
    along *= np.sqrt(geometry.row_weights)[:, None, None]
    along = along.reshape(-1, along.shape[2])
    return along.T @ along


def count_directions(geometry: Geometry, block: np.ndarray) -> int:
    """Return how many directions a block's gradients span: the factor's dimension."""
    strength, _ = _directions(geometry, block)
    return strength.shape[1]


def _directions(geometry: Geometry, block: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return what the block's gradients span at every row.

    Returns strength (n_rows, d), axes (n_rows, n_coordinates, d).
    """
    # Every function of the block counts the same, whatever its eigenvalue.
    scaled = block / np.sqrt(geometry.rayleigh(block))
    spanned = geometry.gradients @ scaled
    outer = spanned @ spanned.transpose(0, 2, 1)
    averaged = geometry.average @ outer.reshape(len(outer), -1)
    strength, axes = np.linalg.eigh(averaged.reshape(outer.shape))
    mean = strength.mean(axis=0)
    strong = mean > geometry.settings.min_direction_share * mean.sum()
    count = max(1, int(strong.sum()))
    strongest = np.maximum(strength[:, -count:], 0)
    return strongest, axes[:, :, -count:]


# Products of functions of different factors: are they eigenfunctions?


@dataclass(frozen=True)
class ProductSettings:
    """Settings of `product_share`, and of the limit that peeling sets to it."""

    # Distance from the sum of the eigenvalues within which a product counts, as a share of the sum.
    window: float = 0.2
    # Least share of the product of two functions there, its noise taken off: 0.97 and more on
    # products, 0.7 and less on irreducible shapes.
    min_share: float = 0.7
    # Most that is added to a share for its noise, so that poor halves cannot excuse any product.
    max_noise: float = 0.15


def product_share(
    geometry: Geometry,
    blocks: Sequence[np.ndarray],
    *,
    settings: ProductSettings = ProductSettings(),
) -> float:
    """Return how far products of the factors' lowest functions are eigenfunctions.

    On a product manifold the product of functions of two factors is an eigenfunction whose
    eigenvalue is the sum of theirs. The smallest share, over pairs of factors, of the product of
    their lowest functions near that sum is returned: 1 for a single block, 0 for none.
    """
    if not blocks:
        return 0.0
    # The lowest function of a block is the most accurate, and its products are the first to lie
    # inside the spectrum.
    lowest = np.column_stack([block[:, 0] for block in blocks])
    a, b = np.triu_indices(len(blocks), 1)
    own = geometry.rayleigh(lowest)
    total = own[a] + own[b]
    coefficients, _ = geometry.products(lowest[:, a], lowest[:, b])
    found = coefficients[1:] ** 2
    distance = np.abs(geometry.eigenvalues[:, None] - total)
    near = distance < settings.window * total
    found_near = (found * near).sum(axis=0)
    shares = found_near / found.sum(axis=0)
    return float(shares.min(initial=1.0))


# Pure functions: those without energy along the blocks of other factors.


@dataclass(frozen=True)
class PuritySettings:
    """Settings of `without_energy`, `refine` and `batch_size`.

    An impurity is energy along other blocks in quanta, a leak is the same energy as a share of the
    function's own.
    """

    # A product of two functions has at least twice the lowest eigenvalue, so what lies below that
    # is no product; 1.9 leaves room for the error of an eigenvalue.
    batch_ratio: float = 1.9
    # Energy along other blocks counts this many times on top of the Laplacian: large enough to lift
    # whatever varies along them above the pure functions.
    energy_penalty: float = 10.0
    # Quanta of energy along other blocks that polishing can still remove; a function with more is
    # not worth polishing.
    max_impurity_before_polish: float = 4.0
    # Lowest functions that are polished; each costs the solution of a linear system.
    n_candidates: int = 48
    # Polishing weighs the energy along other blocks against the squared distance in log eigenvalue:
    # the latter holds an eigenfunction together. It is capped, for far functions are equally
    # foreign however far they are.
    distance_weight: float = 0.5
    max_distance: float = 2.0
    # Keeps the system of polishing regular at the function's own eigenvalue, where both terms
    # vanish.
    polish_ridge: float = 0.01
    # Energy along a factor is 0 or at least the factor's lowest eigenvalue, one quantum; purity
    # ends half way. 1/4 loses 1:10 strips, whose noise alone is 0.2.
    max_impurity: float = 0.5
    # A function is kept if its leak is at most this many times that of the cleanest of the lowest
    # `n_reference`, plus the floor, without which a function that is clean by chance would shut out
    # all others.
    leak_ratio: float = 4.0
    leak_floor: float = 0.01
    n_reference: int = 3
    # A function with half of itself in the span of cleaner ones adds nothing new.
    max_overlap: float = 0.5
    # Functions kept of each factor; higher ones crowd and get polluted.
    max_functions: int = 16
    # Times that every block is recomputed from the others. With more passes the blocks drift.
    n_passes: int = 2
    # Least share of a function's energy along the lowest functions of its own factor.
    min_own_energy: float = 0.75
    # The lowest functions point nowhere at their extremes; in the second round more functions are
    # there to say which way the factor points.
    n_own_rounds: int = 2


def batch_size(eigenvalues: np.ndarray, *, settings: PuritySettings = PuritySettings()) -> int:
    """Return how many of the lowest functions are surely no products.

    These are the functions before the widest gap below twice the lowest eigenvalue.

    >>> batch_size(np.array([1.0, 1.01, 2.0, 4.0]))
    2

    Shapes: eigenvalues (r,).
    """
    if not len(eigenvalues):
        return 0
    limit = settings.batch_ratio * eigenvalues[:1]
    low = int((eigenvalues <= limit).sum())
    if low == len(eigenvalues):
        return low
    gaps = eigenvalues[1 : low + 1] / eigenvalues[:low]
    return int(np.argmax(gaps)) + 1


def without_energy(
    geometry: Geometry, blocks: Sequence[np.ndarray], *, settings: PuritySettings = PuritySettings()
) -> np.ndarray:
    """Compute the lowest functions without energy along any of the blocks.

    They are the lowest eigenfunctions of the Laplacian with a penalty on that energy, polished.
    Energy along a factor is quantised, 0 or at least the factor's lowest eigenvalue, so half of
    that tells pure functions from others whatever the sizes of the factors.

    Shapes: blocks (n_functions - 1, r) -> (n_functions - 1, r).
    """
    if not blocks:
        return np.eye(len(geometry.eigenvalues))
    energies = BlockEnergies.of(geometry, blocks)
    candidates = _penalised(geometry, energies, settings)
    polished = polish(geometry, candidates, energies.total, settings=settings)
    pure = energies.impurity(polished) < settings.max_impurity
    return _distinct(geometry, polished[:, pure], energies.total, settings)


@dataclass(frozen=True)
class BlockEnergies:
    """Energy along each of several blocks of functions."""

    # (n_blocks, n_functions - 1, n_functions - 1): quadratic forms, as `energy_along` gives them
    energies: np.ndarray
    # (n_blocks,): lowest eigenvalue of each block: the least energy along it that is not 0
    quanta: np.ndarray

    @classmethod
    def of(cls, geometry: Geometry, blocks: Sequence[np.ndarray]) -> "BlockEnergies":
        """Measure the energies along the blocks."""
        energies = [energy_along(geometry, block) for block in blocks]
        quanta = [geometry.rayleigh(block).min() for block in blocks]
        return cls(np.array(energies), np.array(quanta))

    @property
    def total(self) -> np.ndarray:
        """Energy along all blocks together."""
        return self.energies.sum(axis=0)

    def impurity(self, functions: np.ndarray) -> np.ndarray:
        """Return the energy of each function along the blocks in their quanta, (r,).

        A mixture of functions of two blocks counts as one quantum.
        """
        in_quanta = [
            _values(functions, energy) / quantum
            for energy, quantum in zip(self.energies, self.quanta, strict=True)
        ]
        return np.sum(in_quanta, axis=0)


def _values(functions: np.ndarray, form: np.ndarray) -> np.ndarray:
    """Return the value of a quadratic form at each function, (r,)."""
    return (functions * (form @ functions)).sum(axis=0)


def _penalised(geometry: Geometry, energies: BlockEnergies, settings: PuritySettings) -> np.ndarray:
    """Return the lowest functions of Laplacian and penalty that may become pure."""
    penalty = settings.energy_penalty * energies.total
    laplacian = np.diag(geometry.eigenvalues)
    _, functions = np.linalg.eigh(laplacian + penalty)
    hopeful = energies.impurity(functions) < settings.max_impurity_before_polish
    functions = functions[:, hopeful]
    functions = functions[:, geometry.rayleigh(functions) < geometry.resolution]
    ascending = np.argsort(geometry.rayleigh(functions))
    return functions[:, ascending][:, : settings.n_candidates]


def polish(
    geometry: Geometry,
    functions: np.ndarray,
    energy: np.ndarray,
    *,
    settings: PuritySettings = PuritySettings(),
) -> np.ndarray:
    """Return functions that are closer to eigenfunctions free of `energy`.

    One step of inverse iteration for each function, with an operator that is small where the energy
    is, and where eigenvalues are near the function's own.

    Shapes: functions (n_functions - 1, r), energy (n_functions - 1, n_functions - 1) ->
    (n_functions - 1, r).
    """
    eigenvalues = geometry.rayleigh(functions)
    distance = np.log(geometry.eigenvalues / eigenvalues[:, None]) ** 2
    capped = np.minimum(distance, settings.max_distance)
    diagonal = settings.distance_weight * capped + settings.polish_ridge
    operator = energy / eigenvalues[:, None, None]
    i = np.arange(len(energy))
    operator[:, i, i] += diagonal
    columns = functions.T[..., None]
    polished = np.linalg.solve(operator, columns)[..., 0].T
    return polished / np.linalg.norm(polished, axis=0)


def _distinct(
    geometry: Geometry, functions: np.ndarray, energy: np.ndarray, settings: PuritySettings
) -> np.ndarray:
    """Return the functions about as clean as the cleanest, each only once."""
    if not functions.shape[1]:
        return functions
    leak = _values(functions, energy) / geometry.rayleigh(functions)
    cleanest = leak[: settings.n_reference].min()
    clean = leak < settings.leak_ratio * cleanest + settings.leak_floor
    functions, leak = functions[:, clean], leak[clean]
    kept: list[int] = []
    span = functions[:, :0]
    for j in np.argsort(leak):
        overlap = ((span.T @ functions[:, j]) ** 2).sum()
        if overlap < settings.max_overlap:
            kept.append(int(j))
            span = np.linalg.qr(functions[:, kept])[0]
    functions = functions[:, kept]
    ascending = np.argsort(geometry.rayleigh(functions))
    return functions[:, ascending[: settings.max_functions]]


def one_factor(
    geometry: Geometry, functions: np.ndarray, *, settings: PuritySettings = PuritySettings()
) -> np.ndarray:
    """Return those of the functions that point where the lowest ones point.

    The others belong to a factor that was not found yet.

    Shapes: functions (n_functions - 1, r).
    """
    eigenvalues = geometry.rayleigh(functions)
    lowest = batch_size(eigenvalues, settings=settings)
    low = np.arange(len(eigenvalues)) < lowest
    own = low
    for _ in range(settings.n_own_rounds):
        before = own
        energy = energy_along(geometry, functions[:, own])
        share = _values(functions, energy) / eigenvalues
        own = low | (share > settings.min_own_energy)
        if (own == before).all():
            break
    return functions[:, own]


def refine(
    geometry: Geometry,
    blocks: Sequence[np.ndarray],
    *,
    unions: bool = False,
    settings: PuritySettings = PuritySettings(),
) -> tuple[np.ndarray, ...]:
    """Compute every block anew, as the functions without energy along all others.

    Shapes: blocks (n_functions - 1, r) -> (n_functions - 1, r).
    """
    if len(blocks) < 2:
        return tuple(blocks)
    refined = list(blocks)
    # The lowest functions are the most accurate: their factor is cleaned first, and the others are
    # computed from it.
    lowest = [geometry.rayleigh(block).min() for block in blocks]
    order = np.argsort(lowest)
    for _ in range(settings.n_passes):
        for f in order:
            others = [block for g, block in enumerate(refined) if g != f]
            refined[f] = without_energy(geometry, others, settings=settings)
            if not refined[f].shape[1]:
                return ()
        if not unions:
            refined = [one_factor(geometry, block, settings=settings) for block in refined]
    return tuple(refined)


def impurity(geometry: Geometry, blocks: Sequence[np.ndarray]) -> float:
    """Return the largest impurity of a block's lowest function.

    That is its energy along other blocks in units of their lowest eigenvalues: 0 on a product, 1/4
    where going around one factor once turns the other over, as on a Moebius band.
    """
    energies = BlockEnergies.of(geometry, blocks)
    impurities = []
    for f, block in enumerate(blocks):
        others = np.arange(len(blocks)) != f
        along = BlockEnergies(energies.energies[others], energies.quanta[others])
        (lowest,) = along.impurity(block[:, :1])
        impurities.append(lowest)
    return float(max(impurities))
