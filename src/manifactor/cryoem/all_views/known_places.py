"""Volumes of a molecule from images whose places on factors another program told.

Volumes are regressed on functions of the places. Two half sets of images give two sets of volumes:
what both have in common is what the images say about the places.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from manifactor._support.workers import Here, Workers
from manifactor.cryoem.all_views.model import MotionModel
from manifactor.cryoem.all_views.place_features import PlaceFeatures
from manifactor.cryoem.all_views.regression import Features, RegressionSettings, volumes_from
from manifactor.cryoem.all_views.slices import volume_correlation
from manifactor.cryoem.all_views.transforms import Transforms
from manifactor.cryoem.all_views.view_map import ViewMap, view_map
from manifactor.cryoem.particles import Particles, euler_matrices


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
