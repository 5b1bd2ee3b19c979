"""The bridge to ASPIRE: a script that reconstructs matched averages along a factor."""

import numpy as np

from manifactor.cryoem.cryosparc import npy_bytes
from manifactor.runs.bridges.commands import command, comment
from manifactor.runs.bridges.request import Request
from manifactor.runs.matching import match

SCRIPT = '''\
"""Volumes along the factor: volume_01.mrc, volume_02.mrc, ..., one for each bin.

Row i of weights.npy is particle rows[i]; it counts weights[i, k] times in volume k + 1.
"""

import numpy as np
from aspire.operators import IdentityFilter
from aspire.reconstruction import WeightedVolumesEstimator
from aspire.source import RelionSource

source = RelionSource(
    {particles!r},
    data_folder={folder!r},
    pixel_size={pixel_size!r},
    dtype="float32",
)
{contrast}
rows = np.load("rows.npy")
weights = np.load("weights.npy")
for number, column in enumerate(weights.T, start=1):
    inside = np.flatnonzero(column)
    if not len(inside):
        continue
    counts = column[inside, None]
    n = len(inside)
    # ASPIRE's weights are coefficients of a model, not weights of an average: it fits
    # an image by its coefficient times the volume. The least squares of an average, in
    # which an image counts c times, have c / n on both sides of the normal equations.
    # ASPIRE's left side, the kernel, has the squares of the coefficients; its right
    # side has the coefficients over the root of n. The kernel is computed first.
    estimator = WeightedVolumesEstimator(
        np.sqrt(counts / n),
        source[rows[inside]],
        preconditioner="none",
        checkpoint_iterations=None,
    )
    estimator.kernel
    estimator.weights = counts / np.sqrt(n)
    volume = sign * estimator.estimate()
    volume.save(f"volume_{{number:02d}}.mrc", overwrite=True)
'''

# With and without a CTF.
CONTRAST = {
    True: "sign = -1  # ASPIRE's CTF has the opposite sign of RELION's",
    False: """\
sign = 1
# The STAR file has no defocus: its images are taken as free of a CTF.
source.unique_filters = [IdentityFilter()]
source.filter_indices = np.zeros(source.n, dtype=int)""",
}
# What ASPIRE needs for a CTF.
CTF_PARAMETERS = {
    "defocus_u",
    "defocus_v",
    "defocus_angle",
    "voltage",
    "spherical_aberration",
    "amplitude_contrast",
}


def aspire_files(request: Request) -> dict[str, bytes]:
    """Return weights for an average in each bin, and a script that uses them."""
    particles = request.run.particles
    path = particles.path.absolute()
    if path.suffix.lower() != ".star":
        raise ValueError(
            f"ASPIRE reads particles from STAR files; those of the run are {path}. "
            "Convert them first."
        )
    script = SCRIPT.format(
        particles=str(path),
        folder=str(request.image_folder),
        pixel_size=_missing_pixel_size(request),
        contrast=CONTRAST[particles.microscope.keys() >= CTF_PARAMETERS],
    )
    commands = comment("matched averages along the factor, one volume for each bin")
    commands += command("cd", request.folder)
    commands += command("python", "aspire_volumes.py")
    return {
        "weights.npy": npy_bytes(_weights(request)),
        "rows.npy": npy_bytes(request.run.rows),
        "aspire_volumes.py": script.encode(),
        "commands.txt": commands.encode(),
    }


def _weights(request: Request) -> np.ndarray:
    """Return how often a particle counts in the average of each bin, (n, n_bins)."""
    labels, n_bins = request.labels, len(request.centres)
    matching = match(labels, request.others, n_bins=n_bins)
    weights = np.zeros((len(labels), n_bins), dtype=np.float32)
    # 1 on average in every bin, as in a reconstruction without weights.
    scaled = matching.weights * matching.counts[labels]
    weights[np.arange(len(labels)), labels] = scaled
    return weights


def _missing_pixel_size(request: Request) -> float | None:
    """Return the pixel size where the STAR file lacks it, None where it has it."""
    if request.run.particles.pixel_size is not None:
        return None
    # ASPIRE does not work without one, as little as it matters without a CTF.
    source = request.first_image
    return 1.0 if source is None else source.pixel_size
