"""Particles of RELION and cryoSPARC: where their images are, what is known of each."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from manifactor._support.parameters import as_number

# What the numbers of a column must be; a whole number must be exact in double precision.
KINDS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "a finite number": np.isfinite,
    "a number above 0": lambda x: np.isfinite(x) & (x > 0),
    "a whole number": lambda x: (np.abs(x) < 2**53) & (x == np.rint(x)),
}
# What is known by the numbers of groups, or by yes and no.
WHOLE = ("optics group", "half set", "class", "flipped", "premultiplied")


@dataclass(frozen=True)
class Columns:
    """Columns of a file of particles by name, and the file for messages."""

    path: Path
    values: dict[str, np.ndarray]

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def numbers(
        self, name: str, kind: str = "a finite number", sides: tuple[int, ...] = ()
    ) -> np.ndarray:
        """Return a column as numbers, one for each particle, or an array of these sides."""
        values = self.values[name]
        if values.shape[1:] != sides or values.dtype.kind not in "fiubSUO":
            raise ValueError(
                f"the field {name} of {self.path} must hold numbers of shape {sides} for each "
                f"particle; got {values.dtype} of shape {values.shape[1:]}. Export it again."
            )
        try:
            found = values.astype(float)
        except (ValueError, TypeError, OverflowError):
            # What is not a number becomes NaN, which is of no kind.
            cells = [as_number(cell) for cell in values.ravel()]
            found = np.array(cells, dtype=float).reshape(values.shape)
        good = KINDS[kind](found)
        if not good.all():
            row = int(np.argwhere(~good)[0][0])
            raise ValueError(
                f"{self.path} must state {kind} as {name} in every row; row {row + 1} has "
                f"{str(values[row])[:60]!r}. Repair it, or leave the row out."
            )
        return found.astype(np.int64) if kind == "a whole number" else found

    def side_by_side(self, *names: str, kind: str = "a finite number") -> np.ndarray | None:
        """Return some columns as a matrix; None if one is missing."""
        if any(name not in self for name in names):
            return None
        return np.column_stack([self.numbers(name, kind) for name in names])

    def microscope(self, labels: Mapping[str, str]) -> dict[str, np.ndarray]:
        """Return what is known of the microscope, given the file's names of it."""
        known = {}
        for ours, theirs in labels.items():
            if theirs in self:
                # Our angles are in degrees, as RELION's.
                unit = 180 / np.pi if theirs.endswith("_rad") else 1
                kind = "a whole number" if ours in WHOLE else "a finite number"
                known[ours] = unit * self.numbers(theirs, kind)
        return known


def rows_of(wanted: np.ndarray, listed: np.ndarray) -> tuple[np.ndarray, list]:
    """Return the rows at which a list has the wanted numbers, and those that it lacks."""
    row_of = {number: row for row, number in enumerate(listed.tolist())}
    numbers = wanted.tolist()
    missing = [number for number in numbers if number not in row_of]
    return np.array([row_of.get(number, -1) for number in numbers]), missing


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
    # (n,): what is known of the names in STAR_COLUMNS, such as "defocus_u" and "optics group"
    microscope: dict[str, np.ndarray] = field(default_factory=dict)

    pixel_size_label = (
        "rlnImagePixelSize, or rlnDetectorPixelSize with rlnMagnification; blob/psize_A"
    )

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, chosen) -> "Particles":
        """Return some of the particles, by index or mask."""
        known = {name: column[chosen] for name, column in self.microscope.items()}
        parts = {
            name: values[chosen]
            for name, values in vars(self).items()
            if isinstance(values, np.ndarray)
        }
        return replace(self, **parts, microscope=known)

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
        """Return in-plane angles of images, (n,), relative to a view, or to the first image."""
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
        """Return the particles as if all were seen from the side of a view, and which were not."""
        # An image from behind, turned upside down, is one from in front: (x, y) becomes (x, -y),
        # and the molecule is turned by half a turn about x.
        if self.angles is None:
            return self, np.zeros(len(self), dtype=bool)
        behind = ~self.near_view(*view, width=90.0)
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
        """Return which particles are seen from within `width` degrees of a direction, (n,)."""
        if self.angles is None:
            raise ValueError(f"a view can be picked where angles are known; {self.path} has none.")
        direction = view_directions(np.array([[rot, tilt, 0.0]]))[0]
        cosine = view_directions(self.angles) @ direction
        if or_opposite:
            cosine = np.abs(cosine)
        # Rounding must not drop a particle that is seen from exactly this direction.
        return cosine >= np.cos(np.radians(width)) - 1e-12


def view_directions(angles: np.ndarray) -> np.ndarray:
    """Return the unit vectors, (n, 3), of views with rot, tilt, psi in degrees."""
    # psi turns the image in its plane and does not change the direction.
    rot, tilt = np.radians(angles[:, :2]).T
    across = np.sin(tilt)
    return np.column_stack([across * np.cos(rot), across * np.sin(rot), np.cos(tilt)])


def euler_matrices(angles: ArrayLike) -> np.ndarray:
    """Return RELION's matrices, (n, 3, 3), from molecule to image, of rot, tilt, psi in degrees."""
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


def group_sizes(groups: np.ndarray) -> str:
    """Return the numbers of groups with their sizes, in words, the largest first."""
    numbers, counts = np.unique(groups, return_counts=True)
    # Eight groups fill a line.
    largest = np.argsort(-counts, kind="stable")[:8]
    shown = ", ".join(f"{numbers[k]} ({counts[k]})" for k in largest)
    more = f" and {len(numbers) - 8} more" if len(numbers) > 8 else ""
    return shown.replace(")", " particles)", 1) + more
