"""Pictures of a run of all views: maps of the sphere, and the molecule as it moves."""

from dataclasses import dataclass, field
from html import escape

import numpy as np

from manifactor.cryoem.directions import sphere_cells
from manifactor.cryoem.movies import movie_bytes
from manifactor.cryoem.pictures import enlarged, png_bytes
from manifactor.runs.averaging import place_captions
from manifactor.runs.given_volumes import GivenVolumes
from manifactor.runs.motions import UNKNOWN, RunMotions, angles_of
from manifactor.runs.run import Run
from manifactor.runs.visibility import VisibilitySettings, visibility
from manifactor.views import plots
from manifactor.views.figures import drawn
from manifactor.views.markup import drawing, figure, scale_bar, tiles
from manifactor.views.plots.appearance import PlotSettings
from manifactor.views.words import deviation_in_words


@dataclass(frozen=True)
class MotionFigureSettings:
    """Settings of the pictures of motions."""

    # Images along a motion, of a movie along it, projections of a series of volumes, and their
    # pixels: the model has no finer detail.
    images: int = 7
    frames: int = 24
    most_volumes: int = 12
    pixels: int = 160

    # Width and height of a map in inches.
    map: tuple[float, float] = (4.0, 2.2)

    # And of a cloud of particles.
    panel: tuple[float, float] = (3.3, 2.9)
    plots: PlotSettings = field(default_factory=PlotSettings)

    # Bands of the map: its cells are so much smaller than those of the views that none of these is
    # missed.
    bands: int = 48

    visibility: VisibilitySettings = field(default_factory=VisibilitySettings)


def particle_map(
    motions: RunMotions, *, settings: MotionFigureSettings = MotionFigureSettings()
) -> str:
    """Return the number of particles in each direction."""
    views = motions.model.views
    counts = views.counts
    fullest = angles_of(views.directions[[counts.argmax()]])[0]
    text = (
        f"{counts.sum():,} particles by direction: {counts.min():,} to "
        f"{counts.max():,} in each of {len(counts)} cells of half the sphere, most "
        f"near {_view(fullest)}. Opposite directions, whose images are mirrored, count "
        "as one."
    )
    label = "particles in a cell"
    return _map("particles", motions, counts, label, text, settings=settings)


def deviations(
    run: Run, motion: int, *, settings: MotionFigureSettings = MotionFigureSettings()
) -> str:
    """Return the deviations of all particles on a motion, counted from 0."""
    place = run.places[motion]
    assert place.displayed_deviation is not None
    middle, high = (
        deviation_in_words(value, place.topology)
        for value in np.quantile(place.displayed_deviation, [0.5, 0.95])
    )
    count = plots.drawn(len(place), settings=settings.plots)
    thinned = "" if count == len(place) else f" Drawn: {count:,} of them."
    text = (
        f"Places of all {len(place):,} particles and their deviations: {middle} or "
        f"less for half of them, {high} or more for one in twenty.{thinned}"
    )

    def draw(ax) -> None:
        plots.deviation(ax, place, settings=settings.plots)

    picture = drawn(f"deviation{motion + 1}", settings.panel, draw)
    box = drawing(picture, f"Cloud of places on factor {motion + 1}. {text}")
    return figure(box, escape(text), kind="cloud")


def deviation_map(
    motions: RunMotions, motion: int, *, settings: MotionFigureSettings = MotionFigureSettings()
) -> str:
    """Return how well each direction shows a motion, counted from 0."""
    return _map(
        f"seen{motion + 1}",
        motions,
        motions.model.views.deviations[:, motion],
        "deviation",
        blind_sentence(motions, motion, settings=settings),
        settings=settings,
    )


def blind_sentence(
    motions: RunMotions, motion: int, *, settings: MotionFigureSettings = MotionFigureSettings()
) -> str:
    """Return which directions are blind to a motion, counted from 0."""
    views = motions.model.views
    deviations = np.where(views.counts > 0, views.deviations[:, motion], 0.0)
    worst = angles_of(views.directions[[deviations.argmax()]])[0]
    best = motions.best_view(motion)
    share = visibility(views, motion, settings=settings.visibility).blind_particles
    what = (
        "Deviation expected of a place that a single image tells, by direction"
        if motions.expected
        else "Deviation of places by direction"
    )
    known = (
        f"{what}, as a share of the motion: {UNKNOWN:.2f} where images show nothing of "
        f"it. It is seen best from {_view(best)}."
    )
    if not share:
        return (
            f"{known} No direction is blind to it: the deviation is at most "
            f"{deviations.max():.2g}, from {_view(worst)}."
        )
    tells = "show nothing of it" if motions.expected else "have no sure place"
    return (
        f"{known} Directions near {_view(worst)} are blind to it (deviation up to "
        f"{deviations.max():.2g}): {share:.0%} of the particles {tells}."
    )


def _view(view: tuple[float, float]) -> str:
    rot, tilt = view
    return f"rot {rot:.0f}°, tilt {tilt:.0f}°"


def _map(
    name: str,
    motions: RunMotions,
    values: np.ndarray,
    label: str,
    text: str,
    *,
    settings: MotionFigureSettings,
) -> str:
    """Return a value of each direction on the map of the sphere."""
    cells = sphere_cells(settings.bands)
    # A view and the one from behind have one value.
    own = motions.model.views.cells.index(cells.centres)
    shown = np.nan_to_num(values[own].astype(float))

    def draw(ax) -> None:
        plots.sphere(ax, cells, shown, label=label)
        # An image of the cells is smaller than their outlines.
        ax.collections[0].set_rasterized(True)

    picture = drawing(drawn(name, settings.map, draw), f"Map of the sphere. {text}")
    return figure(picture, escape(text), kind="cloud sphere")


def images_along(
    motions: RunMotions,
    motion: int,
    *,
    view: tuple[float, float] | None = None,
    wanted: bool = False,
    settings: MotionFigureSettings = MotionFigureSettings(),
) -> str:
    """Return images of the molecule along a motion, counted from 0."""
    size = settings.pixels
    found = motions.along(motion, count=settings.images, size=size, view=view)
    others = ", the other motions in their middle" if len(motions.scales) > 1 else ""
    best = "" if wanted else ", which shows this motion best"
    text = (
        f"The molecule at {settings.images} places on factor {motion + 1}, seen from "
        f"{_view(found.view)}{best}{others}: projections of the volumes that all "
        "particles together gave, without CTF."
    )
    box = tiles(
        [png_bytes(tile) for tile in enlarged(found.images, settings.pixels)],
        place_captions(found.places, found.places.displayed),
        label=f"Strip of {settings.images} mean images. {text}",
        bar=scale_bar(motions.model.box),
    )
    return figure(box, escape(text), kind="strip")


def volumes_along(
    volumes: GivenVolumes,
    view: tuple[float, float] | None,
    *,
    settings: MotionFigureSettings = MotionFigureSettings(),
) -> str:
    """Return projections of given volumes in a direction; without one, along z."""
    shown = np.linspace(0, len(volumes.names) - 1, settings.most_volumes)
    numbers = np.unique(np.rint(shown).astype(int))
    seen = view or (0.0, 0.0)
    images = np.stack([volumes.image(number, seen) for number in numbers])
    names = [volumes.names[number] for number in numbers]
    text = (
        f"{len(numbers)} of {len(volumes.names)} volumes of {volumes.folder.name}, "
        f"{names[0]} to {names[-1]}, at their places on factor {volumes.factor + 1}, "
        f"projected from {_view(seen)}."
    )
    box = tiles(
        [png_bytes(tile) for tile in enlarged(images, settings.pixels)],
        place_captions(volumes.place, volumes.place.displayed[numbers]),
        label=f"Strip of {len(numbers)} projections. {text}",
        bar=scale_bar(volumes.width),
    )
    return figure(box, escape(text), kind="strip")


def movies(
    motions: RunMotions,
    motion: int,
    *,
    view: tuple[float, float] | None = None,
    settings: MotionFigureSettings = MotionFigureSettings(),
) -> dict[str, bytes]:
    """Return movies along a motion, by the ending of their files."""
    size = settings.pixels
    found = motions.along(motion, count=settings.frames, size=size, view=view)
    return movie_bytes(found.images, circular=found.places.topology == "circle")
