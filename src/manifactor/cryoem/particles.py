"""Particles of RELION (STAR) and cryoSPARC (.cs): where their images are, and what is known of each."""

from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation


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
    pixel_sizes : ndarray of shape (n,) or None
        Angstrom.
    angles : ndarray of shape (n, 3) or None
        rot, tilt and psi as RELION defines them, degrees.
    shift : ndarray of shape (n, 2) or None
        What moves each image to its centre, in pixels of the image.
    microscope : dict of ndarray of shape (n,)
        "defocus_u", "defocus_v", "defocus_angle", "phase_shift", "voltage", "spherical_aberration",
        "amplitude_contrast", "optics group", "half set", "flipped", "premultiplied": those that are known.
    """

    path: Path
    rows: np.ndarray
    uid: np.ndarray | None = None
    stack: np.ndarray | None = None
    slice: np.ndarray | None = None
    pixel_sizes: np.ndarray | None = None
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
            pixel_sizes=part(self.pixel_sizes),
            angles=part(self.angles),
            shift=part(self.shift),
            microscope={
                name: values[chosen] for name, values in self.microscope.items()
            },
        )

    @property
    def pixel_size(self) -> float | None:
        """The pixel size that all particles share, in Angstrom."""
        sizes = self.pixel_sizes
        if sizes is None or not len(sizes):
            return None
        if np.ptp(sizes) > 1e-3 * abs(sizes[0]):
            raise ValueError(
                f"images must have one pixel size; those of {self.path} have {sizes.min():.4g} to {sizes.max():.4g} A. "
                "Rescale them first, or fit the optics groups one by one."
            )
        return float(sizes[0])

    @property
    def fingerprint(self) -> str | None:
        """What tells these particles, in this order, from others; None where nothing does."""
        if self.uid is not None:
            return sha256(self.uid.tobytes()).hexdigest()
        if self.stack is None or self.slice is None:
            return None
        return sha256(
            "".join(
                f"{k}@{stack} " for k, stack in zip(self.slice, self.stack, strict=True)
            ).encode()
        ).hexdigest()

    def turned(self) -> np.ndarray | None:
        """In-plane angle of each image against the first, degrees, (n,); None where angles are not known.

        Seen nearly along the axis, rot turns the image too, so psi alone does not tell it.
        """
        if self.angles is None:
            return None
        matrices = euler_matrices(self.angles)
        turn = matrices @ matrices[0].T
        return np.degrees(
            np.arctan2(turn[:, 0, 1] - turn[:, 1, 0], turn[:, 0, 0] + turn[:, 1, 1])
        )

    def near_view(self, rot: float, tilt: float, *, width: float) -> np.ndarray:
        """Which particles are seen from a direction, (n,) bool, up to an angle of `width` degrees."""
        if self.angles is None:
            raise ValueError(
                f"a view can be picked where angles are known; {self.path} has none."
            )
        cosine = (
            view_directions(self.angles)
            @ view_directions(np.array([[rot, tilt, 0.0]]))[0]
        )
        return cosine >= np.cos(np.radians(width)) - 1e-12


def view_directions(angles: np.ndarray) -> np.ndarray:
    """Unit vectors of views, (n, 3), from rot, tilt, psi in degrees."""
    rot, tilt = np.radians(angles[:, 0]), np.radians(angles[:, 1])
    return np.column_stack(
        [np.sin(tilt) * np.cos(rot), np.sin(tilt) * np.sin(rot), np.cos(tilt)]
    )


def euler_matrices(angles: np.ndarray) -> np.ndarray:
    """RELION's matrices, (n, 3, 3), of rot, tilt, psi in degrees: they take the molecule to the image."""
    return (
        Rotation.from_euler("ZYZ", angles, degrees=True).as_matrix().transpose(0, 2, 1)
    )
