"""Which settings of the gradient method decide what it finds?

    python benchmarks/sensitivity.py                  all settings; 5 min on 16 cores
    python benchmarks/sensitivity.py --only peeling   those with this in their name

Each number among the settings of `factorize`, and of the kernel and neighbours of
`diffuse`, is multiplied and divided by 1.5, one at a time: counts are rounded, shares
stay within [0, 1]. Each variation is one line of JSON; a table is printed at the end.
"""

import argparse
import os
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial
from multiprocessing import get_context
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from manifactor.scores import score
from studies.accuracy import Case, quick_table

from record import record
from varying import FACTORS, changed, variations

PRODUCTS = ("square", "torus", "sphere_interval", "cube", "strip3")
CONTROLS = ("moebius", "disk", "sphere")
# What the gradient method uses; the other methods have settings of their own.
PARTS = [
    *(("factoring", part) for part in ("looks", "gradients", "peeling", "residuals")),
    *(("factoring", part) for part in ("factors", "measures", "evidence")),
    *(("diffusion", part) for part in ("kernel", "searching", "outliers")),
]


@dataclass(frozen=True)
class Core:
    """The two functions of the package and their settings."""

    diffuse: Callable
    factorize: Callable
    diffusion: Any
    factoring: Any


def package():
    from manifactor.factoring.factorize import FactoringSettings, factorize
    from manifactor.spectral.pipeline import DiffusionSettings, diffuse

    return Core(diffuse, factorize, DiffusionSettings(), FactoringSettings())


def cases(n_samples=1000, seeds=3):
    """Return pairs of case and seed: 26 runs of 0.7 s."""
    table = [row for row in quick_table() if row[0].method == "gradients"]
    for shape in (*PRODUCTS, *CONTROLS):
        table.append((Case("cheap", shape, n=n_samples), seeds))
    pairs = [(case, seed) for case, count in table for seed in range(count)]
    # The quick table has two of the shapes, too: each seed once.
    return list({(case.shape, seed): (case, seed) for case, seed in pairs}.values())


@lru_cache(maxsize=64)  # all variations of the factoring share a diffusion
def diffusion_of(case, seed, diffuse, settings):
    X, truth = case.draw(seed)
    return diffuse(X, settings, rng=np.random.default_rng(seed)), truth


def outcome(core, case, seed):
    """Return whether a case is solved, and the verdict."""
    diffusion, truth = diffusion_of(case, seed, core.diffuse, core.diffusion)
    rng = np.random.default_rng(seed)
    found = core.factorize(diffusion, core.factoring, rng=rng)
    embeddings = [factor.embedding for factor in found.factors]
    return bool(score(embeddings, truth).solved), str(found.evidence.verdict)


def outcomes(core, pairs, variation):
    """Return the outcomes of all cases; an error counts as not solved, and is kept."""
    try:
        new = changed(core, variation.path, variation.new)
        with warnings.catch_warnings(action="ignore"):
            return [outcome(new, case, seed) for case, seed in pairs]
    except Exception as error:
        return [(False, f"error: {error}")] * len(pairs)


def compared(variation, before, after):
    """Return the record of a variation: cases gained and lost, verdicts changed."""
    both = [(*old, *new) for old, new in zip(before, after, strict=True)]
    return {
        "setting": variation.name,
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


def wanted(variation, only):
    """Return whether to run a variation; searches of many samples have no part here."""
    searches = {"cells", "faiss"} & set(variation.path)
    return only in variation.name and not searches


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="settings whose name contains this")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    arguments = parser.parse_args()
    core, pairs, records = package(), cases(), []
    chosen = [one for one in variations(core, PARTS) if wanted(one, arguments.only)]
    with warnings.catch_warnings(action="ignore"):  # "none" is an answer, too
        before = [outcome(core, case, seed) for case, seed in pairs]
    spawn = get_context("spawn")
    with ProcessPoolExecutor(arguments.jobs, spawn, threadpool_limits, (1,)) as pool:
        found = pool.map(partial(outcomes, core, pairs), chosen)
        for variation, after in zip(chosen, found, strict=True):
            records.append(compared(variation, before, after))
            record("sensitivity of the gradient method", **records[-1])
    print(f"\nDefault: {sum(solved for solved, _ in before)} of {len(pairs)} solved.\n")
    print(table(records))


if __name__ == "__main__":
    main()
