"""Volumes of a molecule whose rotor turns while the rest is stretched."""

from dataclasses import dataclass, field
from numbers import Real

import numpy as np
from scipy import ndimage
from sklearn.utils import gen_batches

from manifactor._support.parameters import require_choice, require_number
from manifactor.cryoem.ctf import KRIOS, Optics, contrast_transfer
from manifactor.cryoem.simulate.ion_channel import channel
from manifactor.cryoem.simulate.molecule import TURNING, Molecule, Motion, simulation_generator
from manifactor.cryoem.simulate.poses import NoiseSettings, add_noise, require_samples
from manifactor.cryoem.simulate.projection import (
    ROUTES,
    Frame,
    Painter,
    checked_frame,
    filtered,
    gaussian_transfer,
    grid_cells,
    require_inside,
    splat,
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
    settings: NoiseSettings = NoiseSettings(),
    random_state=None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Simulate volumes of a moving molecule, with the motions behind them.

    The parameters are those of :func:`simulate_particles`, which draws the same angles
    and stretches from the same `random_state`; `settings` are a `NoiseSettings`.

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
    frame = checked_frame(Frame(size, pixel_size, tilt=0.0))
    require_samples(n_samples, blur, signal_to_noise, settings)
    molecule = channel() if molecule is None else molecule
    origin = _origin(molecule, motion.reach, frame)
    rng = simulation_generator(random_state)
    angle, stretches = motion.draw(n_samples, rng)
    shape = (size, size, size)
    envelope = gaussian_transfer(shape, blur / pixel_size)
    volumes = np.empty((n_samples, *shape), dtype=np.float32)
    # One volume at a time: the transforms of all of them would not fit.
    for i in range(n_samples):
        atoms = molecule.moved(angle[i], stretches[i])
        cells = grid_cells(atoms, origin, pixel_size)
        volume = splat(cells, molecule.weights, shape).astype(np.float32)
        volumes[i] = filtered(volume, envelope, axes=(0, 1, 2))
    add_noise(volumes, signal_to_noise, signal=volumes, rng=rng, settings=settings)
    return volumes, angle, stretches


def _origin(molecule: Molecule, reach: np.ndarray, frame: Frame) -> np.ndarray:
    """Return the cell (z, y, x) of the point 0 with every state inside of the grid."""
    points = molecule.extremes(reach)
    # Along z the states together are centred; along x and y the rotor's axis is, so that a turn
    # moves nothing out.
    heights = points[:, 2]
    middle = (heights.min() + heights.max()) / 2
    size = frame.size
    z = (size - 1) / 2 - middle / frame.pixel_size
    origin = np.array([z, size / 2, size / 2])
    require_inside(grid_cells(points, origin, frame.pixel_size), frame)
    return origin


# Images of a molecule whose rotor turns while the rest is stretched.
#
# The recipe is that of the paper's cryo-EM data: the rotor is turned about z, slices of the rest
# are shifted by an amount that grows with the square of the depth, the volume is tilted and summed,
# white noise is added. There are two routes to the images: "atoms" moves the atoms and adds them up
# in the image, "volumes" interpolates densities as the paper does.


@dataclass(frozen=True)
class SimulationSettings:
    """Settings of `simulate_particles`."""

    # Pixels along x and y by which an image lies off its centre at most.
    max_shift: float = 3.0
    # Images transformed at a time, which bounds the memory of their transforms.
    batch_size: int = 250
    noise: NoiseSettings = field(default_factory=NoiseSettings)


@dataclass(frozen=True)
class Simulation:
    """Particle images and the motions behind each of them.

    Parameters
    ----------
    images : ndarray of shape (n_samples, size, size), float32
        White on dark, with the rotor above.
    angle : ndarray of shape (n_samples,)
        Of the rotor in radians, in [0, 2 pi / symmetry).
    stretch : ndarray of shape (n_samples, 2)
        Along x and y in Angstrom; y is 0 for the motions "x".
    defocus : ndarray of shape (n_samples,) or None
        In Angstrom; None if the images have no CTF.
    pixel_size : float
        In Angstrom.
    noise : float
        Standard deviation of the white noise.
    symmetry : int
        The rotor looks the same after a turn of 2 pi / symmetry.
    view : tuple of float
        The direction of projection as RELION's angles rot, tilt and psi in degrees.
    psi : ndarray of shape (n_samples,)
        Additional rotation of each image in its plane, in degrees.
    shift : ndarray of shape (n_samples, 2)
        The shift that moves each image back to its centre, (x, y) in pixels.
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
    psi: np.ndarray
    shift: np.ndarray
    optics: Optics

    @property
    def size(self) -> int:
        """Width of the images in pixels."""
        return self.images.shape[1]

    @property
    def angles(self) -> np.ndarray:
        """RELION's angles rot, tilt and psi of each image, (n_samples, 3), degrees."""
        rot, tilt, psi = self.view
        ones = np.ones(len(self.psi))
        return np.column_stack([rot * ones, tilt * ones, psi + self.psi])

    @property
    def truth(self) -> tuple[np.ndarray, np.ndarray]:
        """The rotor's circle, (n_samples, 2), and the stretch, (n_samples, 1 or 2)."""
        # Images repeat after a turn of 2 pi / symmetry, which is one turn of the phase.
        phase = self.symmetry * self.angle
        circle = np.c_[np.cos(phase), np.sin(phase)]
        # A column of zeros is no latent.
        has_y = self.stretch[:, 1].any()
        return circle, self.stretch if has_y else self.stretch[:, :1]


@dataclass(frozen=True)
class _States:
    """The random values behind the images, one a row."""

    angle: np.ndarray
    stretch: np.ndarray
    defocus: np.ndarray | None
    psi: np.ndarray
    shift: np.ndarray


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
    settings: SimulationSettings = SimulationSettings(),
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
        Of the Gaussian copula of the angle and the x-stretch, in [-1, 1]; both stay
        uniform.
    defocus : (float, float) or None
        Range of the defocus in Angstrom, for images with a CTF.
    optics : Optics
    molecule : Molecule or None
        :func:`channel` if None.
    symmetry : int
        Angles are uniform in [0, 2 pi / symmetry).
    stretch : float
        Stretches of the lowest atom are uniform in +-stretch, in Angstrom; 40 is the
        paper's.
    size : int
        Width of the images in pixels, even.
    pixel_size : float
        In Angstrom.
    tilt : float
        Degrees by which the molecule is rotated in the (z, x) plane before it is summed
        over x.
    blur : float
        Standard deviation of the Gaussian of each atom, in Angstrom.
    in_plane : bool
        Whether to rotate each image in its plane by a random angle and to shift it by
        up to 3 pixels (`settings.max_shift`).
    route : {"atoms", "volumes"}
        Move atoms (fast), or interpolate densities (the paper's recipe, about a hundred
        times slower).
    settings : SimulationSettings
    random_state : int, RandomState or None
        The same seed gives the same images; the motions do not depend on route, noise
        and defocus.

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
    frame = checked_frame(Frame(size, pixel_size, tilt))
    require_samples(n_samples, blur, signal_to_noise, settings.noise)
    require_choice("route", route, ROUTES)
    require_microscope(defocus, optics)
    molecule = channel() if molecule is None else molecule
    frame = frame.around(molecule, motion.reach)
    paint = ROUTES[route](molecule, frame, motion.reach, blur)
    rng = simulation_generator(random_state)
    states = _drawn(motion, n_samples, defocus, in_plane, settings.max_shift, rng)
    images = _images(states, paint, frame, optics, settings.batch_size)
    # A pose is no motion: the signal is that of the upright images.
    n = settings.noise.n_calibration
    signal = paint(states.angle[:n], states.stretch[:n]) if in_plane else images
    noise = add_noise(images, signal_to_noise, signal=signal, rng=rng, settings=settings.noise)
    return Simulation(
        images,
        states.angle,
        states.stretch,
        states.defocus,
        pixel_size,
        noise,
        symmetry,
        frame.view,
        states.psi,
        states.shift,
        optics,
    )


def _drawn(
    motion: Motion,
    n_samples: int,
    defocus: tuple[float, float] | None,
    in_plane: bool,
    max_shift: float,
    rng: np.random.Generator,
) -> _States:
    """Draw the state of every image."""
    # The motions come first, and psi and shift are drawn in any case, so that a seed gives the same
    # motions with and without them.
    angle, stretch = motion.draw(n_samples, rng)
    defoci = None if defocus is None else rng.uniform(*defocus, size=n_samples)
    psi = rng.uniform(-180, 180, size=n_samples) * in_plane
    shift = rng.uniform(-max_shift, max_shift, size=(n_samples, 2)) * in_plane
    return _States(angle, stretch, defoci, psi, shift)


def _images(
    states: _States, paint: Painter, frame: Frame, optics: Optics, batch_size: int
) -> np.ndarray:
    """Return the clean images, rotated and shifted in their plane and with the CTF."""
    n, size = len(states.angle), frame.size
    images = np.empty((n, size, size), dtype=np.float32)
    # Without a pose there is nothing to interpolate, which would change every pixel.
    moved = states.psi.any() or states.shift.any()
    for batch in gen_batches(n, batch_size):
        painted = paint(states.angle[batch], states.stretch[batch])
        if moved:
            painted = _rotated_and_shifted(painted, states.psi[batch], states.shift[batch])
        # After the pose: the CTF is the microscope's and does not turn with a particle.
        if states.defocus is not None:
            ctf = contrast_transfer(size, frame.pixel_size, states.defocus[batch], optics=optics)
            painted = filtered(painted, ctf)
        images[batch] = painted
    return images


def _rotated_and_shifted(images: np.ndarray, psi: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """Rotate images by psi degrees and move them off centre, as RELION defines both."""
    out = np.empty_like(images)
    # RELION turns images about the pixel at half of the size.
    centre = np.array(images.shape[1:]) // 2
    angles = np.radians(psi)
    for image, result, angle, (x, y) in zip(images, out, angles, shift, strict=True):
        cosine, sine = np.cos(angle), np.sin(angle)
        # From rows and columns of the result back to those of the image.
        back = np.array([[cosine, sine], [-sine, cosine]])
        row_column = np.array([y, x])
        offset = centre + back @ (row_column - centre)
        ndimage.affine_transform(image, back, offset, output=result, order=3)
    return out


def require_microscope(defocus, optics: Optics) -> None:
    """Refuse optics that differ between images and a defocus that is no range."""
    # The optics group of a STAR file has one value for all images.
    for name in ("voltage", "spherical_aberration", "amplitude_contrast"):
        require_number(f"optics.{name}", getattr(optics, name))
    if defocus is None:
        return
    is_pair = np.shape(defocus) == (2,) and all(isinstance(end, Real) for end in defocus)
    if not (is_pair and -np.inf < defocus[0] <= defocus[1] < np.inf):
        raise ValueError(
            f"`defocus` must be (low, high) in Angstrom with low <= high; got {defocus!r}."
        )
