"""Images of a molecule in any state: atoms moved and added up, or densities interpolated as the paper does."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from scipy import fft, ndimage

from manifactor._support.parameters import require_count, require_number
from manifactor.datasets.molecule import Molecule


@dataclass(frozen=True)
class Frame:
    """A square image of the molecule: heights after the tilt run up its rows, y along its columns."""

    size: int
    pixel_size: float
    tilt: float  # degrees
    middle: float = 0.0  # A, the height in the middle of the rows

    @property
    def turn(self) -> tuple[float, float]:
        """Cosine and sine of the tilt."""
        return float(np.cos(np.radians(self.tilt))), float(
            np.sin(np.radians(self.tilt))
        )

    def height(self, atoms: np.ndarray) -> np.ndarray:
        """Heights in A after the tilt."""
        cosine, sine = self.turn
        return cosine * atoms[:, 2] + sine * atoms[:, 0]

    def place(self, atoms: np.ndarray) -> np.ndarray:
        """Rows and columns of atoms in pixels, (2, n_atoms)."""
        rows = (self.size - 1) / 2 - (
            self.height(atoms) - self.middle
        ) / self.pixel_size
        return np.stack([rows, self.size / 2 + atoms[:, 1] / self.pixel_size])

    def around(self, molecule: Molecule, reach: np.ndarray) -> "Frame":
        """The frame with every state of the molecule inside."""
        points = molecule.extremes(reach)
        height = self.height(points)
        frame = replace(self, middle=(height.min() + height.max()) / 2)
        require_inside(frame.place(points), frame)
        return frame


Painter = Callable[[np.ndarray, np.ndarray], np.ndarray]


def _atom_painter(
    molecule: Molecule, frame: Frame, reach: np.ndarray, blur: float
) -> Painter:
    """A function of angles (n,) and stretches (n, 2) to images (n, size, size): atoms moved, added up, blurred."""
    shape = (frame.size, frame.size)

    def paint(angle: np.ndarray, stretch: np.ndarray) -> np.ndarray:
        images = np.empty((len(angle), *shape), dtype=np.float32)
        for image, turn, way in zip(images, angle, stretch, strict=True):
            image[:] = splat(
                frame.place(molecule.moved(turn, way)), molecule.weights, shape
            )
        return filtered(images, gaussian_transfer(shape, blur / frame.pixel_size))

    return paint


def _volume_painter(
    molecule: Molecule, frame: Frame, reach: np.ndarray, blur: float
) -> Painter:
    """The same function by the paper's recipe: densities turned, shifted slice by slice, tilted and summed.

    The paper also clips negative densities; Gaussians and linear interpolation leave none.
    """
    pixel_size = frame.pixel_size
    origin, shape = _grid(molecule.extremes(reach), pixel_size, blur)
    cells = grid_cells(molecule.atoms, origin, pixel_size)
    rotor, rest = (
        ndimage.gaussian_filter(
            splat(cells[:, part], molecule.weights[part], shape), blur / pixel_size
        )
        for part in (molecule.rotor, ~molecule.rotor)
    )
    lift = molecule.lift_at((np.arange(shape[0]) - origin[0]) * pixel_size) / pixel_size

    def paint(angle: np.ndarray, stretch: np.ndarray) -> np.ndarray:
        images = np.empty((len(angle), frame.size, frame.size), dtype=np.float32)
        for image, turn, way in zip(images, angle, stretch, strict=True):
            volume = _turned(rotor, turn, origin) + _sheared(
                rest, lift[:, None] * way[::-1]
            )
            image[:] = _tilted_sum(volume, frame, origin)
        return images

    return paint


ROUTES: dict[str, Callable[[Molecule, Frame, np.ndarray, float], Painter]] = {
    "atoms": _atom_painter,
    "volumes": _volume_painter,
}


def _grid(
    points: np.ndarray, pixel_size: float, blur: float
) -> tuple[np.ndarray, tuple[int, int, int]]:
    """The cell (z, y, x) of the point 0 and the shape of a grid that holds the points and their blur."""
    room = 4 * blur / pixel_size + 1
    low = np.floor(points.min(axis=0)[::-1] / pixel_size - room)
    high = np.ceil(points.max(axis=0)[::-1] / pixel_size + room)
    depth, height, width = (high - low + 1).astype(int)
    return -low, (int(depth), int(height), int(width))


def grid_cells(atoms: np.ndarray, origin: np.ndarray, pixel_size: float) -> np.ndarray:
    """Positions of atoms in a grid in the order z, y, x, (3, n_atoms)."""
    return atoms[:, ::-1].T / pixel_size + origin[:, None]


def _turned(volume: np.ndarray, angle: float, origin: np.ndarray) -> np.ndarray:
    """The density turned about z."""
    cosine, sine = np.cos(angle), np.sin(angle)
    back = np.array([[1, 0, 0], [0, cosine, -sine], [0, sine, cosine]])
    filled = volume.any(axis=(1, 2))
    turned = np.zeros_like(volume)
    shift = (origin - back @ origin) * [0, 1, 1]
    turned[filled] = ndimage.affine_transform(
        volume[filled], back, offset=shift, order=1
    )
    return turned


def _sheared(volume: np.ndarray, shifts: np.ndarray) -> np.ndarray:
    """Each slice of the density shifted by so many pixels along y and x."""
    return np.stack(
        [
            ndimage.shift(piece, shift, order=1)
            for piece, shift in zip(volume, shifts, strict=True)
        ]
    )


def _tilted_sum(volume: np.ndarray, frame: Frame, origin: np.ndarray) -> np.ndarray:
    """The density rotated by the tilt in the (z, x) plane and summed over x."""
    cosine, sine = frame.turn
    corners = (
        np.array(list(product((0, volume.shape[0]), (0, volume.shape[2]))))
        - origin[[0, 2]]
    )
    depth = int(np.ceil(np.linalg.norm(corners, axis=1).max()))
    # from row, column, depth of the result back to z, y, x of the density
    back = np.array([[-cosine, 0, -sine], [0, 1, 0], [-sine, 0, cosine]])
    centre = [
        (frame.size - 1) / 2 + frame.middle / frame.pixel_size,
        frame.size / 2,
        depth,
    ]
    shape = (frame.size, frame.size, 2 * depth + 1)
    rotated = ndimage.affine_transform(
        volume, back, offset=origin - back @ centre, output_shape=shape, order=1
    )
    return rotated.sum(axis=2)


def splat(at: np.ndarray, weights: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Weights added up on a grid, each shared among the cells around its place in proportion to their nearness."""
    low = np.minimum(at.astype(np.intp), np.array(shape)[:, None] - 2)
    high_share = at - low
    shares = np.stack([1 - high_share, high_share])
    first = np.ravel_multi_index(tuple(low), shape)
    grid = np.zeros(int(np.prod(shape)))
    for corner in product((0, 1), repeat=len(shape)):
        share = weights * np.prod(
            [shares[side, axis] for axis, side in enumerate(corner)], axis=0
        )
        grid += np.bincount(
            first + np.ravel_multi_index(corner, shape), share, grid.size
        )
    return grid.reshape(shape)


def gaussian_transfer(shape: tuple[int, ...], blur: float) -> np.ndarray:
    """The transform of a Gaussian with a standard deviation in pixels, on the grid of a real transform."""
    axes = [np.fft.fftfreq(n) for n in shape[:-1]] + [np.fft.rfftfreq(shape[-1])]
    squared = sum(k**2 for k in np.meshgrid(*axes, indexing="ij", sparse=True))
    return np.exp(-2 * (np.pi * blur) ** 2 * squared).astype(np.float32)


def filtered(
    images: np.ndarray, transfer: np.ndarray, *, axes: tuple[int, ...] = (-2, -1)
) -> np.ndarray:
    """Images times a transfer function in Fourier space; a volume with three axes."""
    return fft.irfftn(
        fft.rfftn(images, axes=axes) * transfer,
        s=[images.shape[axis] for axis in axes],
        axes=axes,
    )


def checked_frame(frame: Frame) -> Frame:
    """The frame, if it can be drawn."""
    if require_count("size", frame.size, 16, 4096) % 2:
        raise ValueError(
            f"`size` must be even; got {frame.size}. Take {frame.size + 1}."
        )
    require_number("pixel_size", frame.pixel_size, above=0)
    require_number("tilt", frame.tilt, low=-360, high=360)
    return frame


def require_inside(places: np.ndarray, frame: Frame) -> None:
    """Refuse places in pixels, (n_axes, n), outside of the frame, with the size that would hold them."""
    outside = max(-places.min(), places.max() - (frame.size - 1))
    if outside > 0:
        raise ValueError(
            f"`size` must be at least {frame.size + 2 * int(np.ceil(outside))} pixels of {frame.pixel_size:g} A for "
            f"every state of the molecule to stay inside; got {frame.size}. Enlarge `size` or `pixel_size`, or lower "
            "`stretch`."
        )
