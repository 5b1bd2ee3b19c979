"""What was chosen automatically, and why."""

from dataclasses import dataclass
from typing import Any

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
