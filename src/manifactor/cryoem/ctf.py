"""The contrast transfer function of the microscope, with RELION's conventions."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Optics:
    """Properties of the microscope, the same for all images or one for each, (n_images,)."""

    # Those of most microscopes today: kilovolts, millimetres, and a share.
    voltage: float | np.ndarray = 300.0
    spherical_aberration: float | np.ndarray = 2.7
    amplitude_contrast: float | np.ndarray = 0.1

    def __post_init__(self) -> None:
        # Wide bounds: they catch volts given for kilovolts and the like.
        bounds = {
            "voltage": (1.0, 5000.0, " kV"),
            "spherical_aberration": (0.0, 100.0, " mm"),
            "amplitude_contrast": (0.0, 1.0, ""),
        }
        for name, (low, high, unit) in bounds.items():
            values = np.asarray(getattr(self, name), dtype=float)
            # Comparisons with NaN are false, so NaN lies in no range.
            wrong = values[~((values >= low) & (values <= high))]
            if wrong.size:
                raise ValueError(
                    f"`{name}` must lie in [{low:g}, {high:g}]{unit}; got {float(wrong[0])!r}."
                )

    @property
    def wavelength(self) -> np.ndarray:
        """The relativistic wavelength of the electrons in Angstrom."""
        volt = 1e3 * np.asarray(self.voltage, dtype=float)
        # h / sqrt(2 m e) in A sqrt(V), and e / (2 m c^2) in 1 / V, as RELION has them.
        return 12.2643247 / np.sqrt(volt * (1 + 0.978466e-6 * volt))


KRIOS = Optics()


def contrast_transfer(size: int, pixel_size: float, *defocus, **known) -> np.ndarray:
    r"""Compute the CTF of each image on the grid of ``rfft2``.

    .. math:: \sin(\pi \lambda \Delta f k^2 - \tfrac{\pi}{2} C_s \lambda^3 k^4
        + \varphi + \arcsin A)

    with the defocus :math:`\Delta f` positive for underfocus. The sign is RELION's: at zero
    frequency the CTF is the amplitude contrast, :math:`+A` (without phase shift), so it goes with
    particles that are white on a dark ground. A phase flip multiplies by the sign of the CTF.
    What is known of each image is given as to `contrast_transfer_at`.

    Returns (n_images, size, size // 2 + 1).
    """
    return contrast_transfer_at(*image_frequencies(size, pixel_size), *defocus, **known)


def image_frequencies(size: int, pixel_size: float) -> tuple[np.ndarray, ...]:
    """Return x and y of the frequencies of ``rfft2``, in 1 / Angstrom."""
    return np.meshgrid(np.fft.rfftfreq(size, pixel_size), np.fft.fftfreq(size, pixel_size))


def contrast_transfer_at(
    x: np.ndarray,
    y: np.ndarray,
    defocus_u,
    defocus_v=None,
    *,
    angle=0.0,
    phase_shift=0.0,
    optics: Optics = KRIOS,
) -> np.ndarray:
    """Compute the CTF of each image at given frequencies, (n_images, *x.shape)."""
    values = (
        defocus_u,
        defocus_u if defocus_v is None else defocus_v,
        angle,
        phase_shift,
        optics.wavelength,
        optics.spherical_aberration,
        optics.amplitude_contrast,
    )
    # One for each image, or one for all.
    shape = (-1, *x.ndim * (1,))
    u, v, angle, shift, wavelength, aberration, amplitude = (
        np.asarray(value, dtype=float).reshape(shape) for value in values
    )
    angle = 2 * np.radians(angle)
    squared = x**2 + y**2
    # k^2 cos 2(direction - angle), without computing the direction.
    across = np.cos(angle) * (x**2 - y**2) + np.sin(angle) * 2 * x * y
    defocused = (u + v) / 2 * squared + (u - v) / 2 * across
    cs = 1e7 * aberration  # from millimetres to Angstrom
    aberrated = 0.5 * cs * wavelength**2 * squared**2
    delay = np.pi * wavelength * (defocused - aberrated)
    phase = delay + np.radians(shift) + np.arcsin(amplitude)
    return np.sin(phase).astype(np.float32)
