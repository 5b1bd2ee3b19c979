"""Pictures of a run for a page: fragments of HTML, each with a description in words and numbers."""

from collections.abc import Callable
from html import escape

import numpy as np

from manifactor.cryoem.pictures import png_bytes, strip
from manifactor.estimators import ManifoldFactorizer
from manifactor.factoring import ownership
from manifactor.runs.averaging import average
from manifactor.runs.run import Run
from manifactor.views import plots
from manifactor.views.markup import drawing, figure, image, paragraph, scrolled

BINS = 12  # of averages along a factor
MOST_AVERAGED = 20_000  # samples; more only take time
PANEL, WIDE = (3.3, 2.9), (6.4, 2.9)  # inches


def drawn(name: str, size: tuple[float, float], draw: Callable) -> str:
    """The SVG of what `draw` draws on axes."""
    with plots.style(plots.PAGE):
        made = plots.new_figure(*size)
        draw(made.subplots())
        return plots.svg(made, name)


def embedding(fit: ManifoldFactorizer, f: int) -> str:
    """Places on a factor, coloured by the coordinate."""
    factor = fit.factors_[f]
    name = {"circle": "angle, degrees", "interval": "place"}.get(
        factor.topology, "first direction"
    )

    def draw(ax) -> None:
        plots.embedding(ax, fit, f).set_title("")
        _scale(ax, name, degrees=factor.topology == "circle")

    n = len(factor.confidence)
    alt = f"Cloud of {plots.drawn(n):,} samples on factor {f + 1}, {factor.shape}, coloured by {name}."
    where = {
        "circle": "around the circle, confidence outwards",
        "interval": "from end to end, confidence upwards",
    }
    caption = f"Places {where.get(factor.topology, 'by the first two directions of the embedding')}. {thinned(n)}"
    return figure(
        drawing(drawn(f"embedding{f + 1}", PANEL, draw), alt),
        escape(caption),
        kind="cloud",
    )


def confidence(fit: ManifoldFactorizer, f: int) -> str:
    """The same places, coloured by how sure they are."""
    values = fit.factors_[f].confidence

    def draw(ax) -> None:
        plots.confidence(ax, fit, f).set_title("")
        _scale(ax, "confidence")

    low, middle = np.quantile(values, [0.05, 0.5])
    text = f"Confidence: half of the samples have {middle:.2f} or more, one in twenty {low:.2f} or less."
    alt = f"The samples on factor {f + 1} coloured by confidence from 0 to 1. {text}"
    return figure(
        drawing(drawn(f"confidence{f + 1}", PANEL, draw), alt),
        escape(text),
        kind="cloud",
    )


def _scale(ax, name: str, *, degrees: bool = False) -> None:
    """A scale of the colours beside a cloud."""
    bar = ax.figure.colorbar(
        ax.collections[-1], ax=ax, label=name, shrink=0.8, pad=0.02
    )
    bar.solids.set_rasterized(True)  # turned with the cloud where the page is dark
    bar.outline.set_visible(False)
    if degrees:
        turn = np.linspace(0, 2 * np.pi, 5)
        ax.collections[-1].set_clim(turn[0], turn[-1])
        bar.set_ticks(turn, labels=[f"{angle:.0f}" for angle in np.degrees(turn)])


def histogram(fit: ManifoldFactorizer, f: int) -> str:
    """How the samples are spread along a factor of one dimension."""
    factor = fit.factors_[f]
    length = 2 * np.pi if factor.topology == "circle" else 1.0
    counts = np.histogram(factor.coordinate, plots.BINS, (0, length))[0]
    text = f"Along the factor: {counts.min():,} to {counts.max():,} samples in each of {len(counts)} bins."
    picture = drawn(f"histogram{f + 1}", PANEL, lambda ax: plots.coordinate(ax, fit, f))
    return figure(
        drawing(picture, f"Histogram of places on factor {f + 1}. {text}"), escape(text)
    )


def averages(run: Run, number: int) -> str:
    """Mean images or volumes along a factor, counted from 1; a sentence if they cannot be had; "" of numbers alone."""
    if "particles" not in run.record and "components" not in run.record:
        return ""
    matched = len(run.places) > 1
    try:
        found = average(run, [number], n_bins=BINS, matched=matched, most=MOST_AVERAGED)
    except (ValueError, OSError) as error:
        return paragraph(
            f"No averages along this factor: {' '.join(str(error).split())}",
            kind="note",
        )
    of = "volumes" if found.of_volumes else "images"
    total = len(run.rows)
    some = (
        f"{MOST_AVERAGED:,} of {total:,} {of}, drawn at random"
        if total > MOST_AVERAGED
        else f"{total:,} {of}"
    )
    text = f"Means of {some}, along the factor: {found}."
    picture = image(
        png_bytes(strip(found.images, captions=found.captions[0])),
        f"Strip of {BINS} mean images. {text}",
    )
    return figure(
        scrolled(picture, f"Averages along factor {number}"), escape(text), kind="strip"
    )


def joint(fit: ManifoldFactorizer, one: int, other: int) -> str:
    """How many samples lie where on two factors of one dimension."""
    leakage = fit.evidence_.leakage
    told = float(np.nanmax([leakage[one, other], leakage[other, one], 0.0]))
    text = f"Factors {one + 1} and {other + 1}: a place on one tells {told:.0%} of the other."
    name = f"joint{one + 1}-{other + 1}"
    picture = drawn(name, PANEL, lambda ax: plots.joint(ax, fit, one, other))
    alt = f"Joint histogram of {len(fit.spectrum_.weights):,} samples. {text}"
    return figure(drawing(picture, alt), escape(text), kind="turned")


def spectrum(fit: ManifoldFactorizer) -> str:
    """The eigenvalues by factor."""
    values, owner = (
        fit.spectrum_.eigenvalues[1:],
        ownership.owners(fit.spectrum_, fit.factors_)[1:],
    )
    own = ", ".join(
        f"{int((owner == f).sum())} of factor {f + 1}" for f in range(len(fit.factors_))
    )
    text = f"{len(values)} functions with eigenvalues from {values[0]:.3g} to {values[-1]:.3g}: {own}."
    picture = drawn("spectrum", WIDE, lambda ax: plots.spectrum(ax, fit))
    box = scrolled(drawing(picture, f"Eigenvalues by factor. {text}"), "Spectrum")
    return figure(box, escape(text), kind="broad")


def angles(fit: ManifoldFactorizer) -> str:
    """The angles between gradients of the factors' functions; "" where these are not of the data's own spectrum."""
    values, sizes = ownership.angle_matrix(fit.spectrum_, fit.factors_)
    if not sizes:
        return ""
    text = "Squared cosines between the gradients of the factors' lowest functions, from 0 to 1"
    if len(sizes) > 1:
        owner = np.repeat(np.arange(len(sizes)), sizes)
        between = values[owner[:, None] != owner]
        text += f": at most {between.max():.2f} between different factors"
    picture = drawn("angles", PANEL, lambda ax: plots.angles(ax, fit))
    return figure(
        drawing(picture, f"Matrix of angles. {text}."),
        escape(f"{text}."),
        kind="turned",
    )


def bandwidth(fit: ManifoldFactorizer) -> str:
    """The curve that bandwidth and dimension come from."""
    curve = fit.bandwidth_curve_
    steepest = int(np.argmax(curve.slopes))
    text = (
        f"Steepest at bandwidth {curve.candidates[steepest]:.3g}, with {2 * curve.slopes[steepest]:.2f} dimensions "
        f"before the correction for finitely many neighbours; {curve.value:.3g} is used."
    )
    picture = drawn("bandwidth", PANEL, lambda ax: plots.bandwidth(ax, fit))
    return figure(
        drawing(picture, f"Curve of the kernel sum's slope. {text}"), escape(text)
    )


def thinned(n_samples: int) -> str:
    """What is said where not all samples are drawn."""
    count = plots.drawn(n_samples)
    return (
        ""
        if count == n_samples
        else f"Drawn: {count:,} of {n_samples:,} fitted samples."
    )
