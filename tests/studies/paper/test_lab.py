import signal
import subprocess
import sys

import pytest

from manifactor._support.threads import interrupts_held
from manifactor._support.workers import Here, Processes
from studies.paper.finding import Job
from studies.paper.lab import COMPARED, Lab
from studies.paper.section import Settings


@pytest.mark.slow
def test_jobs_side_by_side_find_what_they_find_alone(lab, rectangles):
    alone = {"torus": lab, "rectangle_z": rectangles}
    # Of two draws: jobs of one draw run in one process.
    jobs = [Job(case, "default", 250, 0) for case in alone]
    expected = [one.by_method["default"].numbers for one in alone.values()]
    assert str(Lab(Processes(2)).measure(jobs)) == str(expected)


def test_a_job_that_is_asked_for_twice_is_run_once(monkeypatch):
    run = []
    monkeypatch.setattr("studies.paper.lab.measure", run.append)
    job, other = (Job("square", "default", 120, seed) for seed in range(2))
    assert Lab(Here()).measure([job, other, job]) == [None, None, None]
    assert run == [job, other]


def test_what_was_found_is_remembered_and_compared_by_method(lab):
    settings = Settings(quick=True, seed=3)
    known = {Job("torus", method, settings.n, 3): lab.by_method[method] for method in COMPARED}
    # Nothing is run: a job that is not known would need a process.
    remembering = Lab(Here(), known=dict(known))
    both = remembering.compare(["torus"], settings)["torus"]
    assert list(both) == list(COMPARED)
    assert all(both[method] is lab.by_method[method] for method in COMPARED)
    assert remembering.measure(list(known)) == [one.numbers for one in known.values()]


def test_progress_never_reaches_the_whole_before_the_figure_is_drawn():
    shares = []
    jobs = [Job("square", "default", 120, seed) for seed in range(2)]
    Lab(Here(), callback=shares.append).measure(jobs)
    assert shares == [1 / 3, 2 / 3]


def test_workers_do_not_see_interrupts():
    program = "print('ready', flush=True); input(); print('whole')"
    with interrupts_held():
        child = subprocess.Popen(
            [sys.executable, "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
    assert child.stdout.readline() == "ready\n"
    child.send_signal(signal.SIGINT)
    assert child.communicate("\n")[0] == "whole\n"
