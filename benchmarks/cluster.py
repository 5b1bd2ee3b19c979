"""Do local workers speed up fits of many views, and do those of Dask survive kills?

    python benchmarks/cluster.py                speed: 1, 2 (and 4) processes
    python benchmarks/cluster.py --kills 20     a random worker of Dask is killed in each run

A view is a set of simulated images of the demo's molecule, read from a file and fitted.
Every worker has one core, unless --shared: then workers share all cores, and a single
one has them all. Results are compared, to the last bit, with those of this process.
`--views 6 --samples 400` is a small run.
"""

import argparse
import os
import random
import signal
import tempfile
import threading
import time
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from distributed import Client, LocalCluster

from manifactor import ManifoldFactorizer, datasets
from manifactor._support.processes import environment
from manifactor._support.threads import cores
from manifactor._support.workers import Here, Processes
from manifactor.cluster import cluster_workers

from record import record

# Degrees between views, and the first.
STEP, FIRST = 0.15, -60.0


def simulated(path, index, n_samples):
    """Write the images of one view."""
    tilt = FIRST + STEP * index
    found = datasets.simulate_particles(
        n_samples, size=36, pixel_size=6.0, blur=8.0, tilt=tilt, random_state=index
    )
    np.save(path, found.images.reshape(n_samples, -1))


def fitted(path):
    """Return the places of the images of one view, factor by factor."""
    with warnings.catch_warnings(action="ignore"):
        fit = ManifoldFactorizer(random_state=0).fit(np.load(path))
    return [factor.embedding for factor in fit.factors_]


def same(one, other):
    """Return whether results are equal to the last bit."""
    return len(one) == len(other) and all(
        len(a) == len(b) and all(map(np.array_equal, a, b)) for a, b in zip(one, other, strict=True)
    )


def written(folder, n_views, n_samples):
    """Return the jobs of the fits, after writing their images."""
    paths = [Path(folder) / f"view{index:03d}.npy" for index in range(n_views)]
    jobs = [(path, index, n_samples) for index, path in enumerate(paths)]
    list(Processes().map(simulated, jobs))
    return [(path,) for path in paths]


def timed(workers, jobs):
    """Return results and seconds; the workers have imported everything before."""
    list(workers.map(fitted, jobs[:1] * workers.count))
    start = time.perf_counter()
    found = list(workers.map(fitted, jobs))
    return found, time.perf_counter() - start


def speed(jobs, *, shared):
    expected, alone = timed(Here(), jobs)
    record("fits of views in this process", views=len(jobs), seconds=round(alone, 1))
    counts = [1, 2, 4] if cores() >= 8 else [1, 2]
    first = None
    for count in counts:
        limit = {} if shared else {"LOKY_MAX_CPU_COUNT": str(count)}
        with environment(**limit), cluster_workers(f"local:{count}") as workers:
            found, seconds = timed(workers, jobs)
        first = first or seconds
        record(
            "fits of views on local workers",
            views=len(jobs),
            workers=count,
            cores_each=cores() // count if shared else 1,
            cores=cores(),
            seconds=round(seconds, 1),
            times_one_worker=round(first / seconds, 2),
            same_bits=same(found, expected),
        )


def kill_one(client, done):
    """Kill a random worker, and add to `done` when it was killed."""
    os.kill(random.choice(list(client.run(os.getpid).values())), signal.SIGKILL)
    done.append(time.perf_counter())


def kills(jobs, n_kills, n_workers, seed):
    random.seed(seed)
    expected = list(Here().map(fitted, jobs))
    with (
        LocalCluster(n_workers, threads_per_worker=1, memory_limit=0) as cluster,
        Client(cluster, set_as_default=False) as client,
        cluster_workers(client) as workers,
    ):
        _, seconds = timed(workers, jobs)
        completed, hit = 0, 0
        for _ in range(n_kills):
            done = []
            delay = random.uniform(0, 0.8 * seconds)
            timer = threading.Timer(delay, kill_one, (workers.client, done))
            timer.start()
            found = list(workers.map(fitted, jobs))
            end = time.perf_counter()
            timer.join()
            hit += done[0] < end
            completed += same(found, expected)
    record(
        "a random worker killed during fits of views",
        views=len(jobs),
        workers=n_workers,
        seconds_undisturbed=round(seconds, 1),
        runs=n_kills,
        killed_before_the_end=hit,
        completed_with_the_same_bits=completed,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--views", type=int, default=120)
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--shared", action="store_true")
    parser.add_argument("--kills", type=int, metavar="RUNS")
    parser.add_argument("--workers", type=int, default=2, help="for --kills")
    parser.add_argument("--seed", type=int, default=0, help="of the kills")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        jobs = written(folder, arguments.views, arguments.samples)
        if arguments.kills:
            kills(jobs, arguments.kills, arguments.workers, arguments.seed)
        else:
            speed(jobs, shared=arguments.shared)


if __name__ == "__main__":
    main()
