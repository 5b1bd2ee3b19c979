"""How much memory does a whole fit of the paper's largest case take at its peak?

python benchmarks/memory.py [--samples 10000] [--functions 400]
"""

import argparse
import resource
import time

from manifactor import ManifoldFactorizer, datasets

from record import record


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--samples", type=int, default=10000)
    parser.add_argument("--functions", type=int, default=400)
    arguments = parser.parse_args()
    X, _ = datasets.sample("rectangle", arguments.samples, random_state=0)
    start = time.perf_counter()
    fit = ManifoldFactorizer(
        2,
        method="triplets",
        n_functions=arguments.functions,
        eigenvalue_tolerance=8.0,
        similarity_threshold=0.75,
        density_correction=0,
        random_state=0,
    ).fit(X)
    record(
        "peak memory of a whole fit",
        samples=arguments.samples,
        functions=arguments.functions,
        seconds={stage: round(s, 2) for stage, s in fit.timings_.items()},
        total_seconds=round(time.perf_counter() - start, 2),
        peak_gigabytes=round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2),
    )


if __name__ == "__main__":
    main()
