"""Settings of a factorization, and their checks."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from manifactor._support.parameters import (
    require_choice,
    require_count,
    require_indices,
    require_number,
)
from manifactor.factoring.gradients.peeling import MAX_FACTORS
from manifactor.factoring.judging.criteria import EvidenceSettings
from manifactor.factoring.measures.dependence import MeasureSettings
from manifactor.factoring.placement import PlacementSettings

# Names only: importing the functions here would be a circular import.
METHOD_NAMES = ("gradients", "sum", "deflation", "triplets")
# "deflation" is an earlier name of "sum".
SUM_NAMES = ("sum", "deflation")
SENSE_NAMES = ("geometry", "sum", "volume", "density")
ONLY_FOR_TRIPLETS = ("eigenvalue_tolerance", "similarity_threshold", "exclude")


@dataclass(frozen=True)
class FactoringSettings:
    """What to look for, by which method, and the settings of its algorithms."""

    n_factors: int | str = "auto"
    method: str = "gradients"  # "deflation" is an earlier name of "sum"
    # For "triplets": how far the eigenvalue of a product may lie from the sum of its parts'. "auto"
    # is a tenth of the product's eigenvalue.
    eigenvalue_tolerance: float | str = "auto"
    # For "triplets": least absolute cosine between a function and a product of others. "auto" is
    # .7.
    similarity_threshold: float | str = "auto"
    # For "triplets": indices of functions that are not to be put into a factor
    exclude: Sequence[int] = ()
    # For "gradients": the sense of a product to look for. "auto" looks at the geometry first, and
    # further where that shows no product.
    sense: str = "auto"
    measures: MeasureSettings = field(default_factory=MeasureSettings)
    evidence: EvidenceSettings = field(default_factory=EvidenceSettings)
    placement: PlacementSettings = field(default_factory=PlacementSettings)
    # An embedding takes six functions at most; more of them are for the user to see.
    one_factor_functions: int = 24  # functions that describe the data when there is one factor

    @property
    def strict(self) -> "FactoringSettings":
        """The same with the limits for a further chance to find a product."""
        limits = replace(self.evidence, leakage=self.evidence.strict_leakage)
        return replace(self, evidence=limits)

    @property
    def n_asked(self) -> int | None:
        """Number of factors that the caller asked for, None for "auto"."""
        return None if self.n_factors == "auto" else int(self.n_factors)

    @property
    def tolerance(self) -> float | None:
        """`eigenvalue_tolerance`, None for "auto"."""
        auto = is_auto(self.eigenvalue_tolerance)
        return None if auto else float(self.eigenvalue_tolerance)

    @property
    def threshold(self) -> float | None:
        """`similarity_threshold`, None for "auto"."""
        auto = is_auto(self.similarity_threshold)
        return None if auto else float(self.similarity_threshold)


def is_auto(value: object) -> bool:
    """Return whether the caller leaves a setting to the program."""
    return isinstance(value, str) and value == "auto"


def require_factoring(settings: FactoringSettings, *, n_functions: int | None = None) -> None:
    """Refuse settings that do not make sense, or that the method would ignore."""
    # Values first, then whether the method uses them: a wrong value is the clearer message.
    require_choice("method", settings.method, sorted(METHOD_NAMES))
    _require_sense(settings)
    if not is_auto(settings.n_factors):
        require_count("n_factors", settings.n_factors, low=1, high=MAX_FACTORS)
    if not is_auto(settings.eigenvalue_tolerance):
        require_number("eigenvalue_tolerance", settings.eigenvalue_tolerance, above=0)
    if not is_auto(settings.similarity_threshold):
        require_number("similarity_threshold", settings.similarity_threshold, low=0, high=1)
    _require_exclude(settings.exclude, n_functions)
    if settings.method != "triplets":
        _require_defaults(settings)


def _require_sense(settings: FactoringSettings) -> None:
    """Refuse an unknown sense, and one that the method does not know."""
    require_choice("sense", settings.sense, ["auto", *SENSE_NAMES])
    if settings.method != "gradients" and not is_auto(settings.sense):
        raise ValueError(
            f"`sense` is for `method='gradients'`; got {settings.sense!r} with "
            f"{settings.method!r}. Leave it at 'auto'."
        )


def _require_exclude(exclude: Sequence[int], n_functions: int | None) -> None:
    """Refuse what is no sequence of indices of functions."""
    # While their number is not known, any index may turn out to be one.
    last = 2**31 if n_functions is None else n_functions - 1
    require_indices("exclude", exclude, low=1, high=last, of="functions")


def _require_defaults(settings: FactoringSettings) -> None:
    """Refuse settings of the triplet method that another method would ignore."""
    defaults = FactoringSettings()
    for name in ONLY_FOR_TRIPLETS:
        value, default = getattr(settings, name), getattr(defaults, name)
        unset = len(value) == 0 if name == "exclude" else is_auto(value)
        if not unset:
            shown = tuple(value) if name == "exclude" else value
            raise ValueError(
                f"`{name}` is for `method='triplets'`; got {shown} with "
                f"{settings.method!r}. Leave it at {default!r}."
            )
