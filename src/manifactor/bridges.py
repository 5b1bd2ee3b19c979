"""Bridges to programs that make volumes: points along a factor in their own coordinates, weights, ready commands."""

import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np

from manifactor.cryoem.bins import Matching, bin_labels, match
from manifactor.cryoem.cryosparc import npy_bytes
from manifactor.jobs import Run
from manifactor.samples import read_samples


def export(run: Run, factor: int, program: str, *, n_bins: int) -> dict[str, bytes]:
    """Files, by name, that let a program make volumes along a factor; "commands.txt" says how to call it.

    Every bin along the factor has the same distribution of all other factors.
    """
    if program not in BRIDGES:
        raise ValueError(f"the program must be one of {', '.join(BRIDGES)}; got {program}.")
    place = run.place(factor)
    if place.topology == "other":
        raise ValueError(f"points go along intervals and circles; factor {factor} has more dimensions.")
    labels, centres = bin_labels(place.coordinate, place.topology, n_bins=n_bins)
    others = [other for i, other in enumerate(run.places, start=1) if i != factor]
    matching = match(labels, others, n_bins=n_bins)
    return BRIDGES[program](run, labels, centres, matching)


def _latent_points(run: Run, labels: np.ndarray, matching: Matching) -> tuple[np.ndarray, np.ndarray]:
    """The coordinates that were fitted, and one of them in the middle of each bin: no point lies off the data."""
    path = Path(run.record.get("input", ""))
    if "components" in run.record or not path.is_file():
        raise ValueError(
            f"this needs the coordinates that the program itself found; {run.folder} was fitted to images or volumes. "
            "Fit its z file with --particles."
        )
    latents = read_samples(path)
    if len(latents) != len(run.rows):
        raise ValueError(f"{path} has {len(latents)} rows now and had {len(run.rows)} when fitted. Fit again.")
    points = []
    for k in range(len(matching.counts)):
        inside = np.flatnonzero((labels == k) & (matching.weights > 0))
        if len(inside):
            mean = np.average(latents[inside], axis=0, weights=matching.weights[inside])
            points.append(latents[inside[np.argmin(((latents[inside] - mean) ** 2).sum(axis=1))]])
    return latents, np.array(points)


def _text(array: np.ndarray) -> bytes:
    return "".join(" ".join(f"{value:.8g}" for value in row) + "\n" for row in array).encode()


def _cryodrgn(run: Run, labels: np.ndarray, centres: np.ndarray, matching: Matching) -> dict[str, bytes]:
    _, points = _latent_points(run, labels, matching)
    commands = (
        "# volumes along the factor, with the model that gave the coordinates (weights.*.pkl and config.yaml of the\n"
        "# training folder):\n"
        "cryodrgn eval_vol TRAINING/weights.pkl -c TRAINING/config.yaml --zfile z_values.txt -o volumes\n"
    )
    return {"z_values.txt": _text(points), "commands.txt": commands.encode()}


def _recovar(run: Run, labels: np.ndarray, centres: np.ndarray, matching: Matching) -> dict[str, bytes]:
    latents, points = _latent_points(run, labels, matching)
    particles = run.record.get("particles", "PARTICLES.star")
    commands = (
        "# volumes along the factor by kernel regression on these coordinates (poses.pkl and ctf.pkl as cryodrgn\n"
        "# parse_pose_star and parse_ctf_star write them, for the particles that were fitted):\n"
        f"recovar reconstruct_from_external_embedding {particles} --poses poses.pkl --ctf ctf.pkl \\\n"
        "    --embedding embedding.pkl --target points.txt -o volumes\n"
    )
    return {
        "embedding.pkl": pickle.dumps(latents.astype(np.float32)),
        "points.txt": _text(points),
        "commands.txt": commands.encode(),
    }


def _aspire(run: Run, labels: np.ndarray, centres: np.ndarray, matching: Matching) -> dict[str, bytes]:
    weights = np.zeros((len(labels), len(centres)), dtype=np.float32)
    weights[np.arange(len(labels)), labels] = matching.weights * matching.counts[labels]
    particles = run.record.get("particles", "PARTICLES.star")
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


BRIDGES: dict[str, Callable[[Run, np.ndarray, np.ndarray, Matching], dict[str, bytes]]] = {
    "cryodrgn": _cryodrgn,
    "recovar": _recovar,
    "aspire": _aspire,
}
