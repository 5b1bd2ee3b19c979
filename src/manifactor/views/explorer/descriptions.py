"""A run in JSON: what the page needs to know of factors, columns and previews."""

from dataclasses import asdict

import numpy as np

from manifactor.runs.places import Place
from manifactor.views.explorer.columns import Column
from manifactor.views.explorer.previews import Preview
from manifactor.views.markup import scale_bar


def belongs_to(name: str, number: int) -> bool:
    """Return whether a column is one of a factor, counted from 1."""
    return name == f"factor{number}" or name.startswith(f"factor{number}_")


def extent(place: Place) -> dict:
    """Return the limits of a factor's displayed coordinates, and where to start.

    In the middle; at a sample where a surface may have none there.
    """
    if place.coordinate.ndim == 1:
        # The whole range, not that of the samples: places between them exist.
        high = 360 if place.topology == "circle" else 1
        return {"limits": [[0, high]], "start": [high / 2]}
    low, high = place.coordinate.min(axis=0), place.coordinate.max(axis=0)
    limits = np.column_stack([low, high])
    return {"limits": limits.tolist(), "start": place.coordinate[0].tolist()}


def displayed_deviations(place: Place, rows: np.ndarray) -> list[float] | None:
    """Return the displayed deviations of samples, None if they are unknown."""
    deviation = place.displayed_deviation
    return None if deviation is None else np.round(deviation[rows], 4).tolist()


def described_preview(preview: Preview) -> dict:
    """Return what the page needs to show samples."""
    width = getattr(preview, "width", None)
    return {
        "kind": preview.kind,
        "count": preview.count,
        "why": preview.why,
        "limits": getattr(preview, "limits", None),
        "bar": asdict(scale_bar(width)) if width else None,
        "bars": getattr(preview, "bars", {}),
        "views": getattr(preview, "views", None),
        "sources": getattr(preview, "sources", {}),
    }


def described_column(column: Column) -> dict:
    """Return what the page needs to list a column."""
    low, high = column.limits()
    return {
        "label": column.label,
        "group": column.group,
        "cyclic": column.cyclic,
        "low": low,
        "high": high,
    }
