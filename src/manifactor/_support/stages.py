"""Stages of a computation: timed, and reported to a callback."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from manifactor._support.workers import Here, Jobs, Report, Work, Workers, ignored

log = logging.getLogger("manifactor")

Result = TypeVar("Result")
Callback = Callable[[str, float], None]


class Stages:
    """The times of a computation's stages, which may keep finished pieces of them on disk."""

    def __init__(self, callback: Callback | None = None) -> None:
        """Remember whom to tell of progress."""
        self.callback = callback
        self.timings: dict[str, float] = {}  # seconds

    def once(self, name: str, make: Callable[[], Result]) -> Result:
        """Return the result of a stage in one piece."""
        (result,) = self.pieces(name, make, [()])
        return result

    def pieces(
        self,
        name: str,
        work: Work,
        jobs: Jobs,
        *,
        workers: Workers = Here(),
        report: Report = ignored,
    ) -> Iterator[Any]:
        """Yield ``work(*job)`` of each job, in input order."""
        return workers.map(work, jobs, report=report)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Time a stage, log it, and report its start and end."""
        self.report(name, 0.0)
        begin = time.perf_counter()
        yield
        self.timings[name] = time.perf_counter() - begin
        log.info("%s: %.2f s", name, self.timings[name])
        self.report(name, 1.0)

    def report(self, name: str, fraction: float) -> None:
        """Tell the callback which fraction of a stage is done."""
        if self.callback is not None:
            self.callback(name, fraction)
