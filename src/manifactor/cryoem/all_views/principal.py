"""The mean volume and the principal volumes, in which all particles differ.

This is principal component analysis of volumes of which every image shows one slice:
an image is a slice of ``V_0 + sum_j z_j V_j`` with standard normal coordinates z.
Volumes and coordinates are found by expectation maximisation. All views share the
volumes, so that coordinates mean the same in all views.

References
----------
Tipping and Bishop, Probabilistic principal component analysis, 1999. Of cryo-EM images:
Tagare and others, Directly reconstructing principal components of heterogeneous
particles from cryo-EM images, 2015.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from manifactor._support.stages import Stages
from manifactor._support.threads import one_blas_thread
from manifactor._support.workers import Here, Workers
from manifactor.cryoem.all_views.regression import (
    Features,
    Likelihood,
    RegressionSettings,
    likelihood_jobs,
    likelihood_piece,
    map_likelihoods,
    volumes_from,
)
from manifactor.cryoem.all_views.slices import point_group
from manifactor.cryoem.all_views.transforms import Transforms, without_nuisances


@dataclass(frozen=True)
class PrincipalSettings:
    """Settings of `principal_volumes`."""

    regression: RegressionSettings = field(default_factory=RegressionSettings)
    # Volumes that are looked for at first: a circle shows in two or four, an interval in one to
    # three.
    max_rank: int = 10
    # Images of each half set that decides how many volumes there are, and of the final volumes,
    # symmetry mates included. Some thousand show the motions of a molecule.
    half_set: int = 6000
    learned: int = 20_000
    # Rounds of expectation maximisation, from random coordinates and from volumes of a half set:
    # the strongest volumes are found in three.
    rounds: int = 7
    final_rounds: int = 3
    # Least correlation of volumes of two half sets, as for maps.
    reproducible: float = 0.5


@dataclass(frozen=True)
class PrincipalVolumes:
    """Volumes in which particles differ, and the coordinates of all particles."""

    # (rank + 1, grid.size): the mean volume, then the principal ones, the best visible first
    volumes: np.ndarray
    coordinates: np.ndarray  # (n, rank)
    # (n, rank, rank): uncertainty of the coordinates. It depends on the view.
    covariance: np.ndarray
    information: np.ndarray  # (rank,): signal to noise of the coordinates, the mean of all images
    agreement: np.ndarray  # (max_rank,): correlations of volumes found in two half sets, descending

    @property
    def rank(self) -> int:
        """Number of principal volumes."""
        return len(self.information)


def principal_volumes(
    transforms: Transforms,
    *,
    rng: np.random.Generator,
    symmetry: str = "C1",
    report: Callable[[float], None] = lambda fraction: None,
    stages: Stages | None = None,
    key: str = "",
    workers: Workers = Here(),
    settings: PrincipalSettings = PrincipalSettings(),
) -> PrincipalVolumes:
    """Find the volumes in which particles differ, and the coordinates of each.

    The volumes are those that two half sets of images agree about.
    """
    stages = stages or Stages()

    def search() -> tuple[np.ndarray, np.ndarray]:
        return _searched(transforms, rng, symmetry, report, workers, settings)

    volumes, agreement = stages.recall("volumes", key, search)
    report(0.8)
    jobs = likelihood_jobs(_described, transforms, volumes, settings=settings.regression)
    found = stages.pieces(
        "principal volumes",
        key,
        likelihood_piece,
        jobs,
        workers=workers,
        report=lambda done: report(0.8 + 0.2 * done),
    )
    return _turned(volumes, agreement, found, len(transforms))


def _searched(
    transforms: Transforms,
    rng: np.random.Generator,
    symmetry: str,
    report: Callable[[float], None],
    workers: Workers,
    settings: PrincipalSettings,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the volumes that two half sets agree about, and how far they do."""
    mates = point_group(symmetry)
    drawn = rng.permutation(len(transforms))
    size = min(settings.half_set // len(mates), len(drawn) // 2)
    halves = [
        transforms[rows].with_mates(mates)
        for rows in (np.sort(drawn[:size]), np.sort(drawn[size : 2 * size]))
    ]
    shapes = [(len(half), settings.max_rank) for half in halves]
    jobs = [
        (half, rng.standard_normal(shape), settings)
        for half, shape in zip(halves, shapes, strict=True)
    ]
    first, second = workers.map(_from_random, jobs)
    report(0.6)
    # Errors of poses move the whole molecule, and contrasts differ; that is no motion.
    agreement, mixing = compared_spaces(
        *(without_nuisances(volumes, transforms.grid) for volumes in (first, second))
    )
    rank = int((agreement > settings.reproducible).sum())
    volumes = np.concatenate([first[:1], mixing[:rank] @ first[1:]])
    if rank:
        learned = np.sort(drawn[: settings.learned // len(mates)])
        images = transforms[learned].with_mates(mates)
        volumes = _maximised(volumes, images, settings.final_rounds, workers, settings)
    return volumes, agreement


def _from_random(
    transforms: Transforms, coordinates: np.ndarray, settings: PrincipalSettings
) -> np.ndarray:
    """Return volumes after some rounds, starting from random coordinates."""
    constant = np.ones(len(transforms))
    start = Features.known(np.column_stack([constant, coordinates]))
    with one_blas_thread():
        volumes = volumes_from(transforms, start, settings=settings.regression)
        return _maximised(volumes, transforms, settings.rounds, Here(), settings)


def _maximised(
    volumes: np.ndarray,
    transforms: Transforms,
    rounds: int,
    workers: Workers,
    settings: PrincipalSettings,
) -> np.ndarray:
    """Return volumes of higher likelihood, by expectation maximisation."""
    regression = settings.regression
    for _ in range(rounds):
        mean, covariance = map_likelihoods(
            coordinates_of, transforms, volumes, workers=workers, settings=regression
        )
        features = _features(mean, covariance)
        volumes = volumes_from(transforms, features, workers=workers, settings=regression)
        volumes = _normalised(volumes, mean, covariance)
    return volumes


def _normalised(volumes: np.ndarray, mean: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Return volumes for which the coordinates are centred and of unit covariance.

    What the coordinates have in common belongs to the mean volume; else a share of it would look
    like a motion in which all particles have the same place.
    """
    centre = mean.mean(axis=0)
    spread = np.cov(mean, rowvar=False, bias=True) + covariance.mean(axis=0)
    principal = np.linalg.cholesky(np.atleast_2d(spread)).T @ volumes[1:]
    return np.concatenate([volumes[:1] + centre @ volumes[1:], principal])


def coordinates_of(terms: Likelihood) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and covariance of standard normal coordinates, given images."""
    information = terms.quadratic[:, 1:, 1:]
    covariance = np.linalg.inv(information + np.eye(information.shape[1]))
    # The mean volume has the coordinate 1.
    seen = terms.linear[:, 1:] - terms.quadratic[:, 1:, 0]
    return (covariance @ seen[..., None])[..., 0], covariance


def _features(mean: np.ndarray, covariance: np.ndarray) -> Features:
    known = Features.known(np.column_stack([np.ones(len(mean)), mean]))
    products = known.products
    products[:, 1:, 1:] += covariance
    return Features(known.mean, products)


def compared_spaces(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Compare the spaces that principal volumes of two half sets span.

    Shapes: first, second (rank + 1, size) -> agreement (rank,), mixing (rank, rank).
    """
    ours, yours = first[1:], second[1:]
    # Volumes are real, so products of their transforms are, too.
    mine = np.linalg.cholesky((ours @ ours.conj().T).real)
    theirs = np.linalg.cholesky((yours @ yours.conj().T).real)
    products = (ours @ yours.conj().T).real
    whitened = np.linalg.solve(mine, np.linalg.solve(theirs, products.T).T)
    turned, agreement, _ = np.linalg.svd(whitened)
    # The scale stays that of coordinates of unit variance.
    scale = np.sqrt(np.mean(mine.diagonal() ** 2))
    return agreement, scale * np.linalg.solve(mine.T, turned).T


def _described(terms: Likelihood) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return mean and covariance of coordinates, and their information in all."""
    mean, covariance = coordinates_of(terms)
    # The largest array of all: a deviation needs no more digits.
    single = covariance.astype(np.float32)
    return mean, single, terms.quadratic[:, 1:, 1:].sum(axis=0, keepdims=True)


def _turned(
    volumes: np.ndarray,
    agreement: np.ndarray,
    found: Iterable[tuple[np.ndarray, np.ndarray, np.ndarray]],
    n_images: int,
) -> PrincipalVolumes:
    """Return volumes and coordinates of all images in order of their visibility."""
    means, covariances, sums = zip(*found, strict=True)
    total = np.concatenate(sums).sum(axis=0)
    information, axes = np.linalg.eigh(total / n_images)
    information, axes = information[::-1], axes[:, ::-1]
    single = axes.astype(np.float32)
    return PrincipalVolumes(
        volumes=np.concatenate([volumes[:1], axes.T @ volumes[1:]]),
        coordinates=np.concatenate(means) @ axes,
        covariance=np.concatenate([single.T @ part @ single for part in covariances]),
        information=information,
        agreement=agreement,
    )
