"""Images and volumes of a molecule whose rotor turns while the rest is stretched, with the motions behind each.

The recipe is that of the paper's cryo-EM data: the rotor turned about z, slices of the rest shifted by an amount that
grows with the square of the depth, the volume tilted and summed, white noise. Two routes lead to the images: "atoms"
moves the atoms and adds them up in the image, "volumes" interpolates densities as the paper does.
"""

from dataclasses import dataclass
from numbers import Real

import numpy as np
from scipy import ndimage, special
from sklearn.utils import check_random_state
from sklearn.utils.extmath import randomized_svd

from manifactor._support.parameters import require_choice, require_count, require_number
from manifactor._support.threads import one_blas_thread
from manifactor.cryoem.ctf import KRIOS, Optics, contrast_transfer
from manifactor.datasets.molecule import Molecule, channel
from manifactor.datasets.projection import (
    ROUTES,
    Frame,
    checked_frame,
    filtered,
    gaussian_transfer,
    grid_cells,
    require_inside,
    splat,
)

MOTIONS = {
    "x": np.array([1.0, 0.0]),
    "xy": np.array([1.0, 1.0]),
}  # the directions in which the rest is stretched
BLOCK = 250  # images at a time in Fourier space
CALIBRATION = 2500  # images are enough to know the signal
MOST_SHIFT = 3.0  # pixels
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
    psi : ndarray of shape (n_samples,)
        By how many degrees more each image is turned in its plane.
    shift : ndarray of shape (n_samples, 2)
        What moves each image back to its centre, (x, y) in pixels.
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
    def truth(self) -> tuple[np.ndarray, np.ndarray]:
        """The rotor's circle, (n_samples, 2), and the stretch, (n_samples, 1) or (n_samples, 2)."""
        phase = self.symmetry * self.angle
        return np.c_[np.cos(phase), np.sin(phase)], self.stretch if self.stretch[
            :, 1
        ].any() else self.stretch[:, :1]


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

    def draw(
        self, n_samples: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Angles (n_samples,) and stretches (n_samples, 2), uniform; angle and x joined by a Gaussian copula."""
        turn, x, y = rng.standard_normal((3, n_samples))
        x = self.correlation * turn + np.sqrt(1 - self.correlation**2) * x
        angle = 2 * np.pi / self.symmetry * special.ndtr(turn)
        return angle, self.reach * (2 * special.ndtr(np.stack([x, y], axis=1)) - 1)


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
    in_plane : bool
        Whether each image is turned in its plane by a random angle and shifted by up to `MOST_SHIFT` pixels.
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
    frame = checked_frame(Frame(size, pixel_size, tilt))
    _require_settings(n_samples, signal_to_noise, blur)
    require_choice("route", route, ROUTES)
    _require_microscope(defocus, optics)
    molecule = channel() if molecule is None else molecule
    paint = ROUTES[route](
        molecule, frame.around(molecule, motion.reach), motion.reach, blur
    )
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    angle, stretches = motion.draw(n_samples, rng)
    defoci = None if defocus is None else rng.uniform(*defocus, size=n_samples)
    upright = (
        paint(angle[:CALIBRATION], stretches[:CALIBRATION]) if in_plane else None
    )  # psi is no motion
    psi = rng.uniform(-180, 180, size=n_samples) * in_plane
    shift = rng.uniform(-MOST_SHIFT, MOST_SHIFT, size=(n_samples, 2)) * in_plane
    images = np.empty((n_samples, size, size), dtype=np.float32)
    for block in _blocks(n_samples):
        images[block] = paint(angle[block], stretches[block])
        if in_plane:
            images[block] = _turned_and_shifted(images[block], psi[block], shift[block])
        if defoci is not None:
            images[block] = filtered(
                images[block],
                contrast_transfer(size, pixel_size, defoci[block], optics=optics),
            )
    noise = _add_noise(images, signal_to_noise, rng, reference=upright)
    view = (180.0, 90.0 - tilt, -90.0)  # the same projection in RELION's words
    return Simulation(
        images,
        angle,
        stretches,
        defoci,
        pixel_size,
        noise,
        symmetry,
        view,
        psi,
        shift,
        optics,
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
    frame = checked_frame(Frame(size, pixel_size, 0.0))
    _require_settings(n_samples, signal_to_noise, blur)
    molecule = channel() if molecule is None else molecule
    points = molecule.extremes(motion.reach)
    middle = (points[:, 2].min() + points[:, 2].max()) / 2
    origin = np.array([(size - 1) / 2 - middle / pixel_size, size / 2, size / 2])
    require_inside(grid_cells(points, origin, pixel_size), frame)
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    angle, stretches = motion.draw(n_samples, rng)
    shape = (size, size, size)
    envelope = gaussian_transfer(shape, blur / pixel_size)
    volumes = np.empty((n_samples, *shape), dtype=np.float32)
    for i in range(n_samples):
        cells = grid_cells(molecule.moved(angle[i], stretches[i]), origin, pixel_size)
        volume = splat(cells, molecule.weights, shape).astype(np.float32)
        volumes[i] = filtered(volume, envelope, axes=(0, 1, 2))
    _add_noise(volumes, signal_to_noise, rng)
    return volumes, angle, stretches


def _blocks(n: int) -> list[slice]:
    return [slice(start, start + BLOCK) for start in range(0, n, BLOCK)]


def _turned_and_shifted(
    images: np.ndarray, psi: np.ndarray, shift: np.ndarray
) -> np.ndarray:
    """Images turned by psi degrees and moved off their centre, as RELION's psi and origin say."""
    out = np.empty_like(images)
    centre = np.array(images.shape[1:]) // 2
    for image, turned, angle, moved in zip(
        images, out, np.radians(psi), shift, strict=True
    ):
        cosine, sine = np.cos(angle), np.sin(angle)
        back = np.array(
            [[cosine, sine], [-sine, cosine]]
        )  # rows and columns of the result to those of the image
        ndimage.affine_transform(
            image, back, centre + back @ (moved[::-1] - centre), output=turned, order=3
        )
    return out


def _add_noise(
    images: np.ndarray,
    signal_to_noise: float | None,
    rng: np.random.Generator,
    reference: np.ndarray | None = None,
) -> float:
    """Add white noise to the images, in place, and return its standard deviation; the signal is the reference's."""
    if signal_to_noise is None or np.isinf(signal_to_noise):
        return 0.0
    signal = _component_variance(images if reference is None else reference)
    noise = float(np.sqrt(signal / signal_to_noise))
    for block in _blocks(len(images)):
        images[block] += np.float32(noise) * rng.standard_normal(
            images[block].shape, dtype=np.float32
        )
    return noise


def _component_variance(images: np.ndarray) -> float:
    """Variance of the images along their fourth principal component."""
    X = images[:CALIBRATION].reshape(min(len(images), CALIBRATION), -1)
    X = X - X.mean(axis=0)
    with one_blas_thread():  # the same bits on any number of cores
        values = randomized_svd(X, COMPONENT, random_state=0)[1]
    return float(values[COMPONENT - 1]) ** 2 / len(X)


def _require_settings(
    n_samples: int, signal_to_noise: float | None, blur: float
) -> None:
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
    numbers = np.shape(defocus) == (2,) and all(
        isinstance(bound, Real) for bound in defocus
    )
    if not (numbers and -np.inf < defocus[0] <= defocus[1] < np.inf):
        raise ValueError(
            f"`defocus` must be (low, high) in Angstrom with low <= high; got {defocus!r}."
        )
