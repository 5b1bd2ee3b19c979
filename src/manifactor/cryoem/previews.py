"""What the explorer shows of images, of volumes, and of particles of all views."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from manifactor._support.errors import extra, one_line
from manifactor.cryoem.all_views.model import UNKNOWN, ViewMap, counted_views
from manifactor.cryoem.all_views.volumes import Shown, given_cone
from manifactor.cryoem.averages import correction, place_captions
from manifactor.cryoem.directions import Cone, known_directions
from manifactor.cryoem.files.formats import ParticleChoice
from manifactor.cryoem.files.particles import Particles
from manifactor.cryoem.files.stacks import ImageSource
from manifactor.cryoem.one_view import View, can_weigh
from manifactor.runs.run import Run, require_as_many
from manifactor.views.explorer import previews
from manifactor.views.explorer.columns import Column
from manifactor.views.explorer.previews import (
    SAMPLES_PER_MEAN,
    Preview,
    Viewpoint,
    data_url,
    pictures,
)
from manifactor.views.figures import scale_bar

# A mean follows a slider only if it is read in a tenth of a second: so many images. A user may ask
# for more.
MEAN_IMAGES = 128


def open_preview(what: Shown) -> Preview | None:
    """Return a molecule or given volumes, else images or volumes of the samples, else a reason.

    None for samples that are numbers alone.
    """
    run, molecule = what.run, _open_molecule(what)
    if molecule.sources:
        return molecule
    # Where images of all views were to be shown, the reason why they are not is theirs.
    problem = molecule.why
    try:
        if not problem:
            return _pictures(run)
    except (ValueError, OSError) as error:
        problem = one_line(error)
    # Samples that were made of images or volumes have no numbers to show instead.
    if "components" in run.record or "all_views" in run.record:
        return Preview(why=f"Only the coordinates can be shown: {problem}")
    if "particles" not in run.record:
        return None
    return previews.open_preview(run, why=f"No images are averaged: {problem}")


def _pictures(run: Run) -> "Images":
    images = run.images()
    source = images.source
    require_as_many(run, len(source), "images")
    # Missing packages are reported here, not with the first request.
    extra("PIL.Image")
    in_colour = source.shape[2:] == (3,)
    make = Images if len(source.shape) == 2 or in_colour else Volumes
    # At most 64 MiB in single precision, for the same reason as MEAN_IMAGES.
    readable = 2**26 // (4 * int(np.prod(source.shape)))
    count = max(1, min(readable, MEAN_IMAGES, len(source) // SAMPLES_PER_MEAN))
    return make(images, count=count, width=_width(source))


def _width(source: ImageSource) -> float | None:
    """Return the width of a square picture in angstrom; None if it is unknown."""
    known = len(set(source.shape)) == 1 and source.stated_size is not None
    return source.pixel_size * source.shape[0] if known else None


@dataclass(frozen=True)
class Images(Preview):
    """Mean images, and single ones as thumbnails."""

    source: View
    kind = "images"

    def picture(self, rows: np.ndarray, weights: np.ndarray, look: Viewpoint) -> np.ndarray:
        """Return the mean image."""
        return mean_and_first(self.source, rows, weights, singles=0)[0]

    def show(self, rows: np.ndarray, weights: np.ndarray, look: Viewpoint) -> dict:
        """Return the mean image and the nearest single ones."""
        return pictures(*mean_and_first(self.source, rows, weights, singles=look.singles))


class Volumes(Images):
    """Slices of mean volumes."""

    kind = "volumes"

    def picture(self, rows: np.ndarray, weights: np.ndarray, look: Viewpoint) -> np.ndarray:
        """Return a slice of the mean volume."""
        return self._cut(rows, weights, look)[0]

    def show(self, rows: np.ndarray, weights: np.ndarray, look: Viewpoint) -> dict:
        """Return a slice of the mean volume, and its number."""
        cut, depth = self._cut(rows, weights, look)
        return {"image": data_url(cut), "slice": depth + 1}

    def _cut(self, rows: np.ndarray, weights: np.ndarray, look: Viewpoint):
        # Tuples, which a cache can look up.
        mean = self._mean(tuple(rows.tolist()), tuple(weights.tolist()))
        size = mean.shape[look.axis]
        depth = min(int(look.depth * size), size - 1)
        cut = mean.take(depth, axis=look.axis)
        # From the side, z points up.
        return cut if look.axis == 0 else cut[::-1], depth

    @cached_property
    def _mean(self) -> Callable[..., np.ndarray]:
        def mean(rows, weights):
            return super(Volumes, self).picture(np.array(rows), np.array(weights), Viewpoint())

        # Moving the slice reads no file. Two: one may be read while one is shown.
        return lru_cache(maxsize=2)(mean)


def mean_and_first(
    images: View, rows: np.ndarray, weights: np.ndarray, *, singles: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the weighted mean of images or volumes, and the first ones in the order of `rows`."""
    order, shape = np.argsort(rows, kind="stable"), images.source.shape
    mean = np.zeros(shape, np.float32)
    first = np.empty((min(singles, len(rows)), *shape), np.float32)
    for found, block in images.blocks(rows):
        # Blocks come in the order of the file.
        which = order[np.searchsorted(rows[order], found)]
        mean += np.tensordot(weights[which].astype(np.float32), block, axes=1)
        early = which < singles
        first[which[early]] = block[early]
    if images.particles is not None:
        # The CTF of the images is divided out, if it is known.
        near = replace(images, particles=images.particles[rows])
        one_bin = np.zeros(len(rows), dtype=int)
        mean = correction(near, one_bin, weights=weights, n_bins=1)(mean[None])[0]
    return mean, first


@dataclass(frozen=True)
class Directed(Images):
    """Images of particles seen from about one direction, in the frame of the direction."""

    cone: Cone

    def show(self, rows: np.ndarray, weights: np.ndarray, look: Viewpoint) -> dict:
        """Return the mean of some of the images, the nearest ones, and what they are of."""
        cone = {"width": self.cone.width, "images": self.cone.n_particles}
        cone["corrected"] = self.source.weigh
        return {"cone": cone, **(super().show(rows, weights, look) if len(rows) else {})}


@dataclass(frozen=True)
class MoleculePreview(Preview):
    """Particles of all views, as sliders and direction say.

    The molecule, of which all images together gave volumes; the mean of the images near the
    direction; and volumes of another program.
    """

    what: Shown
    map: ViewMap  # particles by direction, and how well each shows the factors
    source: ImageSource | None  # all images, in the order of the samples; None if not readable
    widths: dict[str, float | None]  # of the pictures of each source, in angstrom
    kind = "molecule"
    of_samples = False

    def about(self) -> dict:
        """Return what the page needs to show samples."""
        motions, view = self.what.motions, self.what.view(0)
        bars = {name: scale_bar(width) for name, width in self.widths.items() if width}
        # The direction in which the page starts, for each factor.
        best = [view or (0.0, 0.0)]
        if view is None and motions is not None:
            best = [motions.best_view(motion) for motion in range(len(motions.scales))]
        # JSON does not know nan.
        deviations = [
            [round(value, 4) if np.isfinite(value) else None for value in each]
            for each in self.map.deviations.T.tolist()
        ]
        views = {
            "directions": np.round(self.map.cells.centres, 4).tolist(),
            "counts": self.map.counts.tolist(),
            "deviations": deviations,
            "unknown": UNKNOWN,
            "expected": motions is not None and motions.expected,
            "best": best,
        }
        bar = bars.get(next(iter(self.sources)))
        return {
            **super().about(),
            "bar": bar,
            "bars": bars,
            "views": views,
            "sources": self.sources,
        }

    def show(self, rows: np.ndarray, weights: np.ndarray, look: Viewpoint) -> dict:
        """Return the molecule, or a given volume, at the places of a look."""
        volumes, picture = self.what.asked.volumes, self.picture(rows, weights, look)
        if volumes is None or look.source != "volumes":
            return {"image": data_url(picture)} if self.what.motions else {}
        number = volumes.nearest(look.at[volumes.factor][0])
        (place,) = place_captions(volumes.place, volumes.place.displayed[[number]])
        name, count = volumes.names[number], len(volumes.names)
        about = {"name": name, "place": place, "factor": volumes.factor + 1, "of": count}
        return {"image": data_url(picture), "volume": about}

    def picture(self, rows: np.ndarray, weights: np.ndarray, look: Viewpoint) -> np.ndarray:
        """Return the picture of the molecule, or of a given volume; empty for neither."""
        motions, volumes = self.what.motions, self.what.asked.volumes
        if volumes is not None and (look.source == "volumes" or motions is None):
            number = volumes.nearest(look.at[volumes.factor][0])
            return volumes.image(number, look.view)
        # The volumes have no finer detail.
        return np.zeros(0) if motions is None else motions.image(look.at, look.view, size=192)

    def facing(self, look: Viewpoint) -> Preview:
        """Return what shows the images of a direction, or places."""
        return self.directed(look.view) if look.source == "images" else self

    def of_one(self) -> Preview:
        """Return what shows a single image."""
        return self if self.source is None else Images(View(self.source))

    @cached_property
    def directed(self) -> Callable[[tuple[float, float]], Directed]:
        """The images of a direction, by rot and tilt in degrees."""
        # The last few are kept, so that moving a slider searches no images.
        return lru_cache(maxsize=4)(self._directed)

    def _directed(self, view: tuple[float, float]) -> Directed:
        assert self.source is not None
        everyone = self.what.run.particles
        cone = given_cone(known_directions(everyone), view, self.what.asked.width)
        rows = np.flatnonzero(everyone.near_view(*view, width=cone.width, or_opposite=True))
        particles, mirrored = everyone[rows].facing(view)
        source = self.source[rows]
        weigh = can_weigh(source, particles)
        images = View(source, particles, frame=view, weigh=weigh, mirrored=mirrored)
        return Directed(images, cone, rows=rows, places=self.what.run[rows].places)


def _open_molecule(what: Shown) -> MoleculePreview:
    """Return what the explorer shows of particles of all views, or of given volumes."""
    source, why, run = None, what.why, what.run
    if what.cones:
        try:
            # No image is read yet.
            source = ParticleChoice.of_run(run.record).images(run.particles)
        except (ValueError, OSError) as error:
            why = one_line(error)
    # What a user can choose from, with the width of its images; the first is shown at first.
    sources: dict[str, str] = {}
    widths: dict[str, float | None] = {}
    if what.motions is not None:
        views = what.motions.model.views
        sources["molecule"] = "Projection of volumes that all images together gave"
        widths["molecule"] = what.motions.model.box
    else:
        views = counted_views(run.particles if what.cones else None)
    if source is not None:
        sources["images"] = "Mean of the images seen from about this direction"
        widths["images"] = _width(source)
    if (volumes := what.asked.volumes) is not None:
        sources["volumes"] = f"Projection of the volumes of {volumes.folder}"
        widths["volumes"] = volumes.width
    # At least 20, for the noise, and else a tenth of those seen from a direction, to be near the
    # place.
    seen = min((cone.n_particles for cone in what.cones), default=0)
    count = min(max(int(0.1 * seen), 20), MEAN_IMAGES)
    return MoleculePreview(what, views, source, widths, sources=sources, count=count, why=why)


def particle_columns(particles: Particles) -> dict[str, Column]:
    """Return properties of particles that are not the same for all."""
    known: dict[str, np.ndarray] = {}
    poses = {("rot", "tilt", "psi"): particles.angles, ("shift x", "shift y"): particles.shift}
    for names, pose in poses.items():
        if pose is not None:
            known |= dict(zip(names, pose.T, strict=True))
    known |= {name.replace("_", " "): values for name, values in particles.microscope.items()}
    return {
        f"particle {name}": Column(name, values.astype(float), "particles")
        for name, values in known.items()
        # A column of one value tells nothing apart.
        if len(values) and (values != values[0]).any()
    }
