"""Bridges to programs that reconstruct volumes.

Each gives a program the points along a factor in its own coordinates, or weights, or
particles, with a command that is ready to run.
"""

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from scipy.spatial import KDTree

from manifactor.cryoem.cryosparc import npy_bytes
from manifactor.cryoem.formats import particles_with
from manifactor.inputs.files import read_samples
from manifactor.runs.bins import bin_labels
from manifactor.runs.matching import match
from manifactor.runs.places import Place, coordinate_columns
from manifactor.runs.run import Run


@dataclass(frozen=True)
class PointSettings:
    """Settings of `steady_samples`."""

    # Places on the other factors that are tried as the common one.
    n_candidates: int = 300

    # Samples near the common place, of which the one in the middle of its bin is taken.
    n_near: int = 5


@dataclass(frozen=True)
class _Bins:
    """A run in bins along one factor.

    Attributes
    ----------
    run : Run
    place : Place
        On the factor.
    others : list of Place
        On the other factors.
    labels : ndarray of shape (n,)
    centres : ndarray of shape (n_bins,)
    """

    run: Run
    place: Place
    others: list[Place]
    labels: np.ndarray
    centres: np.ndarray


def export(
    run: Run,
    factor: int,
    program: str,
    *,
    n_bins: int,
) -> dict[str, bytes]:
    """Return files, by name, that let a program reconstruct volumes along a factor.

    "commands.txt" says how to call it. The other factors are held still: points along
    the factor have one place on them, weights one distribution.
    """
    if program not in BRIDGES:
        raise ValueError(
            f"the program must be one of {', '.join(BRIDGES)}; got {program}."
        )
    place = run.place(factor)
    if place.topology == "other":
        raise ValueError(
            f"points go along intervals and circles; factor {factor} has more "
            "dimensions."
        )
    others = [other for i, other in enumerate(run.places, start=1) if i != factor]
    labels, centres = bin_labels(
        place.displayed,
        place.topology,
        n_bins=n_bins,
    )
    return BRIDGES[program](_Bins(run, place, others, labels, centres))


def _fitted_latents(run: Run) -> np.ndarray:
    """Return the coordinates that were fitted."""
    path = Path(run.record.get("input", ""))
    if path.suffix.lower() == ".cs":
        raise ValueError(
            "cryoSPARC makes its own volumes of these components: select particles to "
            ".cs and use it there."
        )
    if "components" in run.record or not path.is_file():
        raise ValueError(
            f"this needs the coordinates that the program itself found; {run.folder} "
            "was fitted to images or volumes. Fit its z file with --particles."
        )
    latents = read_samples(path)
    if len(latents) != len(run.rows):
        raise ValueError(
            f"{path} has {len(latents)} rows now and had {len(run.rows)} when fitted. "
            "Fit again."
        )
    return latents


def steady_samples(
    place: Place,
    others: Sequence[Place],
    labels: np.ndarray,
    centres: np.ndarray,
    *,
    settings: PointSettings = PointSettings(),
) -> np.ndarray:
    """Return one sample of each bin, all at about one place on the other factors.

    Empty bins have none. Points are samples themselves, so none is off the data. The
    common place is the one, of some drawn at random, that is nearest to all bins.
    """
    # Every sample is in a bin here, so the labels are the bins that are not empty.
    filled = np.unique(labels)
    bins = [np.flatnonzero(labels == k) for k in filled]
    if others:
        bins = _near_common_place(others, bins, settings)
    chosen = []
    for k, rows in zip(filled, bins, strict=True):
        distance = _distance_from(centres[k], place[rows])
        chosen.append(rows[distance.argmin()])
    return np.array(chosen)


def _near_common_place(
    others: Sequence[Place],
    bins: Sequence[np.ndarray],
    settings: PointSettings,
) -> list[np.ndarray]:
    """Return the rows of each bin nearest to one place on the other factors."""
    # In units of the standard deviation, so that no factor dominates the distance.
    features = np.column_stack(
        [other.features / other.features.std() for other in others]
    )
    trees = [KDTree(features[rows]) for rows in bins]
    # A fixed seed: the same command gives the same points.
    order = np.random.default_rng(0).permutation(len(features))
    candidates = features[order[: settings.n_candidates]]
    farthest = np.zeros(len(candidates))
    for rows, tree in zip(bins, trees, strict=True):
        # All the samples that are taken from a bin must lie near the place.
        last = min(settings.n_near, len(rows))
        distance = tree.query(candidates, [last])[0][:, 0]
        # The farthest bin decides.
        farthest = np.maximum(farthest, distance)
    common = candidates[farthest.argmin()]
    near = []
    for rows, tree in zip(bins, trees, strict=True):
        _, nearest = tree.query(common, min(settings.n_near, len(rows)))
        # For a single neighbour `query` returns a number instead of an array.
        near.append(rows[np.atleast_1d(nearest)])
    return near


def _distance_from(centre: float, place: Place) -> np.ndarray:
    """Return how far samples lie from the middle of their bin."""
    distance = np.abs(place.displayed - centre)
    if place.topology == "circle":
        # The shorter way round.
        return np.minimum(distance, 360 - distance)
    return distance


def _points(bins: _Bins, latents: np.ndarray) -> bytes:
    """Return the fitted coordinates of one sample in each bin, as text."""
    # A program decodes its own coordinates, not ours: a point is a sample's.
    rows = steady_samples(bins.place, bins.others, bins.labels, bins.centres)
    lines = []
    for point in latents[rows]:
        # Eight digits are what single precision has.
        lines.append(" ".join(f"{value:.8g}" for value in point) + "\n")
    return "".join(lines).encode()


def _cryodrgn(bins: _Bins) -> dict[str, bytes]:
    points = _points(bins, _fitted_latents(bins.run))
    commands = (
        "# volumes along the factor, with the model that gave the coordinates "
        "(weights.*.pkl and config.yaml of the\n"
        "# training folder):\n"
        "cryodrgn eval_vol TRAINING/weights.pkl -c TRAINING/config.yaml "
        "--zfile z_values.txt -o volumes\n"
    )
    return {"z_values.txt": points, "commands.txt": commands.encode()}


def _recovar(bins: _Bins) -> dict[str, bytes]:
    latents = _fitted_latents(bins.run)
    own = sorted(bins.run.folder.glob("particles.*"))
    # Capitals stand for what the user fills in.
    particles = own[0].resolve() if own else "PARTICLES.star"
    one_dimension = " --zdim1" if latents.shape[1] == 1 else ""
    commands = (
        "# volumes along the factor by kernel regression on these coordinates "
        "(poses.pkl and ctf.pkl as cryodrgn\n"
        "# parse_pose_star and parse_ctf_star write them, for the particles that were "
        "fitted):\n"
        f"recovar reconstruct_from_external_embedding {particles} --poses poses.pkl "
        "--ctf ctf.pkl \\\n"
        f"    --embedding embedding.pkl --target points.txt{one_dimension} -o volumes\n"
    )
    return {
        # What --embedding takes; a pickle is written here and never read.
        "embedding.pkl": pickle.dumps(latents.astype(np.float32)),
        "points.txt": _points(bins, latents),
        "commands.txt": commands.encode(),
    }


def _aspire(bins: _Bins) -> dict[str, bytes]:
    particles = str(bins.run.record.get("particles", "PARTICLES.star"))
    if not particles.endswith(".star"):
        raise ValueError(
            f"ASPIRE reads particles from STAR files; those of the run are "
            f"{particles}. Convert them first."
        )
    labels, n_bins = bins.labels, len(bins.centres)
    matching = match(labels, bins.others, n_bins=n_bins)
    weights = np.zeros((len(labels), n_bins), dtype=np.float32)
    # 1 on average in every bin, as in a reconstruction without weights.
    scaled = matching.weights * matching.counts[labels]
    weights[np.arange(len(labels)), labels] = scaled
    script = (
        "# weighted volumes along the factor, one for each column of weights.npy\n"
        "import numpy as np\n"
        "from aspire.basis import FFBBasis3D\n"
        "from aspire.reconstruction import WeightedVolumesEstimator\n"
        "from aspire.source import RelionSource\n\n"
        f"source = RelionSource({particles!r})[np.load('rows.npy')]\n"
        "weights = np.load('weights.npy')\n"
        "estimator = WeightedVolumesEstimator(weights, source, FFBBasis3D(source.L))\n"
        "estimator.estimate().save('volumes.mrc')\n"
    )
    return {
        "weights.npy": npy_bytes(weights),
        "rows.npy": npy_bytes(bins.run.rows),
        "aspire_volumes.py": script.encode(),
        "commands.txt": b"python aspire_volumes.py\n",
    }


def _particle_files(
    bins: _Bins,
    *,
    suffix: str,
    command: str,
) -> dict[str, bytes]:
    """Return a file of particles for each bin that has any."""
    particles = bins.run.particles
    if particles.path.suffix.lower() != suffix:
        raise ValueError(
            f"this program reads {suffix}; the run's particles are "
            f"{particles.path.name}."
        )
    files = {}
    commands = (
        "# one bin along the factor after the other; the other factors are as they "
        "are\n"
    )
    for k in np.unique(bins.labels):
        inside = np.flatnonzero(bins.labels == k)
        # From 1, as bins are counted in bins.csv.
        name = f"bin_{k + 1:02d}"
        places = [each[inside] for each in bins.run.places]
        columns = coordinate_columns(places, suffix)
        files[name + suffix] = particles_with(particles[inside], columns)
        centre = bins.centres[k]
        commands += command.format(name=name, n=len(inside), centre=centre)
    return {**files, "commands.txt": commands.encode()}


# What the user runs once the files are written; `centre` is in degrees on a circle.
RELION = (
    "relion_reconstruct --i {name}.star --o {name}.mrc --ctf   "
    "# {n} particles around {centre:.3g}\n"
)
CRYOSPARC = (
    "# {name}.cs: {n} particles around {centre:.3g}; import it as particles, then "
    "Homogeneous Reconstruction Only\n"
)

BRIDGES: dict[str, Callable[[_Bins], dict[str, bytes]]] = {
    "cryodrgn": _cryodrgn,
    "recovar": _recovar,
    "aspire": _aspire,
    "relion": partial(_particle_files, suffix=".star", command=RELION),
    "cryosparc": partial(_particle_files, suffix=".cs", command=CRYOSPARC),
}
