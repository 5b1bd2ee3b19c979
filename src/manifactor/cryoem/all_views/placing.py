"""Volumes along the motions, and the places of all particles on them.

Volumes are learned from images whose places are known, then from images that these volumes place.
How finely volumes depend on places, and which motions change the same part of the molecule, is
decided by the images: a term stays if two half sets agree about it. In the end all particles are
placed, and it is checked whether a place means the same in all views.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.stats import rankdata
from sklearn.utils import gen_batches

from manifactor._support.stages import Stages, fingerprint
from manifactor._support.threads import one_blas_thread
from manifactor._support.values import quotient
from manifactor._support.workers import Here, Workers
from manifactor.cryoem.all_views.motions import Motions
from manifactor.cryoem.all_views.regression import (
    BLOCK,
    Arrays,
    FeatureMoments,
    Likelihood,
    map_likelihoods,
    normal_equations,
)
from manifactor.cryoem.all_views.transforms import Transforms, VolumeGrid, volume_correlation
from manifactor.cryoem.directions import half_sphere_cells

# Rounds of expectation maximisation: seven of them placed two stretches no better.
ROUNDS = 3


@dataclass(frozen=True)
class PlacedParticles:
    """All particles on the motions."""

    motions: Motions
    volumes: np.ndarray  # (n_features, grid.size): of the features of ``motions``
    # (n, n_motions): as of `Motions.posterior`; deviations count the noise of the volumes, too
    places: np.ndarray
    deviations: np.ndarray
    # (n_motions,): how much of a motion in some views the other views predict; see
    # `view_consistency`
    consistency: np.ndarray

    @property
    def quantiles(self) -> np.ndarray:
        """Quantiles of the places of all particles, (n_motions, n_levels)."""
        return np.quantile(self.places, np.linspace(0, 1, 41), axis=0).T


def even_places(coordinate: np.ndarray) -> np.ndarray:
    """Return places that are spread evenly over (0, 1): ranks."""
    return (rankdata(coordinate) - 0.5) / len(coordinate)


def place_particles(
    transforms: Transforms,
    motions: Motions,
    rows: np.ndarray,
    places: np.ndarray,
    *,
    seed: int = 0,
    stages: Stages,
    workers: Workers = Here(),
) -> PlacedParticles:
    """Place all particles on motions, given the places of some of them.

    Shapes: rows (n_known,), places (n_known, n_motions).
    """
    name, n_mates = "places", len(transforms.mates)
    report = partial(stages.report, name)
    key = fingerprint(transforms.fingerprint, motions, rows, places, seed)

    def find() -> tuple:
        rng = np.random.default_rng(seed)
        # Drawn, not the first: particles are often in an order. Symmetry mates are included.
        most = 30_000 // n_mates
        known = rng.permutation(len(rows))[:most]
        images, at = transforms[rows[known]].with_mates(), np.repeat(places[known], n_mates, axis=0)
        learned = learn_known(images, motions, at, workers)
        drawn = transforms[rng.permutation(len(transforms))[:most]]
        for turn in range(ROUNDS):
            learned = _learned_again(drawn, learned, workers)
            report((turn + 1) / (ROUNDS + 2))
        images, features = learned.transforms[::n_mates], learned.features[::n_mates]
        # Some images are placed twice, to see how much the noise of volumes matters.
        spread = _noise_of_volumes(images[:2000], learned, workers)
        consistency = view_consistency(images, features, learned.motions, workers)
        return learned.motions.added, learned.volumes, unexplained(learned), spread, consistency

    with stages.timed(name), one_blas_thread():
        added, volumes, noise, spread, consistency = stages.recall("motions", key, find)
        motions = motions.with_terms(added)
        before = (ROUNDS + 1) / (ROUNDS + 2)
        report(before)
        mapped = partial(
            stages.pieces,
            name,
            key,
            workers=workers,
            report=lambda done: report(before + (1 - before) * done),
        )
        images = replace(transforms, noise=noise)
        found, deviations = map_likelihoods(_places, images, volumes, motions, mapped=mapped)
    ratio = spread / np.mean(deviations**2, axis=0)
    return PlacedParticles(motions, volumes, found, deviations * np.sqrt(1 + ratio), consistency)


def _places(terms: Likelihood, motions: Motions) -> Arrays:
    """Return places and deviations of images, both (n, n_motions)."""
    return motions.posterior(terms)[:2]


# Volumes of motions, learned from images whose places are known or estimated.


@dataclass(frozen=True)
class Learned:
    """Motions, the volumes of their features, and what is known of the images."""

    motions: Motions
    volumes: np.ndarray  # (n_features, grid.size)
    transforms: Transforms  # the images that the volumes were learned from
    features: FeatureMoments  # of these images
    prior_variance: np.ndarray  # (n_features, grid.size): of the volumes


def learn_known(
    transforms: Transforms, motions: Motions, places: np.ndarray, workers: Workers = Here()
) -> Learned:
    """Learn volumes from images of known places, with all terms that they show.

    Shapes: places (n, n_motions).
    """
    volumes = None
    while True:
        tried = motions.grown()
        features = FeatureMoments.known(tried.features(places))
        learned = learn(transforms, motions, tried, features, volumes, workers)
        if learned.motions == motions:
            return learned
        motions, volumes = learned.motions, learned.volumes


def _learned_again(transforms: Transforms, learned: Learned, workers: Workers) -> Learned:
    """Learn volumes from images that are placed by the volumes learned before."""
    images = replace(transforms, noise=unexplained(learned))
    motions, volumes, tried = learned.motions, learned.volumes, learned.motions.grown()
    found = map_likelihoods(_expected_features, images, volumes, motions, tried, mapped=workers.map)
    features = FeatureMoments(*found)
    if len(images.mates) > 1:
        features = features[np.repeat(np.arange(len(images)), len(images.mates))]
    images = images.with_mates()
    return learn(images, motions, tried, features, volumes, workers)


def _expected_features(terms: Likelihood, motions: Motions, tried: Motions) -> Arrays:
    return motions.posterior(terms, described=tried)[2:]


def learn(
    transforms: Transforms,
    motions: Motions,
    tried: Motions,
    features: FeatureMoments,
    volumes: np.ndarray | None = None,
    workers: Workers = Here(),
) -> Learned:
    """Learn volumes, and the terms that two half sets of images agree about.

    Shapes: volumes (n_features, grid.size).
    """
    known = np.zeros((features.mean.shape[1], transforms.grid.size), np.complex64)
    if volumes is not None:
        known[: len(volumes)] = volumes
    explained = None if volumes is None else known
    pairs = normal_equations(_half_sets(transforms, features), explained, workers)
    halves, rests = zip(*pairs, strict=True)
    found = [half.solved() for half in halves]
    # Least correlation of a term's volumes of two half sets. At a third, the volume of both
    # together has as much signal as noise; a little above it, terms that chance favours stay out.
    weight = np.sqrt(halves[0].coverage + halves[1].coverage)
    kept = [
        term
        for term in tried.added[len(motions.added) :]
        if volume_correlation(*(half[tried.columns([term])] * weight for half in found)) > 0.4
    ]
    chosen = motions.with_terms(kept)
    columns = tried.columns(chosen.terms)
    power = shared_power(found[0][columns], found[1][columns], transforms.grid)
    # Inside the ball neighbouring frequencies are averaged, which leaves the share `filled` of
    # their noise. The prior of single frequencies is weaker by as much.
    prior = power / transforms.grid.filled
    equations = (rests[0] + rests[1]).of(columns)
    # Those of the half sets take some 400 MB.
    del pairs, halves, rests, found
    change = equations.solved(prior_variance=prior, about=known[columns])
    return Learned(chosen, known[columns] + change, transforms, features.of(columns), prior)


def _half_sets(
    transforms: Transforms, features: FeatureMoments
) -> list[tuple[Transforms, FeatureMoments]]:
    middle = len(transforms) // 2
    return [(transforms[half], features[half]) for half in (slice(middle), slice(middle, None))]


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


def unexplained(learned: Learned) -> np.ndarray:
    """Return the variance of what volumes leave of images, by frequency, at least 1.

    At high frequencies a motion may be finer than the terms can follow. What is left is noise to
    the places; it is averaged over the directions in an image.
    """
    # Some 2000 images are enough. Symmetry mates are neighbours: steps take different particles.
    some = slice(None, None, max(1, len(learned.transforms) // 2000))
    images, features = learned.transforms[some], learned.features.mean[some]
    sharp = images.grid.sharpened(learned.volumes).T.astype(np.complex64)
    squares = np.zeros(images.values.shape[1])
    for rows in gen_batches(len(images), BLOCK):
        block = images[rows]
        shown = (block.grid.slices(block.rotations) @ sharp).reshape(*block.values.shape, -1)
        left = block.values - block.transfer * (shown @ features[rows, :, None])[..., 0]
        squares += (np.abs(left) ** 2).sum(axis=0)
    shell = images.grid.plane_shells
    mean = np.bincount(shell, squares / len(images))[shell] / np.bincount(shell)[shell]
    return np.maximum(mean, 1)


def _noise_of_volumes(transforms: Transforms, learned: Learned, workers: Workers) -> np.ndarray:
    """Return the variance of places that is due to the noise of volumes."""
    motions, prior = learned.motions, learned.prior_variance
    halves = normal_equations(_half_sets(learned.transforms, learned.features), workers=workers)
    volumes = [half.solved(prior_variance=prior) for half, _ in halves]
    first, second = (
        map_likelihoods(_places, transforms, each, motions, mapped=workers.map)[0]
        for each in volumes
    )
    # Around a circle the way may lead through 0; an interval has no way of more than half of it but
    # by accident.
    apart = np.abs(first - second)
    apart = np.where(motions.are_circles, np.minimum(apart, 1 - apart), apart)
    # Two halves differ by twice the variance of one, which has twice that of all.
    return np.mean(apart**2, axis=0) / 4


# Whether a place on a motion means the same in all views.
#
# A particle has one view, so that places may drift with the view although neighbouring views agree.
# Images of different directions share frequencies, though, the common lines: the volumes that they
# are slices of must be the same there.


def view_consistency(
    transforms: Transforms, features: FeatureMoments, motions: Motions, workers: Workers = Here()
) -> np.ndarray:
    """Return how much of a motion in some views the other views predict, (n_motions,)."""
    some = slice(4000)
    transforms, features = transforms[some], features[some]
    jobs = [
        ([(transforms[part], features[part]) for part in parts], motions)
        for parts in _cells(transforms.rotations[:, 2])
    ]
    powers = list(workers.map(_cell_powers, jobs))
    if not powers:
        return np.full(len(motions.topologies), np.nan)
    predicted, shown = np.sum(powers, axis=0)
    # The power of a motion must be three standard errors over the cells.
    known = shown > 3.0 * (np.sqrt(len(powers)) * np.std(powers, axis=0)[1])
    share = np.clip(quotient(predicted, np.where(known, shown, 1)), 0, 1)
    return np.where(known, share, np.nan)


def _cells(directions: np.ndarray) -> Iterator[list[np.ndarray]]:
    """Yield the views of two halves of each cell, and those far from the cell."""
    # Ten cells, some 45 degrees wide.
    sphere = half_sphere_cells(2)
    cell = sphere.index(directions)
    # The view from behind shows the same. Views beside a cell agree even where places drift.
    far = np.abs(directions @ sphere.centres.T) < np.cos(np.radians(45.0))
    for own in range(len(sphere)):
        rows, others = np.flatnonzero(cell == own), np.flatnonzero(far[:, own])
        # Volumes need some images.
        if min(len(rows), len(others)) >= 40:
            yield [*np.array_split(rows, 2), others]


def _cell_powers(sets: Sequence[tuple[Transforms, FeatureMoments]], motions: Motions) -> np.ndarray:
    """Return products of a cell's volumes with the others', and of its two halves.

    Both for each motion, (2, n_motions). Halves and others have independent noise.
    """
    # One set after the other: the equations of each take some 100 MB.
    *halves, others = (normal_equations([each])[0][0] for each in sets)
    first, second, far = (equations.solved() for equations in (*halves, others))
    here, there = (halves[0] + halves[1]).coverage, others.coverage
    # Frequencies that both show.
    weight = quotient(here * there, here + there)
    out = []
    for motion in range(len(motions.topologies)):
        own = motions.own_columns(motion)
        mean = (first[own] + second[own]) / 2
        pairs = (mean, far[own]), (first[own], second[own])
        out.append([(weight * (one.conj() * other).real).sum() for one, other in pairs])
    return np.array(out).T
