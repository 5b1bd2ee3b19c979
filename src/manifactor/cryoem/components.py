"""Samples made of images of one view, or of a series of volumes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import fft, ndimage
from sklearn.utils.extmath import randomized_svd

from manifactor._support.parameters import require_count, require_number
from manifactor._support.threads import cores
from manifactor.cryoem.files.stacks import ImageSource
from manifactor.cryoem.one_view import View
from manifactor.runs.options import FitOptions

# Samples made of images of one view: images are masked and low-passed; their principal components
# are weighted by signal to noise. The low-pass follows from the spectra of signal and noise, which
# a survey of some images gives.

# Coefficients, in float32, that the principal components are learned from. Images beyond as many
# (256 MiB) are only projected, so memory does not grow with them.
LEARNING_BYTES = 2**28
MAX_COMPONENTS = 60


@dataclass(frozen=True)
class Components:
    """Samples made of images or volumes, and how they were made."""

    samples: np.ndarray  # (n, n_components): weighted principal components, in units of the noise
    # (n_components,): variance of the signal over that of the noise, for each component
    signal_to_noise: np.ndarray
    # (n_components,): factor by which each component, of unit noise, was multiplied; hence also the
    # noise in each column of the samples
    weights: np.ndarray
    text: str  # how they were made, in words
    # Of images the low-pass and the radius of the mask in Angstrom, and the number of Fourier
    # coefficients; of volumes the share of the variance in the components, and the names of files
    how: dict[str, Any]


def image_components(
    view: View, settings: FitOptions = FitOptions(), *, rng: np.random.Generator
) -> Components:
    """Compute weighted principal components of images of one view."""
    shape, pixel_size = view.source.shape, view.source.pixel_size
    require_filters(shape, pixel_size, settings)
    size, mask_radius, n_components = shape[0], settings.mask_radius, settings.components
    # The corners outside of the largest mask are where noise is measured.
    radius = 0.5 * size * pixel_size if mask_radius is None else mask_radius
    mask = circular_mask(size, radius / pixel_size)
    spectra = survey(view, mask, rng)
    cut = low_pass_shell(spectra, settings.low_pass, size, pixel_size)
    count, basis = _fourier_basis(mask, cut, spectra.noise)
    n_images = len(view.source)
    # Learned from as many images as the memory allows.
    learned = _drawn(n_images, max(1, LEARNING_BYTES // (4 * count)), rng)
    values = np.empty((len(learned), count), dtype=np.float32)
    for here, images in view.blocks(learned):
        values[np.searchsorted(learned, here)] = basis(images)
    mean = values.mean(axis=0)
    values -= mean
    # Noise has variance 1 in about this share of the directions, and hardly any in the others,
    # which the mask removes.
    ratio, axes = _principal_axes(values, float((mask**2).mean()), n_components)
    if len(learned) == n_images:
        scores = values @ axes
    else:
        scores = np.empty((n_images, axes.shape[1]), dtype=np.float32)
        for here, images in view.blocks():
            scores[here] = (basis(images) - mean) @ axes
    if settings.standardise:
        weights = 1 / scores.std(axis=0, dtype=float)
    else:
        weights = component_weights(ratio) if n_components is None else np.ones(len(ratio))
    low_pass = size * pixel_size / cut
    # The first eight tell whether there is signal; all of them would fill a page.
    strongest = ", ".join(f"{each:.3g}" for each in ratio[:8])
    more = " and less" if len(ratio) > 8 else ""
    text = (
        f"{n_images} images, mask {radius:.3g} A, low-pass {low_pass:.3g} A ({count} "
        f"coefficients), {len(ratio)} principal components; signal to noise {strongest}{more}"
    )
    how = {"low_pass": low_pass, "mask_radius": radius, "n_coefficients": count}
    return Components(scores * weights, ratio, weights, text, how)


def _drawn(n_images: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return the ascending rows of at most `count` images drawn at random."""
    return np.sort(rng.permutation(n_images)[:count])


def _principal_axes(
    values: np.ndarray, noisy: float, n_components: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return signal to noise and axes of components above the noise, or of as many as asked for."""
    n, p = values.shape
    if n_components is not None:
        require_count("n_components", n_components, low=1, high=min(n, p))
    # The covariance of the coefficients is smaller than their table where images are many, and its
    # eigenvectors are all that is needed.
    variance, axes = np.linalg.eigh(values.T @ values / n)
    # The largest first; rounding may leave a variance of no signal just below 0.
    variance = np.maximum(variance[::-1], 0).astype(float)
    ratio = spikes(variance, noisy * p / n)
    count = n_components or min(int((ratio > 0).sum()), MAX_COMPONENTS)
    if count == 0:
        raise ValueError(
            f"the images must show more than noise; none of {p} principal components "
            f"of {n} images stands out of it. Add images, or low-pass more."
        )
    return ratio[:count], axes[:, ::-1][:, :count]


def component_weights(signal_to_noise: np.ndarray) -> np.ndarray:
    """Return the weights of principal components that have unit noise."""
    # Under Wiener's filter itself weak components still add a dimension of noise to the samples,
    # which the neighbour graph then takes for geometry.
    return (signal_to_noise / (1 + signal_to_noise)) ** 3


def spikes(variance: np.ndarray, gamma: float) -> np.ndarray:
    """Return the signal to noise behind variances of components; 0 below the edge of the noise."""
    # Noise alone has sample variances up to (1 + sqrt(gamma))^2 (Marchenko-Pastur). A signal s
    # beyond it shows up as v = (1 + s)(1 + gamma / s), solved here for s.
    edge = (1 + np.sqrt(gamma)) ** 2
    middle = variance - 1 - gamma
    root = np.sqrt(np.maximum(middle**2 - 4 * gamma, 0))
    return np.where(variance > edge, (middle + root) / 2, 0.0)


def _fourier_basis(
    mask: np.ndarray, cut: int, noise: np.ndarray
) -> tuple[int, Callable[[np.ndarray], np.ndarray]]:
    """Return what gives real Fourier coefficients of masked images, and how many.

    They are those up to a shell, of unit noise. Where the noise is white the basis is orthonormal.
    """
    shell, _ = shells(len(mask))
    row, column = np.nonzero(shell <= cut)
    # All others are conjugates of these, or the mean.
    independent = (column > 0) | ((row > 0) & (row <= len(mask) // 2))
    row, column = row[independent], column[independent]
    # Real and imaginary part share a coefficient's noise, half of it each.
    scale = np.sqrt(2 / noise[shell[row, column]]).astype(np.float32)
    mean_scale = np.float32(1 / np.sqrt(noise[0]))

    def coefficients(images: np.ndarray) -> np.ndarray:
        transformed = _transformed(images, mask)
        mean = transformed[:, 0, 0].real * mean_scale
        chosen = transformed[:, row, column] * scale
        return np.column_stack([mean, chosen.real, chosen.imag])

    return 2 * len(row) + 1, coefficients


@dataclass(frozen=True)
class ShellSpectra:
    """Signal and noise by shell, a shell being a whole number of cycles per box."""

    signal: np.ndarray  # (n_shells,): variance between images
    noise: np.ndarray  # (n_shells,): variance between images
    error: np.ndarray  # (n_shells,): standard error of both
    count: np.ndarray  # (n_shells,): fourier coefficients in the shell
    n_images: int  # images that these were estimated from


def survey(view: View, mask: np.ndarray, rng: np.random.Generator) -> ShellSpectra:
    """Estimate the spectra of what differs between images; outside of the mask this is noise."""
    rows = _drawn(len(view.source), 2000, rng)
    windows = mask, 1 - mask
    # Of each window, the sums of what it shows and of the squares of that.
    sums: list[Any] = [0.0, 0.0]
    for _, images in view.blocks(rows):
        for k, window in enumerate(windows):
            shown = _transformed(images, window)
            sums[k] += np.stack([shown.sum(axis=0), (np.abs(shown) ** 2).sum(axis=0)])
    # A window's mean square is the share of the coefficients that are independent.
    shares = [(window**2).mean() for window in windows]
    # Shells beyond half the box are corners that no circle fills.
    (count, variance), (_, outside) = (
        shell_means((square.real - np.abs(total) ** 2 / len(rows)) / (len(rows) * share))[
            :, : len(mask) // 2
        ]
        for (total, square), share in zip(sums, shares, strict=True)
    )
    noise = _noise(variance, outside)
    # A stack without any noise is assigned this share of its variance.
    noise = np.maximum(noise, 1e-4 * ((variance @ count) / count.sum()))
    error = noise * np.sqrt(2 / (len(rows) * count) * (1 / shares[0] + 1 / shares[1]))
    return ShellSpectra(variance - noise, noise, error, count, len(rows))


def _noise(inside: np.ndarray, outside: np.ndarray) -> np.ndarray:
    """Return the noise by shell, from the variances inside and outside of the mask."""
    noise = outside.copy()
    # A window's mean is subtracted from what it shows. That removes most of the lowest
    # coefficients, so the two lowest shells take the noise of the next one.
    noise[:2] = noise[2]
    n_shells = len(noise)
    # In the finest quarter of the shells an image is noise and hardly signal. If noise outside the
    # mask is below half of that inside, the stack was masked before, and the finest shells inside
    # give the noise.
    finest = slice(int((1 - 0.25) * n_shells), None)
    inside_finest = np.median(inside[finest])
    if np.median(noise[finest]) < 0.5 * inside_finest:
        return np.full(n_shells, inside_finest)
    return noise


def shell_means(values: np.ndarray) -> np.ndarray:
    """Return the number of coefficients, as of ``rfft2``, and their mean in each shell."""
    shell, multiplicity = shells(len(values))
    count = np.bincount(shell.ravel(), multiplicity.ravel())
    total = np.bincount(shell.ravel(), (values * multiplicity).ravel())
    return np.stack([count, total / count])


def _transformed(images: np.ndarray, window: np.ndarray) -> np.ndarray:
    """Return transforms of images times a window, less their mean in it, which is no signal."""
    weight = (window**2 / (window**2).sum()).astype(np.float32)
    means = np.einsum("nij,ij->n", images, weight)
    shown = (images - means[:, None, None]) * window.astype(np.float32)
    return fft.rfft2(shown, norm="ortho", workers=cores())


def shells(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the shell of each coefficient of ``rfft2``, and its number in the full transform."""
    column = np.arange(size // 2 + 1)
    row = np.abs(fft.fftfreq(size, 1 / size))[:, None]
    shell = np.rint(np.hypot(row, column)).astype(int)
    # ``rfft2`` returns one of a coefficient and its conjugate, except in the columns that are their
    # own conjugates.
    multiplicity = np.where((column == 0) | (2 * column == size), 1, 2)
    return shell, np.broadcast_to(multiplicity, shell.shape)


def low_pass_shell(
    spectra: ShellSpectra, low_pass: float | None, size: int, pixel_size: float
) -> int:
    """Return the last shell to keep."""
    # A disc of radius r holds about pi r^2 coefficients. Their covariance is a dense matrix: 3000
    # of one image bound its entries.
    last = min(len(spectra.count) - 1, int(np.sqrt(3000 / np.pi)))
    if low_pass is not None:
        return min(last, given_shell(low_pass, size, pixel_size))
    # The signal of a shell must stand out by three standard errors.
    certain = spectra.signal > 3 * spectra.error
    energy = np.cumsum(np.where(certain, spectra.signal, 0) * spectra.count)
    if energy[-1] <= 0:
        raise ValueError(
            f"the images must differ by more than noise; inside the mask the {spectra.n_images} "
            "images surveyed vary no more than outside it. Add images, check that they show one "
            "view, or make the mask smaller than the box."
        )
    # Keep 99% of the signal's variance, and at least 3 cycles per box.
    enough = np.searchsorted(energy, 0.99 * energy[-1]) + 1
    return int(np.clip(enough, 3, last))


def require_filters(shape: tuple[int, ...], pixel_size: float, settings: FitOptions) -> None:
    """Refuse images that are not square, and filters that do not suit their box."""
    size = square_side(shape)
    if settings.mask_radius is not None:
        ends = {"low": 2 * pixel_size, "high": 0.5 * size * pixel_size}
        require_number("--mask-radius", settings.mask_radius, **ends)
    if settings.low_pass is not None:
        given_shell(settings.low_pass, size, pixel_size)


def square_side(shape: tuple[int, ...]) -> int:
    """Return the side of square images."""
    # Smaller images have too few shells between the lowest, which lose their mean, and the finest,
    # which are noise.
    if len(shape) != 2 or shape[0] != shape[1] or shape[0] < 16:
        raise ValueError(
            "images must be square with a side of at least 16 pixels; got "
            f"{' x '.join(map(str, shape))}. Crop or pad them."
        )
    return shape[0]


def given_shell(low_pass: float, size: int, pixel_size: float) -> int:
    """Return the last shell of a low-pass in Angstrom; refuse one beyond the box."""
    require_number("--low-pass", low_pass, above=0)
    box = size * pixel_size
    cycles = box / low_pass
    if not 2 <= cycles <= size / 2:
        raise ValueError(
            f"`--low-pass` must lie between two pixels and half the box, "
            f"{2 * pixel_size:g} to {box / 2:g} A; got {low_pass:g}."
        )
    return round(cycles)


def circular_mask(size: int, radius: float) -> np.ndarray:
    """Return a disc with a soft edge inside of its radius, (size, size)."""
    return soft_ball(distances(np.arange(size) - size // 2, 2), radius, size)


def soft_ball(distance: np.ndarray, radius: float, box: float) -> np.ndarray:
    """Return 1 inside of a radius and 0 beyond it, with a soft edge."""
    edge = 0.06 * box
    depth = np.clip((distance - radius + edge) / edge, 0, 1)
    return 0.5 + 0.5 * np.cos(np.pi * depth)


def distances(axis: np.ndarray, n_axes: int = 3) -> np.ndarray:
    """Return the distance from 0 on the grid of equal axes."""
    return np.sqrt(sum(np.ix_(*n_axes * [axis**2])))


# Samples made of a series of volumes, which are downsampled and masked, and projections of volumes.

# Voxels along each side to which volumes are downsampled.
MAX_SIDE = 32


def volume_components(source: ImageSource) -> Components:
    """Return weighted principal components of volumes in a ball; what they leave is the noise."""
    values, _ = ball_values(source, MAX_SIDE)
    values -= values.mean(axis=0)
    n, p = values.shape
    total = float((values.astype(float) ** 2).sum()) / n
    if not total:
        raise ValueError(f"the volumes must differ; all {n} are the same.")
    # Fixed seed: a decomposition has no randomness that a user should notice.
    rank = min(MAX_COMPONENTS, n - 1, p)
    left, strength, _ = randomized_svd(values, rank, n_iter=7, random_state=0)
    variance = strength.astype(float) ** 2 / n
    # At least some noise, for volumes that the components reproduce exactly.
    noise = max(total - variance.sum(), 1e-9 * total) / p
    ratio = spikes(variance / noise, p / n)
    # At least one component, so that there are samples even where noise hides them all.
    kept = max(1, int((ratio > 0).sum()))
    weights = component_weights(ratio[:kept]) if ratio[0] > 0 else np.ones(1)
    samples = (left * strength)[:, :kept] / np.sqrt(noise) * weights
    share = float(variance[:kept].sum() / total)
    text = f"{n} volumes, {kept} principal components with {share:.1%} of the variance"
    if share <= 0.5:
        # Most of how the volumes differ is not in the samples.
        text += "; the rest is noise or detail, so the result may be doubtful"
    how = {"variance": share, "files": [path.name for path in source.files]}
    return Components(samples.astype(float), ratio[:kept], weights, text, how)


def ball_values(source: ImageSource, max_side: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the voxels of downsampled volumes in the inscribed ball, (n, n_voxels), and the ball.

    `max_side` is the number of voxels along each side at most.
    """
    side = min(max_side, min(source.shape) // 2 * 2)
    ball = distances(np.arange(side) - side // 2) <= side / 2
    values = np.empty((len(source), int(ball.sum())), dtype=np.float32)
    for rows, volumes in source.blocks():
        values[rows] = [downsampled(volume, side)[ball] for volume in volumes]
    return values, ball


def downsampled(volume: np.ndarray, side: int) -> np.ndarray:
    """Return the volume's low frequencies on a coarser grid."""
    if volume.shape == (side, side, side):
        return volume
    # Cutting the transform is an ideal low-pass, so nothing is aliased.
    transformed = fft.fftshift(fft.fftn(volume))
    half = side // 2
    middle = tuple(slice(n // 2 - half, n // 2 + half) for n in volume.shape)
    coarse = fft.ifftn(fft.ifftshift(transformed[middle])).real
    # The inverse transform divides by the number of voxels, which is smaller now.
    return coarse * (side**3 / volume.size)


def projection(volume: np.ndarray, rotation: np.ndarray) -> np.ndarray:
    """Return the image, (side, side), of a cube, indexed by z, y, x, from a direction."""
    # Axes of arrays come in reverse: z, y, x.
    back = rotation.T[::-1, ::-1]
    centre = np.full(3, len(volume) // 2)
    turned = ndimage.affine_transform(volume, back, offset=centre - back @ centre, order=1)
    return turned.sum(axis=0)
