"""Confounders: how well poses, the microscope's settings and groups predict each factor."""

from collections.abc import Callable, Sequence

import numpy as np
import scipy.sparse as sp

from manifactor.cryoem.files.particles import Particles, view_directions
from manifactor.judging.table import CRITERIA
from manifactor.runs.places import Place
from manifactor.scores import information_imbalance
from manifactor.statistics import neighbour_means

# Neighbours whose mean predicts a sample.
CONFOUNDER_NEIGHBORS = 30
# With 99 permutations the smallest p-value is .01, that is 1 / (1 + 99).
N_PERMUTATIONS, SIGNIFICANCE = 99, 0.02


def confounder_records(
    particles: Particles,
    places: Sequence[Place],
    *,
    samples: np.ndarray | None = None,
    all_views: bool = False,
    rng: np.random.Generator,
) -> list[dict]:
    """Compare every known quantity with every factor: entries of run.json.

    - factor: from 1; 0 for what no factor explains of the samples, (n, d)
    - r2: share of the factor's variance that the quantity explains
    - p: permutation p-value of the hypothesis that it explains nothing
    - imbalance: information imbalance from the factor to the quantity; None of groups
    - meaning: what follows from it; "" if nothing does
    """
    chosen = np.sort(rng.permutation(len(particles))[:4000])
    if len(chosen) <= CONFOUNDER_NEIGHBORS:
        # A sample has too few others to be predicted by.
        return []
    factors = [expected_features(place[chosen]) for place in places]
    targets = dict(enumerate(factors, start=1))
    if samples is not None:
        # What the factors together leave of the samples.
        together = np.hstack([factor / factor.std() for factor in factors])
        targets[0] = samples[chosen] - _mean_of_neighbours(together)(samples[chosen])
    # The same permutations for all, so that p-values can be compared.
    shuffles = [rng.permutation(len(chosen)) for _ in range(N_PERMUTATIONS)]
    found = []
    for name, known in known_quantities(particles[chosen]).items():
        if (known == known[0]).all():
            # The same for all particles, it explains nothing.
            continue
        explained = _explained_share(known)
        for number, target in targets.items():
            r2 = explained(target)
            # How often chance explains at least as much.
            chance = sum(explained(target[shuffle]) >= r2 for shuffle in shuffles)
            p, r2 = (1 + chance) / (1 + N_PERMUTATIONS), max(0.0, r2)
            imbalance = None
            if known.ndim == 2:
                # Half of the samples tell it to .01.
                imbalance = information_imbalance(target[::2], known[::2])
            entry = {"name": name, "factor": number, "r2": r2, "p": p, "imbalance": imbalance}
            meaning = "" if p > SIGNIFICANCE else _meaning(name, number, r2, all_views=all_views)
            found.append({**entry, "meaning": meaning})
    return found


def expected_features(place: Place) -> np.ndarray:
    """Return the features of places, or their means where deviations are known."""
    # Thus a quantity on which only the deviation depends explains nothing. An angle alone would be
    # a sure one, and may be the same for all images that show nothing of it.
    if place.deviation is None or place.topology != "circle":
        return place.features
    # The mean cosine of normal angles around 0.
    return place.features * np.exp(-(place.deviation[:, None] ** 2) / 2)


def _meaning(name: str, factor: int, r2: float, *, all_views: bool) -> str:
    """Return what follows from the R^2 of a quantity, "" if nothing does."""
    kind = "pose" if name in ("view", "in-plane angle", "shift") else "microscope"
    of_view = all_views and name == "view"
    limit = CRITERIA["views"].limit if of_view else 0.1
    if r2 < limit:
        return ""
    if of_view:
        return (
            f"factor {factor} depends on the view (R^2 {r2:.2f}): some states prefer "
            "some views, or a coordinate does not mean the same in all views; compare "
            "images along it from several directions"
        )
    # A classification may have found the same motion, or the same fault.
    if name == "class" and factor == 0:
        return (
            f"class explains {r2:.0%} of what no factor explains: the classes differ "
            "in something that is not a factor"
        )
    if name == "class":
        return (
            f"factor {factor} follows the classes (R^2 {r2:.2f}): they were sorted by this "
            "motion, or by views; compare the averages of the classes"
        )
    if factor == 0:
        return (
            f"{name} explains {r2:.0%} of what no factor explains: a {kind} factor "
            "hides in the data"
        )
    if r2 < 0.5:
        return f"factor {factor} depends on {name} (R^2 {r2:.2f}): look further"
    return f"factor {factor} is a {kind} factor, not a motion: {name} explains {r2:.0%} of it"


def known_quantities(particles: Particles) -> dict[str, np.ndarray]:
    """Return quantities of the particles, (n, d), with near rows of near values, and groups, (n,).

    Those without finite distances, as where one is NaN, are left out.
    """
    known: dict[str, np.ndarray] = {}
    turned = particles.turned()
    if particles.angles is not None and turned is not None:
        psi = np.radians(turned)
        known["view"] = view_directions(particles.angles)
        # Angles themselves would put 359 and 0 degrees far apart.
        known["in-plane angle"] = np.column_stack([np.cos(psi), np.sin(psi)])
    if particles.shift is not None:
        known["shift"] = particles.shift
    microscope = particles.microscope
    if "defocus_u" in microscope:
        u = microscope["defocus_u"]
        v = microscope.get("defocus_v", u)
        known["defocus"] = 0.5 * (u + v)[:, None]
    if "phase_shift" in microscope:
        known["phase shift"] = microscope["phase_shift"][:, None]
    for group in ("optics group", "half set", "class"):
        if group in microscope:
            known[group] = np.unique(microscope[group], return_inverse=True)[1]
    with np.errstate(over="ignore", invalid="ignore"):
        sizes = {name: np.square(values, dtype=float).sum() for name, values in known.items()}
    return {name: known[name] for name, size in sizes.items() if np.isfinite(size)}


def _explained_share(known: np.ndarray) -> Callable[[np.ndarray], float]:
    """Return the function that gives the R^2 with which `known` predicts a target."""
    # A sample of the target, (n, m), is predicted by the mean of the others like it.
    if known.ndim == 1:
        n_others, predict = _mean_of_group(known)
    else:
        n_others, predict = np.array([CONFOUNDER_NEIGHBORS]), _mean_of_neighbours(known)
    # The mean of k others has itself a k-th of the noise, which is taken off.
    noise = 1 + (1 / n_others).mean()

    def explained(target: np.ndarray) -> float:
        centred = target - target.mean(axis=0)
        left = ((centred - predict(centred)) ** 2).sum() / noise
        # A target that is the same for all has nothing to explain.
        return float(1 - left / max((centred**2).sum(), 1e-300))

    return explained


def _mean_of_group(groups: np.ndarray) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    """Return how many others are in each sample's group, and what takes a target to their means."""
    n = len(groups)
    n_others = np.maximum(np.bincount(groups)[groups] - 1, 1)[:, None]
    member = sp.csr_array((np.ones(n), (np.arange(n), groups)))
    return n_others, lambda target: (member @ (member.T @ target) - target) / n_others


def _mean_of_neighbours(known: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function from a target to means over each sample's neighbours in `known`, (n, d)."""
    # All particles of a micrograph share a defocus. Equal values are spread: with more copies than
    # neighbours, a sample might not be found among its own neighbours.
    noise = np.random.default_rng(0).normal(size=known.shape)
    apart = known + 1e-9 * np.ptp(known) * noise
    return neighbour_means(apart, CONFOUNDER_NEIGHBORS)
