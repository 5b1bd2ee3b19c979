"""The result of a fit as a notebook shows it: verdict, factors, a small drawing each.

Drawings are SVG made here: matplotlib may not be installed, and takes a second.
"""

from collections.abc import Sequence
from html import escape

import numpy as np

from manifactor._support.values import ceil_div
from manifactor.views import words
from manifactor.views.plots import colour

# Text and lines take the colours of the notebook, light or dark.
STYLE = (
    "font-family: system-ui, sans-serif; font-size: 13px; line-height: 1.4; "
    "max-width: 46em; margin: .3em 0 .8em"
)
ROW = "display: flex; flex-wrap: wrap; gap: 1.2em; margin: .6em 0"

# Pixels of each side of a drawing, and of the margin inside.
SIDE, MARGIN = 112, 4


def result_html(fit) -> str:
    """Return verdict and factors of a fitted ManifoldFactorizer as HTML."""
    evidence = fit.evidence_
    sentences = "<br>".join(map(escape, evidence.sentences))
    figures = [_figure(fit, number) for number in range(len(fit.factors_))]
    return (
        f'<div style="{STYLE}"><strong>{escape(evidence.summary)}</strong> '
        f"({len(fit.spectrum_.weights):,} samples)<br>{sentences}"
        f'<div style="{ROW}">{"".join(figures)}</div>'
        f"<details><summary>Details</summary>{escape(evidence.explanation)}</details></div>"
    )


def _figure(fit, number: int) -> str:
    """Return the drawing of one factor with its name."""
    factor = fit.factors_[number]
    name = f"Factor {number + 1}: {factor.shape}"
    draw = {"interval": _interval, "circle": _circle}.get(factor.topology, _cloud)
    svg = (
        f'<svg role="img" aria-label="{escape(name)}" width="{SIDE}" height="{SIDE}" '
        f'viewBox="0 0 {SIDE} {SIDE}">{draw(factor, colour(number))}</svg>'
    )
    sure = f"median confidence {np.median(factor.confidence):.2f}"
    notes = "<br>".join(filter(None, [sure, words.factor_probability({}, fit, number)]))
    caption = f"{escape(name)}<br><small>{notes}</small>"
    return f'<figure style="margin: 0">{svg}<figcaption>{caption}</figcaption></figure>'


def _histogram(factor, length: float, ends, sides) -> tuple[np.ndarray, np.ndarray]:
    """Return both ends of every bar along a factor, between `ends`, and how far the bars reach.

    They stand on the first of the `sides`; the highest one reaches the second.
    """
    # With 24 bars a factor's gaps show, and its noise does not.
    counts, _ = np.histogram(factor.coordinate, 24, (0, length))
    (low, high), (base, top) = ends, sides
    edges = np.linspace(low, high, len(counts) + 1)
    reached = base + counts / counts.max() * (top - base)
    return np.repeat(edges, 2)[1:-1], np.repeat(reached, 2)


def _interval(factor, ink: str) -> str:
    """Return the histogram of an interval's coordinate."""
    low, high = MARGIN, SIDE - MARGIN
    outline = np.column_stack(_histogram(factor, 1, (low, high), (high, low)))
    corners = [(low, high), *outline, (high, high)]
    return f'<path d="{_path(corners)}z" fill="{ink}"/>'


def _circle(factor, ink: str) -> str:
    """Return the histogram of a circle's coordinate, bars outwards."""
    middle, turn = SIDE / 2, 2 * np.pi
    outer = middle - MARGIN
    inner = 0.45 * outer
    angle, radius = _histogram(factor, turn, (0, turn), (inner, outer))
    # As in drawings of matplotlib, angles grow against the clock.
    outline = np.column_stack([np.cos(angle), -np.sin(angle)]) * radius[:, None]
    hole = (
        f'<circle cx="{middle}" cy="{middle}" r="{inner:.1f}" fill="none" '
        'stroke="currentColor" stroke-opacity=".5"/>'
    )
    half = f"a{inner:.1f} {inner:.1f} 0 1 0"
    ring = f"M{middle - inner:.1f} {middle:.1f}{half} {2 * inner:.1f} 0{half} {-2 * inner:.1f} 0z"
    drawn = f"{_path(outline + middle)}z {ring}"
    return f'<path d="{drawn}" fill="{ink}" fill-rule="evenodd"/>{hole}'


def _cloud(factor, ink: str) -> str:
    """Return the first two directions of an embedding as points."""
    # At most 400 points, so that a notebook of many fits stays small.
    step = ceil_div(len(factor.embedding), 400)
    xy = factor.embedding[::step, :2] * [1, -1]
    low, high = xy.min(axis=0), xy.max(axis=0)
    # One scale for both directions.
    spread = float((high - low).max()) or 1.0
    room = SIDE - 2 * MARGIN
    placed = SIDE / 2 + (xy - (low + high) / 2) * (room / spread)
    # A line without length and with round ends is a point.
    points = "".join(f"M{x:.1f} {y:.1f}h0" for x, y in placed)
    how = 'stroke-width="2.5" stroke-linecap="round" fill="none"'
    return f'<path d="{points}" stroke="{ink}" {how}/>'


def _path(corners: Sequence | np.ndarray) -> str:
    """Return corners as the data of a path, without its end."""
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in corners)
