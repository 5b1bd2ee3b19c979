"""Which numbers of the gradient method decide what it finds?

    python benchmarks/sensitivity.py                  all numbers; 5 min on 16 cores
    python benchmarks/sensitivity.py --only kernel    those with this in their name

Each upper-case number in the modules that make a fit,
and each limit of the table `CRITERIA`, is multiplied and divided by 1.5, one at a time:
counts are rounded, shares stay within [0, 1]. Each variation is one line of JSON; a table
is printed at the end.
"""

import argparse
import inspect
import math
import os
import pkgutil
import re
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from multiprocessing import get_context
from unittest.mock import patch

import numpy as np
from threadpoolctl import threadpool_limits

from manifactor.factorize import factorize
from manifactor.judging.table import CRITERIA
from manifactor.samples import Samples
from manifactor.scores import score
from studies.accuracy import Case, quick_table

from record import record

PACKAGES = ("samples", "operators", "models", "factors", "judging", "factorize", "kinds")
PACKAGES = tuple(f"manifactor.{each}" for each in PACKAGES)
# What has no part here: searches of many samples, GPUs, forecasts, and the other methods.
SKIPPED = {"cells", "faiss", "gpu", "forecast", "sums", "triplets"}
PRODUCTS = ("square", "torus", "sphere_interval", "cube", "strip3")
CONTROLS = ("moebius", "disk", "sphere")
FACTORS = {"x1.5": 1.5, "/1.5": 1 / 1.5}


@dataclass(frozen=True)
class Variation:
    """A number of a module, or the limit of a criterion, and what it is changed to."""

    module: str  # "CRITERIA" for a limit
    name: str
    value: float
    direction: str
    new: float

    @property
    def setting(self):
        """Module and name, without the package."""
        return f"{self.module.removeprefix('manifactor.')}.{self.name}"


def variations(packages=PACKAGES, criteria=CRITERIA):
    """Yield all changes of the numbers of packages, and of the limits of criteria."""
    found = [number for package in packages for number in numbers(package)]
    found += [("CRITERIA", name, criterion.limit) for name, criterion in criteria.items()]
    for module, name, value in found:
        for direction, factor in FACTORS.items():
            new = scaled(value, factor)
            # Zeros and infinities have nowhere to go, nor has a count of 1 down.
            if math.isfinite(value) and new != value:
                yield Variation(module, name, value, direction, new)


def numbers(package):
    """Yield module, name and value of every upper-case number that a module defines."""
    inner = pkgutil.walk_packages(getattr(import_module(package), "__path__", []), f"{package}.")
    for path in (package, *(module.name for module in inner)):
        if SKIPPED & set(path.split(".")):
            continue
        module = import_module(path)
        for name, value in vars(module).items():
            # True and False are integers in Python, and not numbers here.
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if name.isupper() and number and defines(module, name):
                yield path, name, value


def defines(module, name):
    """Return whether a module sets a number itself, and does not import it."""
    return re.search(rf"^{name}\b.*=", inspect.getsource(module), re.MULTILINE)


def scaled(value, factor):
    """Return a number times the factor: a count is rounded, a share at most 1."""
    if isinstance(value, int):
        return max(1, round(value * factor)) if value > 0 else value
    return min(value * factor, 1.0) if 0 < value < 1 else value * factor


@contextmanager
def changed(variation):
    """Change a number in its module, and in those that import it, for a while."""
    name, new = variation.name, variation.new
    if variation.module == "CRITERIA":
        with patch.dict(CRITERIA, {name: replace(CRITERIA[name], limit=new)}):
            yield
        return
    own = import_module(variation.module)
    package = [each for key, each in sys.modules.items() if key.startswith("manifactor.")]
    with ExitStack() as stack:
        for module in package:
            if module is own or (name in vars(module) and not defines(module, name)):
                stack.enter_context(patch.object(module, name, new))
        yield


def cases(n_samples=1000, seeds=3):
    """Return pairs of case and seed: 26 runs of 0.7 s."""
    table = [row for row in quick_table() if row[0].method == "gradients"]
    for shape in (*PRODUCTS, *CONTROLS):
        table.append((Case("cheap", shape, n=n_samples), seeds))
    pairs = [(case, seed) for case, count in table for seed in range(count)]
    # The quick table has two of the shapes, too: each seed once.
    return list({(case.shape, seed): (case, seed) for case, seed in pairs}.values())


def outcome(case, seed):
    """Return whether a case is solved, and the verdict."""
    X, truth = case.draw(seed)
    found = factorize(Samples(X, rng=np.random.default_rng(seed)))
    embeddings = [factor.embedding for factor in found.factors]
    return bool(score(embeddings, truth).solved), str(found.evidence.verdict)


def outcomes(pairs, variation):
    """Return the outcomes of all cases; an error counts as not solved, and is kept."""
    try:
        with changed(variation), warnings.catch_warnings(action="ignore"):
            return [outcome(case, seed) for case, seed in pairs]
    except Exception as error:
        return [(False, f"error: {error}")] * len(pairs)


def compared(variation, before, after):
    """Return the record of a variation: cases gained and lost, verdicts changed."""
    both = [(*old, *new) for old, new in zip(before, after, strict=True)]
    return {
        "setting": variation.setting,
        "value": variation.value,
        "direction": variation.direction,
        "new": variation.new,
        "gained": sum(now and not was for was, _, now, _ in both),
        "lost": sum(was and not now for was, _, now, _ in both),
        "verdicts": sum(said != says for _, said, _, says in both),
        "errors": sum(says.startswith("error") for *_, says in both),
    }


def table(records):
    """Return the table in Markdown, the largest effect first."""
    rows, effects = {}, {}
    for one in records:
        name = f"{one['setting']} | {one['value']:g}"
        gained, lost = one["gained"], one["lost"]
        cells = rows.setdefault(name, dict.fromkeys(FACTORS, "- | -"))
        cells[one["direction"]] = f"+{gained} -{lost} | {one['verdicts']}"
        effects[name] = effects.get(name, 0) + gained + lost + one["verdicts"]
    head = [f"solved {factor} | verdicts {factor}" for factor in FACTORS]
    lines = [f"| setting | value | {' | '.join(head)} |", "|---|---|---|---|---|---|"]
    loud = [name for name in rows if effects[name]]
    for name in sorted(loud, key=effects.get, reverse=True):
        lines.append(f"| {name} | {' | '.join(rows[name].values())} |")
    silent = f"Without effect: {len(rows) - len(loud)} of {len(rows)} settings."
    return "\n".join([*lines, "", silent])


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="numbers whose name contains this")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    arguments = parser.parse_args()
    pairs, records = cases(), []
    chosen = [one for one in variations() if arguments.only in one.setting]
    with warnings.catch_warnings(action="ignore"):  # "none" is an answer, too
        before = [outcome(case, seed) for case, seed in pairs]
    spawn = get_context("spawn")
    with ProcessPoolExecutor(arguments.jobs, spawn, threadpool_limits, (1,)) as pool:
        found = pool.map(partial(outcomes, pairs), chosen)
        for variation, after in zip(chosen, found, strict=True):
            records.append(compared(variation, before, after))
            record("sensitivity of the gradient method", **records[-1])
    print(f"\nDefault: {sum(solved for solved, _ in before)} of {len(pairs)} solved.\n")
    print(table(records))


if __name__ == "__main__":
    main()
