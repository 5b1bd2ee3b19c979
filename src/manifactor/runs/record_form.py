"""Forms of what files hold: that of run.json, and the check of any.

A form is a type, as fields of records declare theirs; a list of one form, for lists of such items;
an object by its entries, of which those with a "?" may be missing and others may be there, or by
`str` for all; a tuple of forms, one of which must fit; or `Checked`.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import zip_longest
from numbers import Real
from types import NoneType, UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin


class Checked(NamedTuple):
    """A form whose values pass a test."""

    form: Any
    test: Callable[[Any], object]


# A name is one line, which stands in headings.
FACTOR_NAME = r"^[^\x00-\x1f\x7f]{0,60}$"
# No table has more rows or columns.
COUNT = Checked(int, lambda count: 0 <= count <= 2**53)
POSITIVE = Checked(int, lambda count: 0 < count <= 2**53)
ANGLES = (Checked([float], lambda angles: len(angles) == 2), None)


def _are_in_line(columns: Mapping[str, Any]) -> bool:
    """Return whether all that is recorded of columns is of the same ones."""
    numbers = columns["numbers"]
    used = columns["total"] if numbers is None else len(numbers)
    given = [columns["names"], columns["mean"], columns["scale"]]
    within = max(numbers or [0]) < columns["total"]
    return within and all(entries is None or len(entries) == used for entries in given)


COLUMNS = {
    "total": POSITIVE,
    "numbers": ([COUNT], None),
    "names": ([str], None),
    "mean": ([float], None),
    "scale": ([float], None),
    "image?": ([POSITIVE], None),
}
CONFOUNDER = {"name": str, "factor": int, "r2": float, "p": float, "meaning": str}
MOTION = {"topology": str, "shown": float, "blind": float, "blind_particles": float}
RUN_RECORD: dict[str, Any] = {
    "n_samples": COUNT,
    "verdict": str,
    "factors": [{"topology": str}],
    "versions": dict[str, Any],
    **dict.fromkeys(("input?", "command?", "particles?", "fingerprint?"), str),
    **dict.fromkeys(("reproduce?", "input_changed?"), str),
    "parts?": int,
    "images?": dict[str, Any],
    "further?": [str],
    "names?": [Checked(str, re.compile(FACTOR_NAME).fullmatch)],
    "confounders?": [{**CONFOUNDER, "imbalance?": (float, None)}],
    "choices?": {str: {"why": str}},
    "components?": ({"text": str, "signal_to_noise?": [float], "weights?": [float]}, None),
    "columns?": (Checked(COLUMNS, _are_in_line), None),
    "particle_choice?": (
        {
            "datadir?": (str, None),
            "pixel_size?": (Checked(float, lambda size: size > 0), None),
            "classes?": [int],
            "optics_groups?": [int],
        },
        None,
    ),
    "all_views?": {
        "motions?": [{**MOTION, "median_deviation": float, "axis?": ANGLES}],
        **dict.fromkeys(("headline?", "found?", "advice?"), str),
    },
    "view?": ANGLES,
}


def misfit(value: Any, form: Any, name: str = "") -> str:
    """Say which part of a value does not have a form; an empty text if all do."""
    if value is ... or form is ...:
        return f"{name} is missing" if value is ... else f"{name} is one too many"
    if isinstance(form, Checked):
        problem = misfit(value, form.form, name)
        return problem if problem or form.test(value) else f"{name} has an impossible value"
    if get_origin(form) in (Union, UnionType):
        form = get_args(form)
    if isinstance(form, tuple):
        misfits = [misfit(value, one, name) for one in form]
        # The longest is that of the form which fits best: it names a part.
        return "" if "" in misfits else max(misfits, key=len)
    if not _is_a(value, form):
        return f"{name} has another type"
    parts = _parts(value, form)
    inside = (misfit(item, inner, f"{name}.{key}".lstrip(".")) for key, item, inner in parts)
    return next(filter(None, inside), "")


def _is_a(value: Any, form: Any) -> bool:
    """Return whether a value is of a class; whole numbers are floats, truth values are not."""
    if form in (int, float):
        # Larger whole numbers overflow when they are divided.
        too_large = isinstance(value, int) and abs(value) > 2**1000
        number = isinstance(value, int if form is int else Real)
        return number and not too_large and not isinstance(value, bool)
    kind = type(form) if isinstance(form, dict | list) else get_origin(form) or form or NoneType
    return kind is Any or isinstance(value, kind)


def _parts(value: Any, form: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Yield the name, value and form of each part; ``...`` for what there is none of."""
    inner = form if isinstance(form, list) else get_args(form)
    if isinstance(form, dict):
        if str in form:
            form = dict.fromkeys(value, form[str])
        for key, kind in form.items():
            known = key.removesuffix("?")
            if known in value or known == key:
                yield known, value.get(known, ...), kind
    elif isinstance(value, Mapping) and inner:
        for key, item in value.items():
            yield from ((key, key, inner[0]), (key, item, inner[1]))
    elif inner:
        fixed = isinstance(value, tuple) and inner[-1] is not ...
        pairs = zip_longest(value, inner if fixed else inner[:1] * len(value), fillvalue=...)
        yield from ((index, *pair) for index, pair in enumerate(pairs))
