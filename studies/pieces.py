"""Pieces of a study, done by workers."""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from manifactor._support.workers import Processes, Workers


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


def of_seeds(
    record: Callable[[int], dict],
    n_problems: int,
    *,
    known: Collection[int] = (),
    workers: Workers = Processes(),
) -> Iterator[dict]:
    """Yield the record of each random problem that is not known, as they are done."""
    drawn = [(seed,) for seed in range(n_problems) if seed not in known]
    return results_as_done(workers, record, drawn)


def seeds(n_problems: int) -> list[dict]:
    """Return the entries that identify the record of each random problem, in their order."""
    return [{"seed": seed} for seed in range(n_problems)]
