"""Projections of a moving molecule in any orientation, with a Gaussian for each atom.

A Gaussian is a product of one along x and one along y, also after a rotation, so an image is one
product of two matrices: Gaussians along the rows, (size, n_atoms), and along the columns, (n_atoms,
size). That takes 2 n_atoms size^2 operations, which is the floor of this route: 24 million for the
channel in 48 pixels.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from manifactor._support.threads import cores, one_blas_thread
from manifactor.datasets.molecule import Molecule


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
    weights = _peak_heights(molecule.weights, blur / pixel_size)
    images = np.empty((len(angle), size, size), dtype=np.float32)

    def paint(i: int) -> None:
        moved = coefficients[i].astype(np.float32) @ features
        x, y = moved + centres[i, :, None].astype(np.float32)
        columns = _gaussians(x, size, blur / pixel_size)
        columns *= weights
        np.matmul(_gaussians(y, size, blur / pixel_size), columns.T, out=images[i])

    # One image a thread: its two matrices stay in the cache.
    with one_blas_thread(), ThreadPoolExecutor(cores()) as pool:
        list(pool.map(paint, range(len(images))))
    return images


def _features(molecule: Molecule) -> np.ndarray:
    """Return numbers of each atom, (6, n_atoms), of which its place is a linear map.

    They are x and y of the rotor, x and y of the rest, z, and the lift.
    """
    x, y, z = molecule.atoms.T
    rotor = molecule.rotor
    rest = ~rotor
    rows = [x * rotor, y * rotor, x * rest, y * rest, z, molecule.lift]
    return np.array(rows, dtype=np.float32)


def _coefficients(angle: np.ndarray, stretch: np.ndarray, rotations: np.ndarray) -> np.ndarray:
    """Return the linear maps, (n, 2, 6), from features to x and y in the image."""
    cosine, sine = np.cos(angle), np.sin(angle)
    turn = np.array([[cosine, -sine], [sine, cosine]]).transpose(2, 0, 1)
    flat, upright = rotations[:, :2, :2], rotations[:, :2, 2:]
    return np.concatenate([flat @ turn, flat, upright, flat @ stretch[:, :, None]], 2)


def _peak_heights(weights: np.ndarray, blur: float) -> np.ndarray:
    """Return the values of Gaussians with these integrals at their centres."""
    return (np.asarray(weights) / (2 * np.pi * blur**2)).astype(np.float32)


def _gaussians(centres: np.ndarray, size: int, blur: float, *, largest: float = 40.0) -> np.ndarray:
    """Return Gaussians of height 1 at the pixels, (size, n_atoms), float32.

    The exponent stops at -`largest`: e^-40 is nothing beside 1, and its square is still no denormal
    number, with which processors are a hundred times slower.
    """
    # Scaled before they are subtracted: passes over the matrix are the cost.
    scale = np.float32(1 / (np.sqrt(2) * blur))
    pixels = scale * np.arange(size, dtype=np.float32)
    exponent = pixels[:, None] - scale * centres
    np.square(exponent, out=exponent)
    np.minimum(exponent, largest, out=exponent)
    np.negative(exponent, out=exponent)
    return np.exp(exponent, out=exponent)
