"""Images of one view in one frame: CTF treated, centred, turned in plane; and the CTF itself."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import fft, ndimage

from manifactor._support.threads import cores, map_threads
from manifactor.cryoem.files.particles import Particles
from manifactor.cryoem.files.stacks import ImageSource


@dataclass(frozen=True)
class View:
    """Images of one view, centred and turned to one frame; or volumes, taken as they are."""

    source: ImageSource
    particles: Particles | None = None  # in the order of the source; None for a bare stack
    flip: bool = False  # whether to flip the phases of the CTF
    # The view to whose orientation images are turned; None for that of the first
    frame: tuple[float, float] | None = None
    weigh: bool = False  # whether to multiply by the CTF, as Wiener's filter needs it
    # (n,): images to turn upside down, as `Particles.facing` says
    mirrored: np.ndarray | None = None
    # (n,): in-plane angle of each image in degrees; None for that of the particles relative to
    # `frame`
    turns: np.ndarray | None = None

    def __post_init__(self) -> None:
        if not self.flip:
            return
        if self.particles is None or "defocus_u" not in self.particles.microscope:
            raise ValueError(
                "phases can be flipped where the defocus is known; the particles have none."
            )
        if self.source.stated_size is None:
            raise ValueError(
                "phases can be flipped where the pixel size is known; no file states "
                "it. Give it in Angstrom with --pixel-size."
            )
        if not can_flip(self.particles):
            raise ValueError(
                "the CTF of these images is corrected already, as their STAR file "
                "says. Do not flip it."
            )

    def __getitem__(self, rows: np.ndarray) -> "View":
        """Return some of the images, turned as among all of them."""
        particles, mirrored, turns = self.particles, self.mirrored, self._turned
        return replace(
            self,
            source=self.source[rows],
            particles=None if particles is None else particles[rows].without_images(),
            mirrored=None if mirrored is None else mirrored[rows],
            turns=None if turns is None else turns[rows],
        )

    def blocks(self, rows: np.ndarray | None = None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield pairs (rows, images)."""
        for here, images in self.source.blocks(rows):
            if self.particles is not None:
                images = self._in_frame(images, self.particles, here)
            yield here, images

    def _in_frame(self, images: np.ndarray, particles: Particles, rows: np.ndarray) -> np.ndarray:
        """Return images of some of the particles, filtered, faced, centred and turned."""
        pixel_size = self.source.pixel_size
        if self.flip or self.weigh:
            seen = particles[rows]
            factor = particle_ctf(seen, image_frequencies(images.shape[-1], pixel_size))
            if not self.weigh:
                # The phases only: multiplying by the CTF itself would weight the spectrum, and the
                # noise would no longer be the same in all images.
                factor = np.sign(factor)
            elif np.any(seen.microscope.get("premultiplied", 0)):
                factor = np.ones(1)  # each image is to have its CTF twice, and has
            transformed = fft.rfft2(images, workers=cores()) * factor
            images = fft.irfft2(transformed, s=images.shape[1:], workers=cores())
        if self.mirrored is not None and self.mirrored[rows].any():
            # About the row of the centre, which stays: row k becomes row -k.
            flipped = np.roll(images[:, ::-1], 1 - images.shape[1] % 2, axis=1)
            images = np.where(self.mirrored[rows][:, None, None], flipped, images)
        psi = np.zeros(len(rows)) if self._turned is None else self._turned[rows]
        return aligned(images, psi, particles.shift_at(pixel_size)[rows])

    # Needs the rotations of all particles.
    @cached_property
    def _turned(self) -> np.ndarray | None:
        if self.particles is None or self.turns is not None:
            return self.turns
        return self.particles.turned(self.frame)


def can_weigh(source: ImageSource, particles: Particles | None) -> bool:
    """Return whether means of images can be corrected for their CTF."""
    has_defocus = particles is not None and "defocus_u" in particles.microscope
    return has_defocus and source.stated_size is not None


def can_flip(particles: Particles) -> bool:
    """Return whether the CTF of particles is known, and not corrected yet."""
    known = particles.microscope
    # Flipping twice would bring the wrong phases back.
    corrected = any(np.any(known.get(name, 0)) for name in ("flipped", "premultiplied"))
    return "defocus_u" in known and not corrected


def aligned(images: np.ndarray, psi: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """Return images shifted and then turned back in plane.

    Pixels beyond the edge are taken from the opposite side: empty corners would look like a stack
    without noise.

    Shapes: images (n, rows, columns), psi (n,), shift (n, 2).
    """
    # Interpolation blurs, so images that move by less, in degrees or pixels, are not touched.
    moved = (np.abs(psi) > 1e-3) | (np.abs(shift) > 1e-3).any(axis=1)
    if not moved.any():
        return images
    out = images.copy()
    centre = np.array(images.shape[1:]) // 2

    def align(i: int) -> None:
        angle = np.radians(psi[i])
        cosine, sine = np.cos(angle), np.sin(angle)
        # Rows and columns of the aligned image to those of the image as it is.
        matrix = np.array([[cosine, -sine], [sine, cosine]])
        # Shifts are (x, y), arrays (row, column).
        offset = centre - matrix @ centre - shift[i, ::-1]
        how = {"output": out[i], "order": 1, "mode": "grid-wrap"}
        ndimage.affine_transform(images[i], matrix, offset, **how)

    # Threads are enough: scipy releases the interpreter lock while it interpolates.
    map_threads(align, np.flatnonzero(moved).tolist())
    return out


# The contrast transfer function of the microscope, with RELION's conventions.


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


def image_frequencies(size: int, pixel_size: float) -> tuple[np.ndarray, ...]:
    """Return x and y of the frequencies of ``rfft2``, in 1 / Angstrom."""
    return np.meshgrid(np.fft.rfftfreq(size, pixel_size), np.fft.fftfreq(size, pixel_size))


def contrast_transfer(
    frequencies: Sequence[np.ndarray],
    defocus_u,
    defocus_v=None,
    *,
    angle=0.0,
    phase_shift=0.0,
    optics: Optics = KRIOS,
) -> np.ndarray:
    r"""Compute the CTF of each image at frequencies x and y in 1 / Angstrom, (n_images, *x.shape).

    .. math:: \sin(\pi \lambda \Delta f k^2 - \tfrac{\pi}{2} C_s \lambda^3 k^4
        + \varphi + \arcsin A)

    with the defocus :math:`\Delta f` positive for underfocus. The sign is RELION's: at zero
    frequency the CTF is the amplitude contrast, :math:`+A` (without phase shift), so it goes with
    particles that are white on a dark ground. A phase flip multiplies by the sign of the CTF.
    """
    x, y = frequencies
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


def particle_ctf(particles: Particles, frequencies: Sequence[np.ndarray]) -> np.ndarray:
    """Compute the CTF of each particle, without its signs if phases are flipped already."""
    known = particles.microscope
    # What is not known of the microscope is that of most of today.
    names = ("voltage", "spherical_aberration", "amplitude_contrast")
    ctf = contrast_transfer(
        frequencies,
        known["defocus_u"],
        known.get("defocus_v"),
        angle=known.get("defocus_angle", 0.0),
        phase_shift=known.get("phase_shift", 0.0),
        optics=Optics(**{name: known[name] for name in names if name in known}),
    )
    flipped = np.asarray(known.get("flipped", 0), bool).reshape(-1, *frequencies[0].ndim * (1,))
    return np.where(flipped, np.abs(ctf), ctf)
