"""Pictures of a run as HTML, each with a description in words and numbers."""

from collections.abc import Callable
from dataclasses import dataclass, field
from html import escape

import numpy as np

from manifactor._support.errors import one_line
from manifactor.cryoem.all_views.model import UNKNOWN, angles_of, visibility
from manifactor.cryoem.all_views.shown import Cone
from manifactor.cryoem.all_views.volumes import RunMotions
from manifactor.cryoem.averages.averaging import Averages, average, place_captions
from manifactor.cryoem.averages.given_volumes import GivenVolumes
from manifactor.cryoem.directions import sphere_cells
from manifactor.cryoem.movies import movie_bytes
from manifactor.cryoem.pictures import enlarged, png_bytes
from manifactor.estimators import ManifoldFactorizer
from manifactor.factoring.factors.factor import angle_matrix, owners
from manifactor.runs.run import Run
from manifactor.views import plots
from manifactor.views.markup import drawing, figure, paragraph, scale_bar, scrolled, tiles
from manifactor.views.plots.fits import length
from manifactor.views.plots.style import PlotSettings
from manifactor.views.words import deviation_in_words

# What the colours of a factor's samples show, and where the samples lie.
COLOURED_BY = {"circle": "angle, degrees", "interval": "place"}
PLACED = {
    "circle": "around the circle, confidence outwards",
    "interval": "from end to end, confidence upwards",
}


@dataclass(frozen=True)
class FigureSettings:
    """Settings of the pictures."""

    # Averages along a factor: as many as a page shows side by side. Of images in a cone fewer, so
    # that each is of so many images. Bins of few images are not matched.
    average_bins: int = 12
    fewest_bins: int = 4
    images_per_bin: int = 25
    matched_per_bin: int = 100

    # Pixels of the smaller side of an average at least: a page shows it as large.
    tile: int = 96

    # Samples that are averaged: the mean of more looks the same and takes longer.
    most_averaged: int = 20_000

    # Width and height in inches of a picture, and of one across two columns.
    panel: tuple[float, float] = (3.3, 2.9)
    wide: tuple[float, float] = (5.2, 2.7)

    plots: PlotSettings = field(default_factory=PlotSettings)


def drawn(name: str, size: tuple[float, float], draw: Callable) -> str:
    """Return the SVG of what `draw` draws on axes."""
    with plots.style(plots.PAGE):
        made = plots.new_figure(*size)
        draw(made.subplots())
        return plots.svg(made, name)


def embedding(
    fit: ManifoldFactorizer, f: int, *, settings: FigureSettings = FigureSettings()
) -> str:
    """Return places on a factor, coloured by the coordinate."""
    factor = fit.factors_[f]
    circle = factor.topology == "circle"
    # A surface has no single coordinate to colour by.
    name = COLOURED_BY.get(factor.topology, "first direction")

    def draw(ax) -> None:
        # The page has the title as a heading.
        plots.embedding(ax, fit, f, settings=settings.plots).set_title("")
        _add_scale(ax, name, degrees=circle)

    n_samples = len(factor.confidence)
    count = plots.drawn(n_samples, settings=settings.plots)
    described = f"factor {f + 1}, {factor.shape}, coloured by {name}"
    alt = f"Cloud of {count:,} samples on {described}."
    where = PLACED.get(factor.topology, "by the first two directions of the embedding")
    # Of an interval or a circle this is the picture of the confidence, too.
    sure = _confidence_sentence(fit, f) if factor.topology in PLACED else ""
    parts = [f"Places {where}.", sure, _thinned(n_samples, settings)]
    caption = " ".join(part for part in parts if part)
    picture = drawn(f"embedding{f + 1}", settings.panel, draw)
    return figure(drawing(picture, alt), escape(caption), kind="cloud")


def confidence(
    fit: ManifoldFactorizer, f: int, *, settings: FigureSettings = FigureSettings()
) -> str:
    """Return places on a factor, coloured by confidence."""

    def draw(ax) -> None:
        plots.confidence(ax, fit, f, settings=settings.plots).set_title("")
        _add_scale(ax, "confidence")

    text = _confidence_sentence(fit, f)
    alt = f"The samples on factor {f + 1} coloured by confidence from 0 to 1. {text}"
    picture = drawn(f"confidence{f + 1}", settings.panel, draw)
    return figure(drawing(picture, alt), escape(text), kind="cloud")


def is_doubtful(fit: ManifoldFactorizer, f: int) -> bool:
    """Return whether some places on a factor are in doubt."""
    # A single factor is all of the data: its places cannot be.
    return len(fit.factors_) > 1 and bool((fit.factors_[f].confidence < 1).any())


def _confidence_sentence(fit: ManifoldFactorizer, f: int) -> str:
    """Return how sure places on a factor are, "" if none is in doubt."""
    if not is_doubtful(fit, f):
        return ""
    # The typical and the worst samples; a mean would hide the latter.
    low, middle = np.quantile(fit.factors_[f].confidence, [0.05, 0.5])
    return (
        f"Confidence: half of the samples have {middle:.2f} or more, one in twenty "
        f"{low:.2f} or less."
    )


def _add_scale(ax, name: str, *, degrees: bool = False) -> None:
    """Draw the scale of a cloud's colours beside it."""
    cloud = ax.collections[-1]
    bar = ax.figure.colorbar(cloud, ax=ax, label=name, shrink=0.8, pad=0.02)
    # An image, like the cloud: a dark page filters the colours of both alike.
    bar.solids.set_rasterized(True)
    bar.outline.set_visible(False)
    if degrees:
        cloud.set_clim(0, 2 * np.pi)
        quarters = np.arange(0, 361, 90)
        bar.set_ticks(np.radians(quarters), labels=quarters)


def histogram(
    fit: ManifoldFactorizer, f: int, *, settings: FigureSettings = FigureSettings()
) -> str:
    """Return the histogram of a factor's coordinate."""
    factor = fit.factors_[f]
    limits = (0, length(factor))
    # The drawing in numbers, for readers who do not see it.
    counts = np.histogram(factor.coordinate, settings.plots.bins, limits)[0]
    text = (
        f"Along the factor: {counts.min():,} to {counts.max():,} samples in each of "
        f"{len(counts)} bins."
    )

    def draw(ax) -> None:
        plots.coordinate(ax, fit, f, settings=settings.plots)

    picture = drawn(f"histogram{f + 1}", settings.panel, draw)
    alt = f"Histogram of places on factor {f + 1}. {text}"
    return figure(drawing(picture, alt), escape(text))


def averages(
    run: Run, number: int, *, cone: Cone | None = None, settings: FigureSettings = FigureSettings()
) -> str:
    """Return mean images or volumes along a factor, counted from 1.

    A sentence where they cannot be read; "" for a run of numbers alone.
    """
    # Nothing to average: no sentence about what is missing is needed.
    if "particles" not in run.record and "components" not in run.record:
        return ""
    try:
        found = averages_along(run, number, cone=cone, settings=settings)
    except (ValueError, OSError) as error:
        problem = one_line(error)
        return paragraph(f"No averages along this factor: {problem}", kind="note")
    text = f"Means of {_averaged(run, found, cone, settings)}."
    box = tiles(
        [png_bytes(tile) for tile in enlarged(found.images, settings.tile)],
        found.captions[0],
        label=f"Strip of {len(found.means)} mean images. {text}",
        bar=scale_bar(found.width) if found.width else None,
    )
    return figure(box, escape(text), kind="strip")


def _averaged(run: Run, found: Averages, cone: Cone | None, settings: FigureSettings) -> str:
    """Return which images were averaged, in words."""
    kind = "volumes" if found.of_volumes else "images"
    total, most = len(run.rows), settings.most_averaged
    amount = f"{total:,} {kind}"
    if cone is not None:
        total, amount = cone.n_images, str(cone)
    if total > most:
        amount = f"{most:,} of {amount}, drawn at random"
    corrected = ", corrected for their CTF" if found.ctf_corrected else ""
    return f"{amount}{corrected}, along the factor: {found}"


def averages_along(
    run: Run, number: int, *, cone: Cone | None = None, settings: FigureSettings = FigureSettings()
) -> Averages:
    """Average images or volumes along a factor, counted from 1, as the page does."""
    n_bins = settings.average_bins
    if cone is not None:
        run = run.seen_from(cone.view, width=cone.width, or_opposite=True)
        affordable = len(run.rows) // settings.images_per_bin
        n_bins = int(np.clip(affordable, settings.fewest_bins, n_bins))
    # Few images have no matches; of one view, `average` says what it could match.
    many = cone is None or len(run.rows) >= settings.matched_per_bin * n_bins
    return average(
        run,
        [number],
        n_bins=n_bins,
        # With one factor there is nothing to hold still.
        matched=many and len(run.places) > 1,
        most=settings.most_averaged,
    )


def joint(
    fit: ManifoldFactorizer, one: int, other: int, *, settings: FigureSettings = FigureSettings()
) -> str:
    """Return the joint histogram of two factors of one dimension."""
    leakage = fit.evidence_.leakage
    # The worse direction; 0 where neither was measured.
    told = np.nanmax([leakage[one, other], leakage[other, one], 0.0])
    text = f"Factors {one + 1} and {other + 1}: a place on one predicts {told:.0%} of the other."

    def draw(ax) -> None:
        plots.joint(ax, fit, one, other, settings=settings.plots)

    picture = drawn(f"joint{one + 1}-{other + 1}", settings.panel, draw)
    alt = f"Joint histogram of {len(fit.spectrum_.weights):,} samples. {text}"
    return figure(drawing(picture, alt), escape(text), kind="turned")


def spectrum(fit: ManifoldFactorizer, *, settings: FigureSettings = FigureSettings()) -> str:
    """Return the eigenvalues by factor."""
    # Without the constant function.
    values = fit.spectrum_.eigenvalues[1:]
    owner = owners(fit.spectrum_, fit.factors_)[1:]
    # Products and mixtures have the owner -1.
    counts = np.bincount(owner[owner >= 0], minlength=len(fit.factors_))
    own = [f"{count} of factor {f}" for f, count in enumerate(counts, start=1)]
    text = (
        f"{len(values)} eigenfunctions of the data, with eigenvalues from "
        f"{values[0]:.3g} to {values[-1]:.3g}. Filled are those of one factor: "
        f"{', '.join(own)}. A factor may have more eigenfunctions of its own, which "
        "are mixed here."
    )
    picture = drawn("spectrum", settings.wide, lambda ax: plots.spectrum(ax, fit))
    box = scrolled(drawing(picture, f"Eigenvalues by factor. {text}"), "Spectrum")
    return figure(box, escape(text), kind="broad")


def angles(fit: ManifoldFactorizer, *, settings: FigureSettings = FigureSettings()) -> str:
    """Return the angles between gradients of the factors' functions.

    "" where these functions are not of the data's own spectrum.
    """
    values, sizes = angle_matrix(fit.spectrum_, fit.factors_)
    if not sizes:
        return ""
    text = (
        "Squared cosines between the gradients of the factors' lowest eigenfunctions, from 0 to 1"
    )
    if len(sizes) > 1:
        owner = np.repeat(np.arange(len(sizes)), sizes)
        # The cells that a product leaves empty.
        between = values[owner[:, None] != owner]
        text += f": at most {between.max():.2f} between different factors"
    picture = drawn("angles", settings.panel, lambda ax: plots.angles(ax, fit))
    alt = f"Matrix of angles. {text}."
    return figure(drawing(picture, alt), escape(f"{text}."), kind="turned")


def bandwidth(fit: ManifoldFactorizer, *, settings: FigureSettings = FigureSettings()) -> str:
    """Return the curve that bandwidth and dimension are read from."""
    curve = fit.bandwidth_curve_
    # Where the bandwidth suits the data best; it may be raised for sparse regions.
    steepest = int(np.argmax(curve.slopes))
    text = (
        f"Steepest at bandwidth {curve.candidates[steepest]:.3g}, with "
        f"{2 * curve.slopes[steepest]:.2f} dimensions before the correction for "
        f"finitely many neighbours; {curve.value:.3g} is used."
    )
    picture = drawn("bandwidth", settings.panel, lambda ax: plots.bandwidth(ax, fit))
    alt = f"Curve of the kernel sum's slope. {text}"
    return figure(drawing(picture, alt), escape(text))


def _thinned(n_samples: int, settings: FigureSettings) -> str:
    """Return a sentence where not all samples are drawn, else ""."""
    count = plots.drawn(n_samples, settings=settings.plots)
    if count == n_samples:
        return ""
    return f"Drawn: {count:,} of {n_samples:,} fitted samples."


# Pictures of a run of all views: maps of the sphere, and the molecule as it moves.


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
    share = visibility(views, motion).blind_particles
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
