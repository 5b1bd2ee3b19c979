"""Energy of functions along blocks of others: what is pure, and what blocks make a product.

Energy along a factor is quantised: 0, or at least the factor's lowest eigenvalue. An impurity is
energy along other blocks in these quanta, a leak is it as a share of the function's own energy.
"""

from collections.abc import Sequence

import numpy as np

from manifactor.operators.geometry import Geometry, batch_size, directions

# The energy along each of several blocks, as `energy_along` gives it, and the block's quantum: its
# lowest eigenvalue, the least energy along it that is not 0.
Energies = list[tuple[np.ndarray, float]]

# Numbers that decide what is found, as a study of sensitivity showed. The numbers inside functions
# change nothing by themselves.

# Share of a direction's mean strength: where the gradients of a block vanish it points nowhere, and
# energy along it counts less.
VANISHING_STRENGTH = 0.05
# Distance from the sum of the eigenvalues within which a product counts, as a share of the sum.
PRODUCT_WINDOW = 0.2
# Polishing weighs the energy along other blocks against the squared distance in log eigenvalue,
# which holds an eigenfunction together. The ridge keeps its system regular at the function's own
# eigenvalue, where both terms vanish.
DISTANCE_WEIGHT = 0.5
POLISH_RIDGE = 0.01
# Quanta of energy along other blocks that a pure function has at most. 1/4 loses 1:10 strips, whose
# noise alone is 0.2.
MAX_IMPURITY = 0.5
# Least share of a function's energy along the lowest functions of its own factor.
MIN_OWN_ENERGY = 0.75
# Times that every block is recomputed from the others. With more passes the blocks drift.
N_PASSES = 2


def energy_along(geometry: Geometry, block: np.ndarray) -> np.ndarray:
    """Compute the energy of all functions along the gradients of a block.

    The block's gradients span its directions at every row; the matrix is the mean inner product of
    the functions' gradients after projection on them. It is the factor's own Laplacian if the block
    is pure.

    Shapes: block (n_functions - 1, r) -> (n_functions - 1, n_functions - 1).
    """
    key = block.tobytes()
    if key not in geometry.measured:
        strength, axes = directions(geometry, block)
        weak = VANISHING_STRENGTH * strength.mean()
        trust = np.sqrt(strength / (strength + weak))
        trusted = axes * trust[:, None]
        along = trusted.transpose(0, 2, 1) @ geometry.gradients
        along *= np.sqrt(geometry.row_weights)[:, None, None]
        along = along.reshape(-1, along.shape[2])
        geometry.measured[key] = along.T @ along
    return geometry.measured[key]


def product_share(geometry: Geometry, blocks: Sequence[np.ndarray]) -> float:
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
    near = np.abs(geometry.eigenvalues[:, None] - total) < PRODUCT_WINDOW * total
    shares = (found * near).sum(axis=0) / found.sum(axis=0)
    return float(shares.min(initial=1.0))


def without_energy(geometry: Geometry, blocks: Sequence[np.ndarray]) -> np.ndarray:
    """Compute the lowest functions without energy along any of the blocks.

    They are the lowest eigenfunctions of the Laplacian with a penalty on that energy, polished.
    Half a quantum separates pure functions from others for factors of all sizes.

    Shapes: blocks (n_functions - 1, r) -> (n_functions - 1, r).
    """
    if not blocks:
        return np.eye(len(geometry.eigenvalues))
    energies = _energies(geometry, blocks)
    total = np.sum([energy for energy, _ in energies], axis=0)
    polished = polish(geometry, _penalised(geometry, energies, total), total)
    pure = _impurity(energies, polished) < MAX_IMPURITY
    return _distinct(geometry, polished[:, pure], total)


def _energies(geometry: Geometry, blocks: Sequence[np.ndarray]) -> Energies:
    """Measure the energies along blocks."""
    return [(energy_along(geometry, block), geometry.rayleigh(block).min()) for block in blocks]


def _impurity(energies: Energies, functions: np.ndarray) -> np.ndarray:
    """Return the energy of each function along the blocks in their quanta, (r,)."""
    # A mixture of functions of two blocks counts as one quantum.
    return np.sum([_values(functions, energy) / quantum for energy, quantum in energies], axis=0)


def _values(functions: np.ndarray, form: np.ndarray) -> np.ndarray:
    """Return the value of a quadratic form at each function, (r,)."""
    return (functions * (form @ functions)).sum(axis=0)


def _penalised(geometry: Geometry, energies: Energies, total: np.ndarray) -> np.ndarray:
    """Return the lowest functions of Laplacian and penalty that may become pure."""
    # The penalty is large enough to lift all that varies along the blocks above the pure functions.
    penalised = np.diag(geometry.eigenvalues) + 10.0 * total
    functions = np.linalg.eigh(penalised)[1]
    # Polishing can remove up to 4 quanta of energy along other blocks.
    functions = functions[:, _impurity(energies, functions) < 4.0]
    # The kernel resolves eigenvalues up to an exponent of .5 in one step.
    functions = functions[:, geometry.rayleigh(functions) < 0.5 / geometry.spectrum.step]
    ascending = np.argsort(geometry.rayleigh(functions))
    # Polishing solves a linear system for each of them.
    return functions[:, ascending][:, :48]


def polish(geometry: Geometry, functions: np.ndarray, energy: np.ndarray) -> np.ndarray:
    """Return functions that are closer to eigenfunctions free of `energy`.

    One step of inverse iteration for each function, with an operator that is small where the energy
    is, and where eigenvalues are near the function's own.

    Shapes: functions (n_functions - 1, r), energy (n_functions - 1, n_functions - 1) ->
    (n_functions - 1, r).
    """
    eigenvalues = geometry.rayleigh(functions)
    distance = np.log(geometry.eigenvalues / eigenvalues[:, None]) ** 2
    # The distance is capped, for far functions are equally foreign however far they are.
    diagonal = DISTANCE_WEIGHT * np.minimum(distance, 2.0) + POLISH_RIDGE
    operator = energy / eigenvalues[:, None, None]
    i = np.arange(len(energy))
    operator[:, i, i] += diagonal
    polished = np.linalg.solve(operator, functions.T[..., None])[..., 0].T
    return polished / np.linalg.norm(polished, axis=0)


def _distinct(geometry: Geometry, functions: np.ndarray, energy: np.ndarray) -> np.ndarray:
    """Return the functions about as clean as the cleanest, each only once."""
    if not functions.shape[1]:
        return functions
    leak = _values(functions, energy) / geometry.rayleigh(functions)
    # Without the floor, one of the lowest functions that is clean by chance would shut out all
    # others.
    clean = leak < 4.0 * leak[:3].min() + 0.01
    functions, leak = functions[:, clean], leak[clean]
    kept: list[int] = []
    span = functions[:, :0]
    for j in np.argsort(leak):
        overlap = ((span.T @ functions[:, j]) ** 2).sum()
        # A function with half of itself in the span of cleaner ones adds nothing new.
        if overlap < 0.5:
            kept.append(int(j))
            span = np.linalg.qr(functions[:, kept])[0]
    functions = functions[:, kept]
    ascending = np.argsort(geometry.rayleigh(functions))
    # Higher functions crowd and get polluted.
    return functions[:, ascending[:16]]


def of_lowest_factor(geometry: Geometry, functions: np.ndarray) -> np.ndarray:
    """Return the functions that point where the lowest ones point."""
    eigenvalues = geometry.rayleigh(functions)
    own = low = np.arange(len(eigenvalues)) < batch_size(eigenvalues)
    # The lowest functions point nowhere at their extremes; in the second round more functions are
    # there to say which way the factor points.
    for _ in range(2):
        before = own
        energy = energy_along(geometry, functions[:, own])
        share = _values(functions, energy) / eigenvalues
        own = low | (share > MIN_OWN_ENERGY)
        if (own == before).all():
            break
    return functions[:, own]


def refine(
    geometry: Geometry, blocks: Sequence[np.ndarray], *, unions: bool = False
) -> tuple[np.ndarray, ...]:
    """Compute every block anew, as the functions without energy along all others."""
    if len(blocks) < 2:
        return tuple(blocks)
    refined = list(blocks)
    # The lowest functions are the most accurate: their factor is cleaned first, and the others are
    # computed from it.
    lowest = [geometry.rayleigh(block).min() for block in blocks]
    order = np.argsort(lowest)
    for _ in range(N_PASSES):
        for f in order:
            others = [block for g, block in enumerate(refined) if g != f]
            refined[f] = without_energy(geometry, others)
            if not refined[f].shape[1]:
                return ()
        if not unions:
            refined = [of_lowest_factor(geometry, block) for block in refined]
    return tuple(refined)


def impurity(geometry: Geometry, blocks: Sequence[np.ndarray]) -> float:
    """Return the largest impurity of a block's lowest function.

    That is its energy along other blocks in units of their lowest eigenvalues: 0 on a product, 1/4
    where going around one factor once turns the other over, as on a Moebius band.
    """
    impurities = [
        _impurity(_energies(geometry, [*blocks[:f], *blocks[f + 1 :]]), block[:, :1])
        for f, block in enumerate(blocks)
    ]
    return float(np.max(impurities))
