"""Spectra of signal and noise in images of one view, and the low-pass they imply."""

from dataclasses import dataclass

import numpy as np
from scipy import fft

from manifactor._support.parameters import require_number
from manifactor._support.threads import cores
from manifactor.cryoem.one_view.views import View


@dataclass(frozen=True)
class SurveySettings:
    """Settings of `survey` and `low_pass_shell`."""

    # Images that the spectra are estimated from.
    n_images: int = 2000

    # A window's mean is subtracted from what it shows. That removes most of the lowest
    # coefficients, so these shells take the noise of the next one.
    mean_shells: int = 2

    # Share of the shells, the finest, in which an image is noise and hardly signal. If noise
    # outside the mask is below half of that inside, the stack was masked before, and the finest
    # shells inside give the noise.
    finest_shells: float = 0.25
    masked_before: float = 0.5

    # Of the variance of the images: a stack without any noise is assigned as much.
    noise_floor: float = 1e-4

    # Standard errors by which the signal of a shell must stand out.
    shell_significance: float = 3.0

    # Share of the signal's variance that the low-pass keeps, and the least number of cycles per box
    # it may leave.
    kept_signal: float = 0.99
    min_shell: int = 3

    # Fourier coefficients of one image. The covariance of the coefficients is a dense matrix, so
    # this bounds its 3000^2 entries.
    max_coefficients: int = 3000


@dataclass(frozen=True)
class Spectra:
    """Signal and noise by shell, a shell being a whole number of cycles per box."""

    signal: np.ndarray  # (n_shells,): variance between images
    noise: np.ndarray  # (n_shells,): variance between images
    error: np.ndarray  # (n_shells,): standard error of both
    count: np.ndarray  # (n_shells,): fourier coefficients in the shell
    n_images: int = 0  # images that these were estimated from


def survey(
    view: View, mask: np.ndarray, rows: np.ndarray, *, settings: SurveySettings = SurveySettings()
) -> Spectra:
    """Estimate the spectra of what differs between images.

    Outside of the mask this is noise, inside of it noise and signal.
    """
    outside = 1 - mask
    inner, outer = _WindowVariance(mask), _WindowVariance(outside)
    for _, images in view.blocks(rows):
        inner.add(images)
        outer.add(images)
    count, variance = inner.by_shell()
    noise = _noise(variance, outer.by_shell()[1], settings)
    mean_variance = (variance @ count) / count.sum()
    noise = np.maximum(noise, settings.noise_floor * mean_variance)
    # A window's mean square is the share of the coefficients that are independent.
    spread = 1 / (mask**2).mean() + 1 / (outside**2).mean()
    error = noise * np.sqrt(2 / (len(rows) * count) * spread)
    return Spectra(variance - noise, noise, error, count, len(rows))


def _noise(inside: np.ndarray, outside: np.ndarray, settings: SurveySettings) -> np.ndarray:
    """Return the noise by shell, from the variances inside and outside of the mask."""
    noise = outside.copy()
    noise[: settings.mean_shells] = noise[settings.mean_shells]
    n_shells = len(noise)
    finest = slice(int((1 - settings.finest_shells) * n_shells), None)
    inside_finest = np.median(inside[finest])
    if np.median(noise[finest]) < settings.masked_before * inside_finest:
        return np.full(n_shells, inside_finest)
    return noise


class _WindowVariance:
    """Variance between images of each Fourier coefficient of what a window shows."""

    def __init__(self, window: np.ndarray):
        self.window = window
        self.count = 0
        self.sum: np.ndarray | float = 0.0
        self.squares: np.ndarray | float = 0.0

    def add(self, images: np.ndarray) -> None:
        """Accumulate more images."""
        shown = windowed(images, self.window)
        transformed = fft.rfft2(shown, norm="ortho", workers=cores())
        self.count += len(images)
        self.sum = self.sum + transformed.sum(axis=0)
        self.squares = self.squares + (np.abs(transformed) ** 2).sum(axis=0)

    def by_shell(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the number of coefficients and their mean variance in each shell.

        The variance is that for a window that is 1 everywhere.
        """
        size = len(self.window)
        mean_square = (self.window**2).mean()
        squares = self.squares - np.abs(self.sum) ** 2 / self.count
        variance = squares / (self.count * mean_square)
        shell, multiplicity = shells(size)
        weighted = (variance * multiplicity).ravel()
        # Shells beyond half the box are corners that no circle fills.
        count = np.bincount(shell.ravel(), multiplicity.ravel())[: size // 2]
        total = np.bincount(shell.ravel(), weighted)[: size // 2]
        return count, total / count


def windowed(images: np.ndarray, window: np.ndarray) -> np.ndarray:
    """Return images times a window, after subtracting their mean in it.

    An offset of the background is no signal.
    """
    weight = (window**2 / (window**2).sum()).astype(np.float32)
    means = np.einsum("nij,ij->n", images, weight)
    return (images - means[:, None, None]) * window.astype(np.float32)


def shells(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the shell of each coefficient of ``rfft2``, and its multiplicity.

    The multiplicity is how often the coefficient occurs in the full transform.
    """
    column = np.arange(size // 2 + 1)
    row = np.abs(fft.fftfreq(size, 1 / size))[:, None]
    shell = np.rint(np.hypot(row, column)).astype(int)
    # The transform of a real image holds a coefficient and its conjugate, of which ``rfft2``
    # returns one, except in the columns that are their own conjugates.
    own_conjugate = (column == 0) | (2 * column == size)
    multiplicity = np.where(own_conjugate, 1, 2)
    return shell, np.broadcast_to(multiplicity, shell.shape)


def low_pass_shell(
    spectra: Spectra,
    low_pass: float | None,
    pixel_size: float,
    *,
    size: int | None = None,
    settings: SurveySettings = SurveySettings(),
) -> int:
    """Return the last shell to keep."""
    n_shells = len(spectra.count)
    # A disc of radius r holds about pi r^2 coefficients.
    affordable = int(np.sqrt(settings.max_coefficients / np.pi))
    last = min(n_shells - 1, affordable)
    if low_pass is not None:
        pixels = 2 * n_shells if size is None else size
        return min(last, given_shell(low_pass, pixels, pixel_size))
    certain = spectra.signal > settings.shell_significance * spectra.error
    energy = np.cumsum(np.where(certain, spectra.signal, 0) * spectra.count)
    if energy[-1] <= 0:
        raise ValueError(
            "the images must differ by more than noise; inside the mask the "
            f"{spectra.n_images} images surveyed vary no more than outside it. Add "
            "images, check that they show one view, or make the mask smaller than the "
            "box."
        )
    enough = np.searchsorted(energy, settings.kept_signal * energy[-1]) + 1
    return int(np.clip(enough, settings.min_shell, last))


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


# Boxes of images: that they are square, and that masks and low-passes suit them.


@dataclass(frozen=True)
class BoxSettings:
    """Settings of boxes."""

    # Smaller images have too few shells between the lowest, which lose their mean, and the finest,
    # which are noise.
    min_side: int = 16


def square_side(shape: tuple[int, ...], *, settings: BoxSettings = BoxSettings()) -> int:
    """Return the side of square images."""
    square = len(shape) == 2 and shape[0] == shape[1]
    if not square or shape[0] < settings.min_side:
        raise ValueError(
            f"images must be square with a side of at least {settings.min_side} "
            f"pixels; got {' x '.join(map(str, shape))}. Crop or pad them."
        )
    return shape[0]


def largest_radius(size: int, pixel_size: float) -> float:
    """Return the radius of a mask that fills the box, in Angstrom."""
    # The corners outside of it are where noise is measured.
    return 0.5 * size * pixel_size


def require_filters(
    shape: tuple[int, ...], pixel_size: float, *, mask_radius: float | None, low_pass: float | None
) -> None:
    """Refuse images that are not square, and filters that do not suit their box."""
    size = square_side(shape)
    if mask_radius is not None:
        largest = largest_radius(size, pixel_size)
        require_number("--mask-radius", mask_radius, low=2 * pixel_size, high=largest)
    if low_pass is not None:
        given_shell(low_pass, size, pixel_size)
