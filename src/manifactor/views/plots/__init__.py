"""Drawings of fits and arrays, all in one style.

Each takes the Axes to draw on first, or as `ax=`, and returns them; without, it makes new ones of
pyplot. A `fit` is a fitted `ManifoldFactorizer`, and its factors count from 0.
"""

from typing import Any

from manifactor._support.plugins import plugins
from manifactor.views.pictures import write_movie as write_movie
from manifactor.views.plots.arrays import Rate as Rate
from manifactor.views.plots.arrays import averages as averages
from manifactor.views.plots.arrays import drawn as drawn
from manifactor.views.plots.arrays import function as function
from manifactor.views.plots.arrays import matrix as matrix
from manifactor.views.plots.arrays import nothing as nothing
from manifactor.views.plots.arrays import place as place
from manifactor.views.plots.arrays import points as points
from manifactor.views.plots.arrays import reliability as reliability
from manifactor.views.plots.fits import angles as angles
from manifactor.views.plots.fits import bandwidth as bandwidth
from manifactor.views.plots.fits import confidence as confidence
from manifactor.views.plots.fits import coordinate as coordinate
from manifactor.views.plots.fits import curves as curves
from manifactor.views.plots.fits import deviation as deviation
from manifactor.views.plots.fits import embedding as embedding
from manifactor.views.plots.fits import joint as joint
from manifactor.views.plots.fits import landscape as landscape
from manifactor.views.plots.fits import loadings as loadings
from manifactor.views.plots.fits import overview as overview
from manifactor.views.plots.fits import spectrum as spectrum
from manifactor.views.plots.fits import torus as torus
from manifactor.views.plots.fits import warp as warp
from manifactor.views.plots.fits import web as web
from manifactor.views.plots.styles import CATEGORIES as CATEGORIES
from manifactor.views.plots.styles import CLEAR as CLEAR
from manifactor.views.plots.styles import COLOURED as COLOURED
from manifactor.views.plots.styles import CYCLE as CYCLE
from manifactor.views.plots.styles import FUNCTION_MAP as FUNCTION_MAP
from manifactor.views.plots.styles import GREY as GREY
from manifactor.views.plots.styles import INK as INK
from manifactor.views.plots.styles import LINE_MAP as LINE_MAP
from manifactor.views.plots.styles import PAGE as PAGE
from manifactor.views.plots.styles import SHARE_MAP as SHARE_MAP
from manifactor.views.plots.styles import STYLE as STYLE
from manifactor.views.plots.styles import PlotSettings as PlotSettings
from manifactor.views.plots.styles import circle_map as circle_map
from manifactor.views.plots.styles import clear_picture as clear_picture
from manifactor.views.plots.styles import colour as colour
from manifactor.views.plots.styles import new_figure as new_figure
from manifactor.views.plots.styles import picture as picture
from manifactor.views.plots.styles import style as style
from manifactor.views.plots.styles import svg as svg


def __getattr__(name: str) -> Any:
    if name not in plugins("plots"):
        raise AttributeError(f"module 'manifactor.plots' has no attribute {name!r}")
    return plugins("plots")[name].load()
