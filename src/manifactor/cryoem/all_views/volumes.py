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
from manifactor.cryoem.averages import Averages, binned, require_memory
from manifactor.cryoem.directions import is_one_view
from manifactor.cryoem.files.formats import ParticleChoice
from manifactor.cryoem.files.particles import euler_matrices
from manifactor.estimators import ManifoldFactorizer
from manifactor.factors.factor import Factor
from manifactor.runs.archive import read_tree, write_tree
from manifactor.runs.matching import match
from manifactor.runs.places import Place, bin_labels
from manifactor.runs.run import Run, places_along

MODEL_FILE = "motions.npz"


@dataclass(frozen=True)
class Scale:
    """A factor's coordinate against the places that volumes are functions of.

    Those of an interval or a circle are in [0, 1]; along another program's coordinates they are
    spread evenly. On a factor of more dimensions they are its embedding, or the first part of it.
    """

    topology: str
    middle: np.ndarray  # (d,): the place in the middle
    # (2, n): even places and their coordinates, both ascending; of three turns of a circle
    known: np.ndarray

    def coordinates(self, even: np.ndarray) -> np.ndarray:
        """Return the coordinates of even places, beyond 0 and 2 pi on a circle."""
        return np.interp(even, *self.known)

    def even_places(self, coordinates: np.ndarray) -> np.ndarray:
        """Return the even places of coordinates."""
        found = np.interp(coordinates, *self.known[::-1])
        return found % 1 if self.topology == "circle" else found

    def places_at(self, displayed: np.ndarray) -> np.ndarray:
        """Return the places of coordinates as people read them, or of a point of an embedding."""
        if self.topology == "other":
            return displayed[: len(self.middle)]
        return self.even_places(Place.from_displayed(displayed, self.topology).coordinate)

    def columns(self, place: Place) -> np.ndarray:
        """Return the places of samples as columns, (n, d)."""
        if self.topology == "other":
            return place.coordinate[:, : len(self.middle)]
        return self.even_places(place.coordinate)[:, None]


def scale_of(factor: Factor, reached: np.ndarray | None = None) -> Scale:
    """Return the scale of a factor, from the samples fitted.

    Shapes: reached (n_levels,).
    """
    if factor.coordinate is None:
        # Eight columns of a shape of more dimensions: the cost grows with the square of the
        # features, and the first functions are the coarsest.
        return Scale("other", factor.embedding.mean(axis=0)[:8], np.zeros((2, 0)))
    coordinate = np.sort(np.asarray(factor.coordinate))
    even = even_places(coordinate)
    if reached is not None and factor.topology == "interval":
        even = np.interp(even, np.linspace(0, 1, len(reached)), reached)
    known = np.stack([even, coordinate])
    if factor.topology == "circle":
        turn = np.array([[1], [2 * np.pi]])
        known = np.hstack([known - turn, known, known + turn])
    return Scale(factor.topology, np.array([0.5]), known)


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
        places = [scale.places_at(np.array(value, float, ndmin=1)) for scale, value in pairs]
        return self.model.images(np.concatenate(places), rotation(view), size=size)[0]

    def along(
        self, motion: int, *, count: int, size: int, view: tuple[float, float] | None = None
    ) -> ImagesAlong:
        """Return mean images along a motion, the others in their middle."""
        view = self.best_view(motion) if view is None else view
        scale = self.scales[motion]
        centres = bin_labels(np.zeros(0), scale.topology, n_bins=count)[1]
        places = Place.from_displayed(centres, scale.topology)
        states = self._with([motion], scale.columns(places))
        images = [self.model.images(state, rotation(view), size=size)[0] for state in states]
        return ImagesAlong(np.stack(images), places, view)

    def volumes(self, motions: Sequence[int], at: Sequence[np.ndarray]) -> np.ndarray:
        """Return volumes, (n, z, y, x), on the grid of some motions, the others in their middle."""
        even = [self.scales[k].places_at(along) for k, along in zip(motions, at, strict=True)]
        grid = np.stack(np.meshgrid(*even, indexing="ij"), -1)
        places = self._with(motions, grid.reshape(-1, len(motions)))
        found = [self.model.density(place) for place in places]
        return np.stack(found).astype(np.float32)

    def _with(self, motions: Sequence[int], values: np.ndarray) -> np.ndarray:
        """Return places with these columns on some motions, the others in the middle.

        In a model that is a sum over motions, the mean of a surface is as good as any place on it.
        """
        middles = [scale.middle for scale in self.scales]
        starts = np.cumsum([0, *map(len, middles)])
        places = np.tile(np.concatenate(middles), (len(values), 1))
        places[:, starts[list(motions)]] = values
        return places

    def best_view(self, motion: int) -> tuple[float, float]:
        """Return rot and tilt, whole degrees, of the populated cell that shows a motion best."""
        views = self.model.views
        deviations = np.where(views.populated, views.deviations[:, motion], np.inf)
        return angles_of(views.directions[[deviations.argmin()]])[0]


def rotation(view: tuple[float, float]) -> np.ndarray:
    """Return the rotation of a view, (1, 3, 3), without a turn in its plane."""
    return euler_matrices([[*view, 0.0]])


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
    own = is_of_all_views(run.record)
    if own and model.quantiles is None:
        scales = tuple(map(scale_of_places, model.motions.topologies))
    else:
        scales = scales_of(fit, quantiles=model.quantiles)
    return RunMotions(model, scales, not own)


def scales_of(fit: ManifoldFactorizer, *, quantiles: np.ndarray | None = None) -> tuple[Scale, ...]:
    """Return the scale of every factor.

    Shapes: quantiles (n_factors, n_levels).
    """
    reached = len(fit.factors_) * [None] if quantiles is None else quantiles
    return tuple(map(scale_of, fit.factors_, reached))


def scale_of_places(topology: str) -> Scale:
    """Return the scale of a motion whose coordinates are the places themselves."""
    known = np.array([[0.0, 1.0], [0.0, 1.0]])
    if topology == "circle":
        known = np.array([[-1.0, 2.0], [-2 * np.pi, 4 * np.pi]])
    return Scale(topology, np.array([0.5]), known)


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
    """Return whether volumes along factors of particles of all views are still to be computed."""
    if (run.folder / MODEL_FILE).exists() or is_of_all_views(run.record):
        return False
    try:
        return has_all_views(run)
    except (ValueError, OSError):
        # Particles that cannot be read are reported where they are averaged.
        return False


def volumes_notice(run: Run) -> str:
    """Return that volumes are still to be computed, which takes a while; "" if they are not."""
    if not needs_volumes(run):
        return ""
    return (
        "volumes along the factors are computed from the images, once, and kept in "
        f"{run.folder / MODEL_FILE}."
    )


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
    source = ParticleChoice.of_run(run.record).images(particles)
    how: dict[str, Any] = {"rng": rng, "workers": workers}
    grid = transform_grid(source, particles)
    transforms = read_transforms(source, particles, grid, stages=stages, **how)
    pairs = zip(scales, run.places, strict=True)
    with stages.timed("volumes"):
        model = model_of_places(
            transforms,
            [scale.topology for scale in scales],
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


def volumes_along(
    run: Run, motions: RunMotions, factors: Sequence[int], *, n_bins: int
) -> Averages:
    """Return volumes along one motion or two, the others in their middle.

    They are of the model that all particles together gave, at the centres of the bins; the counts
    are those of the particles of each bin.
    """
    places = places_along(run, factors)
    labels, centres = binned(places, n_bins)
    require_memory(n_bins ** len(places), 3 * (motions.model.side,))
    at = centres
    if [place.topology for place in places] == ["interval"]:
        # Of two states, particles crowd at the ends: the centre of a bin lies beside them.
        bins = (places[0].displayed[labels == k] for k in range(n_bins))
        pairs = zip(bins, centres[0], strict=True)
        at = (np.array([np.median(own) if len(own) else centre for own, centre in pairs]),)
    return Averages(
        means=motions.volumes([factor - 1 for factor in factors], at),
        centres=centres,
        places=places,
        matching=match(labels, [], n_bins=n_bins ** len(places)),
        pixel_size=motions.model.voxel_size,
        of_model=True,
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
