"""Run jobs in parallel, and remember what they found."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from manifactor._support.workers import Processes, Workers
from studies.paper.finding import Found, Job, drawn, find
from studies.paper.section import Settings
from studies.pieces import results_as_done

# The figures show these two; rates over seeds cover all of `finding.WAYS`.
COMPARED = ("published", "default")


@dataclass
class Lab:
    """Runs jobs in parallel, and remembers what they found for figures that share it."""

    workers: Workers = field(default_factory=Processes)
    # Called with the share of the work that is done
    callback: Callable[[float], None] | None = None
    known: dict[Job, Found] = field(default_factory=dict)  # what was found so far

    def find(self, jobs: Sequence[Job]) -> list[Found]:
        """Return what each job found."""
        # Figures share most of their fits.
        self.known.update(self._run(find, self._unknown(jobs)))
        return [self.known[job] for job in jobs]

    def compare(self, cases: Sequence[str], settings: Settings) -> dict[str, dict[str, Found]]:
        """Return what the published and the default method found in each data set."""
        jobs = [
            Job(case, method, settings.n, settings.seed) for case in cases for method in COMPARED
        ]
        found = dict(zip(jobs, self.find(jobs), strict=True))
        both: dict[str, dict[str, Found]] = {case: {} for case in cases}
        for job, one in found.items():
            both[job.case][job.method] = one
        return both

    def measure(self, jobs: Sequence[Job]) -> list[dict]:
        """Return the numbers of each job.

        What was found is not kept: over many seeds it would fill the memory.
        """
        numbers = {job: self.known[job].numbers for job in jobs if job in self.known}
        numbers |= self._run(measure, self._unknown(jobs))
        return [numbers[job] for job in jobs]

    def _unknown(self, jobs: Sequence[Job]) -> list[Job]:
        """Return the jobs that were not run yet, each once."""
        return [job for job in dict.fromkeys(jobs) if job not in self.known]

    def _run(self, function: Callable, jobs: Sequence[Job]) -> dict:
        """Return results by job; jobs on the same draw run in one process, in turn."""
        # Images take longer to simulate than to fit, so a draw is made once.
        draws: dict[tuple, list[Job]] = {}
        for job in jobs:
            draws.setdefault((job.case, job.n, job.seed), []).append(job)
        groups = [(function, group) for group in draws.values()]
        done: dict = {}
        for results in results_as_done(self.workers, _in_turn, groups):
            done |= results
            if self.callback is not None:
                # One more than the jobs: drawing the figure comes after them.
                self.callback(len(done) / (len(jobs) + 1))
        return done


def _in_turn(function: Callable, jobs: Sequence[Job]) -> dict:
    results = {job: function(job) for job in jobs}
    # A worker makes one draw after the other, and images need half a gigabyte.
    drawn.cache_clear()
    return results


def measure(job: Job) -> dict:
    """Return the numbers of a job."""
    return find(job).numbers
