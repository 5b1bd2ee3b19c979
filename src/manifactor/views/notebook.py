"""The result of a fit as a notebook shows it: verdict, factors, a small drawing each.

Drawings are SVG made here: matplotlib may not be installed, and takes a second.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from manifactor._support.values import ceil_div
from manifactor.views import words
from manifactor.views.plots.fits import length
from manifactor.views.plots.style import colour

# Text and lines take the colours of the notebook, light or dark.
STYLE = (
    "font-family: system-ui, sans-serif; font-size: 13px; line-height: 1.4; "
    "max-width: 46em; margin: .3em 0 .8em"
)
ROW = "display: flex; flex-wrap: wrap; gap: 1.2em; margin: .6em 0"


@dataclass(frozen=True)
class DrawingSettings:
    """Settings of the small drawings."""

    # Pixels of each side, and of the margin inside.
    side: int = 112
    margin: int = 4

    # Bars of a histogram: a factor's gaps show, its noise does not.
    bins: int = 24

    # Radius of a circle without samples, as a share of that of the highest bar.
    inner: float = 0.45

    # Points of a cloud, so that a notebook of many fits stays small.
    most_points: int = 400


def result_html(fit, *, settings: DrawingSettings = DrawingSettings()) -> str:
    """Return verdict and factors of a fitted ManifoldFactorizer as HTML."""
    evidence = fit.evidence_
    said = [words.verdict_sentence({}, fit)]
    if evidence.verdict != "product":
        said.append(f"{evidence.reason[:1].upper()}{evidence.reason[1:]}.")
        said.append(evidence.advice)
    sentences = escape(" ".join(text for text in said if text))
    figures = [_figure(fit, number, settings) for number in range(len(fit.factors_))]
    return (
        f'<div style="{STYLE}"><strong>{escape(evidence.verdict)}</strong> '
        f"(in the sense of {escape(evidence.sense)}, "
        f"{len(fit.spectrum_.weights):,} samples). {sentences}"
        f'<div style="{ROW}">{"".join(figures)}</div></div>'
    )


def _figure(fit, number: int, settings: DrawingSettings) -> str:
    """Return the drawing of one factor with its name."""
    factor = fit.factors_[number]
    name = f"Factor {number + 1}: {factor.shape}"
    draw = {"interval": _interval, "circle": _circle}.get(factor.topology, _cloud)
    side = settings.side
    svg = (
        f'<svg role="img" aria-label="{escape(name)}" width="{side}" height="{side}" '
        f'viewBox="0 0 {side} {side}">{draw(factor, colour(number), settings)}</svg>'
    )
    sure = f"median confidence {np.median(factor.confidence):.2f}"
    caption = f"{escape(name)}<br><small>{sure}</small>"
    return f'<figure style="margin: 0">{svg}<figcaption>{caption}</figcaption></figure>'


def _heights(factor, settings: DrawingSettings) -> np.ndarray:
    """Return how many samples lie in bins along a factor, the most as 1."""
    limits = (0, length(factor))
    counts, _ = np.histogram(factor.coordinate, settings.bins, limits)
    return counts / counts.max()


def _interval(factor, ink: str, settings: DrawingSettings) -> str:
    """Return the histogram of places on an interval."""
    heights = _heights(factor, settings)
    low, high = settings.margin, settings.side - settings.margin
    edges = np.linspace(low, high, len(heights) + 1)
    tops = high - heights * (high - low)
    # Both ends of every bar, between those of the base.
    outline = np.column_stack([np.repeat(edges, 2)[1:-1], np.repeat(tops, 2)])
    corners = [(low, high), *outline, (high, high)]
    return f'<path d="{_path(corners)}z" fill="{ink}"/>'


def _circle(factor, ink: str, settings: DrawingSettings) -> str:
    """Return the histogram of places on a circle, bars outwards."""
    heights = _heights(factor, settings)
    middle = settings.side / 2
    outer = middle - settings.margin
    inner = settings.inner * outer
    edges = np.linspace(0, 2 * np.pi, len(heights) + 1)
    angle = np.repeat(edges, 2)[1:-1]
    radius = np.repeat(inner + heights * (outer - inner), 2)
    # As in drawings of matplotlib, angles grow against the clock.
    outline = np.column_stack([np.cos(angle), -np.sin(angle)]) * radius[:, None]
    hole = (
        f'<circle cx="{middle}" cy="{middle}" r="{inner:.1f}" fill="none" '
        'stroke="currentColor" stroke-opacity=".5"/>'
    )
    ring = _ring(inner, middle)
    drawn = f"{_path(outline + middle)}z {ring}"
    return f'<path d="{drawn}" fill="{ink}" fill-rule="evenodd"/>{hole}'


def _ring(radius: float, middle: float) -> str:
    """Return a circle as the data of a path."""
    left = f"M{middle - radius:.1f} {middle:.1f}"
    half = f"a{radius:.1f} {radius:.1f} 0 1 0"
    return f"{left}{half} {2 * radius:.1f} 0{half} {-2 * radius:.1f} 0z"


def _cloud(factor, ink: str, settings: DrawingSettings) -> str:
    """Return the first two directions of an embedding as points."""
    step = ceil_div(len(factor.embedding), settings.most_points)
    xy = factor.embedding[::step, :2] * [1, -1]
    low, high = xy.min(axis=0), xy.max(axis=0)
    # One scale for both directions.
    spread = float((high - low).max()) or 1.0
    room = settings.side - 2 * settings.margin
    placed = settings.side / 2 + (xy - (low + high) / 2) * (room / spread)
    # A line without length and with round ends is a point.
    points = "".join(f"M{x:.1f} {y:.1f}h0" for x, y in placed)
    how = 'stroke-width="2.5" stroke-linecap="round" fill="none"'
    return f'<path d="{points}" stroke="{ink}" {how}/>'


def _path(corners: Sequence | np.ndarray) -> str:
    """Return corners as the data of a path, without its end."""
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in corners)
