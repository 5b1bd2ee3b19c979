"""Images of a moving molecule from all directions, with the truth behind each."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from sklearn.utils import gen_batches

from manifactor._support.parameters import require_count, require_number
from manifactor.cryoem.ctf import KRIOS, Optics, contrast_transfer
from manifactor.cryoem.files.particles import euler_matrices, matrix_angles
from manifactor.cryoem.simulate.ion_channel import channel
from manifactor.cryoem.simulate.molecule import (
    Molecule,
    Motion,
    centred,
    require_room,
    simulation_generator,
)
from manifactor.cryoem.simulate.particles import require_microscope
from manifactor.cryoem.simulate.poses import (
    NoiseSettings,
    PreferredDirections,
    draw_poses,
    elevation_scores,
    noise_level,
)
from manifactor.cryoem.simulate.projection import filtered, project


@dataclass(frozen=True)
class ViewSettings:
    """Settings of `simulate_views`."""

    # Pixels along x and y by which an image lies off its centre at most.
    max_shift: float = 2.0
    # Images made at a time, which bounds the memory: 18 MB for 48 pixels.
    batch_size: int = 2000
    # Smallest width of an atom in pixels: the sum of a narrower Gaussian over pixels differs from
    # its integral by more than 3 parts in ten thousand.
    smallest_blur: float = 0.7
    # The direction in which `simulate_particles` projects, where noise is calibrated.
    calibrated_view: tuple[float, float, float] = (180.0, 120.0, -90.0)
    # States that calibrate the noise: 500 give it to about 2 %.
    noise: NoiseSettings = field(default_factory=lambda: NoiseSettings(n_calibration=500))


@dataclass(frozen=True)
class ViewSimulation:
    """Particles seen from all directions; their images are made when they are needed.

    Parameters
    ----------
    molecule : Molecule
        Moved along z, so that the images are centred on the ball around all states.
    angle : ndarray of shape (n_samples,)
        Of the rotor in radians, in [0, 2 pi / symmetry); 0 if it does not turn.
    stretch : ndarray of shape (n_samples, 2)
        Along x and y in Angstrom; 0 along an axis without stretch.
    rotations : ndarray of shape (n_samples, 3, 3)
        The true rotations from the molecule to the image, as RELION defines them.
    angles : ndarray of shape (n_samples, 3)
        rot, tilt and psi in degrees as a program has estimated them, with errors.
    shift : ndarray of shape (n_samples, 2)
        The shift that moves each image back to its centre, (x, y) in pixels.
    defocus : ndarray of shape (n_samples,) or None
        In Angstrom; None if the images have no CTF.
    size : int
        Width of the images in pixels.
    pixel_size, blur : float
        In Angstrom.
    noise : float
        Standard deviation of the white noise.
    noise_seed : int
    symmetry : int
        The rotor looks the same after a turn of 2 pi / symmetry.
    optics : Optics
    settings : ViewSettings
    """

    molecule: Molecule
    angle: np.ndarray
    stretch: np.ndarray
    rotations: np.ndarray
    angles: np.ndarray
    shift: np.ndarray
    defocus: np.ndarray | None
    size: int
    pixel_size: float
    blur: float
    noise: float
    noise_seed: int
    symmetry: int
    optics: Optics
    settings: ViewSettings

    def __len__(self) -> int:
        return len(self.angle)

    @cached_property
    def images(self) -> np.ndarray:
        """All images, (n_samples, size, size), float32, white on dark."""
        images = np.empty((len(self), self.size, self.size), dtype=np.float32)
        for batch, part in self.parts():
            images[batch] = part
        return images

    def parts(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield consecutive rows and their images, a batch at a time."""
        # One stream of noise in the order of the images: they do not depend on the size of a batch.
        rng = np.random.default_rng(self.noise_seed)
        for batch in gen_batches(len(self), self.settings.batch_size):
            images = self.clean(batch)
            if self.noise > 0:
                white = rng.standard_normal(images.shape, dtype=np.float32)
                images = images + np.float32(self.noise) * white
            yield batch, images

    def clean(self, rows) -> np.ndarray:
        """Return images of some rows without noise, with their CTF."""
        images = project(
            self.molecule,
            self.angle[rows],
            self.stretch[rows],
            self.rotations[rows],
            shift=self.shift[rows],
            size=self.size,
            pixel_size=self.pixel_size,
            blur=self.blur,
        )
        if self.defocus is None:
            return images
        ctf = contrast_transfer(self.size, self.pixel_size, self.defocus[rows], optics=self.optics)
        return filtered(images, ctf)

    @property
    def true_angles(self) -> np.ndarray:
        """rot, tilt and psi of the true rotations in degrees, (n_samples, 3)."""
        return matrix_angles(self.rotations)

    @property
    def truth(self) -> tuple[np.ndarray, ...]:
        """One array for each motion: the rotor's circle, (n, 2), stretches, (n, 1)."""
        # Images repeat after a turn of 2 pi / symmetry, which is one turn of the phase.
        phase = self.symmetry * self.angle
        turns = [np.c_[np.cos(phase), np.sin(phase)]] if self.angle.any() else []
        # A column of zeros is no motion.
        stretches = [column[:, None] for column in self.stretch.T if column.any()]
        return *turns, *stretches


def simulate_views(
    n_samples: int,
    *,
    motions: str = "x",
    signal_to_noise: float | None = 10.0,
    correlation: float = 0.0,
    view_correlation: float = 0.0,
    preferred: PreferredDirections | None = None,
    pose_error: float = 0.0,
    defocus: tuple[float, float] | None = None,
    optics: Optics = KRIOS,
    molecule: Molecule | None = None,
    symmetry: int = 4,
    stretch: float = 40.0,
    size: int = 48,
    pixel_size: float = 5.5,
    blur: float = 4.0,
    settings: ViewSettings = ViewSettings(),
    random_state=None,
) -> ViewSimulation:
    """Simulate images of a moving molecule from all directions.

    Poses are random, with a turn of each image in its plane and a shift.

    Parameters
    ----------
    n_samples : int
    motions : {"x", "xy", "stretches", "rigid"}
        The rotor turns, and the rest is stretched along x, or along x and y; the rest
        is stretched along x and y, and the rotor is at rest; nothing moves.
    signal_to_noise : float or None
        As in :func:`simulate_particles`, in its view and for the motions "x", so that
        all motions have the same noise. None or infinity for no noise.
    correlation : float
        Of the Gaussian copula of the angle and the x-stretch, in [-1, 1].
    view_correlation : float
        Of the Gaussian copula of the x-stretch and the elevation of the view, which is
        0 for side views and 90 degrees for top and bottom views; in [-1, 1]. The
        stretch stays uniform.
    preferred : PreferredDirections or None
        The density of the directions; uniform if None.
    pose_error : float
        Root mean square of the angle between true rotations and `angles`, in degrees.
    defocus : (float, float) or None
        Range of the defocus in Angstrom, for images with a CTF.
    optics, molecule, symmetry, stretch
        As in :func:`simulate_particles`.
    size : int
        Width of the images in pixels.
    pixel_size : float
        In Angstrom.
    blur : float
        Standard deviation of the Gaussian of each atom, in Angstrom.
    settings : ViewSettings
    random_state : int, RandomState or None
        A seed gives the same motions as in :func:`simulate_particles`, unless they
        depend on the views.

    Returns
    -------
    ViewSimulation
        Its `images` are computed when they are first used; `parts` makes them a batch
        at a time.

    Examples
    --------
    >>> particles = simulate_views(3, signal_to_noise=None, random_state=0)
    >>> particles.images.shape, [t.shape for t in particles.truth]
    ((3, 48, 48), [(3, 2), (3, 1)])
    """
    motion = Motion(motions, correlation, symmetry, stretch, view_correlation)
    _require_numbers(n_samples, signal_to_noise, pose_error, settings)
    _require_pixels(size, pixel_size, blur, settings)
    require_microscope(defocus, optics)
    molecule = centred(channel() if molecule is None else molecule, motion)
    require_room(molecule, motion, size, pixel_size, shift=settings.max_shift)
    rng = simulation_generator(random_state)
    for_poses, for_noise, for_defocus = rng.spawn(3)
    poses = draw_poses(
        n_samples,
        preferred=preferred,
        pose_error=pose_error,
        max_shift=settings.max_shift,
        rng=for_poses,
    )
    scores = elevation_scores(poses.directions)
    angle, stretches = motion.draw(n_samples, rng, view=scores)
    simulation = ViewSimulation(
        molecule,
        angle,
        stretches,
        poses.rotations,
        poses.angles,
        poses.shift,
        None if defocus is None else for_defocus.uniform(*defocus, size=n_samples),
        size,
        pixel_size,
        blur,
        noise=0.0,
        noise_seed=int(for_noise.integers(2**63)),
        symmetry=symmetry,
        optics=optics,
        settings=settings,
    )
    level = _calibrated_noise(simulation, signal_to_noise, stretch)
    return replace(simulation, noise=level)


def _calibrated_noise(
    simulation: ViewSimulation, signal_to_noise: float | None, stretch: float
) -> float:
    """Return the standard deviation of the noise at a signal-to-noise ratio."""
    if signal_to_noise is None or np.isinf(signal_to_noise):
        return 0.0
    settings = simulation.settings
    # The same states for every seed and every choice of motions: one ratio is one level of noise,
    # also for a rigid molecule, which has no signal of its own.
    n = settings.noise.n_calibration
    motion = Motion("x", 0.0, simulation.symmetry, stretch)
    angle, stretches = motion.draw(n, np.random.default_rng(0))
    view = euler_matrices(np.tile(settings.calibrated_view, (n, 1)))
    upright = replace(
        simulation,
        angle=angle,
        stretch=stretches,
        rotations=view,
        shift=np.zeros((n, 2)),
        defocus=None,
    )
    signal = upright.clean(slice(None))
    return noise_level(signal, signal_to_noise, settings=settings.noise)


def _require_numbers(
    n_samples: int, signal_to_noise: float | None, pose_error: float, settings: ViewSettings
) -> None:
    require_count("n_samples", n_samples, low=1, high=10**9)
    require_number("pose_error", pose_error, low=0, high=180)
    require_number("max_shift", settings.max_shift, low=0)
    if signal_to_noise is not None and signal_to_noise != np.inf:
        require_number("signal_to_noise", signal_to_noise, above=0)


def _require_pixels(size: int, pixel_size: float, blur: float, settings: ViewSettings) -> None:
    require_count("size", size, low=16, high=4096)
    require_number("pixel_size", pixel_size, above=0)
    require_number("blur", blur, low=0)
    narrowest = settings.smallest_blur * pixel_size
    if blur < narrowest:
        raise ValueError(
            f"`blur` must be at least {settings.smallest_blur:g} pixels, "
            f"{narrowest:.3g} A; got {blur:g} A. Enlarge `blur` or lower `pixel_size`."
        )
