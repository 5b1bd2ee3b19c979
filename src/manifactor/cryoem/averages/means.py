"""Weighted mean images or volumes of bins, in one pass, and their correction for the CTF.

Images are multiplied by their CTF before they are averaged (`View.weigh`), so that a mean is the
signal times the mean of the squared CTF, and noise. Wiener's filter divides the CTF out again.
"""

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from scipy import fft

from manifactor._support.threads import cores
from manifactor._support.workers import Here, Workers, ignored
from manifactor.cryoem.files.particles import Particles
from manifactor.cryoem.files.stacks import ImageArray, ImageSource
from manifactor.cryoem.one_view.images import shells
from manifactor.cryoem.one_view.views import View, particle_ctf_at


def weighted_means(
    images: View | ImageSource | ImageArray,
    labels: np.ndarray,
    *,
    weights: np.ndarray,
    n_bins: int,
    rows: np.ndarray | None = None,
    workers: Workers = Here(),
    report: Callable[[float], None] = ignored,
) -> np.ndarray:
    """Compute the weighted mean of every bin of images that workers read.

    The images need not fit into memory. A label of -1 is that of a sample in no bin.

    >>> images = ImageArray(np.array([[1.0, 2.0], [3.0, 4.0], [9.0, 9.0]]))
    >>> labels, weights = np.array([0, 0, -1]), np.array([3.0, 1.0, 1.0])
    >>> weighted_means(images, labels, weights=weights, n_bins=2).tolist()
    [[1.5, 2.5], [0.0, 0.0]]

    Shapes: labels (n,), weights (n,) -> (n_bins, *shape).
    """
    weights = np.where(labels >= 0, weights, 0).astype(float)
    # Eight blocks of 64 MiB are some seconds of work. What a worker sends back is no larger than
    # the sums of some bins, or twice the images.
    pieces = images.block_rows(rows, n_blocks=8)
    # A worker holds the sums of those bins only that its images are in.
    bins = [np.unique(labels[rows], return_inverse=True) for rows in pieces]
    jobs = [
        (images[rows], own, weights[rows], len(present))
        for rows, (present, own) in zip(pieces, bins, strict=True)
    ]
    source = images.source if isinstance(images, View) else images
    sums = np.zeros((n_bins, *source.shape))
    found = workers.map(_piece_sums, jobs, report=report)
    for (present, _), part in zip(bins, found, strict=True):
        # The first may be -1, that of samples in no bin, which are not summed.
        first = int(present[0] < 0)
        sums[present[first:]] += part[first:]
    # Samples in no bin have no weight, so any bin may count them.
    total = np.bincount(np.maximum(labels, 0), weights, minlength=n_bins)
    total = total.reshape(-1, *[1] * (sums.ndim - 1))
    # In place: sums of large volumes fill much of the memory.
    return np.divide(sums, total, out=sums, where=total > 0).astype(np.float32)


def _piece_sums(
    images: View | ImageSource | ImageArray, labels: np.ndarray, weights: np.ndarray, n_bins: int
) -> np.ndarray:
    """Read one piece of the images, and return their weighted sums, (n_bins, *shape).

    Sums are in float64: small changes on a large offset survive many samples.
    """
    sums: np.ndarray | float = 0.0
    shape: tuple[int, ...] = ()
    for rows, block in images.blocks():
        shape = block.shape[1:]
        # A sample without weight has no entry, so that its NaN cannot spoil a sum.
        kept = np.flatnonzero(weights[rows])
        entries = (weights[rows][kept], (labels[rows][kept], kept))
        # A sparse product reads the block once, however many bins there are.
        summing = sp.csr_array(entries, shape=(n_bins, len(rows)))
        sums = sums + summing @ block.reshape(len(block), -1)
    return np.asarray(sums).reshape(n_bins, *shape)


# Wiener's filter.


def correction(
    images: View | ImageSource, labels: np.ndarray, *, weights: np.ndarray, n_bins: int
) -> Callable[[np.ndarray], np.ndarray]:
    """Return what divides the CTF out of the means of bins.

    That is the identity if the images were not multiplied by their CTF.
    """
    if not isinstance(images, View) or images.particles is None or not images.weigh:
        return lambda means: means
    powers = _transfer_powers(images.source, images.particles, labels, weights, n_bins)
    return lambda means: restored(means, powers)


def _transfer_powers(
    source: ImageSource | ImageArray,
    particles: Particles,
    labels: np.ndarray,
    weights: np.ndarray,
    n_bins: int,
) -> np.ndarray:
    """Return the weighted mean of the squared CTF of every bin, by shell, (n_bins, n_shells)."""
    size, pixel_size = source.shape[-1], source.pixel_size
    n_shells = int(shells(size)[0].max()) + 1
    radius = np.arange(n_shells) / (size * pixel_size)
    # Four directions over half a turn: astigmatism repeats after it, and images are turned in their
    # plane.
    angles = np.arange(4) * np.pi / 4
    x, y = np.outer(np.cos(angles), radius), np.outer(np.sin(angles), radius)
    sums, total = np.zeros((n_bins, n_shells)), np.zeros(n_bins)
    used = np.flatnonzero((labels >= 0) & (weights > 0))
    # The CTF of 2000 particles takes some 10 MB.
    for start in range(0, len(used), 2000):
        rows = used[start : start + 2000]
        power = (particle_ctf_at(particles[rows], x, y) ** 2).mean(axis=1)
        np.add.at(sums, labels[rows], weights[rows, None] * power)
        np.add.at(total, labels[rows], weights[rows])
    return sums / np.maximum(total, np.finfo(float).tiny)[:, None]


def restored(means: np.ndarray, powers: np.ndarray) -> np.ndarray:
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
    noise = _noise(means[filled], powers[filled])
    power = np.abs(spectra[filled]) ** 2 * multiplicity
    count = np.bincount(shell.ravel(), multiplicity.ravel())
    by_shell = np.bincount(shell.ravel(), power.mean(axis=0).ravel()) / count
    common = powers[filled].mean(axis=0)
    signal = np.maximum(by_shell - noise * common, 0) / common**2
    # Where there is no signal, nothing is let through.
    relative = np.divide(noise, signal, out=np.full(len(signal), np.inf), where=signal > 0)
    denominator = (powers + relative)[:, shell]
    # A bin without images has no CTF, and stays empty.
    empty = np.isinf(denominator) | (denominator == 0)
    spectra = np.divide(spectra, denominator, out=np.zeros_like(spectra), where=~empty)
    return fft.irfft2(spectra, s=(size, size), norm="ortho", workers=cores()).astype(np.float32)


def _noise(means: np.ndarray, powers: np.ndarray) -> float:
    """Return the variance of white noise in the mean, before it was multiplied."""
    size = means.shape[-1]
    axis = np.arange(size) - size // 2
    # Beyond this radius, in units of the box, a mean shows noise only.
    outside = np.hypot(axis[:, None], axis) > 0.48 * size
    shell, multiplicity = shells(size)
    transferred = (powers.mean(axis=0)[shell] * multiplicity).sum() / multiplicity.sum()
    return float(means[:, outside].var(axis=1).mean() / transferred)
