"""Results that are equal to the last bit, whoever computes them; see benchmarks/determinism.py."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import joblib
import pytest

from manifactor import DiffusionMap, ManifoldFactorizer, datasets


def digest(X, n_jobs, **how):
    fit = ManifoldFactorizer(random_state=0, n_jobs=n_jobs, **how).fit(X)
    new = X[::7] + 0.01
    placed = [part for place in fit.locate(new) for part in place]
    tests = [test.value for test in fit.evidence_.tests]
    found = [fit.spectrum_.functions, fit.coordinates(), fit.transform(new), *placed]
    return joblib.hash([fit.spectrum_.eigenvalues, *found, fit.verdict_, tests])


def digests(n_jobs):
    """Digests of fits of many samples, of few and of images, with so many jobs."""
    # Enough samples for threads of our own
    many = DiffusionMap(20, random_state=0).fit(datasets.sample("torus", 2200, random_state=0)[0])
    torus = datasets.sample("torus", 250, random_state=0)[0]
    how = {"size": 36, "pixel_size": 6.0, "blur": 8.0, "random_state": 0}
    images = datasets.simulate_particles(150, **how).images.reshape(150, -1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [
            joblib.hash(many.spectrum_.functions),
            digest(torus, n_jobs),
            digest(images, n_jobs, sense="geometry"),
        ]


@pytest.mark.slow
def test_fits_are_the_same_in_every_process_on_any_number_of_threads():
    # Here, BLAS has one thread.
    limits = dict.fromkeys(["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "LOKY_MAX_CPU_COUNT"], "2")
    code = f"from {__name__} import digests; print(*digests(-1))"
    other = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[2],
        env={**os.environ, **limits, "PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=True,
    )
    here = digests(1)
    assert here == other.stdout.split()
    assert len({*here}) == 3
