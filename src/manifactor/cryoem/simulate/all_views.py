"""Images of a moving molecule from all directions, with the truth behind each.

An atom is a product of a Gaussian along x and one along y, also after a rotation, and an image of
all atoms is one product of two matrices: 2 n_atoms size^2 operations.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import special, stats
from scipy.optimize import minimize_scalar
from scipy.spatial.transform import Rotation
from sklearn.utils import gen_batches

from manifactor._support.parameters import require_count, require_number
from manifactor._support.threads import cores, one_blas_thread
from manifactor.cryoem.files.particles import euler_matrices, matrix_angles, view_directions
from manifactor.cryoem.one_view import KRIOS, Optics, contrast_transfer, image_frequencies
from manifactor.cryoem.simulate import one_view
from manifactor.cryoem.simulate.molecule import Molecule, Motion, channel, simulation_generator

# Pixels along x and y by which an image lies off its centre at most.
MAX_SHIFT = 2.0


@dataclass(frozen=True)
class PreferredDirections:
    r"""A density on the sphere: concentrated directions over a uniform floor.

    .. math:: p(d) = \frac{f}{4 \pi} + (1 - f) \sum_k w_k
        \frac{\kappa}{4 \pi \sinh \kappa} e^{\kappa \, m_k \cdot d}

    with floor :math:`f`, weights :math:`w_k` and von Mises-Fisher distributions about
    the directions :math:`m_k`.

    Parameters
    ----------
    directions : tuple of (float, float)
        RELION's angles rot and tilt of the preferred directions, in degrees.
    weights : tuple of float
        Share of each direction, in any unit.
    concentration : float
        kappa, the same for all directions.
    floor : float
        Share of the particles that are seen from a uniformly random direction.
    """

    # A top view, two side views and an oblique one, no two of them opposite.
    directions: tuple[tuple[float, float], ...] = (
        (30.0, 15.0),
        (75.0, 85.0),
        (-140.0, 100.0),
        (-40.0, 140.0),
    )
    weights: tuple[float, ...] = (4.0, 3.0, 2.0, 1.0)
    concentration: float = 10.0  # half of a direction's particles lie within 21 degrees of it
    # With these weights, the density is .3 to about 6 times the uniform one: every direction is
    # there, as in data sets that can be reconstructed.
    floor: float = 0.3

    def __post_init__(self) -> None:
        require_number("concentration", self.concentration, above=0)
        require_number("floor", self.floor, low=0, high=1)
        if len(self.weights) != len(self.directions) or not self.directions:
            raise ValueError(
                "`weights` must have one number for each of the `directions`, at least "
                f"one; got {len(self.weights)} and {len(self.directions)}."
            )
        for weight in self.weights:
            require_number("weights", weight, above=0)

    @property
    def shares(self) -> np.ndarray:
        """Share of the floor, then of each direction; they add up to 1."""
        weights = np.array(self.weights)
        preferred = (1 - self.floor) * weights / weights.sum()
        return np.concatenate([[self.floor], preferred])

    @property
    def centres(self) -> np.ndarray:
        """Unit vectors of the preferred directions, (n_directions, 3)."""
        return view_directions(np.array(self.directions))

    def density(self, directions: np.ndarray) -> np.ndarray:
        """Return the density at unit vectors, (n, 3), relative to the uniform one."""
        kappa = self.concentration
        # kappa e^(kappa c) / sinh kappa, without an overflow.
        cosines = directions @ self.centres.T
        peaks = 2 * kappa * np.exp(kappa * (cosines - 1)) / -np.expm1(-2 * kappa)
        return self.shares[0] + peaks @ self.shares[1:]

    def draw(self, n_samples: int, rng: np.random.Generator) -> np.ndarray:
        """Return unit vectors, (n_samples, 3)."""
        drawn = uniform_directions(n_samples, rng)
        component = rng.choice(len(self.shares), size=n_samples, p=self.shares)
        for number, centre in enumerate(self.centres, start=1):
            rows = np.flatnonzero(component == number)
            if len(rows):
                around = stats.vonmises_fisher(centre, self.concentration)
                drawn[rows] = around.rvs(len(rows), random_state=rng)
        return drawn


def uniform_directions(n_samples: int, rng: np.random.Generator) -> np.ndarray:
    """Return unit vectors, (n_samples, 3), uniform on the sphere."""
    return stats.uniform_direction(3).rvs(n_samples, random_state=rng)


def pose_angles(directions: np.ndarray, psi: np.ndarray) -> np.ndarray:
    """Return RELION's rot, tilt and psi in degrees, (n, 3), of directions."""
    x, y, z = directions.T
    rot = np.degrees(np.arctan2(y, x))
    tilt = np.degrees(np.arccos(np.clip(z, -1, 1)))
    return np.column_stack([rot, tilt, psi])


def with_error(rotations: np.ndarray, degrees: float, rng: np.random.Generator) -> np.ndarray:
    """Return rotations with normal, isotropic errors, whose root mean square is `degrees`."""
    # Each of three components has a third of the mean squared angle.
    deviation = np.radians(degrees) / np.sqrt(3)
    vectors = deviation * rng.standard_normal((len(rotations), 3))
    return Rotation.from_rotvec(vectors).as_matrix() @ rotations


def elevation_scores(directions: np.ndarray) -> np.ndarray:
    """Return normal variables, (n,), that grow from side to top views; opposite views share one."""
    # Ranks are uniform for any density of the directions.
    ranks = stats.rankdata(np.abs(directions[:, 2]))
    return special.ndtri((ranks - 0.5) / len(ranks))


def _features(molecule: Molecule) -> np.ndarray:
    """Return x and y of the rotor and of the rest, z, and the lift of each atom, (6, n_atoms)."""
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


@dataclass(frozen=True)
class ViewSimulation(one_view.Simulated):
    """Particles seen from all directions; their images are made when they are needed.

    Parameters
    ----------
    angle, stretch, shift, defocus, pixel_size, noise, symmetry, optics
        As in :class:`Simulation`, but with an angle or a stretch of 0 where nothing moves.
    molecule : Molecule
        Moved along z, so that the images are centred on the ball around all states.
    rotations : ndarray of shape (n_samples, 3, 3)
        The true rotations from the molecule to the image, as RELION defines them.
    angles : ndarray of shape (n_samples, 3)
        rot, tilt and psi in degrees as a program has estimated them, with errors.
    size : int
        Width of the images in pixels.
    blur : float
        In Angstrom.
    noise_seed : int
    """

    molecule: Molecule
    rotations: np.ndarray
    angles: np.ndarray
    size: int
    blur: float
    noise_seed: int

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
        # 2000 images of 48 pixels take 18 MB.
        for batch in gen_batches(len(self), 2000):
            images = self.clean(batch)
            if self.noise > 0:
                white = rng.standard_normal(images.shape, dtype=np.float32)
                images = images + np.float32(self.noise) * white
            yield batch, images

    def clean(self, rows) -> np.ndarray:
        """Return images of some rows without noise, with their CTF."""
        size, width = self.size, self.blur / self.pixel_size
        features = _features(self.molecule)
        moves = _coefficients(self.angle[rows], self.stretch[rows], self.rotations[rows])
        moves = (moves / self.pixel_size).astype(np.float32)
        centres = (size // 2 - self.shift[rows]).astype(np.float32)
        # The value of a Gaussian with this integral at its centre.
        heights = (np.asarray(self.molecule.weights) / (2 * np.pi * width**2)).astype(np.float32)
        images = np.empty((len(moves), size, size), dtype=np.float32)

        def paint(i: int) -> None:
            x, y = moves[i] @ features + centres[i, :, None]
            columns = _gaussians(x, size, width)
            columns *= heights
            np.matmul(_gaussians(y, size, width), columns.T, out=images[i])

        # One image a thread: its two matrices stay in the cache.
        with one_blas_thread(), ThreadPoolExecutor(cores()) as pool:
            list(pool.map(paint, range(len(images))))
        if self.defocus is None:
            return images
        at = image_frequencies(size, self.pixel_size)
        ctf = contrast_transfer(at, self.defocus[rows], optics=self.optics)
        return one_view.filtered(images, ctf)

    @property
    def true_angles(self) -> np.ndarray:
        """rot, tilt and psi of the true rotations in degrees, (n_samples, 3)."""
        return matrix_angles(self.rotations)

    @property
    def truth(self) -> tuple[np.ndarray, ...]:
        """One array for each motion: the rotor's circle, (n, 2), stretches, (n, 1)."""
        turns = [self.circle] if self.angle.any() else []
        # A column of zeros is not a motion.
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
        Of the Gaussian copula of the x-stretch and the elevation of the view, which is 0 for side
        views and 90 degrees for top and bottom views; in [-1, 1]. The stretch stays uniform.
    preferred : PreferredDirections or None
        The density of the directions; uniform if None.
    pose_error : float
        Root mean square of the angle between true rotations and `angles`, in degrees.
    defocus : (float, float) or None
        Range of the defocus in Angstrom, for images with a CTF.
    optics, molecule, symmetry, stretch, size, pixel_size, blur
        As in :func:`simulate_particles`.
    random_state : int, RandomState or None
        A seed gives the same motions as in :func:`simulate_particles`, unless they
        depend on the views.

    Returns
    -------
    ViewSimulation
        Its `images` are computed when they are first used; `parts` makes them a batch at a time.

    Examples
    --------
    >>> particles = simulate_views(3, signal_to_noise=None, random_state=0)
    >>> particles.images.shape, [t.shape for t in particles.truth]
    ((3, 48, 48), [(3, 2), (3, 1)])
    """
    motion = Motion(motions, correlation, symmetry, stretch, view_correlation)
    one_view.require_samples(n_samples, blur, signal_to_noise)
    require_number("pose_error", pose_error, low=0, high=180)
    one_view.require_microscope(defocus, optics)
    molecule = _centred(channel() if molecule is None else molecule, motion, size, pixel_size, blur)
    rng = simulation_generator(random_state)
    for_poses, for_noise, for_defocus = rng.spawn(3)
    draw = uniform_directions if preferred is None else preferred.draw
    directions = draw(n_samples, for_poses)
    angles = pose_angles(directions, for_poses.uniform(-180, 180, size=n_samples))
    shift = for_poses.uniform(-MAX_SHIFT, MAX_SHIFT, size=(n_samples, 2))
    rotations = euler_matrices(angles)
    if pose_error > 0:
        angles = matrix_angles(with_error(rotations, pose_error, for_poses))
    angle, stretches = motion.draw(n_samples, rng, view=elevation_scores(directions))
    defoci = None if defocus is None else for_defocus.uniform(*defocus, size=n_samples)
    known = angle, stretches, shift, defoci, pixel_size, 0.0, symmetry, optics
    seed = int(for_noise.integers(2**63))
    simulation = ViewSimulation(*known, molecule, rotations, angles, size, blur, seed)
    if signal_to_noise is None or signal_to_noise == np.inf:
        return simulation
    signal = _calibration(simulation, stretch)
    return replace(simulation, noise=one_view.noise_level(signal, signal_to_noise))


def _calibration(simulation: ViewSimulation, stretch: float) -> np.ndarray:
    """Return clean images, of states that do not depend on seed or motions, to measure the signal.

    So one ratio is one level of noise, also for a rigid molecule, which has no signal of its own.
    """
    n = 500  # which give the noise to about 2 %
    motion = Motion("x", 0.0, simulation.symmetry, stretch)
    angle, stretches = motion.draw(n, np.random.default_rng(0))
    upright = replace(
        simulation,
        angle=angle,
        stretch=stretches,
        rotations=euler_matrices(np.tile((180.0, 120.0, -90.0), (n, 1))),
        shift=np.zeros((n, 2)),
        defocus=None,
    )
    return upright.clean(slice(None))


def _centred(
    molecule: Molecule, motion: Motion, size: int, pixel_size: float, blur: float
) -> Molecule:
    """Return the molecule at the centre of the ball around its states; refuse too small images."""
    require_count("size", size, low=16, high=4096)
    require_number("pixel_size", pixel_size, above=0)
    # The sum of a narrower Gaussian over pixels differs from its integral by more than 3 parts in
    # ten thousand.
    narrowest = 0.7 * pixel_size
    if blur < narrowest:
        raise ValueError(
            f"`blur` must be at least 0.7 pixels, {narrowest:.3g} A; got {blur:g} A. Enlarge "
            "`blur` or lower `pixel_size`."
        )
    z = molecule.atoms[:, 2]
    # The largest distances from the z axis in any state.
    reach = np.abs(molecule.atoms[:, :2]) + molecule.lift[:, None] * motion.reach
    from_axis = np.hypot(*reach.T)

    def radius(centre: float) -> float:
        return float(np.hypot(from_axis, z - centre).max())

    # Convex, as a maximum of convex functions, so that there is one minimum.
    centre = minimize_scalar(radius, bounds=(z.min(), z.max()), method="bounded").x
    # The centre is pixel size // 2, with one pixel less beyond it than before it.
    enough = 2 * (int(np.ceil(radius(centre) / pixel_size + MAX_SHIFT)) + 1)
    if size < enough:
        raise ValueError(
            f"`size` must be at least {enough} pixels of {pixel_size:g} A for every state to stay "
            f"inside in every view; got {size}. Enlarge `size` or `pixel_size`."
        )
    return replace(molecule, atoms=molecule.atoms - [0.0, 0.0, centre])
