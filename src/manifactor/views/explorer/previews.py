"""What is shown of samples: mean images, slices of mean volumes, or mean features."""

import io
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Protocol

import numpy as np

from manifactor._support.errors import extra, one_line
from manifactor._support.values import ceil_div
from manifactor.cryoem.all_views.volumes import is_of_all_views
from manifactor.cryoem.averages import correction
from manifactor.cryoem.files.stacks import ImageSource
from manifactor.cryoem.one_view import View
from manifactor.cryoem.pictures import as_grey, each_as_grey
from manifactor.runs.run import Run

# A mean follows a slider only if it is read in a tenth of a second: so many images. A user may ask
# for more.
MOST_IMAGES = 128

# Columns whose means are drawn.
MOST_FEATURES = 400

# A mean takes at most one in so many of all samples: else it is not of samples near the place.
SAMPLES_PER_MEAN = 20


@dataclass(frozen=True)
class Viewpoint:
    """How a volume is cut, and how many single samples are shown beside the mean.

    Particles of all views are seen from ``view``, rot and tilt in degrees, at the displayed
    coordinates ``at`` on all factors; ``source`` says what is shown of them.
    """

    axis: int = 0
    depth: float = 0.5
    singles: int = 12
    view: tuple[float, float] = (0.0, 0.0)
    at: tuple[Sequence[float], ...] = ()
    source: str = ""


class Preview(Protocol):
    """What can be shown of samples."""

    @property
    def kind(self) -> str:
        """What it is, in one word."""

    @property
    def count(self) -> int:
        """Samples whose mean is shown unless the user sets another number."""

    @property
    def why(self) -> str:
        """Why no more can be shown; "" if everything is."""

    def shown(self, rows: np.ndarray, weights: np.ndarray, look: Viewpoint) -> dict:
        """Return these samples, with weights that sum to 1, ready for JSON."""


def open_preview(run: Run, *, problem: str = "") -> Preview:
    """Return images or volumes of a run's samples, else features, else nothing."""
    try:
        if not problem:
            return _pictures(run)
    except (ValueError, OSError) as error:
        problem = one_line(error)
    # Samples that were made of images or volumes have no numbers to show instead.
    if "components" in run.record or is_of_all_views(run.record):
        return Nothing(f"Only the places can be shown: {problem}")
    why = f"No images are averaged: {problem}" if "particles" in run.record else ""
    try:
        return _features(run, why)
    except (ValueError, OSError) as error:
        return Nothing(f"Only the places can be shown: {one_line(error)}")


def _pictures(run: Run) -> "Images | Volumes":
    images = run.images()
    source = images.source if isinstance(images, View) else images
    if len(source) != len(run.rows):
        raise ValueError(
            f"the input has {len(source)} images now and had {len(run.rows)} when "
            "fitted. Fit again."
        )
    # Missing packages are reported here, not with the first request.
    extra("PIL.Image")
    flat = len(source.shape) == 2
    make: type[Images] | type[Volumes] = Images if flat else Volumes
    # At most 64 MiB in single precision, for the same reason as MOST_IMAGES.
    readable = 2**26 // (4 * int(np.prod(source.shape)))
    return make(images, max(1, min(readable, MOST_IMAGES, len(source) // SAMPLES_PER_MEAN)))


@dataclass(frozen=True)
class _Pictures:
    source: View | ImageSource
    count: int
    why: str = ""

    @property
    def width(self) -> float | None:
        """Width of a square picture in Angstrom; None if it is unknown."""
        source = self.source.source if isinstance(self.source, View) else self.source
        square = len(set(source.shape)) == 1
        known = square and source.pixel_size_stated
        return source.pixel_size * source.shape[0] if known else None


class Images(_Pictures):
    """Mean images, and single ones as thumbnails."""

    kind = "images"

    def shown(self, rows: np.ndarray, weights: np.ndarray, look: Viewpoint) -> dict:
        """Return the mean image and the nearest single ones."""
        return pictures(*mean_and_first(self.source, rows, weights, singles=look.singles))


class Volumes(_Pictures):
    """Slices of mean volumes."""

    kind = "volumes"

    @cached_property
    def mean(self) -> Callable[[tuple[int, ...], tuple[float, ...]], np.ndarray]:
        """Mean volume by rows and weights; the last two are kept for other slices."""

        def read(rows: tuple[int, ...], weights: tuple[float, ...]) -> np.ndarray:
            arrays = np.array(rows), np.array(weights)
            mean, _ = mean_and_first(self.source, *arrays, singles=0)
            return mean

        # Moving the slice reads no file. Two: one may be read while one is shown.
        return lru_cache(maxsize=2)(read)

    def shown(self, rows: np.ndarray, weights: np.ndarray, look: Viewpoint) -> dict:
        """Return a slice of the mean volume."""
        # Tuples, which a cache can look up.
        chosen, shares = tuple(rows.tolist()), tuple(weights.tolist())
        mean = self.mean(chosen, shares)
        size = mean.shape[look.axis]
        depth = min(int(look.depth * size), size - 1)
        cut = mean.take(depth, axis=look.axis)
        # From the side, z points up.
        upright = cut if look.axis == 0 else cut[::-1]
        return {"image": data_url(upright), "slice": depth + 1}


@dataclass(frozen=True)
class FeaturePreview:
    """Means of the columns of the samples, on a fixed scale, and single samples."""

    samples: np.ndarray
    count: int
    limits: tuple[float, float]
    kind: str = "features"
    why: str = ""

    def shown(self, rows: np.ndarray, weights: np.ndarray, look: Viewpoint) -> dict:
        """Return mean and spread of every column, and the nearest single samples."""
        near = np.asarray(self.samples[rows, :MOST_FEATURES], dtype=float)
        mean = weights @ near
        spread = np.sqrt(weights @ (near - mean) ** 2)
        return {
            "mean": mean.tolist(),
            "spread": spread.tolist(),
            "features": near[: look.singles].tolist(),
        }


def _features(run: Run, why: str) -> FeaturePreview:
    samples = run.samples()
    n_samples, width = samples.shape
    if not why and width > MOST_FEATURES:
        why = f"The first {MOST_FEATURES} of {width} columns are shown."
    # The scale of the drawing is read from about 5000 samples.
    some = samples[:: ceil_div(n_samples, 5000), :MOST_FEATURES]
    count = min(50, max(1, n_samples // SAMPLES_PER_MEAN))
    return FeaturePreview(samples, count, limits=(float(some.min()), float(some.max())), why=why)


@dataclass(frozen=True)
class Nothing:
    """Stands for an input that was removed or changed."""

    why: str
    count = 12
    kind = "nothing"

    def shown(self, rows: np.ndarray, weights: np.ndarray, look: Viewpoint) -> dict:
        """Return nothing."""
        return {}


def mean_and_first(
    images: View | ImageSource, rows: np.ndarray, weights: np.ndarray, *, singles: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the weighted mean of images or volumes, and the first of them.

    One block is in memory at a time. The first are in the order of `rows`.
    """
    order = np.argsort(rows, kind="stable")
    mean: np.ndarray | None = None
    for found, block in images.blocks(rows):
        # Blocks come in the order of the file.
        which = order[np.searchsorted(rows[order], found)]
        shares = weights[which].astype(np.float32)
        part = np.tensordot(shares, block, axes=1)
        # The shape is known with the first block only.
        if mean is None:
            mean = np.zeros_like(part)
            n_first = min(singles, len(rows))
            first = np.empty((n_first, *part.shape), dtype=np.float32)
        mean += part
        early = which < singles
        first[which[early]] = block[early]
    assert mean is not None
    return _corrected(images, mean, rows, weights), first


def _corrected(
    images: View | ImageSource, mean: np.ndarray, rows: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Return a mean with the CTF of its images divided out, if it is known."""
    if not isinstance(images, View) or images.particles is None:
        return mean
    near = replace(images, particles=images.particles[rows])
    one_bin = np.zeros(len(rows), dtype=int)
    return correction(near, one_bin, weights=weights, n_bins=1)(mean[None])[0]


def pictures(mean: np.ndarray, singles: np.ndarray) -> dict[str, str | list[int]]:
    """Return a mean image and thumbnails of single ones, ready for JSON.

    Thumbnails are grey levels, which the page draws: files of pictures would take a fifth of the
    time of the whole answer.
    """
    greys = each_as_grey(singles)
    # Particles are often fitted with 128 pixels: these need not be shrunk.
    if max(greys.shape[1:]) > 128:
        greys = np.stack([np.asarray(_shrunk(grey, 128)) for grey in greys])
    return {
        "image": data_url(mean),
        "thumbnails": b64encode(greys.tobytes()).decode(),
        "thumbnail_shape": list(greys.shape[1:]),
    }


def data_url(image: np.ndarray) -> str:
    """Return a picture in its own grey scale as a data: address of a .png file."""
    # A screen has no more pixels.
    picture = _shrunk(as_grey(image[None])[0], 4096)
    buffer = io.BytesIO()
    # Sent to this machine only: small matters less than soon, and noise cannot be compressed. Rows
    # are not filtered either if the greys are a palette.
    picture.convert("P").save(buffer, format="PNG", compress_level=0)
    return f"data:image/png;base64,{b64encode(buffer.getvalue()).decode()}"


def _shrunk(grey: np.ndarray, largest: int):
    picture = extra("PIL.Image").fromarray(grey)
    picture.thumbnail((largest, largest))
    return picture
