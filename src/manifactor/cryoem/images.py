"""Images of one view to samples: masked, low-passed, principal components weighted by signal to noise."""

from dataclasses import dataclass

import numpy as np
from scipy import fft

from manifactor._support.parameters import require_count, require_number
from manifactor.cryoem.views import View

SURVEYED = 2000  # images that the spectra of signal and noise are read from
LEARNED_BYTES = 2**28  # of coefficients that the principal components are read from
EDGE = 0.06  # width of the mask's soft edge, of the box
KEPT = 0.99  # share of the signal's variance that the low-pass keeps
SURE = 3.0  # standard errors that the signal of a shell must stand out by
MOST_COEFFICIENTS = 3000  # Fourier coefficients of an image
MOST_COMPONENTS = 60
LEAST_NOISE = 1e-4  # of the images' variance: a stack without any is given as much
EMPHASIS = 3  # power of the weights; 1 would be Wiener's, under which weak components still add a dimension of noise


@dataclass(frozen=True)
class Components:
    """Samples made of images, and how.

    Attributes
    ----------
    samples : ndarray of shape (n, n_components)
        Weighted principal components.
    signal_to_noise : ndarray of shape (n_components,)
        Variance of the signal over that of the noise, of each component.
    weights : ndarray of shape (n_components,)
        What each component, of unit noise, was multiplied by; so also the noise in each column of the samples.
    low_pass, mask_radius : float
        Angstrom.
    n_coefficients : int
        Fourier coefficients of each image below the low-pass.
    """

    samples: np.ndarray
    signal_to_noise: np.ndarray
    weights: np.ndarray
    low_pass: float
    mask_radius: float
    n_coefficients: int

    def __str__(self) -> str:
        strongest = ", ".join(f"{ratio:.3g}" for ratio in self.signal_to_noise[:8])
        more = " and less" if len(self.weights) > 8 else ""
        return (
            f"{self.samples.shape[0]} images, mask {self.mask_radius:.3g} A, low-pass {self.low_pass:.3g} A "
            f"({self.n_coefficients} coefficients), {len(self.weights)} principal components; signal to noise "
            f"{strongest}{more}"
        )


def image_components(
    view: View,
    *,
    rng: np.random.Generator,
    mask_radius: float | None = None,
    low_pass: float | None = None,
    n_components: int | None = None,
    standardise: bool = False,
) -> Components:
    """Principal components of images of one view.

    Parameters
    ----------
    view : View
    rng : Generator
        Draws the images that spectra and components are read from where there are many.
    mask_radius, low_pass : float or None
        Angstrom. None for a mask that fills the box, and for the resolution that holds 99 % of the signal.
    n_components : int or None
        None takes all that stand out of the noise, each weighted by (s / (1 + s))^3 where s is its signal to noise;
        a number takes as many, unweighted.
    standardise : bool
        Whether to give all components unit variance, as the paper does.
    """
    size, pixel = _square(view.source.shape), view.source.pixel_size
    radius = 0.5 * size * pixel if mask_radius is None else mask_radius
    require_number(
        "mask_radius", radius, low=2 * pixel, high=0.5 * size * pixel
    )  # outside is where noise is measured
    mask = circular_mask(size, radius / pixel)
    n = len(view.source)
    survey = _survey(view, mask, np.sort(rng.permutation(n)[:SURVEYED]))
    if low_pass is not None:
        require_number("low_pass", low_pass, above=0)
    cut = _cut(survey, None if low_pass is None else size * pixel / low_pass, pixel)
    basis = _Coefficients(size, cut, mask, survey.noise)
    most = max(1, LEARNED_BYTES // (4 * basis.count))
    values = basis.of(view, np.sort(rng.permutation(n)[:most]))
    mean = values.mean(axis=0)
    values -= mean
    ratio, axes = _principal(values, float((mask**2).mean()), n_components)
    weights = (
        np.ones(len(ratio))
        if n_components is not None
        else (ratio / (1 + ratio)) ** EMPHASIS
    )
    scores = values @ axes if n <= most else _projected(view, basis, mean, axes)
    weights = 1 / scores.std(axis=0, dtype=float) if standardise else weights
    return Components(
        scores * weights, ratio, weights, size * pixel / cut, radius, basis.count
    )


def circular_mask(size: int, radius: float) -> np.ndarray:
    """A disc of this radius in pixels with a soft edge inside it, (size, size)."""
    axis = np.arange(size) - size // 2
    distance = np.hypot(axis[:, None], axis)
    edge = EDGE * size
    return 0.5 + 0.5 * np.cos(np.pi * np.clip((distance - radius + edge) / edge, 0, 1))


@dataclass(frozen=True)
class _Spectra:
    """By shell of whole cycles a box: variance of the signal, of the noise, standard error of both, coefficients."""

    signal: np.ndarray
    noise: np.ndarray
    error: np.ndarray
    count: np.ndarray


def _survey(view: View, mask: np.ndarray, rows: np.ndarray) -> _Spectra:
    """Spectra of what differs between images: outside the mask is noise, inside noise and signal."""
    outside = 1 - mask
    inner, outer = _Variance(mask), _Variance(outside)
    for _, images in view.blocks(rows):
        inner.add(images)
        outer.add(images)
    count, inside = inner.by_shell()
    noise = outer.by_shell()[1]
    noise[:2] = noise[
        2
    ]  # the mean of a window, taken off, is most of its lowest coefficients
    finest = slice(3 * len(count) // 4, None)
    if np.median(noise[finest]) < 0.5 * np.median(
        inside[finest]
    ):  # the stack was masked before
        noise = np.full(len(count), np.median(inside[finest]))
    noise = np.maximum(noise, LEAST_NOISE * (inside @ count) / count.sum())
    error = noise * np.sqrt(
        2 / (len(rows) * count) * (1 / (mask**2).mean() + 1 / (outside**2).mean())
    )
    return _Spectra(inside - noise, noise, error, count)


class _Variance:
    """The variance between images of each Fourier coefficient of what a window shows."""

    def __init__(self, window: np.ndarray):
        self.window, self.count = window, 0
        self.sum: np.ndarray | float = 0.0
        self.squares: np.ndarray | float = 0.0

    def add(self, images: np.ndarray) -> None:
        """Take more images into account."""
        transformed = fft.rfft2(
            _windowed(images, self.window), norm="ortho", workers=-1
        )
        self.count += len(images)
        self.sum = self.sum + transformed.sum(axis=0)
        self.squares = self.squares + (np.abs(transformed) ** 2).sum(axis=0)

    def by_shell(self) -> tuple[np.ndarray, np.ndarray]:
        """Number of coefficients, and their mean variance for a window that is 1 everywhere, of each shell."""
        mean_square = (self.window**2).mean()
        variance = (self.squares - np.abs(self.sum) ** 2 / self.count) / (
            self.count * mean_square
        )
        shell, weight = _shells(len(self.window))
        count = np.bincount(shell.ravel(), weight.ravel())[: len(self.window) // 2]
        return count, np.bincount(shell.ravel(), (variance * weight).ravel())[
            : len(count)
        ] / count


def _windowed(images: np.ndarray, window: np.ndarray) -> np.ndarray:
    """Images times a window, after taking off their mean in it: an offset of the background is no signal."""
    weight = (window**2 / (window**2).sum()).astype(np.float32)
    return (
        images - np.einsum("nij,ij->n", images, weight)[:, None, None]
    ) * window.astype(np.float32)


def _shells(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Whole cycles a box of each coefficient of ``rfft2``, and how often it stands in the full transform."""
    column = np.arange(size // 2 + 1)
    row = np.abs(fft.fftfreq(size, 1 / size))[:, None]
    twice = np.where((column == 0) | (2 * column == size), 1, 2)
    return np.rint(np.hypot(row, column)).astype(int), np.broadcast_to(
        twice, (size, len(column))
    )


def _cut(survey: _Spectra, asked: float | None, pixel: float) -> int:
    """Cycles a box up to which coefficients are kept: they hold `KEPT` of the signal."""
    most = min(len(survey.count) - 1, int(np.sqrt(MOST_COEFFICIENTS / np.pi)))
    if asked is not None:
        if not 2 <= asked <= len(survey.count):
            raise ValueError(
                f"`low_pass` must lie between two pixels and half the box, {2 * pixel:g} to "
                f"{len(survey.count) * pixel:g} A; got {2 * len(survey.count) * pixel / asked:g}."
            )
        return min(most, round(asked))
    energy = np.cumsum(
        np.where(survey.signal > SURE * survey.error, survey.signal, 0) * survey.count
    )
    if energy[-1] <= 0:
        raise ValueError(
            "the images must differ by more than noise; inside the mask they vary no more than outside it. Check that "
            "they show one view, or make the mask smaller than the box."
        )
    return int(np.clip(np.searchsorted(energy, KEPT * energy[-1]) + 1, 3, most))


class _Coefficients:
    """Real Fourier coefficients of masked images up to a cut, divided by the noise: orthonormal where it is white."""

    def __init__(self, size: int, cut: int, mask: np.ndarray, noise: np.ndarray):
        shell, _ = _shells(size)
        row, column = np.nonzero(shell <= cut)
        both = (column > 0) | (
            (row > 0) & (row <= size // 2)
        )  # the others are conjugates of these, or the mean
        self.mask = mask
        self.row, self.column = row[both], column[both]
        self.scale = np.sqrt(2 / noise[shell[self.row, self.column]]).astype(np.float32)
        self.mean_scale = np.float32(1 / np.sqrt(noise[0]))
        self.count = 2 * len(self.row) + 1

    def of(self, view: View, rows: np.ndarray) -> np.ndarray:
        """Coefficients of images, (n, p) in float32, in the order of `rows`."""
        out = np.empty((len(rows), self.count), dtype=np.float32)
        place = np.empty(len(view.source), dtype=int)
        place[rows] = np.arange(len(rows))
        for here, images in view.blocks(rows):
            out[place[here]] = self(images)
        return out

    def __call__(self, images: np.ndarray) -> np.ndarray:
        """Coefficients of a block of images."""
        transformed = fft.rfft2(_windowed(images, self.mask), norm="ortho", workers=-1)
        chosen = transformed[:, self.row, self.column] * self.scale
        return np.column_stack(
            [transformed[:, 0, 0].real * self.mean_scale, chosen.real, chosen.imag]
        )


def _principal(
    values: np.ndarray, masked: float, n_components: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Signal to noise of the components that stand out of the noise, or of as many as asked for, and their axes.

    Noise has variance 1 in `masked` of the directions, about, and hardly any in the others.
    """
    n, p = values.shape
    if n_components is not None:
        require_count("n_components", n_components, 1, min(n, p))
    variance, axes = np.linalg.eigh(values.T @ values / n)
    variance, axes = np.maximum(variance[::-1], 0).astype(float), axes[:, ::-1]
    ratio = spikes(variance, masked * p / n)
    count = n_components or min(int((ratio > 0).sum()), MOST_COMPONENTS)
    if count == 0:
        raise ValueError(
            f"the images must show more than noise; none of {p} principal components of {n} images stands out of it. "
            "Add images, or low-pass more."
        )
    return ratio[:count], axes[:, :count]


def spikes(variance: np.ndarray, gamma: float) -> np.ndarray:
    """Signal to noise behind the variances of principal components, in units of the noise; 0 below its edge.

    Parameters
    ----------
    variance : ndarray
    gamma : float
        Columns over samples.

    References
    ----------
    Baik and Silverstein, Eigenvalues of large sample covariance matrices of spiked population models, 2006.

    Examples
    --------
    >>> signal, gamma = 4.0, 0.5
    >>> spikes(np.array([(1 + signal) * (1 + gamma / signal), 1.0]), gamma).tolist()
    [4.0, 0.0]
    """
    middle = variance - 1 - gamma
    root = np.sqrt(np.maximum(middle**2 - 4 * gamma, 0))
    return np.where(variance > (1 + np.sqrt(gamma)) ** 2, (middle + root) / 2, 0.0)


def _projected(
    view: View, basis: _Coefficients, mean: np.ndarray, axes: np.ndarray
) -> np.ndarray:
    """Principal components of all images, a block at a time."""
    out = np.empty((len(view.source), axes.shape[1]), dtype=np.float32)
    for here, images in view.blocks():
        out[here] = (basis(images) - mean) @ axes
    return out


def _square(shape: tuple[int, ...]) -> int:
    if len(shape) != 2 or shape[0] != shape[1] or shape[0] % 2 or shape[0] < 16:
        raise ValueError(
            f"images must be square with an even side of at least 16 pixels; got {' x '.join(map(str, shape))}. Crop "
            "or pad them."
        )
    return shape[0]
