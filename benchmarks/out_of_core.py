"""How fast are samples placed that do not fit into memory, and in how much memory?

    python benchmarks/out_of_core.py --samples 2000000 --workers 1 2 --out-dir /scratch

A torus in 8 columns (float32) is written to a Zarr store, chunk by chunk; a random
part is fitted, and all samples are placed in Parquet parts by so many workers, each on
a core of its own. The store is kept for further runs. Each number of workers is
measured in a process of its own.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np

RADII = (1.0, 0.7)
COLUMNS = 8
CHUNK = 100_000


def angles(chunk, n_rows):
    """Return the truth of a chunk: two angles for each sample."""
    return np.random.default_rng([0, chunk]).uniform(0, 2 * np.pi, (n_rows, 2))


def torus(truth):
    """Return the product of two circles, turned in 8 dimensions by a fixed rotation."""
    waves = np.stack([np.cos(truth), np.sin(truth)], axis=2) * np.reshape(RADII, (2, 1))
    turned = np.linalg.qr(np.random.default_rng(1).normal(size=(COLUMNS, COLUMNS)))[0]
    return (waves.reshape(-1, 4) @ turned[:4]).astype(np.float32)


def make_store(path, n_samples):
    """Write the samples, unless they are there; the folder appears when complete."""
    import zarr

    if path.is_dir():
        return
    beside = path.with_name(f".{path.name}")
    shutil.rmtree(beside, ignore_errors=True)
    chunks = (min(CHUNK, n_samples), COLUMNS)
    shape = (n_samples, COLUMNS)
    array = zarr.create_array(beside, shape=shape, chunks=chunks, dtype="f4")
    for number, start in enumerate(range(0, n_samples, CHUNK)):
        n_rows = min(CHUNK, n_samples - start)
        array[start : start + n_rows] = torus(angles(number, n_rows))
    beside.rename(path)


class Watch:
    """Largest memory of this process and of each worker, without cached files.

    And the CPU seconds of each worker.
    """

    def __init__(self, seconds=0.2):  # noqa: D107
        self.own, self.workers, self.cpu = 0, {}, {}
        self.seconds, self.ended = seconds, threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()

    def _watch(self):
        import psutil

        this = psutil.Process()
        while not self.ended.wait(self.seconds):
            self.own = max(self.own, anonymous(this.pid))
            for child in this.children(recursive=True):
                held = anonymous(child.pid)
                self.workers[child.pid] = max(self.workers.get(child.pid, 0), held)
                with suppress(psutil.NoSuchProcess):
                    times = child.cpu_times()
                    self.cpu[child.pid] = times.user + times.system


def anonymous(pid):
    """Return the bytes of memory of a process that are no pages of files."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:  # it has ended
        return 0
    return sum(1024 * int(x.split()[1]) for x in lines if x.startswith("RssAnon"))


def errors(run, n_samples, some=20):
    """Return how far places are from the truth, in degrees, in some of the parts."""
    import pyarrow.parquet as parquet

    files = sorted((run / "coordinates").glob("*.parquet"))
    files = files[:: max(1, len(files) // some)]
    tables = [parquet.read_table(path) for path in files]
    rows = np.concatenate([table["sample"].to_numpy() for table in tables])
    truth = np.empty((len(rows), 2))
    for chunk in np.unique(rows // CHUNK):
        own = rows // CHUNK == chunk
        known = angles(chunk, min(CHUNK, n_samples - chunk * CHUNK))
        truth[own] = known[rows[own] % CHUNK]
    found = []
    for factor in (1, 2):
        columns = [table[f"factor{factor}"].to_numpy() for table in tables]
        place = np.radians(np.concatenate(columns))
        off = min((off_circle(place, own) for own in truth.T), key=np.median)
        found.append(np.percentile(np.degrees(off), [50, 99, 100]).round(2).tolist())
    return found, len(rows)


def off_circle(place, truth):
    """Return angles between place and truth, turned and reflected onto each other."""
    best = None
    for sense in (1, -1):
        turn = np.exp(1j * (place - sense * truth))
        off = np.abs(np.angle(turn / turn.mean()))
        if best is None or np.median(off) < np.median(best):
            best = off
    return best


def measure(n_samples, n_workers, folder):
    # Before numpy and dask look for cores: a worker has one, and so have the others.
    own = sorted(os.sched_getaffinity(0))[:n_workers]
    os.sched_setaffinity(0, own)
    from manifactor.cluster import cluster_workers
    from manifactor.runs.options import FitOptions
    from manifactor.runs.task import Task

    task = Task(folder / f"torus-{n_samples}.zarr", FitOptions(coordinates="parquet"))
    run = folder / f"run-{n_samples}-{n_workers}"
    shutil.rmtree(run, ignore_errors=True)
    start = time.perf_counter()
    given = task.read()
    draw = time.perf_counter() - start
    with Watch() as watch, cluster_workers(f"local:{n_workers}") as workers:
        fit, record = task.fit(given, run, workers=workers)
    found, checked = errors(run, n_samples)
    shutil.rmtree(run)
    busy = sorted(watch.workers.values())[-n_workers:]
    seconds = fit.timings_["places"]
    out = {
        "samples": n_samples,
        "workers": n_workers,
        "cores": len(own),
        "seconds_draw": round(draw, 1),
        "seconds_fit": round(sum(fit.timings_.values()) - seconds, 1),
        "seconds_places": round(seconds, 1),
        "samples_per_second": round(n_samples / seconds),
        # Starting the workers and reading the fit included.
        "samples_per_cpu_second": round(n_samples / sum(watch.cpu.values())),
        "gigabytes_of_each_worker": [round(held / 2**30, 2) for held in busy],
        "gigabytes_here": round(watch.own / 2**30, 2),
        "verdict": fit.verdict_,
        "parts": record["parts"],
        "degrees_off_50_99_100": found,
        "samples_checked": checked,
    }
    print(json.dumps(out))


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--out-dir", type=Path, required=True, help="for the store")
    parser.add_argument("--only", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.only:
        measure(arguments.samples, arguments.workers[0], arguments.out_dir)
        return
    from record import record

    arguments.out_dir.mkdir(exist_ok=True)
    path = arguments.out_dir / f"torus-{arguments.samples}.zarr"
    make_store(path, arguments.samples)
    for count in arguments.workers:
        options = ["--samples", str(arguments.samples), "--workers", str(count)]
        command = [sys.executable, __file__, "--only", *options]
        done = subprocess.run(
            [*command, "--out-dir", str(arguments.out_dir)],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        record("out_of_core", **json.loads(done.stdout.splitlines()[-1]))


if __name__ == "__main__":
    main()
