"""Does `fit --dry-run` forecast memory within a factor of two?

    python benchmarks/forecast.py [table array images all-views whole]
    python benchmarks/forecast.py --device cuda [--samples 100000 1000000]

Each case is forecast by `--dry-run`, then fitted by the real command, in processes of
their own; forecast, measurement and their ratio are printed. On a GPU, the memory is
the peak of torch's allocator, and the seconds those of a second fit.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from manifactor import ManifoldFactorizer, datasets
from manifactor._support.threads import cores

from record import record

UNITS = {"MB": 1e6, "GB": 1e9}


def torus(n, n_columns, *, noise=None):
    X, _ = datasets.sample("torus", n, ambient_dimension=n_columns, noise=noise, random_state=0)
    return X


def write_table(folder):
    np.savetxt(folder / "table.csv", torus(20_000, 10, noise=0.01), delimiter=",")


def write_array(folder):
    np.save(folder / "array.npy", torus(1_000_000, 8))


def write_whole(folder):
    np.save(folder / "whole.npy", torus(200_000, 4))


def simulate(folder, *options):
    images = ["simulate", "molecule", "--n", "20000", "--out", "particles", *options]
    run(folder, *images)


def write_images(folder):
    simulate(folder, "--size", "128")


def write_all_views(folder):
    simulate(folder, "--views", "all", "--size", "64", "--pixel-size", "4")


# What writes the input of a case, and the arguments of `fit`.
CASES = {
    "table": (write_table, ["table.csv"]),
    "array": (write_array, ["array.npy"]),
    "images": (write_images, ["particles/particles.star"]),
    "all-views": (write_all_views, ["particles/particles.star", "--all-views"]),
    "whole": (write_whole, ["whole.npy", "--fit-samples", "all"]),
}


def run(folder, *arguments):
    """Run the command; return its seconds, those of the CPU, bytes, and output."""
    command = [sys.executable, "-m", "manifactor", *arguments]
    start = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{' '.join(command)} failed")
    seconds = time.perf_counter() - start
    return seconds, usage.ru_utime + usage.ru_stime, 1024.0 * usage.ru_maxrss, output


def said(line):
    """Return the bytes of a forecast in words."""
    number, unit = re.search(r"([\d.]+) (MB|GB)\b", line).groups()
    return float(number) * UNITS[unit]


def compare(name, folder):
    """Forecast and fit one case."""
    _, arguments = CASES[name]
    # In a process of its own: the memory of a command counts from what its parent
    # holds.
    subprocess.run([sys.executable, __file__, "--write", name, str(folder)], check=True)
    dry, _, _, words = run(folder, "fit", *arguments, "--dry-run")
    seconds, cpu, memory, _ = run(folder, "fit", *arguments, "--out", "run")
    record(
        "forecast of a fit",
        case=name,
        forecast=words.strip(),
        dry_run_seconds=round(dry, 1),
        seconds=round(seconds, 1),
        cpu_seconds_over_cores=round(cpu / cores(), 1),
        gigabytes=round(memory / 1e9, 2),
        ratio_of_memory=round(said(words) / memory, 2),
    )


def measure_on_device(n_samples, device):
    """Print forecast and measurement of a fit on a device."""
    import torch

    X = torus(n_samples, 4)
    estimator = ManifoldFactorizer(device=device, random_state=0)
    cost = estimator.forecast_shape(*X.shape)
    estimator.fit(X)
    torch.cuda.reset_peak_memory_stats()
    start = time.perf_counter()
    ManifoldFactorizer(device=device, random_state=0).fit(X)
    seconds = time.perf_counter() - start
    memory = torch.cuda.max_memory_allocated()
    found = {
        "samples": n_samples,
        "forecast": str(cost),
        "seconds": round(seconds, 2),
        "gigabytes": round(memory / 1e9, 2),
        "reserved_gigabytes": round(torch.cuda.max_memory_reserved() / 1e9, 2),
        "ratio_of_memory": round(cost.device_memory / memory, 2),
    }
    print(json.dumps(found))


def compare_on_device(n_samples, device):
    command = [sys.executable, __file__, "--only", "--device", device]
    command += ["--samples", str(n_samples)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    record("forecast of a fit on a device", **json.loads(done.stdout))


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--device")
    parser.add_argument("--samples", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--write", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--only", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.write:
        name, folder = arguments.write
        CASES[name][0](Path(folder))
    elif arguments.only:
        measure_on_device(arguments.samples[0], arguments.device)
    elif arguments.device:
        for n_samples in arguments.samples:
            compare_on_device(n_samples, arguments.device)
    else:
        for name in arguments.cases or CASES:
            with tempfile.TemporaryDirectory() as folder:
                compare(name, Path(folder))


if __name__ == "__main__":
    main()
