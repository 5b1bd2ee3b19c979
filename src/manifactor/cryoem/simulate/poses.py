"""White noise on simulated images and volumes, relative to their signal."""

from dataclasses import dataclass

import numpy as np
from scipy import special, stats
from scipy.spatial.transform import Rotation
from sklearn.utils import gen_batches
from sklearn.utils.extmath import randomized_svd

from manifactor._support.parameters import require_count, require_number
from manifactor._support.threads import one_blas_thread
from manifactor.cryoem.files.particles import euler_matrices, matrix_angles, view_directions


@dataclass(frozen=True)
class NoiseSettings:
    """Settings of `add_noise`."""

    # The principal component whose variance is the signal: two components belong to the rotor's
    # circle, one or two to the stretch.
    component: int = 4
    # Images from which the signal is measured; more would change it little.
    n_calibration: int = 2500
    # Images that get their noise at a time, which bounds the memory.
    batch_size: int = 250


def add_noise(
    images: np.ndarray,
    signal_to_noise: float | None,
    *,
    signal: np.ndarray,
    rng: np.random.Generator,
    settings: NoiseSettings = NoiseSettings(),
) -> float:
    """Add white noise to the images in place and return its standard deviation.

    Shapes: images (n_samples, ...), signal (n_samples, ...).
    """
    noise = noise_level(signal, signal_to_noise, settings=settings)
    if noise == 0:
        return noise
    for batch in gen_batches(len(images), settings.batch_size):
        shape = images[batch].shape
        white = rng.standard_normal(shape, dtype=np.float32)
        images[batch] += np.float32(noise) * white
    return noise


def noise_level(
    signal: np.ndarray, signal_to_noise: float | None, *, settings: NoiseSettings = NoiseSettings()
) -> float:
    """Return the standard deviation of white noise at a signal-to-noise ratio.

    The parameters are those of `add_noise`.
    """
    if signal_to_noise is None or np.isinf(signal_to_noise):
        return 0.0
    variance = _component_variance(signal, settings)
    return float(np.sqrt(variance / signal_to_noise))


def require_samples(
    n_samples: int,
    blur: float,
    signal_to_noise: float | None,
    settings: NoiseSettings = NoiseSettings(),
) -> None:
    """Refuse numbers that cannot be, and too few samples to measure the signal."""
    require_count("n_samples", n_samples, low=1, high=10**9)
    require_number("blur", blur, low=0)
    if signal_to_noise is None or signal_to_noise == np.inf:
        return
    require_number("signal_to_noise", signal_to_noise, above=0)
    component = settings.component
    if n_samples <= component:
        raise ValueError(
            f"`n_samples` must be at least {component + 1} for noise by the "
            f"{component}th principal component; got {n_samples}. Add samples, or take "
            "`signal_to_noise=inf`."
        )


def _component_variance(images: np.ndarray, settings: NoiseSettings) -> float:
    """Return the variance of the images along their principal component."""
    X = images[: settings.n_calibration]
    X = X.reshape(len(X), -1)
    X = X - X.mean(axis=0)
    with one_blas_thread():  # the same bits on any number of cores
        values = randomized_svd(X, settings.component, random_state=0)[1]
    return float(values[settings.component - 1]) ** 2 / len(X)


# Viewing directions and poses of simulated particles, and errors of the poses.


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
    # Half of the particles of a direction lie within 21 degrees of it, and the density there is 2
    # kappa = 20 times the uniform one.
    concentration: float = 10.0
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
        angles = np.array(self.directions)
        return view_directions(np.c_[angles, np.zeros(len(angles))])

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


@dataclass(frozen=True)
class Poses:
    """Poses of simulated particles."""

    directions: np.ndarray  # (n, 3): unit vectors of the true views
    rotations: np.ndarray  # (n, 3, 3): the true rotations from the molecule to the image
    angles: np.ndarray  # (n, 3): rot, tilt and psi with errors, in degrees
    shift: np.ndarray  # (n, 2): pixels along x and y


def draw_poses(
    n_samples: int,
    *,
    preferred: PreferredDirections | None,
    pose_error: float,
    max_shift: float,
    rng: np.random.Generator,
) -> Poses:
    """Draw a direction, a turn in the plane and a shift for each particle."""
    draw = uniform_directions if preferred is None else preferred.draw
    directions = draw(n_samples, rng)
    angles = pose_angles(directions, rng.uniform(-180, 180, size=n_samples))
    shift = rng.uniform(-max_shift, max_shift, size=(n_samples, 2))
    rotations = euler_matrices(angles)
    if pose_error > 0:
        angles = matrix_angles(with_error(rotations, pose_error, rng))
    return Poses(directions, rotations, angles, shift)


def uniform_directions(n_samples: int, rng: np.random.Generator) -> np.ndarray:
    """Return unit vectors, (n_samples, 3), uniform on the sphere."""
    normal = rng.standard_normal((n_samples, 3))
    return normal / np.linalg.norm(normal, axis=1, keepdims=True)


def pose_angles(directions: np.ndarray, psi: np.ndarray) -> np.ndarray:
    """Return RELION's rot, tilt and psi in degrees, (n, 3).

    Shapes: directions (n, 3), psi (n,).
    """
    x, y, z = directions.T
    rot = np.degrees(np.arctan2(y, x))
    tilt = np.degrees(np.arccos(np.clip(z, -1, 1)))
    return np.column_stack([rot, tilt, psi])


def with_error(rotations: np.ndarray, degrees: float, rng: np.random.Generator) -> np.ndarray:
    """Return rotations, (n, 3, 3), that differ from the given ones by random ones.

    The vectors of the additional rotations are normal and isotropic. Their angle is `degrees` as a
    root mean square.
    """
    # Each of three components has a third of the mean squared angle.
    deviation = np.radians(degrees) / np.sqrt(3)
    vectors = deviation * rng.standard_normal((len(rotations), 3))
    return Rotation.from_rotvec(vectors).as_matrix() @ rotations


def elevation_scores(directions: np.ndarray) -> np.ndarray:
    """Return standard normal variables, (n,), that grow from side to top views.

    Opposite views, whose images are mirror images, have the same one.
    """
    # Ranks are uniform whatever the density of the directions.
    ranks = stats.rankdata(np.abs(directions[:, 2]))
    return special.ndtri((ranks - 0.5) / len(ranks))
