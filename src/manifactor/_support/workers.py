"""Who does independent pieces of work: this process, or others."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol


def _ignored(fraction: float) -> None:
    """Report to nobody."""


class Workers(Protocol):
    """Workers that independent pieces of work can be mapped over.

    A piece is a function of a module, which other processes can import, and its
    arguments. Results do not depend on who does the work.
    """

    @property
    def count(self) -> int:
        """How many pieces are done at the same time."""

    def map(
        self,
        work: Callable[..., Any],
        jobs: Sequence[tuple],
        *,
        report: Callable[[float], None] = _ignored,
    ) -> Iterator[Any]:
        """Yield ``work(*job)`` of each job, in input order.

        The first error of a piece ends the iteration; pieces that are not done then
        are cancelled. `report` is called with the fraction of the jobs that is done.
        """


class Here:
    """This process: one piece after the other, each on all cores."""

    count = 1

    def map(
        self,
        work: Callable[..., Any],
        jobs: Sequence[tuple],
        *,
        report: Callable[[float], None] = _ignored,
    ) -> Iterator[Any]:
        """Yield ``work(*job)`` of each job, in input order."""
        for done, job in enumerate(jobs, start=1):
            yield work(*job)
            report(done / len(jobs))
