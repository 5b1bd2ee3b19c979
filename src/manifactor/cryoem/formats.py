"""Particles of whatever program: a table of readers and of writers."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from manifactor.cryoem.cryosparc import read_cryosparc, write_cryosparc
from manifactor.cryoem.particles import Particles
from manifactor.cryoem.relion import read_relion, write_relion
from manifactor.places import Place

READERS: dict[str, Callable[[Path], Particles]] = {".star": read_relion, ".cs": read_cryosparc}
WRITERS: dict[str, Callable[[Particles, Mapping[str, np.ndarray]], bytes]] = {
    ".star": write_relion,
    ".cs": write_cryosparc,
}


def read_particles(path) -> Particles:
    """The particles of a STAR or .cs file."""
    path = Path(path)
    if path.suffix.lower() not in READERS:
        raise ValueError(f"particles must come as one of {', '.join(READERS)}; got {path.name}.")
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise ValueError(f"the particles must be a file; {path} {what}.")
    return READERS[path.suffix.lower()](path)


def particles_with(particles: Particles, columns: Mapping[str, np.ndarray]) -> bytes:
    """The particles' file with columns added, and with these rows only: all else as it was.

    Parameters
    ----------
    particles : Particles
        In the order of their file.
    columns : mapping of str to ndarray of shape (n,)
    """
    return WRITERS[particles.path.suffix.lower()](particles, columns)


def coordinate_columns(places: Sequence[Place], suffix: str) -> dict[str, np.ndarray]:
    """Columns with the places on every factor and their confidence, named as the format of that suffix names its own.

    Examples
    --------
    >>> list(coordinate_columns([Place(np.zeros(3), "circle", np.ones(3))], ".star"))
    ['mfFactor1', 'mfFactor1Confidence']
    """
    one, several, sure = NAMES[suffix]
    columns: dict[str, np.ndarray] = {}
    for number, place in enumerate(places, start=1):
        if place.coordinate.ndim == 1:
            columns[one.format(number)] = place.coordinate
        else:
            columns |= {several.format(number, j + 1): column for j, column in enumerate(place.coordinate.T)}
        if place.confidence is not None:
            columns[sure.format(number)] = place.confidence
    return columns


NAMES = {
    ".star": ("mfFactor{}", "mfFactor{}Dimension{}", "mfFactor{}Confidence"),
    ".cs": ("factor{}", "factor{}_dimension{}", "factor{}_confidence"),
}
