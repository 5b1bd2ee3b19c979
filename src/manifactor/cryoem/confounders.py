"""Confounders: how well what is known of the particles besides their images predicts where they lie on each factor."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.spatial import KDTree

from manifactor.cryoem.particles import Particles, view_directions
from manifactor.places import Place

NEIGHBORS = 30
MOST_SAMPLES = 4000
PERMUTATIONS = 99
MICROSCOPE, LOOK = 0.5, 0.1  # R^2 from which on a factor is the microscope's, and from which on to look further
SIGNIFICANT = 0.02


@dataclass(frozen=True)
class Confounder:
    """How well one known quantity predicts one factor.

    Attributes
    ----------
    name : str
    factor : int
        From 1.
    r2 : float
        Share of the factor's variance that the quantity explains.
    p : float
        Permutation p-value of the hypothesis that it explains nothing.
    """

    name: str
    factor: int
    r2: float
    p: float

    @property
    def meaning(self) -> str:
        """What to make of it, "" for nothing."""
        if self.p > SIGNIFICANT or self.r2 < LOOK:
            return ""
        if self.r2 < MICROSCOPE:
            return f"factor {self.factor} depends on {self.name} (R^2 {self.r2:.2f}): look further"
        if self.name in ("view", "in-plane angle", "shift"):
            return f"factor {self.factor} is a pose factor, not a motion: {self.name} explains {self.r2:.0%} of it"
        return f"factor {self.factor} is a microscope factor, not a motion: {self.name} explains {self.r2:.0%} of it"


def confounders(particles: Particles, places: Sequence[Place], *, rng: np.random.Generator) -> list[Confounder]:
    """Every known quantity against every factor."""
    chosen = np.sort(rng.permutation(len(particles))[:MOST_SAMPLES])
    particles = particles[chosen]
    targets = [place[chosen].features for place in places]
    shuffles = [rng.permutation(len(chosen)) for _ in range(PERMUTATIONS)]
    out = []
    for name, known in known_quantities(particles).items():
        if len(known) <= NEIGHBORS or not (known != known[0]).any():
            continue  # the same for all
        means = _means_of_like(known)
        for number, target in enumerate(targets, start=1):
            r2 = _explained(means, target)
            chance = sum(_explained(means, target[shuffle]) >= r2 for shuffle in shuffles)
            out.append(Confounder(name, number, max(0.0, r2), (1 + chance) / (1 + PERMUTATIONS)))
    return out


def known_quantities(particles: Particles) -> dict[str, np.ndarray]:
    """Columns, (n, d), in which near values mean near quantities; groups are whole numbers, (n,)."""
    known: dict[str, np.ndarray] = {}
    if particles.angles is not None:
        psi = np.radians(particles.angles[:, 2])
        known["view"] = view_directions(particles.angles)
        known["in-plane angle"] = np.column_stack([np.cos(psi), np.sin(psi)])
    if particles.shift is not None:
        known["shift"] = particles.shift
    microscope = particles.microscope
    if "defocus_u" in microscope:
        v = microscope.get("defocus_v", microscope["defocus_u"])
        known["defocus"] = 0.5 * (microscope["defocus_u"] + v)[:, None]
    if "phase_shift" in microscope:
        known["phase shift"] = microscope["phase_shift"][:, None]
    for group in ("optics group", "half set"):
        if group in microscope:
            known[group] = np.unique(microscope[group], return_inverse=True)[1]
    return known


def _means_of_like(known: np.ndarray) -> sp.csr_array:
    """The matrix that takes each sample's value to the mean over the others of its group or its neighbours."""
    n = len(known)
    if known.ndim == 1:
        member = sp.csr_array((np.ones(n), (np.arange(n), known)))
        like = sp.csr_array(member @ member.T - sp.eye_array(n))
    else:
        spread = known + 1e-9 * np.ptp(known) * np.random.default_rng(0).normal(size=known.shape)  # copies in any order
        near = KDTree(spread).query(spread, NEIGHBORS + 1, workers=-1)[1][:, 1:]
        like = sp.csr_array((np.ones(near.size), near.ravel(), np.arange(0, near.size + 1, NEIGHBORS)), shape=(n, n))
    return sp.csr_array(sp.diags_array(1 / np.maximum(like.sum(axis=1), 1)) @ like)


def _explained(means: sp.csr_array, target: np.ndarray) -> float:
    """R^2 of predicting each sample by the mean of those like it, the noise of that mean taken off."""
    size = 1 / np.maximum((means.multiply(means)).sum(axis=1).mean(), 1e-12)
    centred = target - target.mean(axis=0)
    left = ((centred - means @ centred) ** 2).sum() / (1 + 1 / size)
    return float(1 - left / (centred**2).sum())
