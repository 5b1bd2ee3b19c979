"""Memory and time of making samples of images."""

import numpy as np

from manifactor.operators.forecast import DENSE_FLOPS
from manifactor.runs.cost import DISK_RATE, PartCost


def costs_of_images(
    n_images: int, shape: tuple[int, ...], start: float, held: float, n_cores: int
) -> list[PartCost]:
    """Return reading, and what makes samples of images or volumes."""
    n, pixels = float(n_images), float(np.prod(shape))
    # Beside the samples, blocks of images.
    memory = held + 2.7e8
    if len(shape) == 3:
        # Volumes are reduced to a ball in 32 voxels, of which there are three copies.
        reading, seconds = n, 1e-7 * n * pixels
        components = 3 * 4 * n * np.pi / 6 * min(pixels, 32**3)
    else:
        # Fourier coefficients of an image that are kept, about.
        p = np.pi * max(1.0, min(24.0, shape[0] / 2 - 1)) ** 2
        # As many images as fit into 256 MB are learned from; all others are read once more, and
        # 2000 before, to see what of them is noise.
        learned = min(n, 2**28 / (4 * p))
        reading = learned + (n if learned < n else 0) + min(2000, n)
        seconds = pixels * reading * (1e-8 + 2e-8 / n_cores)
        seconds += (learned + 15 * p) * p**2 / DENSE_FLOPS
        components = 4 * (2 * learned * p + 4 * p**2)
    start += 4 * pixels * reading / DISK_RATE
    return [
        PartCost("reading", start, memory),
        PartCost("components", seconds, memory + components),
    ]
