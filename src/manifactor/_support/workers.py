"""Who does independent pieces of work: this process, or others."""

import dataclasses
import os
import pickle
import traceback
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from multiprocessing import active_children, current_process
from typing import Any

from joblib import Parallel, cpu_count, delayed
from joblib.externals.loky import get_reusable_executor
from joblib.externals.loky.process_executor import BrokenProcessPool

from manifactor._support.processes import end_at_once, environment, hold_interrupts, start_trackers


class WorkersLost(OSError):
    """The workers of pieces that are not done are gone."""


@dataclass(frozen=True)
class Outcome:
    """What came of one piece of work: its result, or the error that ended it."""

    index: int  # of the piece's job in the sequence of jobs
    result: Any = None
    error: Exception | None = None  # None if the piece has a result


Work = Callable[..., Any]
Jobs = Sequence[tuple]  # the arguments of each call of a function
Report = Callable[[float], None]  # is told which fraction of the work is done
# A piece of work: its number, a function and its arguments.
Piece = tuple[int, Work, tuple]
Outcomes = Generator[Outcome, None, None]


def ignored(fraction: float) -> None:
    """Report to nobody."""


class Workers:
    """What independent pieces of work can be mapped over: here this process, in turn, on all cores.

    A piece is a function that other processes can import, and its arguments. Nothing is done before
    the first result is asked for; whoever stops iterating cancels the pieces that are not done.
    """

    @property
    def count(self) -> int:
        """How many pieces are done at the same time."""
        return 1

    def map(self, work: Work, jobs: Jobs, *, report: Report = ignored) -> Iterator[Any]:
        """Yield ``work(*job)`` of each job, in input order; the first error cancels the others."""
        return in_order(self.outcomes(work, jobs, report=report))

    def outcomes(self, work: Work, jobs: Jobs, *, report: Report = ignored) -> Outcomes:
        """Yield the outcome of each job when it is done; an error does not stop the others."""
        with closing(self._done([(index, work, job) for index, job in enumerate(jobs)])) as done:
            for count, finished in enumerate(done, start=1):
                report(count / len(jobs))
                yield finished

    def _done(self, pieces: Sequence[Piece]) -> Outcomes:
        """Yield the outcome of each piece as soon as it is done."""
        return (outcome(*piece) for piece in pieces)


Here = Workers


@dataclass(frozen=True)
class Processes(Workers):
    """Processes of this machine, which share its cores, or the workers of joblib's active backend.

    An interrupt, or an early end of the iteration, ends them at once. Idle ones wait for more work
    until this process ends.
    """

    # None for one on each core. A single one is this process. A backend that knows its own number
    # of workers, as that of Dask, uses them all.
    n_jobs: int | None = None
    # What CUDA_VISIBLE_DEVICES calls the GPUs that the processes use in turn; () for all.
    gpus: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """How many pieces are done at the same time."""
        return self.n_jobs or cpu_count()

    def _done(self, pieces: Sequence[Piece]) -> Outcomes:
        n_jobs = min(self.count, len(pieces))
        do = partial(_on_gpu, self.gpus) if self.gpus and n_jobs > 1 else outcome
        try:
            yield from _done_by(n_jobs, [delayed(do)(*piece) for piece in pieces])
        except BrokenProcessPool as error:
            # joblib does not tell which process it was, and all others are lost.
            raise WorkersLost(
                "a process ended before its work was done, probably because the memory was full. "
                "Give it fewer samples, or a machine with more memory."
            ) from error


def _on_gpu(gpus: Sequence[str], *piece: Any) -> Outcome:
    """Return the outcome of a piece that sees one GPU, always the same in one process."""
    number = int(current_process().name.rpartition("-")[2])
    os.environ["CUDA_VISIBLE_DEVICES"] = gpus[number % len(gpus)]
    return outcome(*piece)


def _done_by(n_jobs: int, calls: Sequence[Any]) -> Outcomes:
    """Yield the outcome of each call as soon as one of the processes has done it."""
    if not calls:
        return
    before = active_children()
    start_trackers()
    # The cores of each process, see `threads.cores`.
    share = str(max(1, cpu_count() // n_jobs))
    done: Outcomes = (_ for _ in ())
    try:
        with hold_interrupts(), environment(LOKY_MAX_CPU_COUNT=share):
            done = Parallel(n_jobs, return_as="generator_unordered", max_nbytes=None)(calls)
        for finished in done:  # noqa: UP028, `yield from` would close them
            yield finished
    except BaseException:
        # Before joblib takes away what they need: those that have just been started would print
        # that it is missing.
        end_at_once(child.pid for child in active_children() if child not in before)
        # joblib warns of results that nobody takes; an interrupt wants none.
        with warnings.catch_warnings(action="ignore"):
            done.close()
        get_reusable_executor(reuse=True).shutdown(kill_workers=True)
        raise


def in_order(outcomes: Outcomes) -> Iterator[Any]:
    """Yield results in the order of their jobs, early ones held back; raise an error at once."""
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


def outcome(index: int, work: Work, job: tuple) -> Outcome:
    """Return the outcome of one piece, done here; any error can be pickled, its traceback noted."""
    try:
        return Outcome(index, work(*job))
    # The boundary of a piece: its error, of any kind, is raised by who asked for it.
    except Exception as error:
        error.add_note("".join(traceback.format_exception(error)).rstrip())
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:  # an error's own code, which may raise anything
            return Outcome(index, error=RuntimeError(f"{type(error).__name__}: {error}"))
        return Outcome(index, error=error)


class PickledFields:
    """A frozen dataclass that is pickled without its cached properties, which may be far larger."""

    def __getstate__(self) -> dict:
        """Return the fields."""
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        return {field.name: getattr(self, field.name) for field in fields}
