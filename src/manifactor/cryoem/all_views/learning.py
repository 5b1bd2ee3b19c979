"""The volumes of motions, learned from images whose places are known or estimated.

How finely volumes depend on places, and which motions change the same part of the molecule, is
decided by the images: a term stays if two half sets agree about it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from manifactor._support.workers import Here, Workers
from manifactor.cryoem.all_views.equations import Equations
from manifactor.cryoem.all_views.motions import Motions
from manifactor.cryoem.all_views.regression import (
    Features,
    RegressionSettings,
    normal_equations,
    residuals,
)
from manifactor.cryoem.all_views.slices import VolumeGrid, volume_correlation
from manifactor.cryoem.all_views.terms import Term
from manifactor.cryoem.all_views.transforms import Transforms


@dataclass(frozen=True)
class LearningSettings:
    """Settings of `learn`."""

    regression: RegressionSettings = field(default_factory=RegressionSettings)
    # Least correlation of a term's volumes of two half sets. At a third, the volume of both
    # together has as much signal as noise; a little above it, terms that chance favours stay out.
    reproducible: float = 0.4


@dataclass(frozen=True)
class Learned:
    """Motions, the volumes of their features, and what is known of the images."""

    motions: Motions
    volumes: np.ndarray  # (n_features, grid.size)
    transforms: Transforms  # the images that the volumes were learned from
    features: Features  # of these images
    prior_variance: np.ndarray  # (n_features, grid.size): of the volumes


def learn_known(
    transforms: Transforms,
    motions: Motions,
    places: np.ndarray,
    *,
    workers: Workers = Here(),
    settings: LearningSettings = LearningSettings(),
) -> Learned:
    """Learn volumes from images of known places, with all terms that they show.

    Shapes: places (n, n_motions).
    """
    volumes = None
    while True:
        tried = motions.grown()
        features = Features.known(tried.features(places))
        learned = learn(
            transforms,
            motions,
            tried,
            features,
            volumes=volumes,
            workers=workers,
            settings=settings,
        )
        if learned.motions == motions:
            return learned
        motions, volumes = learned.motions, learned.volumes


def learn(
    transforms: Transforms,
    motions: Motions,
    tried: Motions,
    features: Features,
    *,
    volumes: np.ndarray | None = None,
    workers: Workers = Here(),
    settings: LearningSettings = LearningSettings(),
) -> Learned:
    """Learn volumes, and the terms that two half sets of images agree about.

    Shapes: volumes (n_features, grid.size).
    """
    known = np.zeros((features.mean.shape[1], transforms.grid.size), complex)
    if volumes is not None:
        known[: len(volumes)] = volumes
    explained = None if volumes is None else known
    pairs = _equations_of_halves(transforms, features, explained, workers, settings)
    halves, rests = zip(*pairs, strict=True)
    weak = settings.regression.prior_variance
    found = [half.solved(prior_variance=weak) for half in halves]
    weight = halves[0].coverage + halves[1].coverage
    more = tried.added[len(motions.added) :]
    agreement = term_agreement(found, weight, tried, more)
    kept = [term for term in more if agreement[term] > settings.reproducible]
    chosen = motions.with_terms(kept)
    columns = tried.columns(chosen.terms)
    power = shared_power(found[0][columns], found[1][columns], transforms.grid)
    # Inside the ball neighbouring frequencies are averaged, which leaves the share `filled` of
    # their noise. The prior of single frequencies is weaker by as much.
    prior = power / transforms.grid.filled
    equations = (rests[0] + rests[1]).of(columns)
    change = equations.solved(prior_variance=prior, about=known[columns])
    return Learned(chosen, known[columns] + change, transforms, features.of(columns), prior)


def _equations_of_halves(
    transforms: Transforms,
    features: Features,
    volumes: np.ndarray | None,
    workers: Workers,
    settings: LearningSettings,
) -> list[tuple[Equations, Equations]]:
    middle = len(transforms) // 2
    halves = slice(middle), slice(middle, None)
    return normal_equations(
        [(transforms[half], features[half]) for half in halves],
        volumes=volumes,
        workers=workers,
        settings=settings.regression,
    )


def volumes_of_halves(
    learned: Learned, *, workers: Workers = Here(), settings: LearningSettings = LearningSettings()
) -> tuple[np.ndarray, np.ndarray]:
    """Return the volumes of two half sets of images."""
    pairs = _equations_of_halves(learned.transforms, learned.features, None, workers, settings)
    first, second = (half.solved(prior_variance=learned.prior_variance) for half, _ in pairs)
    return first, second


def shared_power(first: np.ndarray, second: np.ndarray, grid: VolumeGrid) -> np.ndarray:
    """Return the power of volumes at each frequency, without that of their noise.

    Shapes: first, second (n_features, grid.size) -> (n_features, grid.size).
    """
    shell = grid.shells
    counts = np.maximum(np.bincount(shell, grid.inside), 1)
    both = (first.conj() * second).real * grid.inside
    power = np.stack([np.bincount(shell, values) for values in both]) / counts
    # No image shows frequencies near 0; there the ball decides.
    power[:, 0] = power[:, 1]
    # Where half sets share nothing, nothing is known: the volume is 0 there.
    floor = 1e-6 * power.max()
    return np.maximum(power, floor)[:, shell]


def unexplained(learned: Learned, *, most: int = 2000) -> np.ndarray:
    """Return the variance of what volumes leave of images, by frequency, at least 1.

    At high frequencies a motion may be finer than the terms can follow. What is left is noise to
    the places; it is averaged over the directions in an image.
    """
    # Symmetry mates are neighbours: steps take images of different particles.
    rows = slice(None, None, max(1, len(learned.transforms) // most))
    images = learned.transforms[rows]
    squares = residuals(images, learned.volumes, learned.features.mean[rows])
    shell = images.grid.plane_shells
    mean = np.bincount(shell, squares)[shell] / np.bincount(shell)[shell]
    return np.maximum(mean, 1)


def term_agreement(
    halves: Sequence[np.ndarray], weight: np.ndarray, motions: Motions, terms: Sequence[Term]
) -> dict[Term, float]:
    """Return the correlation of each term's volumes of two half sets.

    Shapes: halves (n_features, grid.size), weight (grid.size,).
    """
    first, second = (half * np.sqrt(weight) for half in halves)
    columns = {term: motions.columns([term]) for term in terms}
    return {term: volume_correlation(first[own], second[own]) for term, own in columns.items()}
