"""What a caller may set of a factorization."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from manifactor._support.parameters import (
    Choice,
    require_choice,
    require_count,
    require_indices,
    require_number,
)
from manifactor.judging.table import OF_SAMPLES
from manifactor.models.peeling.peeling import MAX_FACTORS

METHOD_NAMES = ("gradients", "sum", "deflation", "triplets")
# "deflation" is an earlier name of "sum".
SUM_NAMES = ("sum", "deflation")
# The senses that a caller may ask for; "dynamics" follows from moves that are given.
SENSE_NAMES = OF_SAMPLES


@dataclass(frozen=True)
class FactoringSettings:
    """What to look for, and by which method: the caller's parameters."""

    n_factors: int | str = "auto"
    method: str = "gradients"
    # For "triplets": how far the eigenvalue of a product may lie from the sum of its parts'. "auto"
    # is a tenth of the product's eigenvalue.
    eigenvalue_tolerance: float | str = "auto"
    # For "triplets": least absolute cosine between a function and a product of others. "auto" is
    # .7.
    similarity_threshold: float | str = "auto"
    # For "triplets": indices of functions that are not to be put into a factor
    exclude: Sequence[int] = ()
    # For "gradients": the sense of a product to look for. "auto" looks at the geometry first, and
    # further where that does not show a product.
    sense: str = "auto"

    @property
    def n_asked(self) -> int | None:
        """Number of factors that the caller asked for, None for "auto"."""
        return None if self.n_factors == "auto" else int(self.n_factors)

    @property
    def choices(self) -> dict[str, Choice]:
        """What the method chooses in place of parameters of the diffusion, and why."""
        if self.method not in SUM_NAMES:
            return {}
        # A sum needs no functions of the samples; reports show them.
        why = "a sum is found in the samples, not in their functions"
        return {"functions": Choice(9, why)}


def is_auto(value: object) -> bool:
    """Return whether the caller leaves a setting to the program."""
    return isinstance(value, str) and value == "auto"


# The method that each of these parameters is for.
USED_BY = {
    "sense": "gradients",
    "eigenvalue_tolerance": "triplets",
    "similarity_threshold": "triplets",
    "exclude": "triplets",
}


def require_factoring(settings: FactoringSettings, *, n_functions: int | None = None) -> None:
    """Refuse settings that do not make sense, or that the method would ignore."""
    # Values first, then whether the method uses them: a wrong value is the clearer message.
    require_choice("method", settings.method, sorted(METHOD_NAMES))
    require_choice("sense", settings.sense, ["auto", *SENSE_NAMES])
    if not is_auto(settings.n_factors):
        require_count("n_factors", settings.n_factors, low=1, high=MAX_FACTORS)
    if not is_auto(settings.eigenvalue_tolerance):
        require_number("eigenvalue_tolerance", settings.eigenvalue_tolerance, above=0)
    if not is_auto(settings.similarity_threshold):
        require_number("similarity_threshold", settings.similarity_threshold, low=0, high=1)
    # While the number of functions is not known, any index may turn out to be one.
    last = 2**31 if n_functions is None else n_functions - 1
    require_indices("exclude", settings.exclude, low=1, high=last, of="functions")
    for name, method in USED_BY.items():
        value = getattr(settings, name)
        is_default = is_auto(value) or not np.size(value)
        if settings.method != method and not is_default:
            raise ValueError(
                f"`{name}` is for `method={method!r}`; got {value!r} with {settings.method!r}. "
                "Leave it out."
            )
