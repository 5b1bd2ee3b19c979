"""The volumes of motions, learned from images whose places are known or estimated.

How finely volumes depend on places, and which motions change the same part of the
molecule, is decided by the images: a term stays if two half sets agree about it.
"""

from dataclasses import dataclass, field

import numpy as np

from manifactor.cryoem.all_views.motions import Motions
from manifactor.cryoem.all_views.regression import (
    Equations,
    Features,
    RegressionSettings,
    normal_equations,
    residuals,
)
from manifactor.cryoem.all_views.terms import Term
from manifactor.cryoem.all_views.transforms import Transforms


@dataclass(frozen=True)
class LearningSettings:
    """Settings of `learn`."""

    regression: RegressionSettings = field(default_factory=RegressionSettings)
    # Least correlation of a term's volumes of two half sets. At a third, the volume of
    # both together has as much signal as noise.
    reproducible: float = 0.4


@dataclass(frozen=True)
class Learned:
    """Motions, the volumes of their features, and what is known of the images.

    Attributes
    ----------
    motions : Motions
    volumes : complex ndarray of shape (n_features, grid.size)
    transforms : Transforms
        The images that the volumes were learned from.
    features : Features
        Of these images.
    """

    motions: Motions
    volumes: np.ndarray
    transforms: Transforms
    features: Features


def learn_known(
    transforms: Transforms,
    motions: Motions,
    places: np.ndarray,
    *,
    settings: LearningSettings = LearningSettings(),
) -> Learned:
    """Learn volumes from images of known places, with all terms that they show.

    Parameters
    ----------
    transforms : Transforms
    motions : Motions
        To begin with.
    places : ndarray of shape (n, n_motions)
    settings : LearningSettings
    """
    volumes = None
    while True:
        tried = motions.grown()
        features = Features.known(tried.features(places))
        learned = learn(
            transforms, motions, tried, features, volumes=volumes, settings=settings
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
    settings: LearningSettings = LearningSettings(),
) -> Learned:
    """Learn volumes, and the terms that two half sets of images agree about.

    Parameters
    ----------
    transforms : Transforms
        In random order: the half sets are the first and the last half.
    motions : Motions
        Its terms stay.
    tried : Motions
        The same with terms that may be added.
    features : Features
        Of `tried`.
    volumes : complex ndarray of shape (n_features, grid.size) or None
        Of `motions`, learned before; they are improved.
    settings : LearningSettings
    """
    if volumes is None:
        volumes = np.zeros((0, transforms.grid.size), complex)
    n_added = features.mean.shape[1] - len(volumes)
    known = np.concatenate([volumes, np.zeros((n_added, transforms.grid.size))])
    middle = len(transforms) // 2
    halves = [
        normal_equations(
            transforms[half],
            features[half],
            volumes=known,
            settings=settings.regression,
        )
        for half in (slice(middle), slice(middle, None))
    ]
    more = tried.added[len(motions.added) :]
    agreement = term_agreement(halves, tried, more, settings=settings)
    kept = [term for term in more if agreement[term] > settings.reproducible]
    chosen = motions.with_terms(kept)
    columns = tried.columns(chosen.terms)
    equations = (halves[0] + halves[1]).of(columns)
    change = equations.solved(prior_variance=settings.regression.prior_variance)
    return Learned(chosen, known[columns] + change, transforms, features.of(columns))


def unexplained(learned: Learned, *, most: int = 2000) -> np.ndarray:
    """Return the variance of what volumes leave of images, by frequency, at least 1.

    At high frequencies a motion may be finer than the terms can follow. What is left
    is noise to the places; it is averaged over the directions in an image.

    Parameters
    ----------
    learned : Learned
    most : int
        Images that are looked at.
    """
    images = learned.transforms[:most]
    squares = residuals(images, learned.volumes, learned.features.mean[:most])
    shell = np.rint(np.hypot(*images.grid.plane.T)).astype(int)
    mean = np.bincount(shell, squares)[shell] / np.bincount(shell)[shell]
    return np.maximum(mean, 1)


def term_agreement(
    halves: list[Equations],
    motions: Motions,
    terms: tuple[Term, ...],
    *,
    settings: LearningSettings = LearningSettings(),
) -> dict[Term, float]:
    """Return the correlation of each term's volumes of two half sets.

    Frequencies count as much as images show them.
    """
    prior = settings.regression.prior_variance
    weight = np.sqrt(halves[0].coverage + halves[1].coverage)
    first, second = (half.solved(prior_variance=prior) * weight for half in halves)
    out = {}
    for term in terms:
        own = motions.columns([term])
        ours, yours = first[own].ravel(), second[own].ravel()
        lengths = np.linalg.norm(ours) * np.linalg.norm(yours)
        out[term] = float(np.vdot(ours, yours).real / lengths)
    return out
