"""The molecule of a run at any place on its motions, from any side, and volumes along them."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from manifactor._support.stages import Stages
from manifactor._support.workers import Here, Workers
from manifactor.cryoem.all_views.model import MotionModel, angles_of, counted_views, model_of_places
from manifactor.cryoem.all_views.placing import even_places
from manifactor.cryoem.all_views.transforms import read_transforms, transform_grid
from manifactor.cryoem.averages import Averages, binned, places_along
from manifactor.cryoem.files.particles import euler_matrices
from manifactor.cryoem.matching import match
from manifactor.estimators import ManifoldFactorizer
from manifactor.factoring.factor import Factor
from manifactor.runs.archive import read_tree, write_tree
from manifactor.runs.places import Place
from manifactor.runs.run import Run
from manifactor.tables.images import is_one_view

MODEL_FILE = "motions.npz"


@dataclass(frozen=True)
class EvenScale:
    """A factor's coordinate against places that are spread evenly over [0, 1]."""

    even: np.ndarray  # (n,), as the coordinate: both ascending; of three turns of a circle
    coordinate: np.ndarray
    topology: str
    middle = np.array([0.5])  # (1,): the place in the middle

    def coordinates(self, even: np.ndarray) -> np.ndarray:
        """Return the coordinates of even places, beyond 0 and 2 pi on a circle."""
        return np.interp(even, self.even, self.coordinate)

    def even_places(self, coordinates: np.ndarray) -> np.ndarray:
        """Return the even places of coordinates."""
        found = np.interp(coordinates, self.coordinate, self.even)
        return found % 1 if self.topology == "circle" else found

    def even_at(self, displayed: np.ndarray) -> np.ndarray:
        """Return the even places of coordinates as people read them."""
        return self.even_places(Place.from_displayed(displayed, self.topology).coordinate)

    def columns(self, place: Place) -> np.ndarray:
        """Return the places of samples as columns, (n, 1)."""
        return self.even_places(place.coordinate)[:, None]


@dataclass(frozen=True)
class EmbeddedScale:
    """Places on a factor of more dimensions: its embedding, or the first part of it."""

    middle: np.ndarray  # (d,): mean place
    topology: str = "other"

    def even_at(self, displayed: np.ndarray) -> np.ndarray:
        """Return the place of an embedding's coordinates."""
        return displayed[: len(self.middle)]

    def columns(self, place: Place) -> np.ndarray:
        """Return the places of samples as columns, (n, d)."""
        return place.coordinate[:, : len(self.middle)]


Scale = EvenScale | EmbeddedScale


def even_scale(factor: Factor, reached: np.ndarray | None = None) -> EvenScale:
    """Return the scale of an interval or a circle, from the samples fitted.

    Shapes: reached (n_levels,).
    """
    coordinate = np.sort(np.asarray(factor.coordinate))
    even = even_places(coordinate)
    if reached is not None and factor.topology == "interval":
        even = np.interp(even, np.linspace(0, 1, len(reached)), reached)
    if factor.topology == "circle":
        even = np.concatenate([even - 1, even, even + 1])
        turns = [coordinate - 2 * np.pi, coordinate, coordinate + 2 * np.pi]
        coordinate = np.concatenate(turns)
    return EvenScale(even, coordinate, factor.topology)


@dataclass(frozen=True)
class ImagesAlong:
    """Mean images of the molecule along one of its motions."""

    images: np.ndarray  # (n, size, size)
    places: Place  # on the motion
    view: tuple[float, float]  # rot and tilt in degrees


@dataclass(frozen=True)
class RunMotions:
    """The motions of a run, in the coordinates of its factors."""

    model: MotionModel
    scales: tuple[Scale, ...]  # one for each motion
    # Whether another program told the places: then deviations are those expected of a place that a
    # single image tells
    expected: bool = False

    def image(self, at: Sequence, view: tuple[float, float], *, size: int) -> np.ndarray:
        """Return the mean image at displayed coordinates, (size, size)."""
        pairs = zip(self.scales, at, strict=True)
        places = [scale.even_at(np.atleast_1d(np.asarray(value, float))) for scale, value in pairs]
        return self.model.images(np.concatenate(places), rotation(view), size=size)[0]

    def along(
        self, motion: int, *, count: int, size: int, view: tuple[float, float] | None = None
    ) -> ImagesAlong:
        """Return mean images along a motion, the others in their middle."""
        view = self.best_view(motion) if view is None else view
        scale = self._line(motion)
        circle = scale.topology == "circle"
        shares = (np.arange(count) + (0 if circle else 0.5)) / count
        coordinates = shares * 2 * np.pi if circle else shares
        places = self._with([motion], scale.even_places(coordinates)[:, None])
        images = [self.model.images(place, rotation(view), size=size)[0] for place in places]
        return ImagesAlong(np.stack(images), Place(coordinates, scale.topology), view)

    def volumes(self, motions: Sequence[int], at: Sequence[np.ndarray]) -> np.ndarray:
        """Return volumes on the grid of some motions, the others in their middle.

        Returns (n, z, y, x).
        """
        even = [self._line(k).even_at(along) for k, along in zip(motions, at, strict=True)]
        grid = np.stack(np.meshgrid(*even, indexing="ij"), -1)
        places = self._with(motions, grid.reshape(-1, len(motions)))
        found = [self.model.density(place) for place in places]
        return np.stack(found).astype(np.float32)

    def _line(self, motion: int) -> EvenScale:
        scale = self.scales[motion]
        assert isinstance(scale, EvenScale), "only an interval or a circle has a line"
        return scale

    def _with(self, motions: Sequence[int], values: np.ndarray) -> np.ndarray:
        """Return places with these columns on some motions, the others in the middle.

        In a model that is a sum over motions, the mean of a surface is as good as any place on it.
        """
        middles = [scale.middle for scale in self.scales]
        starts = np.cumsum([0, *map(len, middles)])
        places = np.tile(np.concatenate(middles), (len(values), 1))
        places[:, [starts[motion] for motion in motions]] = values
        return places

    def best_view(self, motion: int) -> tuple[float, float]:
        """Return rot and tilt, in whole degrees, of the view that shows a motion best.

        Only populated cells count.
        """
        views = self.model.views
        deviations = np.where(views.populated, views.deviations[:, motion], np.inf)
        return angles_of(views.directions[[deviations.argmin()]])[0]


def rotation(view: tuple[float, float]) -> np.ndarray:
    """Return the rotation of a view, (1, 3, 3), without a turn in its plane."""
    return euler_matrices(np.array([[*view, 0.0]]))


def open_motions(run: Run, fit: ManifoldFactorizer) -> RunMotions | None:
    """Return the motions of a run, as far as its folder has them.

    A run of all views has them if its factors are intervals and circles. For a run of another
    program's coordinates they are computed when they are first shown.
    """
    path = run.folder / MODEL_FILE
    if not path.exists():
        return None
    model = read_tree(path, MotionModel)
    if len(model.motions.topologies) != len(fit.factors_):
        raise ValueError(
            f"{path} must have the {len(fit.factors_)} factors of the run; it has "
            f"{len(model.motions.topologies)}. Fit again."
        )
    scales = scales_of(fit, quantiles=model.quantiles)
    return RunMotions(model, scales, not is_of_all_views(run.record))


def scales_of(fit: ManifoldFactorizer, *, quantiles: np.ndarray | None = None) -> tuple[Scale, ...]:
    """Return the scale of every factor.

    Shapes: quantiles (n_factors, n_levels).
    """
    reached = len(fit.factors_) * [None] if quantiles is None else quantiles
    # Eight columns of a shape of more dimensions: the cost grows with the square of the features,
    # and the first functions are the coarsest.
    return tuple(
        EmbeddedScale(factor.embedding.mean(axis=0)[:8])
        if factor.coordinate is None
        else even_scale(factor, own)
        for factor, own in zip(fit.factors_, reached, strict=True)
    )


def is_of_all_views(record: dict) -> bool:
    """Return whether run.json is that of particles of all views."""
    return "all_views" in record


def has_all_views(run: Run) -> bool:
    """Return whether a run's particles are seen from many directions."""
    if "particles" not in run.record or "components" in run.record:
        return False
    return not is_one_view(run.particles)


# The molecule along the factors of another program's coordinates.
#
# Such a run has places of particles of all views. Volumes along the factors are computed from
# images when they are first shown, and kept in the run folder.


def needs_volumes(run: Run) -> bool:
    """Return whether volumes along a run's factors are still to be computed.

    That is so for coordinates of particles of all views.
    """
    if (run.folder / MODEL_FILE).exists() or is_of_all_views(run.record):
        return False
    try:
        return has_all_views(run)
    except (ValueError, OSError):
        # Particles that cannot be read are reported where they are averaged.
        return False


def known_motions(
    run: Run, fit: ManifoldFactorizer, *, stages: Stages | None = None, workers: Workers = Here()
) -> RunMotions | None:
    """Return the motions of a run, computed from its images if there are none yet."""
    if not needs_volumes(run):
        return open_motions(run, fit)
    stages, scales = stages or Stages(), scales_of(fit)
    # Drawn, not the first: particles are often in an order. The same ones every time. More than
    # 30,000 are read for nothing, as the volumes are coarse.
    rng = np.random.default_rng(0)
    drawn = np.sort(rng.permutation(len(run.rows))[:30_000])
    particles = run.particles[drawn]
    source = run.choice.images(particles)
    how: dict[str, Any] = {"rng": rng, "workers": workers}
    grid = transform_grid(source, particles)
    transforms = read_transforms(source, particles, grid, stages=stages, **how)
    pairs = list(zip(scales, run.places, strict=True))
    with stages.timed("volumes"):
        model = model_of_places(
            transforms,
            [scale.topology for scale, _ in pairs],
            [scale.columns(place[drawn]) for scale, place in pairs],
            report=partial(stages.report, "volumes"),
            **how,
        )
    # Directions of all particles, not only of those that were read.
    views = replace(model.views, counts=counted_views(run.particles).counts)
    model = replace(model, views=views)
    # In a folder that cannot be written, they are computed again each time.
    with suppress(OSError):
        write_tree(run.folder / MODEL_FILE, model)
    return RunMotions(model, scales, expected=True)


# Volumes along the motions of a run of all views.


@dataclass(frozen=True)
class ModelVolumes(Averages):
    """Volumes of the model of all particles, at the centres of bins of them."""

    @property
    def filled(self) -> np.ndarray:
        """All bins: a model has a volume everywhere."""
        return np.arange(len(self.means))

    def __str__(self) -> str:
        counts = self.matching.counts
        return (
            f"{len(counts)} volumes of the model that all {counts.sum()} particles "
            f"gave, at the centres of bins of {counts.min()} to {counts.max()} "
            "particles"
        )


def volumes_along(
    run: Run, motions: RunMotions, factors: Sequence[int], *, n_bins: int
) -> ModelVolumes:
    """Return volumes along one motion or two, the others in their middle.

    They are of the model that all particles together gave, at the centres of the bins; the counts
    are those of the particles of each bin.
    """
    places = places_along(run, factors)
    labels, centres = binned(places, n_bins)
    return ModelVolumes(
        means=motions.volumes([factor - 1 for factor in factors], centres),
        centres=centres,
        places=places,
        matching=match(labels, [], n_bins=n_bins ** len(places)),
        pixel_size=motions.model.voxel_size,
    )


def require_plain(*, matched: bool, halves: bool) -> None:
    """Refuse what means of images have and a model has not."""
    if matched or halves:
        option, why = (
            ("--match", "volumes of all views have the other factors held in their middle")
            if matched
            else ("--halves", "the volumes of all views are of all particles")
        )
        raise ValueError(
            f"{option} is for means of images; {why}. Leave it out, or give a --view ROT,TILT."
        )
