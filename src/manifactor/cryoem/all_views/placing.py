"""The places of all particles on the motions, and whether they mean the same in all views."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.stats import rankdata

from manifactor._support.stages import Stages
from manifactor._support.threads import one_blas_thread
from manifactor._support.values import quotient
from manifactor._support.workers import Here, Workers
from manifactor.cryoem.all_views.learning import (
    Learned,
    LearningSettings,
    learn,
    learn_known,
    unexplained,
    volumes_of_halves,
)
from manifactor.cryoem.all_views.motions import Motions, Term
from manifactor.cryoem.all_views.regression import (
    Arrays,
    Equations,
    Features,
    Likelihood,
    RegressionSettings,
    joined,
    likelihood_jobs,
    likelihood_piece,
    map_likelihoods,
    normal_equations,
)
from manifactor.cryoem.all_views.slices import point_group
from manifactor.cryoem.all_views.transforms import Transforms
from manifactor.cryoem.directions import half_sphere_cells

# Whether a place on a motion means the same in all views.
#
# A particle has one view, so that places may drift with the view although neighbouring views agree.
# Images of different directions share frequencies, though, the common lines: the volumes that they
# are slices of must be the same there.


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


# The places of all particles on the motions that some of them showed.

# What is kept of the volumes of motions; see `_described`.
Known = tuple[tuple[Term, ...], np.ndarray, np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class PlacingSettings:
    """Settings of `place_particles`."""

    regression: RegressionSettings = field(default_factory=RegressionSettings)
    learning: LearningSettings = field(default_factory=LearningSettings)
    consistency: ConsistencySettings = field(default_factory=ConsistencySettings)
    # Images that volumes are learned from, symmetry mates included, and rounds of expectation
    # maximisation: seven of them placed two stretches no better.
    learned: int = 30_000
    rounds: int = 3
    # Images that are placed twice, to see how much the noise of volumes matters.
    compared: int = 2000


@dataclass(frozen=True)
class Placed:
    """All particles on the motions."""

    motions: Motions
    volumes: np.ndarray  # (n_features, grid.size): of the features of ``motions``
    # (n, n_motions): as those of `Posterior`; deviations count the noise of the volumes, too
    places: np.ndarray
    # (n, n_motions): as those of `Posterior`; deviations count the noise of the volumes, too
    deviations: np.ndarray
    # (n_motions,): how much of a motion in some views the other views predict; see
    # `view_consistency`
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
    stages: Stages | None = None,
    key: str = "",
    workers: Workers = Here(),
    settings: PlacingSettings = PlacingSettings(),
) -> Placed:
    """Place all particles on motions, given the places of some of them.

    Shapes: rows (n_known,), places (n_known, n_motions).
    """
    stages = stages or Stages()
    mates = point_group(symmetry)

    def find() -> Known:
        learned = _learned(transforms, motions, rows, places, mates, rng, stages, workers, settings)
        return _described(learned, mates, workers, settings)

    with stages.timed("places"), one_blas_thread():
        added, volumes, noise, spread, consistency = stages.recall("motions", key, find)
        motions = motions.with_terms(added)
        found, deviations = _all_places(
            replace(transforms, noise=noise), volumes, motions, stages, key, workers, settings
        )
    ratio = spread / np.mean(deviations**2, axis=0)
    deviations = deviations * np.sqrt(1 + ratio)
    return Placed(motions, volumes, found, deviations, consistency)


def _all_places(
    transforms: Transforms,
    volumes: np.ndarray,
    motions: Motions,
    stages: Stages,
    key: str,
    workers: Workers,
    settings: PlacingSettings,
) -> Arrays:
    """Return places and deviations of all images, both (n, n_motions)."""
    before = (settings.rounds + 1) / (settings.rounds + 2)
    stages.report("places", before)
    jobs = likelihood_jobs(_places, transforms, volumes, motions, settings=settings.regression)
    pieces = stages.pieces(
        "places",
        key,
        likelihood_piece,
        jobs,
        workers=workers,
        report=lambda done: stages.report("places", before + (1 - before) * done),
    )
    return joined(pieces)


def _learned(
    transforms: Transforms,
    motions: Motions,
    rows: np.ndarray,
    places: np.ndarray,
    mates: np.ndarray,
    rng: np.random.Generator,
    stages: Stages,
    workers: Workers,
    settings: PlacingSettings,
) -> Learned:
    """Learn volumes from known places, and then from images that they place."""
    most = settings.learned // len(mates)
    # Drawn, not the first: particles are often in an order.
    known = rng.permutation(len(rows))[:most]
    learned = learn_known(
        transforms[rows[known]].with_mates(mates),
        motions,
        np.repeat(places[known], len(mates), axis=0),
        workers=workers,
        settings=settings.learning,
    )
    drawn = rng.permutation(len(transforms))[:most]
    for turn in range(settings.rounds):
        learned = _learned_again(transforms[drawn], learned, mates, workers, settings)
        stages.report("places", (turn + 1) / (settings.rounds + 2))
    return learned


def _learned_again(
    transforms: Transforms,
    learned: Learned,
    mates: np.ndarray,
    workers: Workers,
    settings: PlacingSettings,
) -> Learned:
    """Learn volumes from images that are placed by the volumes learned before."""
    images = replace(transforms, noise=unexplained(learned))
    tried = learned.motions.grown()
    mean, products = map_likelihoods(
        _expected_features,
        images,
        learned.volumes,
        learned.motions,
        tried,
        workers=workers,
        settings=settings.regression,
    )
    return learn(
        images.with_mates(mates),
        learned.motions,
        tried,
        Features(mean, products).repeated(len(mates)),
        volumes=learned.volumes,
        workers=workers,
        settings=settings.learning,
    )


def _expected_features(terms: Likelihood, motions: Motions, tried: Motions) -> Arrays:
    features = motions.posterior(terms, described=tried).features
    return features.mean, features.products


def _places(terms: Likelihood, motions: Motions) -> Arrays:
    """Return places and deviations of images, both (n, n_motions)."""
    found = motions.posterior(terms)
    return found.places, found.deviations


def _described(
    learned: Learned, mates: np.ndarray, workers: Workers, settings: PlacingSettings
) -> Known:
    """Return what is kept of the volumes that were learned.

    Returns volumes (n_features, grid.size), noise (m,), spread (n_motions,), consistency
    (n_motions,).
    """
    halves = volumes_of_halves(learned, workers=workers, settings=settings.learning)
    images = learned.transforms[:: len(mates)]
    compared = images[: settings.compared]
    consistency = view_consistency(
        images,
        learned.features[:: len(mates)],
        learned.motions,
        workers=workers,
        settings=settings.consistency,
    )
    return (
        learned.motions.added,
        learned.volumes,
        unexplained(learned),
        _noise_of_volumes(compared, halves, learned.motions, workers, settings),
        consistency,
    )


def _noise_of_volumes(
    transforms: Transforms,
    halves: Sequence[np.ndarray],
    motions: Motions,
    workers: Workers,
    settings: PlacingSettings,
) -> np.ndarray:
    """Return the variance of places that is due to the noise of volumes."""
    first, second = (
        map_likelihoods(
            _places, transforms, volumes, motions, workers=workers, settings=settings.regression
        )[0]
        for volumes in halves
    )
    # Around a circle the way may lead through 0; an interval has no way of more than half of it but
    # by accident.
    apart = np.abs(first - second)
    apart = np.where(motions.are_circles, np.minimum(apart, 1 - apart), apart)
    # Two halves differ by twice the variance of one, which has twice that of all.
    return np.mean(apart**2, axis=0) / 4
