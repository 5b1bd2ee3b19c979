"""What is shown of samples: mean images, slices of mean volumes, mean features, or a molecule."""

import io
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

import numpy as np

from manifactor._support.errors import extra, one_line
from manifactor._support.values import ceil_div
from manifactor.cryoem.all_views.model import UNKNOWN, ViewMap, counted_views
from manifactor.cryoem.all_views.shown import Shown, given_cone
from manifactor.cryoem.all_views.volumes import is_of_all_views
from manifactor.cryoem.averages import correction, place_captions
from manifactor.cryoem.directions import Cone, known_directions
from manifactor.cryoem.files.stacks import ImageSource
from manifactor.cryoem.one_view import View, can_weigh
from manifactor.runs.places import Place
from manifactor.runs.run import Run, require_as_many
from manifactor.views.pictures import as_grey, each_as_grey
from manifactor.views.report import scale_bar

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


# What a user can choose from: what it is, and the width of its images in angstrom.
Sources = dict[str, tuple[str, float | None]]


@dataclass(frozen=True, kw_only=True)
class Preview:
    """What can be shown of samples; this one of an input that was removed or changed: nothing."""

    count: int = 12  # samples whose mean is shown unless the user sets another number
    why: str = ""  # why no more can be shown; "" if everything is
    what: Shown = field(default_factory=Shown)  # of particles of all views
    limits: tuple[float, float] | None = None  # of the columns that are drawn
    width: float | None = None  # of a picture in angstrom; None if it is unknown
    kind = "nothing"

    @property
    def sources(self) -> Sources:
        """What can be shown, where a user can choose."""
        return {}

    def described(self) -> dict:
        """Return what the page needs to show samples."""
        bar = scale_bar(self.width) if self.width else None
        own = {"kind": self.kind, "count": self.count, "why": self.why}
        return {**own, "limits": self.limits, "bar": bar, "bars": {}, "views": None, "sources": {}}

    def picture(self, rows: np.ndarray, weights: np.ndarray, look: Viewpoint) -> np.ndarray:
        """Return the mean of these samples: an image, or the first columns; empty for nothing."""
        return np.zeros(0)

    def shown(self, rows: np.ndarray, weights: np.ndarray, look: Viewpoint) -> dict:
        """Return these samples, with weights that sum to 1, ready for JSON."""
        return {}


def open_preview(run: Run, what: Shown) -> Preview:
    """Return what the explorer shows of a run's samples.

    That is a molecule or given volumes, else images or volumes of the samples, else features, else
    nothing.
    """
    molecule = _open_molecule(run, what)
    if molecule.sources:
        return molecule
    # Where images of all views were to be shown, the reason why they are not is theirs.
    problem = molecule.why
    try:
        if not problem:
            return _pictures(run)
    except (ValueError, OSError) as error:
        problem = one_line(error)
    try:
        # Samples that were made of images or volumes have no numbers to show instead.
        if "components" not in run.record and not is_of_all_views(run.record):
            why = f"No images are averaged: {problem}" if "particles" in run.record else ""
            return _features(run, why)
    except (ValueError, OSError) as error:
        problem = one_line(error)
    return Preview(why=f"Only the coordinates can be shown: {problem}")


def _pictures(run: Run) -> "Images | Volumes":
    images = run.images()
    source = images.source
    require_as_many(run, len(source), "images")
    # Missing packages are reported here, not with the first request.
    extra("PIL.Image")
    in_colour = source.shape[2:] == (3,)
    make = Images if len(source.shape) == 2 or in_colour else Volumes
    # At most 64 MiB in single precision, for the same reason as MOST_IMAGES.
    readable = 2**26 // (4 * int(np.prod(source.shape)))
    count = max(1, min(readable, MOST_IMAGES, len(source) // SAMPLES_PER_MEAN))
    return make(images, count=count, width=_width(source))


def _width(source: ImageSource) -> float | None:
    """Return the width of a square picture in angstrom; None if it is unknown."""
    known = len(set(source.shape)) == 1 and source.pixel_size_stated
    return source.pixel_size * source.shape[0] if known else None


@dataclass(frozen=True)
class Images(Preview):
    """Mean images, and single ones as thumbnails."""

    source: View | ImageSource
    kind = "images"

    def picture(self, rows: np.ndarray, weights: np.ndarray, look: Viewpoint) -> np.ndarray:
        """Return the mean image."""
        return mean_and_first(self.source, rows, weights, singles=0)[0]

    def shown(self, rows: np.ndarray, weights: np.ndarray, look: Viewpoint) -> dict:
        """Return the mean image and the nearest single ones."""
        return pictures(*mean_and_first(self.source, rows, weights, singles=look.singles))


class Volumes(Images):
    """Slices of mean volumes."""

    kind = "volumes"

    @cached_property
    def mean(self) -> Callable[[tuple[int, ...], tuple[float, ...]], np.ndarray]:
        """Mean volume by rows and weights; the last two are kept for other slices."""

        def read(rows: tuple[int, ...], weights: tuple[float, ...]) -> np.ndarray:
            return mean_and_first(self.source, np.array(rows), np.array(weights), singles=0)[0]

        # Moving the slice reads no file. Two: one may be read while one is shown.
        return lru_cache(maxsize=2)(read)

    def picture(self, rows: np.ndarray, weights: np.ndarray, look: Viewpoint) -> np.ndarray:
        """Return a slice of the mean volume."""
        return self._cut(rows, weights, look)[0]

    def shown(self, rows: np.ndarray, weights: np.ndarray, look: Viewpoint) -> dict:
        """Return a slice of the mean volume, and its number."""
        cut, depth = self._cut(rows, weights, look)
        return {"image": data_url(cut), "slice": depth + 1}

    def _cut(self, rows: np.ndarray, weights: np.ndarray, look: Viewpoint):
        # Tuples, which a cache can look up.
        mean = self.mean(tuple(rows.tolist()), tuple(weights.tolist()))
        size = mean.shape[look.axis]
        depth = min(int(look.depth * size), size - 1)
        cut = mean.take(depth, axis=look.axis)
        # From the side, z points up.
        return cut if look.axis == 0 else cut[::-1], depth


@dataclass(frozen=True)
class FeaturePreview(Preview):
    """Means of the columns of the samples, on a fixed scale, and single samples."""

    samples: np.ndarray
    kind = "features"

    def picture(self, rows: np.ndarray, weights: np.ndarray, look: Viewpoint) -> np.ndarray:
        """Return the means of the columns."""
        return weights @ np.asarray(self.samples[rows, :MOST_FEATURES], dtype=float)

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
    limits = float(some.min()), float(some.max())
    count = min(50, max(1, n_samples // SAMPLES_PER_MEAN))
    return FeaturePreview(samples, limits=limits, count=count, why=why)


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
            first = np.empty((min(singles, len(rows)), *part.shape), dtype=np.float32)
        mean += part
        early = which < singles
        first[which[early]] = block[early]
    assert mean is not None
    if isinstance(images, View) and images.particles is not None:
        # The CTF of the images is divided out, if it is known.
        near = replace(images, particles=images.particles[rows])
        one_bin = np.zeros(len(rows), dtype=int)
        mean = correction(near, one_bin, weights=weights, n_bins=1)(mean[None])[0]
    return mean, first


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


# Particles of all views, as the sliders and the direction say: the molecule, of which all images
# together gave volumes; the mean of the images near the direction; and volumes of another program.


@dataclass(frozen=True)
class Directed(Images):
    """Images of particles seen from about one direction, in the frame of the direction."""

    cone: Cone
    rows: np.ndarray  # these particles among all samples of the run
    places: tuple[Place, ...]

    def shown(self, rows: np.ndarray, weights: np.ndarray, look: Viewpoint) -> dict:
        """Return the mean of some of the images, the nearest ones, and what they are of."""
        assert isinstance(self.source, View)
        cone = {
            "width": self.cone.width,
            "images": self.cone.n_particles,
            "corrected": self.source.weigh,
        }
        return {"cone": cone, **(super().shown(rows, weights, look) if len(rows) else {})}


@dataclass(frozen=True)
class MoleculePreview(Preview):
    """What is shown of particles of all views, from any direction."""

    run: Run
    map: ViewMap  # particles by direction, and how well each shows the factors
    source: ImageSource | None  # all images, in the order of the samples; None if not readable
    kind = "molecule"

    @property
    def sources(self) -> Sources:
        """What can be shown; the first is shown at first."""
        motions, volumes = self.what.motions, self.what.volumes
        found: Sources = {}
        if motions is not None:
            text = "Projection of volumes that all images together gave"
            found["molecule"] = text, motions.model.box
        if self.source is not None:
            text = "Mean of the images seen from about this direction"
            found["images"] = text, _width(self.source)
        if volumes is not None:
            found["volumes"] = f"Projection of the volumes of {volumes.folder}", volumes.width
        return found

    def described(self) -> dict:
        """Return what the page needs to show samples."""
        motions, view = self.what.motions, self.what.view(0)
        widths = {name: width for name, (_, width) in self.sources.items()}
        bars = {name: scale_bar(width) for name, width in widths.items() if width}
        # The direction in which the page starts, for each factor.
        best = [view or (0.0, 0.0)]
        if view is None and motions is not None:
            best = [motions.best_view(motion) for motion in range(len(motions.scales))]
        views = {
            "directions": np.round(self.map.directions, 4).tolist(),
            "counts": self.map.counts.tolist(),
            # JSON does not know nan.
            "deviations": [
                [round(value, 4) if np.isfinite(value) else None for value in each]
                for each in self.map.deviations.T.tolist()
            ],
            "unknown": UNKNOWN,
            "expected": motions is not None and motions.expected,
            "best": best,
        }
        return {
            **super().described(),
            "bar": bars.get(next(iter(widths))),
            "bars": bars,
            "views": views,
            "sources": {name: text for name, (text, _) in self.sources.items()},
        }

    def shown(self, rows: np.ndarray, weights: np.ndarray, look: Viewpoint) -> dict:
        """Return the molecule, or a given volume, at the places of a look."""
        motions, volumes = self.what.motions, self.what.volumes
        if look.source == "volumes" and volumes is not None:
            number = volumes.nearest(look.at[volumes.factor][0])
            (place,) = place_captions(volumes.place, volumes.place.displayed[[number]])
            described = {
                "name": volumes.names[number],
                "place": place,
                "factor": volumes.factor + 1,
                "of": len(volumes.names),
            }
            return {"image": data_url(self.picture(rows, weights, look)), "volume": described}
        return {} if motions is None else {"image": data_url(self.picture(rows, weights, look))}

    def picture(self, rows: np.ndarray, weights: np.ndarray, look: Viewpoint) -> np.ndarray:
        """Return the molecule, or a given volume, at the places of a look."""
        motions, volumes = self.what.motions, self.what.volumes
        if volumes is not None and (look.source == "volumes" or motions is None):
            number = volumes.nearest(look.at[volumes.factor][0])
            return volumes.image(number, look.view)
        # The volumes have no finer detail.
        return np.zeros(0) if motions is None else motions.image(look.at, look.view, size=192)

    @cached_property
    def directed(self) -> Callable[[tuple[float, float]], Directed]:
        """The images of a direction, by rot and tilt."""
        # The last few are kept, so that moving a slider searches no images.
        return lru_cache(maxsize=4)(self._directed)

    def _directed(self, view: tuple[float, float]) -> Directed:
        """Return the particles seen from about a view, rot and tilt in degrees."""
        assert self.source is not None
        everyone = self.run.particles
        cone = given_cone(known_directions(everyone), view, self.what.wanted.width)
        rows = np.flatnonzero(everyone.near_view(*view, width=cone.width, or_opposite=True))
        source = replace(self.source, file=self.source.file[rows], slice=self.source.slice[rows])
        particles, mirrored = everyone[rows].facing(view)
        weigh = can_weigh(source, particles)
        images = View(source, particles, frame=view, weigh=weigh, mirrored=mirrored)
        return Directed(images, cone, rows, tuple(place[rows] for place in self.run.places))


def _open_molecule(run: Run, what: Shown) -> MoleculePreview:
    """Return what the explorer shows of particles of all views, or of given volumes."""
    source, why = None, what.why
    if what.cones:
        try:
            # No image is read yet.
            source = run.choice.images(run.particles)
        except (ValueError, OSError) as error:
            why = one_line(error)
    if what.motions is not None:
        views = what.motions.model.views
    else:
        views = counted_views(run.particles if what.cones else None)
    # At least 20, for the noise, and else a tenth of those seen from a direction, to be near the
    # place.
    seen = min((cone.n_particles for cone in what.cones), default=0)
    count = min(max(int(0.1 * seen), 20), MOST_IMAGES)
    return MoleculePreview(run, views, source, count=count, why=why, what=what)
