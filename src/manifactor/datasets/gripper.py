"""Camera images of the gripper at the end of a robot arm."""

from dataclasses import dataclass

import numpy as np

from manifactor.datasets.products import Samples, ring


@dataclass(frozen=True)
class GripperImages:
    """Images of a gripper seen along the axis of its wrist, flattened.

    The wrist turns (a circle), and two fingers open and close (an interval). A lamp beside the
    fingers tells one half turn from the other. Pixels have coordinates from -1 to 1, and the axis
    is at 0.
    """

    closed: float = 0.2  # least and largest distance of a finger from the axis
    open: float = 0.7  # least and largest distance of a finger from the axis
    lamp: float = 0.5  # distance of the lamp from the axis
    width: float = 0.15  # standard deviation of the blur of a finger or the lamp
    n_pixels: int = 24  # width of an image
    noise: float = 0.1  # standard deviation in each pixel, in units of the brightness of a finger

    def __call__(self, n_samples: int, rng) -> Samples:
        """Draw images, the direction of the wrist, and the opening from 0 to 1."""
        direction = ring(rng.uniform(0, 2 * np.pi, size=n_samples))
        opening = rng.uniform(size=(n_samples, 1))
        across = direction[:, ::-1] * [-1, 1]
        finger = (self.closed + (self.open - self.closed) * opening) * across
        centres = (finger, -finger, self.lamp * direction)
        clean = np.sum([self._spot(centre) for centre in centres], axis=0)
        X = clean + rng.normal(scale=self.noise, size=clean.shape)
        return X, (direction, opening)

    def _spot(self, centre: np.ndarray) -> np.ndarray:
        """Return images of a blurred spot, (n_samples, n_pixels^2)."""
        grid = np.linspace(-1, 1, self.n_pixels)
        # A Gaussian spot is the product of its profiles along rows and columns.
        x, y = (np.exp(-((grid - place[:, None]) ** 2) / (2 * self.width**2)) for place in centre.T)
        return (y[:, :, None] * x[:, None]).reshape(len(centre), -1)
