"""Particles of RELION and cryoSPARC: where their images are, what is known of each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from hashlib import sha256
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from manifactor._support.parameters import as_number

Values = Sequence[str] | np.ndarray


# Columns as numbers. An error names the row whose value is not one.


def finite(values: Values, name: str, path: Path) -> np.ndarray:
    """Return a column as finite floats.

    >>> finite(["1", "2.5"], "rlnVoltage", Path("a.star"))
    array([1. , 2.5])
    """
    return _numbers(values, name, path, "a finite number", np.isfinite)


def positive(values: Values, name: str, path: Path) -> np.ndarray:
    """Return a column as finite floats above 0."""
    return _numbers(values, name, path, "a number above 0", lambda x: np.isfinite(x) & (x > 0))


def whole(values: Values, name: str, path: Path) -> np.ndarray:
    """Return a column as whole numbers."""
    # Larger ones are not exact in double precision.
    return _numbers(
        values, name, path, "a whole number", lambda x: (np.abs(x) < 2**53) & (x == np.rint(x))
    ).astype(np.int64)


def _numbers(
    values: Values, name: str, path: Path, what: str, holds: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    try:
        found = np.asarray(values, dtype=float)
    except (ValueError, TypeError):
        cells = np.asarray(values)
        # What is not a number becomes NaN, for which nothing holds.
        numbers = [as_number(cell) for cell in cells.ravel()]
        found = np.array(numbers, dtype=float).reshape(cells.shape)
    good = holds(found)
    if good.all():
        return found
    row = int(np.argwhere(~good)[0][0])
    value = values[row]
    shown = value if isinstance(value, str) else np.asarray(value).tolist()
    raise ValueError(
        f"{path} must state {what} as {name} in every row; row {row + 1} has "
        f"{str(shown)[:60]!r}. Repair it, or leave the row out."
    )


# What states the pixel size, in each kind of file.
PIXEL_SIZE_LABELS = {
    ".star": "rlnImagePixelSize, or rlnDetectorPixelSize with rlnMagnification",
    ".cs": "blob/psize_A",
}


@dataclass(frozen=True)
class Particles:
    """Particles in the order of their file; what the file lacks is None or missing."""

    path: Path  # the STAR or .cs file
    rows: np.ndarray  # (n,): rows of the file that these particles are
    uid: np.ndarray | None = None  # (n,)
    # (n,): files that hold the images, relative to `path`'s folder or one above
    stack: np.ndarray | None = None
    slice: np.ndarray | None = None  # (n,): index of each image in its stack, from 0
    pixel_sizes: np.ndarray | None = None  # (n,): angstrom
    # (n, 3): rot, tilt and psi as RELION defines them, degrees. rot and tilt are 0 where only the
    # in-plane angle is known, as after a 2-D classification.
    angles: np.ndarray | None = None
    # (n, 2): what moves each image to its centre, in pixels of the image
    shift: np.ndarray | None = None
    # (n, 2): the same in Angstrom, where the file states no pixel size
    unscaled_shift: np.ndarray | None = None
    # (n,): "defocus_u", "defocus_v", "defocus_angle", "phase_shift", "voltage",
    # "spherical_aberration", "amplitude_contrast", "optics group", "half set", "class", "flipped",
    # "premultiplied": those that are known
    microscope: dict[str, np.ndarray] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, chosen) -> "Particles":
        """Return some of the particles, by index or mask."""
        parts = {
            each.name: _part(getattr(self, each.name), chosen)
            for each in fields(self)
            if each.name != "path"
        }
        return replace(self, **parts)

    def without_images(self) -> "Particles":
        """Return the particles without the names of their images, which take space."""
        return replace(self, uid=None, stack=None, slice=None)

    @property
    def pixel_size(self) -> float | None:
        """The pixel size that all particles share, in Angstrom."""
        sizes = self.pixel_sizes
        if sizes is None or not len(sizes):
            return None
        # Programs write few digits; a part in a thousand is a rounding error.
        if np.ptp(sizes) > 1e-3 * abs(sizes[0]):
            raise ValueError(
                f"images must have one pixel size; those of {self.path} have "
                f"{sizes.min():.4g} to {sizes.max():.4g} A. Rescale them first, or fit "
                "the optics groups one by one with --optics-group."
            )
        return float(sizes[0])

    @property
    def pixel_size_label(self) -> str:
        """Names of the columns that state the pixel size in a file of this kind."""
        return PIXEL_SIZE_LABELS[self.path.suffix.lower()]

    def shift_at(self, pixel_size: float) -> np.ndarray:
        """Return the shifts in pixels, for images of a pixel size in Angstrom; 0 if unknown."""
        if self.unscaled_shift is not None:
            return self.unscaled_shift / pixel_size
        return np.zeros((len(self), 2)) if self.shift is None else self.shift

    @property
    def in_plane_only(self) -> bool:
        """Whether only in-plane angles are known, as after a 2-D classification."""
        return self.angles is not None and not self.angles[:, :2].any()

    @property
    def fingerprint(self) -> str | None:
        """A hash of these particles in this order; None if they have no names."""
        # cryoSPARC numbers its particles; RELION's are known by their images.
        if self.uid is not None:
            return sha256(self.uid.tobytes()).hexdigest()
        if self.stack is None or self.slice is None:
            return None
        pairs = zip(self.slice, self.stack, strict=True)
        names = "".join(f"{index}@{stack} " for index, stack in pairs)
        return sha256(names.encode()).hexdigest()

    def turned(self, view: tuple[float, float] | None = None) -> np.ndarray | None:
        """Return the in-plane angle of each image relative to a view, or to the first.

        Returns (n,).
        """
        if self.angles is None:
            return None
        # Seen nearly along the axis, rot turns the image as psi does, so psi alone is not the
        # in-plane angle. The whole rotation from the common pose has it.
        matrices = euler_matrices(self.angles)
        common = matrices[:1] if view is None else euler_matrices([[*view, 0.0]])
        turn = matrices @ common[0].T
        sine = turn[:, 0, 1] - turn[:, 1, 0]
        cosine = turn[:, 0, 0] + turn[:, 1, 1]
        return np.degrees(np.arctan2(sine, cosine))

    def facing(self, view: tuple[float, float]) -> tuple["Particles", np.ndarray]:
        """Return the particles as if all were seen from the side of a view.

        An image from behind, turned upside down, is one from in front: (x, y) becomes (x, -y), and
        the molecule is turned by half a turn about x.

        Returns mirrored (n,).
        """
        if self.angles is None:
            return self, np.zeros(len(self), dtype=bool)
        direction = view_directions(np.array([[*view, 0.0]]))[0]
        behind = view_directions(self.angles) @ direction < 0
        flip = np.where(behind[:, None], [1.0, -1.0, -1.0], 1.0)
        turned = flip[:, :, None] * euler_matrices(self.angles)

        shift, unscaled = self.shift, self.unscaled_shift
        facing = replace(
            self,
            angles=np.where(behind[:, None], matrix_angles(turned), self.angles),
            shift=None if shift is None else shift * flip[:, :2],
            unscaled_shift=None if unscaled is None else unscaled * flip[:, :2],
        )
        return facing, behind

    def near_view(
        self, rot: float, tilt: float, *, width: float, or_opposite: bool = False
    ) -> np.ndarray:
        """Return which particles are seen from within `width` degrees of a direction.

        Or from within as many degrees of the opposite one, if asked for.

        Returns (n,).
        """
        if self.angles is None:
            raise ValueError(f"a view can be picked where angles are known; {self.path} has none.")
        direction = view_directions(np.array([[rot, tilt, 0.0]]))[0]
        cosine = view_directions(self.angles) @ direction
        if or_opposite:
            cosine = np.abs(cosine)
        # Rounding must not drop a particle that is seen from exactly this direction.
        return cosine >= np.cos(np.radians(width)) - 1e-12


def _part(values, chosen):
    if isinstance(values, dict):
        return {name: column[chosen] for name, column in values.items()}
    return None if values is None else values[chosen]


def view_directions(angles: np.ndarray) -> np.ndarray:
    """Return the unit vectors, (n, 3), of views with rot, tilt, psi in degrees."""
    # psi turns the image in its plane and does not change the direction.
    rot, tilt = np.radians(angles[:, :2]).T
    x = np.sin(tilt) * np.cos(rot)
    y = np.sin(tilt) * np.sin(rot)
    return np.column_stack([x, y, np.cos(tilt)])


def euler_matrices(angles: ArrayLike) -> np.ndarray:
    """Return RELION's matrices, (n, 3, 3), of rot, tilt, psi in degrees.

    They take the molecule to the image.
    """
    if np.size(angles) == 0:  # SciPy before 1.16 has no empty rotations
        return np.zeros((0, 3, 3))
    # SciPy's rotations turn vectors, RELION's the frame: hence the transpose.
    image_to_molecule = Rotation.from_euler("ZYZ", angles, degrees=True)
    return image_to_molecule.as_matrix().transpose(0, 2, 1)


def matrix_angles(matrices: np.ndarray) -> np.ndarray:
    """Return rot, tilt and psi in degrees, (n, 3), of RELION's matrices, (n, 3, 3)."""
    # Seen along the axis only rot + psi is determined: then rot is 0 and all is psi. Poses may be
    # in single precision, so a smaller tilt than this counts as 0.
    x, y, z = matrices[:, 2].T
    tilted = np.hypot(x, y) > 1e-7
    psi_tilted = np.arctan2(matrices[:, 1, 2], -matrices[:, 0, 2])
    psi_along_axis = np.arctan2(matrices[:, 0, 1], matrices[:, 1, 1])
    rot = np.where(tilted, np.arctan2(y, x), 0.0)
    # Rounding may leave a cosine just beyond 1.
    tilt = np.arccos(np.clip(z, -1, 1))
    psi = np.where(tilted, psi_tilted, psi_along_axis)
    return np.degrees(np.column_stack([rot, tilt, psi]))
