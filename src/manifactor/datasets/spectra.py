"""Spectra whose peaks move independently: a sum in the channels, but not linear."""

from dataclasses import dataclass

import numpy as np

from manifactor.datasets.products import Samples


@dataclass(frozen=True)
class Peak:
    """A Gaussian peak whose centre is uniform between two ends.

    Centres and widths (standard deviations) are in units of the whole spectrum.
    """

    lowest: float
    highest: float
    width: float
    height: float = 1.0

    def draw(self, n_samples: int, channels: np.ndarray, rng) -> tuple[np.ndarray, np.ndarray]:
        """Return spectra, (n_samples, n_channels), and places from 0 to 1."""
        place = rng.uniform(size=(n_samples, 1))
        centre = self.lowest + (self.highest - self.lowest) * place
        offset = (channels - centre) / self.width
        return self.height * np.exp(-(offset**2) / 2), place


# Both move by several times their widths, so that the spectra are far from linear in the places.
# Their ranges overlap: some channels see both.
TWO_PEAKS = (Peak(0.15, 0.55, 0.05), Peak(0.45, 0.85, 0.07, height=0.7))


@dataclass(frozen=True)
class Spectra:
    """Spectra of several moving peaks with noise."""

    peaks: tuple[Peak, ...] = TWO_PEAKS
    n_channels: int = 120
    # Standard deviation in each channel, in units of the height of the first peak
    noise: float = 0.05

    def __call__(self, n_samples: int, rng) -> Samples:
        """Draw spectra and the place of each peak."""
        channels = np.linspace(0, 1, self.n_channels)
        drawn = [peak.draw(n_samples, channels, rng) for peak in self.peaks]
        clean = np.sum([spectra for spectra, _ in drawn], axis=0)
        X = clean + rng.normal(scale=self.noise, size=clean.shape)
        return X, tuple(place for _, place in drawn)
