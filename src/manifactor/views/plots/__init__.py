"""Drawings of fits and arrays on the caller's axes, all in one style.

The colours can be told apart in print and by colour-blind readers: purple to orange through white
for functions, viridis for intervals, a cyclic map for circles, and the palette of Okabe and Ito for
categories.
"""

from manifactor.cryoem.pictures import write_movie
from manifactor.views.plots.arrays import (
    Rate,
    averages,
    drawn,
    function,
    matrix,
    nothing,
    place,
    points,
    reliability,
)
from manifactor.views.plots.fits import (
    angles,
    bandwidth,
    confidence,
    coordinate,
    deviation,
    embedding,
    joint,
    overview,
    spectrum,
)
from manifactor.views.plots.sphere import sphere
from manifactor.views.plots.style import (
    CATEGORIES,
    CLEAR,
    CYCLE,
    FUNCTION_MAP,
    GREY,
    INK,
    LINE_MAP,
    PAGE,
    SHARE_MAP,
    STYLE,
    PlotSettings,
    circle_map,
    clear_picture,
    colour,
    new_figure,
    picture,
    style,
    svg,
)

__all__ = [
    "CATEGORIES",
    "CLEAR",
    "CYCLE",
    "FUNCTION_MAP",
    "GREY",
    "INK",
    "LINE_MAP",
    "PAGE",
    "SHARE_MAP",
    "STYLE",
    "PlotSettings",
    "Rate",
    "angles",
    "averages",
    "bandwidth",
    "circle_map",
    "clear_picture",
    "colour",
    "confidence",
    "coordinate",
    "deviation",
    "drawn",
    "embedding",
    "function",
    "joint",
    "matrix",
    "new_figure",
    "nothing",
    "overview",
    "picture",
    "place",
    "points",
    "reliability",
    "spectrum",
    "sphere",
    "style",
    "svg",
    "write_movie",
]
