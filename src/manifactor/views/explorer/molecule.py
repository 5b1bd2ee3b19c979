"""Particles of all views, as the sliders and the direction say.

Three things can be shown: the molecule, of which all images together gave volumes; the mean of the
images near the direction; and volumes of another program.
"""

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from manifactor._support.errors import one_line
from manifactor.cryoem.all_views.model import UNKNOWN, ViewMap, counted_views
from manifactor.cryoem.all_views.shown import Shown, given_cone
from manifactor.cryoem.averages import place_captions
from manifactor.cryoem.directions import Cone, known_directions
from manifactor.cryoem.files.stacks import ImageSource
from manifactor.cryoem.one_view import View, can_weigh
from manifactor.runs.places import Place
from manifactor.runs.run import Run
from manifactor.views.explorer.previews import (
    MOST_IMAGES,
    Preview,
    Viewpoint,
    data_url,
    open_preview,
)
from manifactor.views.figures import scale_bar


@dataclass(frozen=True)
class Directed:
    """Particles seen from about one direction."""

    cone: Cone
    rows: np.ndarray  # these particles among all samples of the run
    images: View  # their images, in the frame of the direction
    places: tuple[Place, ...]

    @property
    def described(self) -> dict:
        """What the page says of the direction."""
        return {
            "width": self.cone.width,
            "images": self.cone.n_particles,
            "corrected": self.images.weigh,
        }


@dataclass(frozen=True)
class MoleculePreview:
    """What is shown of particles of all views, from any direction."""

    run: Run
    what: Shown
    map: ViewMap  # particles by direction, and how well each shows the factors
    source: ImageSource | None  # all images, in the order of the samples; None if not readable
    vectors: np.ndarray  # (n, 3): the directions from which they are seen
    why: str = ""  # why something is not shown
    kind: str = "molecule"

    @property
    def sources(self) -> dict[str, str]:
        """What can be shown, and what it is; the first is shown at first."""
        volumes = self.what.volumes
        names = {}
        if self.what.motions is not None:
            names["molecule"] = "Projection of volumes that all images together gave"
        if self.source is not None:
            names["images"] = "Mean of the images seen from about this direction"
        if volumes is not None:
            names["volumes"] = f"Projection of the volumes of {volumes.folder}"
        return names

    @property
    def count(self) -> int:
        """Images of a mean unless the user sets another number."""
        seen = min((cone.n_particles for cone in self.what.cones), default=0)
        # At least 20, for the noise, and else a tenth of those seen from a direction, to be near
        # the place.
        return min(max(int(0.1 * seen), 20), MOST_IMAGES)

    @property
    def width(self) -> float | None:
        """Width of an image in angstrom; None if it is unknown."""
        return self._widths.get(next(iter(self.sources), ""))

    @property
    def _widths(self) -> dict[str, float]:
        widths = {}
        if self.what.motions is not None:
            widths["molecule"] = self.what.motions.model.box
        if self.source is not None and self.source.pixel_size_stated:
            widths["images"] = self.source.pixel_size * self.source.shape[0]
        if self.what.volumes is not None:
            widths["volumes"] = self.what.volumes.width
        return widths

    @property
    def bars(self) -> dict[str, dict]:
        """The scale bar of each kind of image."""
        return {name: scale_bar(width) for name, width in self._widths.items()}

    @property
    def views(self) -> dict:
        """How many particles each direction has, and how well it shows the factors."""
        return {
            "directions": np.round(self.map.directions, 4).tolist(),
            "counts": self.map.counts.tolist(),
            "deviations": [_numbers(each) for each in self.map.deviations.T],
            "unknown": UNKNOWN,
            "expected": self.what.motions is not None and self.what.motions.expected,
            "best": self._best,
        }

    @property
    def _best(self) -> list[tuple[float, float]]:
        """The direction in which the page starts, for each factor."""
        if self.what.view(0) is None and self.what.motions is not None:
            motions = self.what.motions
            return [motions.best_view(motion) for motion in range(len(motions.scales))]
        return [self.what.view(0) or (0.0, 0.0)]

    def shown(self, rows: np.ndarray, weights: np.ndarray, look: Viewpoint) -> dict:
        """Return the molecule, or a given volume, at the places of a look."""
        if look.source == "volumes":
            return self._volume(look)
        if self.what.motions is None:
            return {}
        # The volumes have no finer detail.
        image = self.what.motions.image(look.at, look.view, size=192)
        return {"image": data_url(image)}

    def _volume(self, look: Viewpoint) -> dict:
        volumes = self.what.volumes
        assert volumes is not None
        number = volumes.nearest(look.at[volumes.factor][0])
        image = volumes.image(number, look.view)
        (place,) = place_captions(volumes.place, volumes.place.displayed[[number]])
        return {
            "image": data_url(image),
            "volume": {
                "name": volumes.names[number],
                "place": place,
                "factor": volumes.factor + 1,
                "of": len(volumes.names),
            },
        }

    @cached_property
    def directed(self):
        """The images of a direction, by rot and tilt."""
        # The last few are kept, so that moving a slider searches no images.
        return lru_cache(maxsize=4)(self._directed)

    def _directed(self, view: tuple[float, float]) -> Directed:
        """Return the particles seen from about a view, rot and tilt in degrees."""
        assert self.source is not None
        everyone = self.run.particles
        cone = given_cone(self.vectors, view, self.what.wanted.width)
        rows = np.flatnonzero(everyone.near_view(*view, width=cone.width, or_opposite=True))
        source = replace(self.source, file=self.source.file[rows], slice=self.source.slice[rows])
        particles, mirrored = everyone[rows].facing(view)
        weigh = can_weigh(source, particles)
        images = View(source, particles, frame=view, weigh=weigh, mirrored=mirrored)
        return Directed(cone, rows, images, tuple(place[rows] for place in self.run.places))


def preview_of(run: Run, what: Shown) -> Preview:
    """Return what the explorer shows of a run's samples.

    Of particles of all views, and of given volumes, it is a `MoleculePreview`.
    """
    molecule = open_molecule(run, what)
    if molecule.sources:
        return molecule
    # Where images of all views were to be shown, the reason why they are not is theirs.
    return open_preview(run, problem=molecule.why)


def open_molecule(run: Run, what: Shown) -> MoleculePreview:
    """Return what the explorer shows of particles of all views, or of given volumes."""
    source, vectors, why = None, np.empty((0, 3)), what.why
    if what.cones:
        try:
            # No image is read yet.
            source, vectors = run.choice.images(run.particles), known_directions(run.particles)
        except (ValueError, OSError) as error:
            source, why = None, one_line(error)
    if what.motions is not None:
        views = what.motions.model.views
    else:
        views = counted_views(run.particles if what.cones else None)
    return MoleculePreview(run, what, views, source, vectors, why)


def _numbers(values: np.ndarray) -> list[float | None]:
    """Return values for JSON, which does not know nan."""
    known = np.isfinite(values)
    return [
        round(float(value), 4) if is_known else None
        for value, is_known in zip(values, known, strict=True)
    ]
