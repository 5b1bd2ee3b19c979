"""Confounders: how well what is known of the particles besides their images predicts where they lie on each factor."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from manifactor._support.regression import neighbour_means
from manifactor.cryoem.particles import Particles, view_directions
from manifactor.runs.places import Place

NEIGHBORS = 30
MOST_SAMPLES = 4000
PERMUTATIONS = 99
MICROSCOPE, LOOK = (
    0.5,
    0.1,
)  # R^2 from which on a factor is the microscope's, and from which on to look further
SIGNIFICANT = 0.02


@dataclass(frozen=True)
class Confounder:
    """How well one known quantity predicts one factor.

    Attributes
    ----------
    name : str
    factor : int
        From 1; 0 for what no factor explains of the samples.
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
        kind = (
            "pose" if self.name in ("view", "in-plane angle", "shift") else "microscope"
        )
        if self.factor == 0:
            return f"{self.name} explains {self.r2:.0%} of what no factor explains: a {kind} factor hides in the data"
        if self.r2 < MICROSCOPE:
            return f"factor {self.factor} depends on {self.name} (R^2 {self.r2:.2f}): look further"
        return f"factor {self.factor} is a {kind} factor, not a motion: {self.name} explains {self.r2:.0%} of it"


def confounders(
    particles: Particles,
    places: Sequence[Place],
    *,
    samples: np.ndarray | None = None,
    rng: np.random.Generator,
) -> list[Confounder]:
    """Every known quantity against every factor, and against what the factors leave of the samples if given."""
    chosen = np.sort(rng.permutation(len(particles))[:MOST_SAMPLES])
    particles = particles[chosen]
    targets = [place[chosen].features for place in places]
    numbers = list(range(1, 1 + len(targets)))
    if samples is not None and len(chosen) > NEIGHBORS:
        together = np.hstack([target / target.std() for target in targets])
        targets.append(samples[chosen] - _predictor(together)[0](samples[chosen]))
        numbers.append(0)
    shuffles = [rng.permutation(len(chosen)) for _ in range(PERMUTATIONS)]
    out = []
    for name, known in known_quantities(particles).items():
        if len(known) <= NEIGHBORS or not (known != known[0]).any():
            continue  # the same for all
        explained = _explainer(known)
        for number, target in zip(numbers, targets, strict=True):
            r2 = explained(target)
            chance = sum(explained(target[shuffle]) >= r2 for shuffle in shuffles)
            out.append(
                Confounder(
                    name, number, max(0.0, r2), (1 + chance) / (1 + PERMUTATIONS)
                )
            )
    return out


def known_quantities(particles: Particles) -> dict[str, np.ndarray]:
    """Columns, (n, d), in which near values mean near quantities; groups are whole numbers, (n,)."""
    known: dict[str, np.ndarray] = {}
    turned = particles.turned()
    if particles.angles is not None and turned is not None:
        psi = np.radians(turned)
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


def _explainer(known: np.ndarray) -> Callable[[np.ndarray], float]:
    """The R^2, as a function of a target (n, m), of predicting each sample by the mean of the others like it.

    The mean of k others has a k-th of the noise itself, which is taken off.
    """
    predict, others = _predictor(known)

    def explained(target: np.ndarray) -> float:
        centred = target - target.mean(axis=0)
        left = ((centred - predict(centred)) ** 2).sum() / (1 + (1 / others).mean())
        return float(1 - left / max((centred**2).sum(), 1e-300))

    return explained


def _predictor(
    known: np.ndarray,
) -> tuple[Callable[[np.ndarray], np.ndarray], np.ndarray]:
    """The function that takes a target (n, m) to the means over the others like each sample, and how many they are."""
    n = len(known)
    if known.ndim == 1:  # groups
        member = sp.csr_array((np.ones(n), (np.arange(n), known)))
        others = np.maximum(member.sum(axis=0)[known] - 1, 1)[:, None]

        def predict(target: np.ndarray) -> np.ndarray:
            return (member @ (member.T @ target) - target) / others

    else:
        # all particles of a micrograph share a defocus: apart by nothing that matters, each is found among its copies
        apart = known + 1e-9 * np.ptp(known) * np.random.default_rng(0).normal(
            size=known.shape
        )
        return neighbour_means(apart, NEIGHBORS), np.array([NEIGHBORS])
    return predict, others
