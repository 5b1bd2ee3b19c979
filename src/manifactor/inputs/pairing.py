"""The particles that rows of coordinates belong to."""

from pathlib import Path

import numpy as np

from manifactor.cryoem.cryosparc import read_cs
from manifactor.cryoem.formats import read_particles
from manifactor.cryoem.particles import Particles
from manifactor.inputs.files import read_npy
from manifactor.inputs.pickles import read_pickled_array


def paired_particles(
    path: Path, n_samples: int, *, particles=None, indices=None
) -> Particles | None:
    """Return the particles of coordinates, in the same order.

    Parameters
    ----------
    path : Path
        The file of the coordinates. A .cs file holds its own particles.
    n_samples : int
        Rows of coordinates.
    particles : path or None
        The STAR or .cs file of the particles.
    indices : path or None
        cryoDRGN's ind.pkl: which of the particles the coordinates belong to.

    Returns
    -------
    Particles or None
        None if there are none.
    """
    is_cs = path.suffix.lower() == ".cs"
    if particles is None and is_cs:
        return read_particles(path)
    # Indices alone name nothing; ignoring them would hide the missing option.
    if particles is None:
        if indices is not None:
            raise ValueError(
                "--ind says which of the particles were used; give them with "
                "--particles."
            )
        return None
    found = read_particles(particles)
    if indices is not None:
        found = found[_checked_indices(Path(indices), len(found))]
    if len(found) != n_samples:
        named = "" if indices is None else f" named by {indices}"
        raise ValueError(
            "there must be one particle for each row of coordinates; "
            f"{particles} has {len(found)}{named} and {path} has {n_samples}. If some "
            "were left out, give cryoDRGN's ind.pkl of just these with --ind."
        )
    # Counts may agree by chance; cryoSPARC's unique identifiers do not.
    if is_cs and found.uid is not None:
        _require_same_uids(read_cs(path)["uid"], found, path)
    return found


def _checked_indices(path: Path, count: int) -> np.ndarray:
    """Return row numbers that name each of `count` particles at most once."""
    # cryoDRGN pickles its indices, whatever the name of the file.
    is_npy = path.suffix.lower() == ".npy"
    indices = read_npy(path) if is_npy else read_pickled_array(path)
    is_flat = indices.ndim == 1 and indices.dtype.kind in "iu"
    if not is_flat or (len(indices) and not indices.min() >= 0):
        raise ValueError(
            f"{path} must hold row numbers from 0; got an array of {indices.dtype}, "
            f"shape {indices.shape}."
        )
    if len(indices) and indices.max() >= count:
        raise ValueError(
            f"{path} names particle {indices.max()}, but there are {count}, counted "
            "from 0."
        )
    # A copy or another order is a sign that the file was not written by cryoDRGN, and
    # rows would be paired with the wrong particles unnoticed.
    if (np.diff(indices) <= 0).any():
        raise ValueError(
            f"{path} must name each particle once, in ascending order, as cryoDRGN "
            "does."
        )
    return indices


def _require_same_uids(uids: np.ndarray, particles: Particles, path: Path) -> None:
    """Refuse particles that are not those of the coordinates, row by row."""
    differ = np.flatnonzero(uids != particles.uid)
    if not len(differ):
        return
    assert particles.uid is not None
    # Another order and other particles are different mistakes: say which.
    how = "others"
    if np.array_equal(np.sort(uids), np.sort(particles.uid)):
        how = "the same particles in another order"
    raise ValueError(
        f"{path} and {particles.path} must hold the same particles in the same order; "
        f"from row {differ[0]} on the uids differ: they are {how}. Export both from "
        "the same job."
    )
