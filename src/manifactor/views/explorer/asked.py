"""What a page asks for, checked: whatever JSON brings, only known columns and finite numbers come out."""

from collections.abc import Mapping, Sequence
from typing import Any

from manifactor.views.explorer.behind import Look
from manifactor.views.explorer.columns import Column
from manifactor.views.explorer.scene import MODES, MOST_CORNERS, Scene

MOST_CONDITIONS = 50
LARGE = 1e100  # numbers whose products are still numbers


def near(body: Any, scene: Scene) -> dict:
    """The arguments of `Scene.near`."""
    about = scene.about()
    limits = [factor["limits"] for factor in about["factors"]]
    n_factors = len(limits)
    at = _listed("at", _part(body, "at"), n_factors, n_factors)
    return {
        "at": [_place(where, own) for where, own in zip(at, limits, strict=True)],
        "factor": _whole("factor", body.get("factor", 0), 0, n_factors - 1),
        "mode": _known("mode", body.get("mode", MODES[0]), MODES),
        "count": _whole(
            "count", body.get("count", scene.behind.count), 1, about["most_averaged"]
        ),
        "look": Look(
            _whole("axis", body.get("axis", 0), 0, 2),
            min(max(_number("depth", body.get("depth", 0.5)), 0), 1),
        ),
    }


def _place(where: Any, limits: Sequence[Sequence[float]]) -> list[float]:
    """A place on a factor, inside its limits."""
    numbers = [
        _number("at", value) for value in _listed("at", where, len(limits), len(limits))
    ]
    return [
        min(max(number, low), high)
        for number, (low, high) in zip(numbers, limits, strict=True)
    ]


def conditions(body: Any, columns: Mapping[str, Column]) -> list[dict]:
    """The conditions of a selection, as `columns.inside` takes them."""
    asked = _listed("conditions", _part(body, "conditions"), 0, MOST_CONDITIONS)
    return [
        _lasso(each, columns) if "polygon" in _object(each) else _range(each, columns)
        for each in asked
    ]


def suffix(body: Any, scene: Scene) -> str:
    """The ending of the file to write."""
    return _known("suffix", _part(body, "suffix"), scene.exports())


def _lasso(each: Mapping, columns: Mapping[str, Column]) -> dict:
    corners = _listed("polygon", each["polygon"], 3, MOST_CORNERS)
    polygon = [
        [_number("polygon", value) for value in _listed("polygon", corner, 2, 2)]
        for corner in corners
    ]
    names = {axis: _known(axis, _part(each, axis), columns) for axis in ("x", "y")}
    return {**names, "polygon": polygon}


def _range(each: Mapping, columns: Mapping[str, Column]) -> dict:
    name = _known("column", _part(each, "column"), columns)
    low, high = (_number(end, _part(each, end)) for end in ("low", "high"))
    if columns[name].cyclic and not (-360 <= low <= 360 and -360 <= high <= 360):
        raise ValueError(
            f"a range of degrees must lie in [-360, 360]; got {low:g} to {high:g}."
        )
    return {"column": name, "low": low, "high": high}


def _object(value: Any) -> Mapping:
    if not isinstance(value, dict):
        raise ValueError(
            f"a request must be a JSON object; got {type(value).__name__}."
        )
    return value


def _part(body: Any, name: str) -> Any:
    if name not in _object(body):
        raise ValueError(f"`{name}` must be given; it is missing.")
    return body[name]


def _listed(name: str, value: Any, least: int, most: int) -> list:
    if not isinstance(value, list) or not least <= len(value) <= most:
        size = f"{len(value)}" if isinstance(value, list) else type(value).__name__
        raise ValueError(
            f"`{name}` must be a list of {least} to {most} entries; got {size}."
        )
    return value


def _number(name: str, value: Any) -> float:
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not abs(value) < LARGE
    ):  # nor nan
        raise ValueError(f"`{name}` must hold finite numbers; got {value!r:.40}.")
    return float(value)


def _whole(name: str, value: Any, low: int, high: int) -> int:
    if (
        isinstance(value, bool)
        or not isinstance(value, int)
        or not low <= value <= high
    ):
        raise ValueError(
            f"`{name}` must be a whole number in [{low}, {high}]; got {value!r:.40}."
        )
    return value


def _known(name: str, value: Any, choices: Mapping[str, Any] | Sequence[str]) -> str:
    if not isinstance(value, str) or value not in choices:
        raise ValueError(
            f"`{name}` must be one of {', '.join(list(choices)[:20])}; got {value!r:.40}."
        )
    return value
