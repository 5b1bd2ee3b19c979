"""What lies behind the samples: mean images and thumbnails, slices of mean volumes, or the features themselves."""

import io
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Protocol

import numpy as np

from manifactor._support.extras import extra
from manifactor.cryoem.pictures import as_grey
from manifactor.cryoem.stacks import ImageSource
from manifactor.cryoem.views import View
from manifactor.runs.run import Run

THUMBNAIL = 96  # most pixels of a side
MOST_IMAGES, MOST_BYTES = 128, 2**26  # that a mean reads unless asked for more
MOST_FEATURES = 400  # columns shown
MOST_RANGED = 5000  # samples that the scale of the columns is read from


class Behind(Protocol):
    """What can be shown of samples."""

    @property
    def kind(self) -> str:
        """What it is, in one word."""

    @property
    def count(self) -> int:
        """Samples whose mean is shown unless asked for more or fewer."""

    @property
    def why(self) -> str:
        """Why there is no more to see, if so."""

    def shown(self, rows: np.ndarray, weights: np.ndarray, look: "Look") -> dict:
        """What these samples, weights summing to 1, look like, ready for JSON."""


@dataclass(frozen=True)
class Look:
    """How a volume is looked at, and how many single samples are shown beside the mean."""

    axis: int = 0
    depth: float = 0.5
    singles: int = 12


def behind(run: Run) -> Behind:
    """What lies behind a run's samples: images or volumes if they can be read, else numbers, else nothing."""
    try:
        return _pictures(run)
    except (ValueError, OSError) as error:
        without = " ".join(str(error).split())
    if "components" in run.record:  # of images or volumes: no numbers to show instead
        return Nothing(f"Only the places can be shown: {without}")
    try:
        return _features(
            run,
            f"No images are averaged: {without}" if "particles" in run.record else "",
        )
    except (ValueError, OSError) as error:
        return Nothing(f"Only the places can be shown: {' '.join(str(error).split())}")


def _pictures(run: Run) -> "Images | Volumes":
    images = run.images()
    source = images.source if isinstance(images, View) else images
    if len(source) != len(run.rows):
        raise ValueError(
            f"the input has {len(source)} images now and had {len(run.rows)} when fitted. Fit again."
        )
    extra("PIL.Image")
    make: type[Images] | type[Volumes] = Images if len(source.shape) == 2 else Volumes
    return make(images, _affordable(len(source), source.shape))


@dataclass(frozen=True)
class _Pictures:
    source: View | ImageSource
    count: int
    why: str = ""


class Images(_Pictures):
    """Mean images, and single ones as thumbnails."""

    kind = "images"

    def shown(self, rows: np.ndarray, weights: np.ndarray, look: Look) -> dict:
        """The mean image and the nearest single ones."""
        mean, first = mean_and_first(self.source, rows, weights, singles=look.singles)
        return {
            "image": data_url(mean),
            "thumbnails": [data_url(image, most=THUMBNAIL) for image in first],
        }


class Volumes(_Pictures):
    """Slices of mean volumes."""

    kind = "volumes"

    @cached_property
    def mean(self) -> Callable[[tuple[int, ...], tuple[float, ...]], np.ndarray]:
        """Mean volumes by rows and weights; the last are kept, since other slices of them need no reading."""

        def read(rows: tuple[int, ...], weights: tuple[float, ...]) -> np.ndarray:
            return mean_and_first(
                self.source, np.array(rows), np.array(weights), singles=0
            )[0]

        return lru_cache(maxsize=2)(read)

    def shown(self, rows: np.ndarray, weights: np.ndarray, look: Look) -> dict:
        """A slice of the mean volume."""
        mean = self.mean(tuple(rows.tolist()), tuple(weights.tolist()))
        depth = min(int(look.depth * mean.shape[look.axis]), mean.shape[look.axis] - 1)
        cut = mean.take(depth, axis=look.axis)
        return {
            "image": data_url(cut if look.axis == 0 else cut[::-1]),
            "slice": depth + 1,
        }  # seen from the side, z up


@dataclass(frozen=True)
class Features:
    """Means of the columns of the samples, on a scale that does not move, and single samples."""

    samples: np.ndarray
    count: int
    limits: tuple[float, float]
    kind: str = "features"
    why: str = ""

    def shown(self, rows: np.ndarray, weights: np.ndarray, look: Look) -> dict:
        """Mean and spread of every column, and the nearest single samples."""
        near = np.asarray(self.samples[rows, :MOST_FEATURES], dtype=float)
        mean = weights @ near
        spread = np.sqrt(weights @ (near - mean) ** 2)
        return {
            "mean": mean.tolist(),
            "spread": spread.tolist(),
            "features": near[: look.singles].tolist(),
        }


def _features(run: Run, why: str) -> Features:
    samples = run.samples()
    width = samples.shape[1]
    why = why or (
        f"The first {MOST_FEATURES} of {width} columns."
        if width > MOST_FEATURES
        else ""
    )
    some = samples[:: -(-len(samples) // MOST_RANGED), :MOST_FEATURES]
    return Features(
        samples,
        min(50, max(1, len(samples) // 20)),
        (float(some.min()), float(some.max())),
        why=why,
    )


@dataclass(frozen=True)
class Nothing:
    """The input is gone, or was changed."""

    why: str
    count: int = 12
    kind: str = "nothing"

    def shown(self, rows: np.ndarray, weights: np.ndarray, look: Look) -> dict:
        """Nothing."""
        return {}


def mean_and_first(
    images: View | ImageSource, rows: np.ndarray, weights: np.ndarray, *, singles: int
) -> tuple[np.ndarray, np.ndarray]:
    """The weighted mean of images or volumes, a block in memory at a time, and the first of them in the rows' order."""
    order = np.argsort(rows, kind="stable")
    mean: np.ndarray | None = None
    for found, block in images.blocks(rows):
        which = order[np.searchsorted(rows[order], found)]
        part = np.tensordot(weights[which].astype(np.float32), block, axes=1)
        if mean is None:
            mean, first = (
                np.zeros_like(part),
                np.empty((min(singles, len(rows)), *part.shape), dtype=np.float32),
            )
        mean += part
        early = which < singles
        first[which[early]] = block[early]
    assert mean is not None
    return mean, first


def data_url(image: np.ndarray, *, most: int = 4096) -> str:
    """A picture, in its own grey scale, as text that a page can show."""
    picture, buffer = (
        extra("PIL.Image").fromarray(as_grey(image[None])[0]),
        io.BytesIO(),
    )
    picture.thumbnail((most, most))
    picture.save(buffer, format="PNG", compress_level=1)
    return f"data:image/png;base64,{b64encode(buffer.getvalue()).decode()}"


def _affordable(n: int, shape: tuple[int, ...]) -> int:
    """A twentieth of the samples, and no more than are read in a moment."""
    return int(
        np.clip(
            MOST_BYTES // (4 * int(np.prod(shape))),
            1,
            min(MOST_IMAGES, max(1, n // 20)),
        )
    )
