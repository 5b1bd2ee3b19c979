"""Images in one view, and volumes, of a molecule whose rotor turns while the rest is stretched.

The recipe is that of the paper's cryo-EM data: the rotor is turned about z, slices of the rest are
shifted by an amount that grows with the square of the depth, the volume is tilted and summed, white
noise is added. There are two routes to the images: "atoms" moves the atoms and adds them up in the
image, "volumes" interpolates densities as the paper does.
"""

from dataclasses import dataclass, replace
from numbers import Real

import numpy as np
from scipy import ndimage
from sklearn.utils import gen_batches
from sklearn.utils.extmath import randomized_svd

from manifactor._support.parameters import require_choice, require_count, require_number
from manifactor._support.threads import one_blas_thread
from manifactor.cryoem.ctf import KRIOS, Optics, contrast_transfer
from manifactor.cryoem.simulate.molecule import (
    TURNING,
    Molecule,
    Motion,
    channel,
    simulation_generator,
)
from manifactor.cryoem.simulate.projection import (
    ROUTES,
    Frame,
    Painter,
    filtered,
    gaussian_transfer,
    grid_cells,
    require_inside,
    splat,
)

# Images made or given noise at a time, which bounds the memory of their transforms.
BATCH_SIZE = 250
# Images from which the signal is measured; more would change it little.
N_CALIBRATION = 2500


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
        # A column of zeros is not a motion.
        return circle, self.stretch if self.stretch[:, 1].any() else self.stretch[:, :1]


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
        up to 3 pixels along x and y.
    route : {"atoms", "volumes"}
        Move atoms (fast), or interpolate densities (the paper's recipe, about a hundred
        times slower).
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
    motion = Motion(motions, correlation, symmetry, stretch, 0.0)
    frame = Frame(size, pixel_size, tilt)
    require_samples(n_samples, blur, signal_to_noise, fewest=5)
    require_choice("route", route, ROUTES)
    require_microscope(defocus, optics)
    molecule = channel() if molecule is None else molecule
    frame = frame.around(molecule, motion.reach)
    paint = ROUTES[route](molecule, frame, motion.reach, blur)
    rng = simulation_generator(random_state)
    # The motions come first, and psi and shift are drawn in any case, so that a seed gives the same
    # motions with and without them.
    angle, stretches = motion.draw(n_samples, rng)
    defoci = None if defocus is None else rng.uniform(*defocus, size=n_samples)
    simulation = Simulation(
        images=np.empty((n_samples, size, size), dtype=np.float32),
        angle=angle,
        stretch=stretches,
        defocus=defoci,
        pixel_size=pixel_size,
        noise=0.0,
        symmetry=symmetry,
        view=frame.view,
        psi=rng.uniform(-180, 180, size=n_samples) * in_plane,
        # Pixels by which an image lies off its centre at most.
        shift=rng.uniform(-3.0, 3.0, size=(n_samples, 2)) * in_plane,
        optics=optics,
    )
    _paint_images(simulation, paint)
    # A pose is not a motion: the signal is that of the upright images.
    some = slice(N_CALIBRATION)
    signal = paint(angle[some], stretches[some]) if in_plane else simulation.images
    return replace(simulation, noise=add_noise(simulation.images, signal_to_noise, signal, rng))


def _paint_images(simulation: Simulation, paint: Painter) -> None:
    """Fill in clean images, rotated and shifted in their plane and with the CTF."""
    psi, shift, defocus = simulation.psi, simulation.shift, simulation.defocus
    # Without a pose there is nothing to interpolate, which would change every pixel.
    moved = psi.any() or shift.any()
    for batch in gen_batches(len(psi), BATCH_SIZE):
        painted = paint(simulation.angle[batch], simulation.stretch[batch])
        if moved:
            painted = _rotated_and_shifted(painted, psi[batch], shift[batch])
        # After the pose: the CTF is the microscope's and does not turn with a particle.
        if defocus is not None:
            size, pixel_size = simulation.size, simulation.pixel_size
            ctf = contrast_transfer(size, pixel_size, defocus[batch], optics=simulation.optics)
            painted = filtered(painted, ctf)
        simulation.images[batch] = painted


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
    for name in ("voltage", "spherical_aberration", "amplitude_contrast"):
        require_number(f"optics.{name}", getattr(optics, name))
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
    motion = Motion(motions, correlation, symmetry, stretch, 0.0)
    frame = Frame(size, pixel_size, tilt=0.0)
    require_samples(n_samples, blur, signal_to_noise, fewest=5)
    molecule = channel() if molecule is None else molecule
    points = molecule.extremes(motion.reach)
    # Along z the states together are centred; along x and y the rotor's axis is, so that a turn
    # moves nothing out.
    middle = (points[:, 2].min() + points[:, 2].max()) / 2
    origin = np.array([(size - 1) / 2 - middle / pixel_size, size / 2, size / 2])
    require_inside(grid_cells(points, origin, pixel_size), frame)
    rng = simulation_generator(random_state)
    angle, stretches = motion.draw(n_samples, rng)
    shape = (size, size, size)
    envelope = gaussian_transfer(shape, blur / pixel_size)
    volumes = np.empty((n_samples, *shape), dtype=np.float32)
    # One volume at a time: the transforms of all of them would not fit.
    for i in range(n_samples):
        cells = grid_cells(molecule.moved(angle[i], stretches[i]), origin, pixel_size)
        volume = splat(cells, molecule.weights, shape).astype(np.float32)
        volumes[i] = filtered(volume, envelope, axes=(0, 1, 2))
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
    """Return the standard deviation of white noise at a signal-to-noise ratio.

    The signal is the variance of the fourth principal component of clean images: two components
    belong to the rotor's circle, one or two to the stretch.
    """
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
