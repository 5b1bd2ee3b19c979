"""Images in one view, and volumes, of a molecule whose rotor turns while the rest is stretched.

The recipe is that of the paper's cryo-EM data: the rotor is turned about z, the rest shifted by an
amount that grows with the square of the depth, the volume tilted and summed, white noise added.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from numbers import Real

import numpy as np
from scipy import fft, ndimage
from sklearn.utils import gen_batches
from sklearn.utils.extmath import randomized_svd

from manifactor._support.parameters import require_choice, require_count, require_number
from manifactor._support.threads import one_blas_thread
from manifactor.cryoem.one_view import KRIOS, Optics, contrast_transfer, image_frequencies
from manifactor.cryoem.simulate.molecule import (
    TURNING,
    Molecule,
    Motion,
    channel,
    simulation_generator,
)

# Images made or given noise at a time, which bounds the memory of their transforms.
BATCH_SIZE = 250
# Images from which the signal is measured; more would change it little.
N_CALIBRATION = 2500

# From angles (n,) and stretches (n, 2) to images (n, size, size).
Painter = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Frame:
    """A square image: the height after the tilt falls along rows, and y rises along columns."""

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
        return np.cos(radians), np.sin(radians)

    def height(self, atoms: np.ndarray) -> np.ndarray:
        """Return heights in A after the tilt."""
        cosine, sine = self.turn
        return cosine * atoms[:, 2] + sine * atoms[:, 0]

    def place(self, atoms: np.ndarray) -> np.ndarray:
        """Return rows and columns of atoms in pixels, (2, n_atoms)."""
        rows = (self.size - 1) / 2 - (self.height(atoms) - self.middle) / self.pixel_size
        columns = self.size / 2 + atoms[:, 1] / self.pixel_size
        return np.stack([rows, columns])

    def around(self, molecule: Molecule, reach: np.ndarray) -> "Frame":
        """Return the frame centred on all states of the molecule."""
        points = molecule.extremes(reach)
        height = self.height(points)
        frame = replace(self, middle=(height.min() + height.max()) / 2)
        frame.require_inside(frame.place(points))
        return frame

    def require_inside(self, places: np.ndarray) -> None:
        """Refuse places in pixels, (n_axes, n), that lie outside."""
        outside = max(-places.min(), places.max() - (self.size - 1))
        if outside > 0:
            enough = self.size + 2 * int(np.ceil(outside))
            raise ValueError(
                f"`size` must be at least {enough} pixels of {self.pixel_size:g} A for "
                f"every state of the molecule to stay inside; got {self.size}. Enlarge "
                "`size` or `pixel_size`."
            )


def _splat_painter(
    molecule: Molecule,
    place: Callable[[np.ndarray], np.ndarray],
    shape: tuple[int, ...],
    blur: float,
) -> Painter:
    """Return a painter of images or volumes, whose atoms lie where `place` says, blur in pixels."""
    # The sum of the atoms is blurred, once an image, instead of every atom: by the transform of a
    # Gaussian, in single precision as the images, whose transforms would become double, too.
    frequencies = [*map(np.fft.fftfreq, shape[:-1]), np.fft.rfftfreq(shape[-1])]
    squared = sum(k**2 for k in np.ix_(*frequencies))
    envelope = np.exp(-2 * (np.pi * blur) ** 2 * squared).astype(np.float32)

    def paint(angle: np.ndarray, stretch: np.ndarray) -> np.ndarray:
        moved = map(molecule.moved, angle, stretch)
        images = [splat(place(atoms), molecule.weights, shape) for atoms in moved]
        return filtered(np.array(images, dtype=np.float32), envelope, n_axes=len(shape))

    return paint


def _volume_painter(molecule: Molecule, frame: Frame, reach: np.ndarray, blur: float) -> Painter:
    """Return a painter by the paper's recipe, which interpolates densities."""
    # The paper also clips negative densities; Gaussians and linear interpolation leave none.
    pixel_size = frame.pixel_size
    # `gaussian_filter` cuts its Gaussian off at four standard deviations.
    margin = 4 * blur / pixel_size + 1
    points = molecule.extremes(reach)[:, ::-1] / pixel_size  # x, y, z to z, y, x
    low = np.floor(points.min(axis=0) - margin)
    high = np.ceil(points.max(axis=0) + margin)
    # The cell of the point 0.
    origin, shape = -low, tuple((high - low + 1).astype(int))
    cells = _in_grid(molecule.atoms, origin, pixel_size)

    def density(part: np.ndarray) -> np.ndarray:
        points = splat(cells[:, part], molecule.weights[part], shape)
        return ndimage.gaussian_filter(points, blur / pixel_size)

    rotor, rest = density(molecule.rotor), density(~molecule.rotor)
    heights = (np.arange(shape[0]) - origin[0]) * pixel_size
    lift = molecule.lift_at(heights) / pixel_size

    def image(angle: float, stretch: np.ndarray) -> np.ndarray:
        shifts = np.outer(lift, stretch[::-1])  # x, y to y, x
        slices = zip(rest, shifts, strict=True)
        sheared = np.stack([ndimage.shift(one, shift, order=1) for one, shift in slices])
        cosine, sine = np.cos(angle), np.sin(angle)
        back = np.array([[1, 0, 0], [0, cosine, -sine], [0, sine, cosine]])
        turned = ndimage.affine_transform(rotor, back, offset=origin - back @ origin, order=1)
        return _tilted_sum(turned + sheared, frame, origin)

    def paint(angle: np.ndarray, stretch: np.ndarray) -> np.ndarray:
        return np.array(list(map(image, angle, stretch)), dtype=np.float32)

    return paint


def _in_grid(atoms: np.ndarray, origin: np.ndarray, pixel_size: float) -> np.ndarray:
    """Return the positions of atoms in a grid in the order z, y, x, (3, n_atoms)."""
    return atoms[:, ::-1].T / pixel_size + origin[:, None]


def _tilted_sum(volume: np.ndarray, frame: Frame, origin: np.ndarray) -> np.ndarray:
    """Return the density rotated by the tilt in the (z, x) plane and summed over x."""
    cosine, sine = frame.turn
    n_z, _, n_x = volume.shape
    # No corner may leave the grid of the result at any tilt.
    corners = np.array(list(product((0, n_z), (0, n_x)))) - origin[[0, 2]]
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
    """Add weights at places, (n_axes, n), up on a grid by linear interpolation."""
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


def filtered(images: np.ndarray, transfer: np.ndarray, *, n_axes: int = 2) -> np.ndarray:
    """Return images times a transfer function in Fourier space; volumes by 3 axes."""
    axes = range(-n_axes, 0)
    transformed = fft.rfftn(images, axes=axes) * transfer
    # Without the shape, an odd last axis would come back one pixel shorter.
    return fft.irfftn(transformed, s=images.shape[-n_axes:], axes=axes)


# What is simulated.


@dataclass(frozen=True)
class Simulated:
    """What images of one view and of all views have in common: see `Simulation`."""

    angle: np.ndarray
    stretch: np.ndarray
    shift: np.ndarray
    defocus: np.ndarray | None
    pixel_size: float
    noise: float
    symmetry: int
    optics: Optics

    @property
    def circle(self) -> np.ndarray:
        """The rotor's circle, (n_samples, 2)."""
        # Images repeat after a turn of 2 pi / symmetry, which is one turn of the phase.
        phase = self.symmetry * self.angle
        return np.c_[np.cos(phase), np.sin(phase)]


@dataclass(frozen=True)
class Simulation(Simulated):
    """Particle images and the motions behind each of them.

    Parameters
    ----------
    angle : ndarray of shape (n_samples,)
        Of the rotor in radians, in [0, 2 pi / symmetry).
    stretch : ndarray of shape (n_samples, 2)
        Along x and y in Angstrom; y is 0 for the motions "x".
    shift : ndarray of shape (n_samples, 2)
        The shift that moves each image back to its centre, (x, y) in pixels.
    defocus : ndarray of shape (n_samples,) or None
        In Angstrom; None if the images have no CTF.
    pixel_size : float
        In Angstrom.
    noise : float
        Standard deviation of the white noise.
    symmetry : int
        The rotor looks the same after a turn of 2 pi / symmetry.
    optics : Optics
    images : ndarray of shape (n_samples, size, size), float32
        White on dark, with the rotor above.
    view : tuple of float
        The direction of projection as RELION's angles rot, tilt and psi in degrees.
    psi : ndarray of shape (n_samples,)
        Additional rotation of each image in its plane, in degrees.
    """

    images: np.ndarray
    view: tuple[float, float, float]
    psi: np.ndarray

    @property
    def size(self) -> int:
        """Width of the images in pixels."""
        return self.images.shape[1]

    @property
    def angles(self) -> np.ndarray:
        """RELION's angles rot, tilt and psi of each image, (n_samples, 3), degrees."""
        return self.view + self.psi[:, None] * [0, 0, 1]

    @property
    def truth(self) -> tuple[np.ndarray, np.ndarray]:
        """The rotor's circle, (n_samples, 2), and the stretch, (n_samples, 1 or 2)."""
        # A column of zeros is not a motion.
        return self.circle, self.stretch if self.stretch[:, 1].any() else self.stretch[:, :1]


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
    in_plane: bool = False,
    route: str = "atoms",
    random_state=None,
) -> Simulation:
    """Simulate images of a moving molecule in one view, with the motions behind them.

    Parameters
    ----------
    n_samples : int
    motions : {"x", "xy"}
        The rotor turns, and the rest is stretched along x, or along x and y.
    signal_to_noise : float or None
        SNR4: the variance of the fourth principal component of the clean images over
        the variance of the white noise in a pixel. 10 and more is easy, 3 to 10 like
        the paper's data, 1 hopeless; None or infinity for no noise.
    correlation : float
        Of the Gaussian copula of the angle and the x-stretch, in [-1, 1]; both stay uniform.
    defocus : (float, float) or None
        Range of the defocus in Angstrom, for images with a CTF.
    optics : Optics
    molecule : Molecule or None
        :func:`channel` if None.
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
        Standard deviation of the Gaussian of each atom, in Angstrom.
    in_plane : bool
        Whether to rotate each image in its plane by a random angle and to shift it by
        up to 3 pixels along x and y.
    route : {"atoms", "volumes"}
        Move atoms (fast), or interpolate densities (the paper's recipe, about a hundred
        times slower).
    random_state : int, RandomState or None
        The same seed gives the same images; the motions do not depend on route, noise and defocus.

    Returns
    -------
    Simulation

    Examples
    --------
    >>> particles = simulate_particles(10, size=54, pixel_size=4.0, random_state=0)
    >>> particles.images.shape, [t.shape for t in particles.truth]
    ((10, 54, 54), [(10, 2), (10, 1)])
    """
    require_choice("motions", motions, TURNING)
    motion = Motion(motions, correlation, symmetry, stretch)
    frame = Frame(size, pixel_size, tilt)
    require_samples(n_samples, blur, signal_to_noise, fewest=5)
    require_choice("route", route, ("atoms", "volumes"))
    require_microscope(defocus, optics)
    molecule = channel() if molecule is None else molecule
    frame = frame.around(molecule, motion.reach)
    if route == "atoms":
        paint = _splat_painter(molecule, frame.place, (size, size), blur / pixel_size)
    else:
        paint = _volume_painter(molecule, frame, motion.reach, blur)
    rng = simulation_generator(random_state)
    # The motions come first, and psi and shift are drawn in any case, so that a seed gives the same
    # motions with and without them.
    angle, stretches = motion.draw(n_samples, rng)
    defoci = None if defocus is None else rng.uniform(*defocus, size=n_samples)
    psi = rng.uniform(-180, 180, size=n_samples) * in_plane
    # Pixels by which an image lies off its centre at most.
    shift = rng.uniform(-3.0, 3.0, size=(n_samples, 2)) * in_plane
    images = np.empty((n_samples, size, size), dtype=np.float32)
    for batch in gen_batches(n_samples, BATCH_SIZE):
        painted = paint(angle[batch], stretches[batch])
        # Without a pose there is nothing to interpolate, which would change every pixel.
        if in_plane:
            painted = _rotated_and_shifted(painted, psi[batch], shift[batch])
        # After the pose: the CTF is the microscope's and does not turn with a particle.
        if defoci is not None:
            at = image_frequencies(size, pixel_size)
            painted = filtered(painted, contrast_transfer(at, defoci[batch], optics=optics))
        images[batch] = painted
    # A pose is not a motion: the signal is that of the upright images.
    some = slice(N_CALIBRATION)
    signal = paint(angle[some], stretches[some]) if in_plane else images
    noise = add_noise(images, signal_to_noise, signal, rng)
    view = 180.0, 90.0 - tilt, -90.0
    known = angle, stretches, shift, defoci, pixel_size, noise, symmetry, optics
    return Simulation(*known, images, view, psi)


def _rotated_and_shifted(images: np.ndarray, psi: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """Rotate images by psi degrees and move them off centre, as RELION defines both."""
    out = np.empty_like(images)
    # RELION turns images about the pixel at half of the size.
    centre = np.array(images.shape[1:]) // 2
    for image, result, angle, (x, y) in zip(images, out, np.radians(psi), shift, strict=True):
        cosine, sine = np.cos(angle), np.sin(angle)
        # From rows and columns of the result back to those of the image.
        back = np.array([[cosine, sine], [-sine, cosine]])
        offset = centre + back @ (np.array([y, x]) - centre)
        ndimage.affine_transform(image, back, offset, output=result, order=3)
    return out


def require_microscope(defocus, optics: Optics) -> None:
    """Refuse optics that differ between images and a defocus that is not a range."""
    # The optics group of a STAR file has one value for all images.
    for name, value in vars(optics).items():
        require_number(f"optics.{name}", value)
    if defocus is None:
        return
    is_pair = np.shape(defocus) == (2,) and all(isinstance(end, Real) for end in defocus)
    if not (is_pair and -np.inf < defocus[0] <= defocus[1] < np.inf):
        raise ValueError(
            f"`defocus` must be (low, high) in Angstrom with low <= high; got {defocus!r}."
        )


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
    """Simulate volumes of a moving molecule, with the motions behind them.

    The parameters are those of :func:`simulate_particles`, which draws the same angles
    and stretches from the same `random_state`.

    Returns
    -------
    volumes : ndarray of shape (n_samples, size, size, size), float32
        In the order z, y, x, as in MRC files.
    angle : ndarray of shape (n_samples,)
    stretch : ndarray of shape (n_samples, 2)

    Examples
    --------
    >>> volumes, angle, stretch = simulate_volumes(3, random_state=0)
    >>> volumes.shape, angle.shape, stretch.shape
    ((3, 32, 32, 32), (3,), (3, 2))
    """
    require_choice("motions", motions, TURNING)
    motion = Motion(motions, correlation, symmetry, stretch)
    frame = Frame(size, pixel_size, tilt=0.0)
    require_samples(n_samples, blur, signal_to_noise, fewest=5)
    molecule = channel() if molecule is None else molecule
    points = molecule.extremes(motion.reach)
    # Along z the states together are centred; along x and y the rotor's axis is, so that a turn
    # moves nothing out.
    middle = (points[:, 2].min() + points[:, 2].max()) / 2
    origin = np.array([(size - 1) / 2 - middle / pixel_size, size / 2, size / 2])
    cells = partial(_in_grid, origin=origin, pixel_size=pixel_size)
    frame.require_inside(cells(points))
    rng = simulation_generator(random_state)
    angle, stretches = motion.draw(n_samples, rng)
    shape = (size, size, size)
    paint = _splat_painter(molecule, cells, shape, blur / pixel_size)
    volumes = np.empty((n_samples, *shape), dtype=np.float32)
    # One volume at a time: the transforms of all of them would not fit.
    for one in gen_batches(n_samples, 1):
        volumes[one] = paint(angle[one], stretches[one])
    add_noise(volumes, signal_to_noise, volumes, rng)
    return volumes, angle, stretches


# White noise, relative to the signal.


def add_noise(
    images: np.ndarray, signal_to_noise: float | None, signal: np.ndarray, rng: np.random.Generator
) -> float:
    """Add white noise to images or volumes in place and return its standard deviation."""
    noise = noise_level(signal, signal_to_noise)
    if noise > 0:
        for batch in gen_batches(len(images), BATCH_SIZE):
            white = rng.standard_normal(images[batch].shape, dtype=np.float32)
            images[batch] += np.float32(noise) * white
    return noise


def noise_level(signal: np.ndarray, signal_to_noise: float | None) -> float:
    """Return the standard deviation of white noise at a signal-to-noise ratio."""
    # Of the principal components two belong to the rotor's circle, one or two to the stretch: the
    # signal is the variance of the fourth.
    if signal_to_noise is None or np.isinf(signal_to_noise):
        return 0.0
    X = signal[:N_CALIBRATION]
    X = X.reshape(len(X), -1)
    X = X - X.mean(axis=0)
    with one_blas_thread():  # the same bits on any number of cores
        values = randomized_svd(X, 4, random_state=0)[1]
    return float(np.sqrt(float(values[3]) ** 2 / len(X) / signal_to_noise))


def require_samples(
    n_samples: int, blur: float, signal_to_noise: float | None, *, fewest: int = 1
) -> None:
    """Refuse numbers that cannot be, and too few samples to measure the signal."""
    require_count("n_samples", n_samples, low=1, high=10**9)
    require_number("blur", blur, low=0)
    if signal_to_noise is None or signal_to_noise == np.inf:
        return
    require_number("signal_to_noise", signal_to_noise, above=0)
    if n_samples < fewest:
        raise ValueError(
            f"`n_samples` must be at least {fewest} for noise by the 4th principal component; "
            f"got {n_samples}. Add samples, or take `signal_to_noise=inf`."
        )
