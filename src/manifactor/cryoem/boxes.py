"""Boxes of images: that they are square, and that masks and low-passes suit them."""

from dataclasses import dataclass

from manifactor._support.parameters import require_number
from manifactor.cryoem.spectra import given_shell


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
