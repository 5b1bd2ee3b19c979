"""Particles of RELION (STAR) and cryoSPARC (.cs): where their images are, and what is known of each."""

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class Particles:
    """Particles in the order of their file; what the file does not tell is None or missing.

    Attributes
    ----------
    path : Path
        The STAR or .cs file.
    rows : ndarray of int of shape (n,)
        Rows of the file that these particles are.
    uid : ndarray of shape (n,) or None
    stack : ndarray of str of shape (n,) or None
        Files that hold the images, relative to `path`'s folder or one above.
    slice : ndarray of int of shape (n,) or None
        Place of each image in its stack, from 0.
    pixel_size : float or None
        Angstrom.
    angles : ndarray of shape (n, 3) or None
        rot, tilt and psi as RELION defines them, degrees.
    shift : ndarray of shape (n, 2)
        What moves each image to its centre, Angstrom.
    microscope : dict of ndarray of shape (n,)
        "defocus_u", "defocus_v", "defocus_angle", "phase_shift", "voltage", "spherical_aberration",
        "amplitude_contrast", "optics group", "half set": those that are known.
    """

    path: Path
    rows: np.ndarray
    uid: np.ndarray | None = None
    stack: np.ndarray | None = None
    slice: np.ndarray | None = None
    pixel_size: float | None = None
    angles: np.ndarray | None = None
    shift: np.ndarray | None = None
    microscope: dict[str, np.ndarray] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, chosen) -> "Particles":
        """These particles, by index or mask."""

        def part(values: np.ndarray | None):
            return None if values is None else values[chosen]

        return replace(
            self,
            rows=self.rows[chosen],
            uid=part(self.uid),
            stack=part(self.stack),
            slice=part(self.slice),
            angles=part(self.angles),
            shift=part(self.shift),
            microscope={name: values[chosen] for name, values in self.microscope.items()},
        )

    def near_view(self, rot: float, tilt: float, *, width: float) -> np.ndarray:
        """Which particles are seen from a direction, (n,) bool, up to an angle of `width` degrees."""
        if self.angles is None:
            raise ValueError(f"a view can be picked where angles are known; {self.path} has none.")
        cosine = view_directions(self.angles) @ view_directions(np.array([[rot, tilt, 0.0]]))[0]
        return cosine >= np.cos(np.radians(width)) - 1e-12


def view_directions(angles: np.ndarray) -> np.ndarray:
    """Unit vectors of views, (n, 3), from rot, tilt, psi in degrees."""
    rot, tilt = np.radians(angles[:, 0]), np.radians(angles[:, 1])
    return np.column_stack([np.sin(tilt) * np.cos(rot), np.sin(tilt) * np.sin(rot), np.cos(tilt)])


def one_value(name: str, values: np.ndarray) -> float:
    """The value that all particles share."""
    values = np.asarray(values, dtype=float)
    if np.ptp(values) > 1e-3 * abs(values[0]):
        raise ValueError(
            f"all particles must have one {name}; got {values.min():.4g} to {values.max():.4g}. Rescale them first, or "
            "fit the optics groups one by one."
        )
    return float(values[0])
