"""How do time and memory grow with the samples, and with the functions?

    python benchmarks/growth.py                              samples of a torus
    python benchmarks/growth.py --functions 50 100 200 400   functions of 10,000 samples

The first is the default factorization, the second the spectrum. Each size is fitted in
a process of its own, so that its peak memory can be read. CPU seconds, of all threads,
compare on a machine that does other work too.
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


def seconds_of_cpu(into):
    """Return a callback that adds CPU seconds up by stage."""
    last = [None, time.process_time()]

    def callback(stage, fraction):
        now = time.process_time()
        if last[0] is not None:
            into[last[0]] = round(into.get(last[0], 0.0) + now - last[1], 2)
        last[:] = stage, now

    return callback


def measure(n_samples, n_functions):
    X, truth = datasets.sample("torus", n_samples, random_state=0)
    estimator = ManifoldFactorizer if n_functions is None else DiffusionMap
    by_stage = {}
    start = time.perf_counter()
    fit = estimator(
        n_functions=n_functions or "auto", random_state=0, callback=seconds_of_cpu(by_stage)
    ).fit(X)
    found = {
        "seconds": round(time.perf_counter() - start, 2),
        "gigabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
        "forecast": str(fit.forecast_),
        "stages": {stage: round(value, 2) for stage, value in fit.timings_.items()},
        "cpu_seconds": by_stage,
        "largest_residual": float(fit.spectrum_.residuals.max()),
    }
    if n_functions is None:
        thin = slice(None, None, max(1, n_samples // 10_000))
        places = [factor.embedding[thin] for factor in fit.factors_]
        found["verdict"] = fit.verdict_
        found["solved"] = bool(score(places, [t[thin] for t in truth]).solved)
    print(json.dumps(found))


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--samples", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--functions", type=int, nargs="+")
    parser.add_argument("--only", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.only:
        n_functions = arguments.functions[0] if arguments.functions else None
        measure(arguments.samples[0], n_functions)
        return
    sizes = arguments.functions or arguments.samples
    found = {}
    for size in sizes:
        command = [sys.executable, __file__, "--only", "--samples"]
        if arguments.functions:
            command += ["10000", "--functions", str(size)]
        else:
            command += [str(size)]
        run = subprocess.run(command, check=True, capture_output=True, text=True)
        found[size] = json.loads(run.stdout)
        print(size, found[size], flush=True)
    seconds = [found[size]["seconds"] for size in sizes]
    exponent = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
    grown = "functions" if arguments.functions else "samples"
    record(f"growth with the {grown}", sizes=found, exponent=round(float(exponent), 3))


if __name__ == "__main__":
    main()
