"""Images of one view in one frame: CTF phases flipped, centred, turned in their plane."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import fft, ndimage

from manifactor.cryoem.ctf import Optics, contrast_transfer
from manifactor.cryoem.particles import Particles
from manifactor.cryoem.stacks import ImageArray, ImageSource

STILL = 1e-3  # degrees and pixels below which an image is left as it is


@dataclass(frozen=True)
class View:
    """Images of one view, brought into one frame: CTF phases flipped if asked for, centred, turned as the first is.

    Attributes
    ----------
    source : ImageSource or ImageArray
    particles : Particles or None
        In the order of the source; None for a bare stack.
    flip : bool
        Whether to flip the phases.
    """

    source: ImageSource | ImageArray
    particles: Particles | None = None
    flip: bool = False

    def __post_init__(self) -> None:
        if self.flip and (
            self.particles is None or "defocus_u" not in self.particles.microscope
        ):
            raise ValueError(
                "phases can be flipped where the defocus is known; the particles have none."
            )
        done = {} if self.particles is None else self.particles.microscope
        if self.flip and any(
            np.any(done.get(name, 0)) for name in ("flipped", "premultiplied")
        ):
            raise ValueError(
                "the CTF of these images is corrected already, as their STAR file says. Do not flip it."
            )

    def blocks(
        self, rows: np.ndarray | None = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Pairs (rows, images)."""
        for here, images in self.source.blocks(rows):
            yield here, self._aligned(self._flipped(images, here), here)

    def _flipped(self, images: np.ndarray, rows: np.ndarray) -> np.ndarray:
        if not self.flip or self.particles is None:
            return images
        ctf = particle_ctf(
            self.particles[rows], images.shape[-1], self.source.pixel_size
        )
        return fft.irfft2(
            fft.rfft2(images, workers=-1) * np.sign(ctf), s=images.shape[1:], workers=-1
        )

    def _aligned(self, images: np.ndarray, rows: np.ndarray) -> np.ndarray:
        if self.particles is None:
            return images
        turned, shift = self._turned, self.particles.shift
        turn = np.zeros(len(rows)) if turned is None else turned[rows]
        return aligned(
            images, turn, np.zeros((len(rows), 2)) if shift is None else shift[rows]
        )

    @cached_property
    def _turned(self) -> np.ndarray | None:
        return None if self.particles is None else self.particles.turned()


def aligned(images: np.ndarray, psi: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """Images shifted by (x, y) pixels and turned back by psi degrees, as RELION defines both.

    What lies beyond the edge is taken from the other side: empty corners would look like a stack without noise.
    """
    turned = (np.abs(psi) > STILL) | (np.abs(shift) > STILL).any(axis=1)
    if not turned.any():
        return images
    out = images.copy()
    centre = np.array(images.shape[1:]) // 2

    def align(i: int) -> None:
        c, s = np.cos(np.radians(psi[i])), np.sin(np.radians(psi[i]))
        matrix = np.array(
            [[c, -s], [s, c]]
        )  # rows and columns of the aligned image to those of the image as it is
        offset = centre - matrix @ centre - shift[i, ::-1]
        ndimage.affine_transform(
            images[i], matrix, offset, output=out[i], order=1, mode="grid-wrap"
        )

    with ThreadPoolExecutor(
        os.cpu_count()
    ) as cores:  # scipy lets go of the interpreter meanwhile
        list(cores.map(align, np.flatnonzero(turned)))
    return out


def particle_ctf(particles: Particles, size: int, pixel_size: float) -> np.ndarray:
    """The contrast transfer function of each particle on the grid of ``rfft2``."""
    known = particles.microscope
    optics = Optics(**{name: known[name] for name in OPTICS if name in known})
    return contrast_transfer(
        size,
        pixel_size,
        known["defocus_u"],
        known.get("defocus_v", known["defocus_u"]),
        angle=known.get("defocus_angle", 0.0),
        phase_shift=known.get("phase_shift", 0.0),
        optics=optics,
    )


OPTICS = ("voltage", "spherical_aberration", "amplitude_contrast")
