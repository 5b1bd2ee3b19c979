"""Images that a moving spot tells apart."""

import numpy as np


def moving_blob(n_images, size=36):
    """A bright spot that goes from left to right."""
    y, x = np.mgrid[:size, :size]
    columns = np.linspace(5, size - 5, n_images)
    return np.stack([np.exp(-((x - c) ** 2 + (y - size / 2) ** 2) / 18) for c in columns])
