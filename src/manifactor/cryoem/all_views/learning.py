"""The volumes of motions, learned from images whose places are known or estimated.

How finely volumes depend on places, and which motions change the same part of the molecule, is
decided by the images: a term stays if two half sets agree about it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from manifactor._support.workers import Here, Workers
from manifactor.cryoem.all_views.model import MotionModel, ViewMap, view_map
from manifactor.cryoem.all_views.motions import Motions, PlaceFeatures, Term
from manifactor.cryoem.all_views.regression import (
    Equations,
    Features,
    RegressionSettings,
    normal_equations,
    residuals,
    volumes_from,
)
from manifactor.cryoem.all_views.slices import VolumeGrid, volume_correlation
from manifactor.cryoem.all_views.transforms import Transforms
from manifactor.cryoem.files.particles import Particles, euler_matrices


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


# Volumes of a molecule from images whose places on factors another program told.
#
# Volumes are regressed on functions of the places. Two half sets of images give two sets of
# volumes: what both have in common is what the images say about the places.


@dataclass(frozen=True)
class KnownPlaceSettings:
    """Settings of `model_of_places`."""

    regression: RegressionSettings = field(default_factory=RegressionSettings)
    # Images that volumes are learned from: as many as the fit of all views takes. More are read for
    # nothing, as the volumes are coarse.
    learned: int = 30_000
    # Columns of a shape of more dimensions: the cost grows with the square of the features, and the
    # first functions are the coarsest.
    columns: int = 8
    # Information about an even place that there is without any image.
    prior_information: float = 12.0


def model_of_places(
    transforms: Transforms,
    topologies: Sequence[str],
    places: Sequence[np.ndarray],
    *,
    rng: np.random.Generator,
    report: Callable[[float], None] = lambda fraction: None,
    workers: Workers = Here(),
    settings: KnownPlaceSettings = KnownPlaceSettings(),
) -> MotionModel:
    """Return the molecule along factors on which the places of images are known.

    Shapes: places (n, d).
    """
    features = PlaceFeatures.of(topologies, places)
    known = Features.known(features.features(np.hstack(list(places))))
    half = rng.permutation(len(transforms)) % 2
    found = []
    for number in (0, 1):
        rows = np.flatnonzero(half == number)
        given = transforms[rows], known[rows]
        found.append(volumes_from(*given, workers=workers, settings=settings.regression))
        report((number + 1) / 2)
    first, second = found
    return MotionModel(
        grid=transforms.grid,
        box=transforms.box,
        motions=features,
        volumes=((first + second) / 2).astype(np.complex64),
        views=expected_views(transforms, features, first, second, settings=settings),
        consistency=half_set_correlation(first, second, features),
    )


def half_set_correlation(
    first: np.ndarray, second: np.ndarray, features: PlaceFeatures
) -> np.ndarray:
    """Return the correlation of each factor's volumes of two half sets.

    Shapes: first, second (n_features, grid.size) -> (n_factors,).
    """
    columns = map(features.own_columns, range(len(features.topologies)))
    return np.array([volume_correlation(first[own], second[own]) for own in columns])


def expected_views(
    transforms: Transforms,
    features: PlaceFeatures,
    first: np.ndarray,
    second: np.ndarray,
    *,
    settings: KnownPlaceSettings = KnownPlaceSettings(),
) -> ViewMap:
    """Return how well a single image of each direction tells places on factors.

    The information about a place is what volumes of two half sets have in common in their slopes
    along it, so that noise adds nothing on average.

    Shapes: first, second (n_features, grid.size).
    """
    n_factors = len(features.topologies)
    counted = view_map(transforms.rotations, np.zeros((len(transforms), n_factors)))
    rotations = _rotations_to(counted.directions)
    shown = [_shown(transforms, volumes, rotations) for volumes in (first, second)]
    # The square of the CTF that a usual image has.
    power = (transforms.transfer**2).mean(axis=0)
    columns = []
    for factor in range(n_factors):
        own, slopes = features.own_columns(factor), features.slopes(factor)
        ours, yours = (part[:, :, own] for part in shown)
        common = np.einsum("vkj,k,vki->vji", ours.conj(), power, yours).real
        # The noise of a coefficient has variance 1, half of it in each part.
        information = 2 * np.einsum("vji,ji->v", common, slopes)
        total = settings.prior_information + np.maximum(information, 0)
        columns.append(np.where(counted.counts > 0, 1 / np.sqrt(total), np.nan))
    return replace(counted, deviations=np.column_stack(columns))


def counted_views(particles: Particles | None) -> ViewMap:
    """Return the number of particles in each direction; 0 without angles."""
    angles = None if particles is None else particles.angles
    rotations = euler_matrices(np.zeros((0, 3)) if angles is None else angles)
    return view_map(rotations, np.zeros((len(rotations), 0)))


def _shown(transforms: Transforms, volumes: np.ndarray, rotations: np.ndarray) -> np.ndarray:
    """Return slices of volumes, (n_views, n_pixels, n_features)."""
    grid = transforms.grid
    sharp = grid.sharpened(volumes).astype(np.complex64)
    return (grid.slices(rotations) @ sharp.T).reshape(len(rotations), -1, len(volumes))


def _rotations_to(directions: np.ndarray) -> np.ndarray:
    """Return rotations of views in given directions, (n, 3, 3)."""
    x, y, z = directions.T
    rot, tilt = np.arctan2(y, x), np.arctan2(np.hypot(x, y), z)
    angles = np.column_stack([rot, tilt, np.zeros_like(rot)])
    return euler_matrices(np.degrees(angles))
