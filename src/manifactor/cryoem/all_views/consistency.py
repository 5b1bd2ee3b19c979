"""Whether a place on a motion means the same in all views.

A particle has one view, so that places may drift with the view although neighbouring
views agree. Images of different directions share frequencies, though, the common lines:
the volumes that they are slices of must be the same there.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from manifactor._support.arithmetic import quotient
from manifactor.cryoem.all_views.equations import Equations
from manifactor.cryoem.all_views.learning import Learned
from manifactor.cryoem.all_views.regression import (
    RegressionSettings,
    normal_equations,
)
from manifactor.cryoem.directions import half_sphere_cells


@dataclass(frozen=True)
class ConsistencySettings:
    """Settings of `view_consistency`."""

    regression: RegressionSettings = field(default_factory=RegressionSettings)
    # Images that are compared, at most.
    compared: int = 4000
    # Bands of cells of the half sphere, some 40 degrees wide, and how far away views
    # must be to predict those of a cell, in degrees: nearer ones agree even where
    # places drift.
    bands: int = 2
    apart: float = 45.0
    # Images of a cell whose volumes are compared.
    at_least: int = 40


def view_consistency(
    learned: Learned, *, settings: ConsistencySettings = ConsistencySettings()
) -> np.ndarray:
    """Return how much of a motion in some views the other views predict.

    Parameters
    ----------
    learned : Learned
        With images in random order.
    settings : ConsistencySettings

    Returns
    -------
    ndarray of shape (n_motions,)
        Near 1 if a place means the same in all views, near 0 if each view has its own
        places, nan if too few images were given. Noise does not change the mean.
    """
    transforms = learned.transforms[: settings.compared]
    features = learned.features[: settings.compared]
    directions = transforms.rotations[:, 2]
    sphere = half_sphere_cells(settings.bands)
    cell = sphere.index(directions)
    # The view from behind shows the same.
    towards = np.abs(directions @ sphere.centres.T)
    counts = np.bincount(cell, minlength=len(sphere))
    apart = np.cos(np.radians(settings.apart))

    def summed(rows: np.ndarray) -> Equations:
        equations, _ = normal_equations(
            transforms[rows], features[rows], settings=settings.regression
        )
        return equations

    def compared(own: int) -> np.ndarray:
        rows = np.flatnonzero(cell == own)
        halves = np.array_split(rows, 2)
        others = np.flatnonzero(towards[:, own] < apart)
        return _shared_power(
            [summed(half) for half in halves], summed(others), learned, settings
        )

    populated = np.flatnonzero(counts >= settings.at_least)
    # One after the other: each takes some 300 MB.
    powers = [compared(own) for own in populated.tolist()]
    if not powers:
        return np.full(len(learned.motions.topologies), np.nan)
    predicted, shown = np.sum(powers, axis=0)
    return np.clip(quotient(predicted, np.maximum(shown, 0)), 0, 1)


def _shared_power(
    halves: Sequence[Equations],
    others: Equations,
    learned: Learned,
    settings: ConsistencySettings,
) -> np.ndarray:
    """Return products of a cell's volumes with the others', and of its two halves.

    Both for each motion, (2, n_motions). Halves and others have independent noise.
    """
    prior = settings.regression.prior_variance
    first, second, far = (
        equations.solved(prior_variance=prior) for equations in (*halves, others)
    )
    here, there = (halves[0] + halves[1]).coverage, others.coverage
    # Frequencies that both show.
    weight = quotient(here * there, here + there)
    motions = learned.motions
    out = []
    for motion in range(len(motions.topologies)):
        own = motions.own_columns(motion)
        mean = (first[own] + second[own]) / 2
        predicted = (weight * (mean.conj() * far[own]).real).sum()
        shown = (weight * (first[own].conj() * second[own]).real).sum()
        out.append([predicted, shown])
    return np.array(out).T
