"""The mean volume and the principal volumes, in which all particles differ.

An image is a slice of ``V_0 + sum_j z_j V_j`` with standard normal coordinates z. All views share
the volumes, which expectation maximisation finds: coordinates mean the same in all views.

References
----------
Tipping and Bishop, Probabilistic principal component analysis, 1999. Of cryo-EM images:
Tagare and others, Directly reconstructing principal components of heterogeneous
particles from cryo-EM images, 2015.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.spatial.transform import Rotation

from manifactor._support.stages import Stages
from manifactor._support.threads import one_blas_thread
from manifactor._support.workers import Here, Workers
from manifactor.cryoem.all_views.regression import FeatureMoments, map_likelihoods, volumes_from
from manifactor.cryoem.all_views.transforms import Transforms, VolumeGrid
from manifactor.samples.likelihood import GaussianLikelihood

# Volumes that are looked for at first: a circle shows in two or four, an interval in one to three.
MAX_RANK = 10
# Rounds of expectation maximisation from random coordinates.
N_ROUNDS = 7
# Images in two half sets whose volumes are compared, at most.
IMAGES_COMPARED = 40_000


def least_agreement(chance: float) -> float:
    """Return the correlation above which volumes of two half sets have something in common."""
    # Rigid molecules had 1.0 to 1.6 times that by chance. It is high where volumes resemble
    # themselves when turned.
    return min(2 * chance, (1 + chance) / 2)


@dataclass(frozen=True)
class PrincipalVolumes:
    """Volumes in which particles differ, and the coordinates of all particles."""

    # (rank + 1, grid.size): the mean volume, then the principal ones, the best visible first
    volumes: np.ndarray
    coordinates: np.ndarray  # (n, rank)
    covariance: np.ndarray  # (n, rank, rank): of the coordinates; it depends on the view
    information: np.ndarray  # (rank,): signal to noise of the coordinates, the mean of all images
    agreement: np.ndarray  # (max_rank,): correlations of volumes found in two half sets, descending
    chance: float  # the highest of them that volumes with nothing in common have

    @property
    def likelihood(self) -> GaussianLikelihood:
        """What images say of the coordinates, without what is known of them before."""
        # Coordinates are means and covariances given that they are standard normal.
        known = GaussianLikelihood.of_samples(self.coordinates, self.covariance.astype(float))
        return replace(known, precision=known.precision - np.eye(self.rank))

    @property
    def rank(self) -> int:
        """Number of principal volumes."""
        return len(self.information)


def principal_volumes(
    transforms: Transforms, *, seed: int = 0, stages: Stages, workers: Workers = Here()
) -> PrincipalVolumes:
    """Return volumes that two half sets of images agree about, and coordinates of particles."""
    name = "principal volumes"
    report = partial(stages.report, name)
    rng = np.random.default_rng(seed)
    with stages.timed(name), one_blas_thread():
        search = partial(_search, transforms, rng, report, workers)
        volumes, agreement, chance = stages.once("volumes", search)
        report(0.8)
        mapped = partial(
            stages.pieces, name, workers=workers, report=lambda done: report(0.8 + 0.2 * done)
        )
        mean, covariance, sums = map_likelihoods(_describe, transforms, volumes, mapped=mapped)
        # The best visible first.
        information, axes = np.linalg.eigh(sums.sum(axis=0) / len(mean))
        information, axes = information[::-1], axes[:, ::-1]
        single = axes.astype(np.float32)
        return PrincipalVolumes(
            volumes=np.concatenate([volumes[:1], axes.T @ volumes[1:]]),
            coordinates=mean @ axes,
            covariance=single.T @ covariance @ single,
            information=information,
            agreement=agreement,
            chance=chance,
        )


def _search(
    transforms: Transforms,
    rng: np.random.Generator,
    report: Callable[[float], None],
    workers: Workers,
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the volumes that two half sets agree about, how far they do, and would by chance."""
    drawn = rng.permutation(len(transforms))
    # Some thousand images, symmetry mates included, show the motions of a molecule.
    size = min(6000 // len(transforms.mates), len(drawn) // 2)
    sides = drawn[::2], drawn[1::2]
    halves = [transforms[np.sort(side[:size])].with_mates() for side in sides]
    jobs = [(half, rng.standard_normal((len(half), MAX_RANK))) for half in halves]
    found = list(workers.map(_from_random, jobs))
    report(0.4)
    agreement, chance, mixing = _compare_halves(found, transforms)
    # If the best volumes agree so little, more rounds find further ones: of 8,000 images at a
    # signal to noise of .02, the third and fourth rose from .17, .12 to .27, .23.
    if agreement[0] < 0.8:
        # Of weak motions, more images tell.
        more = IMAGES_COMPARED // (2 * len(transforms.mates))
        halves = [transforms[np.sort(side[:more])].with_mates() for side in sides]
        again = [(volumes, half, N_ROUNDS) for volumes, half in zip(found, halves, strict=True)]
        found = list(workers.map(_maximise, again))
        agreement, chance, mixing = _compare_halves(found, transforms)
    report(0.6)
    rank, first = int((agreement > least_agreement(chance)).sum()), found[0]
    volumes = np.concatenate([first[:1], mixing[:rank] @ first[1:]])
    if rank:
        learned = np.sort(drawn[: 20_000 // len(transforms.mates)])
        images = transforms[learned].with_mates()
        # The strongest volumes are found in three rounds.
        volumes = _maximise(volumes, images, 3, workers)
    return volumes, agreement, chance


def _compare_halves(
    halves: Sequence[np.ndarray], transforms: Transforms
) -> tuple[np.ndarray, float, np.ndarray]:
    """Return how far volumes of half sets agree, how far by chance, and mixing of the first."""
    # Errors of poses move the whole molecule, and contrasts differ; that is not a motion.
    grid = transforms.grid
    first, second = (without_nuisances(each, grid) for each in halves)
    agreement, mixing = compare_spaces(first, second)
    back, clear, chance = compare_spaces(second, first)[1], -1, 1.0
    while clear < (rank := int((agreement > least_agreement(chance)).sum())) < len(agreement):
        # What agrees would also agree a little if it were turned: only the rest shows chance.
        clear = rank
        rest = np.concatenate([first[:1], mixing[clear:] @ first[1:]])
        other = np.concatenate([second[:1], back[clear:] @ second[1:]])
        chance = by_chance(rest, other, grid, transforms.mates)
    return agreement, chance, mixing


def by_chance(
    first: np.ndarray, second: np.ndarray, grid: VolumeGrid, mates: np.ndarray = np.eye(3)[None]
) -> float:
    """Return the highest correlation that spaces of such volumes have if one is turned at random.

    A turn keeps the size of noise at each resolution, but nothing that half sets have in common.
    The 23 turns of a cube need no interpolation; symmetries (`mates`) of the molecule are left out.
    """
    cubes = second.reshape(-1, *3 * (grid.side,))
    highest = []
    for turn in Rotation.create_group("O").as_matrix().round():
        if not np.isclose(mates, turn, atol=0.1).all(axis=(1, 2)).any():
            axes = np.abs(turn).argmax(axis=1)
            flips = tuple((1 + np.flatnonzero(turn.sum(axis=1) < 0)).tolist())
            turned = np.flip(cubes.transpose(0, *(1 + axes)), flips).reshape(second.shape)
            highest.append(compare_spaces(first, turned)[0][0])
    # All turns of a cube are symmetries of an octahedral molecule.
    return float(np.median(highest)) if highest else 0.25


def _from_random(transforms: Transforms, coordinates: np.ndarray) -> np.ndarray:
    """Return volumes after some rounds, starting from random coordinates."""
    start = FeatureMoments.known(np.column_stack([np.ones(len(transforms)), coordinates]))
    with one_blas_thread():
        return _maximise(volumes_from(transforms, start), transforms, N_ROUNDS)


def _maximise(
    volumes: np.ndarray, transforms: Transforms, rounds: int, workers: Workers = Here()
) -> np.ndarray:
    """Return volumes of higher likelihood, by expectation maximisation."""
    for _ in range(rounds):
        mean, covariance = map_likelihoods(coordinates_of, transforms, volumes, mapped=workers.map)
        features = FeatureMoments.known(np.column_stack([np.ones(len(mean)), mean]))
        features.products[:, 1:, 1:] += covariance
        volumes = volumes_from(transforms, features, workers)
        # For the new volumes coordinates are centred and of unit covariance. What they have in
        # common would look like a motion in which all particles have the same place.
        spread = np.cov(mean, rowvar=False, bias=True) + covariance.mean(axis=0)
        principal = np.linalg.cholesky(np.atleast_2d(spread)).T @ volumes[1:]
        volumes = np.concatenate([volumes[:1] + mean.mean(axis=0) @ volumes[1:], principal])
    return volumes


def coordinates_of(terms: GaussianLikelihood) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and covariance of standard normal coordinates, given images."""
    # The mean volume has the coordinate 1.
    seen = terms.linear[:, 1:] - terms.precision[:, 1:, 0]
    inner = terms.precision[:, 1:, 1:]
    return GaussianLikelihood(seen, inner).posterior(np.eye(inner.shape[1]))


def compare_spaces(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return agreement of the spaces of principal volumes, (rank,), and mixing of the first."""
    ours, yours = first[1:], second[1:]
    # Volumes are real, so products of their transforms are, too.
    mine, theirs = (np.linalg.cholesky((each @ each.conj().T).real) for each in (ours, yours))
    products = (ours @ yours.conj().T).real
    whitened = np.linalg.solve(mine, np.linalg.solve(theirs, products.T).T)
    turned, agreement, _ = np.linalg.svd(whitened)
    # The scale stays that of coordinates of unit variance.
    scale = np.sqrt(np.mean(mine.diagonal() ** 2))
    return agreement, scale * np.linalg.solve(mine.T, turned).T


def _describe(terms: GaussianLikelihood) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return mean and covariance of coordinates, and their information in all."""
    mean, covariance = coordinates_of(terms)
    # The largest array of all: a deviation needs no more digits.
    information = terms.precision[:, 1:, 1:].sum(axis=0, keepdims=True)
    return mean, covariance.astype(np.float32), information


# Changes of images that are not a motion: errors of poses, and contrast.


def nuisances(volume: np.ndarray, grid: VolumeGrid) -> np.ndarray:
    """Return how a volume changes with pose and contrast, (10, grid.size).

    The first six are shifts along and rotations about each axis.
    """
    cube = volume.reshape(3 * (grid.side,))
    frequency = np.stack(np.meshgrid(*3 * (grid.axis,), indexing="ij"))
    # A shift multiplies by a phase; a rotation moves along circles about the axis.
    shifts = 1j * frequency * cube
    rotations = np.cross(frequency, np.stack(np.gradient(cube)), axis=0)
    rigid = np.concatenate([shifts, rotations]).reshape(6, -1) * grid.inside
    relative = (sum(frequency**2) / grid.cut**2).ravel()
    return np.concatenate([rigid, [volume * relative**power for power in range(4)]])


def without_nuisances(volumes: np.ndarray, grid: VolumeGrid) -> np.ndarray:
    """Return the mean volume, and the others less what changes the mean as a whole."""
    mean, others = volumes[0], volumes[1:]
    changes = nuisances(mean, grid)
    changes /= np.linalg.norm(changes, axis=1, keepdims=True)
    products = (changes @ changes.conj().T).real
    along = (changes @ others.conj().T).real
    shares = np.linalg.lstsq(products, along, rcond=None)[0]
    return np.concatenate([volumes[:1], others - shares.T @ changes])
