"""Particles of any program: tables of readers and writers."""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from manifactor._support.regular_files import require_regular_file
from manifactor.cryoem.cryosparc import read_cryosparc, write_cryosparc
from manifactor.cryoem.particles import Particles
from manifactor.cryoem.relion import read_relion, write_relion

Reader = Callable[..., Particles]
Writer = Callable[[Particles, Mapping[str, np.ndarray]], bytes]

# By suffix; a new format is one line in each table.
READERS: dict[str, Reader] = {".star": read_relion, ".cs": read_cryosparc}
WRITERS: dict[str, Writer] = {".star": write_relion, ".cs": write_cryosparc}


def read_particles(path, *, pixel_size: float | None = None) -> Particles:
    """Read the particles of a STAR or .cs file."""
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in READERS:
        raise ValueError(f"particles must come as one of {', '.join(READERS)}; got {path.name}.")
    require_regular_file(path, "the particles")
    return READERS[suffix](path, pixel_size=pixel_size)


def particles_with(particles: Particles, columns: Mapping[str, np.ndarray]) -> bytes:
    """Return the file of these particles with columns added, and without other rows.

    Everything else stays as it was, in the order of the file.

    Shapes: columns (n,).
    """
    order = np.argsort(particles.rows)
    ordered = {name: np.asarray(column)[order] for name, column in columns.items()}
    return WRITERS[particles.path.suffix.lower()](particles[order], ordered)
