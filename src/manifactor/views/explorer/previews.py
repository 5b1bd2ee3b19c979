"""What is shown of samples: the means of their columns; packages add others, such as images."""

import io
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from manifactor._support.errors import extra, one_line
from manifactor._support.values import ceil_div
from manifactor.runs.places import Place
from manifactor.runs.run import Run
from manifactor.views.figures import scale_bar
from manifactor.views.pictures import as_grey, each_as_grey

MOST_FEATURES = 400  # columns whose means are drawn

# A mean takes at most one in so many of all samples: else it is not of samples near the place.
SAMPLES_PER_MEAN = 20


@dataclass(frozen=True)
class Viewpoint:
    """Where a user looks, and how."""

    at: tuple[Sequence[float], ...] = ()  # displayed coordinates on all factors
    factor: int = 0  # the one along which a mean is taken
    mode: str = "matched"  # or "held": whether samples are spread over the other factors, or near
    count: int = 12  # of about how many samples the mean is
    singles: int = 12  # single samples that are shown beside the mean
    axis: int = 0  # across which a volume is cut
    depth: float = 0.5  # of the cut, from 0 to 1
    view: tuple[float, float] = (0.0, 0.0)  # rot and tilt in degrees
    source: str = ""  # what is shown of particles of all views


@dataclass(frozen=True, kw_only=True)
class Preview:
    """What can be shown of samples; this one of an input that was removed or changed: nothing."""

    count: int = 12  # samples whose mean is shown unless the user sets another number
    why: str = ""  # why no more can be shown; "" if everything is
    limits: tuple[float, float] | None = None  # of the columns that are drawn
    width: float | None = None  # of a picture in angstrom; None if it is unknown
    kind = "nothing"
    # What a user can choose from, by name.
    sources: dict[str, Any] = field(default_factory=dict)
    # Whether a picture is the mean of samples, so that a selection has one.
    of_samples = True
    # The samples that can be shown and their places; None for all of them.
    rows: np.ndarray | None = None
    places: tuple[Place, ...] = ()

    def about(self) -> dict:
        """Return what the page needs to show samples."""
        bar = scale_bar(self.width) if self.width else None
        own = {"kind": self.kind, "count": self.count, "why": self.why}
        return {**own, "limits": self.limits, "bar": bar, "bars": {}, "views": None, "sources": {}}

    def facing(self, look: Viewpoint) -> "Preview":
        """Return what shows the samples of a look."""
        return self

    def of_one(self) -> "Preview":
        """Return what shows a single sample."""
        return self

    def picture(self, rows: np.ndarray, weights: np.ndarray, look: Viewpoint) -> np.ndarray:
        """Return the mean of these samples: an image, or the first columns; empty for nothing."""
        return np.zeros(0)

    def show(self, rows: np.ndarray, weights: np.ndarray, look: Viewpoint) -> dict:
        """Return these samples, with weights that sum to 1, ready for JSON."""
        return {}


@dataclass(frozen=True)
class FeaturePreview(Preview):
    """Means of the columns of the samples, on a fixed scale, and single samples."""

    samples: np.ndarray
    kind = "features"

    def picture(self, rows: np.ndarray, weights: np.ndarray, look: Viewpoint) -> np.ndarray:
        """Return the means of the columns."""
        return weights @ np.asarray(self.samples[rows, :MOST_FEATURES], dtype=float)

    def show(self, rows: np.ndarray, weights: np.ndarray, look: Viewpoint) -> dict:
        """Return mean and spread of every column, and the nearest single samples."""
        near = np.asarray(self.samples[rows, :MOST_FEATURES], dtype=float)
        mean = weights @ near
        spread = np.sqrt(weights @ (near - mean) ** 2)
        shown = {"mean": mean, "spread": spread, "features": near[: look.singles]}
        return {name: values.tolist() for name, values in shown.items()}


def open_preview(run: Run, why: str = "") -> Preview:
    """Return what the explorer shows of numbers, and `why` it shows no more."""
    try:
        samples = run.samples()
    except (ValueError, OSError) as error:
        return Preview(why=f"Only the coordinates can be shown: {one_line(error)}")
    n_samples, width = samples.shape
    if not why and width > MOST_FEATURES:
        why = f"The first {MOST_FEATURES} of {width} columns are shown."
    # The scale of the drawing is read from about 5000 samples.
    some = samples[:: ceil_div(n_samples, 5000), :MOST_FEATURES]
    limits = float(some.min()), float(some.max())
    count = min(50, max(1, n_samples // SAMPLES_PER_MEAN))
    return FeaturePreview(samples, limits=limits, count=count, why=why)


def pictures(mean: np.ndarray, singles: np.ndarray) -> dict[str, str | list[int]]:
    """Return a mean image and thumbnails of single ones, ready for JSON."""
    return {"image": data_url(mean), **thumbnails(each_as_grey(singles))}


def thumbnails(levels: np.ndarray) -> dict[str, str | list[int]]:
    """Return levels of grey or of colours, (n, height, width, ...), as small images.

    The page draws them: files of pictures would take a fifth of the time of the whole answer.
    """
    # Particles are often fitted with 128 pixels: these need not be shrunk.
    if max(levels.shape[1:3]) > 128:
        levels = np.stack([np.asarray(_shrunk(each, 128)) for each in levels])
    return {
        "thumbnails": b64encode(levels.tobytes()).decode(),
        "thumbnail_shape": list(levels.shape[1:]),
    }


def signed_url(difference: np.ndarray) -> str:
    """Return a difference of images as an address: white where it is 0, red above, blue below."""
    # A difference in colours has no sign: that of their mean has.
    values = difference.mean(axis=tuple(range(2, difference.ndim)))
    largest = max(float(np.percentile(np.abs(values), 99.5)), np.finfo(np.float32).tiny)
    share = np.clip(values / largest, -1, 1)[:, :, None]
    ends = np.where(share > 0, np.array([178, 24, 43]), np.array([33, 102, 172]))
    colours = np.rint(255 + np.abs(share) * (ends - 255)).astype(np.uint8)
    return _png_url(_shrunk(colours, 4096))


def data_url(image: np.ndarray) -> str:
    """Return a picture in its own grey scale as a data: address of a .png file."""
    # A screen has no more pixels.
    picture = _shrunk(as_grey(image[None])[0], 4096)
    # Rows are not filtered if the greys are a palette.
    return _png_url(picture.convert("P") if picture.mode == "L" else picture)


def _png_url(picture) -> str:
    buffer = io.BytesIO()
    # Sent to this machine only: small matters less than soon, and noise cannot be compressed.
    picture.save(buffer, format="PNG", compress_level=0)
    return f"data:image/png;base64,{b64encode(buffer.getvalue()).decode()}"


def _shrunk(grey: np.ndarray, largest: int):
    picture = extra("PIL.Image").fromarray(grey)
    picture.thumbnail((largest, largest))
    return picture
