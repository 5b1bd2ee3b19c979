"""Signal to noise of principal components, and the weights that follow from it."""

from dataclasses import dataclass, field

import numpy as np
from scipy import fft

from manifactor._support.parameters import require_count
from manifactor._support.threads import cores
from manifactor.cryoem.one_view.spectra import (
    SurveySettings,
    largest_radius,
    low_pass_shell,
    require_filters,
    shells,
    survey,
    windowed,
)
from manifactor.cryoem.one_view.views import View


@dataclass(frozen=True)
class WeightingSettings:
    """Settings of `component_weights` and of the components that are weighted."""

    max_components: int = 60

    # 1 would be Wiener's filter. Under it weak components still add a dimension of noise to the
    # samples, which the neighbour graph then takes for geometry.
    exponent: int = 3


def component_weights(
    signal_to_noise: np.ndarray, *, settings: WeightingSettings = WeightingSettings()
) -> np.ndarray:
    """Return the weights of principal components that have unit noise.

    >>> component_weights(np.array([3.0, 1.0])).tolist()
    [0.421875, 0.125]
    """
    wiener = signal_to_noise / (1 + signal_to_noise)
    return wiener**settings.exponent


def spikes(variance: np.ndarray, gamma: float) -> np.ndarray:
    """Return the signal to noise behind the variances of principal components.

    It is 0 for a variance below the edge of the noise.

    >>> signal, gamma = 4.0, 0.5
    >>> spikes(np.array([(1 + signal) * (1 + gamma / signal), 1.0]), gamma).tolist()
    [4.0, 0.0]
    """
    # Noise alone has sample variances up to (1 + sqrt(gamma))^2 (Marchenko-Pastur). A signal s
    # beyond it shows up as v = (1 + s)(1 + gamma / s), solved here for s.
    edge = (1 + np.sqrt(gamma)) ** 2
    middle = variance - 1 - gamma
    root = np.sqrt(np.maximum(middle**2 - 4 * gamma, 0))
    return np.where(variance > edge, (middle + root) / 2, 0.0)


# Samples made of images of one view.
#
# Images are masked and low-passed; their principal components are weighted by signal to noise.


@dataclass(frozen=True)
class ImageSettings:
    """Settings of `image_components`."""

    survey: SurveySettings = field(default_factory=SurveySettings)
    weighting: WeightingSettings = field(default_factory=WeightingSettings)

    # Width of the mask's soft edge, in units of the box.
    mask_edge: float = 0.06

    # Coefficients, in float32, that the principal components are learned from. Images beyond as
    # many (256 MiB) are only projected, so memory does not grow with them.
    learning_bytes: int = 2**28


@dataclass(frozen=True)
class Components:
    """Samples made of images, and how they were made."""

    samples: np.ndarray  # (n, n_components): weighted principal components
    # (n_components,): variance of the signal over that of the noise, for each component
    signal_to_noise: np.ndarray
    # (n_components,): factor by which each component, of unit noise, was multiplied; hence also the
    # noise in each column of the samples
    weights: np.ndarray
    low_pass: float  # angstrom
    mask_radius: float  # angstrom
    n_coefficients: int  # fourier coefficients of each image below the low-pass

    def __str__(self) -> str:
        # The first eight tell whether there is signal; all of them would fill a page.
        strongest = ", ".join(f"{ratio:.3g}" for ratio in self.signal_to_noise[:8])
        more = " and less" if len(self.weights) > 8 else ""
        return (
            f"{self.samples.shape[0]} images, mask {self.mask_radius:.3g} A, "
            f"low-pass {self.low_pass:.3g} A ({self.n_coefficients} coefficients), "
            f"{len(self.weights)} principal components; signal to noise "
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
    settings: ImageSettings = ImageSettings(),
) -> Components:
    """Compute weighted principal components of images of one view."""
    shape, pixel_size = view.source.shape, view.source.pixel_size
    require_filters(shape, pixel_size, mask_radius=mask_radius, low_pass=low_pass)
    size = shape[0]
    radius = largest_radius(size, pixel_size) if mask_radius is None else mask_radius
    mask = circular_mask(size, radius / pixel_size, settings=settings)
    basis = _basis(view, mask, low_pass=low_pass, rng=rng, settings=settings)
    ratio, scores = _scores(view, basis, n_components, rng=rng, settings=settings)
    if standardise:
        weights = 1 / scores.std(axis=0, dtype=float)
    else:
        weights = _weights(ratio, n_components, settings)
    return Components(
        samples=scores * weights,
        signal_to_noise=ratio,
        weights=weights,
        low_pass=size * pixel_size / basis.cut,
        mask_radius=radius,
        n_coefficients=basis.count,
    )


def _basis(
    view: View,
    mask: np.ndarray,
    *,
    low_pass: float | None,
    rng: np.random.Generator,
    settings: ImageSettings,
) -> "_FourierBasis":
    """Return the basis below the low-pass, with the noise of some images."""
    size, pixel_size = len(mask), view.source.pixel_size
    surveyed = _drawn(len(view.source), settings.survey.n_images, rng)
    spectra = survey(view, mask, surveyed, settings=settings.survey)
    cut = low_pass_shell(spectra, low_pass, pixel_size, size=size, settings=settings.survey)
    return _FourierBasis(size, cut, mask, spectra.noise)


def _scores(
    view: View,
    basis: "_FourierBasis",
    n_components: int | None,
    *,
    rng: np.random.Generator,
    settings: ImageSettings,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the components' signal to noise, and the components of all images.

    They are learned from as many images as the memory allows.
    """
    n_images = len(view.source)
    learned = _drawn(n_images, basis.images_in(settings.learning_bytes), rng)
    values = basis.of_rows(view, learned)
    mean = values.mean(axis=0)
    values -= mean
    # Noise has variance 1 in about this share of the directions, and hardly any in the others,
    # which the mask removes.
    noisy = float((basis.mask**2).mean())
    ratio, axes = _principal_axes(values, noisy, n_components, settings.weighting)
    if len(learned) == n_images:
        return ratio, values @ axes
    return ratio, _projected(view, basis, mean, axes)


def _weights(ratio: np.ndarray, n_components: int | None, settings: ImageSettings) -> np.ndarray:
    """Weights by signal to noise, or 1 if the number of components was given."""
    if n_components is None:
        return component_weights(ratio, settings=settings.weighting)
    return np.ones(len(ratio))


def _drawn(n_images: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return the ascending rows of at most `count` images drawn at random."""
    return np.sort(rng.permutation(n_images)[:count])


def circular_mask(
    size: int, radius: float, *, settings: ImageSettings = ImageSettings()
) -> np.ndarray:
    """Return a disc with a soft edge inside of its radius.

    Returns (size, size).
    """
    axis = np.arange(size) - size // 2
    distance = np.hypot(axis[:, None], axis)
    edge = settings.mask_edge * size
    depth = np.clip((distance - radius + edge) / edge, 0, 1)
    return 0.5 + 0.5 * np.cos(np.pi * depth)


class _FourierBasis:
    """Real Fourier coefficients of masked images up to a shell, of unit noise.

    Where the noise is white the basis is orthonormal.
    """

    def __init__(self, size: int, cut: int, mask: np.ndarray, noise: np.ndarray):
        shell, _ = shells(size)
        row, column = np.nonzero(shell <= cut)
        # All others are conjugates of these, or the mean.
        independent = (column > 0) | ((row > 0) & (row <= size // 2))
        self.cut = cut
        self.mask = mask
        self.row, self.column = row[independent], column[independent]
        own_noise = noise[shell[self.row, self.column]]
        # Real and imaginary part share a coefficient's noise, half of it each.
        self.scale = np.sqrt(2 / own_noise).astype(np.float32)
        self.mean_scale = np.float32(1 / np.sqrt(noise[0]))
        self.count = 2 * len(self.row) + 1

    def images_in(self, n_bytes: int) -> int:
        """Return how many images have their coefficients in so many bytes."""
        image_bytes = np.dtype(np.float32).itemsize * self.count
        return max(1, n_bytes // image_bytes)

    def of_rows(self, view: View, rows: np.ndarray) -> np.ndarray:
        """Compute coefficients of images, (n, count) in float32, in order of `rows`."""
        out = np.empty((len(rows), self.count), dtype=np.float32)
        position = np.empty(len(view.source), dtype=int)
        position[rows] = np.arange(len(rows))
        for here, images in view.blocks(rows):
            out[position[here]] = self(images)
        return out

    def __call__(self, images: np.ndarray) -> np.ndarray:
        """Compute coefficients of a block of images."""
        masked = windowed(images, self.mask)
        transformed = fft.rfft2(masked, norm="ortho", workers=cores())
        mean = transformed[:, 0, 0].real * self.mean_scale
        chosen = transformed[:, self.row, self.column] * self.scale
        return np.column_stack([mean, chosen.real, chosen.imag])


def _principal_axes(
    values: np.ndarray, noisy: float, n_components: int | None, settings: WeightingSettings
) -> tuple[np.ndarray, np.ndarray]:
    """Return the signal to noise and the axes of the components to keep.

    They are those that stand out of the noise, or as many as asked for.
    """
    n, p = values.shape
    if n_components is not None:
        require_count("n_components", n_components, low=1, high=min(n, p))
    # The covariance of the coefficients is smaller than their table where images are many, and its
    # eigenvectors are all that is needed.
    variance, axes = np.linalg.eigh(values.T @ values / n)
    # The largest first; rounding may leave a variance of no signal just below 0.
    variance = np.maximum(variance[::-1], 0).astype(float)
    axes = axes[:, ::-1]
    ratio = spikes(variance, noisy * p / n)
    found = min(int((ratio > 0).sum()), settings.max_components)
    count = n_components or found
    if count == 0:
        raise ValueError(
            f"the images must show more than noise; none of {p} principal components "
            f"of {n} images stands out of it. Add images, or low-pass more."
        )
    return ratio[:count], axes[:, :count]


def _projected(view: View, basis: _FourierBasis, mean: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """Return the principal components of all images, computed block by block."""
    out = np.empty((len(view.source), axes.shape[1]), dtype=np.float32)
    for here, images in view.blocks():
        out[here] = (basis(images) - mean) @ axes
    return out
