"""The numbers of images in a stack, or of a volume."""

from pathlib import Path

import numpy as np

from manifactor.cryoem.mrc import Described, described_map, open_map


def read_images(path: Path, slices: np.ndarray, *, out: np.ndarray) -> None:
    """Read images of a stack, or the volume that a file is, into an array.

    Shapes: slices (n,), out (n, ...).
    """
    if slices[0] >= 0:
        _read_runs(path, described_map(path), slices, out)
        return
    with open_map(path) as volume:
        out[:] = volume.data


def _read_runs(path: Path, stack: Described, slices: np.ndarray, out: np.ndarray) -> None:
    """Read images; those that lie one after the other together.

    They are not copied from a mapped file: the system maps megabytes around each image that is
    touched, and ends a process that touches what was cut off.
    """
    assert stack.dtype is not None
    kind, (columns, rows, _) = stack.dtype, stack.sides
    step = kind.itemsize * columns * rows
    gaps = np.flatnonzero(np.diff(slices) != 1) + 1
    starts, ends = [0, *gaps.tolist()], [*gaps.tolist(), len(slices)]
    with path.open("rb", buffering=0) as file:
        for start, end in zip(starts, ends, strict=True):
            place = out[start:end]
            same = place.dtype == kind
            images = place if same else np.empty_like(place, dtype=kind)
            file.seek(stack.offset + int(slices[start]) * step)
            if file.readinto(images.data) != images.nbytes:
                raise ValueError(f"{path} must not change while it is read; it was cut short.")
            if not same:
                place[:] = images
