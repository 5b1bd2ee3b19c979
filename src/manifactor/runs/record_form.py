"""Types of what files hold: those of run.json, and the check of any.

An object of JSON is declared by a TypedDict, and may have further entries.
``Annotated[type, test]`` declares values that pass a test.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from numbers import Real
from types import UnionType
from typing import (
    Annotated,
    Any,
    NotRequired,
    Required,
    TypedDict,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

# A name is one line, which stands in headings.
FACTOR_NAME = r"^[^\x00-\x1f\x7f]{0,60}$"

# No table has more rows or columns.
Count = Annotated[int, lambda count: 0 <= count <= 2**53]
Positive = Annotated[int, lambda count: 0 < count <= 2**53]
Angles = Annotated[list[float], lambda angles: len(angles) == 2] | None


class _Factor(TypedDict):
    topology: str


class _Choice(TypedDict):
    why: str


class _Test(TypedDict):
    name: str
    passed: bool
    meaning: str


class _Confounder(TypedDict):
    name: str
    factor: int
    r2: float
    p: float
    meaning: str
    imbalance: NotRequired[float | None]


class _Components(TypedDict, total=False):
    text: Required[str]
    signal_to_noise: list[float]
    weights: list[float]


class _Columns(TypedDict):
    total: Positive
    numbers: list[Count] | None
    names: list[str] | None
    mean: list[float] | None
    scale: list[float] | None
    image: NotRequired[list[Positive] | None]


def _are_in_line(columns: _Columns) -> bool:
    """Return whether all that is recorded of columns is of the same ones."""
    numbers = columns["numbers"]
    used = columns["total"] if numbers is None else len(numbers)
    given = [columns["names"], columns["mean"], columns["scale"]]
    within = max(numbers or [0]) < columns["total"]
    return within and all(entries is None or len(entries) == used for entries in given)


class _ParticleChoice(TypedDict, total=False):
    datadir: str | None
    pixel_size: Annotated[float, lambda size: size > 0] | None
    classes: list[int]
    optics_groups: list[int]


class _Motion(TypedDict):
    topology: str
    shown: float
    blind: float
    blind_particles: float
    median_deviation: float
    axis: NotRequired[Angles]


class _AllViews(TypedDict, total=False):
    motions: list[_Motion]
    headline: str
    found: str
    advice: str


class RunRecord(TypedDict, total=False):
    """All of run.json."""

    n_samples: Required[Count]
    verdict: Required[str]
    factors: Required[list[_Factor]]
    versions: Required[dict[str, Any]]
    input: str
    further: list[str]
    names: list[Annotated[str, re.compile(FACTOR_NAME).fullmatch]]
    command: str
    particles: str
    fingerprint: str
    reproduce: str
    input_changed: str
    n_fitted: int
    parts: int
    images: dict[str, Any]
    arguments: dict[str, Any]
    neighbors: dict[str, Any]
    seconds: dict[str, Any]
    leakage: list[Any]
    tests: list[_Test]
    confounders: list[_Confounder]
    choices: dict[str, _Choice]
    components: _Components | None
    columns: Annotated[_Columns, _are_in_line] | None
    particle_choice: _ParticleChoice | None
    all_views: _AllViews
    view: Angles


def require_form(record: object) -> None:
    """Refuse a record whose entries are not those of run.json."""
    if problem := misfit(record, RunRecord):
        raise ValueError(problem)


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
        problem = misfit(value, kind, name)
        return problem if problem or test(value) else f"{name} has an impossible value"
    if not _is_a(value, dict if is_typeddict(hint) else outer or hint):
        return f"{name} has another type"
    parts = _parts(value, hint)
    inside = (misfit(item, kind, f"{name}.{key}".lstrip(".")) for key, item, kind in parts)
    return next(filter(None, inside), "")


def _is_a(value: Any, kind: Any) -> bool:
    """Return whether a value is of a class; whole numbers are floats, truth values are not."""
    if kind in (int, float):
        # Larger whole numbers overflow when they are divided.
        too_large = isinstance(value, int) and abs(value) > 2**1000
        number = isinstance(value, int if kind is int else Real)
        return number and not too_large and not isinstance(value, bool)
    return kind is Any or isinstance(value, kind)


def _parts(value: Any, hint: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Yield the name, value and type of each part; ``...`` for what there is none of."""
    inner = get_args(hint)
    if is_typeddict(hint):
        for key, kind in get_type_hints(hint, include_extras=True).items():
            if key in value or key in hint.__required_keys__:
                kind = get_args(kind)[0] if get_origin(kind) in (Required, NotRequired) else kind
                yield key, value.get(key, ...), kind
    elif isinstance(value, Mapping) and inner:
        for key, item in value.items():
            yield from ((key, key, inner[0]), (key, item, inner[1]))
    elif inner:
        fixed = isinstance(value, tuple) and inner[-1] is not ...
        pairs = zip_longest(value, inner if fixed else inner[:1] * len(value), fillvalue=...)
        yield from ((index, *pair) for index, pair in enumerate(pairs))
