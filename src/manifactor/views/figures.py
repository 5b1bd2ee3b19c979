"""Pictures of a run for its page, each with a description in words and numbers."""

import math
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from manifactor._support.errors import one_line
from manifactor.cryoem.all_views.model import UNKNOWN, angles_of, visibility
from manifactor.cryoem.all_views.shown import GivenVolumes
from manifactor.cryoem.all_views.volumes import RunMotions
from manifactor.cryoem.averages import Averages, average, place_captions
from manifactor.cryoem.directions import Cone, sphere_cells
from manifactor.cryoem.pictures import enlarged, movie_bytes, png_bytes
from manifactor.estimators import ManifoldFactorizer
from manifactor.factoring.factor import angle_matrix, owners
from manifactor.runs.run import Run
from manifactor.views import plots
from manifactor.views.plots.fits import length
from manifactor.views.words import deviation_in_words

# What the colours of a factor's samples show, and where the samples lie.
COLOURED_BY = {"circle": "angle, degrees", "interval": "coordinate"}
PLACED = {
    "circle": "around the circle, confidence outwards",
    "interval": "from end to end, confidence upwards",
}


# Samples that are averaged: the mean of more looks the same and takes longer.
MOST_AVERAGED = 20_000

# Pixels of images of the molecule: the model has no finer detail.
PIXELS = 160

# Bands of the map of the sphere: its cells are so much smaller than those of the views that none of
# these is missed.
BANDS = 48


@dataclass(frozen=True)
class PageFigure:
    """A picture with its caption: a drawing, or tiles side by side."""

    caption: str
    alt: str  # what is seen, for those who do not see it
    svg: str = ""
    tiles: Sequence[tuple[str, str]] = ()  # .png files in base64, and their captions
    bar: dict[str, float] | None = None  # scale bar in the first tile
    kind: str = ""  # class of the HTML element
    scrolls: str = ""  # name of the box that scrolls where the page is narrow


def scale_bar(width: float) -> dict[str, float]:
    """Return the longest bar of 1, 2 or 5 times a power of ten, up to 40 % of a width in angstrom.

    >>> scale_bar(264.0)
    {'length': 100.0, 'share': 0.3787878787878788}
    """
    most = 0.4 * width
    power = 10.0 ** math.floor(math.log10(most))
    length = power * max(step for step in (1, 2, 5) if step * power <= most)
    return {"length": length, "share": length / width}


def drawn(name: str, size: tuple[float, float], draw: Callable) -> str:
    """Return the SVG of what `draw` draws on axes."""
    with plots.style(plots.PAGE):
        made = plots.new_figure(*size)
        draw(made.subplots())
        return plots.svg(made, name)


def _panel(
    name: str, draw: Callable, alt: str, caption: str, *, size=(3.3, 2.9), **options: Any
) -> PageFigure:
    """Return a drawing of that many inches, which is described by its caption, too."""
    return PageFigure(caption, f"{alt} {caption}", svg=drawn(name, size, draw), **options)


def _strip(
    images: np.ndarray,
    captions: Sequence[str],
    what: str,
    text: str,
    *,
    side: int,
    width: float | None,
) -> PageFigure:
    """Return images side by side, whose sides are not below `side`."""
    pngs = [b64encode(png_bytes(tile)).decode() for tile in enlarged(images, side)]
    return PageFigure(
        text,
        f"Strip of {len(images)} {what}. {text}",
        tiles=list(zip(pngs, captions, strict=True)),
        bar=scale_bar(width) if width else None,
        kind="strip",
    )


def embedding(fit: ManifoldFactorizer, f: int) -> PageFigure:
    """Return the samples on a factor, coloured by the coordinate."""
    factor = fit.factors_[f]
    circle = factor.topology == "circle"
    # A surface has no single coordinate to colour by.
    name = COLOURED_BY.get(factor.topology, "first direction")

    def draw(ax) -> None:
        # The page has the title as a heading.
        plots.embedding(ax, fit, f).set_title("")
        _add_scale(ax, name, degrees=circle)

    n_samples = len(factor.confidence)
    described = f"factor {f + 1}, {factor.shape}, coloured by {name}"
    alt = f"Cloud of {plots.drawn(n_samples):,} samples on {described}."
    where = PLACED.get(factor.topology, "by the first two directions of the embedding")
    # The picture of an interval or a circle shows the confidence, too.
    sure = _confidence_sentence(fit, f) if factor.topology in PLACED else ""
    parts = [f"Samples {where}.", sure, _thinned(n_samples)]
    caption = " ".join(part for part in parts if part)
    return PageFigure(caption, alt, svg=drawn(f"embedding{f + 1}", (3.3, 2.9), draw), kind="cloud")


def confidence(fit: ManifoldFactorizer, f: int) -> PageFigure:
    """Return the samples on a factor, coloured by confidence."""

    def draw(ax) -> None:
        plots.confidence(ax, fit, f).set_title("")
        _add_scale(ax, "confidence")

    alt = f"The samples on factor {f + 1} coloured by confidence from 0 to 1."
    return _panel(f"confidence{f + 1}", draw, alt, _confidence_sentence(fit, f), kind="cloud")


def is_doubtful(fit: ManifoldFactorizer, f: int) -> bool:
    """Return whether some coordinates on a factor are in doubt."""
    # A single factor is all of the data: its coordinates cannot be.
    return len(fit.factors_) > 1 and bool((fit.factors_[f].confidence < 1).any())


def _confidence_sentence(fit: ManifoldFactorizer, f: int) -> str:
    """Return how sure coordinates on a factor are, "" if none is in doubt."""
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


def histogram(fit: ManifoldFactorizer, f: int) -> PageFigure:
    """Return the histogram of a factor's coordinate."""
    factor = fit.factors_[f]
    # The drawing in numbers, for readers who do not see it.
    bins = plots.PlotSettings().bins
    counts = np.histogram(factor.coordinate, bins, (0, length(factor)))[0]
    text = (
        f"Along the factor: {counts.min():,} to {counts.max():,} samples in each of "
        f"{len(counts)} bins."
    )
    alt = f"Histogram of the coordinate on factor {f + 1}."
    return _panel(f"histogram{f + 1}", lambda ax: plots.coordinate(ax, fit, f), alt, text)


def averages(run: Run, number: int, *, cone: Cone | None = None) -> PageFigure | str | None:
    """Return mean images or volumes along a factor, counted from 1.

    A sentence where they cannot be read; None for a run of numbers alone.
    """
    # Nothing to average: no sentence about what is missing is needed.
    if "particles" not in run.record and "components" not in run.record:
        return None
    try:
        found = averages_along(run, number, cone=cone)
    except (ValueError, OSError) as error:
        return f"No averages along this factor: {one_line(error)}"
    text = f"Means of {_averaged(run, found, cone)}."
    captions = found.captions[0]
    return _strip(found.images, captions, "mean images", text, side=96, width=found.width)


def _averaged(run: Run, found: Averages, cone: Cone | None) -> str:
    """Return which images were averaged, in words."""
    kind = "volumes" if found.of_volumes else "images"
    total = len(run.rows)
    amount = f"{total:,} {kind}"
    if cone is not None:
        total, amount = cone.n_particles, str(cone)
    if total > MOST_AVERAGED:
        amount = f"{MOST_AVERAGED:,} of {amount}, drawn at random"
    corrected = ", corrected for their CTF" if found.ctf_corrected else ""
    return f"{amount}{corrected}, along the factor: {found}"


def averages_along(run: Run, number: int, *, cone: Cone | None = None) -> Averages:
    """Average images or volumes along a factor, counted from 1, as the page does."""
    # As many as a page shows side by side.
    n_bins = 12
    if cone is not None:
        run = run.seen_from(cone.view, width=cone.width, or_opposite=True)
        # Fewer bins, so that each has about 25 images.
        n_bins = int(np.clip(len(run.rows) // 25, 4, n_bins))
    # Few images have no matches; of one view, `average` says what it could match.
    many = cone is None or len(run.rows) >= 100 * n_bins
    return average(
        run,
        [number],
        n_bins=n_bins,
        # With one factor there is nothing to hold still.
        matched=many and len(run.places) > 1,
        most=MOST_AVERAGED,
    )


def joint(fit: ManifoldFactorizer, one: int, other: int) -> PageFigure:
    """Return the joint histogram of two factors of one dimension."""
    leakage = fit.evidence_.leakage
    # The worse direction; 0 where neither was measured.
    told = np.nanmax([leakage[one, other], leakage[other, one], 0.0])
    pair = f"Factors {one + 1} and {other + 1}"
    text = f"{pair}: the coordinate on one predicts {told:.0%} of the other."
    alt = f"Joint histogram of {len(fit.spectrum_.weights):,} samples."
    name = f"joint{one + 1}-{other + 1}"
    return _panel(name, lambda ax: plots.joint(ax, fit, one, other), alt, text, kind="turned")


def spectrum(fit: ManifoldFactorizer) -> PageFigure:
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
    return _panel(
        "spectrum",
        lambda ax: plots.spectrum(ax, fit),
        "Eigenvalues by factor.",
        text,
        size=(5.2, 2.7),
        kind="broad",
        scrolls="Spectrum",
    )


def angles(fit: ManifoldFactorizer) -> PageFigure | None:
    """Return the angles between gradients of the factors' functions.

    None where these functions are not of the data's own spectrum.
    """
    values, sizes = angle_matrix(fit.spectrum_, fit.factors_)
    if not sizes:
        return None
    text = (
        "Squared cosines between the gradients of the factors' lowest eigenfunctions, from 0 to 1"
    )
    if len(sizes) > 1:
        owner = np.repeat(np.arange(len(sizes)), sizes)
        # The cells that a product leaves empty.
        between = values[owner[:, None] != owner]
        text += f": at most {between.max():.2f} between different factors"
    return _panel(
        "angles", lambda ax: plots.angles(ax, fit), "Matrix of angles.", f"{text}.", kind="turned"
    )


def bandwidth(fit: ManifoldFactorizer) -> PageFigure:
    """Return the curve that bandwidth and dimension are read from."""
    curve = fit.bandwidth_curve_
    # Where the bandwidth suits the data best; it may be raised for sparse regions.
    steepest = int(np.argmax(curve.slopes))
    text = (
        f"Steepest at bandwidth {curve.candidates[steepest]:.3g}, with "
        f"{2 * curve.slopes[steepest]:.2f} dimensions before the correction for "
        f"finitely many neighbours; {curve.value:.3g} is used."
    )
    alt = "Curve of the kernel sum's slope."
    return _panel("bandwidth", lambda ax: plots.bandwidth(ax, fit), alt, text)


def _thinned(n_samples: int) -> str:
    """Return a sentence where not all samples are drawn, else ""."""
    count = plots.drawn(n_samples)
    return "" if count == n_samples else f"Drawn: {count:,} of {n_samples:,} fitted samples."


# Pictures of a run of all views: maps of the sphere, and the molecule as it moves.


def particle_map(motions: RunMotions) -> PageFigure:
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
    return _map("particles", motions, counts, "particles in a cell", text)


def deviations(run: Run, motion: int) -> PageFigure:
    """Return the deviations of all particles on a motion, counted from 0."""
    place = run.places[motion]
    assert place.displayed_deviation is not None
    middle, high = (
        deviation_in_words(value, place.topology)
        for value in np.quantile(place.displayed_deviation, [0.5, 0.95])
    )
    count = plots.drawn(len(place))
    thinned = "" if count == len(place) else f" Drawn: {count:,} of them."
    text = (
        f"Coordinates of all {len(place):,} particles and their deviations: {middle} or "
        f"less for half of them, {high} or more for one in twenty.{thinned}"
    )
    alt = f"Cloud of coordinates on factor {motion + 1}."
    name = f"deviation{motion + 1}"
    return _panel(name, lambda ax: plots.deviation(ax, place), alt, text, kind="cloud")


def deviation_map(motions: RunMotions, motion: int) -> PageFigure:
    """Return how well each direction shows a motion, counted from 0."""
    values = motions.model.views.deviations[:, motion]
    text = blind_sentence(motions, motion)
    return _map(f"seen{motion + 1}", motions, values, "deviation", text)


def blind_sentence(motions: RunMotions, motion: int) -> str:
    """Return which directions are blind to a motion, counted from 0."""
    views = motions.model.views
    deviations = np.where(views.counts > 0, views.deviations[:, motion], 0.0)
    worst = angles_of(views.directions[[deviations.argmax()]])[0]
    best = motions.best_view(motion)
    share = visibility(views, motion)["blind_particles"]
    what = (
        "Deviation expected of a coordinate that a single image tells, by direction"
        if motions.expected
        else "Deviation of coordinates by direction"
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
    tells = "show nothing of it" if motions.expected else "have no sure coordinate"
    return (
        f"{known} Directions near {_view(worst)} are blind to it (deviation up to "
        f"{deviations.max():.2g}): {share:.0%} of the particles {tells}."
    )


def _view(view: tuple[float, float]) -> str:
    rot, tilt = view
    return f"rot {rot:.0f}°, tilt {tilt:.0f}°"


def _map(name: str, motions: RunMotions, values: np.ndarray, label: str, text: str) -> PageFigure:
    """Return a value of each direction on the map of the sphere."""
    cells = sphere_cells(BANDS)
    # A view and the one from behind have one value.
    own = motions.model.views.cells.index(cells.centres)
    shown = np.nan_to_num(values[own].astype(float))

    def draw(ax) -> None:
        plots.sphere(ax, cells, shown, label=label)
        # An image of the cells is smaller than their outlines.
        ax.collections[0].set_rasterized(True)

    return _panel(name, draw, "Map of the sphere.", text, size=(4.0, 2.2), kind="cloud sphere")


def images_along(
    motions: RunMotions,
    motion: int,
    *,
    view: tuple[float, float] | None = None,
    wanted: bool = False,
) -> PageFigure:
    """Return images of the molecule along a motion, counted from 0."""
    found = motions.along(motion, count=7, size=PIXELS, view=view)
    others = ", the other motions in their middle" if len(motions.scales) > 1 else ""
    best = "" if wanted else ", which shows this motion best"
    text = (
        f"The molecule at {len(found.images)} coordinates on factor {motion + 1}, seen from "
        f"{_view(found.view)}{best}{others}: projections of the volumes that all "
        "particles together gave, without CTF."
    )
    captions = place_captions(found.places, found.places.displayed)
    width = motions.model.box
    return _strip(found.images, captions, "mean images", text, side=PIXELS, width=width)


def volumes_along(volumes: GivenVolumes, view: tuple[float, float] | None) -> PageFigure:
    """Return projections of given volumes in a direction; without one, along z."""
    # At most 12, as many as a page shows side by side.
    numbers = np.unique(np.rint(np.linspace(0, len(volumes.names) - 1, 12)).astype(int))
    seen = view or (0.0, 0.0)
    images = np.stack([volumes.image(number, seen) for number in numbers])
    names = [volumes.names[number] for number in numbers]
    text = (
        f"{len(numbers)} of {len(volumes.names)} volumes of {volumes.folder.name}, "
        f"{names[0]} to {names[-1]}, at their coordinates on factor {volumes.factor + 1}, "
        f"projected from {_view(seen)}."
    )
    captions = place_captions(volumes.place, volumes.place.displayed[numbers])
    return _strip(images, captions, "projections", text, side=PIXELS, width=volumes.width)


def movies(
    motions: RunMotions, motion: int, *, view: tuple[float, float] | None = None
) -> dict[str, bytes]:
    """Return movies along a motion, by the ending of their files."""
    found = motions.along(motion, count=24, size=PIXELS, view=view)
    return movie_bytes(found.images, circular=found.places.topology == "circle")
