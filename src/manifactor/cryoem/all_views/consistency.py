"""Whether a place on a motion means the same in all views.

A particle has one view, so that places may drift with the view although neighbouring views agree.
Images of different directions share frequencies, though, the common lines: the volumes that they
are slices of must be the same there.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from manifactor._support.arithmetic import quotient
from manifactor._support.workers import Here, Workers
from manifactor.cryoem.all_views.equations import Equations
from manifactor.cryoem.all_views.motions import Motions
from manifactor.cryoem.all_views.regression import Features, RegressionSettings, normal_equations
from manifactor.cryoem.all_views.transforms import Transforms
from manifactor.cryoem.directions import half_sphere_cells


@dataclass(frozen=True)
class ConsistencySettings:
    """Settings of `view_consistency`."""

    regression: RegressionSettings = field(default_factory=RegressionSettings)
    # Images that are compared, at most.
    compared: int = 4000
    # Bands of cells of the half sphere, ten cells some 45 degrees wide, and how far views must be
    # from the centre of a cell to predict its views, in degrees. Views beside it agree even where
    # places drift.
    bands: int = 2
    apart: float = 45.0
    # Images of a cell and of the others that volumes need.
    at_least: int = 40
    # Standard errors over the cells that the power of a motion must have.
    significant: float = 3.0


def view_consistency(
    transforms: Transforms,
    features: Features,
    motions: Motions,
    *,
    workers: Workers = Here(),
    settings: ConsistencySettings = ConsistencySettings(),
) -> np.ndarray:
    """Return how much of a motion in some views the other views predict.

    Returns (n_motions,).
    """
    transforms = transforms[: settings.compared]
    features = features[: settings.compared]
    jobs = [
        ([(transforms[part], features[part]) for part in parts], motions, settings)
        for parts in _cells(transforms.rotations[:, 2], settings)
    ]
    powers = list(workers.map(_cell_powers, jobs))
    if not powers:
        return np.full(len(motions.topologies), np.nan)
    predicted, shown = np.sum(powers, axis=0)
    error = np.sqrt(len(powers)) * np.std(powers, axis=0)[1]
    known = shown > settings.significant * error
    share = np.clip(quotient(predicted, np.where(known, shown, 1)), 0, 1)
    return np.where(known, share, np.nan)


def _cells(directions: np.ndarray, settings: ConsistencySettings) -> Iterator[list[np.ndarray]]:
    """Yield the views of two halves of each cell, and those far from the cell."""
    sphere = half_sphere_cells(settings.bands)
    cell = sphere.index(directions)
    # The view from behind shows the same.
    towards = np.abs(directions @ sphere.centres.T)
    apart = np.cos(np.radians(settings.apart))
    for own in range(len(sphere)):
        rows = np.flatnonzero(cell == own)
        others = np.flatnonzero(towards[:, own] < apart)
        if min(len(rows), len(others)) >= settings.at_least:
            yield [*np.array_split(rows, 2), others]


def _cell_powers(
    sets: Sequence[tuple[Transforms, Features]], motions: Motions, settings: ConsistencySettings
) -> np.ndarray:
    """Return the powers of one cell, given its two halves and the others."""
    # One set after the other: the equations of each take some 100 MB.
    first, second, others = (
        normal_equations([each], settings=settings.regression)[0][0] for each in sets
    )
    return _powers((first, second), others, motions, settings)


def _powers(
    halves: Sequence[Equations], others: Equations, motions: Motions, settings: ConsistencySettings
) -> np.ndarray:
    """Return products of a cell's volumes with the others', and of its two halves.

    Both for each motion, (2, n_motions). Halves and others have independent noise.
    """
    prior = settings.regression.prior_variance
    first, second, far = (equations.solved(prior_variance=prior) for equations in (*halves, others))
    here, there = (halves[0] + halves[1]).coverage, others.coverage
    # Frequencies that both show.
    weight = quotient(here * there, here + there)
    out = []
    for motion in range(len(motions.topologies)):
        own = motions.own_columns(motion)
        mean = (first[own] + second[own]) / 2
        predicted = (weight * (mean.conj() * far[own]).real).sum()
        shown = (weight * (first[own].conj() * second[own]).real).sum()
        out.append([predicted, shown])
    return np.array(out).T
