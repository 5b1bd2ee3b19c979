"""Volumes along the motions, and the places of all particles on them.

Volumes are learned from images whose places are known, then from images that these volumes place. A
term stays if two half sets agree about it: images decide how finely volumes depend on places.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.stats import rankdata
from sklearn.utils import gen_batches

from manifactor._support.stages import Stages
from manifactor._support.threads import one_blas_thread
from manifactor._support.values import quotient
from manifactor._support.workers import Here, Workers
from manifactor.cryoem.all_views.motions import Motions
from manifactor.cryoem.all_views.principal import nuisances
from manifactor.cryoem.all_views.regression import (
    BLOCK,
    Arrays,
    FeatureMoments,
    ImageLikelihood,
    map_likelihoods,
    normal_equations,
)
from manifactor.cryoem.all_views.transforms import (
    PADDING,
    Transforms,
    VolumeGrid,
    volume_correlation,
)
from manifactor.cryoem.directions import half_sphere_cells
from manifactor.samples.likelihood import GaussianLikelihood

# Rounds of expectation maximisation, at most. One turn at signal to noise .02 was placed with
# correlations of .88 and .90 in two and three rounds; seven placed two stretches no better.
MOST_ROUNDS = 3


@dataclass(frozen=True)
class PlacedParticles:
    """All particles on the motions."""

    motions: Motions
    volumes: np.ndarray  # (n_features, grid.size): of the features of ``motions``
    # (n, n_motions): as of `Motions.posterior`; deviations count the noise of the volumes, too
    places: np.ndarray
    deviations: np.ndarray
    # (n_motions,): how much of a motion in some views the other views predict
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
    seed: int = 0,
    stages: Stages,
    workers: Workers = Here(),
) -> PlacedParticles:
    """Place all particles on motions, given the places of some `rows` of them."""
    name, n_mates = "places", len(transforms.mates)
    report = partial(stages.report, name)
    rng = np.random.default_rng(seed)
    # A particle is placed by volumes from the other half of the particles: its own would agree with
    # its noise, and confirm any place that it was given.
    sides = rng.permutation(len(transforms)) % 2

    def drawn(sides: np.ndarray) -> np.ndarray:
        """Return as many of one half as of the other, one after the other."""
        both = [rng.permutation(np.flatnonzero(sides == side)) for side in (0, 1)]
        count = min(15_000 // n_mates, *map(len, both))
        return np.concatenate([each[:count] for each in both])

    def find() -> tuple:
        # Drawn, not the first: particles are often in an order. Symmetry mates are included.
        known = drawn(sides[rows])
        images, at = transforms[rows[known]].with_mates(), np.repeat(places[known], n_mates, axis=0)
        learned = learn_known(images, motions, at, workers)
        images = transforms[drawn(sides)]
        for turn in range(MOST_ROUNDS):
            before, learned = learned.features.mean, _learn_again(images, learned, workers)
            report((turn + 1) / (MOST_ROUNDS + 2))
            # The first features of places, which both have, have settled.
            count = min(before.shape[1], learned.features.mean.shape[1])
            after = learned.features.mean[:, :count]
            if turn and np.mean((before[:, :count] - after) ** 2) < 0.01:
                break
        images, features = learned.transforms[::n_mates], learned.features[::n_mates]
        left = unexplained(learned)
        # Some images are placed twice, to see how much the noise of volumes matters.
        some = slice(None, None, max(1, len(images) // 2000))
        spread = _noise_of_volumes(replace(images[some], noise=left[0]), learned, workers)
        consistency = view_consistency(images, features, learned.motions, workers)
        return learned.motions.added, learned.halves, left, spread, consistency

    with stages.timed(name), one_blas_thread():
        added, halves, left, spread, consistency = stages.once("motions", find)
        noise, errors = left
        motions = motions.with_terms(added)
        found, deviations = np.empty((2, len(transforms), len(motions.topologies)))
        for side in (0, 1):
            own = sides == side
            rounds = MOST_ROUNDS + 1 + side / 2

            def report_half(done: float, rounds: float = rounds) -> None:
                report((rounds + done / 2) / (MOST_ROUNDS + 2))

            part = f"{name} {side + 1}"
            mapped = partial(stages.pieces, part, workers=workers, report=report_half)
            images = replace(transforms[own], noise=noise)
            found[own], deviations[own] = map_likelihoods(
                _places, images, halves[1 - side], motions, errors, mapped=mapped
            )
    ratio = spread / np.mean(deviations**2, axis=0)
    volumes = np.mean(halves, axis=0)
    return PlacedParticles(motions, volumes, found, deviations * np.sqrt(1 + ratio), consistency)


def _places(terms: ImageLikelihood, motions: Motions, errors: np.ndarray) -> Arrays:
    """Return places and deviations of images, both (n, n_motions)."""
    found, moved = motions.posterior(terms), np.zeros((len(terms), 5))
    for _ in range(2 if errors.any() else 0):
        # Around a place, errors of poses look like other places.
        terms, moved = terms.with_pose_errors(found[2], errors, moved)
        found = motions.posterior(terms)
    return found[:2]


# Volumes of motions, learned from images whose places are known or estimated.


@dataclass(frozen=True)
class Learned:
    """Motions, the volumes of their features, and what is known of the images."""

    motions: Motions
    halves: np.ndarray  # (2, n_features, grid.size): volumes from one half of the images each
    transforms: Transforms  # the images, one half after the other
    features: FeatureMoments  # of these images
    # (n_features,): the logarithm of the density of their places, as `Motions.density` has it
    density: np.ndarray
    # (n_motions, n_cells + 1): of the places that the images had before, see `Motions.lengths`
    lengths: np.ndarray


def learn_known(
    transforms: Transforms, motions: Motions, places: np.ndarray, workers: Workers = Here()
) -> Learned:
    """Learn volumes from images of known places, with all terms that they show."""
    halves = None
    while True:
        tried = motions.grow()
        features = FeatureMoments.known(tried.features(places))
        learned = learn(transforms, motions, tried, features, halves, workers)
        if learned.motions == motions:
            return learned
        motions, halves = learned.motions, learned.halves
        places = np.clip(motions.at_lengths(places, learned.lengths), 0, 1)


def _learn_again(transforms: Transforms, learned: Learned, workers: Workers) -> Learned:
    """Learn volumes from images that are placed by the volumes of the other half."""
    images = replace(transforms, noise=unexplained(learned)[0])
    motions, tried, middle = learned.motions, learned.motions.grow(), len(images) // 2
    sides = images[:middle], images[middle:]
    found = [
        map_likelihoods(
            _expected_features, side, volumes, motions, tried, learned.density, mapped=workers.map
        )
        for side, volumes in zip(sides, learned.halves[::-1], strict=True)
    ]
    mean, products, cells = map(np.concatenate, zip(*found, strict=True))
    features, shares = FeatureMoments(mean, products), motions.shares(cells, learned.density)
    if len(images.mates) > 1:
        features = features[np.repeat(np.arange(len(images)), len(images.mates))]
    images = images.with_mates()
    return learn(images, motions, tried, features, learned.halves, workers, shares=shares)


def _expected_features(
    terms: ImageLikelihood, motions: Motions, tried: Motions, density: np.ndarray
) -> Arrays:
    told = replace(terms, linear=terms.linear + density)
    return motions.posterior(told, described=tried)[2:]


def learn(
    transforms: Transforms,
    motions: Motions,
    tried: Motions,
    features: FeatureMoments,
    halves: np.ndarray | None = None,
    workers: Workers = Here(),
    *,
    shares: np.ndarray | None = None,
) -> Learned:
    """Learn volumes of two half sets of images, and the terms that both agree about.

    `halves` are earlier volumes, (2, n_features, grid.size); `shares` those of `Motions.shares`.
    """
    known = np.zeros((2, features.mean.shape[1], transforms.grid.size), np.complex64)
    if halves is not None:
        known[:, : halves.shape[1]] = halves
    explained = None if halves is None else list(known)
    pairs = normal_equations(_half_sets(transforms, features), explained, workers)
    whole, rests = zip(*pairs, strict=True)
    found = [half.solve(prior_variance=30.0) for half in whole]
    # At a correlation of a third, the volume of both together has as much signal as noise; a little
    # above it, terms that chance favours stay out.
    weight = np.sqrt(whole[0].coverage + whole[1].coverage)
    kept = [
        term
        for term in tried.added[len(motions.added) :]
        if volume_correlation(*(half[tried.columns([term])] * weight for half in found)) > 0.4
    ]
    chosen = motions.with_terms(kept)
    columns = tried.columns(chosen.terms)
    power = shared_power(found[0][columns], found[1][columns], transforms.grid)
    # Inside the ball frequencies are averaged, which leaves the share `filled` of their noise. The
    # prior of single frequencies is weaker by as much.
    prior = power / transforms.grid.filled
    known, equations = known[:, columns], [rest.of(columns) for rest in rests]
    # Coarse volumes have no finer levels than those tried. The noise of halves is independent.
    shells, inside = transforms.grid.shells, transforms.grid.inside
    counts = np.maximum(np.bincount(shells, inside), 1)
    coarse = (np.bincount(shells, weight**2 * inside) / counts)[shells]
    coarse *= np.exp(-((shells / 5.0) ** 2))
    products = ((found[0] * coarse).conj() @ found[1].T).real
    # Those of the half sets take some 400 MB.
    del pairs, whole, rests, found
    for volumes, half in zip(known, equations, strict=True):
        volumes += half.solve(prior_variance=prior, about=volumes)
    mean = features.mean.mean(axis=0)
    lengths = tried.lengths(products + products.T, shares)
    mixing = tried.mixing(lengths)
    density = chosen.density(np.linalg.solve(mixing.T, mean)[columns])
    straight = mixing[np.ix_(columns, columns)] @ known
    return Learned(chosen, straight, transforms, features.of(columns), density, lengths)


def _half_sets(
    transforms: Transforms, features: FeatureMoments
) -> list[tuple[Transforms, FeatureMoments]]:
    middle = len(transforms) // 2
    return [(transforms[half], features[half]) for half in (slice(middle), slice(middle, None))]


def shared_power(first: np.ndarray, second: np.ndarray, grid: VolumeGrid) -> np.ndarray:
    """Return the power of volumes of two half sets at each frequency, without their noise."""
    shell = grid.shells
    counts = np.maximum(np.bincount(shell, grid.inside), 1)
    both = (first.conj() * second).real * grid.inside
    power = np.stack([np.bincount(shell, values) for values in both]) / counts
    # No image shows frequencies near 0; there the ball decides.
    power[:, 0] = power[:, 1]
    # Where half sets share nothing, nothing is known: the volume is 0 there.
    floor = 1e-6 * power.max()
    return np.maximum(power, floor)[:, shell]


def unexplained(learned: Learned) -> tuple[np.ndarray, np.ndarray]:
    """Return what volumes leave of the other half's images, which is noise to the places.

    The variance by frequency, at least 1: a motion may be finer than the terms can follow; and the
    errors of poses, as `with_pose_errors` takes them.
    """
    squares, parts = [], []
    sets = _half_sets(learned.transforms, learned.features)
    for (images, features), volumes in zip(sets, learned.halves[::-1], strict=True):
        # Some 2000 images are enough. Symmetry mates are neighbours: steps take different
        # particles.
        some = slice(None, None, max(1, len(images) // 1000))
        images, mean, grid = images[some], features.mean[some], images.grid
        # How the mean volume changes tells how far poses are off.
        all_volumes = np.concatenate([volumes, nuisances(volumes[0], grid)[:6]])
        sharp = grid.sharpen(all_volumes).T.astype(np.complex64)
        for rows in gen_batches(len(images), BLOCK):
            block = images[rows]
            shown = (grid.slices(block.rotations) @ sharp).reshape(*block.values.shape, -1)
            shown *= block.transfer[..., None]
            left = block.values - (shown[..., :-6] @ mean[rows, :, None])[..., 0]
            squares.append(np.abs(left) ** 2)
            across = 2 * shown[..., -6:].conj().swapaxes(1, 2)
            parts.append(((across @ left[..., None]).real[..., 0], (across @ shown[..., -6:]).real))
    shell = grid.plane_shells
    total = np.bincount(shell, np.concatenate(squares).mean(axis=0))[shell]
    errors = _errors_of_poses(*map(np.concatenate, zip(*parts, strict=True)))
    return np.maximum(total / np.bincount(shell)[shell], 1), errors


def _errors_of_poses(linear: np.ndarray, precision: np.ndarray) -> np.ndarray:
    """Return the likeliest deviations of rotations, radians, and shifts, boxes; 0 if small."""
    likelihood = GaussianLikelihood(linear, precision)
    shown = np.einsum("nii->i", precision) / len(linear)
    variance = 1 / shown
    for _ in range(50):
        squares = np.diag(likelihood.spread(np.diag(variance)))
        variance = np.repeat(squares.reshape(2, 3).mean(axis=1), 3)
    # Of exact poses this is .1, as rounds end early; of poses 3 degrees off 14.
    if (variance * shown).max() < 0.25:
        return np.zeros(2)
    # Volumes change by a phase of one per cycle, and by a turn of one per step of the grid.
    return np.sqrt(variance[[3, 0]]) / [PADDING, 2 * np.pi]


def _noise_of_volumes(transforms: Transforms, learned: Learned, workers: Workers) -> np.ndarray:
    """Return the variance of places that is due to the noise of volumes of one half."""
    motions = learned.motions
    first, second = (
        map_likelihoods(_places, transforms, volumes, motions, np.zeros(2), mapped=workers.map)[0]
        for volumes in learned.halves
    )
    apart = np.abs(first - second)
    # Around a circle the way may lead through 0.
    apart = np.where(motions.are_circles, np.minimum(apart, 1 - apart), apart)
    return np.mean(apart**2, axis=0) / 2


# Whether a place on a motion means the same in all views: a particle has one view, and places may
# drift with it. Images of all directions share frequencies, where their volumes must be the same.


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
    """Return products of a cell's volumes with the others', and of its halves, (2, n_motions)."""
    # One set after the other: the equations of each take some 100 MB.
    *halves, others = (normal_equations([each])[0][0] for each in sets)
    first, second, far = (equations.solve() for equations in (*halves, others))
    here, there = (halves[0] + halves[1]).coverage, others.coverage
    # Frequencies that both show.
    weight = quotient(here * there, here + there)
    pairs = ((first + second) / 2, far), (first, second)
    columns = [motions.own_columns(motion) for motion in range(len(motions.topologies))]
    return np.array(
        [
            [(weight * (one[own].conj() * other[own]).real).sum() for own in columns]
            for one, other in pairs
        ]
    )
