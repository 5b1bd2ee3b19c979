"""One figure of a whole fit: its factors above, what they were found by below."""

import io
from dataclasses import dataclass, field
from functools import partial

from manifactor.factoring.factors import ownership
from manifactor.views.plots.appearance import PlotSettings, new_figure, style
from manifactor.views.plots.fits import angles, bandwidth, coordinate, embedding, joint, spectrum


@dataclass(frozen=True)
class OverviewSettings:
    """Settings of `overview`."""

    # Inches: a panel in which a legend of three lines has room, and the least width of a figure,
    # that of three panels below.
    panel: float = 2.4
    least_width: float = 7.6
    height: float = 5.0

    # Bins of the small histograms: a few samples in each cell of a joint one.
    plots: PlotSettings = field(default_factory=lambda: PlotSettings(bins=24))


def overview(fit, *, figure=None, settings: OverviewSettings = OverviewSettings()):
    """Draw a whole fit; return the figure.

    Above, the places on each factor. Below, the spectrum and the angles between the
    factors' gradients, where the factors have functions of the spectrum; then the joint
    distribution of two coordinates, that of one, or the curve of the bandwidth.

    Parameters
    ----------
    fit : ManifoldFactorizer
    figure : Figure, SubFigure or None
        None for a new one.
    settings : OverviewSettings
    """
    with style():
        whole = _shown(fit, settings) if figure is None else figure
        count = len(fit.factors_)
        verdict = f"{fit.verdict_}: {count} {'factor' if count == 1 else 'factors'}"
        whole.suptitle(verdict, fontsize=10)
        above, below = whole.subfigures(2, 1)
        for number, ax in enumerate(_row(above, count)):
            embedding(ax, fit, number, settings=settings.plots)
            if fit.factors_[number].coordinate is None:
                # Both directions of a surface have the same unit.
                ax.set_aspect("equal")
        draws = _draws_below(fit, settings.plots)
        for draw, ax in zip(draws, _row(below, len(draws)), strict=True):
            draw(ax)
    return whole


def _row(figure, count: int):
    """Return so many axes side by side."""
    return figure.subplots(1, count, squeeze=False)[0]


def _draws_below(fit, settings: PlotSettings) -> list:
    """Return functions that draw on the axes of the lower row."""
    _, sizes = ownership.angle_matrix(fit.spectrum_, fit.factors_)
    numbered = enumerate(fit.factors_)
    known = [number for number, factor in numbered if factor.coordinate is not None]
    along = [partial(coordinate, fit=fit, factor=number, settings=settings) for number in known[:2]]
    draws = [partial(spectrum, fit=fit)]
    if not sizes:
        # Factors of a sum own no functions of the spectrum.
        draws = along or [partial(spectrum, fit=fit)]
    elif len(sizes) > 1:
        draws.append(partial(angles, fit=fit))
    if len(known) > 1:
        one, other = known[:2]
        draws.append(partial(joint, fit=fit, one=one, other=other, settings=settings))
    elif sizes:
        draws.append(along[0] if along else partial(bandwidth, fit=fit))
    return draws


def _shown(fit, settings: OverviewSettings):
    """Return a new figure, which notebooks show also if pyplot was never imported."""
    width = max(settings.least_width, settings.panel * len(fit.factors_))
    made = new_figure(width, settings.height)
    made._repr_png_ = partial(_png, made, settings.plots.resolution)
    return made


def _png(figure, resolution: int) -> bytes:
    """Return a figure as the content of a .png file."""
    buffer = io.BytesIO()
    with style():
        figure.savefig(buffer, format="png", dpi=resolution)
    return buffer.getvalue()
