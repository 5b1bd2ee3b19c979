"""What was chosen automatically, and why."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

GIVEN = "set by the caller"


@dataclass(frozen=True)
class Choice:
    """A value and the reason for it, as one phrase.

    Attributes
    ----------
    value : object
    why : str
        Begins in lower case and has no full stop; `GIVEN` where the caller decided.

    Examples
    --------
    >>> Choice("kd_tree", "a tree is fastest in few dimensions")
    Choice(value='kd_tree', why='a tree is fastest in few dimensions')
    """

    value: Any
    why: str

    @property
    def automatic(self) -> bool:
        """Whether the program decided."""
        return self.why != GIVEN


def given(value: Any) -> Choice:
    """A choice that the caller made."""
    return Choice(value, GIVEN)


def choices_as_json(choices: Mapping[str, Choice]) -> dict[str, dict]:
    """Return choices as run.json has them."""
    return {
        name: {"value": _plain(choice.value), "why": choice.why} for name, choice in choices.items()
    }


def _plain(value):
    """Return a value as JSON knows it; records become their names in words."""
    if isinstance(value, np.generic):
        return value.item()
    known = value is None or isinstance(value, str | int | float | bool)
    return value if known else str(value)
