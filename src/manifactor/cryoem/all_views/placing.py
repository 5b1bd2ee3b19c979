"""The places of all particles on the motions that some of them showed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.stats import rankdata

from manifactor.cryoem.all_views.consistency import (
    ConsistencySettings,
    view_consistency,
)
from manifactor.cryoem.all_views.learning import (
    Learned,
    LearningSettings,
    learn,
    learn_known,
    unexplained,
    volumes_of_halves,
)
from manifactor.cryoem.all_views.motions import Motions
from manifactor.cryoem.all_views.regression import (
    RegressionSettings,
    likelihood,
    likelihoods,
)
from manifactor.cryoem.all_views.symmetry import point_group
from manifactor.cryoem.all_views.transforms import Transforms


@dataclass(frozen=True)
class PlacingSettings:
    """Settings of `place_particles`."""

    regression: RegressionSettings = field(default_factory=RegressionSettings)
    learning: LearningSettings = field(default_factory=LearningSettings)
    consistency: ConsistencySettings = field(default_factory=ConsistencySettings)
    # Images that volumes are learned from, symmetry mates included, and rounds of
    # expectation maximisation: seven of them placed two stretches no better.
    learned: int = 30_000
    rounds: int = 3
    # Images that are placed twice, to see how much the noise of volumes matters.
    compared: int = 2000


@dataclass(frozen=True)
class Placed:
    """All particles on the motions.

    Attributes
    ----------
    motions : Motions
    volumes : complex ndarray of shape (n_features, grid.size)
        Of the features of ``motions``.
    places, deviations : ndarray of shape (n, n_motions)
        As those of `Posterior`; deviations count the noise of the volumes, too.
    consistency : ndarray of shape (n_motions,)
        How much of a motion in some views the other views predict; see
        `view_consistency`.
    """

    motions: Motions
    volumes: np.ndarray
    places: np.ndarray
    deviations: np.ndarray
    consistency: np.ndarray


def even_places(coordinate: np.ndarray) -> np.ndarray:
    """Return places that are spread evenly over (0, 1): ranks."""
    return (rankdata(coordinate) - 0.5) / len(coordinate)


def place_particles(
    transforms: Transforms,
    motions: Motions,
    rows: np.ndarray,
    places: np.ndarray,
    *,
    rng: np.random.Generator,
    symmetry: str = "C1",
    report: Callable[[float], None] = lambda fraction: None,
    settings: PlacingSettings = PlacingSettings(),
) -> Placed:
    """Place all particles on motions, given the places of some of them.

    Parameters
    ----------
    transforms : Transforms
        Of all particles.
    motions : Motions
    rows : ndarray of int of shape (n_known,)
        Particles whose places are known approximately.
    places : ndarray of shape (n_known, n_motions)
    rng : Generator
        Draws the particles that volumes are learned from.
    symmetry : str
        Point group of the molecule.
    report : callable
        Called with the fraction that is done.
    settings : PlacingSettings
    """
    mates = point_group(symmetry)
    most = settings.learned // len(mates)
    # Drawn, not the first: particles are often in an order.
    known = rng.permutation(len(rows))[:most]
    learned = learn_known(
        transforms[rows[known]].with_mates(mates),
        motions,
        np.repeat(places[known], len(mates), axis=0),
        settings=settings.learning,
    )
    drawn = rng.permutation(len(transforms))[:most]
    for turn in range(settings.rounds):
        learned = _learned_again(transforms[drawn], learned, mates, settings)
        report((turn + 1) / (settings.rounds + 2))
    motions, volumes = learned.motions, learned.volumes
    noise = unexplained(learned)
    halves = volumes_of_halves(learned, settings=settings.learning)
    compared = learned.transforms[:: len(mates)][: settings.compared]
    spread = _noise_of_volumes(compared, halves, motions, settings)
    before = (settings.rounds + 1) / (settings.rounds + 2)
    report(before)
    found, deviations = _all_places(
        replace(transforms, noise=noise),
        volumes,
        motions,
        lambda done: report(before + (1 - before) * done),
        settings,
    )
    ratio = spread / np.mean(deviations**2, axis=0)
    return Placed(
        motions,
        volumes,
        places=found,
        deviations=deviations * np.sqrt(1 + ratio),
        consistency=view_consistency(
            learned.transforms[:: len(mates)],
            learned.features[:: len(mates)],
            motions,
            settings=settings.consistency,
        ),
    )


def _learned_again(
    transforms: Transforms,
    learned: Learned,
    mates: np.ndarray,
    settings: PlacingSettings,
) -> Learned:
    """Learn volumes from images that are placed by the volumes learned before."""
    images = replace(transforms, noise=unexplained(learned))
    seen = likelihood(images, learned.volumes, settings=settings.regression)
    tried = learned.motions.grown()
    features = learned.motions.posterior(seen, described=tried).features
    return learn(
        images.with_mates(mates),
        learned.motions,
        tried,
        features.repeated(len(mates)),
        volumes=learned.volumes,
        settings=settings.learning,
    )


def _all_places(
    transforms: Transforms,
    volumes: np.ndarray,
    motions: Motions,
    report: Callable[[float], None],
    settings: PlacingSettings,
) -> tuple[np.ndarray, np.ndarray]:
    """Return places and deviations of all images, both (n, n_motions)."""
    batches = likelihoods(
        transforms, volumes, report=report, settings=settings.regression
    )
    pairs = []
    for terms in batches:
        # Of the features, which take more memory than the images, none are kept.
        found = motions.posterior(terms)
        pairs.append((found.places, found.deviations))
    places, deviations = zip(*pairs, strict=True)
    return np.concatenate(places), np.concatenate(deviations)


def _noise_of_volumes(
    transforms: Transforms,
    halves: Sequence[np.ndarray],
    motions: Motions,
    settings: PlacingSettings,
) -> np.ndarray:
    """Return the variance of places that is due to the noise of volumes."""
    first, second = (
        motions.posterior(
            likelihood(transforms, volumes, settings=settings.regression)
        ).places
        for volumes in halves
    )
    # Around a circle the way may lead through 0; an interval has no way of more than
    # half of it but by accident.
    apart = np.abs(first - second)
    apart = np.where(motions.are_circles, np.minimum(apart, 1 - apart), apart)
    # Two halves differ by twice the variance of one, which has twice that of all.
    return np.mean(apart**2, axis=0) / 4
