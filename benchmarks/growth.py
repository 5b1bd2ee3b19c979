"""How do time and memory of the default factorization grow with the samples, and those of the spectrum with functions?

    python benchmarks/growth.py                               a torus of 10,000, 100,000 and 1,000,000 samples
    python benchmarks/growth.py --functions 50 100 200 400    the spectrum of 10,000 samples

Each size is fitted in a process of its own, so that its peak memory can be read.
"""

import argparse
import json
import resource
import subprocess
import sys
import time

import numpy as np

from manifactor import DiffusionMap, ManifoldFactorizer, datasets
from manifactor.scores import score

from record import record


def measure(n_samples, n_functions):
    X, truth = datasets.sample("torus", n_samples, random_state=0)
    estimator = ManifoldFactorizer if n_functions is None else DiffusionMap
    start = time.perf_counter()
    fit = estimator(n_functions=n_functions or "auto", random_state=0).fit(X)
    found = {
        "seconds": round(time.perf_counter() - start, 2),
        "gigabytes": round(
            resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2
        ),
        "forecast": str(fit.forecast_),
        "stages": {stage: round(value, 2) for stage, value in fit.timings_.items()},
        "largest_residual": float(fit.spectrum_.residuals.max()),
    }
    if n_functions is None:
        thin = slice(None, None, max(1, n_samples // 10_000))
        places = [factor.embedding[thin] for factor in fit.factors_]
        found["verdict"] = fit.verdict_
        found["solved"] = bool(score(places, [t[thin] for t in truth]).solved)
    print(json.dumps(found))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--samples", type=int, nargs="+", default=[10_000, 100_000, 1_000_000]
    )
    parser.add_argument("--functions", type=int, nargs="+")
    parser.add_argument("--only", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.only:
        measure(
            arguments.samples[0],
            arguments.functions[0] if arguments.functions else None,
        )
        return
    sizes = arguments.functions or arguments.samples
    found = {}
    for size in sizes:
        command = [
            sys.executable,
            __file__,
            "--only",
            "--samples",
            str(10_000 if arguments.functions else size),
        ]
        command += ["--functions", str(size)] if arguments.functions else []
        found[size] = json.loads(
            subprocess.run(command, check=True, capture_output=True, text=True).stdout
        )
        print(size, found[size], flush=True)
    exponents = np.polyfit(
        np.log(sizes), np.log([found[size]["seconds"] for size in sizes]), 1
    )
    record(
        "growth with the functions"
        if arguments.functions
        else "growth with the samples",
        sizes=found,
        exponent=round(float(exponents[0]), 3),
    )


if __name__ == "__main__":
    main()
