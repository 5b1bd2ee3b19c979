"""Bridges to programs that make volumes: points along a factor in their own coordinates, weights, ready commands."""

import pickle
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from scipy.spatial import KDTree

from manifactor.cryoem.cryosparc import npy_bytes
from manifactor.cryoem.formats import particles_with
from manifactor.inputs.files import read_samples
from manifactor.runs.bins import bin_labels, match
from manifactor.runs.places import Place, coordinate_columns
from manifactor.runs.task import Run

CANDIDATES = 300  # places on the other factors that are tried as the common one
NEAR = 5  # samples near it of which the one in the middle of its bin is taken


def export(run: Run, factor: int, program: str, *, n_bins: int) -> dict[str, bytes]:
    """Files, by name, that let a program make volumes along a factor; "commands.txt" says how to call it.

    The other factors are held still: points along the factor have one place on them, weights one distribution.
    """
    if program not in BRIDGES:
        raise ValueError(
            f"the program must be one of {', '.join(BRIDGES)}; got {program}."
        )
    place = run.place(factor)
    if place.topology == "other":
        raise ValueError(
            f"points go along intervals and circles; factor {factor} has more dimensions."
        )
    others = [other for i, other in enumerate(run.places, start=1) if i != factor]
    return BRIDGES[program](run, place, others, n_bins)


def _latents(run: Run) -> np.ndarray:
    """The coordinates that were fitted."""
    path = Path(run.record.get("input", ""))
    if path.suffix.lower() == ".cs":
        raise ValueError(
            "cryoSPARC makes its own volumes of these components: select particles to .cs and use it there."
        )
    if "components" in run.record or not path.is_file():
        raise ValueError(
            f"this needs the coordinates that the program itself found; {run.folder} was fitted to images or volumes. "
            "Fit its z file with --particles."
        )
    latents = read_samples(path)
    if len(latents) != len(run.rows):
        raise ValueError(
            f"{path} has {len(latents)} rows now and had {len(run.rows)} when fitted. Fit again."
        )
    return latents


def steady_samples(
    place: Place, others: Sequence[Place], labels: np.ndarray, centres: np.ndarray
) -> np.ndarray:
    """One sample of each bin that has any, all at about the same place on the other factors: no point is off the data.

    The common place is the one, of some drawn at random, to which the bins come closest.
    """
    bins = [
        np.flatnonzero(labels == k) for k in range(len(centres)) if (labels == k).any()
    ]
    if not others:
        return np.array(
            [
                rows[np.argmin(_off(place, rows, centres[labels[rows[0]]]))]
                for rows in bins
            ]
        )
    features = np.column_stack(
        [other.features / other.features.std() for other in others]
    )
    drawn = np.random.default_rng(0).permutation(len(features))[:CANDIDATES]
    trees = [KDTree(features[rows]) for rows in bins]
    common = features[
        drawn[
            np.argmin(
                np.max([tree.query(features[drawn])[0] for tree in trees], axis=0)
            )
        ]
    ]
    chosen = []
    for rows, tree in zip(bins, trees, strict=True):
        near = rows[np.atleast_1d(tree.query(common, min(NEAR, len(rows)))[1])]
        chosen.append(near[np.argmin(_off(place, near, centres[labels[rows[0]]]))])
    return np.array(chosen)


def _off(place: Place, rows: np.ndarray, centre: float) -> np.ndarray:
    """How far samples lie from the middle of their bin."""
    distance = np.abs(place.coordinate[rows] - centre)
    return (
        np.minimum(distance, 360 - distance) if place.topology == "circle" else distance
    )


def _text(array: np.ndarray) -> bytes:
    return "".join(
        " ".join(f"{value:.8g}" for value in row) + "\n" for row in array
    ).encode()


def _points(
    run: Run, place: Place, others: Sequence[Place], n_bins: int
) -> tuple[np.ndarray, np.ndarray]:
    """The coordinates that were fitted, and those of a sample in each bin."""
    latents = _latents(run)
    labels, centres = bin_labels(place.coordinate, place.topology, n_bins=n_bins)
    return latents, latents[steady_samples(place, others, labels, centres)]


def _cryodrgn(
    run: Run, place: Place, others: Sequence[Place], n_bins: int
) -> dict[str, bytes]:
    _, points = _points(run, place, others, n_bins)
    commands = (
        "# volumes along the factor, with the model that gave the coordinates (weights.*.pkl and config.yaml of the\n"
        "# training folder):\n"
        "cryodrgn eval_vol TRAINING/weights.pkl -c TRAINING/config.yaml --zfile z_values.txt -o volumes\n"
    )
    return {"z_values.txt": _text(points), "commands.txt": commands.encode()}


def _recovar(
    run: Run, place: Place, others: Sequence[Place], n_bins: int
) -> dict[str, bytes]:
    latents, points = _points(run, place, others, n_bins)
    own = sorted(run.folder.glob("particles.*"))
    particles = own[0].resolve() if own else "PARTICLES.star"
    one = " --zdim1" if latents.shape[1] == 1 else ""
    commands = (
        "# volumes along the factor by kernel regression on these coordinates (poses.pkl and ctf.pkl as cryodrgn\n"
        "# parse_pose_star and parse_ctf_star write them, for the particles that were fitted):\n"
        f"recovar reconstruct_from_external_embedding {particles} --poses poses.pkl --ctf ctf.pkl \\\n"
        f"    --embedding embedding.pkl --target points.txt{one} -o volumes\n"
    )
    return {
        "embedding.pkl": pickle.dumps(latents.astype(np.float32)),
        "points.txt": _text(points),
        "commands.txt": commands.encode(),
    }


def _aspire(
    run: Run, place: Place, others: Sequence[Place], n_bins: int
) -> dict[str, bytes]:
    labels, centres = bin_labels(place.coordinate, place.topology, n_bins=n_bins)
    matching = match(labels, others, n_bins=n_bins)
    weights = np.zeros((len(labels), len(centres)), dtype=np.float32)
    weights[np.arange(len(labels)), labels] = matching.weights * matching.counts[labels]
    particles = run.record.get("particles", "PARTICLES.star")
    if not str(particles).endswith(".star"):
        raise ValueError(
            f"ASPIRE reads particles from STAR files; those of the run are {particles}. Convert them first."
        )
    script = (
        "# weighted volumes along the factor, one for each column of weights.npy\n"
        "import numpy as np\n"
        "from aspire.basis import FFBBasis3D\n"
        "from aspire.reconstruction import WeightedVolumesEstimator\n"
        "from aspire.source import RelionSource\n\n"
        f"source = RelionSource({str(particles)!r})[np.load('rows.npy')]\n"
        "weights = np.load('weights.npy')\n"
        "estimator = WeightedVolumesEstimator(weights, source, FFBBasis3D(source.L))\n"
        "estimator.estimate().save('volumes.mrc')\n"
    )
    return {
        "weights.npy": npy_bytes(weights),
        "rows.npy": npy_bytes(run.rows),
        "aspire_volumes.py": script.encode(),
        "commands.txt": b"python aspire_volumes.py\n",
    }


def _particles(
    suffix: str, command: str
) -> Callable[[Run, Place, Sequence[Place], int], dict[str, bytes]]:
    """A file of particles for each bin, in the format of the program that has such files."""

    def write(
        run: Run, place: Place, others: Sequence[Place], n_bins: int
    ) -> dict[str, bytes]:
        particles = run.particles()
        if particles.path.suffix.lower() != suffix:
            raise ValueError(
                f"this program reads {suffix}; the run's particles are {particles.path.name}."
            )
        labels, centres = bin_labels(place.coordinate, place.topology, n_bins=n_bins)
        files, commands = (
            {},
            [
                "# one bin along the factor after the other; the other factors are as they are\n"
            ],
        )
        for k, centre in enumerate(centres):
            inside = np.flatnonzero(labels == k)
            if len(inside):
                name = f"bin_{k + 1:02d}"
                columns = coordinate_columns(
                    [each[inside] for each in run.places], suffix
                )
                files[name + suffix] = particles_with(particles[inside], columns)
                commands.append(command.format(name=name, n=len(inside), centre=centre))
        return {**files, "commands.txt": "".join(commands).encode()}

    return write


RELION = "relion_reconstruct --i {name}.star --o {name}.mrc --ctf   # {n} particles around {centre:.3g}\n"
CRYOSPARC = "# {name}.cs: {n} particles around {centre:.3g}; import it as particles, then Homogeneous Reconstruction Only\n"

BRIDGES: dict[str, Callable[[Run, Place, Sequence[Place], int], dict[str, bytes]]] = {
    "cryodrgn": _cryodrgn,
    "recovar": _recovar,
    "aspire": _aspire,
    "relion": _particles(".star", RELION),
    "cryosparc": _particles(".cs", CRYOSPARC),
}
