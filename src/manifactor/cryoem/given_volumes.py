"""Volumes that another program computed along a factor, such as cryoDRGN's."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.spatial import KDTree

from manifactor._support.errors import first_sentence
from manifactor._support.files import require_regular_file
from manifactor._support.values import bad_values
from manifactor.cryoem.all_views.volumes import rotation
from manifactor.cryoem.files.stacks import ImageSource, volume_series
from manifactor.cryoem.volumes import ball_of, downsampled, projection
from manifactor.runs.places import Place, bin_labels
from manifactor.runs.run import Run
from manifactor.tables.files import read_samples

# Written by `manifactor export --to cryodrgn` beside the folder of volumes, and by `cryodrgn
# analyze` into it: the point that each volume was decoded from.
POINTS = "z_values.txt"
# Volumes of a series: more are a mistake, and fill the memory.
MOST = 500


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
        apart = np.abs(self.place.displayed - at)
        if self.place.topology == "circle":
            apart = np.minimum(apart % 360, -apart % 360)
        return int(apart.argmin())

    def image(self, number: int, view: tuple[float, float]) -> np.ndarray:
        """Return the projection of a volume in a direction, rot and tilt in degrees."""
        return projection(self.densities[number], rotation(view)[0])


def read_volumes(folder: Path | str, run: Run, *, factor: int | None = None) -> GivenVolumes:
    """Read a folder of volumes, and find their coordinates on a factor.

    If the points are known from which the volumes were decoded, a volume has the coordinate of the
    nearest sample. Otherwise volumes are taken as evenly spaced.
    """
    folder = _folder_of_volumes(Path(folder))
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
    return GivenVolumes(
        folder,
        tuple(source.files[k].name for k in order),
        _densities(source)[order],
        source.pixel_size * source.shape[0],
        number - 1,
        place[order],
    )


def _folder_of_volumes(folder: Path) -> Path:
    # The folder that the exported command of cryoDRGN writes.
    inside = folder / "volumes"
    if inside.is_dir() and not any(folder.glob("*.mrc")):
        return inside
    if not folder.is_dir():
        raise ValueError(
            f"--volumes must be a folder of .mrc files; {folder} is not a folder. Run the "
            "command that manifactor export --to cryodrgn printed first."
        )
    return folder


def _densities(source: ImageSource) -> np.ndarray:
    # Downsampled to 64 voxels, an image follows a slider in some 20 ms.
    side = min(64, source.shape[0] // 2 * 2)
    ball = ball_of(side)
    found = np.empty((len(source), side, side, side), np.float32)
    for rows, volumes in source.blocks():
        for row, volume in zip(rows, volumes, strict=True):
            found[row] = downsampled(volume, side) * ball
    return found


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
    if place.topology == "interval":
        return float(np.ptp(place.coordinate))
    turn = np.sort(place.coordinate)
    gaps = np.diff([*turn, turn[0] + 2 * np.pi])
    return float(1 - gaps.max() / (2 * np.pi))
