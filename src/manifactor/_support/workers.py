"""Processes that this one has started. Cheap to import."""

import dataclasses
import os
import pickle
import signal
import traceback
import warnings
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import active_children
from multiprocessing.process import BaseProcess
from typing import Any, Literal, Protocol

from joblib import Parallel, cpu_count, delayed
from joblib.externals.loky.process_executor import BrokenProcessPool
from joblib.parallel import LokyBackend

from manifactor._support.threads import environment, interrupts_held, start_trackers

# Windows has the second one only, which ends a process as surely there.
AT_ONCE = getattr(signal, "SIGKILL", signal.SIGTERM)


def kill_children(*, but: Collection[BaseProcess] = ()) -> None:
    """End the processes that this one has started, at once."""
    for child in active_children():
        if child not in but and child.pid is not None:
            # Not `child.kill`, which processes of joblib do not have.
            with suppress(ProcessLookupError):
                os.kill(child.pid, AT_ONCE)


# Who does independent pieces of work: this process, or others.


class WorkersLost(OSError):
    """The workers are gone, and pieces of the work are not done."""


class PieceLost(OSError):
    """A piece of work ended its worker, again and again."""


@dataclass(frozen=True)
class Outcome:
    """What came of one piece of work: its result, or the error that ended it."""

    index: int  # of the piece's job in the sequence of jobs
    result: Any = None
    error: Exception | None = None  # None if the piece has a result


def ignored(fraction: float) -> None:
    """Report to nobody."""


class Workers(Protocol):
    """Workers that independent pieces of work can be mapped over.

    A piece is a function of a module, which other processes can import, and its arguments. Results
    do not depend on who does the work. Nothing is done before the first result is asked for.
    Whoever stops iterating cancels the pieces that are not done.
    """

    @property
    def count(self) -> int:
        """How many pieces are done at the same time."""

    def map(
        self,
        work: Callable[..., Any],
        jobs: Sequence[tuple],
        *,
        report: Callable[[float], None] = ignored,
    ) -> Iterator[Any]:
        """Yield ``work(*job)`` of each job, in input order.

        The first error of a piece ends the iteration; pieces that are not done then are cancelled.
        `report` is called with the fraction of the jobs that is done.
        """

    def outcomes(
        self,
        work: Callable[..., Any],
        jobs: Sequence[tuple],
        *,
        report: Callable[[float], None] = ignored,
    ) -> Iterator[Outcome]:
        """Yield the outcome of each job as soon as it is done, in any order.

        A piece that ends with an error does not stop the others.
        """


class Here:
    """This process: one piece after the other, each on all cores."""

    count = 1

    def map(
        self,
        work: Callable[..., Any],
        jobs: Sequence[tuple],
        *,
        report: Callable[[float], None] = ignored,
    ) -> Iterator[Any]:
        """Yield ``work(*job)`` of each job, in input order."""
        return _reported((work(*job) for job in jobs), len(jobs), report)

    def outcomes(
        self,
        work: Callable[..., Any],
        jobs: Sequence[tuple],
        *,
        report: Callable[[float], None] = ignored,
    ) -> Iterator[Outcome]:
        """Yield the outcome of each job, in input order."""
        done = (outcome(index, work, job) for index, job in enumerate(jobs))
        return _reported(done, len(jobs), report)


@dataclass(frozen=True)
class Processes:
    """Processes of this machine, or the workers of the active backend of joblib.

    Processes share the cores. An interrupt, or the end of the iteration, ends them at once.
    """

    # Number of processes; None for one on each core that this process may use. A single one is this
    # process. A backend that knows its own number of workers, as that of Dask, uses them all.
    n_jobs: int | None = None

    @property
    def count(self) -> int:
        """How many pieces are done at the same time."""
        return self.n_jobs or cpu_count()

    def map(
        self,
        work: Callable[..., Any],
        jobs: Sequence[tuple],
        *,
        report: Callable[[float], None] = ignored,
    ) -> Iterator[Any]:
        """Yield ``work(*job)`` of each job, in input order."""
        results = self._results(work, jobs, "generator")
        return _reported(results, len(jobs), report)

    def outcomes(
        self,
        work: Callable[..., Any],
        jobs: Sequence[tuple],
        *,
        report: Callable[[float], None] = ignored,
    ) -> Iterator[Outcome]:
        """Yield the outcome of each job as soon as it is done.

        If a process is ended from outside, the pieces that are not done are done again one by one,
        each in a process of its own.
        """
        return _reported(self._outcomes(work, jobs), len(jobs), report)

    def _outcomes(
        self, work: Callable[..., Any], jobs: Sequence[tuple]
    ) -> Generator[Outcome, None, None]:
        """Yield the outcome of each job, and name those that end their process."""
        waiting = {index: (index, work, job) for index, job in enumerate(jobs)}
        numbered = list(waiting.values())
        try:
            for found in self._results(outcome, numbered, "generator_unordered"):
                del waiting[found.index]
                yield found
        except WorkersLost:
            # joblib does not tell which process it was, and all others are lost.
            for piece in waiting.values():
                yield _outcome_alone(piece)

    def _results(
        self,
        work: Callable[..., Any],
        jobs: Sequence[tuple],
        order: Literal["generator", "generator_unordered"],
        n_jobs: int | None = None,
    ) -> Generator[Any, None, None]:
        """Yield the result of each job, in the order that joblib calls by this name."""
        if not jobs:
            return
        n_jobs = n_jobs or min(self.count, len(jobs))
        before = active_children()
        # Before interrupts are held: they let them through when they start.
        start_trackers()
        with _ended_at_exit(Parallel(n_jobs=n_jobs, return_as=order)) as parallel:
            # The cores of each process, see `threads.cores`.
            share = str(max(1, cpu_count() // n_jobs))
            results: Generator[Any, None, None] = (_ for _ in ())
            try:
                # Ctrl-C reaches all processes of a terminal; only this one must answer it, when
                # they are started.
                with interrupts_held(), environment("LOKY_MAX_CPU_COUNT", share):
                    results = parallel(delayed(work)(*job) for job in jobs)
                for result in results:  # noqa: UP028, `yield from` would close them
                    yield result
            except BrokenProcessPool as error:
                raise WorkersLost(
                    "a worker process was ended from outside, probably because the "
                    f"memory was full: {n_jobs} processes shared it. Use fewer."
                ) from error
            except BaseException:
                # Before joblib takes away what they need: those that have just been started would
                # print that it is missing.
                kill_children(but=before)
                raise
            finally:
                # joblib warns of results that nobody takes; an interrupt wants none.
                with warnings.catch_warnings(action="ignore"):
                    results.close()


def _outcome_alone(piece: tuple) -> Outcome:
    """Return the outcome of a piece that has a process and the memory for itself."""
    try:
        # Of two processes one does it; a single one would be this process.
        return next(Processes()._results(outcome, [piece], "generator", n_jobs=2))
    except WorkersLost:
        problem = PieceLost(
            "it ended its process, twice, probably because the memory was full. Give "
            "it fewer samples, or a machine with more memory."
        )
        return Outcome(piece[0], error=problem)


@contextmanager
def _ended_at_exit(parallel: Parallel) -> Iterator[Parallel]:
    """Enter joblib's context, and end the processes that it started at the exit.

    joblib lets idle processes live for five minutes. Processes that ran before, for somebody else,
    are left alone.
    """
    ours = not any(_is_of_joblib(child) for child in active_children())
    with parallel:
        try:
            yield parallel
        finally:
            backend = parallel._backend
            running = isinstance(backend, LokyBackend) and backend._workers is not None
            if ours and running:
                backend.abort_everything(ensure_ready=False)


def _is_of_joblib(process: object) -> bool:
    return type(process).__module__.startswith("joblib.")


def _reported(
    results: Generator[Any, None, None], total: int, report: Callable[[float], None]
) -> Iterator[Any]:
    """Yield the results, and report the fraction that is done."""
    try:
        for done, result in enumerate(results, start=1):
            report(done / total)
            yield result
    finally:
        results.close()


def in_order(outcomes: Generator[Outcome, None, None]) -> Iterator[Any]:
    """Yield the results of outcomes in the order of their jobs; raise an error at once.

    Results that come too early are held back.
    """
    early: dict[int, Any] = {}
    due = 0
    with closing(outcomes):
        for done in outcomes:
            if done.error is not None:
                raise done.error
            early[done.index] = done.result
            while due in early:
                yield early.pop(due)
                due += 1


def outcome(index: int, work: Callable[..., Any], job: tuple) -> Outcome:
    """Return the outcome of one piece, here and now."""
    try:
        return Outcome(index, work(*job))
    # The boundary of a piece: its error, of any kind, is raised by who asked for it.
    except Exception as error:
        return Outcome(index, error=_portable(error))


def _portable(error: Exception) -> Exception:
    """Return the error, or one that says the same where it does not survive pickling.

    The traceback, which no pickle keeps, becomes a note.
    """
    error.add_note("".join(traceback.format_exception(error)).rstrip())
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # an error's own code, which may raise anything
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


# Records that travel to other processes.


class PickledFields:
    """A frozen dataclass that is pickled without its cached properties.

    They may be many times larger than the fields, and are computed again when needed.
    """

    def __getstate__(self) -> dict:
        """Return the fields."""
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        return {field.name: getattr(self, field.name) for field in fields}
