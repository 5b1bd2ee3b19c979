"""Pieces of a study, done by workers."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from manifactor._support.workers import Workers


def results_as_done(
    workers: Workers, work: Callable[..., Any], jobs: Sequence[tuple]
) -> Iterator[Any]:
    """Yield ``work(*job)`` of each job as soon as it is done, in any order."""
    errors = []
    for found in workers.outcomes(work, jobs):
        if found.error is None:
            yield found.result
        else:
            errors.append(found.error)
    if errors:
        raise errors[0]
