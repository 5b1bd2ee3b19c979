"""How often are the motions of the simulated molecule found, nothing set by hand?

Every run simulates particle images, writes them as a data set, reads them back and fits
them as `manifactor fit` does.
"""

import argparse
import os
import tempfile
import time
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from manifactor import datasets
from manifactor.cryoem.confounders import confounder_records
from manifactor.cryoem.simulate.writing import write_dataset
from manifactor.runs.options import FitOptions
from manifactor.runs.sources import open_input
from manifactor.runs.task import fit_input, plan_fit
from manifactor.scores import coordinate_correlation, regression_r2

from record import record

CASES = {
    "x": [({"motions": "x", "signal_to_noise": snr}, (2500, 10000)) for snr in (100, 10, 3, 1)],
    "xy": [({"motions": "xy", "signal_to_noise": 30}, (2500, 10000))],
    "correlated": [({"correlation": 0.5, "signal_to_noise": 10}, (2500, 10000))],
    "defocus": [({"defocus": (10_000.0, 25_000.0), "signal_to_noise": 30}, (2500, 10000))],
}


def run(n: int, case: dict, seed: int, *, phase_flip: bool = False) -> dict:
    simulation = datasets.simulate_particles(n, random_state=seed, **case)
    with tempfile.TemporaryDirectory() as folder:
        write_dataset(Path(folder), simulation, name=Path(folder).name)
        start = time.perf_counter()
        options = FitOptions(phase_flip=phase_flip)
        rng = np.random.default_rng(seed)
        given = open_input(Path(folder) / "particles.star", options).read(rng)
        with warnings.catch_warnings(action="ignore"):
            plan = plan_fit(given, FitOptions(seed=seed))
            fit, places = fit_input(given, plan)
        seconds = time.perf_counter() - start
    ring, stretch = simulation.truth
    found = [f"{place.topology}: " + describe(place, ring, stretch) for place in places]
    named = [
        c["meaning"]
        for c in confounder_records(given.particles, places, rng=np.random.default_rng(0))
        if c["meaning"]
    ]
    return {"verdict": fit.verdict_, "factors": found, "named": named, "seconds": round(seconds, 1)}


def describe(place, ring, stretch) -> str:
    if place.topology == "circle":
        return f"turn {coordinate_correlation(place.coordinate, ring):.4f}"
    if place.topology == "interval":
        columns = [
            coordinate_correlation(place.coordinate, stretch[:, [k]])
            for k in range(stretch.shape[1])
        ]
        return f"stretch {max(columns):.4f}"
    own, leak = (regression_r2(place.coordinate[:3000], true[:3000]) for true in (stretch, ring))
    return f"both stretches R^2 {own:.3f}, turn R^2 {leak:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", default=list(CASES), help=", ".join(CASES))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--largest", type=int, default=10_000, help="leave out larger n")
    arguments = parser.parse_args()
    for name in arguments.cases:
        for case, sizes in CASES[name]:
            for n in (n for n in sizes if n <= arguments.largest):
                for seed in range(arguments.seeds):
                    result = run(n, case, seed)
                    print(n, case, seed, result, flush=True)
                    record("molecule", n=n, case=case, seed=seed, **result)


if __name__ == "__main__":
    main()
