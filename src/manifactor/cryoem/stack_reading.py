"""The numbers of images in a stack, or of a volume."""

import math
from pathlib import Path

import numpy as np

from manifactor.cryoem.mrc import open_map


def read_images(path: Path, slices: np.ndarray, *, out: np.ndarray) -> None:
    """Read images of a stack, or the volume that a file is, into an array.

    Parameters
    ----------
    path : Path
    slices : ndarray of int of shape (n,)
        Indices of the images in the file, ascending; -1 for the volume.
    out : ndarray of shape (n, ...)
    """
    # Opened for every block: closing a file releases the pages read so far.
    with open_map(path) as stack:
        if slices[0] < 0:
            out[:] = stack.data
        else:
            _read_runs(path, stack.data, slices, out)


def _read_runs(
    path: Path, stack: np.memmap, slices: np.ndarray, out: np.ndarray
) -> None:
    """Read images; those that lie one after the other together.

    They are not copied from the mapped file: the system maps megabytes around each
    image that is touched, and ends a process that touches what was cut off.
    """
    gaps = np.flatnonzero(np.diff(slices) != 1) + 1
    starts, ends = [0, *gaps.tolist()], [*gaps.tolist(), len(slices)]
    kind, offset = stack.dtype, stack.offset
    step = kind.itemsize * math.prod(stack.shape[-2:])
    with path.open("rb", buffering=0) as file:
        for start, end in zip(starts, ends, strict=True):
            place = out[start:end]
            same = place.dtype == kind
            images = place if same else np.empty_like(place, dtype=kind)
            file.seek(offset + int(slices[start]) * step)
            if file.readinto(images.data) != images.nbytes:
                raise ValueError(
                    f"{path} must not change while it is read; it was cut short."
                )
            if not same:
                place[:] = images
