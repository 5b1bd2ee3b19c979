"""What report and explorer show of particles of all views.

That is the molecule along the factors, the images seen from about one direction, which are averaged
along each factor, and volumes that another program, such as cryoDRGN, computed along a factor.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.spatial import KDTree

from manifactor._support.errors import first_sentence, one_line
from manifactor._support.files import require_regular_file
from manifactor._support.parameters import require_number
from manifactor._support.stages import Stages
from manifactor._support.values import bad_values
from manifactor.cryoem.all_views.model import angles_of
from manifactor.cryoem.all_views.volumes import RunMotions, has_all_views, known_motions, rotation
from manifactor.cryoem.components import ball_values, projection
from manifactor.cryoem.directions import (
    Cone,
    counts_within,
    known_directions,
    picked,
    populated_views,
)
from manifactor.cryoem.files.particles import view_directions
from manifactor.cryoem.files.stacks import volume_series
from manifactor.estimators import ManifoldFactorizer
from manifactor.runs.matching import unrolled
from manifactor.runs.places import Place, bin_labels
from manifactor.runs.run import Run
from manifactor.tables.files import read_samples

# Degrees around a direction, the narrowest first: the first at which there are enough images is
# taken. Images more than 30 degrees off show another view.
WIDTHS = (10.0, 15.0, 20.0, 30.0)
ENOUGH = 150
# Written by `manifactor export --to cryodrgn` beside the folder of volumes, and by `cryodrgn
# analyze` into it: the point that each volume was decoded from.
POINTS = "z_values.txt"
# Volumes of a series: more are a mistake, and fill the memory.
MOST = 500


def given_cone(directions: np.ndarray, view: tuple[float, float], width: float | None) -> Cone:
    """Return the images around a view; without a width, enough of them.

    Shapes: directions (n, 3).
    """
    cosines = np.abs(directions @ view_directions(np.array([view]))[0])
    # Rounding must not drop an image at exactly this angle.
    return _widened(
        lambda angle: Cone(*view, angle, int((cosines >= np.cos(np.radians(angle)) - 1e-12).sum())),
        width,
    )


def choose_cone(
    directions: np.ndarray, motions: RunMotions | None, motion: int, *, width: float | None = None
) -> Cone:
    """Return a well populated direction that shows a motion best.

    Shapes: directions (n, 3).
    """
    # A view and the one from behind are one.
    both = np.concatenate([directions, -directions])
    if motions is None:
        return _widened(lambda angle: populated_views(both, width=angle, n_views=1)[0], width)
    tree, views = KDTree(both), motions.model.views
    angles = angles_of(views.directions)
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
    """Read a folder of volumes, and find their coordinates on a factor.

    If the points are known from which the volumes were decoded, a volume has the coordinate of the
    nearest sample. Otherwise volumes are taken as evenly spaced.
    """
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
    path = next(
        (each / POINTS for each in (folder, folder.parent) if (each / POINTS).exists()), None
    )
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
        return max(lines, key=lambda number: _spread(run.place(number)[points]))
    if len(lines) > 1:
        raise ValueError(
            "volumes without z_values.txt lie along one factor; the run has "
            f"{len(lines)}. Say which with --volumes-along, one of {lines}."
        )
    return lines[0]


def _spread(place: Place) -> float:
    """Return the extent of coordinates, as a share of the whole factor."""
    turn = 360 if place.topology == "circle" else 1
    return float(np.ptp(unrolled(place))) / turn


# What is shown of a run.


@dataclass(frozen=True)
class Wanted:
    """What a user asked to see."""

    # Degrees; None for the direction that shows each factor best
    view: tuple[float, float] | None = None
    # Degrees around it in which images are averaged; None for enough of them
    width: float | None = None
    volumes: GivenVolumes | None = None  # of another program, along a factor

    def check(self, run: Run) -> None:
        """Refuse what a run cannot show, before anything is computed."""
        if self.width is not None:
            require_number("width", self.width, above=0, high=90)
        directed = self.view is not None or self.width is not None
        if directed and self.volumes is None and not has_all_views(run):
            raise ValueError(
                "--view and --width choose among particles of all views; "
                f"{run.folder} has none. Leave them out."
            )


@dataclass(frozen=True)
class Shown:
    """What is shown of particles of all views; nothing of other runs."""

    motions: RunMotions | None = None  # the molecule along the factors
    # The images that are averaged along each factor; empty if all show one view
    cones: tuple[Cone, ...] = ()
    why: str = ""  # why there is no molecule, if it could not be computed
    wanted: Wanted = Wanted()  # what the user asked to see

    @property
    def volumes(self) -> GivenVolumes | None:
        """Volumes of another program."""
        return self.wanted.volumes

    def view(self, motion: int) -> tuple[float, float] | None:
        """Return the direction that shows a factor, counted from 0; None for the best one."""
        return self.cones[motion].view if self.cones else self.wanted.view


def open_shown(
    run: Run, fit: ManifoldFactorizer, wanted: Wanted = Wanted(), *, stages: Stages | None = None
) -> Shown:
    """Return what is to be shown of a run, computed from images if necessary."""
    motions, why = None, ""
    try:
        motions = known_motions(run, fit, stages=stages)
    except (ValueError, OSError) as error:
        why = one_line(error)
    return Shown(motions, _cones(run, motions, wanted), why, wanted)


def _cones(run: Run, motions: RunMotions | None, wanted: Wanted) -> tuple[Cone, ...]:
    try:
        if not has_all_views(run):
            return ()
        directions = known_directions(run.particles)
    except (ValueError, OSError):  # the page says what is wrong with the particles
        return ()
    if wanted.view is None:
        return tuple(
            choose_cone(directions, motions, motion, width=wanted.width)
            for motion in range(len(run.places))
        )
    cone = given_cone(directions, wanted.view, wanted.width)
    # Refuses a view that shows nothing.
    picked(run.particles, cone.view, cone.width, or_opposite=True)
    return (cone,) * len(run.places)
