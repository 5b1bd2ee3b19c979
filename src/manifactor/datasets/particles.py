"""Images and volumes of a molecule whose rotor turns while the rest is stretched, with the motions behind each.

The recipe is that of the paper's cryo-EM data: the rotor turned about z, slices of the rest shifted by an amount that
grows with the square of the depth, the volume tilted and summed, white noise. Two routes lead to the images: "atoms"
moves the atoms and adds them up in the image, "volumes" interpolates densities as the paper does.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from numbers import Real

import numpy as np
from scipy import fft, ndimage, special
from sklearn.utils import check_random_state
from sklearn.utils.extmath import randomized_svd

from manifactor.cryoem.ctf import KRIOS, Optics, contrast_transfer
from manifactor.datasets.molecule import Molecule, channel
from manifactor.parameters import require_choice, require_count, require_number
from manifactor.threads import one_blas_thread

MOTIONS = {"x": np.array([1.0, 0.0]), "xy": np.array([1.0, 1.0])}  # the directions in which the rest is stretched
BLOCK = 250  # images at a time in Fourier space
CALIBRATION = 2500  # images are enough to know the signal
COMPONENT = 4  # two components for the rotor's circle, one or two for the stretch


@dataclass(frozen=True)
class Simulation:
    """Particle images and what lies behind each of them.

    Parameters
    ----------
    images : ndarray of shape (n_samples, size, size), float32
        White on dark; the rotor above.
    angle : ndarray of shape (n_samples,)
        Of the rotor in radians, in [0, 2 pi / symmetry).
    stretch : ndarray of shape (n_samples, 2)
        Along x and y in Angstrom; y is 0 for the motions "x".
    defocus : ndarray of shape (n_samples,) or None
        In Angstrom; None where the images have no CTF.
    pixel_size : float
        In Angstrom.
    noise : float
        Standard deviation of the white noise.
    symmetry : int
        The rotor looks the same after a turn of 2 pi / symmetry.
    view : tuple of float
        The direction of the projection as RELION's angles rot, tilt and psi in degrees.
    optics : Optics
    """

    images: np.ndarray
    angle: np.ndarray
    stretch: np.ndarray
    defocus: np.ndarray | None
    pixel_size: float
    noise: float
    symmetry: int
    view: tuple[float, float, float]
    optics: Optics

    @property
    def truth(self) -> tuple[np.ndarray, np.ndarray]:
        """The rotor's circle, (n_samples, 2), and the stretch, (n_samples, 1) or (n_samples, 2)."""
        phase = self.symmetry * self.angle
        return np.c_[np.cos(phase), np.sin(phase)], self.stretch if self.stretch[:, 1].any() else self.stretch[:, :1]


@dataclass(frozen=True)
class _Motion:
    """How the samples move, as the caller wants it."""

    motions: str
    correlation: float
    symmetry: int
    stretch: float

    def __post_init__(self) -> None:
        require_choice("motions", self.motions, MOTIONS)
        require_number("correlation", self.correlation, low=-1, high=1)
        require_count("symmetry", self.symmetry, 1, 1000)
        require_number("stretch", self.stretch, low=0)

    @property
    def reach(self) -> np.ndarray:
        """The largest stretch along x and y."""
        return self.stretch * MOTIONS[self.motions]

    def draw(self, n_samples: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Angles (n_samples,) and stretches (n_samples, 2), uniform; angle and x joined by a Gaussian copula."""
        turn, x, y = rng.standard_normal((3, n_samples))
        x = self.correlation * turn + np.sqrt(1 - self.correlation**2) * x
        angle = 2 * np.pi / self.symmetry * special.ndtr(turn)
        return angle, self.reach * (2 * special.ndtr(np.stack([x, y], axis=1)) - 1)


@dataclass(frozen=True)
class _Frame:
    """A square image of the molecule: heights after the tilt run up its rows, y along its columns."""

    size: int
    pixel_size: float
    tilt: float  # degrees
    middle: float = 0.0  # A, the height in the middle of the rows

    @property
    def turn(self) -> tuple[float, float]:
        """Cosine and sine of the tilt."""
        return float(np.cos(np.radians(self.tilt))), float(np.sin(np.radians(self.tilt)))

    def height(self, atoms: np.ndarray) -> np.ndarray:
        """Heights in A after the tilt."""
        cosine, sine = self.turn
        return cosine * atoms[:, 2] + sine * atoms[:, 0]

    def place(self, atoms: np.ndarray) -> np.ndarray:
        """Rows and columns of atoms in pixels, (2, n_atoms)."""
        rows = (self.size - 1) / 2 - (self.height(atoms) - self.middle) / self.pixel_size
        return np.stack([rows, self.size / 2 + atoms[:, 1] / self.pixel_size])

    def around(self, molecule: Molecule, reach: np.ndarray) -> "_Frame":
        """The frame with every state of the molecule inside."""
        points = molecule.extremes(reach)
        height = self.height(points)
        frame = replace(self, middle=(height.min() + height.max()) / 2)
        _require_inside(frame.place(points), frame)
        return frame


def simulate_particles(
    n_samples: int,
    *,
    motions: str = "x",
    signal_to_noise: float | None = 10.0,
    correlation: float = 0.0,
    defocus: tuple[float, float] | None = None,
    optics: Optics = KRIOS,
    molecule: Molecule | None = None,
    symmetry: int = 4,
    stretch: float = 40.0,
    size: int = 108,
    pixel_size: float = 2.0,
    tilt: float = -30.0,
    blur: float = 4.0,
    route: str = "atoms",
    random_state=None,
) -> Simulation:
    """Images of a moving molecule in one view, with the motions behind them.

    Parameters
    ----------
    n_samples : int
    motions : {"x", "xy"}
        The rotor turns, and the rest is stretched along x, or along x and y.
    signal_to_noise : float or None
        SNR4: the variance of the fourth principal component of the clean images over the variance of the white noise
        in a pixel. 10 and more is easy, 3 to 10 like the paper's data, 1 hopeless; None or infinity for no noise.
    correlation : float
        Of the Gaussian copula that joins the angle and the x-stretch, in [-1, 1]; both stay uniform.
    defocus : (float, float) or None
        Range of the defocus in Angstrom, for images with a CTF.
    optics : Optics
    molecule : Molecule or None
        :func:`channel` unless given.
    symmetry : int
        Angles are uniform in [0, 2 pi / symmetry).
    stretch : float
        Stretches of the lowest atom are uniform in +-stretch, in Angstrom; 40 is the paper's.
    size : int
        Width of the images in pixels, even.
    pixel_size : float
        In Angstrom.
    tilt : float
        Degrees by which the molecule is rotated in the (z, x) plane before it is summed over x.
    blur : float
        Standard deviation of the Gaussian that each atom becomes, in Angstrom.
    route : {"atoms", "volumes"}
        Move atoms (fast), or interpolate densities (the paper's recipe, about a hundred times slower).
    random_state : int, RandomState or None
        The same gives the same images; the motions do not depend on route, noise and defocus.

    Returns
    -------
    Simulation

    Examples
    --------
    >>> particles = simulate_particles(10, size=54, pixel_size=4.0, random_state=0)
    >>> particles.images.shape, [t.shape for t in particles.truth]
    ((10, 54, 54), [(10, 2), (10, 1)])
    """
    motion = _Motion(motions, correlation, symmetry, stretch)
    frame = _checked_frame(_Frame(size, pixel_size, tilt))
    _require_settings(n_samples, signal_to_noise, blur)
    require_choice("route", route, ROUTES)
    _require_microscope(defocus, optics)
    molecule = channel() if molecule is None else molecule
    paint = ROUTES[route](molecule, frame.around(molecule, motion.reach), motion.reach, blur)
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    angle, stretches = motion.draw(n_samples, rng)
    defoci = None if defocus is None else rng.uniform(*defocus, size=n_samples)
    images = np.empty((n_samples, size, size), dtype=np.float32)
    for block in _blocks(n_samples):
        images[block] = paint(angle[block], stretches[block])
        if defoci is not None:
            images[block] = _filtered(images[block], contrast_transfer(size, pixel_size, defoci[block], optics=optics))
    noise = _add_noise(images, signal_to_noise, rng)
    view = (180.0, 90.0 - tilt, -90.0)  # the same projection in RELION's words
    return Simulation(images, angle, stretches, defoci, pixel_size, noise, symmetry, view, optics)


def simulate_volumes(
    n_samples: int,
    *,
    motions: str = "x",
    signal_to_noise: float | None = None,
    correlation: float = 0.0,
    molecule: Molecule | None = None,
    symmetry: int = 4,
    stretch: float = 40.0,
    size: int = 32,
    pixel_size: float = 7.0,
    blur: float = 7.0,
    random_state=None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Volumes of a moving molecule, with the motions behind them.

    Parameters
    ----------
    n_samples, motions, signal_to_noise, correlation, molecule, symmetry, stretch, size, pixel_size, blur, random_state
        As in :func:`simulate_particles`, of which the angles and stretches are the same.

    Returns
    -------
    volumes : ndarray of shape (n_samples, size, size, size), float32
        In the order z, y, x, as MRC files have it.
    angle : ndarray of shape (n_samples,)
    stretch : ndarray of shape (n_samples, 2)

    Examples
    --------
    >>> volumes, angle, stretch = simulate_volumes(3, random_state=0)
    >>> volumes.shape, angle.shape, stretch.shape
    ((3, 32, 32, 32), (3,), (3, 2))
    """
    motion = _Motion(motions, correlation, symmetry, stretch)
    frame = _checked_frame(_Frame(size, pixel_size, 0.0))
    _require_settings(n_samples, signal_to_noise, blur)
    molecule = channel() if molecule is None else molecule
    points = molecule.extremes(motion.reach)
    middle = (points[:, 2].min() + points[:, 2].max()) / 2
    origin = np.array([(size - 1) / 2 - middle / pixel_size, size / 2, size / 2])
    _require_inside(_cells(points, origin, pixel_size), frame)
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    angle, stretches = motion.draw(n_samples, rng)
    shape = (size, size, size)
    envelope = _envelope(shape, blur / pixel_size)
    volumes = np.empty((n_samples, *shape), dtype=np.float32)
    for i in range(n_samples):
        cells = _cells(molecule.moved(angle[i], stretches[i]), origin, pixel_size)
        volume = _splat(cells, molecule.weights, shape).astype(np.float32)
        volumes[i] = _filtered(volume, envelope, axes=(0, 1, 2))
    _add_noise(volumes, signal_to_noise, rng)
    return volumes, angle, stretches


Painter = Callable[[np.ndarray, np.ndarray], np.ndarray]


def _atom_painter(molecule: Molecule, frame: _Frame, reach: np.ndarray, blur: float) -> Painter:
    """A function of angles (n,) and stretches (n, 2) to images (n, size, size): atoms moved, added up, blurred."""
    shape = (frame.size, frame.size)

    def paint(angle: np.ndarray, stretch: np.ndarray) -> np.ndarray:
        images = np.empty((len(angle), *shape), dtype=np.float32)
        for image, turn, way in zip(images, angle, stretch, strict=True):
            image[:] = _splat(frame.place(molecule.moved(turn, way)), molecule.weights, shape)
        return _filtered(images, _envelope(shape, blur / frame.pixel_size))

    return paint


def _volume_painter(molecule: Molecule, frame: _Frame, reach: np.ndarray, blur: float) -> Painter:
    """The same function by the paper's recipe: densities turned, shifted slice by slice, tilted and summed.

    The paper also clips negative densities; Gaussians and linear interpolation leave none.
    """
    pixel_size = frame.pixel_size
    origin, shape = _grid(molecule.extremes(reach), pixel_size, blur)
    cells = _cells(molecule.atoms, origin, pixel_size)
    rotor, rest = (
        ndimage.gaussian_filter(_splat(cells[:, part], molecule.weights[part], shape), blur / pixel_size)
        for part in (molecule.rotor, ~molecule.rotor)
    )
    lift = molecule.lift_at((np.arange(shape[0]) - origin[0]) * pixel_size) / pixel_size

    def paint(angle: np.ndarray, stretch: np.ndarray) -> np.ndarray:
        images = np.empty((len(angle), frame.size, frame.size), dtype=np.float32)
        for image, turn, way in zip(images, angle, stretch, strict=True):
            volume = _turned(rotor, turn, origin) + _sheared(rest, lift[:, None] * way[::-1])
            image[:] = _tilted_sum(volume, frame, origin)
        return images

    return paint


ROUTES: dict[str, Callable[[Molecule, _Frame, np.ndarray, float], Painter]] = {
    "atoms": _atom_painter,
    "volumes": _volume_painter,
}


def _grid(points: np.ndarray, pixel_size: float, blur: float) -> tuple[np.ndarray, tuple[int, int, int]]:
    """The cell (z, y, x) of the point 0 and the shape of a grid that holds the points and their blur."""
    room = 4 * blur / pixel_size + 1
    low = np.floor(points.min(axis=0)[::-1] / pixel_size - room)
    high = np.ceil(points.max(axis=0)[::-1] / pixel_size + room)
    depth, height, width = (high - low + 1).astype(int)
    return -low, (int(depth), int(height), int(width))


def _cells(atoms: np.ndarray, origin: np.ndarray, pixel_size: float) -> np.ndarray:
    """Positions of atoms in a grid in the order z, y, x, (3, n_atoms)."""
    return atoms[:, ::-1].T / pixel_size + origin[:, None]


def _turned(volume: np.ndarray, angle: float, origin: np.ndarray) -> np.ndarray:
    """The density turned about z."""
    cosine, sine = np.cos(angle), np.sin(angle)
    back = np.array([[1, 0, 0], [0, cosine, -sine], [0, sine, cosine]])
    filled = volume.any(axis=(1, 2))
    turned = np.zeros_like(volume)
    shift = (origin - back @ origin) * [0, 1, 1]
    turned[filled] = ndimage.affine_transform(volume[filled], back, offset=shift, order=1)
    return turned


def _sheared(volume: np.ndarray, shifts: np.ndarray) -> np.ndarray:
    """Each slice of the density shifted by so many pixels along y and x."""
    return np.stack([ndimage.shift(piece, shift, order=1) for piece, shift in zip(volume, shifts, strict=True)])


def _tilted_sum(volume: np.ndarray, frame: _Frame, origin: np.ndarray) -> np.ndarray:
    """The density rotated by the tilt in the (z, x) plane and summed over x."""
    cosine, sine = frame.turn
    corners = np.array(list(product((0, volume.shape[0]), (0, volume.shape[2])))) - origin[[0, 2]]
    depth = int(np.ceil(np.linalg.norm(corners, axis=1).max()))
    # from row, column, depth of the result back to z, y, x of the density
    back = np.array([[-cosine, 0, -sine], [0, 1, 0], [-sine, 0, cosine]])
    centre = [(frame.size - 1) / 2 + frame.middle / frame.pixel_size, frame.size / 2, depth]
    shape = (frame.size, frame.size, 2 * depth + 1)
    rotated = ndimage.affine_transform(volume, back, offset=origin - back @ centre, output_shape=shape, order=1)
    return rotated.sum(axis=2)


def _splat(at: np.ndarray, weights: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Weights added up on a grid, each shared among the cells around its place in proportion to their nearness."""
    low = np.minimum(at.astype(np.intp), np.array(shape)[:, None] - 2)
    high_share = at - low
    shares = np.stack([1 - high_share, high_share])
    first = np.ravel_multi_index(tuple(low), shape)
    grid = np.zeros(int(np.prod(shape)))
    for corner in product((0, 1), repeat=len(shape)):
        share = weights * np.prod([shares[side, axis] for axis, side in enumerate(corner)], axis=0)
        grid += np.bincount(first + np.ravel_multi_index(corner, shape), share, grid.size)
    return grid.reshape(shape)


def _envelope(shape: tuple[int, ...], blur: float) -> np.ndarray:
    """The transform of a Gaussian with a standard deviation in pixels, on the grid of a real transform."""
    axes = [np.fft.fftfreq(n) for n in shape[:-1]] + [np.fft.rfftfreq(shape[-1])]
    squared = sum(k**2 for k in np.meshgrid(*axes, indexing="ij", sparse=True))
    return np.exp(-2 * (np.pi * blur) ** 2 * squared).astype(np.float32)


def _filtered(images: np.ndarray, transfer: np.ndarray, *, axes: tuple[int, ...] = (-2, -1)) -> np.ndarray:
    """Images times a transfer function in Fourier space; a volume with three axes."""
    return fft.irfftn(fft.rfftn(images, axes=axes) * transfer, s=[images.shape[axis] for axis in axes], axes=axes)


def _blocks(n: int) -> list[slice]:
    return [slice(start, start + BLOCK) for start in range(0, n, BLOCK)]


def _add_noise(images: np.ndarray, signal_to_noise: float | None, rng: np.random.Generator) -> float:
    """Add white noise to the images, in place, and return its standard deviation."""
    if signal_to_noise is None or np.isinf(signal_to_noise):
        return 0.0
    noise = float(np.sqrt(_component_variance(images) / signal_to_noise))
    for block in _blocks(len(images)):
        images[block] += np.float32(noise) * rng.standard_normal(images[block].shape, dtype=np.float32)
    return noise


def _component_variance(images: np.ndarray) -> float:
    """Variance of the images along their fourth principal component."""
    X = images[:CALIBRATION].reshape(min(len(images), CALIBRATION), -1)
    X = X - X.mean(axis=0)
    with one_blas_thread():  # the same bits on any number of cores
        values = randomized_svd(X, COMPONENT, random_state=0)[1]
    return float(values[COMPONENT - 1]) ** 2 / len(X)


def _checked_frame(frame: _Frame) -> _Frame:
    if require_count("size", frame.size, 16, 4096) % 2:
        raise ValueError(f"`size` must be even; got {frame.size}. Take {frame.size + 1}.")
    require_number("pixel_size", frame.pixel_size, above=0)
    require_number("tilt", frame.tilt, low=-360, high=360)
    return frame


def _require_settings(n_samples: int, signal_to_noise: float | None, blur: float) -> None:
    require_count("n_samples", n_samples, 1, 10**9)
    require_number("blur", blur, low=0)
    if signal_to_noise is None or signal_to_noise == np.inf:
        return
    require_number("signal_to_noise", signal_to_noise, above=0)
    if n_samples <= COMPONENT:
        raise ValueError(
            f"`n_samples` must be at least {COMPONENT + 1} for noise by the {COMPONENT}th principal component; got "
            f"{n_samples}. Add samples, or take `signal_to_noise=None`."
        )


def _require_microscope(defocus, optics: Optics) -> None:
    for name in ("voltage", "spherical_aberration", "amplitude_contrast"):
        require_number(f"optics.{name}", getattr(optics, name))
    if defocus is None:
        return
    numbers = np.shape(defocus) == (2,) and all(isinstance(bound, Real) for bound in defocus)
    if not (numbers and -np.inf < defocus[0] <= defocus[1] < np.inf):
        raise ValueError(f"`defocus` must be (low, high) in Angstrom with low <= high; got {defocus!r}.")


def _require_inside(places: np.ndarray, frame: _Frame) -> None:
    """Refuse places in pixels, (n_axes, n), outside of the frame, with the size that would hold them."""
    outside = max(-places.min(), places.max() - (frame.size - 1))
    if outside > 0:
        raise ValueError(
            f"`size` must be at least {frame.size + 2 * int(np.ceil(outside))} pixels of {frame.pixel_size:g} A for "
            f"every state of the molecule to stay inside; got {frame.size}. Enlarge `size` or `pixel_size`, or lower "
            "`stretch`."
        )
