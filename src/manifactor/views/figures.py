"""Figures of the page of a run: drawings of its fit, and images side by side.

Each has a description in words and numbers, for those who do not see it.
"""

import math
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from manifactor.estimators import ManifoldFactorizer
from manifactor.factors.factor import angle_matrix, owners
from manifactor.factors.loadings import Loadings
from manifactor.runs.landscape import landscape
from manifactor.runs.places import Place
from manifactor.views import plots
from manifactor.views.pictures import constant_images, enlarged, png_bytes
from manifactor.views.sections import Figure, Film, Section

# Where the samples on a factor lie.
DRAWN = {
    "circle": "around the circle, confidence outwards",
    "interval": "from end to end, confidence upwards",
    "other": "by the first two directions of the embedding",
}


def scale_bar(width: float) -> dict[str, float]:
    """Return the longest bar of 1, 2 or 5 times a power of ten in 40 % of a width in angstrom."""
    most = 0.4 * width
    power = 10.0 ** math.floor(math.log10(most))
    length = power * max(step for step in (1, 2, 5) if step * power <= most)
    return {"length": length, "share": length / width}


def svg_of(name: str, size: tuple[float, float], draw: Callable) -> str:
    """Return the SVG of what `draw` draws on axes of that many inches."""
    with plots.style(plots.PAGE):
        figure = plots.new_figure(*size)
        draw(figure.subplots())
        return plots.svg(figure, name)


def panel(
    name: str, draw: Callable, alt: str, caption: str, *of, size=(3.3, 2.9), **look: Any
) -> Figure:
    """Return what `draw` draws of something, as a figure of that look."""
    svg = svg_of(name, size, lambda ax: draw(ax, *of))
    return Figure(caption, f"{alt} {caption}", svg, **look)


def strip(
    images: np.ndarray,
    captions: Sequence[str],
    what: str,
    text: str,
    *,
    side: int,
    width: float | None,
    film: Film | None = None,
) -> Figure:
    """Return images side by side, whose sides are not below `side`; and their film."""
    pngs = [b64encode(png_bytes(tile)).decode() for tile in enlarged(images, side)]
    return Figure(
        text,
        f"Strip of {len(images)} {what}. {text}",
        tiles=list(zip(pngs, captions, strict=True)),
        bar=scale_bar(width) if width else None,
        kind="strip",
        film=film,
    )


def film(images: np.ndarray, captions: Sequence[str], side: int, *, circular: bool) -> Film:
    """Return the images that are not blank as one picture, to move behind a frame."""
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


# Of one factor, counted from 0.


def embedding(fit: ManifoldFactorizer, f: int) -> Figure:
    """Return the samples on a factor, coloured by the coordinate."""
    factor = fit.factors_[f]
    total = len(factor.confidence)
    count = plots.drawn(total)
    text = f"Samples {DRAWN[factor.topology]}."
    # The picture of an interval or a circle shows the confidence, too.
    if factor.coordinate is not None and is_doubtful(fit, f):
        text += f" {_confidence_sentence(fit, f)}"
    if count < total:
        text += f" Drawn: {count:,} of {total:,} fitted samples."
    name = plots.COLOURED[factor.topology]
    alt = f"Cloud of {count:,} samples on factor {f + 1}, {factor.shape}, coloured by {name}."
    drawing = _cloud("embedding", plots.embedding, "", text, fit, f)
    return replace(drawing, alt=alt)


def confidence(fit: ManifoldFactorizer, f: int) -> Figure:
    """Return the samples on a factor, coloured by confidence."""
    alt = f"The samples on factor {f + 1} coloured by confidence from 0 to 1."
    return _cloud("confidence", plots.confidence, alt, _confidence_sentence(fit, f), fit, f)


def _cloud(name: str, draw: Callable, alt: str, text: str, fit, f: int) -> Figure:
    def untitled(ax) -> None:
        # The page has the title as a heading.
        draw(ax, fit, f).set_title("")

    return panel(f"{name}{f + 1}", untitled, alt, text, kind="cloud")


def is_doubtful(fit: ManifoldFactorizer, f: int) -> bool:
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


def histogram(fit: ManifoldFactorizer, f: int) -> Figure:
    """Return the histogram of a factor's coordinate."""
    factor = fit.factors_[f]
    length = 2 * np.pi if factor.topology == "circle" else 1
    counts = np.histogram(factor.coordinate, plots.PlotSettings.bins, (0, length))[0]
    text = (
        f"Along the factor: {counts.min():,} to {counts.max():,} samples in each of "
        f"{len(counts)} bins."
    )
    alt = f"Histogram of the coordinate on factor {f + 1}."
    return panel(f"histogram{f + 1}", plots.coordinate, alt, text, fit, f)


def torus(fit: ManifoldFactorizer) -> Figure:
    """Return the samples in the cell of a flat torus."""
    text = (
        "Samples by their two angles, in the cell that is repeated in all directions: opposite "
        "sides are the same."
    )
    alt = f"Parallelogram of samples: {fit.evidence_.symmetries}."
    return panel("torus", plots.torus, alt, text, fit)


def free_energy(place: Place, f: int) -> Figure:
    """Return the free energy along a factor whose coordinates have deviations."""
    found = landscape([place])
    text = f"Free energy along the factor, corrected for deviations: {found} (band: two of them)."
    alt = f"Curve over factor {f + 1}."
    return panel(f"landscape{f + 1}", plots.landscape, alt, text, found, [f + 1])


def curves(found: Loadings, f: int) -> Figure | None:
    """Return the means of the columns that a factor moves most along it; None if there are none."""
    leading = ", ".join(f"{found.named(c)} ({found.shares[c, f]:.0%})" for c in found.leading(f))
    if not leading:
        return None
    text = (
        f"Means of the columns that factor {f + 1} moves most, in standard deviations of each, "
        "with the other factors averaged over."
    )
    look: dict[str, Any] = {"size": (4.4, 3.1), "kind": "turned"}
    return panel(f"curves{f + 1}", plots.curves, f"Curves of {leading}.", text, found, f, **look)


# Of all factors.


def independence(fit: ManifoldFactorizer) -> Section:
    """Return the joint histograms of the factors with a coordinate."""
    lines = [f for f, factor in enumerate(fit.factors_) if factor.coordinate is not None]
    text = (
        "Samples by their coordinates on two factors. Where these are independent, all rows look "
        "alike, and all columns."
    )
    histograms = [_joint(fit, *pair) for pair in combinations(lines, 2)]
    notes = [Figure(text, kind="broad")] if histograms else []
    return Section("independence", figures=[*histograms, *notes], title="Independence")


def _joint(fit: ManifoldFactorizer, one: int, other: int) -> Figure:
    """Return the joint histogram of two factors of one dimension."""
    leakage = fit.evidence_.leakage
    # The worse direction; 0 where neither was measured.
    told = np.nanmax([leakage[one, other], leakage[other, one], 0.0])
    pair = f"Factors {one + 1} and {other + 1}"
    text = f"{pair}: the coordinate on one predicts {told:.0%} of the other."
    alt = f"Joint histogram of {len(fit.spectrum_.weights):,} samples."
    name = f"joint{one + 1}-{other + 1}"
    return panel(name, plots.joint, alt, text, fit, one, other, kind="turned")


def separation(fit: ManifoldFactorizer) -> Section:
    """Return the lines of coordinates that separate, and how lengths change along them."""
    found = fit.evidence_.warp
    if found is None or any(factor.coordinate is None for factor in fit.factors_):
        return Section("separation")
    text = "Lines of constant coordinates, in the colour of the factor that they follow."
    alt = f"{plots.drawn(len(fit.spectrum_.weights)):,} samples with lines along both factors."
    shown = [panel("web", plots.web, alt, text, fit, kind="turned")]
    if fit.verdict_ == "separable" and len(found.length):
        alt = "Curve of lengths along one factor over the coordinate on the other."
        shown.append(panel("warp", plots.warp, alt, str(found), fit))
    elif fit.verdict_ == "separable":
        shown = [replace(shown[0], caption=f"{text} {found}")]
    note = (
        "Where coordinates separate without being a product, a step along one factor is longer at "
        "some coordinates on the other."
    )
    return Section("separation", figures=[*shown, Figure(note, kind="broad")], title="Lengths")


def loadings(fit: ManifoldFactorizer, found: Loadings) -> Section:
    """Return which columns or pixels each factor moves."""
    with plots.style(plots.PAGE):
        svg = plots.svg(plots.loadings(found, settings=plots.PAGE), "columns")
    if fit.image_shape_:
        title, what = "Pixels", "Pictures of pixels."
        text = "Standard deviation of each pixel that is due to each factor: where it moves things."
    else:
        title, what = "Columns", "Bars and curves of columns."
        text = (
            "Columns that the factors move most: their shares of the variance, and their means "
            "along each factor with the others averaged over. loadings.csv has all shares."
        )
    drawing = Figure(text, f"{what} {found} {text}", svg, kind="broad", scrolls=title)
    return Section("columns", [str(found).replace(" %", "\xa0%")], figures=[drawing], title=title)


def spectrum(fit: ManifoldFactorizer) -> Figure:
    """Return the eigenvalues by factor."""
    text, alt = spectrum_in_words(fit), "Eigenvalues by factor."
    look: dict[str, Any] = {"size": (5.2, 2.7), "kind": "broad", "scrolls": "Spectrum"}
    return panel("spectrum", plots.spectrum, alt, text, fit, **look)


def spectrum_in_words(fit: ManifoldFactorizer) -> str:
    """Return how many eigenvalues there are, their range, and how many each factor has."""
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
    return text


def angles(fit: ManifoldFactorizer) -> list[Figure]:
    """Return the angles between gradients of factors' functions, if these are of the spectrum."""
    values, sizes = angle_matrix(fit.spectrum_, fit.factorization_.coefficients)
    if not sizes:
        return []
    text = (
        "Squared cosines between the gradients of the factors' lowest eigenfunctions, from 0 to 1"
    )
    if len(sizes) > 1:
        owner = np.repeat(np.arange(len(sizes)), sizes)
        # The cells that a product leaves empty.
        between = values[owner[:, None] != owner]
        text += f": at most {between.max():.2f} between different factors"
    return [panel("angles", plots.angles, "Matrix of angles.", f"{text}.", fit, kind="turned")]


def bandwidth(fit: ManifoldFactorizer) -> Figure:
    """Return the curve that bandwidth and dimension are read from."""
    curve = fit.bandwidth_curve_
    # Where the bandwidth suits the data best; it may be raised for sparse regions.
    steepest = int(np.argmax(curve.slopes))
    text = (
        f"Steepest at bandwidth {curve.candidates[steepest]:.3g}, with "
        f"{2 * curve.slopes[steepest]:.2f} dimensions before the correction for "
        f"finitely many neighbours; {curve.value:.3g} is used."
    )
    return panel("bandwidth", plots.bandwidth, "Curve of the kernel sum's slope.", text, fit)
