"""The form of run.json: which entries it has, and of which types."""

import re
from typing import Annotated, Any, Required, TypedDict

from manifactor._support.schema import misfit

# No table has more rows or columns.
MOST = 2**53
# A name is one line, which stands in headings.
FACTOR_NAME = r"^[^\x00-\x1f\x7f]{0,60}$"

Count = Annotated[int, lambda count: 0 <= count <= MOST]
Positive = Annotated[int, lambda count: 0 < count <= MOST]
Angles = Annotated[list[float], lambda angles: len(angles) == 2] | None


class _Factor(TypedDict):
    topology: str


class _Test(TypedDict):
    name: str
    passed: bool
    meaning: str


class _Confounder(TypedDict, total=False):
    name: Required[str]
    factor: Required[int]
    r2: Required[float]
    p: Required[float]
    meaning: Required[str]
    imbalance: float | None


class _Choice(TypedDict):
    why: str


class _Components(TypedDict, total=False):
    text: Required[str]
    signal_to_noise: list[float]
    weights: list[float]


class _Columns(TypedDict, total=False):
    total: Required[Positive]
    numbers: Required[list[Count] | None]
    names: Required[list[str] | None]
    mean: Required[list[float] | None]
    scale: Required[list[float] | None]
    image: list[Positive] | None


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


class _Motion(TypedDict, total=False):
    topology: Required[str]
    shown: Required[float]
    blind: Required[float]
    blind_particles: Required[float]
    median_deviation: Required[float]
    axis: Angles


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
    problem = misfit(record, RunRecord)
    if problem:
        raise ValueError(problem)
