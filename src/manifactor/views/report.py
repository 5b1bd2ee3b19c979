"""The report of a run: one self-contained page of HTML, made from `templates/report.html`.

It has the verdict, the factors, the evidence, diagnostics, choices, and the command that makes the
run again. Every picture has a description in words and numbers.
"""

import math
from base64 import b64encode
from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from manifactor._support.errors import extra, one_line
from manifactor._support.files import held, write_bytes
from manifactor.cryoem.all_views.model import UNKNOWN, angles_of, visibility
from manifactor.cryoem.all_views.shown import GivenVolumes, Shown
from manifactor.cryoem.all_views.volumes import RunMotions, open_motions
from manifactor.cryoem.averages import Averages, average, place_captions
from manifactor.cryoem.directions import Cone, sphere_cells
from manifactor.estimators import ManifoldFactorizer
from manifactor.factors.factor import angle_matrix, owners
from manifactor.factors.loadings import Loadings
from manifactor.runs.folder import factor_names, read_run
from manifactor.runs.landscape import landscape
from manifactor.runs.places import torus_angles
from manifactor.runs.run import Run, open_run
from manifactor.views import plots, words
from manifactor.views.pictures import constant_images, enlarged, movie_bytes, png_bytes

REPORT_NAME = "report.html"

# A picture of the page: caption, description, and a drawing or tiles side by side.
Picture = dict[str, Any]

# Where the samples on a factor lie.
DRAWN = {
    "circle": "around the circle, confidence outwards",
    "interval": "from end to end, confidence upwards",
    "other": "by the first two directions of the embedding",
}

# Samples that are averaged: the mean of more looks the same and takes longer.
MOST_AVERAGED = 20_000

# Pixels of images of the molecule: the model has no finer detail.
PIXELS = 160

# Bands of the map of the sphere: its cells are so much smaller than those of the views that none of
# these is missed.
BANDS = 48


@cache
def templates() -> Any:
    """Return Jinja's environment of the package's templates, which escapes what it is given."""
    jinja2 = extra("jinja2")
    return jinja2.Environment(
        loader=jinja2.PackageLoader("manifactor.views"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def write_report(
    folder: Path,
    fit: ManifoldFactorizer | None = None,
    *,
    out: Path | None = None,
    shown: Shown | None = None,
) -> Path:
    """Write the page of a run, whole or not at all; return its path."""
    # The whole page first: an error leaves the old report in place.
    page = report_page(open_run(folder, some=True), fit or read_run(folder)[1], shown=shown)
    path = out or folder / REPORT_NAME
    # A name of a file may have bytes that are not text.
    write_bytes(path, page.encode(errors="backslashreplace"))
    return path


def write_movies(
    folder: Path, *, page: Path | None = None, shown: Shown | None = None
) -> list[Path]:
    """Write a movie along every interval and circle of a run beside its report."""
    run = open_run(folder, some=True)
    shown = shown or Shown(open_motions(run, read_run(folder)[1]))
    page = page or folder / REPORT_NAME
    written = []
    for f, place in enumerate(run.places):
        if place.topology == "other":
            continue
        if shown.motions is not None:
            found = shown.motions.along(f, count=24, size=PIXELS, view=shown.view(f))
            movies = movie_bytes(found.images, circular=place.topology == "circle")
        else:
            movies = averages_along(run, f).movies
        for kind, content in movies.items():
            path = page.with_name(f"{page.stem}-factor{f + 1}{kind}")
            with held(path):
                write_bytes(path, content)
            written.append(path)
    return written


def report_page(run: Run, fit: ManifoldFactorizer, *, shown: Shown | None = None) -> str:
    """Return the whole page."""
    record = run.record
    shown = shown or Shown(open_motions(run, fit))
    warnings = words.warnings(record)
    # Only these have a coordinate to draw against another.
    lines = [f for f, factor in enumerate(fit.factors_) if factor.coordinate is not None]
    found = _found_loadings(run, fit)
    page = templates().get_template("report.html")
    return page.render(
        name=words.input_name(record),
        verdict=words.verdict(record, fit),
        warnings=[*warnings, *run.warnings],
        introduction=[
            words.samples_sentence(record, fit),
            *words.preparation_sentences(record),
            *words.all_views_sentences(record),
            *words.volume_sentences(shown),
            # Warnings stand above already.
            *([] if warnings else words.confounder_sentences(record)),
        ],
        factors=[_factor(run, fit, f, shown, found) for f in range(len(fit.factors_))],
        views=None if shown.motions is None else _particle_map(shown.motions),
        pairs=[_joint(fit, *pair) for pair in combinations(lines, 2)],
        separation=_separation(fit),
        loadings=found and _loadings(fit, found),
        spectrum=_spectrum(fit),
        angles=_angles(fit),
        bandwidth=_bandwidth(fit),
        explanation=words.explanation(record, fit),
        tables=words.run_tables(record, fit),
        command=record.get("reproduce"),
    )


def _factor(
    run: Run, fit: ManifoldFactorizer, f: int, shown: Shown, found: Loadings | None
) -> dict[str, Any]:
    """Return what the page shows of a factor."""
    factor, motions = fit.factors_[f], shown.motions
    line = factor.coordinate is not None
    if motions is None or motions.expected:
        pictures = [_embedding(fit, f)]
    else:
        # Of all particles, not only of those fitted.
        pictures = [_deviations(run, f)]
    if line:
        pictures.append(_histogram(fit, f))
    if line and run.places[f].deviation is not None:
        pictures.append(_landscape(run, f))
    if torus_angles(fit) is not None:
        pictures.append(_torus(fit))
    if motions is not None:
        # How well each direction shows the motion.
        values = motions.model.views.deviations[:, f]
        text = blind_sentence(motions, f)
        pictures.append(_map(f"seen{f + 1}", motions, values, "deviation", text))
    elif not line and _is_doubtful(fit, f):
        pictures.append(_confidence(fit, f))
    # How many eigenvalues there are tells how much of the factor was seen.
    listed = ", ".join(f"{value:.3g}" for value in factor.eigenvalues[:6])
    left = len(factor.eigenvalues[6:])
    more = f" and {left} more" if left else ""
    strips = _strips(run, f, shown) if line else []
    lead = next((each for each in strips if isinstance(each, dict) and each["film"]), None)
    if lead is None and line and found is not None and not fit.image_shape_:
        lead = _curves(found, f)
    return {
        "name": factor_names(run.record)[f],
        "shape": factor.shape,
        "lead": lead,
        "eigenvalues": f"Dimension {factor.dimension}; eigenvalues {listed}{more}.",
        "probability": words.factor_probability(run.record, fit, f),
        "pictures": pictures,
        "strips": strips,
    }


def _strips(run: Run, f: int, shown: Shown) -> list[Picture | str | None]:
    """Return images along a factor: of the molecule, of particles, of given volumes."""
    strips: list[Picture | str | None] = []
    if shown.motions is not None:
        strips.append(_images_along(shown.motions, f, shown))
    # Images of particles themselves stand beside what was computed from all of them.
    if shown.cones or shown.motions is None:
        strips.append(_averages(run, f, shown.cones[f] if shown.cones else None))
    if shown.volumes is not None and shown.volumes.factor == f:
        strips.append(_volumes_along(shown.volumes, shown.view(f) or (0.0, 0.0)))
    return strips


# Pictures of any run.


def scale_bar(width: float) -> dict[str, float]:
    """Return the longest bar of 1, 2 or 5 times a power of ten in 40 % of a width in angstrom."""
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
    name: str, draw: Callable, alt: str, caption: str, *, size=(3.3, 2.9), **options: str
) -> Picture:
    """Return a drawing of that many inches.

    For those who do not see it, `alt` describes it together with its caption. Options are the class
    of the HTML element, `kind`, and the name of the box that `scrolls` where the page is narrow.
    """
    svg = drawn(name, size, draw)
    return {"caption": caption, "alt": f"{alt} {caption}", "svg": svg, **options}


def _strip(
    images: np.ndarray,
    captions: Sequence[str],
    what: str,
    text: str,
    *,
    side: int,
    width: float | None,
    film: Picture | None = None,
) -> Picture:
    """Return images side by side, whose sides are not below `side`; and their film."""
    pngs = [b64encode(png_bytes(tile)).decode() for tile in enlarged(images, side)]
    return {
        "caption": text,
        "alt": f"Strip of {len(images)} {what}. {text}",
        "tiles": list(zip(pngs, captions, strict=True)),
        "bar": scale_bar(width) if width else None,
        "kind": "strip",
        "film": film,
    }


def _film(images: np.ndarray, captions: Sequence[str], side: int, *, circular: bool) -> Picture:
    """Return a strip of the images that are not blank, as one picture to move behind a frame."""
    filled = np.flatnonzero(~constant_images(images))
    # If all are blank, one of them is still a picture.
    filled = filled if len(filled) else np.arange(1)
    tiles = enlarged(images[filled], side)
    ends = [captions[int(k)] for k in filled]
    return {
        "png": b64encode(png_bytes(np.concatenate(list(tiles), axis=1))).decode(),
        "count": len(tiles),
        "shape": tiles.shape[1:3],
        "circular": circular,
        "ends": (ends[0], ends[-1]),
        "alt": f"{len(tiles)} mean images one after the other, at {', '.join(ends)}.",
    }


def _embedding(fit: ManifoldFactorizer, f: int) -> Picture:
    """Return the samples on a factor, coloured by the coordinate."""
    factor = fit.factors_[f]
    name, where = plots.COLOURED[factor.topology], DRAWN[factor.topology]

    def draw(ax) -> None:
        # The page has the title as a heading.
        plots.embedding(ax, fit, f).set_title("")

    total = len(factor.confidence)
    count = plots.drawn(total)
    parts = [f"Samples {where}."]
    # The picture of an interval or a circle shows the confidence, too.
    if factor.coordinate is not None and _is_doubtful(fit, f):
        parts.append(_confidence_sentence(fit, f))
    if count < total:
        parts.append(f"Drawn: {count:,} of {total:,} fitted samples.")
    panel = _panel(f"embedding{f + 1}", draw, "", " ".join(parts), kind="cloud")
    shown = f"factor {f + 1}, {factor.shape}, coloured by {name}"
    return {**panel, "alt": f"Cloud of {count:,} samples on {shown}."}


def _confidence(fit: ManifoldFactorizer, f: int) -> Picture:
    """Return the samples on a factor, coloured by confidence."""

    def draw(ax) -> None:
        plots.confidence(ax, fit, f).set_title("")

    alt = f"The samples on factor {f + 1} coloured by confidence from 0 to 1."
    return _panel(f"confidence{f + 1}", draw, alt, _confidence_sentence(fit, f), kind="cloud")


def _is_doubtful(fit: ManifoldFactorizer, f: int) -> bool:
    """Return whether some coordinates on a factor are in doubt."""
    # A single factor is all of the data: its coordinates cannot be.
    return len(fit.factors_) > 1 and bool((fit.factors_[f].confidence < 1).any())


def _confidence_sentence(fit: ManifoldFactorizer, f: int) -> str:
    """Return how sure coordinates on a factor are."""
    # The typical and the worst samples; a mean would hide the latter.
    low, middle = np.quantile(fit.factors_[f].confidence, [0.05, 0.5])
    return (
        f"Confidence: half of the samples have {middle:.2f} or more, one in twenty "
        f"{low:.2f} or less."
    )


def _histogram(fit: ManifoldFactorizer, f: int) -> Picture:
    """Return the histogram of a factor's coordinate."""
    factor = fit.factors_[f]
    # The drawing in numbers, for readers who do not see it.
    length = 2 * np.pi if factor.topology == "circle" else 1
    counts = np.histogram(factor.coordinate, plots.PlotSettings.bins, (0, length))[0]
    text = (
        f"Along the factor: {counts.min():,} to {counts.max():,} samples in each of "
        f"{len(counts)} bins."
    )
    alt = f"Histogram of the coordinate on factor {f + 1}."
    return _panel(f"histogram{f + 1}", partial(plots.coordinate, fit=fit, factor=f), alt, text)


def _torus(fit: ManifoldFactorizer) -> Picture:
    """Return the samples in the cell of a flat torus."""
    text = (
        "Samples by their two angles, in the cell that is repeated in all directions: opposite "
        "sides are the same."
    )
    alt = f"Parallelogram of samples: {fit.evidence_.symmetries}."
    return _panel("torus", partial(plots.torus, fit=fit), alt, text)


def _averages(run: Run, f: int, cone: Cone | None) -> Picture | str | None:
    """Return means along a factor, why they cannot be read, or None for a run of numbers."""
    # Nothing to average: no sentence about what is missing is needed.
    of_pictures = (run.record.get("columns") or {}).get("image")
    if not of_pictures and "particles" not in run.record and "components" not in run.record:
        return None
    try:
        found = averages_along(run, f, cone=cone)
    except (ValueError, OSError) as error:
        return f"No averages along this factor: {one_line(error)}"
    total = len(run.rows)
    amount = f"{total:,} {'volumes' if found.of_volumes else 'images'}"
    if cone is not None:
        total, amount = cone.n_particles, str(cone)
    if total > MOST_AVERAGED:
        amount = f"{MOST_AVERAGED:,} of {amount}, drawn at random"
    corrected = ", corrected for their CTF" if found.ctf_corrected else ""
    text = f"Means of {amount}{corrected}, along the factor: {found}."
    captions, width = found.captions[0], found.width
    film = _film(found.images, captions, 96, circular=found.is_circular)
    return _strip(found.images, captions, "mean images", text, side=96, width=width, film=film)


def _curves(found: Loadings, f: int) -> Picture | None:
    """Return the means of the columns that a factor moves most along it; None if there are none."""
    leading = ", ".join(f"{found.named(c)} ({found.shares[c, f]:.0%})" for c in found.leading(f))
    if not leading:
        return None
    text = (
        f"Means of the columns that factor {f + 1} moves most, in standard deviations of each, "
        "with the other factors averaged over."
    )
    draw, alt = partial(plots.curves, fit=found, factor=f), f"Curves of {leading}."
    return _panel(f"curves{f + 1}", draw, alt, text, size=(4.4, 3.1), kind="turned")


def averages_along(run: Run, f: int, *, cone: Cone | None = None) -> Averages:
    """Average images or volumes along a factor as the page does."""
    # As many as a page shows side by side.
    n_bins = 12
    if cone is not None:
        run = run.seen_from(cone.view, width=cone.width, or_opposite=True)
        # Fewer bins, so that each has about 25 images.
        n_bins = int(np.clip(len(run.rows) // 25, 4, n_bins))
    # Few images have no matches; of one view, `average` says what it could match.
    many = cone is None or len(run.rows) >= 100 * n_bins
    # With one factor there is nothing to hold still.
    matched = many and len(run.places) > 1
    return average(run, [f + 1], n_bins=n_bins, matched=matched, most=MOST_AVERAGED)


def _joint(fit: ManifoldFactorizer, one: int, other: int) -> Picture:
    """Return the joint histogram of two factors of one dimension."""
    leakage = fit.evidence_.leakage
    # The worse direction; 0 where neither was measured.
    told = np.nanmax([leakage[one, other], leakage[other, one], 0.0])
    pair = f"Factors {one + 1} and {other + 1}"
    text = f"{pair}: the coordinate on one predicts {told:.0%} of the other."
    alt = f"Joint histogram of {len(fit.spectrum_.weights):,} samples."
    draw = partial(plots.joint, fit=fit, one=one, other=other)
    return _panel(f"joint{one + 1}-{other + 1}", draw, alt, text, kind="turned")


def _separation(fit: ManifoldFactorizer) -> list[Picture]:
    """Return the lines of coordinates that separate, and how lengths change along them."""
    found = fit.evidence_.warp
    if found is None or any(factor.coordinate is None for factor in fit.factors_):
        return []
    text = "Lines of constant coordinates, in the colour of the factor that they follow."
    alt = f"{plots.drawn(len(fit.spectrum_.weights)):,} samples with lines along both factors."
    web = _panel("web", partial(plots.web, fit=fit), alt, text, kind="turned")
    if fit.verdict_ != "separable":
        return [web]
    if not len(found.length):
        return [{**web, "caption": f"{text} {found}"}]
    draw = partial(plots.warp, fit=fit)
    alt = "Curve of lengths along one factor over the coordinate on the other."
    return [web, _panel("warp", draw, alt, str(found))]


def _found_loadings(run: Run, fit: ManifoldFactorizer) -> Loadings | None:
    """Return what each factor moves; None for particles, distances and thousands of columns."""
    if fit.diffusion_.points is None or "components" in run.record or fit.n_features_in_ > 4096:
        return None
    try:
        names = run.column_names
    except (ValueError, OSError, KeyError):  # the file of a table without names is gone
        names = []
    return fit.loadings(column_names=names if len(names) == fit.n_features_in_ else None)


def _loadings(fit: ManifoldFactorizer, found: Loadings) -> dict[str, Any]:
    """Return which columns or pixels each factor moves."""
    with plots.style(plots.PAGE):
        svg = plots.svg(plots.loadings(found, settings=plots.PAGE), "columns")
    if fit.image_shape_:
        text = "Standard deviation of each pixel that is due to each factor: where it moves things."
        alt, look = f"Pictures of pixels. {found} {text}", {"kind": "broad", "scrolls": "Pixels"}
    else:
        text = (
            "Columns that the factors move most: their shares of the variance, and their means "
            "along each factor with the others averaged over. loadings.csv has all shares."
        )
        alt = f"Bars and curves of columns. {found} {text}"
        look = {"kind": "broad", "scrolls": "Columns"}
    said = str(found).replace(" %", "\xa0%")
    return {"words": said, "picture": {"caption": text, "alt": alt, "svg": svg, **look}}


def _spectrum(fit: ManifoldFactorizer) -> Picture:
    """Return the eigenvalues by factor."""
    # Without the constant function.
    values = fit.spectrum_.eigenvalues[1:]
    owner = owners(fit.spectrum_, fit.factorization_.coefficients)[1:]
    # Products and mixtures have the owner -1.
    counts = np.bincount(owner[owner >= 0], minlength=len(fit.factors_))
    own = ", ".join(f"{count} of factor {f}" for f, count in enumerate(counts, start=1))
    text = (
        f"{len(values)} eigenfunctions of the data, with eigenvalues from {values[0]:.3g} to "
        f"{values[-1]:.3g}. Filled are those of one factor: {own}. A factor may have more "
        "eigenfunctions of its own, which are mixed here."
    )
    if not counts.any():
        # Those of a sum have functions of their own.
        text = f"{text.partition(' Filled')[0]} None of them is assigned to a factor."
    look = {"kind": "broad", "scrolls": "Spectrum"}
    draw = partial(plots.spectrum, fit=fit)
    return _panel("spectrum", draw, "Eigenvalues by factor.", text, size=(5.2, 2.7), **look)


def _angles(fit: ManifoldFactorizer) -> Picture | None:
    """Return the angles between gradients of factors' functions, if these are of the spectrum."""
    values, sizes = angle_matrix(fit.spectrum_, fit.factorization_.coefficients)
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
    draw = partial(plots.angles, fit=fit)
    return _panel("angles", draw, "Matrix of angles.", f"{text}.", kind="turned")


def _bandwidth(fit: ManifoldFactorizer) -> Picture:
    """Return the curve that bandwidth and dimension are read from."""
    curve = fit.bandwidth_curve_
    # Where the bandwidth suits the data best; it may be raised for sparse regions.
    steepest = int(np.argmax(curve.slopes))
    text = (
        f"Steepest at bandwidth {curve.candidates[steepest]:.3g}, with "
        f"{2 * curve.slopes[steepest]:.2f} dimensions before the correction for "
        f"finitely many neighbours; {curve.value:.3g} is used."
    )
    draw = partial(plots.bandwidth, fit=fit)
    return _panel("bandwidth", draw, "Curve of the kernel sum's slope.", text)


# Pictures of a run of all views: maps of the sphere, and the molecule as it moves.


def _particle_map(motions: RunMotions) -> Picture:
    """Return the number of particles in each direction."""
    views = motions.model.views
    counts = views.counts
    fullest = angles_of(views.directions[[counts.argmax()]])[0]
    text = (
        f"{counts.sum():,} particles by direction: {counts.min():,} to {counts.max():,} in each of "
        f"{len(counts)} cells of half the sphere, most near {_view(fullest)}. Opposite directions, "
        "whose images are mirrored, count as one."
    )
    return _map("particles", motions, counts, "particles in a cell", text)


def _deviations(run: Run, f: int) -> Picture:
    """Return the deviations of all particles on a motion."""
    place = run.places[f]
    assert place.displayed_deviation is not None
    quantiles = np.quantile(place.displayed_deviation, [0.5, 0.95])
    middle, high = (words.deviation_in_words(value, place.topology) for value in quantiles)
    text = (
        f"Coordinates of all {len(place):,} particles and their deviations: {middle} or "
        f"less for half of them, {high} or more for one in twenty."
    )
    count = plots.drawn(len(place))
    if count < len(place):
        text += f" Drawn: {count:,} of them."
    alt = f"Cloud of coordinates on factor {f + 1}."
    draw = partial(plots.deviation, place=place)
    return _panel(f"deviation{f + 1}", draw, alt, text, kind="cloud")


def _landscape(run: Run, f: int) -> Picture:
    """Return the free energy along a motion."""
    found = landscape([run.places[f]])
    text = f"Free energy along the factor, corrected for deviations: {found} (band: two of them)."
    draw = partial(plots.landscape, found=found, factors=[f + 1])
    return _panel(f"landscape{f + 1}", draw, f"Curve over factor {f + 1}.", text)


def blind_sentence(motions: RunMotions, f: int) -> str:
    """Return which directions are blind to a motion."""
    views = motions.model.views
    deviations = np.where(views.counts > 0, views.deviations[:, f], 0.0)
    worst = _view(angles_of(views.directions[[deviations.argmax()]])[0])
    share = visibility(views, f)["blind_particles"]
    what, tells = "Deviation of coordinates by direction", "have no sure coordinate"
    if motions.expected:
        what = "Deviation expected of a coordinate that a single image tells, by direction"
        tells = "show nothing of it"
    known = (
        f"{what}, as a share of the motion: {UNKNOWN:.2f} where images show nothing of "
        f"it. It is seen best from {_view(motions.best_view(f))}."
    )
    if not share:
        return (
            f"{known} No direction is blind to it: the deviation is at most "
            f"{deviations.max():.2g}, from {worst}."
        )
    return (
        f"{known} Directions near {worst} are blind to it (deviation up to "
        f"{deviations.max():.2g}): {share:.0%} of the particles {tells}."
    )


def _view(view: tuple[float, float]) -> str:
    rot, tilt = view
    return f"rot {rot:.0f}°, tilt {tilt:.0f}°"


def _map(name: str, motions: RunMotions, values: np.ndarray, label: str, text: str) -> Picture:
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


def _images_along(motions: RunMotions, f: int, shown: Shown) -> Picture:
    """Return images of the molecule along a motion."""
    # The film has three images for each of the strip, which are the middle ones.
    found = motions.along(f, count=21, size=PIXELS, view=shown.view(f))
    circular = motions.scales[f].topology == "circle"
    some = slice(0 if circular else 1, None, 3)
    others = ", the other motions in their middle" if len(motions.scales) > 1 else ""
    best = ", which shows this motion best" if shown.wanted.view is None else ""
    text = (
        f"The molecule at {len(found.images[some])} coordinates on factor {f + 1}, seen from "
        f"{_view(found.view)}{best}{others}: projections of the volumes that all "
        "particles together gave, without CTF."
    )
    captions = place_captions(found.places, found.places.displayed)
    film = _film(found.images, captions, PIXELS, circular=circular)
    images, width, captions = found.images[some], motions.model.box, captions[some]
    return _strip(images, captions, "mean images", text, side=PIXELS, width=width, film=film)


def _volumes_along(volumes: GivenVolumes, view: tuple[float, float]) -> Picture:
    """Return projections of given volumes in a direction."""
    # At most 12, as many as a page shows side by side.
    numbers = np.unique(np.rint(np.linspace(0, len(volumes.names) - 1, 12)).astype(int))
    images = np.stack([volumes.image(number, view) for number in numbers])
    text = (
        f"{len(numbers)} of {len(volumes.names)} volumes of {volumes.folder.name}, "
        f"{volumes.names[0]} to {volumes.names[-1]}, at their coordinates on factor "
        f"{volumes.factor + 1}, projected from {_view(view)}."
    )
    captions = place_captions(volumes.place, volumes.place.displayed[numbers])
    return _strip(images, captions, "projections", text, side=PIXELS, width=volumes.width)
