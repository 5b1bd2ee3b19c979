"""Projections of a moving molecule in any orientation, with a Gaussian for each atom.

A Gaussian is a product of one along x and one along y, also after a rotation, so an image is one
product of two matrices: Gaussians along the rows, (size, n_atoms), and along the columns, (n_atoms,
size). That takes 2 n_atoms size^2 operations, which is the floor of this route: 24 million for the
channel in 48 pixels.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from scipy import fft, ndimage

from manifactor._support.parameters import require_count, require_number
from manifactor._support.threads import cores, one_blas_thread
from manifactor.cryoem.simulate.molecule import Molecule


def project(
    molecule: Molecule,
    angle: np.ndarray,
    stretch: np.ndarray,
    rotations: np.ndarray,
    *,
    shift: np.ndarray,
    size: int,
    pixel_size: float,
    blur: float,
) -> np.ndarray:
    """Return projections of a molecule, each in its own state and pose.

    Shapes: angle (n,), stretch (n, 2), rotations (n, 3, 3), shift (n, 2) -> (n, size, size).
    """
    features = _features(molecule)
    coefficients = _coefficients(angle, stretch, rotations) / pixel_size
    centres = size // 2 - shift
    width = blur / pixel_size
    # The value of a Gaussian with this integral at its centre.
    heights = (np.asarray(molecule.weights) / (2 * np.pi * width**2)).astype(np.float32)
    images = np.empty((len(angle), size, size), dtype=np.float32)

    def paint(i: int) -> None:
        moved = coefficients[i].astype(np.float32) @ features
        x, y = moved + centres[i, :, None].astype(np.float32)
        columns = _gaussians(x, size, width)
        columns *= heights
        np.matmul(_gaussians(y, size, width), columns.T, out=images[i])

    # One image a thread: its two matrices stay in the cache.
    with one_blas_thread(), ThreadPoolExecutor(cores()) as pool:
        list(pool.map(paint, range(len(images))))
    return images


def _features(molecule: Molecule) -> np.ndarray:
    """Return numbers of each atom, (6, n_atoms), of which its place is a linear map.

    They are x and y of the rotor, x and y of the rest, z, and the lift.
    """
    x, y, z = molecule.atoms.T
    rotor, rest = molecule.rotor, ~molecule.rotor
    rows = [x * rotor, y * rotor, x * rest, y * rest, z, molecule.lift]
    return np.array(rows, dtype=np.float32)


def _coefficients(angle: np.ndarray, stretch: np.ndarray, rotations: np.ndarray) -> np.ndarray:
    """Return the linear maps, (n, 2, 6), from features to x and y in the image."""
    cosine, sine = np.cos(angle), np.sin(angle)
    turn = np.array([[cosine, -sine], [sine, cosine]]).transpose(2, 0, 1)
    flat, upright = rotations[:, :2, :2], rotations[:, :2, 2:]
    return np.concatenate([flat @ turn, flat, upright, flat @ stretch[:, :, None]], 2)


def _gaussians(centres: np.ndarray, size: int, blur: float) -> np.ndarray:
    """Return Gaussians of height 1 at the pixels, (size, n_atoms), float32."""
    # Scaled before they are subtracted: passes over the matrix are the cost.
    scale = np.float32(1 / (np.sqrt(2) * blur))
    pixels = scale * np.arange(size, dtype=np.float32)
    exponent = pixels[:, None] - scale * centres
    np.square(exponent, out=exponent)
    # e^-40 is nothing beside 1, and its square is still not a denormal number, with which
    # processors are a hundred times slower.
    np.minimum(exponent, 40.0, out=exponent)
    np.negative(exponent, out=exponent)
    return np.exp(exponent, out=exponent)


# Images of a molecule in any state: atoms added up, or densities interpolated.

# From angles (n,) and stretches (n, 2) to images (n, size, size).
Painter = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Frame:
    """A square image of the molecule.

    After the tilt, height decreases along the rows and y increases along the columns.
    """

    size: int
    pixel_size: float
    tilt: float  # degrees
    middle: float = 0.0  # A, the height in the middle of the rows

    def __post_init__(self) -> None:
        require_count("size", self.size, low=16, high=4096)
        if self.size % 2:
            raise ValueError(f"`size` must be even; got {self.size}. Take {self.size + 1}.")
        require_number("pixel_size", self.pixel_size, above=0)
        require_number("tilt", self.tilt, low=-360, high=360)

    @property
    def turn(self) -> tuple[float, float]:
        """Cosine and sine of the tilt."""
        radians = np.radians(self.tilt)
        return float(np.cos(radians)), float(np.sin(radians))

    @property
    def view(self) -> tuple[float, float, float]:
        """The direction of projection as RELION's angles rot, tilt and psi."""
        return 180.0, 90.0 - self.tilt, -90.0

    def height(self, atoms: np.ndarray) -> np.ndarray:
        """Return heights in A after the tilt."""
        cosine, sine = self.turn
        return cosine * atoms[:, 2] + sine * atoms[:, 0]

    def place(self, atoms: np.ndarray) -> np.ndarray:
        """Return rows and columns of atoms in pixels, (2, n_atoms)."""
        above_middle = (self.height(atoms) - self.middle) / self.pixel_size
        rows = (self.size - 1) / 2 - above_middle
        columns = self.size / 2 + atoms[:, 1] / self.pixel_size
        return np.stack([rows, columns])

    def around(self, molecule: Molecule, reach: np.ndarray) -> "Frame":
        """Return the frame centred on all states of the molecule."""
        points = molecule.extremes(reach)
        height = self.height(points)
        frame = replace(self, middle=(height.min() + height.max()) / 2)
        require_inside(frame.place(points), frame)
        return frame


def _atom_painter(molecule: Molecule, frame: Frame, reach: np.ndarray, blur: float) -> Painter:
    """Return a painter that moves the atoms, adds them up and blurs the image."""
    shape = (frame.size, frame.size)
    # The sum of the atoms is blurred, once an image, instead of every atom.
    envelope = gaussian_transfer(shape, blur / frame.pixel_size)

    def paint(angle: np.ndarray, stretch: np.ndarray) -> np.ndarray:
        images = np.empty((len(angle), *shape), dtype=np.float32)
        for image, turn, way in zip(images, angle, stretch, strict=True):
            places = frame.place(molecule.moved(turn, way))
            image[:] = splat(places, molecule.weights, shape)
        return filtered(images, envelope)

    return paint


def _volume_painter(molecule: Molecule, frame: Frame, reach: np.ndarray, blur: float) -> Painter:
    """Return a painter by the paper's recipe.

    The density of the rotor is turned, that of the rest shifted slice by slice; their sum is tilted
    and projected. The paper also clips negative densities; Gaussians and linear interpolation leave
    none.
    """
    pixel_size = frame.pixel_size
    origin, shape = _grid(molecule.extremes(reach), pixel_size, blur)
    cells = grid_cells(molecule.atoms, origin, pixel_size)

    def density(part: np.ndarray) -> np.ndarray:
        points = splat(cells[:, part], molecule.weights[part], shape)
        return ndimage.gaussian_filter(points, blur / pixel_size)

    rotor, rest = density(molecule.rotor), density(~molecule.rotor)
    heights = (np.arange(shape[0]) - origin[0]) * pixel_size
    lift = molecule.lift_at(heights) / pixel_size

    def paint(angle: np.ndarray, stretch: np.ndarray) -> np.ndarray:
        images = np.empty((len(angle), frame.size, frame.size), dtype=np.float32)
        for image, turn, way in zip(images, angle, stretch, strict=True):
            shifts = np.outer(lift, way[::-1])  # x, y to y, x
            moved = _turned(rotor, turn, origin) + _sheared(rest, shifts)
            image[:] = _tilted_sum(moved, frame, origin)
        return images

    return paint


# Both make a painter of the molecule, the frame, the largest stretch and the blur.
ROUTES: dict[str, Callable[..., Painter]] = {"atoms": _atom_painter, "volumes": _volume_painter}


def _grid(
    points: np.ndarray, pixel_size: float, blur: float
) -> tuple[np.ndarray, tuple[int, int, int]]:
    """Return the cell (z, y, x) of the point 0 and the shape of a grid for points."""
    # `gaussian_filter` cuts its Gaussian off at four standard deviations.
    margin = 4 * blur / pixel_size + 1
    cells = points[:, ::-1] / pixel_size  # x, y, z to z, y, x
    low = np.floor(cells.min(axis=0) - margin)
    high = np.ceil(cells.max(axis=0) + margin)
    depth, height, width = (high - low + 1).astype(int)
    return -low, (int(depth), int(height), int(width))


def grid_cells(atoms: np.ndarray, origin: np.ndarray, pixel_size: float) -> np.ndarray:
    """Return positions of atoms in a grid in the order z, y, x, (3, n_atoms)."""
    return atoms[:, ::-1].T / pixel_size + origin[:, None]


def _turned(volume: np.ndarray, angle: float, origin: np.ndarray) -> np.ndarray:
    """Return the density turned about z."""
    cosine, sine = np.cos(angle), np.sin(angle)
    back = np.array([[1, 0, 0], [0, cosine, -sine], [0, sine, cosine]])
    offset = (origin - back @ origin) * [0, 1, 1]
    # A turn about z mixes no slices: empty ones, about half, need no interpolation.
    filled = volume.any(axis=(1, 2))
    turned = np.zeros_like(volume)
    turned[filled] = ndimage.affine_transform(volume[filled], back, offset=offset, order=1)
    return turned


def _sheared(volume: np.ndarray, shifts: np.ndarray) -> np.ndarray:
    """Return the density with each slice shifted along y and x, in pixels."""
    pairs = zip(volume, shifts, strict=True)
    return np.stack([ndimage.shift(one, shift, order=1) for one, shift in pairs])


def _tilted_sum(volume: np.ndarray, frame: Frame, origin: np.ndarray) -> np.ndarray:
    """Return the density rotated by the tilt in the (z, x) plane and summed over x."""
    cosine, sine = frame.turn
    n_z, _, n_x = volume.shape
    corners = np.array(list(product((0, n_z), (0, n_x)))) - origin[[0, 2]]
    # No corner may leave the grid of the result at any tilt.
    depth = int(np.ceil(np.linalg.norm(corners, axis=1).max()))
    # From row, column, depth of the result back to z, y, x of the density.
    back = np.array([[-cosine, 0, -sine], [0, 1, 0], [-sine, 0, cosine]])
    middle_row = (frame.size - 1) / 2 + frame.middle / frame.pixel_size
    centre = [middle_row, frame.size / 2, depth]
    rotated = ndimage.affine_transform(
        volume,
        back,
        offset=origin - back @ centre,
        output_shape=(frame.size, frame.size, 2 * depth + 1),
        order=1,
    )
    return rotated.sum(axis=2)


def splat(at: np.ndarray, weights: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Add weights up on a grid by linear interpolation.

    Shapes: at (n_axes, n), weights (n,).
    """
    # At the far edge, the last cell but one is the lower one of the two.
    last = np.array(shape)[:, None] - 2
    low = np.minimum(at.astype(np.intp), last)
    high_share = at - low
    shares = np.stack([1 - high_share, high_share])
    first = np.ravel_multi_index(tuple(low), shape)
    grid = np.zeros(int(np.prod(shape)))
    for corner in product((0, 1), repeat=len(shape)):
        along = [shares[side, axis] for axis, side in enumerate(corner)]
        share = weights * np.prod(along, axis=0)
        cell = first + np.ravel_multi_index(corner, shape)
        # Atoms share cells: `bincount` sums them, indexed addition would keep one.
        grid += np.bincount(cell, share, grid.size)
    return grid.reshape(shape)


def gaussian_transfer(shape: tuple[int, ...], blur: float) -> np.ndarray:
    """Return the transform of a Gaussian on the grid of a real transform."""
    frequencies = [*map(np.fft.fftfreq, shape[:-1]), np.fft.rfftfreq(shape[-1])]
    axes = np.meshgrid(*frequencies, indexing="ij", sparse=True)
    squared = sum(k**2 for k in axes)
    transfer = np.exp(-2 * (np.pi * blur) ** 2 * squared)
    # In single precision, as the images: their transforms would become double, too.
    return transfer.astype(np.float32)


def filtered(
    images: np.ndarray, transfer: np.ndarray, *, axes: tuple[int, ...] = (-2, -1)
) -> np.ndarray:
    """Return images times a transfer function in Fourier space; volumes by 3 axes."""
    transformed = fft.rfftn(images, axes=axes) * transfer
    # Without the shape, an odd last axis would come back one pixel shorter.
    shape = [images.shape[axis] for axis in axes]
    return fft.irfftn(transformed, s=shape, axes=axes)


def require_inside(places: np.ndarray, frame: Frame) -> None:
    """Refuse places in pixels, (n_axes, n), that lie outside of the frame."""
    outside = max(-places.min(), places.max() - (frame.size - 1))
    if outside > 0:
        enough = frame.size + 2 * int(np.ceil(outside))
        raise ValueError(
            f"`size` must be at least {enough} pixels of {frame.pixel_size:g} A for "
            f"every state of the molecule to stay inside; got {frame.size}. Enlarge "
            "`size` or `pixel_size`, or lower `stretch`."
        )
