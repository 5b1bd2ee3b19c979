"""Motions from images of all views, and the place of every particle on them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from manifactor._support.stages import Stages, fingerprint
from manifactor._support.threads import one_blas_thread
from manifactor._support.workers import Here, Workers
from manifactor.cryoem.all_views.motions import MOMENTS, Motions, MotionSettings
from manifactor.cryoem.all_views.placing import (
    Placed,
    PlacingSettings,
    even_places,
    place_particles,
)
from manifactor.cryoem.all_views.principal import (
    PrincipalSettings,
    PrincipalVolumes,
    principal_volumes,
)
from manifactor.cryoem.all_views.transforms import Transforms
from manifactor.estimators import ManifoldFactorizer


@dataclass(frozen=True)
class AllViewsSettings:
    """Settings of `factor_all_views`."""

    principal: PrincipalSettings = field(default_factory=PrincipalSettings)
    motions: MotionSettings = field(default_factory=MotionSettings)
    placing: PlacingSettings = field(default_factory=PlacingSettings)
    # Particles that are factored: those of the surest coordinates, whose views show all motions.
    # The others are placed.
    fitted_share: float = 0.4
    max_fitted: int = 6000


@dataclass(frozen=True)
class AllViews:
    """What was found in images of all views."""

    fit: ManifoldFactorizer  # fitted to the principal coordinates of some particles
    rows: np.ndarray  # these particles
    principal: PrincipalVolumes
    # All particles on the motions; None if a factor is no interval and no circle
    placed: Placed | None


def factor_all_views(
    transforms: Transforms,
    *,
    seed: int = 0,
    symmetry: str = "C1",
    parameters: Mapping | None = None,
    stages: Stages | None = None,
    workers: Workers = Here(),
    settings: AllViewsSettings = AllViewsSettings(),
) -> AllViews:
    """Find the independent motions of a molecule, and place all particles on them."""
    stages = stages or Stages()
    principal = _principal(transforms, seed, symmetry, stages, workers, settings)
    require_motion(principal)
    rows = surest(principal, settings)
    own = {"preparation": "none", "random_state": seed, "callback": stages.report}
    fit = ManifoldFactorizer(**{**(parameters or {}), **own})
    fit.fit(samples_of(principal)[rows])
    topologies = tuple(factor.topology for factor in fit.factors_)
    if not set(topologies) <= set(MOMENTS):
        return AllViews(fit, rows, principal, None)
    known = np.column_stack([even_places(found.coordinate) for found in fit.factors_])
    motions = Motions(topologies, settings.motions)
    given = transforms.fingerprint, motions, rows, known
    placed = place_particles(
        transforms,
        motions,
        rows,
        known,
        rng=np.random.default_rng(seed),
        symmetry=symmetry,
        stages=stages,
        key=fingerprint(*given, symmetry, seed, settings.placing),
        workers=workers,
        settings=settings.placing,
    )
    return AllViews(fit, rows, principal, placed)


def _principal(
    transforms: Transforms,
    seed: int,
    symmetry: str,
    stages: Stages,
    workers: Workers,
    settings: AllViewsSettings,
) -> PrincipalVolumes:
    key = fingerprint(transforms.fingerprint, symmetry, seed, settings.principal)

    def compute() -> PrincipalVolumes:
        return principal_volumes(
            transforms,
            rng=np.random.default_rng(seed),
            symmetry=symmetry,
            report=partial(stages.report, "principal volumes"),
            stages=stages,
            key=key,
            workers=workers,
            settings=settings.principal,
        )

    with stages.timed("principal volumes"), one_blas_thread():
        return stages.recall("principal volumes", key, compute)


def require_motion(principal: PrincipalVolumes) -> None:
    """Refuse images that show a rigid molecule."""
    if principal.rank:
        return
    best = principal.agreement.max()
    raise ValueError(
        "the images must show a motion; volumes from two half sets of them have "
        f"nothing in common but their mean (the highest correlation is {best:.2f}). "
        "The molecule is rigid, or its motion is below the noise. Add images, or check "
        "poses and pixel size."
    )


def samples_of(principal: PrincipalVolumes) -> np.ndarray:
    """Return principal coordinates in units of their noise, (n, rank)."""
    return principal.coordinates * np.sqrt(principal.information)


def surest(principal: PrincipalVolumes, settings: AllViewsSettings) -> np.ndarray:
    """Return the particles whose coordinates are known best, ascending."""
    variance = np.einsum("nii,i->n", principal.covariance, principal.information)
    count = int(settings.fitted_share * len(variance))
    count = min(max(count, 1), settings.max_fitted)
    return np.sort(np.argpartition(variance, count - 1)[:count])
