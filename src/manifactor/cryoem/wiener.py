"""Means of images whose CTF is divided out again, by Wiener's filter.

Images were multiplied by their CTF before they were averaged (`View.weigh`), so that a mean is the
signal times the mean of the squared CTF, and noise.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import fft

from manifactor._support.threads import cores
from manifactor.cryoem.particles import Particles
from manifactor.cryoem.spectra import shells
from manifactor.cryoem.stacks import ImageSource
from manifactor.cryoem.views import View, particle_ctf_at


@dataclass(frozen=True)
class WienerSettings:
    """Settings of `transfer_powers` and `restored`."""

    # Directions over which the CTF is averaged: astigmatism repeats after half a turn, and images
    # are turned in their plane.
    n_angles: int = 4

    # Radius in units of the box beyond which a mean shows noise only.
    background: float = 0.48

    # Particles at a time: their CTF takes some 10 MB.
    block: int = 2000


def correction(
    images: View | ImageSource,
    labels: np.ndarray,
    *,
    weights: np.ndarray,
    n_bins: int,
    settings: WienerSettings = WienerSettings(),
) -> Callable[[np.ndarray], np.ndarray]:
    """Return what divides the CTF out of the means of bins.

    That is the identity if the images were not multiplied by their CTF.
    """
    if not isinstance(images, View) or images.particles is None or not images.weigh:
        return lambda means: means
    powers = transfer_powers(
        images.particles,
        labels,
        weights=weights,
        n_bins=n_bins,
        size=images.source.shape[-1],
        pixel_size=images.source.pixel_size,
        settings=settings,
    )
    return lambda means: restored(means, powers, settings=settings)


def transfer_powers(
    particles: Particles,
    labels: np.ndarray,
    *,
    weights: np.ndarray,
    n_bins: int,
    size: int,
    pixel_size: float,
    settings: WienerSettings = WienerSettings(),
) -> np.ndarray:
    """Return the weighted mean of the squared CTF of every bin, by shell.

    Shapes: labels (n,), weights (n,) -> (n_bins, n_shells).
    """
    n_shells = int(shells(size)[0].max()) + 1
    radius = np.arange(n_shells) / (size * pixel_size)
    angles = np.arange(settings.n_angles) * np.pi / settings.n_angles
    x, y = np.outer(np.cos(angles), radius), np.outer(np.sin(angles), radius)
    sums, total = np.zeros((n_bins, n_shells)), np.zeros(n_bins)
    used = np.flatnonzero((labels >= 0) & (weights > 0))
    for start in range(0, len(used), settings.block):
        rows = used[start : start + settings.block]
        power = (particle_ctf_at(particles[rows], x, y) ** 2).mean(axis=1)
        np.add.at(sums, labels[rows], weights[rows, None] * power)
        np.add.at(total, labels[rows], weights[rows])
    return sums / np.maximum(total, np.finfo(float).tiny)[:, None]


def restored(
    means: np.ndarray, powers: np.ndarray, *, settings: WienerSettings = WienerSettings()
) -> np.ndarray:
    """Return means of images with their CTF divided out.

    Signal and noise are measured in the means themselves: noise outside of the disc that the
    molecule fills, signal in what is left of each shell.

    Shapes: means (n_bins, size, size), powers (n_bins, n_shells) -> (n_bins, size, size).
    """
    size = means.shape[-1]
    shell, multiplicity = shells(size)
    spectra = fft.rfft2(means, norm="ortho", workers=cores())
    filled = np.flatnonzero(powers.max(axis=1) > 0)
    if not len(filled):
        return means
    noise = _noise(means[filled], powers[filled], settings)
    power = np.abs(spectra[filled]) ** 2 * multiplicity
    by_shell = _shell_sums(power.mean(axis=0), shell) / _shell_sums(multiplicity, shell)
    common = powers[filled].mean(axis=0)
    signal = np.maximum(by_shell - noise * common, 0) / common**2
    # Where there is no signal, nothing is let through.
    relative = np.divide(noise, signal, out=np.full(len(signal), np.inf), where=signal > 0)
    denominator = (powers + relative)[:, shell]
    # A bin without images has no CTF, and stays empty.
    empty = np.isinf(denominator) | (denominator == 0)
    spectra = np.divide(spectra, denominator, out=np.zeros_like(spectra), where=~empty)
    return fft.irfft2(spectra, s=(size, size), norm="ortho", workers=cores()).astype(np.float32)


def _noise(means: np.ndarray, powers: np.ndarray, settings: WienerSettings) -> float:
    """Return the variance of white noise in the mean, before it was multiplied."""
    size = means.shape[-1]
    axis = np.arange(size) - size // 2
    outside = np.hypot(axis[:, None], axis) > settings.background * size
    shell, multiplicity = shells(size)
    transferred = (powers.mean(axis=0)[shell] * multiplicity).sum() / multiplicity.sum()
    return float(means[:, outside].var(axis=1).mean() / transferred)


def _shell_sums(values: np.ndarray, shell: np.ndarray) -> np.ndarray:
    return np.bincount(shell.ravel(), values.ravel())
