"""The form of run.json: which entries it has, and of which types.

Entries that are not named here may be anything.
"""

from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError, model_validator

# No table has more rows or columns.
Count = Annotated[int, Field(ge=0, le=2**53)]
# One line, which stands in headings.
FactorName = Annotated[str, Field(max_length=60, pattern=r"^[^\x00-\x1f\x7f]*$")]
Angles = tuple[float, float] | None


class Entry(BaseModel, strict=True, extra="allow"):
    """An object of run.json; JSON has lists where pydantic has tuples."""


class FactorEntry(Entry):
    """A factor."""

    topology: str


class TestEntry(Entry):
    """A test of the verdict."""

    name: str
    passed: bool
    meaning: str


class ConfounderEntry(Entry):
    """A column of the particles that a factor goes with."""

    name: str
    factor: int
    r2: float
    p: float
    meaning: str
    imbalance: float | None = None


class ChoiceEntry(Entry):
    """What was chosen automatically."""

    why: str


class ComponentsEntry(Entry):
    """How images or volumes became samples."""

    text: str
    signal_to_noise: list[float] = []
    weights: list[float] = []


class ColumnsEntry(Entry):
    """The columns of a table that were used, and their scale."""

    total: Annotated[int, Field(gt=0, le=2**53)]
    numbers: list[Count] | None
    names: list[str] | None
    mean: list[float] | None
    scale: list[float] | None
    image: list[Annotated[int, Field(gt=0)]] | None = None

    @model_validator(mode="after")
    def _in_line(self) -> "ColumnsEntry":
        used = self.total if self.numbers is None else len(self.numbers)
        given = [each for each in (self.names, self.mean, self.scale) if each is not None]
        within = max(self.numbers or [0]) < self.total
        if not within or any(len(each) != used for each in given):
            raise ValueError("total, numbers, names, mean and scale must be in line")
        return self


class ParticleChoiceEntry(Entry):
    """Which particles were used."""

    datadir: str | None = None
    pixel_size: Annotated[float, Field(gt=0)] | None = None
    classes: list[int] = []
    optics_groups: list[int] = []


class MotionEntry(Entry):
    """A motion of a run of all views."""

    topology: str
    shown: float
    blind: float
    blind_particles: float
    median_deviation: float
    axis: Angles = Field(None, strict=False)


class AllViewsEntry(Entry):
    """What a run of all views adds."""

    motions: list[MotionEntry] = []
    headline: str = ""
    found: str = ""
    advice: str = ""


class RunRecord(Entry):
    """All of run.json."""

    n_samples: Count
    verdict: str
    factors: list[FactorEntry]
    versions: dict[str, Any]
    input: str = ""
    further: list[str] = []
    names: list[FactorName] = []
    command: str = ""
    particles: str = ""
    fingerprint: str = ""
    reproduce: str = ""
    input_changed: str = ""
    n_fitted: int = 0
    parts: int = 0
    images: dict[str, Any] = {}
    arguments: dict[str, Any] = {}
    neighbors: dict[str, Any] = {}
    seconds: dict[str, Any] = {}
    leakage: list[Any] = []
    tests: list[TestEntry] = []
    confounders: list[ConfounderEntry] = []
    choices: dict[str, ChoiceEntry] = {}
    components: ComponentsEntry | None = None
    columns: ColumnsEntry | None = None
    particle_choice: ParticleChoiceEntry | None = None
    all_views: AllViewsEntry = Field(None)  # type: ignore[assignment]
    view: Angles = Field(None, strict=False)


def require_form(record: dict) -> None:
    """Refuse a record whose entries are not those of run.json."""
    try:
        RunRecord.model_validate(record)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"])) or "the record"
        raise ValueError(f"{where}: {first['msg']}") from None
