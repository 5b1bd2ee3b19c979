"""Numbers of nested settings, changed one at a time."""

import math
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import reduce

FACTORS = {"x1.5": 1.5, "/1.5": 1 / 1.5}


@dataclass(frozen=True)
class Variation:
    """A number at a path of nested settings, and what it is changed to."""

    path: tuple[str, ...]
    value: float
    direction: str
    new: float

    @property
    def name(self):
        """The path with dots."""
        return ".".join(self.path)


def variations(settings, parts=((),)):
    """Yield all changes of the numbers in some parts, which are paths themselves."""
    for part in parts:
        for path, value in numbers(reduce(getattr, part, settings), part):
            for direction, factor in FACTORS.items():
                new = scaled(value, factor)
                # Zeros and infinities have nowhere to go, nor has a count of 1 down.
                if math.isfinite(value) and new != value:
                    yield Variation(path, value, direction, new)


def numbers(settings, path=()):
    """Yield path and value of every number, depth first."""
    for field in fields(settings):
        value = getattr(settings, field.name)
        if is_dataclass(value):
            yield from numbers(value, (*path, field.name))
        # True and False are integers in Python, and no numbers here.
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield (*path, field.name), value


def scaled(value, factor):
    """Return a number times the factor: a count is rounded, a share at most 1."""
    if isinstance(value, int):
        return max(1, round(value * factor)) if value > 0 else value
    return min(value * factor, 1.0) if 0 < value < 1 else value * factor


def changed(settings, path, value):
    """Return the settings with the number at the path replaced."""
    name, *rest = path
    inner = changed(getattr(settings, name), rest, value) if rest else value
    return replace(settings, **{name: inner})
