"""The particles that rows of coordinates belong to."""

from pathlib import Path

import numpy as np

from manifactor._support.regular_files import require_regular_file
from manifactor.cryoem.particles import Particles
from manifactor.inputs.files import read_npy
from manifactor.inputs.particle_choice import ParticleChoice
from manifactor.inputs.pickles import read_pickled_numbers


def paired_particles(
    path: Path,
    n_samples: int,
    *,
    particles=None,
    indices=None,
    choice: ParticleChoice = ParticleChoice(),
) -> Particles | None:
    """Return the particles of coordinates, in the same order."""
    is_cs = path.suffix.lower() == ".cs"
    if particles is None and is_cs:
        return choice.read(path)
    # Indices alone name nothing; ignoring them would hide the missing option.
    if particles is None:
        if indices is not None:
            raise ValueError(
                "--ind says which of the particles were used; give them with --particles."
            )
        return None
    particles = Path(particles)
    if is_cs and particles.suffix.lower() == ".cs":
        if indices is not None:
            raise ValueError(
                f"--ind is not needed: {path} and {particles} are joined by uid. Leave it out."
            )
        return choice.read(particles, results=path)
    found = choice.read(particles)
    if indices is not None:
        found = found[_checked_indices(Path(indices), len(found))]
    if len(found) != n_samples:
        named = "" if indices is None else f" named by {indices}"
        raise ValueError(
            "there must be one particle for each row of coordinates; "
            f"{particles} has {len(found)}{named} and {path} has {n_samples}. If some "
            "were left out, give cryoDRGN's ind.pkl of just these with --ind."
        )
    return found


def _checked_indices(path: Path, count: int) -> np.ndarray:
    """Return row numbers that name each of `count` particles at most once."""
    require_regular_file(path, "--ind")
    # cryoDRGN pickles its indices, whatever the name of the file.
    is_npy = path.suffix.lower() == ".npy"
    indices = read_npy(path) if is_npy else read_pickled_numbers(path)
    is_flat = indices.ndim == 1 and indices.dtype.kind in "iu"
    if not is_flat or (len(indices) and not indices.min() >= 0):
        raise ValueError(
            f"{path} must hold row numbers from 0; got an array of {indices.dtype}, "
            f"shape {indices.shape}."
        )
    if len(indices) and indices.max() >= count:
        raise ValueError(
            f"{path} names particle {indices.max()}, but there are {count}, counted from 0."
        )
    numbers, counts = np.unique(indices, return_counts=True)
    if len(numbers) < len(indices):
        raise ValueError(
            f"{path} must name each particle once; it names particle "
            f"{numbers[counts.argmax()]} {counts.max()} times."
        )
    return indices
