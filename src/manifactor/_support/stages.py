"""Stages of a computation: remembered, timed, and reported to a callback."""

import hashlib
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from manifactor._support.threads import map_threads
from manifactor._support.workers import Here, Jobs, Report, Work, Workers, ignored

log = logging.getLogger("manifactor")

Result = TypeVar("Result")
Callback = Callable[[str, float], None]


class Stages:
    """Results of finished stages, each under a key of everything it depends on."""

    def __init__(
        self, kept: dict[str, tuple[str, Any]] | None = None, *, keeps: bool = True
    ) -> None:
        """Remember the results of an earlier computation; without `keeps`, take time only."""
        self.kept, self.keeps = dict(kept or {}), keeps
        self.timings: dict[str, float] = {}  # seconds of stages computed since `start`
        self._callback: Callback | None = None
        self._seed: int | None = None

    def start(self, callback: Callback | None = None, seed: int | None = None) -> "Stages":
        """Begin a computation with the seed of stages that draw random numbers.

        With None, a kept result serves whatever numbers it was drawn with.
        """
        self.timings, self._callback, self._seed = {}, callback, seed
        return self

    def random_key(self, *parts: Any) -> str:
        """Return the key of a stage that depends on `parts` and on the seed."""
        return fingerprint(self._seed, *parts)

    def recall(self, name: str, key: str, make: Callable[[], Result]) -> Result:
        """Return the kept result if its key is the same, else make and keep one."""
        if not self.keeps:
            return make()
        known, result = self.kept.get(name, (None, None))  # type: tuple[Any, Any]
        if known == key:
            log.info("%s: kept from the last fit", name)
            return result
        result = make()
        self.kept[name] = (key, result)
        return result

    def pieces(
        self,
        name: str,
        key: str,
        work: Work,
        jobs: Jobs,
        *,
        workers: Workers = Here(),
        report: Report = ignored,
    ) -> Iterator[Any]:
        """Yield ``work(*job)`` of each job, in input order; stages on disk keep each piece."""
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
        if self._callback is not None:
            self._callback(name, fraction)


def fingerprint(*parts: Any) -> str:
    """Return a short text that differs where arrays, sparse matrices or settings do."""
    digest = hashlib.blake2b(digest_size=16)
    for whole in parts:
        sparse = sp.issparse(whole)
        for part in (whole.data, whole.indices, whole.indptr) if sparse else (whole,):
            if isinstance(part, np.ndarray):
                digest.update(f"{part.dtype} {part.shape} ".encode() + b"".join(_digests(part)))
            else:
                digest.update(f"{part!r}; ".encode())
    return digest.hexdigest()


def _digests(array: np.ndarray) -> list[bytes]:
    """Return digests of parts of an array, on all cores; a memory map is never copied whole."""
    n_rows = max(1, 2**22 * len(array) // max(1, array.size))

    def digest(start: int) -> bytes:
        rows = np.ascontiguousarray(array[start : start + n_rows])
        return hashlib.blake2b(rows.data, digest_size=16).digest()

    return map_threads(digest, range(0, len(array), n_rows))
