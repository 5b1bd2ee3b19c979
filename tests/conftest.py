"""Shared samples and exact spectra."""

import gc
import pickle
import re
import signal

import numpy as np
import pytest

import manifactor

# A shell that starts a job in the background has it ignore Ctrl-C, and so do the
# processes that the job starts. Tests of interrupts need processes that do not.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config):
    """Prepare a process that runs tests; one that only starts others need not import anything."""
    if config.getoption("numprocesses", None):
        return
    import scipy.linalg  # noqa: F401, as its BLAS is another one than numpy's
    from hypothesis import HealthCheck, settings
    from threadpoolctl import threadpool_limits

    # Each test process has one core. BLAS threads that wait for those of another process
    # make it ten times slower.
    threadpool_limits(1)
    # An example may take any time: on a busy machine the first takes seconds.
    slow = [HealthCheck.too_slow]
    settings.register_profile("untimed", deadline=None, suppress_health_check=slow)
    settings.load_profile("untimed")
    gc.disable()


def pytest_collection_finish(session):
    """Have the collector of garbage leave out all modules and tests, which stay."""
    gc.freeze()
    gc.enable()


def pytest_ignore_collect(collection_path, config):
    """Do not even import modules whose tests were all deselected."""
    if collection_path.suffix != ".py":
        return None
    text = collection_path.read_text(encoding="utf-8")
    marks = re.findall(r"^pytestmark = \[?\s*pytest\.mark\.(\w+)", text, re.M)
    return any(f"not {mark}" in config.option.markexpr for mark in marks) or None


class PickledWorkers:
    """Workers in this process that get and give pickles, as those of others do.

    `done` names the functions of all pieces in the order in which they were called.
    """

    count = 2

    def __init__(self):
        self.done = []

    def map(self, work, jobs, *, report=lambda fraction: None):
        for k, job in enumerate(jobs, start=1):
            work, job = pickle.loads(pickle.dumps((work, job)))
            self.done.append(work.__name__)
            yield pickle.loads(pickle.dumps(work(*job)))
            report(k / len(jobs))


def read_only(array):
    array.flags.writeable = False
    return array


@pytest.fixture
def rng():
    return np.random.default_rng(0)


EMPTY = "<svg viewBox='0 0 1 1'></svg>"


@pytest.fixture
def undrawn(monkeypatch):
    """Pages without their drawings, which take most of the time."""
    monkeypatch.setattr("manifactor.views.figures.svg_of", lambda *_: EMPTY)


@pytest.fixture(scope="session")
def rectangle():
    """1500 read-only samples of the paper's rectangle and their truth."""
    X, truth = manifactor.datasets.sample("rectangle", 1500, random_state=0)
    return read_only(X), truth


@pytest.fixture(scope="session")
def torus():
    """1500 read-only samples of the paper's torus and their truth."""
    X, truth = manifactor.datasets.sample("torus", 1500, random_state=0)
    return read_only(X), truth


@pytest.fixture(scope="session")
def rectangle_spectrum(rectangle):
    return manifactor.DiffusionMap(60, random_state=0).fit(rectangle[0]).spectrum_


def grid(side, dimension):
    """Midpoints of a regular grid in the unit box, on which the cosines of a box are exactly orthonormal."""
    axes = [(np.arange(side) + 0.5) / side] * dimension
    return np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, dimension)


def box_spectrum(lengths, n_functions, n_samples=400):
    """The analytic spectrum of a box on a grid of about n_samples, and the wave numbers of its functions."""
    t = grid(round(n_samples ** (1 / len(lengths))), len(lengths))
    n_samples = len(t)
    waves = np.stack(np.meshgrid(*[np.arange(n_functions)] * len(lengths)), axis=-1).reshape(
        -1, len(lengths)
    )
    eigenvalues = ((np.pi * waves / np.asarray(lengths)) ** 2).sum(axis=1)
    lowest = np.argsort(eigenvalues, kind="stable")[:n_functions]
    waves, eigenvalues = waves[lowest], eigenvalues[lowest]
    functions = np.prod(np.sqrt(1.0 + (waves > 0)) * np.cos(np.pi * waves * t[:, None]), axis=2)
    weights = np.full(n_samples, 1 / n_samples)
    from manifactor._support.parameters import given

    return manifactor.Spectrum(
        eigenvalues,
        read_only(functions),
        read_only(weights),
        np.zeros(n_functions),
        1e-3,
        given("exact"),
    ), waves
