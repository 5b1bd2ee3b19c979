"""Images of particles seen from about one direction: searched and averaged."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from manifactor.cryoem.directions import known_directions
from manifactor.cryoem.stacks import ImageSource
from manifactor.cryoem.views import View, can_weigh
from manifactor.runs.cones import Cone, given_cone
from manifactor.runs.places import Place
from manifactor.runs.run import Run
from manifactor.views.explorer.neighbourhoods import Strata, held, matched, point_of, reach
from manifactor.views.explorer.previews import PreviewSettings, mean_and_first, pictures


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
            "images": self.cone.n_images,
            "corrected": self.images.weigh,
        }

    def near(self, at: Sequence[Sequence[float]], *, factor: int, mode: str, count: int) -> "Near":
        """Return about `count` of the particles near a place, as `Scene.near` does."""
        count = min(count, len(self.rows))
        matches = mode == "matched"
        point = point_of(self.places, at, factor if matches else None)
        strata = self._strata(factor if matches else None, count)
        found, weights = strata.nearest(point, count)
        measured = [factor] if matches else range(len(at))
        reached = {f: reach(self.places[f], at[f], found) for f in measured}
        return Near(self, found, weights, reached)

    def _strata(self, factor: int | None, count: int) -> Strata:
        # A cone has few samples: built faster than an image is read.
        if factor is None:
            return held(self.places)
        return matched(self.places, factor, count=count)


@dataclass(frozen=True)
class Near:
    """Particles of one direction near a place."""

    directed: Directed
    found: np.ndarray  # among those of the direction, the nearest first
    weights: np.ndarray  # they sum to 1
    reach: dict[int, float]  # by factor, the distance within which nine in ten lie

    @property
    def rows(self) -> np.ndarray:
        """These particles among all samples of the run."""
        return self.directed.rows[self.found]

    def pictures(self, singles: int, *, settings: PreviewSettings = PreviewSettings()) -> dict:
        """Return the mean image and the nearest single ones, ready for JSON."""
        mean, first = mean_and_first(
            self.directed.images, self.found, self.weights, singles=singles
        )
        return pictures(mean, first, settings=settings)


@dataclass(frozen=True)
class Directions:
    """The images of a run of all views, by direction."""

    run: Run
    source: ImageSource  # all images, in the order of the samples
    vectors: np.ndarray  # (n, 3): the directions from which they are seen
    width: float | None = None  # degrees around a direction; None for enough images

    def from_view(self, view: tuple[float, float]) -> Directed:
        """Return the particles seen from about a view, rot and tilt in degrees."""
        cone = given_cone(self.vectors, view, self.width)
        everyone = self.run.particles
        near = everyone.near_view(*view, width=cone.width, or_opposite=True)
        rows = np.flatnonzero(near)
        source = replace(self.source, file=self.source.file[rows], slice=self.source.slice[rows])
        particles, mirrored = everyone[rows].facing(view)
        images = View(
            source, particles, frame=view, weigh=can_weigh(source, particles), mirrored=mirrored
        )
        places = tuple(place[rows] for place in self.run.places)
        return Directed(cone, rows, images, places)


def open_directions(run: Run, *, width: float | None = None) -> Directions:
    """Return the images of a run by direction; no image is read yet."""
    particles = run.particles
    source = run.choice.images(particles)
    return Directions(run, source, known_directions(particles), width)
