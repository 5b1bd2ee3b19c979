"""Does this version behave as the stored digests say?

    python benchmarks/behaviour.py compare                  exits with 1 if it does not
    python benchmarks/behaviour.py compare --only torus     the cases with such names
    python benchmarks/behaviour.py write                    store what this version does

Some 70 small fits and 80 commands, with given seeds, use only what is
public. Their digests are in `behaviour.json`, or in the file that is named:

- words (verdicts, topologies, names of tests, keys, exit codes, files) are the same;
- numbers (projections of every array) differ by at most `--tolerance`, relative to the
  norm of the array; a tolerance of 0 asks for equality to the last bit;
- prose (sentences and warnings) is the same, unless `--ignore-prose` is given.

The stored digests are of one type of machine: sums of BLAS differ between processors
and versions of numpy. On others, `write` the digests of the version to compare with to
another file first. What a change alters on purpose is written anew with the change.
"""

import argparse
import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from behaviours.commands import SESSIONS
from behaviours.digest import KINDS, Prose, difference, digest
from behaviours.fits import FITS

STORED = Path(__file__).with_suffix(".json")
# The longest first, so that both processes end together.
CASES = SESSIONS | FITS


def digest_of(name):
    """Run a case; return its name, its digest and the seconds that it took."""
    start = time.perf_counter()
    # The principal components of images differ by 1e-8 with the number of threads.
    with threadpool_limits(1), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = CASES[name]()
        except Exception as error:  # what a case raises is its result
            result = {"raises": type(error).__name__, "said": Prose(error)}
    told = [w for w in caught if issubclass(w.category, UserWarning | FutureWarning)]
    # All of them, in their order.
    result["warned"] = [w.category.__name__ for w in told]
    result["warnings"] = Prose("; ".join(str(w.message) for w in told))
    return name, digest(result), time.perf_counter() - start


def run(names, n_jobs):
    """Return the digests of cases by name, and tell their progress."""
    work = (delayed(digest_of)(name) for name in names)
    how = {"batch_size": 1, "pre_dispatch": n_jobs, "return_as": "generator_unordered"}
    # joblib replaces a process that holds much memory after a fit.
    warnings.filterwarnings("ignore", "A worker stopped")
    found = {}
    for name, made, seconds in Parallel(n_jobs, **how)(work):
        found[name] = made
        print(f"{len(found):3} of {len(names)}  {seconds:5.1f} s  {name}", flush=True)
    return {name: found[name] for name in names}


def store(path, found):
    """Write digests, one leaf in a line, so that changes of the file can be read."""
    parts = []
    for name, by_kind in found.items():
        for kind in KINDS:
            lines = [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in by_kind[kind].items()]
            content = ",\n".join(lines)
            parts.append(f"{json.dumps(f'{name} / {kind}')}: {{\n{content}\n}}")
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def stored(path, names):
    """Return the digests that were written of these cases."""
    content = json.loads(path.read_text(encoding="utf-8"))
    return {name: {kind: content.get(f"{name} / {kind}", {}) for kind in KINDS} for name in names}


def differences(old, new, tolerance):
    """Yield kind and description of each difference between two digests."""
    for kind in KINDS:
        for name in sorted(old[kind].keys() | new[kind].keys()):
            before, after = (each[kind].get(name, "(nothing)") for each in (old, new))
            if before == after:
                continue
            size = np.inf
            if kind == "numbers" and "(nothing)" not in (before, after):
                size = difference(before, after)
            if not 0 < tolerance >= size:
                apart = f" relative difference {size:.1e}" if np.isfinite(size) else ""
                yield kind, f"{name}:{apart}\n      {before}\n   -> {after}"


def compare(old, new, tolerance, ignore_prose):
    """Print how digests differ, and return the exit code."""
    counts = dict.fromkeys(KINDS, 0)
    for case in new:
        for kind, text in differences(old[case], new[case], tolerance):
            counts[kind] += 1
            print(f"{case} / {kind} / {text}")
    arrays = [
        (old[case]["numbers"][name], array)
        for case in new
        for name, array in new[case]["numbers"].items()
        if name in old[case]["numbers"]
    ]
    largest = max((difference(*pair) for pair in arrays), default=0.0)
    equal = sum(one == other for one, other in arrays)
    print(
        f"{len(new)} cases; {counts['words']} words, {counts['numbers']} arrays of "
        f"numbers and {counts['prose']} texts differ. {equal} of {len(arrays)} arrays "
        f"are equal to the last bit; the largest relative difference is {largest:.1e}."
    )
    fatal = counts["words"] + counts["numbers"]
    return int(fatal + (0 if ignore_prose else counts["prose"]) > 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("command", choices=["write", "compare"])
    parser.add_argument("path", nargs="?", type=Path, default=STORED)
    parser.add_argument("--only", default="", help="cases with this in their name")
    parser.add_argument("--tolerance", type=float, default=1e-9)
    parser.add_argument("--ignore-prose", action="store_true")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    arguments = parser.parse_args()
    start = time.perf_counter()
    names = [name for name in CASES if arguments.only in name]
    found = run(names, arguments.jobs)
    print(f"{time.perf_counter() - start:.0f} s")
    if arguments.command == "compare":
        old = stored(arguments.path, names)
        sys.exit(compare(old, found, arguments.tolerance, arguments.ignore_prose))
    if arguments.only and arguments.path.exists():
        found = stored(arguments.path, CASES) | found
    store(arguments.path, found)


if __name__ == "__main__":
    main()
