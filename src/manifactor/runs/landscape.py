"""Density of samples along one or two factors as a free energy, in kT, with its uncertainty.

The logarithm of the density is a sum of polynomials of an interval, harmonics of a circle and their
products. Its coefficients are those of greatest likelihood, given the deviation of every sample's
coordinate, and their number that of the least AIC.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product

import numpy as np
from numpy.polynomial import Legendre
from scipy.optimize import minimize
from scipy.special import ndtr

from manifactor.runs.places import Place, as_csv

# Samples used and cells along a factor: of one factor, and of two.
MOST, CELLS = (100_000, 20_000), (90, 30)
# Highest sums of levels, along one factor and two.
MOST_LEVELS = 8, 4
# Errors in kT that are always there: along a circle, inside an interval, and in the twentieths at
# its ends. What is left of the warp of a coordinate looks like wells: along intervals of even
# places, energies varied by .4 kT at a signal to noise of .5, by .4 to 1.0 at .1, mostly at ends.
WARP = 0.05, 0.15, 0.6


def _polynomial(place: np.ndarray, degree: int) -> np.ndarray:
    return (np.sqrt(2 * degree + 1) * Legendre.basis(degree)(2 * place - 1))[:, None]


def _harmonic(place: np.ndarray, order: int) -> np.ndarray:
    angle = 2 * np.pi * order * place
    return np.sqrt(2) * np.column_stack([np.cos(angle), np.sin(angle)])


# Functions of even places in [0, 1], of unit variance, by shape.
LEVELS = {"interval": _polynomial, "circle": _harmonic}


@dataclass(frozen=True)
class Landscape:
    """A free energy on the cells of one factor or two."""

    centres: tuple[np.ndarray, ...]  # of the cells along each factor, as people read them
    energy: np.ndarray  # (n_cells,) or (n_cells, n_cells): kT, 0 where it is lowest
    error: np.ndarray  # standard deviation of the logarithm of the density

    def __str__(self) -> str:
        return (
            f"the density varies by {self.energy.max():.2f} kT, with errors of "
            f"{self.error.min():.2f} to {self.error.max():.2f} kT"
        )

    @property
    def as_csv(self) -> bytes:
        """The table of the cells; a density of 1 is even."""
        at = np.meshgrid(*self.centres, indexing="ij")
        columns = {f"coordinate{k}": each.ravel() for k, each in enumerate(at, start=1)}
        density = np.exp(-self.energy)
        values = {"density": density / density.mean(), "kT": self.energy, "error_kT": self.error}
        return as_csv(columns | {name: value.ravel() for name, value in values.items()})


def landscape(places: Sequence[Place]) -> Landscape:
    """Return the free energy along the factors that samples have these places on."""
    d, n = len(places) - 1, len(places[0])
    drawn = np.random.default_rng(0).permutation(n)[: MOST[d]]
    places = [place[drawn] for place in places]
    unit = (np.arange(CELLS[d]) + 0.5) / CELLS[d]
    seen, *other = (_likelihoods(place, unit) for place in places)
    for along in other:
        seen = (seen[:, :, None] * along[:, None]).reshape(len(drawn), -1)
    fits = [_fit(seen, *_waves(places, unit, level)) for level in range(MOST_LEVELS[d] + 1)]
    _, energy, error = min(fits, key=lambda fit: fit[0])
    around, inside, at_ends = WARP
    warp = {
        "circle": np.full(len(unit), around),
        "interval": np.where(np.abs(unit - 0.5) < 0.45, inside, at_ends),
    }
    always = reduce(np.add.outer, [warp[place.topology] ** 2 for place in places]).ravel()
    error = np.sqrt(error**2 + always)
    shape = len(places) * (CELLS[d],)
    centres = tuple(unit * (360 if place.topology == "circle" else 1) for place in places)
    # Where less than one of n samples is expected, nothing more is known.
    energy = np.minimum(energy - energy.min(), np.log(len(drawn)))
    return Landscape(centres, energy.reshape(shape), error.reshape(shape))


def _likelihoods(place: Place, unit: np.ndarray) -> np.ndarray:
    """Return the likelihood of each cell given a sample's image, (n, n_cells).

    A place and its deviation are those of a posterior, with even places before.
    """
    circle, cell = place.topology == "circle", 1 / len(unit)
    turn = 2 * np.pi if circle else 1.0
    at = place.coordinate / turn
    spread = np.zeros(len(at)) if place.deviation is None else place.deviation / turn
    variance = np.clip(spread**2, cell**2 / 12, 1 / 12)
    if circle:
        # Circular deviations are those of the likelihood itself, up to that of even places.
        variance = np.where(variance < 0.08, variance, 9.0)
        apart = (unit - at[:, None] + 0.5) % 1 - 0.5
    else:
        at, variance = _normal_moments(at, variance)
        apart = unit - at[:, None]
    score = -(apart**2) / 2 / (variance + cell**2 / 12)[:, None]
    return np.exp(score - score.max(axis=1, keepdims=True)).astype(np.float32)


def _normal_moments(mean: np.ndarray, variance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and variance of normal distributions with these moments inside [0, 1]."""
    at, spread = mean, np.sqrt(variance)
    for _ in range(40):
        low, high = -at / spread, (1 - at) / spread
        mass = np.maximum(ndtr(high) - ndtr(low), 1e-6)
        here, there = (np.exp(-(end**2) / 2) / np.sqrt(2 * np.pi) / mass for end in (low, high))
        shift = here - there
        left = np.maximum(1 + low * here - high * there - shift**2, 0.05)
        # A normal distribution wider than that is flat inside.
        at = np.clip(at + mean - (at + spread * shift), -1, 2)
        spread = np.minimum(np.sqrt(variance / left), 2)
    return at, spread**2


def _waves(places: Sequence[Place], unit: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Return functions of the cells, up to a sum of levels, (n_cells, m), and these sums, (m,)."""
    even = np.ones((len(unit), 1))
    waves, sums = [np.zeros((len(unit) ** len(places), 0))], []
    for levels in product(range(most + 1), repeat=len(places)):
        pairs = list(zip(places, levels, strict=True))
        if 0 < sum(levels) <= most:
            along = [LEVELS[place.topology](unit, k) if k else even for place, k in pairs]
            waves.append(reduce(np.kron, along))
            sums += waves[-1].shape[1] * [sum(levels)]
    return np.hstack(waves), np.array(sums, float)


def _fit(
    seen: np.ndarray, waves: np.ndarray, sums: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    """Return AIC, energy and its error of a density of some functions.

    Before any sample is seen, the coefficient of a function is 0 to within 2 kT over its level.
    """
    prior = (sums / 2) ** 2

    def density(at: np.ndarray) -> np.ndarray:
        density = np.exp(waves @ at - (waves @ at).max(initial=0))
        return density / density.sum()

    def loss(at: np.ndarray) -> tuple[float, np.ndarray]:
        even = density(at)
        likelihood = seen @ even
        shown = (1 / likelihood) @ seen * even - len(seen) * even
        return prior @ at**2 / 2 - np.log(likelihood).sum(), prior * at - shown @ waves

    best = np.zeros(len(prior))
    if len(best):
        best = minimize(loss, best, method="BFGS", jac=True).x
    even = density(best)
    apart = waves - even @ waves
    # Scores of the samples, whose products are the information.
    scores = (seen * even) @ apart / (seen @ even)[:, None]
    information = scores.T @ scores + np.diag(prior)
    variance = np.einsum("ck,ck->c", apart @ np.linalg.pinv(information), apart)
    return 2 * loss(best)[0] + 2 * len(best), -np.log(even), np.sqrt(variance)
