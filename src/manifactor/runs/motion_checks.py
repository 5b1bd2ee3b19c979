"""Whether a model of motions that was read from a file is whole."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np

from manifactor.cryoem.all_views.model import MotionModel
from manifactor.cryoem.all_views.motions import Motions, MotionSettings
from manifactor.cryoem.all_views.place_features import PlaceFeatures
from manifactor.cryoem.all_views.slices import VolumeGrid
from manifactor.cryoem.all_views.view_map import ViewMap
from manifactor.cryoem.directions import SphereCells


@dataclass(frozen=True)
class ModelLimits:
    """Sizes that no model exceeds which was computed."""

    # Cycles per box; volumes are computed at some tens.
    cut: float = 1000.0
    padding: int = 8
    # Products, degrees and harmonics of features.
    level: int = MotionSettings().max_level
    # Cells of the half sphere; there are a few hundred.
    cells: int = 100_000


def damage_of(
    model: object, topologies: Sequence[str], *, limits: ModelLimits = ModelLimits()
) -> str:
    """Return what is wrong with a model, "" for nothing.

    Parameters
    ----------
    model : object
        What a file holds in the place of a `MotionModel`.
    topologies : sequence of str
        Of the factors of its run.
    limits : ModelLimits
    """
    if not isinstance(model, MotionModel):
        return "it holds no model of motions"
    for part, is_whole in CHECKS.items():
        try:
            whole = is_whole(model, list(topologies), limits)
        # Parts of other types, with which nothing can be computed, raise anything.
        except Exception:
            whole = False
        if not whole:
            return f"{part} do not fit the rest"
    return ""


def _whole_grid(model: MotionModel, topologies: list[str], limits: ModelLimits) -> bool:
    grid = model.grid
    sizes = (grid.cut, grid.radius, grid.edge, model.box)
    return (
        isinstance(grid, VolumeGrid)
        and all(_is_positive(size) for size in sizes)
        and grid.cut <= limits.cut
        and isinstance(grid.padding, Integral)
        and 1 <= grid.padding <= limits.padding
    )


def _whole_motions(
    model: MotionModel, topologies: list[str], limits: ModelLimits
) -> bool:
    motions = model.motions
    if list(motions.topologies) != topologies:
        return False
    if isinstance(motions, Motions):
        return all(_is_term(term, len(topologies), limits) for term in motions.added)
    levels = (motions.squared, motions.degree, motions.harmonics)
    columns = (*motions.middles, *motions.spreads)
    widths = [len(middle) for middle in motions.middles]
    return (
        isinstance(motions, PlaceFeatures)
        and all(_is_level(level, limits) for level in levels)
        and all(_are_numbers(column, "f") and column.ndim == 1 for column in columns)
        and [len(spread) for spread in motions.spreads] == widths
        and len(widths) == len(topologies)
    )


def _whole_volumes(
    model: MotionModel, topologies: list[str], limits: ModelLimits
) -> bool:
    motions, volumes = model.motions, model.volumes
    n_columns = len(topologies)
    if isinstance(motions, PlaceFeatures):
        n_columns = sum(motions.widths)
    n_features = motions.features(np.zeros((1, n_columns))).shape[1]
    same = volumes.shape == (n_features, model.grid.size)
    return same and _are_numbers(volumes, "c")


def _whole_views(
    model: MotionModel, topologies: list[str], limits: ModelLimits
) -> bool:
    views, bands = model.views, model.views.cells.per_band
    if not isinstance(views, ViewMap) or not isinstance(views.cells, SphereCells):
        return False
    if not _are_numbers(bands, "iu") or bands.ndim != 1 or bands.min() < 1:
        return False
    # Python's integers do not overflow.
    n_cells = sum(map(int, bands))
    return (
        n_cells <= limits.cells
        and views.counts.shape == (n_cells,)
        and _are_numbers(views.counts, "iu")
        and views.counts.min() >= 0
        and views.counts.max() > 0
        and views.deviations.shape == (n_cells, len(topologies))
        and views.deviations.dtype.kind == "f"
    )


def _whole_shares(
    model: MotionModel, topologies: list[str], limits: ModelLimits
) -> bool:
    found, quantiles = model.consistency, model.quantiles
    if found.shape != (len(topologies),) or found.dtype.kind != "f":
        return False
    return quantiles is None or (
        quantiles.ndim == 2
        and len(quantiles) == len(topologies)
        and quantiles.shape[1] > 1
        and _are_numbers(quantiles, "f")
    )


Check = Callable[[MotionModel, list[str], ModelLimits], bool]

# In this order: each relies on those before it.
CHECKS: dict[str, Check] = {
    "its grid and its box": _whole_grid,
    "its motions": _whole_motions,
    "its volumes": _whole_volumes,
    "its views": _whole_views,
    "its consistencies and quantiles": _whole_shares,
}


def _is_positive(size: object) -> bool:
    return isinstance(size, Real) and 0 < float(size) < float("inf")


def _is_level(level: object, limits: ModelLimits) -> bool:
    return isinstance(level, Integral) and 0 <= level <= limits.level


def _is_term(term: Sequence, n_motions: int, limits: ModelLimits) -> bool:
    return len(term) == n_motions and all(_is_level(level, limits) for level in term)


def _are_numbers(values: np.ndarray, kinds: str) -> bool:
    """Return whether an array has finite numbers of these kinds, and has some."""
    whole = values.dtype.kind in kinds and values.size > 0
    return bool(whole and np.isfinite(values).all())
