"""Are results equal to the last bit over repeats, processes and numbers of threads?

    python benchmarks/determinism.py                        20,000 samples
    python benchmarks/determinism.py --samples 100000 --threads 1 4 16
    python benchmarks/determinism.py --cases torus images   some of the cases

Each case is fitted by fresh processes that differ in the threads of BLAS and OpenMP, in
the cores they may use, in `n_jobs` and in the hash seed of Python. A line says for each
what is equal to the last bit to the first process, and for all else the largest
difference, in units of the largest value.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

from record import record


def torus(n_samples):
    from manifactor import datasets

    return datasets.sample("torus", n_samples, random_state=0)[0]


def noisy(n_samples):
    """Return a torus with noise in 40 dimensions: components are dropped."""
    from manifactor import datasets

    how = {"noise": 0.1, "ambient_dimension": 40, "random_state": 0}
    return datasets.sample("torus", n_samples, **how)[0]


def images(n_samples):
    """Return noisy images of the demo's molecule; at most 5,000."""
    from manifactor import datasets

    how = {"size": 36, "pixel_size": 6.0, "blur": 8.0, "random_state": 0}
    found = datasets.simulate_particles(min(n_samples, 5000), **how).images
    return found.reshape(len(found), -1)


def factors(X, n_jobs):
    """Return what a fit has found, and where it places other samples."""
    from manifactor import ManifoldFactorizer

    kept, new = X[:-1000], X[-1000:]
    fit = ManifoldFactorizer(random_state=0, n_jobs=n_jobs).fit(kept)
    found = {
        "eigenvalues": fit.spectrum_.eigenvalues,
        "functions": fit.spectrum_.functions,
        "evidence": np.array([test.value for test in fit.evidence_.tests], float),
        "transform": fit.transform(new),
    }
    for number, factor in enumerate(fit.factors_, start=1):
        found[f"embedding {number}"] = factor.embedding
    for number, placed in enumerate(fit.locate(new), start=1):
        found[f"places {number}"] = placed.embedding
    return found


def all_views(folder, n_samples):
    """Return the places of particles of all views, fitted by the command."""
    from manifactor.command.main import main

    count = min(n_samples // 4, 5000)
    data = f"{folder}/data"
    assert main(f"simulate molecule --views all --n {count} --out {data}".split()) == 0
    line = f"fit {data}/particles.star --all-views --out {folder}/run"
    assert main(line.split()) == 0
    table = np.genfromtxt(f"{folder}/run/coordinates.csv", delimiter=",", skip_header=1)
    return {"places": table}


CASES = {"torus": torus, "noisy": noisy, "images": images}


def child(case, n_samples, n_jobs, out):
    """Fit one case in this process, and write what is found."""
    warnings.simplefilter("ignore")
    if case == "all views":
        with tempfile.TemporaryDirectory() as folder:
            found = all_views(folder, n_samples)
    else:
        found = factors(CASES[case](n_samples), n_jobs)
    np.savez(out, **found)


def variants(threads):
    """Yield the name, the environment and `n_jobs` of each process."""
    first = {"threads": 1, "cores": 1, "n_jobs": 1, "hash": 0}
    yield "first", first
    yield "repeat", first
    yield "another hash seed", {**first, "hash": 7}
    for count in threads:
        yield f"{count} threads of BLAS and OpenMP", {**first, "threads": count}
        yield f"{count} cores", {**first, "cores": count}
        yield f"n_jobs={count}", {**first, "n_jobs": count}
    most = max(threads)
    yield "all of these", {"threads": most, "cores": most, "n_jobs": -1, "hash": 7}


def run(case, n_samples, how, out):
    """Run a process that fits the case, and return what it wrote."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    environment = {
        **os.environ,
        **dict.fromkeys(names, str(how["threads"])),
        "LOKY_MAX_CPU_COUNT": str(how["cores"]),
        "PYTHONHASHSEED": str(how["hash"]),
    }
    arguments = ["--child", case, "--samples", n_samples, "--jobs", how["n_jobs"]]
    command = [sys.executable, __file__, *arguments, "--out", out]
    subprocess.run(
        [str(word) for word in command],
        env=environment,
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    with np.load(out) as stored:
        return {name: stored[name] for name in stored.files}


def differences(found, first):
    """Return the largest difference of each array that differs, over its size."""
    different = {}
    for name in sorted(found.keys() | first.keys()):
        one, other = first.get(name), found.get(name)
        if one is None or other is None or one.shape != other.shape:
            different[name] = np.inf
        elif not np.array_equal(one, other, equal_nan=True):
            largest = np.nanmax(np.abs(one - other)) / np.nanmax(np.abs(one))
            different[name] = float(f"{largest:.1e}")
    return different


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--samples", type=int, default=20_000)
    parser.add_argument("--threads", type=int, nargs="+", default=[2])
    names = [*CASES, "all views"]
    parser.add_argument("--cases", nargs="+", default=names, choices=names)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--jobs", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--out", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments.child, arguments.samples, arguments.jobs, arguments.out)
        return
    with tempfile.TemporaryDirectory() as folder:
        for case in arguments.cases:
            first = None
            for name, how in variants(arguments.threads):
                found = run(case, arguments.samples, how, Path(folder) / "found.npz")
                first = first or found
                different = differences(found, first)
                record(
                    "determinism",
                    case=case,
                    samples=arguments.samples,
                    process=name,
                    equal=not different,
                    different=different,
                )


if __name__ == "__main__":
    main()
