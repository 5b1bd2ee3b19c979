"""Whether what a file holds has the types that a record declares.

An object of JSON is declared by a TypedDict, and may have further entries.
``Annotated[type, test]`` declares values that pass a test.
"""

from collections.abc import Iterator, Mapping
from itertools import zip_longest
from numbers import Real
from types import UnionType
from typing import (
    Annotated,
    Any,
    Required,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

# Larger whole numbers overflow when they are divided.
LARGEST = 2**1000


def misfit(value: Any, hint: Any, name: str = "") -> str:
    """Say which part of a value does not have its declared type; an empty text if all do."""
    outer, inner = get_origin(hint), get_args(hint)
    if value is ... or hint is ...:
        return f"{name} is missing" if value is ... else f"{name} is one too many"
    if outer in (Union, UnionType):
        misfits = [misfit(value, kind, name) for kind in inner]
        # The longest is that of the type which fits best: it names a part.
        return "" if "" in misfits else max(misfits, key=len)
    if outer is Annotated:
        kind, test = inner
        impossible = f"{name} has an impossible value"
        return misfit(value, kind, name) or ("" if test(value) else impossible)
    if not _is_a(value, dict if is_typeddict(hint) else outer or hint):
        return f"{name} has another type"
    parts = _parts(value, hint)
    inside = (misfit(item, kind, f"{name}.{key}".lstrip(".")) for key, item, kind in parts)
    return next(filter(None, inside), "")


def _is_a(value: Any, kind: Any) -> bool:
    """Return whether a value is of a class; whole numbers are floats, truth values are not."""
    if kind in (int, float):
        too_large = isinstance(value, int) and abs(value) > LARGEST
        number = isinstance(value, int if kind is int else Real)
        return number and not too_large and not isinstance(value, bool)
    return kind is Any or isinstance(value, kind)


def _parts(value: Any, hint: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Yield the name, value and type of each part; ``...`` for what there is none of."""
    inner = get_args(hint)
    if is_typeddict(hint):
        for key, kind in get_type_hints(hint, include_extras=True).items():
            if key in value or key in hint.__required_keys__:
                kind = get_args(kind)[0] if get_origin(kind) is Required else kind
                yield key, value.get(key, ...), kind
    elif isinstance(value, Mapping) and inner:
        for key, item in value.items():
            yield from ((key, key, inner[0]), (key, item, inner[1]))
    elif inner:
        fixed = isinstance(value, tuple) and inner[-1] is not ...
        pairs = zip_longest(value, inner if fixed else inner[:1] * len(value), fillvalue=...)
        yield from ((index, *pair) for index, pair in enumerate(pairs))
