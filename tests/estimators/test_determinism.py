"""Results that are equal to the last bit, whoever computes them; see benchmarks/determinism.py."""

import os
import subprocess
import sys

import pytest

# Digests of fits of many samples, of few and of images, with so many jobs.
FITS = """
import sys
import warnings

import joblib

from manifactor import DiffusionMap, ManifoldFactorizer, datasets

def digest(X, **how):
    fit = ManifoldFactorizer(random_state=0, n_jobs=int(sys.argv[1]), **how).fit(X)
    new = X[::7] + 0.01
    placed = [part for place in fit.locate(new) for part in place]
    tests = [test.value for test in fit.evidence_.tests]
    found = [fit.spectrum_.functions, fit.coordinates(), fit.transform(new), *placed]
    return joblib.hash([fit.spectrum_.eigenvalues, *found, fit.verdict_, tests])

warnings.simplefilter("ignore")
torus = datasets.sample("torus", 250, random_state=0)[0]
how = {"size": 36, "pixel_size": 6.0, "blur": 8.0, "random_state": 0}
images = datasets.simulate_particles(150, **how).images.reshape(150, -1)
# Enough samples for threads of our own
many = DiffusionMap(20, random_state=0).fit(datasets.sample("torus", 2200, random_state=0)[0])
print(joblib.hash(many.spectrum_.functions), digest(torus), digest(images, sense="geometry"))
"""
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "LOKY_MAX_CPU_COUNT")


@pytest.mark.slow
def test_fits_are_the_same_in_every_process_on_any_number_of_threads():
    processes = []
    for n_threads, n_jobs, seed in [(1, 1, 0), (2, -1, 7)]:
        limits = dict.fromkeys(THREADS, str(n_threads))
        environment = {**os.environ, **limits, "PYTHONHASHSEED": str(seed)}
        command = [sys.executable, "-c", FITS, str(n_jobs)]
        out = subprocess.PIPE
        processes.append(subprocess.Popen(command, env=environment, stdout=out))
    first, other = [process.communicate()[0].split() for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert first == other
    assert len(first) == len({*first}) == 3
