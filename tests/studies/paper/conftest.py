"""Small results of all methods, and a lab that answers every question with them."""

from dataclasses import dataclass

import pytest

from manifactor._support.workers import Here
from studies.paper.finding import WAYS, Job, find
from studies.paper.lab import COMPARED, Lab
from studies.paper.section import Settings


class Small(Settings):
    """So few samples that a recipe takes no time; what it finds means nothing."""

    n = 250


@dataclass
class StandIn(Lab):
    """Answers every job with what the job's method found in a small torus."""

    by_method: dict = None

    def find(self, jobs):
        return [self.by_method[job.method] for job in jobs]

    def measure(self, jobs):
        return [found.numbers for found in self.find(jobs)]


@pytest.fixture(scope="session")
def small():
    return Small(quick=True)


@pytest.fixture(scope="session")
def lab():
    jobs = {method: Job("torus", method, 250, 0) for method in WAYS}
    return StandIn(workers=Here(), by_method={method: find(job) for method, job in jobs.items()})


@pytest.fixture(scope="session")
def torus_found():
    """What the default method finds in 800 samples of the paper's torus."""
    return find(Job("torus", "default", 800, 0))


@pytest.fixture(scope="session")
def rectangles():
    jobs = {method: Job("rectangle_z", method, 250, 0) for method in COMPARED}
    return StandIn(workers=Here(), by_method={method: find(job) for method, job in jobs.items()})


@pytest.fixture(scope="session")
def cubes():
    jobs = {method: Job("cube", method, 250, 0) for method in COMPARED}
    return StandIn(workers=Here(), by_method={method: find(job) for method, job in jobs.items()})
