"""How do time and memory of the paper's workload compare with a textbook pipeline's?

    python benchmarks/textbook.py        n = 10,000, N = 100 and 400: some minutes
    python benchmarks/textbook.py --samples 3000 --functions 50

The workload: a rectangle with noise, diffusion map, triplets, cut into two groups. Each
pipeline runs in a process of its own, so that its peak memory can be read; that of the
imports alone is subtracted. Ours runs with several seeds: the median of the times
and the largest memory count.
"""

import argparse
import json
import resource
import subprocess
import sys
import time

import numpy as np

from manifactor import ManifoldFactorizer, datasets
from manifactor.models.triplets import max_cut
from studies.paper.cases import PAPER_UNIT
from studies.paper.table1 import Table1Settings
from studies.paper.textbook import algorithm_1, diffusion_map

from record import record

WORKLOAD = Table1Settings()
COUNTS = (("ours", 5), ("textbook", 1))  # runs with a seed each


def ours(X, n_functions, seed):
    """Return the number of factors that our pipeline finds."""
    fit = ManifoldFactorizer(
        2,
        method="triplets",
        n_functions=n_functions,
        eigenvalue_tolerance=PAPER_UNIT * WORKLOAD.delta,
        similarity_threshold=WORKLOAD.gamma,
        density_correction=0,
        random_state=seed,
    ).fit(X)
    return len(fit.factors_)


def textbook(X, n_functions, seed):
    """Return the number of groups that the textbook pipeline finds."""
    eigenvalues, functions = diffusion_map(X, WORKLOAD.bandwidth, n_functions, seed=seed)
    columns = np.asfortranarray(functions)
    triplets = algorithm_1(eigenvalues, columns, WORKLOAD.delta, WORKLOAD.gamma)
    parts = sorted({part for pair in triplets.values() for part in pair})
    index = {part: number for number, part in enumerate(parts)}
    separability = np.zeros((len(parts), len(parts)))
    for i, j in triplets.values():
        separability[index[i], index[j]] = 1
        separability[index[j], index[i]] = 1
    return max_cut(separability, 2, rng=np.random.default_rng(0)).labels.max() + 1


def measure(name, n_samples, n_functions, seed):
    """Print seconds and megabytes of one pipeline in this process."""
    X, _ = datasets.sample("rectangle_z", n_samples, noise=WORKLOAD.noise, random_state=0)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    groups = {"ours": ours, "textbook": textbook}[name](X, n_functions, seed)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    found = {"seconds": round(seconds, 2), "megabytes": round(peak / 1024), "groups": int(groups)}
    print(json.dumps(found))


def _run(name, n_samples, n_functions, seed):
    """Return the measurements of a process of its own."""
    command = [sys.executable, __file__, "--only", name]
    command += ["--samples", str(n_samples), "--functions", str(n_functions)]
    command += ["--seed", str(seed)]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(run.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--functions", type=int, nargs="+", default=[100, 400])
    parser.add_argument("--only", choices=["ours", "textbook"], help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=0, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.only:
        measure(arguments.only, arguments.samples, arguments.functions[0], arguments.seed)
        return
    for n_functions in arguments.functions:
        runs = {
            name: [_run(name, arguments.samples, n_functions, seed) for seed in range(count)]
            for name, count in COUNTS
        }
        found = {
            name: {
                "seconds": float(np.median([run["seconds"] for run in of_one])),
                "megabytes": max(run["megabytes"] for run in of_one),
                "groups": sorted({run["groups"] for run in of_one}),
            }
            for name, of_one in runs.items()
        }
        record(
            "whole workload: textbook dense pipeline over ours",
            samples=arguments.samples,
            functions=n_functions,
            **found,
            ratio=round(found["textbook"]["seconds"] / found["ours"]["seconds"], 1),
            memory_ratio=round(found["textbook"]["megabytes"] / found["ours"]["megabytes"], 1),
        )


if __name__ == "__main__":
    main()
