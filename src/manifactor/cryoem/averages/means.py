"""Means of images whose CTF is divided out again, by Wiener's filter.

Images were multiplied by their CTF before they were averaged (`View.weigh`), so that a mean is the
signal times the mean of the squared CTF, and noise.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy import fft

from manifactor._support.threads import cores
from manifactor._support.workers import Here, Workers, ignored
from manifactor.cryoem.files.particles import Particles
from manifactor.cryoem.files.stacks import ImageArray, ImageSource
from manifactor.cryoem.one_view.spectra import shells
from manifactor.cryoem.one_view.views import View, particle_ctf_at


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


# Weighted mean images or volumes of bins, in one pass over the samples.
#
# The samples need not fit into memory.


def weighted_means(
    images: View | ImageSource | ImageArray,
    labels: np.ndarray,
    *,
    weights: np.ndarray,
    n_bins: int,
    rows: np.ndarray | None = None,
    n_blocks: int = 8,
    workers: Workers = Here(),
    report: Callable[[float], None] = ignored,
) -> np.ndarray:
    """Compute the weighted mean of every bin of images that workers read.

    >>> images = ImageArray(np.array([[1.0, 2.0], [3.0, 4.0], [9.0, 9.0]]))
    >>> labels, weights = np.array([0, 0, -1]), np.array([3.0, 1.0, 1.0])
    >>> weighted_means(images, labels, weights=weights, n_bins=2).tolist()
    [[1.5, 2.5], [0.0, 0.0]]

    Shapes: labels (n,), weights (n,) -> (n_bins, *shape).
    """
    labels, weights = _checked(labels, weights)
    pieces = images.block_rows(rows, n_blocks=n_blocks)
    # A worker holds the sums of those bins only that its images are in.
    bins = [np.unique(labels[rows], return_inverse=True) for rows in pieces]
    jobs = [
        (images[rows], place, weights[rows], len(present))
        for rows, (present, place) in zip(pieces, bins, strict=True)
    ]
    found = workers.map(_piece_sums, jobs, report=report)
    sums: np.ndarray | None = None
    for (present, _), part in zip(bins, found, strict=True):
        if sums is None:
            sums = np.zeros((n_bins, *part.shape[1:]))
        # The first may be -1, that of samples in no bin, which are not summed.
        first = int(present[0] < 0)
        sums[present[first:]] += part[first:]
    if sums is None:
        raise ValueError("`images` must hold samples; got none.")
    return _divided(sums.reshape(n_bins, -1), labels, weights, sums.shape[1:])


def _piece_sums(
    images: View | ImageSource | ImageArray, labels: np.ndarray, weights: np.ndarray, n_bins: int
) -> np.ndarray:
    """Read one piece of the images, and return their sums, (n_bins, *shape)."""
    sums, shape = _weighted_sums(images.blocks(), labels, weights, n_bins)
    return sums.reshape(n_bins, *shape)


def _checked(labels: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return labels and weights; samples in no bin have no weight."""
    labels, weights = np.asarray(labels), np.asarray(weights, dtype=float)
    if labels.shape != weights.shape or labels.ndim != 1:
        raise ValueError(
            f"`labels` and `weights` must have one entry for each sample; got shapes "
            f"{labels.shape} and {weights.shape}. Give those of the same samples."
        )
    # A label of -1 would index the last bin; without weight it never does.
    return labels, np.where(labels >= 0, weights, 0)


def _divided(
    sums: np.ndarray, labels: np.ndarray, weights: np.ndarray, shape: tuple[int, ...]
) -> np.ndarray:
    """Return the means of bins, given the sums."""
    n_bins = len(sums)
    # Samples in no bin have no weight by now, so any bin may count them.
    total = np.bincount(np.maximum(labels, 0), weights, minlength=n_bins)
    total = total[:, None]
    # In place: sums of large volumes fill much of the memory.
    means = np.divide(sums, total, out=sums, where=total > 0)
    return means.reshape(n_bins, *shape).astype(np.float32)


def _weighted_sums(
    blocks, labels: np.ndarray, weights: np.ndarray, n_bins: int
) -> tuple[np.ndarray, tuple[int, ...]]:
    """Return the weighted sums of every bin, (n_bins, n_pixels), and a sample's shape.

    Sums are in float64: small changes on a large offset survive many samples.
    """
    sums: np.ndarray | None = None
    shape: tuple[int, ...] = ()
    for rows, block in blocks:
        shape = block.shape[1:]
        if sums is None:
            sums = np.zeros((n_bins, int(np.prod(shape))))
        # A sparse product reads the block once, however many bins there are.
        summing = _summing_matrix(labels[rows], weights[rows], n_bins)
        sums += summing @ block.reshape(len(block), -1)
    if sums is None:
        raise ValueError("`blocks` must yield samples; got none.")
    return sums, shape


def _summing_matrix(labels: np.ndarray, weights: np.ndarray, n_bins: int) -> sp.csr_array:
    """Return the sparse (n_bins, m) matrix that sums a block's samples."""
    # A sample without weight has no entry, so that its NaN cannot spoil a sum.
    kept = np.flatnonzero(weights)
    entries = (weights[kept], (labels[kept], kept))
    return sp.csr_array(entries, shape=(n_bins, len(labels)))
