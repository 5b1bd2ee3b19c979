"""Validation of requests: only known columns and finite numbers get through."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from manifactor.views.explorer.columns import Column
from manifactor.views.explorer.previews import Look
from manifactor.views.explorer.scene import MODES, Scene


@dataclass(frozen=True)
class RequestLimits:
    """Limits of what a request may hold."""

    most_conditions: int = 50

    # Larger numbers have products that overflow.
    largest_number: float = 1e100


def place(body: Any, scene: Scene) -> dict:
    """Return the arguments of `Scene.near`, all of them hashable."""
    about = scene.about()
    limits = [factor["limits"] for factor in about["factors"]]
    n_factors, most = len(limits), about["most_averaged"]
    given = _listed("at", _entry(body, "at"), n_factors, n_factors)
    pairs = zip(given, limits, strict=True)
    factor = body.get("factor", 0)
    mode = body.get("mode", MODES[0])
    count = body.get("count", scene.preview.count)
    axis = _whole("axis", body.get("axis", 0), 0, 2)
    depth = _number("depth", body.get("depth", 0.5))
    return {
        "at": tuple(_inside(where, own) for where, own in pairs),
        "factor": _whole("factor", factor, 0, n_factors - 1),
        "mode": _known("mode", mode, MODES),
        "count": _whole("count", count, 1, most),
        # Rounding in a link may move a number just outside.
        "look": Look(
            axis,
            min(max(depth, 0), 1),
            view=_view(body),
            source=_source(body, about["preview"]["sources"]),
        ),
    }


def _source(body: Any, sources: Mapping[str, str]) -> str:
    """Return what is shown of particles of all views, by default the first."""
    if not sources:
        return ""
    return _known("source", body.get("source", next(iter(sources))), sources)


def _view(body: Any) -> tuple[float, float]:
    """Return rot and tilt of a direction, by default that along the axis."""
    given = _listed("view", body.get("view", [0, 0]), 2, 2)
    rot, tilt = (_number("view", value) for value in given)
    return rot % 360, min(max(tilt, 0.0), 180.0)


def _inside(where: Any, limits: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """Return a place on a factor, moved inside its limits."""
    given = _listed("at", where, len(limits), len(limits))
    # A link may be of an earlier run, whose factor reached further.
    numbers = [_number("at", value) for value in given]
    pairs = zip(numbers, limits, strict=True)
    return tuple(min(max(number, low), high) for number, (low, high) in pairs)


def conditions(body: Any, scene: Scene, *, limits: RequestLimits = RequestLimits()) -> list[dict]:
    """Return the conditions of a selection, as `columns.inside` takes them."""
    given = _entry(body, "conditions")
    listed = _listed("conditions", given, 0, limits.most_conditions)
    return [_condition(_object(each), scene) for each in listed]


def _condition(each: Mapping, scene: Scene) -> dict:
    if "polygon" in each:
        return _lasso(each, scene.columns, scene.settings.most_corners)
    return _range(each, scene.columns)


def _lasso(each: Mapping, columns: Mapping[str, Column], most_corners: int) -> dict:
    corners = _listed("polygon", each["polygon"], 3, most_corners)
    return {
        "x": _known("x", _entry(each, "x"), columns),
        "y": _known("y", _entry(each, "y"), columns),
        "polygon": [_corner(corner) for corner in corners],
    }


def _corner(corner: Any) -> list[float]:
    x, y = _listed("polygon", corner, 2, 2)
    return [_number("polygon", x), _number("polygon", y)]


def _range(each: Mapping, columns: Mapping[str, Column]) -> dict:
    name = _known("column", _entry(each, "column"), columns)
    low = _number("low", _entry(each, "low"))
    high = _number("high", _entry(each, "high"))
    # Otherwise 1000 would silently be 280.
    degrees = -360 <= low <= 360 and -360 <= high <= 360
    if columns[name].cyclic and not degrees:
        raise ValueError(f"a range of degrees must lie in [-360, 360]; got {low:g} to {high:g}.")
    return {"column": name, "low": low, "high": high}


def suffix(body: Any, scene: Scene) -> str:
    """Return the suffix of the file to write."""
    # Never a path: the server makes the name.
    return _known("suffix", _entry(body, "suffix"), scene.exports())


def _object(value: Any) -> Mapping:
    if not isinstance(value, dict):
        kind = type(value).__name__
        raise ValueError(f"a request must be a JSON object; got {kind}.")
    return value


def _entry(body: Any, name: str) -> Any:
    if name not in _object(body):
        raise ValueError(f"`{name}` must be given; it is missing.")
    return body[name]


def _listed(name: str, value: Any, least: int, most: int) -> list:
    if not isinstance(value, list):
        size = type(value).__name__
    elif least <= len(value) <= most:
        return value
    else:
        size = str(len(value))
    raise ValueError(f"`{name}` must be a list of {least} to {most} entries; got {size}.")


def _number(name: str, value: Any, *, limits: RequestLimits = RequestLimits()) -> float:
    # JSON's true is an int for Python.
    number = isinstance(value, int | float) and not isinstance(value, bool)
    # Written so that nan fails, too.
    if not (number and abs(value) < limits.largest_number):
        raise ValueError(f"`{name}` must hold finite numbers; got {value!r:.40}.")
    return float(value)


def _whole(name: str, value: Any, low: int, high: int) -> int:
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not (whole and low <= value <= high):
        raise ValueError(f"`{name}` must be a whole number in [{low}, {high}]; got {value!r:.40}.")
    return value


def _known(name: str, value: Any, choices: Mapping[str, Any] | Sequence[str]) -> str:
    if not isinstance(value, str) or value not in choices:
        # A table may have thousands of columns.
        first = ", ".join(list(choices)[:20])
        raise ValueError(f"`{name}` must be one of {first}; got {value!r:.40}.")
    return value
