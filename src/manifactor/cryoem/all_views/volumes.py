"""What is shown of particles of all views.

The molecule of a run at any place on its motions, and volumes along them; images seen from about
one direction; volumes that another program, such as cryoDRGN, computed along a factor.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial import KDTree

from manifactor._support.errors import first_sentence
from manifactor._support.files import require_regular_file
from manifactor._support.stages import Stages
from manifactor._support.values import bad_values
from manifactor._support.workers import Here, Workers
from manifactor.cryoem.all_views.model import MotionModel, angles_of, counted_views, model_of_places
from manifactor.cryoem.all_views.placing import even_places
from manifactor.cryoem.all_views.transforms import read_transforms, transform_grid
from manifactor.cryoem.averages import Averages, binned, require_memory
from manifactor.cryoem.components import ball_values, projection
from manifactor.cryoem.directions import (
    Cone,
    counts_within,
    in_view,
    is_one_view,
    known_directions,
    populated_views,
)
from manifactor.cryoem.files.formats import ParticleChoice
from manifactor.cryoem.files.particles import euler_matrices, view_directions
from manifactor.cryoem.files.stacks import volume_series
from manifactor.estimators import ManifoldFactorizer
from manifactor.factors.factor import Factor
from manifactor.runs.archive import read_tree, write_tree
from manifactor.runs.places import Place, bin_labels, match, unrolled
from manifactor.runs.run import Run, places_along
from manifactor.tables.files import read_samples

MODEL_FILE = "motions.npz"
# Degrees around a direction, the narrowest first: the first at which there are enough images is
# taken. Images more than 30 degrees off show another view.
WIDTHS = (10.0, 15.0, 20.0, 30.0)
ENOUGH = 150
# Volumes of a series: more are a mistake, and fill the memory.
MOST = 500


@dataclass(frozen=True)
class Scale:
    """A factor's coordinate against the places that volumes are functions of.

    Even places in [0, 1] of an interval or a circle, columns of the embedding of any other shape.
    """

    topology: str
    middle: np.ndarray  # (d,): the place in the middle
    # (2, n): even places and their coordinates, both ascending; of three turns of a circle
    known: np.ndarray

    def places_at(self, displayed: np.ndarray) -> np.ndarray:
        """Return the places of coordinates as people read them, or of a point of an embedding."""
        if self.topology == "other":
            return displayed[: len(self.middle)]
        return self.columns(Place.from_displayed(displayed, self.topology))[:, 0]

    def columns(self, place: Place) -> np.ndarray:
        """Return the places of samples as columns, (n, d)."""
        if self.topology == "other":
            return place.coordinate[:, : len(self.middle)]
        even = np.interp(place.coordinate, *self.known[::-1])[:, None]
        return even % 1 if self.topology == "circle" else even


def scale_of(factor: Factor) -> Scale:
    """Return the scale of a factor, from the samples fitted."""
    if factor.coordinate is None:
        # Eight columns of a shape of more dimensions: the cost grows with the square of the
        # features, and the first functions are the coarsest.
        return Scale("other", factor.embedding.mean(axis=0)[:8], np.zeros((2, 0)))
    coordinate = np.sort(np.asarray(factor.coordinate))
    known = np.stack([even_places(coordinate), coordinate])
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
    # Whether another program told the places: deviations are those that a single image would leave
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
        """Return places with these columns on some motions, the others in the middle."""
        middles = [scale.middle for scale in self.scales]
        starts = np.cumsum([0, *map(len, middles)])
        places = np.tile(np.concatenate(middles), (len(values), 1))
        places[:, starts[list(motions)]] = values
        return places

    def best_view(self, motion: int) -> tuple[float, float]:
        """Return rot and tilt, whole degrees, of the populated cell that shows a motion best."""
        views = self.model.views
        deviations = np.where(views.populated, views.deviations[:, motion], np.inf)
        return angles_of(views.cells.centres[[deviations.argmin()]])[0]


def rotation(view: tuple[float, float]) -> np.ndarray:
    """Return the rotation of a view, (1, 3, 3), without a turn in its plane."""
    return euler_matrices([[*view, 0.0]])


def open_motions(run: Run, fit: ManifoldFactorizer) -> RunMotions | None:
    """Return the motions that the folder of a run has, if any."""
    path = run.folder / MODEL_FILE
    if not path.exists():
        return None
    model = read_tree(path, MotionModel)
    if len(model.motions.topologies) != len(fit.factors_):
        raise ValueError(
            f"{path} must have the {len(fit.factors_)} factors of the run; it has "
            f"{len(model.motions.topologies)}. Fit again."
        )
    own = "all_views" in run.record
    scales = map(_scale_of_places if own else scale_of, fit.factors_)
    return RunMotions(model, tuple(scales), not own)


def _scale_of_places(factor: Factor) -> Scale:
    """Return the scale of a factor whose coordinates are the places themselves."""
    known = np.array([[0.0, 1.0], [0.0, 1.0]])
    if factor.topology == "circle":
        known = np.array([[-1.0, 2.0], [-2 * np.pi, 4 * np.pi]])
    return Scale(factor.topology, np.array([0.5]), known)


def has_all_views(run: Run) -> bool:
    """Return whether a run's particles are seen from many directions."""
    if "particles" not in run.record or "components" in run.record:
        return False
    return not is_one_view(run.particles)


# The molecule along factors of another program's coordinates, computed when it is first shown.


def needs_volumes(run: Run) -> bool:
    """Return whether volumes along factors of particles of all views are still to be computed."""
    if (run.folder / MODEL_FILE).exists() or "all_views" in run.record:
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
    stages, scales = stages or Stages(), tuple(map(scale_of, fit.factors_))
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
    """Return volumes of the model at the centres of bins, the other motions in their middle."""
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


# Images seen from about one direction.


def given_cone(directions: np.ndarray, view: tuple[float, float], width: float | None) -> Cone:
    """Return the images around a view; without a width, enough of them."""
    cosines = np.abs(directions @ view_directions(np.array([view]))[0])
    # Rounding must not drop an image at exactly this angle.
    return _widened(
        lambda angle: Cone(*view, angle, int((cosines >= np.cos(np.radians(angle)) - 1e-12).sum())),
        width,
    )


def choose_cone(
    directions: np.ndarray, motions: RunMotions | None, motion: int, *, width: float | None = None
) -> Cone:
    """Return a well populated direction that shows a motion best."""
    # A view and the one from behind are one.
    both = np.concatenate([directions, -directions])
    if motions is None:
        return _widened(lambda angle: populated_views(both, width=angle, n_views=1)[0], width)
    tree, views = KDTree(both), motions.model.views
    angles = angles_of(views.cells.centres)
    centres = view_directions(np.array(angles))

    def best(width: float) -> Cone:
        counts = counts_within(tree, centres, width)
        # A direction must have half of the images of the fullest one.
        populated = counts >= 0.5 * counts.max()
        shown = np.where(populated, views.deviations[:, motion], np.inf)
        # The deviation of a cell without particles is not known.
        cell = int(np.nanargmin(shown))
        return Cone(*angles[cell], width, int(counts[cell]))

    return _widened(best, width)


def _widened(find: Callable[[float], Cone], width: float | None) -> Cone:
    """Return the cone of a width, or the first one with enough images."""
    for angle in WIDTHS if width is None else (width,):
        cone = find(angle)
        if cone.n_particles >= ENOUGH:
            break
    return cone


# Volumes of another program.


@dataclass(frozen=True)
class GivenVolumes:
    """A series of volumes along a factor."""

    folder: Path
    names: tuple[str, ...]  # of the files
    densities: np.ndarray  # (n, side, side, side): indexed by z, y, x
    width: float  # of the box, in Angstrom
    factor: int  # counted from 0
    place: Place  # of each volume on the factor, ascending

    def nearest(self, at: float) -> int:
        """Return the volume nearest to a displayed coordinate."""
        return int(self.place.apart(at).argmin())

    def image(self, number: int, view: tuple[float, float]) -> np.ndarray:
        """Return the projection of a volume in a direction, rot and tilt in degrees."""
        return projection(self.densities[number], rotation(view)[0])


def read_volumes(folder: Path | str, run: Run, *, factor: int | None = None) -> GivenVolumes:
    """Read a folder of volumes, and find their coordinates on a factor."""
    # A volume is at the sample nearest to the point that it was decoded from; without known points,
    # volumes are evenly spaced.
    folder = Path(folder)
    # The folder that the exported command of cryoDRGN writes.
    if (folder / "volumes").is_dir() and not any(folder.glob("*.mrc")):
        folder /= "volumes"
    if not folder.is_dir():
        raise ValueError(
            f"--volumes must be a folder of .mrc files; {folder} is not a folder. Run the "
            "command that manifactor export --to cryodrgn printed first."
        )
    source = volume_series(folder)
    if len(set(source.shape)) > 1 or min(source.shape) < 2:
        raise ValueError(
            f"the volumes of {folder} must be cubes; they have "
            f"{' x '.join(map(str, source.shape))} voxels."
        )
    if len(source) > MOST:
        raise ValueError(
            f"at most {MOST} volumes are shown along a factor; {folder} has "
            f"{len(source)}. Move the others to another folder."
        )
    points = _points(folder, run, len(source))
    number = _factor(run, factor, points)
    place = run.place(number)
    if points is None:
        # The centres of the bins that `export` takes its points from.
        centres = bin_labels(np.zeros(0), place.topology, n_bins=len(source))[1]
        place = Place.from_displayed(centres, place.topology)
    else:
        place = place[points]
    order = np.argsort(place.displayed, kind="stable")
    # Downsampled to 64 voxels, an image follows a slider in some 20 ms.
    values, ball = ball_values(source, 64)
    densities = np.zeros((len(source), *ball.shape), np.float32)
    densities[:, ball] = values[order]
    return GivenVolumes(
        folder,
        tuple(source.files[k].name for k in order),
        densities,
        source.pixel_size * source.shape[0],
        number - 1,
        place[order],
    )


def _points(folder: Path, run: Run, count: int) -> np.ndarray | None:
    """Return the sample nearest to the point of each volume; None if it is unknown."""
    # Written by `manifactor export --to cryodrgn` beside the folder, by `cryodrgn analyze` into it.
    paths = (place / "z_values.txt" for place in (folder, folder.parent))
    path = next(filter(Path.exists, paths), None)
    if path is None or not run.input.is_file() or run.input.suffix.lower() == ".cs":
        return None
    require_regular_file(path, "the points of the volumes")
    remedy = "Export and evaluate again, or move it away for volumes at even distances."
    try:
        points = np.loadtxt(path, ndmin=2)
    except ValueError as error:
        raise ValueError(
            f"{path} must have a line of numbers for each volume: {first_sentence(error)}. {remedy}"
        ) from error
    samples = np.asarray(read_samples(run.input), dtype=float)
    if len(samples) != len(run.rows):
        raise ValueError(
            f"{run.input} has {len(samples)} samples now and had {len(run.rows)}. Fit "
            f"again, or move {path} away for volumes at even distances."
        )
    if points.shape != (count, samples.shape[1]) or bad_values(points) is not None:
        raise ValueError(
            f"{path} must have a line of {samples.shape[1]} finite numbers for each of {count} "
            f"volumes; it has {len(points)} of {points.shape[1]}. {remedy}"
        )
    return KDTree(samples).query(points)[1]


def _factor(run: Run, factor: int | None, points: np.ndarray | None) -> int:
    """Return the factor, counted from 1, along which the volumes lie."""

    def spread(number: int) -> float:
        """Return the extent of the volumes' places, as a share of the whole factor."""
        place = run.place(number)[points]
        turn = 360 if place.topology == "circle" else 1
        return float(np.ptp(unrolled(place))) / turn

    lines = [i for i, place in enumerate(run.places, start=1) if place.topology != "other"]
    if factor is not None:
        run.place(factor)
    if not lines or factor not in (None, *lines):
        raise ValueError(
            "volumes are shown along an interval or a circle; those of this run are "
            f"factors {lines}. Choose one with --volumes-along, or leave --volumes out."
        )
    if factor is not None:
        return factor
    if points is not None:
        return max(lines, key=spread)
    if len(lines) > 1:
        raise ValueError(
            "volumes without z_values.txt lie along one factor; the run has "
            f"{len(lines)}. Say which with --volumes-along, one of {lines}."
        )
    return lines[0]


# What is shown of a run.


@dataclass(frozen=True)
class Wanted:
    """What a user asked to see."""

    view: tuple[float, float] | None = None  # degrees; None for the one that shows a factor best
    width: float | None = None  # degrees around it that are averaged; None for enough images
    volumes: GivenVolumes | None = None  # of another program, along a factor


@dataclass(frozen=True)
class Shown:
    """A run, and what is shown of particles of all views; nothing of other runs."""

    run: Run
    motions: RunMotions | None = None  # the molecule along the factors
    # The images that are averaged along each factor; empty if all show one view
    cones: tuple[Cone, ...] = ()
    why: str = ""  # why there is no molecule, if it could not be computed
    asked: Wanted = Wanted()

    def view(self, motion: int) -> tuple[float, float] | None:
        """Return the direction that shows a factor, counted from 0; None for the best one."""
        return self.cones[motion].view if self.cones else self.asked.view


def shown_cones(run: Run, motions: RunMotions | None, wanted: Wanted) -> tuple[Cone, ...]:
    """Return the images to average along each factor."""
    try:
        if not has_all_views(run):
            return ()
        directions = known_directions(run.particles)
    except (ValueError, OSError):  # the page says what is wrong with the particles
        return ()
    if wanted.view is None:
        choose = partial(choose_cone, directions, motions, width=wanted.width)
        return tuple(map(choose, range(len(run.places))))
    cone = given_cone(directions, wanted.view, wanted.width)
    # Refuses a view that shows nothing.
    in_view(run.particles, cone.view, cone.width, or_opposite=True)
    return (cone,) * len(run.places)
